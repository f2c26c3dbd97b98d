package kit

// A study has no use for a part of its figures, so it ends at its first error: [Check] and [Must]
// end it, and who began it has the error from [Catch]. [Parallel] passes on how its calls end.
// Other goroutines must return their errors.

type failure struct{ error }

// Check ends the study if there is an error.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Must returns the value, and ends the study if there is an error.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Catch sets the error by which a study ended. It must be deferred.
func Catch(err *error) {
	switch ended := recover().(type) {
	case nil:
	case failure:
		*err = ended.error
	default:
		panic(ended)
	}
}
