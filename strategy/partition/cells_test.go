package partition

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A partition never goes back to older cells.
func TestOlderCellsAreNotTaken(t *testing.T) {
	var p Partition
	p.states.Store(new(map[int]*state))
	for _, one := range []struct{ given, want uint64 }{{2, 2}, {1, 2}, {3, 3}} {
		p.take(8, &state{revision: one.given})
		assert.Equal(t, one.want, p.current(8).revision)
	}
}

// A cell without a centre begins at the point that is farthest from its own cell, and the others
// stay.
func TestAnEmptyCellIsRefilled(t *testing.T) {
	points := [][]float32{{1, 0}, {0, 1}, {0.6, 0.8}}
	cells := []cell{{mass: 1, vector: points[0]}, {vector: points[0]}, {vector: points[0]}}
	refill(points, cells, []int{0, 0, 0})
	assert.Equal(t, [][]float32{points[0], points[1], points[2]},
		[][]float32{cells[0].vector, cells[1].vector, cells[2].vector})
}
