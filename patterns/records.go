package patterns

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// kinds are the kinds of a recorder's records and cells. All begin with the recorder's name.
type kinds struct {
	patternCells, criterionCells string

	patterns    store.View[Pattern]
	transitions store.View[Transition]
	entries     store.View[Entry]
	errors      store.View[TaskError]
}

const (
	mostKept    = 100_000 // transitions, entries and errors: the newest
	maxPatterns = 100_000 // None is ever dropped. One more is refused with [evidence.ErrFull]
)

func kindsOf(recorder string) kinds {
	kept := store.Limits{Most: mostKept}
	return kinds{
		patternCells: recorder + ".pattern", criterionCells: recorder + ".criterion",
		patterns: store.View[Pattern]{
			Kind: store.Kind{
				Name: recorder + ".pattern", Versioned: true, Limits: store.Limits{Most: maxPatterns, Refuse: true}, Decided: []string{"by.actor"},
			},
			Place: func(p Pattern) (string, time.Time, []string) {
				return string(p.ID), p.CreatedAt, person(nil, p.By.Actor)
			},
		},
		transitions: store.View[Transition]{
			Kind: store.Kind{Name: recorder + ".transition", Limits: kept, Decided: []string{"actor"}},
			Place: func(t Transition) (string, time.Time, []string) {
				return t.ID, t.At, person([]string{store.Key("pattern", string(t.Pattern))}, t.Actor)
			},
		},
		entries: store.View[Entry]{
			Kind: store.Kind{
				Name: recorder + ".entry", Versioned: true, Limits: kept, Caused: []string{"outcome.source"}, Decided: []string{"review.actor"},
			},
			Place: func(e Entry) (string, time.Time, []string) {
				keys := person([]string{store.Key("task", e.Outcome.Task)}, e.Outcome.Source)
				return e.Outcome.ID, e.RecordedAt, person(keys, e.Review.Actor)
			},
		},
		errors: store.View[TaskError]{
			Kind: store.Kind{Name: recorder + ".error", Limits: kept},
			Place: func(e TaskError) (string, time.Time, []string) {
				return e.ID, e.RecordedAt, []string{store.Key("task", e.Task)}
			},
		},
	}
}

// person adds the key of a person's name, if there is a name.
func person(keys []string, name string) []string {
	if name == "" {
		return keys
	}
	return append(keys, store.PersonKey(name))
}

// A reading is patterns and their evidence, read together. Evidence on a pattern is committed with the pattern's record. So if
// the revision of a pattern is still current when a commit checks it, its evidence is still the one that was read.
type reading struct {
	patterns map[PatternID]store.Row[Pattern]
	order    []PatternID                  // in which they were defined, if all were read
	tallies  map[PatternID]evidence.Tally // by the root of a pattern
	entry    store.Row[Entry]
	family   []PatternID // that were looked up by their ids
}

// read reads patterns, the patterns that they were made of, their anti-patterns and their evidence in one round trip. If an
// outcome is named, it reads the entry of that, too.
func (r *Recorder) read(ctx context.Context, ids []PatternID, outcome string) (*reading, error) {
	family, seen := make([]PatternID, 0, 2*len(ids)), make(map[PatternID]bool, len(ids))
	for _, id := range ids {
		if root := PatternID(strings.TrimPrefix(string(id), antiPrefix)); !seen[root] {
			seen[root], family = true, append(family, root, antiPrefix+root)
		}
	}
	refs, cells := make([]store.Ref, 0, len(family)+1), make([]evidence.Cell, 0, len(family))
	for _, id := range family {
		refs, cells = append(refs, r.kinds.patterns.Ref(string(id))), append(cells, r.patternCell(id))
	}
	if outcome != "" {
		refs = append(refs, r.kinds.entries.Ref(outcome))
	}
	var s store.Snapshot
	if err := r.cfg.Store.Read(ctx, &s, cells, refs); err != nil {
		return nil, err
	}
	found := &reading{patterns: make(map[PatternID]store.Row[Pattern]), tallies: talliesOf[PatternID](s.Parts), family: family}
	for i, id := range family {
		kept, err := r.kinds.patterns.Of(s.Records[i])
		if err != nil {
			return nil, err
		}
		if kept.Revision > 0 {
			found.patterns[id] = kept
		}
	}
	var err error
	if outcome != "" {
		found.entry, err = r.kinds.entries.Of(s.Records[len(family)])
	}
	return found, err
}

