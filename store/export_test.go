package store

const Tries = tries

// Turns returns how many stores have a turn that a step has or waits for.
func Turns() int {
	turns.Lock()
	defer turns.Unlock()
	return len(turns.of)
}
