package partition

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// turned returns vectors of two numbers, of length 1, by their angles.
func turned(angles ...float64) (vectors [][]float32) {
	for _, a := range angles {
		vectors = append(vectors, []float32{float32(math.Cos(a)), float32(math.Sin(a))})
	}
	return vectors
}

func cellsAt(vectors ...[]float32) (cells []cell) {
	for _, v := range vectors {
		cells = append(cells, cell{vector: v})
	}
	return cells
}

// An asked counts how often it is asked whether it has ended, which it never has.
type asked struct {
	context.Context
	times int
}

func (a *asked) Err() error {
	a.times++
	return nil
}

func TestTheFirstOfEqualCellsIsNearest(t *testing.T) {
	v := turned(1)[0]
	at, cosine := nearest(v, cellsAt(turned(2, 1, 1)...))
	assert.Equal(t, 1, at)
	assert.InDelta(t, 1, cosine, 1e-6)
}

// What differs by rounding alone is not apart.
func TestDistance(t *testing.T) {
	assert.Zero(t, distance(1.0000001))
	assert.Zero(t, distance(1-9e-7))
	assert.InDelta(t, 1.2e-6, distance(1-1.2e-6), 1e-7)
	assert.InDelta(t, 2, distance(-1), 0)
}

// A drawn is a source whose only number makes Float64 return it.
type drawn float64

func (d drawn) Uint64() uint64 { return uint64(float64(d) * (1 << 53)) }

// A point is drawn by how far it is from the cells: of four that are equally far, each in a fourth
// of the draws.
func TestASeedIsDrawnByHowFarItIs(t *testing.T) {
	points := [][]float32{{0, 1}, {0, 1}, {0, 1}, {0, 1}}
	for at := range points {
		cells, rest, err := seed(t.Context(), points, cellsAt([]float32{1, 0}), 2,
			rand.New(drawn(float64(at)/4)))
		require.NoError(t, err)
		require.Len(t, cells, 2)
		assert.Same(t, &points[at][0], &cells[1].vector[0])
		assert.Zero(t, rest)
	}
}

// Points that are near one another have cells as well, until there is one for each.
func TestSeedsEndWithThePoints(t *testing.T) {
	points := turned(0, 0.1, 0.2)
	for _, k := range []int{2, 3, 4} {
		cells, rest, err := seed(t.Context(), points, nil, k, rand.New(rand.NewPCG(1, 2)))
		require.NoError(t, err)
		assert.Len(t, cells, min(k, 3))
		assert.Equal(t, k == 2, rest > 0)
	}
}

// No cell begins where another is, although rounding leaves some of what is drawn to the end.
func TestRoundingMakesNoSecondCell(t *testing.T) {
	for n := range uint64(20) {
		rng, points := rand.New(rand.NewPCG(n, 0)), [][]float32(nil)
		for range 30 { // about a right angle away, where numbers have the most digits
			points = append(points, turned(math.Pi/2+1e-9*rng.Float64())...)
		}
		first := turned(0)
		cells, _, err := seed(t.Context(), append(points, first...), cellsAt(first...), 2,
			rand.New(drawn(1-1./(1<<53))))
		require.NoError(t, err)
		require.NotEqual(t, first[0], cells[1].vector)
	}
}

