package natsstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// jobs is the kind of the records of jobs that have begun.
const jobs = "heed.job"

// format is the version of the log. A handle does not go on behind an entry of another version.
const format = 1

// An entry is one place in the log: what one handle does there. An Action is an action, or the JSON
// of one.
type entry[Action any] struct {
	Format  int              `json:"v"`
	Session string           `json:"by"`           // of the handle
	Number  uint64           `json:"n"`            // rises with each entry of the handle
	Actions []Action         `json:"do,omitempty"` // empty: to find where the log ends
	Move    *store.Retention `json:"move,omitempty"`
	// Move ends the log: it goes on in the next generation, under this configuration.
}

// An action is one call: a commit, a declaration or a sweep. All its commits carry their moment, so
// that each handle applies them alike.
type action struct {
	At      evidence.Instant `json:"at"` // by the clock of the handle
	Batches []batch          `json:"batches,omitempty"`
	Declare []store.Kind     `json:"declare,omitempty"`
	Sweep   bool             `json:"sweep,omitempty"`
	Until   evidence.Instant `json:"until,omitempty"` // of a sweep: what it was given
}

// A batch is a [store.Batch] as JSON.
type batch struct {
	store.Batch
	Records []record `json:",omitempty"` // in the place of the batch's
}

type record struct {
	store.Record
	Body json.RawMessage `json:",omitempty"` // empty: the record is removed
}

func encode(batches []store.Batch) ([]batch, error) {
	all := make([]batch, len(batches))
	for i := range batches {
		all[i].Batch = batches[i]
		for _, r := range batches[i].Records {
			text, err := r.Body.JSON()
			if err == nil {
				err = store.CheckBody(r.Ref, text)
			}
			if err != nil {
				return nil, err
			}
			all[i].Records = append(all[i].Records, record{r, text})
		}
	}
	return all, nil
}

func (a *action) batches() []store.Batch {
	all := make([]store.Batch, len(a.Batches))
	for i := range a.Batches {
		all[i] = a.Batches[i].Batch
		for _, r := range a.Batches[i].Records {
			if r.Record.Body = (store.Body{}); r.Body != nil {
				r.Record.Body = store.Raw(r.Body)
			}
			all[i].Records = append(all[i].Records, r.Record)
		}
	}
	return all
}

// A session is the log's state of a handle.
type session struct {
	Number uint64 // of its last entry
	Idle   int    `json:",omitempty"` // the generations since then
}

// mostIdle is for how many generations a silent handle is kept. An entry that is on its way reaches
// the generation for which it was meant, or it is lost.
const mostIdle = 16

// A state is what a handle applied of the log.
type state struct {
	header
	place
	sequence uint64 // of the last message that was applied
	mem      *memstore.Store
	moved    *store.Retention // the log goes on in the next generation
	erase    bool             // the log has bytes that must go
	begun    int              // the size of the state when the generation began
	size     int              // of the entries since then
}

// A header begins a generation, before a dump of the state.
type header struct {
	Format   int              `json:"v"`
	Since    evidence.Instant // when it was written
	Kept     store.Retention  // the part of the configuration that all handles share
	Sessions map[string]session
}

// load returns the state at the beginning of a generation.
func (s *Store) load(at place, text []byte) (*state, error) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	loaded := &state{place: at, begun: len(text)}
	if err := json.Unmarshal(first, &loaded.header); err != nil {
		return nil, damaged(err)
	}
	if loaded.Format != format {
		return nil, newer(loaded.Format)
	}
	mem, err := memstore.New(memstore.Config{Now: s.now, Retention: loaded.Kept})
	if err == nil && len(rest) > 0 {
		err = mem.Load(context.Background(), bytes.NewReader(rest))
	}
	if err != nil {
		return nil, damaged(err)
	}
	loaded.mem = mem
	return loaded, nil
}

// dumped returns the state as the beginning of the next generation.
func (s *Store) dumped(from *state) ([]byte, error) {
	next := header{Format: format, Since: s.moment(), Kept: from.Kept, Sessions: map[string]session{}}
	if from.moved != nil {
		next.Kept = *from.moved
	}
	for id, one := range from.Sessions {
		if one.Idle++; one.Idle <= mostIdle {
			next.Sessions[id] = one
		}
	}
	text, err := json.Marshal(next)
	if err != nil {
		return nil, err
	}
	to := bytes.NewBuffer(append(text, '\n'))
	if from.mem != nil {
		err = from.mem.Dump(context.Background(), dump.WithPlaces{Writer: to})
	}
	return to.Bytes(), err
}

// A result is what became of an action.
type result struct {
	receipts []store.Receipt
	err      error
}

// apply applies an entry, which ends with a message. An entry does not count if a handle sent it
// again, or if it came after the end of the log.
func (s *Store) apply(text []byte, last uint64) error {
	var e entry[action]
	if err := json.Unmarshal(text, &e); err != nil {
		return damaged(err)
	}
	if e.Format != format {
		return newer(e.Format)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	st.sequence = last
	st.size += len(text)
	if st.moved != nil || e.Number <= st.Sessions[e.Session].Number {
		return nil
	}
	st.Sessions[e.Session] = session{Number: e.Number}
	results := make([]result, len(e.Actions))
	for i := range e.Actions {
		results[i] = s.act(&e.Actions[i])
	}
	st.moved = e.Move
	if e.Session == s.session && e.Number == s.number {
		s.results = results
	}
	return nil
}

// act applies an action.
func (s *Store) act(a *action) (r result) {
	s.at.Store(int64(a.At))
	defer s.at.Store(0)
	ctx, mem := context.Background(), s.state.mem
	switch {
	case a.Sweep:
		for _, err := range mem.Find(ctx, store.Query{Kind: jobs, Limit: 1}) {
			s.state.erase = err == nil || s.state.erase // the job began after Resume, and ends here
		}
		r.err = mem.Sweep(ctx, a.Until.Time())
	case a.Declare != nil:
		r.err = mem.Declare(ctx, a.Declare...)
	default:
		batches := a.batches()
		r.receipts, r.err = mem.Commit(ctx, batches...)
		s.state.erase = s.state.erase || r.err == nil && erase(batches)
	}
	return r
}

// erase reports whether a batch ends a job that forgets, so that no name must stay in the log.
func erase(batches []store.Batch) bool {
	return slices.ContainsFunc(batches, func(b store.Batch) bool { return len(b.Forgotten) > 0 })
}

func damaged(err error) error { return fmt.Errorf("the log: %w: %w", heed.ErrDamaged, err) }

func newer(version int) error {
	return fmt.Errorf("the log is of version %d, and this program reads %d: %w", version, format,
		heed.ErrDamaged)
}