// talliesOf returns what the items of cells have earned. An item without evidence is not in the map.
func talliesOf[ID ~string](parts []evidence.Part) map[ID]evidence.Tally {
	tallies := make(map[ID]evidence.Tally, len(parts))
	for i := range parts {
		id := ID(parts[i].Cell.Item)
		t := tallies[id]
		t.Merge(parts[i].Tally)
		tallies[id] = t
	}
	return tallies
}

// readAll reads all patterns, and the evidence of those that a query selects. These are in the order of the reading.
func (r *Recorder) readAll(ctx context.Context, q PatternQuery) (*reading, error) {
	found := &reading{patterns: make(map[PatternID]store.Row[Pattern])}
	var cells []evidence.Cell
	seen := make(map[PatternID]bool) // a pattern and its anti-pattern share a cell
	for kept, err := range r.kinds.patterns.Find(ctx, r.cfg.Store, store.Query{Oldest: true}) {
		if err != nil {
			return nil, err
		}
		p := &kept.Value
		found.patterns[p.ID] = kept
		if !q.selects(p) {
			continue
		}
		found.order = append(found.order, p.ID)
		if root := p.root(); !seen[root] {
			seen[root], cells = true, append(cells, r.patternCell(root))
		}
	}
	var s store.Snapshot
	if err := r.cfg.Store.Read(ctx, &s, cells, nil); err != nil {
		return nil, err
	}
	found.tallies = talliesOf[PatternID](s.Parts)
	return found, nil
}

// A HistoryQuery selects entries of a recorder's history. The zero query selects all that it still keeps.
type HistoryQuery struct {
	ID string // the one with this id. The other fields then do not matter
	// About is the pattern of transitions, or the task of outcomes and errors. "": all.
	About string
	Since time.Time // at this moment or later; zero: no limit
	Until time.Time // before this moment; zero: no limit
	Limit int       // at most this number, the latest. 0: all, but at most 1,000 errors
}

// Transitions yields what became of patterns, the last first. Since and Until are about when it happened. The loop may call
// the recorder and may end early. After an error it ends.
func (r *Recorder) Transitions(ctx context.Context, q HistoryQuery) iter.Seq2[Transition, error] {
	return history(ctx, r, "transitions", "pattern", &r.kinds.transitions, q)
}

// Entries yields outcomes with their scores, and reviews of tasks, the last recorded first. Since and Until are about when they
// were recorded. The loop may call the recorder and may end early. After an error it ends.
func (r *Recorder) Entries(ctx context.Context, q HistoryQuery) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range history(ctx, r, "entries", "task", &r.kinds.entries, q) {
			if !yield(e.clone(), err) {
				return
			}
		}
	}
}

// history yields values of a kind, the newest first. Nobody may change what they refer to.
func history[T any](ctx context.Context, r *Recorder, action, about string, kind *store.View[T], q HistoryQuery) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if q.ID != "" {
			kept, err := kind.Get(ctx, r.cfg.Store, q.ID)
			if !errors.Is(err, heed.ErrNotFound) {
				yield(kept.Value, failed(action, err))
			}
			return
		}
		query := store.Query{Since: q.Since, Until: q.Until, Limit: q.Limit}
		if q.About != "" {
			query.Keys = []string{store.Key(about, q.About)}
		}
		for kept, err := range kind.Find(ctx, r.cfg.Store, query) {
			if !yield(kept.Value, failed(action, err)) || err != nil {
				return
			}
		}
	}
}

// Damaged returns the records of the recorder that hold something that this package has not written.
func (r *Recorder) Damaged(ctx context.Context) ([]store.Ref, error) {
	refs, err := records.Damaged(ctx, r.cfg.Store, &r.kinds.patterns, &r.kinds.transitions, &r.kinds.entries, &r.kinds.errors)
	return refs, failed("damaged", err)
}

// failed says what an error happened to.
func failed(action string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("patterns: %s: %w", action, err)
}

func collect[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
