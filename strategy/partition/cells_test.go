package partition

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A partition never goes back to older cells.
func TestOlderCellsAreNotTaken(t *testing.T) {
	p := Partition{states: make(map[int]*state)}
	for _, one := range []struct{ given, want uint64 }{{2, 2}, {1, 2}, {3, 3}} {
		p.take(8, &state{revision: one.given})
		assert.Equal(t, one.want, p.current(8).revision)
	}
}
