package partition

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// A state is the cells as the store has them. It is immutable. The zero state has no cells.
type state struct {
	revision uint64 // of the record
	seen     uint64 // how many vectors they were made of
	next     uint64 // the id of the next new cell
	cells    []cell
	items    []string // the names of the cells, made once, because every text is given one
}

// The bounds of what is kept.
const (
	// maxCells bounds the work of finding the nearest cell, which looks at each.
	maxCells   = 10_000
	maxNumbers = 65_536 // of a vector
)

// A row is a partition as a store keeps it. Other programs may read it: a text's cell is the one
// whose vector has the greatest inner product with the text's vector.
type row struct {
	// Name is the partition's, and At is when it last changed.
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	// The others are as in state.
	Seen  uint64    `json:"seen"`
	Next  uint64    `json:"next"`
	Cells []rowCell `json:"cells"`
}

// A rowCell is a cell as it is kept.
type rowCell struct {
	ID   uint64  `json:"id"`
	Mass float64 `json:"mass"`
	// Vector has four bytes for each number, in the format of IEEE 754, the least first; in JSON as
	// base64.
	Vector []byte `json:"vector"`
}

// kind has one record for each partition, with the partition's name as its id. A change replaces
// it.
var kind = store.View[row]{
	Kind:  store.Kind{Name: "strategy.cells"},
	Place: func(r row) (string, time.Time, []string) { return r.Name, r.At, nil },
}

// numbers is the length of the cells' vectors, and 0 without cells.
func (s *state) numbers() int {
	if len(s.cells) == 0 {
		return 0
	}
	return len(s.cells[0].vector)
}

// name names the items of the cells.
func (s *state) name(partition string) {
	s.items = make([]string, len(s.cells))
	for i := range s.cells {
		s.items[i] = partition + ":" + strconv.FormatUint(s.cells[i].id, 10)
	}
}

// row returns the state as it is kept.
func (s *state) row(name string, at time.Time) row {
	r := row{Name: name, At: at, Seen: s.seen, Next: s.next}
	for _, c := range s.cells {
		vector, _ := binary.Append(nil, binary.LittleEndian, c.vector) // no error is possible
		r.Cells = append(r.Cells, rowCell{c.id, c.mass, vector})
	}
	return r
}

// stateOf returns the cells of a record. A text is later compared with them without checks, so a
// record whose vectors differ in length, or do not have length 1, is damaged. Numbers that are not
// finite do not have length 1.
func stateOf(kept *store.Row[row]) (*state, error) {
	r := &kept.Value
	s := &state{revision: kept.Revision, seen: r.Seen, next: r.Next}
	for i, c := range r.Cells {
		vector := make([]float32, len(c.Vector)/4)
		n, _ := binary.Decode(c.Vector, binary.LittleEndian, vector)
		var squares float64
		for _, x := range vector {
			squares += float64(x) * float64(x)
		}
		if n != len(c.Vector) || n != len(r.Cells[0].Vector) || !(math.Abs(squares-1) < 1e-3) {
			return nil, fmt.Errorf("cell %d has a vector of %d bytes and length %v: %w", i, n,
				math.Sqrt(squares), heed.ErrDamaged)
		}
		s.cells = append(s.cells, cell{c.ID, c.Mass, vector})
	}
	s.name(r.Name)
	return s, nil
}
