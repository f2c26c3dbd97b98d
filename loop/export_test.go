package loop

// WithRoom returns a budget for this many characters.
func WithRoom(b Budget, runes int) Budget {
	b.runes = runes
	return b
}
