package sqlstore

import (
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// Readers make reads of concurrent callers together, like a queue of commits: a leader reads for
// all that wait, in one statement that begins after they came. So few connections are busy, and
// each has the statement prepared.
//
// If a read for several fails, each reads by itself.
//
// What was read began after the caller came, so a caller sees its own commits, and those that were
// acknowledged to others before.
type readers struct {
	line[*reader]
	db *database
}

// mostRead is how many cells and records a read for several may have.
const mostRead = 1000

// A reader is a call of Read that waits.
type reader struct {
	// ctx ends the wait of this caller alone. cells and refs are what it asks for.
	ctx   context.Context
	cells []evidence.Cell
	refs  []store.Ref
	turn  chan readTurn // gets one value
	// found is what the leader found, which may be more than was asked for. It is set before toTake.
	found found
}

// readTurn is what a reader must do next.
type readTurn int

const (
	toLeadReaders readTurn = iota
	toReadAlone
	toTake // what the leader found
)

// found is what a read found, by hash. It does not change.
type found struct {
	parts   map[string][]evidence.Part
	records map[string]store.Record
}

// read returns the parts of cells and the records that there are. A caller that waits for longer
// than patience goes ahead by itself, so one slow read does not hold up all.
func (q *readers) read(
	ctx context.Context, cells []evidence.Cell, refs []store.Ref,
) (found, error) {
	r := &reader{ctx: ctx, cells: cells, refs: refs}
	r.turn = make(chan readTurn, 1)
	if q.enter(r) {
		return q.lead(r)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case next := <-r.turn:
			switch next {
			case toLeadReaders:
				return q.lead(r)
			case toReadAlone:
				return q.db.find(ctx, cells, refs)
			case toTake:
			}
			return r.found, nil
		case <-late.C:
			if q.goAhead(r) {
				return q.lead(r)
			}
			late.Reset(longPatience)
		case <-ctx.Done():
			q.giveUp(r)
			return found{}, ctx.Err()
		}
	}
}

// giveUp takes out a reader whose context ended. If it was about to lead, another one does.
func (q *readers) giveUp(r *reader) {
	q.mu.Lock()
	waited := q.leave(r)
	q.mu.Unlock()
	if waited {
		return
	}
	select {
	case next := <-r.turn:
		if next == toLeadReaders {
			q.pass(leadsReaders)
		}
	default: // a leader reads for it, and finds no reader
	}
}

// leadsReaders has a reader lead next.
func leadsReaders(r *reader) { r.turn <- toLeadReaders }

// lead reads for a reader and for those that wait. The next leader has its turn when this one is
// done, whatever happens. A leader for whom others wait reads under its own context, so the others
// must not fail with it.
func (q *readers) lead(r *reader) (all found, err error) {
	defer q.pass(leadsReaders)
	members, cells, refs := q.gather(r)
	if len(members) == 0 {
		return q.db.find(r.ctx, r.cells, r.refs)
	}
	next := toReadAlone
	defer func() {
		for _, m := range members {
			m.found = all
			m.turn <- next
		}
	}()
	if all, err = q.db.find(r.ctx, cells, refs); err == nil {
		next = toTake
		return all, nil
	}
	// The read failed for the leader's own context. Those it read for had no part in that, so they
	// read alone, by what next is.
	if r.ctx.Err() != nil {
		return found{}, err
	}
	return q.db.find(r.ctx, r.cells, r.refs)
}

// gather takes from the queue those whom a leader reads for, and returns them with all that is to
// be read, each once. The leader's own wish is always read, whatever its size.
func (q *readers) gather(
	leader *reader,
) (members []*reader, cells []evidence.Cell, refs []store.Ref) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil, nil, nil
	}
	n := len(leader.cells) + len(leader.refs)
	wanted := make(map[store.Ref]bool)
	take := func(r *reader) {
		cells = append(cells, r.cells...) // db.find asks for each once
		for _, ref := range r.refs {
			if !wanted[ref] {
				wanted[ref] = true
				refs = append(refs, ref)
			}
		}
	}
	take(leader)
	q.waiting = slices.DeleteFunc(q.waiting, func(r *reader) bool {
		more := len(r.cells) + len(r.refs)
		// It stays in the queue, and a later leader takes it.
		if n+more > mostRead {
			return false
		}
		n += more
		take(r)
		members = append(members, r)
		return true
	})
	return members, cells, refs
}

// find reads cells and records, each by its hash.
func (db *database) find(
	ctx context.Context, cells []evidence.Cell, refs []store.Ref,
) (found, error) {
	all := found{make(map[string][]evidence.Part, len(cells)),
		make(map[string]store.Record, len(refs))}
	err := db.read(ctx, func(t *tx) error { return t.snapshot(cells, refs, all.parts, all.records) })
	return all, err
}
