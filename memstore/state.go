package memstore

import (
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
)

// A state is all that a store holds. Load makes another one and puts it in the place of the first,
// so that a load that fails leaves the store as it was.
//
// It has no lock: a caller that has the store's lock for writing may change it.
type state struct {
	cfg Config
	// spaces has the cells of each item in the order of their names, so that List reads
	// one scope without the others.
	spaces map[space]map[string][]*cell
	// known has the ids of observations and batches that count no more, with where they counted.
	known map[id]*known
	// kinds has the kinds by name. A kind of a tenant, such as "note@acme", is one of them.
	kinds map[string]*kind
	// revision is the one of the last commit that wrote records. It only rises, so that no revision
	// of a record ever comes again, even if the record was removed in between.
	revision uint64
	// seq numbers records by their first writing, which orders records of one moment.
	seq int64
}

// newState returns a state that holds nothing.
func newState(cfg Config) *state {
	return &state{
		cfg: cfg, spaces: make(map[space]map[string][]*cell),
		known: make(map[id]*known), kinds: make(map[string]*kind),
	}
}

// An id is the hash of the id of an observation or a batch. Every store has the same, so that a
// dump needs no other.
type id = text.Hash

// hashID returns the name under which an id is known.
func hashID(name string) id { return text.HashOfID(name) }

// known is what a store keeps of an id that it saw: enough to refuse it a second time, and to find
// its observations when it is retracted.
type known struct {
	recorded evidence.Instant // when the store got it, which starts its time
	// cells are those in whose history its observations are, or were. An id may be of several cells.
	cells []*cell
	// retracted notes that its observations were taken back. To take them back again has no effect.
	retracted bool
	// untraced notes that no history was kept when it came, so it can't be taken back.
	untraced bool
}

// note makes an id known, and returns what is known of it. A batch with an ID is known in the same
// way as an observation, because the ids of both count once.
func (s *state) note(h id, recorded evidence.Instant) *known {
	k := s.known[h]
	if k == nil {
		k = &known{recorded: recorded, untraced: s.cfg.NoHistory}
		s.known[h] = k
	}
	return k
}

// expiredIDs returns the ids that are past their time. It looks at all of them.
func (s *state) expiredIDs(now evidence.Instant) (due []id) {
	oldest := before(now, s.cfg.IDsFor)
	for h, k := range s.known {
		if k.recorded < oldest {
			due = append(due, h)
		}
	}
	return due
}

// forgetID drops an id, unless it came again since. Its observations have left the history by then,
// or leave it now, because what is in a history must be known.
func (s *state) forgetID(h id, now evidence.Instant) {
	k := s.known[h]
	if k == nil || k.recorded >= before(now, s.cfg.IDsFor) {
		return
	}
	for _, c := range k.cells {
		s.prune(c, now)
		delete(c.lost, h)
	}
	delete(s.known, h)
}
