package partition

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// A state is the cells of vectors of one length, as the store has them. It is immutable. The zero
// state has no cells.
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

// A row is the cells of vectors of one length as a store keeps them. Other programs may read it:
// a text's cell is the one whose vector has the greatest inner product with the text's vector.
type row struct {
	// Name is the partition's, Numbers the length of the vectors, and At when they last changed.
	Name    string    `json:"name"`
	Numbers int       `json:"numbers"`
	At      time.Time `json:"at"`
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

// kind has one record for each partition and length of vectors. A change replaces it.
var kind = store.View[row]{
	Kind: store.Kind{Name: "strategy.cells"},
	Place: func(r row) (string, time.Time, []string) {
		return rowID(r.Name, r.Numbers), r.At, []string{key(r.Name)}
	},
}

func key(name string) string { return store.Key("partition", name) }

func rowID(name string, numbers int) string { return fmt.Sprintf("%s:%d", name, numbers) }

// name names the items of the cells. Cells of vectors of other lengths have other names.
func (s *state) name(partition string, numbers int) {
	s.items = make([]string, len(s.cells))
	for i := range s.cells {
		s.items[i] = fmt.Sprintf("%s.%d", rowID(partition, numbers), s.cells[i].id)
	}
}

// row returns the state as it is kept.
func (s *state) row(name string, numbers int, at time.Time) row {
	r := row{Name: name, Numbers: numbers, At: at, Seen: s.seen, Next: s.next}
	for _, c := range s.cells {
		vector, _ := binary.Append(nil, binary.LittleEndian, c.vector) // no error is possible
		r.Cells = append(r.Cells, rowCell{c.id, c.mass, vector})
	}
	return r
}

// stateOf returns the cells of a record. A text is later compared with them without checks, so a
// record whose vectors do not have their number of numbers, or length 1, is damaged. Numbers that
// are not finite do not have length 1.
func stateOf(kept *store.Row[row]) (*state, error) {
	r := &kept.Value
	s := &state{revision: kept.Revision, seen: r.Seen, next: r.Next}
	for i, c := range r.Cells {
		vector := make([]float32, len(c.Vector)/4)
		n, _ := binary.Decode(c.Vector, binary.LittleEndian, vector)
		length := lengthOf(vector)
		if n != len(c.Vector) || n != 4*r.Numbers || !(math.Abs(length-1) < 5e-4) {
			return nil, fmt.Errorf("cell %d has a vector of %d bytes and length %v: %w", i, n, length,
				heed.ErrDamaged)
		}
		s.cells = append(s.cells, cell{c.ID, c.Mass, vector})
	}
	s.name(r.Name, r.Numbers)
	return s, nil
}
