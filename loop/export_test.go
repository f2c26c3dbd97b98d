package loop

import "strings"

// WithRoom returns a budget for this many characters.
func WithRoom(b Budget, runes int) Budget {
	b.runes = runes
	return b
}

// String returns the branch as a tree of lines.
func (b Branch) String() string {
	var w strings.Builder
	b.write(&w, "", "")
	return w.String()
}

// ReadLessonsFrom reads lessons as [ReadLessons] does.
var ReadLessonsFrom = readLessons
