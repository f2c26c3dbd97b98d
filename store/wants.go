package store

import (
	"slices"

	"github.com/heedhq/heed/evidence"
)

// Wants lists what a step is going to read, so that it can be read in one round trip. The zero
// value is empty. A name may be in it several times. It must not be used concurrently.
type Wants struct {
	Cells   []evidence.Cell
	Refs    []Ref
	Queries []Query
}

// Add adds what others want.
func (w *Wants) Add(others ...Wants) {
	for _, o := range others {
		w.Cells = append(slices.Clip(w.Cells), o.Cells...)
		w.Refs = append(slices.Clip(w.Refs), o.Refs...)
		w.Queries = append(slices.Clip(w.Queries), o.Queries...)
	}
}

func (w *Wants) empty() bool { return len(w.Cells)+len(w.Refs)+len(w.Queries) == 0 }

// same reports whether two queries select the same records in the same order.
func (q *Query) same(o *Query) bool {
	return q.Kind == o.Kind && q.After == o.After && q.Limit == o.Limit && q.Oldest == o.Oldest &&
		q.Since.Equal(o.Since) && q.Until.Equal(o.Until) && slices.Equal(q.Keys, o.Keys)
}

// An index finds the places of keys in a list: of few keys by looking at each, of more by a map.
// The zero value is empty.
type index[K comparable] struct {
	keys []K
	at   map[K]int // nil while the keys are few
}

// manyKeys is the number of keys from which an index has a map.
const manyKeys = 12

// find returns the place of a key, or -1.
func (x *index[K]) find(key K) int {
	if x.at == nil {
		return slices.Index(x.keys, key)
	}
	if i, ok := x.at[key]; ok {
		return i
	}
	return -1
}

// grow makes room for n more keys.
func (x *index[K]) grow(n int) { x.keys = slices.Grow(x.keys, n) }

// add appends a key, unless the index has it.
func (x *index[K]) add(key K) {
	if x.find(key) >= 0 {
		return
	}
	x.keys = append(x.keys, key)
	switch {
	case x.at != nil:
		x.at[key] = len(x.keys) - 1
	case len(x.keys) == manyKeys:
		x.at = make(map[K]int, 2*manyKeys)
		for i, key := range x.keys {
			x.at[key] = i
		}
	}
}

// remove takes out the key at a place. The places of later keys move up by one.
func (x *index[K]) remove(i int) {
	keys := slices.Delete(x.keys, i, i+1)
	*x = index[K]{}
	for _, key := range keys {
		x.add(key)
	}
}
