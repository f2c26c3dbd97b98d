package partition

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// A cell is one part of the space of vectors: what is nearer to its vector than to any other
// cell's.
type cell struct {
	id     uint64    // names its item, and is never used again
	mass   float64   // the length of the sum of the vectors that it was made of
	vector []float32 // of length 1; must not be changed
}

// The bounds of the work.
const (
	// perCell is how many vectors there must be for each cell. A cell of fewer would follow single
	// texts.
	perCell = 10
	// maxSample is how many vectors for each cell are used. More hardly move a centre.
	maxSample = 256
	// rounds bounds the rounds of k-means.
	rounds = 25
	// seedings is how often seeds are drawn. Those with the least distances are used.
	seedings = 3
	// maxMass bounds how much a cell's past weighs, so that a cell never ceases to follow what comes.
	maxMass = 10_000
)

// unit returns the vector with length 1 in its own slice, or false for one that is zero or not
// finite. With unit vectors the nearest cell has the greatest inner product, so no lengths are
// computed later.
func unit(vector []float32) ([]float32, bool) {
	length, out := lengthOf(vector), make([]float32, len(vector))
	if !(length > 0) || math.IsInf(length, 0) {
		return nil, false
	}
	for i, x := range vector {
		out[i] = float32(float64(x) / length)
	}
	return out, true
}

// lengthOf returns the length of a vector.
func lengthOf[T float32 | float64](vector []T) float64 {
	var squares float64
	for _, x := range vector {
		squares += float64(x) * float64(x)
	}
	return math.Sqrt(squares)
}

// dot returns the inner product of vectors of one length. Four sums at a time let the processor add
// them in parallel. The result of one order is the same each time, so the nearest cell is as well.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// nearest returns the cell that is nearest to a unit vector, the first of equals, and its cosine,
// which is -2 if there are no cells.
func nearest(vector []float32, cells []cell) (at int, cosine float32) {
	cosine = -2
	for i := range cells {
		if c := dot(vector, cells[i].vector); c > cosine {
			at, cosine = i, c
		}
	}
	return at, cosine
}

// makeCells makes the first cells of unit vectors. They have no ids yet. Where the vectors are all
// alike there are fewer than k. It costs at most rounds·k·len(points) inner products; a context
// that ends stops it between rounds. Seeds are drawn several times, because k-means finds a
// different result from each, and keeps a bad one.
func makeCells(ctx context.Context, points [][]float32, k int, rng *rand.Rand) ([]cell, error) {
	if most := maxSample * k; len(points) > most {
		points = slices.Clone(points)
		rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		points = points[:most]
	}
	var best []cell
	least := math.Inf(1)
	for range seedings {
		cells, rest, err := seed(ctx, points, nil, k, rng)
		if err != nil {
			return nil, err
		}
		if rest < least {
			best, least = cells, rest
		}
	}
	return settle(ctx, points, best, rounds)
}

// seed adds cells until there are k, each at a point that is drawn by how far it is from those
// before. It returns them, and how far all points are from their cells in sum. On the unit sphere
// the squared distance is twice 1 - cosine. With cells that are there already, new ones begin where
// points are far from all of them. This is k-means++ (Arthur and Vassilvitskii 2007).
func seed(
	ctx context.Context, points [][]float32, cells []cell, k int, rng *rand.Rand,
) (all []cell, rest float64, err error) {
	cells = slices.Clone(cells)
	far := make([]float64, len(points))
	for i, p := range points {
		_, cosine := nearest(p, cells)
		far[i] = distance(cosine)
		rest += far[i]
	}
	for len(cells) < k && rest > 0 {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		at, left := 0, rng.Float64()*rest
		for i, d := range far {
			if d > 0 {
				at = i
				if left -= d; left < 0 {
					break
				}
			}
		}
		cells = append(cells, cell{vector: points[at]})
		rest = 0
		for i, p := range points {
			far[i] = min(far[i], distance(dot(p, points[at])))
			rest += far[i]
		}
	}
	return cells, rest, nil
}

// distance is 0 also for what differs by rounding alone. Otherwise two cells could begin at the
// same point.
func distance(cosine float32) float64 {
	if d := 1 - float64(cosine); d > 1e-6 {
		return d
	}
	return 0
}

// settle moves the cells to the middle of what is nearest to them, in at most this number of
// rounds. A cell's mass is what it was before, and counts as much as that many points at its place.
// The cells that are given are not changed. All points begin in the first cell, and it ends early
// once no more than one point of a thousand has moved to another cell. This is Lloyd's algorithm
// (1982) on the sphere, where the middle of vectors is the direction of their sum.
func settle(ctx context.Context, points [][]float32, before []cell, rounds int) ([]cell, error) {
	cells, of := slices.Clone(before), make([]int, len(points))
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		moved := assign(points, cells, of)
		for i, sum := range sums(points, before, of) {
			cells[i] = sum.cell(cells[i])
		}
		if moved*1000 <= len(points) {
			break
		}
	}
	return cells, nil
}

// assign finds the cell of each point, and returns how many have another than before.
func assign(points [][]float32, cells []cell, of []int) (moved int) {
	for i, p := range points {
		if at, _ := nearest(p, cells); at != of[i] {
			of[i] = at
			moved++
		}
	}
	return moved
}

// A sum is the sum of a cell's vectors.
type sum []float64

// sums adds up the points of each cell, and what the cell was before.
func sums(points [][]float32, before []cell, of []int) []sum {
	all := make([]sum, len(before))
	for i, c := range before {
		all[i] = make(sum, len(c.vector))
		all[i].add(c.vector, c.mass)
	}
	for i, p := range points {
		all[of[i]].add(p, 1)
	}
	return all
}

// add adds a vector a number of times, in float64, because thousands of float32 would lose digits.
func (s sum) add(vector []float32, times float64) {
	for i, x := range vector {
		s[i] += times * float64(x)
	}
}

// cell returns the cell at the middle. Without a middle, it stays where it is, without mass. The
// length of the sum is its mass: vectors that differ add up to less, and then the middle moves more
// easily.
func (s sum) cell(c cell) cell {
	length := lengthOf(s)
	if c.mass = min(length, maxMass); length < 1e-9 {
		return c
	}
	c.vector = make([]float32, len(s))
	for i, x := range s {
		c.vector[i] = float32(x / length)
	}
	return c
}
