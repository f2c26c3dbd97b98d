package fair

import (
	"hash/fnv"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/heedhq/heed/evidence"
)

// MostParts is how many parts a cell may have before new sources share places: see [Apart].
const MostParts = 4096

// places is how many places there are.
const places = 1024

// Apart returns the source under which a cell with these parts keeps the evidence of a source: its
// name, or, if the cell has [MostParts] and none of this source, one of 1,024 places, by a hash of
// the name. So reading a cell costs a bounded time, for any number of people.
//
// A place is one person. So f(k) holds for k people who share places with others, who count for as
// little as they do. Such an observation does not name its source: it can be taken back by its ID,
// but not expunged.
func Apart(t evidence.Trust, parts []evidence.Part, source string) string {
	return apart(t, len(parts), source, func() bool {
		return slices.ContainsFunc(parts, func(p evidence.Part) bool { return p.Source == source })
	})
}

func apart(t evidence.Trust, parts int, source string, known func() bool) string {
	if parts < MostParts || source == "" || slices.Contains(t.Instruments, source) || known() {
		return source
	}
	return Place(source)
}

// Sources are who has parts of a cell, by hashes of their names, which take less memory. They must
// not be used concurrently.
type Sources struct {
	seed  maphash.Seed
	names map[uint64]bool
	parts int
}

// SourcesOf returns who has these parts of a cell.
func SourcesOf(parts []evidence.Part) *Sources {
	s := &Sources{maphash.MakeSeed(), make(map[uint64]bool, len(parts)), len(parts)}
	for i := range parts {
		s.names[maphash.String(s.seed, parts[i].Source)] = true
	}
	return s
}

// Apart does what [Apart] does for a cell with these sources.
func (s *Sources) Apart(t evidence.Trust, source string) string {
	return apart(t, s.parts, source, func() bool { return s.names[maphash.String(s.seed, source)] })
}

// Add adds a source, with a part if it had none, and reports whether it had none.
func (s *Sources) Add(source string) (isNew bool) {
	name := maphash.String(s.seed, source)
	if isNew = !s.names[name]; isNew {
		s.names[name] = true
		s.parts++
	}
	return isNew
}

// Place returns the place of a source that is not kept apart: see [Apart].
func Place(source string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(source)) // it returns no error
	return "heed:others/" + strconv.Itoa(int(h.Sum32()%places))
}