// Of three times that seeds are drawn, the one whose points are nearest to them is used, and the
// first of equals.
func TestTheBestSeedsAreUsed(t *testing.T) {
	firsts := map[int]bool{}
	for n := range uint64(22) {
		rng, size, k := rand.New(rand.NewPCG(n, 0)), 40, 4
		switch n {
		case 20:
			k = size // each point is a seed
		case 21:
			size, k = 256, 1 // no sample is needed
		}
		points := make([][]float32, 0, size)
		for range cap(points) {
			points = append(points, turned(2*math.Pi*rng.Float64())...)
		}
		draws, best, least, at := rand.New(rand.NewPCG(n, 1)), []cell(nil), math.Inf(1), 0
		for i := range 3 {
			cells, rest, err := seed(t.Context(), points, nil, k, draws)
			require.NoError(t, err)
			if rest < least {
				best, least, at = cells, rest, i
			}
		}
		firsts[at] = true
		want, err := settle(t.Context(), points, best, rounds)
		require.NoError(t, err)
		got, err := makeCells(t.Context(), points, k, rand.New(rand.NewPCG(n, 1)))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	assert.Len(t, firsts, 3, "each is the best in some")
}

// More than 256 points for a cell are a sample of all of them.
func TestManyPointsAreSampled(t *testing.T) {
	points := slices.Concat(slices.Repeat([][]float32{{1, 0}}, 256),
		slices.Repeat([][]float32{{0, 1}}, 256))
	cells, err := makeCells(t.Context(), points, 1, rand.New(rand.NewPCG(1, 2)))
	require.NoError(t, err)
	assert.Less(t, cells[0].mass, 256.)
	assert.Greater(t, cells[0].vector[1], float32(0.5), "of the last as well")
	assert.Equal(t, []float32{1, 0}, points[255], "the caller's order stays")
}

// A cell moves to the middle of its points and of its past, and its mass is the length of the sum,
// up to a bound. What it was before is not changed.
func TestSettling(t *testing.T) {
	for _, one := range []struct {
		mass   float64
		points [][]float32
		vector []float32
		want   float64
	}{
		{3, slices.Repeat([][]float32{{0, 1}}, 4), []float32{0.6, 0.8}, 5},
		{0, [][]float32{{0, 1}, {0, -1}}, []float32{1, 0}, 0}, // there is no middle
		{10_000, [][]float32{{1, 0}}, []float32{1, 0}, 10_000},
	} {
		before := []cell{{7, one.mass, []float32{1, 0}}}
		after, err := settle(t.Context(), one.points, before, 1)
		require.NoError(t, err)
		assert.Equal(t, []cell{{7, one.want, one.vector}}, after)
		assert.Equal(t, []cell{{7, one.mass, []float32{1, 0}}}, before)
	}
	for _, short := range []float64{1e-9, 1.2e-9} {
		c := sum{0, short}.cell(cell{vector: []float32{1, 0}})
		assert.Equal(t, []float32{0, 1}, c.vector, "a short sum has a direction")
	}
}

// Settling ends when no more than one point of a thousand has moved, or after its rounds.
func TestSettlingEndsEarly(t *testing.T) {
	for _, one := range []struct{ points, moved, rounds, times int }{
		{1000, 0, 9, 1}, {1000, 1, 9, 1}, {1000, 2, 9, 2}, {999, 1, 9, 2}, {999, 1, 1, 1},
	} {
		points := slices.Repeat([][]float32{{1, 0}}, one.points)
		for i := range one.moved {
			points[i] = []float32{0, 1}
		}
		over := &asked{Context: t.Context()}
		_, err := settle(over, points, cellsAt([]float32{1, 0}, []float32{0, 1}), one.rounds)
		require.NoError(t, err)
		assert.Equal(t, one.times, over.times, fmt.Sprint(one))
	}
}

// Old cells are joined by new ones, one for ten vectors that were seen, also when these are many.
func TestCellsForManyVectors(t *testing.T) {
	p := Partition{cfg: Config{Clusters: 130}}
	var points [][]float32
	for i := range 260 {
		points = append(points, turned(float64(i)/260*2*math.Pi)...)
	}
	over := &asked{Context: t.Context()}
	next, err := p.after(over, &state{seen: 1030, next: 1, cells: cellsAt(points[0])}, points)
	require.NoError(t, err)
	assert.Equal(t, 128+1, over.times, "once for each new cell, and for one round")
	assert.Len(t, next.cells, 129)
	assert.Len(t, next.items, 129)
}
