package partition

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/heedhq/heed/store"
)

// A state is a version of the cells. It is immutable. The zero state has no cells.
type state struct {
	// version rises by one with each change of the cells.
	version uint64
	origin  string // names the first version, from which all others come
	seen    uint64 // how many vectors they were made of
	next    uint64 // the id of the next new cell
	// items are the names of the cells, made once, because every text is given one.
	cells []cell
	items []string // of the cells
}

// The file format, and the bounds of what is read.
const (
	format = 1
	// maxCells bounds the work of finding the nearest cell, which looks at each.
	maxCells   = 10_000
	maxNumbers = 65_536 // of a vector
	// maxCount is where float64, by which other programs read JSON, stops being exact.
	maxCount = 1 << 53
)

// A file is a state as JSON. Other programs may read it: a text's cell is the one whose vector has
// the greatest inner product with the text's vector.
type file struct {
	// The numbers are as in state. A reader refuses a format that it does not know.
	Format  int        `json:"format"`
	Version uint64     `json:"version"`
	Origin  string     `json:"origin"`
	Seen    uint64     `json:"seen"`
	Next    uint64     `json:"next"`
	Cells   []fileCell `json:"cells"`
}

// A fileCell is a cell as it is written.
type fileCell struct {
	ID   uint64  `json:"id"`
	Mass float64 `json:"mass"`
	// Vector has four bytes for each number, in the format of IEEE 754, the least first; in JSON as
	// base64.
	Vector []byte `json:"vector"`
}

// A row is a partition as a store keeps it.
type row struct {
	// Name is the partition's, and At is when it last changed.
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	File file      `json:"partition"`
}

// kind has one record for each partition, with the partition's name as its id. A change replaces
// it.
var kind = store.View[row]{
	Kind:  store.Kind{Name: "strategy.partition"},
	Place: func(r row) (string, time.Time, []string) { return r.Name, r.At, nil },
}

// numbers is the length of the cells' vectors, and 0 without cells.
func (s *state) numbers() int {
	if len(s.cells) == 0 {
		return 0
	}
	return len(s.cells[0].vector)
}

// named returns the state with the names of its items.
func (s state) named(partition string) *state {
	s.items = make([]string, len(s.cells))
	for i := range s.cells {
		s.items[i] = partition + ":" + strconv.FormatUint(s.cells[i].id, 10)
	}
	return &s
}

// file returns the state as it is written.
func (s *state) file() file {
	f := file{Format: format, Version: s.version, Origin: s.origin, Seen: s.seen, Next: s.next,
		Cells: make([]fileCell, len(s.cells))}
	for i := range s.cells {
		c := &s.cells[i]
		text := make([]byte, 0, 4*len(c.vector))
		for _, x := range c.vector {
			text = binary.LittleEndian.AppendUint32(text, math.Float32bits(x))
		}
		f.Cells[i] = fileCell{c.id, c.mass, text}
	}
	return f
}

// state reads a file. The error is without context. Every bound is checked, because the file may
// come from another program and the cells are then used without checks. An id must be below next,
// so that a new cell never gets the id of an old one.
func (f *file) state() (state, error) {
	s := state{version: f.Version, origin: f.Origin, seen: f.Seen, next: f.Next,
		cells: make([]cell, len(f.Cells))}
	switch {
	case f.Format != format:
		return s, fmt.Errorf("format is %d, this version of heed reads %d", f.Format, format)
	case len(f.Cells) == 0 || len(f.Cells) > maxCells:
		return s, fmt.Errorf("has %d cells, must have 1 to %d", len(f.Cells), maxCells)
	case f.Version > maxCount || f.Seen > maxCount || f.Next > maxCount:
		return s, fmt.Errorf("has numbers above 2^53")
	case f.Version == 0 || f.Origin == "":
		return s, fmt.Errorf("has version %d and origin %q, must have both", f.Version, f.Origin)
	}
	ids := make(map[uint64]bool)
	for i, c := range f.Cells {
		if c.ID >= f.Next || ids[c.ID] {
			return s, fmt.Errorf("cell %d: id %d must be below next, and no other cell's", i, c.ID)
		}
		ids[c.ID] = true
		if !(c.Mass >= 0 && c.Mass <= maxMass) {
			return s, fmt.Errorf("cell %d: mass %v must be in [0, %d]", i, c.Mass, maxMass)
		}
		vector, err := readVector(c.Vector)
		if err != nil {
			return s, fmt.Errorf("cell %d: %w", i, err)
		}
		if i > 0 && len(vector) != len(s.cells[0].vector) {
			return s, fmt.Errorf("cell %d: its vector has %d numbers, and that of cell 0 has %d", i,
				len(vector), len(s.cells[0].vector))
		}
		s.cells[i] = cell{c.ID, c.Mass, vector}
	}
	return s, nil
}

// readVector reads a vector of length 1. Numbers that are not finite do not have that length.
func readVector(text []byte) ([]float32, error) {
	if len(text) == 0 || len(text)%4 != 0 || len(text) > 4*maxNumbers {
		return nil, fmt.Errorf("its vector has %d bytes, must have four for each number", len(text))
	}
	vector := make([]float32, 0, len(text)/4)
	var squares float64
	for word := range slices.Chunk(text, 4) {
		x := math.Float32frombits(binary.LittleEndian.Uint32(word))
		vector = append(vector, x)
		squares += float64(x) * float64(x)
	}
	if !(math.Abs(squares-1) < 1e-3) {
		return nil, fmt.Errorf("its vector must have length 1")
	}
	return vector, nil
}

// MarshalJSON returns the cells as JSON. A partition without cells is null.
func (p *Partition) MarshalJSON() ([]byte, error) {
	s := p.state.Load()
	if s.version == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(s.file())
}
