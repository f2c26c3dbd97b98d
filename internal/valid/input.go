package valid

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed"
)

// Input returns the error about a field of the input of a method: a [*heed.InputError]. The reason
// is formatted.
func Input(field, reason string, args ...any) error {
	return &heed.InputError{Field: field, Reason: fmt.Sprintf(reason, args...)}
}

// Wrap puts what was being done before an error. Without an error it returns nil.
func Wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Name is how many bytes a name may have that a store keeps. Indexes of SQL databases take keys of
// a few kilobytes, with several names in one key.
const Name = 1024

// Texts reports the first text that has more bytes than the limit, or that some store could not
// keep, because PostgreSQL refuses NUL and invalid UTF-8. Pairs are fields, each with its text.
func Texts(limit int, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		switch field, text := pairs[i], pairs[i+1]; {
		case len(text) > limit:
			return Input(field, "is %d bytes long, may be %d", len(text), limit)
		case strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text):
			return Input(field, "must be valid UTF-8 without NUL")
		}
	}
	return nil
}

// Names is [Texts] for texts that must not be empty.
func Names(limit int, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return Input(pairs[i], "must not be empty")
		}
		if err := Texts(limit, pairs[i:i+2]...); err != nil {
			return err
		}
	}
	return nil
}

// List reports a list that has too many elements, or its first element that is no name.
func List[T ~string](field string, list []T, most, limit int) error {
	if len(list) > most {
		return Input(field, "has %d elements, may have %d", len(list), most)
	}
	for i, text := range list {
		if err := Names(limit, fmt.Sprintf("%s[%d]", field, i), string(text)); err != nil {
			return err
		}
	}
	return nil
}
