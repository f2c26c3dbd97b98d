package loop

import (
	"strings"

	"github.com/heedhq/heed/strategy/partition"
)

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

// Partition returns the partition, which assigns an event to a cell, or nil.
func (a *Agent) Partition() *partition.Partition { return a.partition }
