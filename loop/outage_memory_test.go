//go:build !race

package loop

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/evidence"
)

// What is remembered for outages is bounded by the number of cells and by their parts, and a cell
// that is read again and again pushes no other out.
func TestAMemoryIsBounded(t *testing.T) {
	cell := func(n int) evidence.Cell {
		return evidence.Cell{Kind: "k", Scope: "s", Name: fmt.Sprint(n)}
	}
	m := &memory{}
	keep := func(n, parts int) {
		all := make([]evidence.Part, parts)
		for i := range all {
			all[i].Cell = cell(n)
		}
		m.keep(nil, nil, []evidence.Cell{cell(n)}, all)
	}
	parts := func() (cells, parts int) {
		for _, of := range []map[evidence.Cell]sized[[]evidence.Part]{m.parts.now, m.parts.before} {
			for _, kept := range of {
				cells, parts = cells+1, parts+len(kept.value)
			}
		}
		return cells, parts
	}
	keep(0, 3)
	for range 100_000 {
		keep(1, 40)
	}
	_, ok := m.parts.get(cell(0))
	assert.True(t, ok, "it is still there")
	for n := range 200 {
		keep(n, 5000)
	}
	_, many := parts()
	assert.LessOrEqual(t, many, 2*mostSize)
	assert.Greater(t, many, mostSize/2)
	for n := range 10_000 {
		keep(n, 1)
	}
	cells, _ := parts()
	assert.LessOrEqual(t, cells, 2*mostRecent)
}
