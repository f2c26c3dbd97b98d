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

// same reports whether two queries select the same records in the same order.
func (q *Query) same(o *Query) bool {
	return q.Kind == o.Kind && q.After == o.After && q.Limit == o.Limit && q.Oldest == o.Oldest &&
		q.Since.Equal(o.Since) && q.Until.Equal(o.Until) && slices.Equal(q.Keys, o.Keys)
}

// An index is a list of keys, each once, that finds their places. The zero value is empty.
type index[K comparable] struct {
	keys []K
	at   map[K]int
}

// find returns the place of a key, or -1.
func (x *index[K]) find(key K) int {
	if i, ok := x.at[key]; ok {
		return i
	}
	return -1
}

// add appends a key, unless the index has it, and reports whether it is new.
func (x *index[K]) add(key K) bool {
	if x.find(key) >= 0 {
		return false
	}
	if x.at == nil {
		x.at = make(map[K]int)
	}
	x.at[key] = len(x.keys)
	x.keys = append(x.keys, key)
	return true
}

// remove takes out the key at a place. The places of later keys move up by one.
func (x *index[K]) remove(i int) {
	keys := slices.Delete(x.keys, i, i+1)
	*x = index[K]{}
	for _, key := range keys {
		x.add(key)
	}
}
