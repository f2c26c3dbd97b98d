package fair

import (
	"hash/fnv"
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
	if len(parts) < MostParts || source == "" || slices.Contains(t.Instruments, source) ||
		slices.ContainsFunc(parts, func(p evidence.Part) bool { return p.Source == source }) {
		return source
	}
	return Place(source)
}

// Place returns the place of a source that is not kept apart: see [Apart].
func Place(source string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(source)) // it returns no error
	return "heed:others/" + strconv.Itoa(int(h.Sum32()%places))
}
