package patterns

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/valid"
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
	maxPatterns = 100_000 // Patterns are never dropped. One more is refused with [evidence.ErrFull]
)

// kindsOf returns the kinds of a recorder. Patterns refuse one too many, because what was learned
// must not be dropped. Of the others the oldest go. Patterns and entries are versioned, because
// plans keep them in memory. By the key "planned" a plan reads a few patterns, and not the
// candidates, which are many.
func kindsOf(recorder string) kinds {
	kept := store.Limits{Most: mostKept}
	return kinds{
		patternCells: recorder + ".pattern", criterionCells: recorder + ".criterion",
		patterns: store.View[Pattern]{
			Kind: store.Kind{
				Name: recorder + ".pattern", Versioned: true,
				Limits: store.Limits{Most: maxPatterns, Refuse: true}, Decided: []string{"by.actor"},
			},
			Place: func(p Pattern) (string, time.Time, []string) {
				keys := stores.PersonKeys(p.By.Actor)
				if p.State != candidate {
					keys = append(keys, plannedKey)
				}
				return string(p.ID), p.UpdatedAt, keys
			},
		},
		transitions: store.View[Transition]{
			Kind: store.Kind{Name: recorder + ".transition", Limits: kept, Decided: []string{"actor"}},
			Place: func(t Transition) (string, time.Time, []string) {
				key := store.Key("pattern", string(t.Pattern))
				return t.ID, t.At, append(stores.PersonKeys(t.Actor), key)
			},
		},
		entries: store.View[Entry]{
			Kind: store.Kind{
				Name: recorder + ".entry", Versioned: true, Limits: kept,
				Caused: []string{"outcome.source"},
			},
			Place: func(e Entry) (string, time.Time, []string) {
				keys := append(stores.PersonKeys(e.Outcome.Source), store.Key("task", e.Outcome.Task))
				return e.Outcome.ID, e.RecordedAt, keys
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

// plannedKey finds the patterns that a plan may have. Time alone makes no pattern one of them.
const plannedKey = "planned"

// A reading is patterns and their evidence, read together. Evidence on a pattern is committed with
// the pattern's record. So if the revision of a pattern is still current when a commit checks it,
// its evidence is still the evidence that was read. In a step, it has the patterns as the step has
// changed them.
type reading struct {
	patterns map[PatternID]store.Row[Pattern]
	order    []PatternID // in which they were defined, if all were read
	parts    map[PatternID][]evidence.Part
	tallies  map[PatternID]evidence.Tally // what the parts count for
	// that were looked up by their ids, whether they are known or not
	looked map[PatternID]bool
}

// newReading returns a reading without patterns.
func newReading() *reading {
	return &reading{
		patterns: make(map[PatternID]store.Row[Pattern]),
		parts:    make(map[PatternID][]evidence.Part),
		tallies:  make(map[PatternID]evidence.Tally), looked: make(map[PatternID]bool),
	}
}

// wants names the records and the evidence of patterns, each once. An inverted pattern reads as
// two, and both are one record.
func (r *Recorder) wants(ids []PatternID) (w store.Wants) {
	for _, id := range ids {
		root := rootOf(id)
		if ref := r.kinds.patterns.Ref(string(root)); !slices.Contains(w.Refs, ref) {
			w.Refs, w.Cells = append(w.Refs, ref), append(w.Cells, r.patternCell(root))
		}
	}
	return w
}

// look adds patterns with their evidence to a reading. What the step has looked up before is not
// read again, because the step may have changed it since.
func (r *Recorder) look(tx *store.Tx, found *reading, ids []PatternID) error {
	w := r.wants(slices.DeleteFunc(slices.Clone(ids),
		func(id PatternID) bool { return found.looked[rootOf(id)] }))
	var s store.Snapshot
	if err := tx.Read(&s, w.Cells, w.Refs); err != nil {
		return err
	}
	r.earned(found, s.Parts)
	for i, ref := range w.Refs {
		row, err := r.kinds.patterns.Of(s.Records[i])
		if err != nil {
			return err
		}
		found.looked[PatternID(ref.ID)] = true
		if row.Revision > 0 {
			found.patterns[PatternID(ref.ID)] = row
		}
	}
	return nil
}

// warned returns the pattern that the anti-pattern of an id warns of now. It advances a copy,
// because evidence may have been forgotten since the pattern was stored.
func (r *Recorder) warned(found *reading, id PatternID, now time.Time) (p Pattern, ok bool) {
	row, known := found.patterns[rootOf(id)]
	if !known || !isAnti(id) {
		return Pattern{}, false
	}
	p = row.Value.clone()
	t := found.tallies[p.ID]
	r.advance(&p, &t, now)
	return p, p.Twin == id
}

// read reads patterns with their evidence in one round trip.
func (r *Recorder) read(ctx context.Context, ids []PatternID) (*reading, error) {
	found := newReading()
	return found, r.look(store.Reading(ctx, r.cfg.Store), found, ids)
}

// earned adds what patterns have earned to a reading. A pattern without evidence is not added.
func (r *Recorder) earned(found *reading, parts []evidence.Part) {
	for of := range cellsOf(parts) {
		id := PatternID(of[0].Cell.Item)
		found.parts[id], found.tallies[id] = of, r.cfg.sum(of)
	}
}

// cellsOf yields the parts of each cell, which stand one after the other.
func cellsOf(parts []evidence.Part) iter.Seq[[]evidence.Part] {
	return func(yield func([]evidence.Part) bool) {
		for from, to := 0, 0; from < len(parts); from = to {
			for ; to < len(parts) && parts[to].Cell == parts[from].Cell; to++ {
			}
			if !yield(parts[from:to:to]) {
				return
			}
		}
	}
}

// trust returns the limits on people. Instruments are believed as they are.
func (c *Config) trust() evidence.Trust { return evidence.Trust{Instruments: c.Instruments} }

// sum adds up the parts of a cell, with each person's evidence limited: see [evidence.Trust]. The
// limit is on masses and, because counts do not fade, on counts as well. Both are as of the last
// observation, so that time alone changes no share.
func (c *Config) sum(parts []evidence.Part) (all evidence.Tally) {
	if len(parts) == 1 {
		return parts[0].Tally
	}
	var last evidence.Instant
	counts := make([]evidence.Part, len(parts))
	for i := range parts {
		t := &parts[i].Tally
		last = max(last, t.Last())
		counts[i] = evidence.Part{Source: parts[i].Source, Tally: evidence.Tally{Mass: float64(t.N())}}
	}
	trust := c.trust()
	mass := fair.Kept(trust, [][]evidence.Part{parts}, last)
	count := fair.Kept(trust, [][]evidence.Part{counts}, last)
	for i := range parts {
		t, source := parts[i].Tally, parts[i].Source
		if count != nil && !c.literal {
			by := count(0, source)
			for _, n := range []*evidence.Count{&t.Positive, &t.Negative, &t.Neutral} {
				n.N = uint64(math.Round(by * float64(n.N)))
			}
		}
		if mass != nil && !c.literal {
			by := mass(0, source)
			t.Mass, t.Squares, t.Reward = by*t.Mass, by*t.Squares, by*t.Reward
		}
		all.Merge(t)
	}
	return all
}

// readAll reads the patterns that have these keys, and the evidence of those that a query selects.
// These are in the order of the reading. A limit of the query keeps those that changed last. It
// takes two reads, because the records show which cells are needed. A record under the id of an
// anti-pattern is skipped, because look does not find it either.
func (r *Recorder) readAll(tx *store.Tx, q PatternQuery, keys ...string) (*reading, error) {
	var s store.Snapshot
	err := tx.Read(&s, nil, nil, store.Query{Kind: r.kinds.patterns.Name, Keys: keys, Limit: q.Limit})
	found := newReading()
	if err != nil {
		return found, err
	}
	var cells []evidence.Cell
	var rows []Pattern
	var damaged []error
	for _, record := range s.Found[0] {
		row, err := r.kinds.patterns.Of(record)
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		if p := row.Value; !isAnti(p.ID) && (p.Twin != "" || q.selects(&p)) {
			found.patterns[p.ID] = row
			rows, cells = append(rows, p), append(cells, r.patternCell(p.ID))
		}
	}
	slices.Reverse(rows)
	slices.SortStableFunc(rows, func(a, b Pattern) int { return a.CreatedAt.Compare(b.CreatedAt) })
	if err := tx.Read(&s, cells, nil); err != nil {
		return newReading(), err
	}
	r.earned(found, s.Parts)
	for _, p := range rows {
		if q.selects(&p) {
			found.order = append(found.order, p.ID)
		}
		if of, warned := r.warned(found, antiPrefix+p.ID, r.cfg.Now()); warned {
			tally := found.tallies[p.ID]
			if anti := of.warning(countsOf(&tally)); q.selects(&anti) {
				found.order = append(found.order, anti.ID)
			}
		}
	}
	return found, errors.Join(damaged...)
}

// A HistoryQuery selects entries of a recorder's history. The zero query selects all that it still
// keeps.
type HistoryQuery struct {
	ID string // the one with this id. The other fields then do not matter
	// About is the pattern of transitions, or the task of outcomes and errors. "": all.
	About string
	Since time.Time // at this moment or later; zero: no limit
	Until time.Time // before this moment; zero: no limit
	Limit int       // at most this number, the latest. 0: all, but at most 1,000 errors
}

// Transitions yields what became of patterns, the last first. Since and Until are about when it
// happened. The loop may call the recorder and may end early. After an error it ends.
func (r *Recorder) Transitions(ctx context.Context, q HistoryQuery) iter.Seq2[Transition, error] {
	return history(ctx, r, "transitions", "pattern", &r.kinds.transitions, q)
}

// Entries yields outcomes with their scores, the last recorded first. Since and Until are about
// when they were recorded. The loop may call the recorder and may end early. After an error it
// ends.
func (r *Recorder) Entries(ctx context.Context, q HistoryQuery) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range history(ctx, r, "entries", "task", &r.kinds.entries, q) {
			if !yield(e.clone(), err) {
				return
			}
		}
	}
}

// stored returns the query for a kind. about is the name of the key for About.
func (q HistoryQuery) stored(kind, about string) store.Query {
	query := store.Query{Kind: kind, Since: q.Since, Until: q.Until, Limit: q.Limit}
	if q.About != "" {
		query.Keys = []string{store.Key(about, q.About)}
	}
	return query
}

// wants names what a query reads of a kind.
func (q HistoryQuery) wants(kind, about string) store.Wants {
	if q.ID != "" {
		return store.Wants{Refs: []store.Ref{{Kind: kind, ID: q.ID}}}
	}
	return store.Wants{Queries: []store.Query{q.stored(kind, about)}}
}

// historyIn returns the values that a query selects, the newest first. The caller must not change
// what they refer to. It is for bounded queries, which a step reads at once; history is for lists
// of any length.
func historyIn[T any](
	tx *store.Tx, about string, kind *store.View[T], q HistoryQuery,
) (all []T, err error) {
	var s store.Snapshot
	w := q.wants(kind.Name, about)
	if err := tx.Read(&s, nil, w.Refs, w.Queries...); err != nil {
		return nil, err
	}
	for _, record := range slices.Concat(append(s.Found, s.Records)...) {
		row, err := kind.Of(record)
		if err != nil {
			return nil, err
		}
		if row.Revision > 0 {
			all = append(all, row.Value)
		}
	}
	return all, nil
}

// history yields values of a kind, the newest first. The caller must not change what they refer to.
func history[T any](ctx context.Context, r *Recorder, action, about string, kind *store.View[T],
	q HistoryQuery) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if q.ID != "" {
			row, err := kind.Get(ctx, r.cfg.Store, q.ID)
			if !errors.Is(err, heed.ErrNotFound) {
				yield(row.Value, failed(action, err))
			}
			return
		}
		for row, err := range kind.Find(ctx, r.cfg.Store, q.stored(kind.Name, about)) {
			if !yield(row.Value, failed(action, err)) || err != nil {
				return
			}
		}
	}
}

// failed adds to an error what it happened to.
func failed(action string, err error) error {
	return valid.Wrap("patterns: "+action, err)
}
