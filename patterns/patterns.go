package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// kinds are the kinds of a recorder's records, and of its cells. All begin with the recorder's name.
type kinds struct {
	patternCells, criterionCells string

	patterns    records.Kind[Pattern]
	transitions records.Kind[Transition]
	entries     records.Kind[Entry]
}

// mostKept is how many transitions, entries and errors are kept: the newest.
const mostKept = 100_000

// maxPatterns is how many patterns there may be. None is ever dropped: a new one is then refused with [evidence.ErrFull].
const maxPatterns = 100_000

func kindsOf(recorder string) kinds {
	return kinds{
		patternCells: recorder + ".pattern", criterionCells: recorder + ".criterion",
		patterns: records.Kind[Pattern]{
			Kind: store.Kind{
				Name: recorder + ".pattern", Limits: store.Limits{Most: maxPatterns, Refuse: true}, Decided: []string{"override.decision.actor"},
			},
			Place: func(p Pattern) (string, time.Time, []string) {
				var keys []string
				if p.Override != nil {
					keys = person(keys, p.Override.Decision.Actor)
				}
				return string(p.ID), p.CreatedAt, keys
			},
		},
		transitions: records.Kind[Transition]{
			Kind: store.Kind{Name: recorder + ".transition", Limits: store.Limits{Most: mostKept}, Decided: []string{"actor"}},
			Place: func(t Transition) (string, time.Time, []string) {
				return t.ID, t.At, person([]string{store.Key("pattern", string(t.Pattern))}, t.Actor)
			},
		},
		entries: records.Kind[Entry]{
			Kind: store.Kind{
				Name: recorder + ".entry", Limits: store.Limits{Most: mostKept},
				Caused: []string{"outcome.source"}, Decided: []string{"review.actor"},
			},
			Place: func(e Entry) (string, time.Time, []string) {
				keys := person([]string{store.Key("task", e.Outcome.Task)}, e.Outcome.Source)
				if e.Review != nil {
					keys = person(keys, e.Review.Actor)
				}
				return e.ID(), e.RecordedAt, keys
			},
		},
	}
}

// person adds the key of a person's name, where there is a name.
func person(keys []string, name string) []string {
	if name == "" {
		return keys
	}
	return append(keys, store.PersonKey(name))
}

// A reading is patterns and their evidence, as they were read together. A pattern's revision that is still current when a
// commit checks it tells that the evidence is still the one that was read, as evidence on a pattern is committed with the
// pattern's record.
type reading struct {
	patterns map[PatternID]records.Kept[Pattern]
	order    []PatternID                  // in which they were defined, where all were read
	tallies  map[PatternID]evidence.Tally // by the root of a pattern
	entry    records.Kept[Entry]
}

// read reads patterns, the patterns that they were made of, their anti-patterns and their evidence, in one round trip. Where an
// outcome is named, its entry is read, too.
func (r *Recorder) read(ctx context.Context, ids []PatternID, outcome string) (*reading, error) {
	var family []PatternID
	add := func(id PatternID) {
		if id != "" && !slices.Contains(family, id) {
			family = append(family, id)
		}
	}
	for _, id := range ids {
		add(id)
		if kindOf(id) == Anti {
			add(id[len(AntiPrefix):])
		} else {
			add(AntiPrefix + id)
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
	found := &reading{patterns: make(map[PatternID]records.Kept[Pattern]), tallies: talliesOf[PatternID](s.Parts)}
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

// talliesOf returns what the items of cells have earned. One without evidence is not in the map.
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

// root returns the id under which the evidence of a pattern is.
func (p *Pattern) root() PatternID {
	if p.Kind == Anti && AntiPrefix+p.Twin == p.ID {
		return p.Twin
	}
	return p.ID
}

// A PatternQuery selects patterns: those that are all that it says. The zero query selects every pattern.
type PatternQuery struct {
	Kind    Kind
	State   State  // as it is now
	Tag     string // one of the pattern's tags, exactly
	Content string // is part of its content, whatever the case of the letters
}

// selects reports whether the query selects the pattern. It leaves the state out.
func (q PatternQuery) selects(p *Pattern) bool {
	return (q.Kind == "" || q.Kind == p.Kind) && (q.Tag == "" || p.hasTag(q.Tag)) && (q.Content == "" || containsFold(p.Content, q.Content))
}

// readAll reads the patterns that a query selects, and their evidence.
func (r *Recorder) readAll(ctx context.Context, q PatternQuery) (*reading, error) {
	found := &reading{patterns: make(map[PatternID]records.Kept[Pattern])}
	var cells []evidence.Cell
	seen := make(map[PatternID]bool) // a pattern and its anti-pattern share a cell
	for kept, err := range r.kinds.patterns.Find(ctx, r.cfg.Store, store.Query{Oldest: true}) {
		if err != nil {
			return nil, err
		}
		p := &kept.Value
		if !q.selects(p) {
			continue
		}
		found.patterns[p.ID], found.order = kept, append(found.order, p.ID)
		if root := p.root(); !seen[root] {
			seen[root], cells = true, append(cells, r.patternCell(root))
		}
	}
	if len(cells) == 0 {
		return found, nil
	}
	var s store.Snapshot
	if err := r.cfg.Store.Read(ctx, &s, cells, nil); err != nil {
		return nil, err
	}
	found.tallies = talliesOf[PatternID](s.Parts)
	return found, nil
}

// A TransitionQuery selects transitions. The zero query selects every transition.
type TransitionQuery struct {
	Pattern PatternID // what became of this pattern; "": of all patterns
	Since   time.Time // at this moment or later; zero: no limit
	Until   time.Time // before this moment; zero: no limit
	Limit   int       // at most this number, the last; 0: all
}

// Transitions yields what became of patterns, as far as it is still kept, the last first. The loop may call the recorder
// and may end early. After an error it ends.
func (r *Recorder) Transitions(ctx context.Context, q TransitionQuery) iter.Seq2[Transition, error] {
	query := store.Query{Since: q.Since, Until: q.Until, Limit: q.Limit}
	if q.Pattern != "" {
		query.Keys = []string{store.Key("pattern", string(q.Pattern))}
	}
	return values("transitions", r.kinds.transitions.Find(ctx, r.cfg.Store, query), func(t Transition) Transition { return t })
}

// An EntryQuery selects entries. The zero query selects every entry.
type EntryQuery struct {
	Task  string
	Limit int // at most this number, the last recorded; 0: all
}

// Entries yields the outcomes that are still kept, with their scores, and the reviews of tasks, the last recorded first. The
// loop may call the recorder and may end early. After an error it ends.
func (r *Recorder) Entries(ctx context.Context, q EntryQuery) iter.Seq2[Entry, error] {
	query := store.Query{Limit: q.Limit}
	if q.Task != "" {
		query.Keys = []string{store.Key("task", q.Task)}
	}
	return values("entries", r.kinds.entries.Find(ctx, r.cfg.Store, query), Entry.clone)
}

// Entry returns what is kept of the outcome of this id, or [heed.ErrNotFound].
func (r *Recorder) Entry(ctx context.Context, id string) (Entry, error) {
	if err := checkIDs(field{"ID", id}); err != nil {
		return Entry{}, fmt.Errorf("patterns: entry: %w", err)
	}
	kept, err := r.kinds.entries.Get(ctx, r.cfg.Store, id)
	if err != nil {
		return Entry{}, fmt.Errorf("patterns: entry: %w", err)
	}
	return kept.Value.clone(), nil
}

// values yields copies of values that a store has.
func values[T any](action string, all iter.Seq2[records.Kept[T], error], copied func(T) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for kept, err := range all {
			if err != nil {
				var none T
				yield(none, fmt.Errorf("patterns: %s: %w", action, err))
				return
			}
			if !yield(copied(kept.Value), nil) {
				return
			}
		}
	}
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

// Define stores a pattern that is not known yet, and returns it; of one that is known it returns what is stored. The ID,
// the Kind ("" means [Positive]), Content, Tags and, of an anti-pattern, the Reason are the caller's; all else follows from
// evidence. An id that begins with [AntiPrefix] is an anti-pattern's.
//
// There may be 100,000 patterns, unless the store is configured otherwise. A new one is then refused with [evidence.ErrFull].
func (r *Recorder) Define(ctx context.Context, p Pattern) (Pattern, error) {
	all, err := r.define(ctx, []Pattern{p})
	if err != nil {
		return Pattern{}, fmt.Errorf("patterns: define: %w", err)
	}
	return all[0], nil
}

// define stores those of the patterns that are not known yet, in one commit.
func (r *Recorder) define(ctx context.Context, wanted []Pattern) ([]Pattern, error) {
	ids := make([]PatternID, len(wanted))
	for i := range wanted {
		fresh, err := r.fresh(wanted[i])
		if err != nil {
			return nil, err
		}
		wanted[i], ids[i] = fresh, fresh.ID
	}
	all := make([]Pattern, len(wanted))
	err := r.retry(ctx, func() error {
		found, err := r.read(ctx, ids, "")
		if err != nil {
			return err
		}
		d := r.draft(found)
		for i, id := range ids {
			p, known := d.pattern(id)
			if !known {
				p = d.put(wanted[i])
			}
			all[i] = p.clone()
		}
		_, err = d.commit(ctx)
		return err
	})
	return all, err
}

// fresh returns a pattern as it begins.
func (r *Recorder) fresh(p Pattern) (Pattern, error) {
	now := stored(r.cfg.Now())
	p = Pattern{
		ID: p.ID, Kind: cmp.Or(p.Kind, Positive), Content: p.Content, Tags: slices.Clone(p.Tags), Reason: p.Reason,
		State: Candidate, CreatedAt: now, UpdatedAt: now,
	}
	if p.Kind == Anti {
		p.State = Inverted
	}
	return p, firstError(p.validate(), p.checkKind())
}

// retry calls again where somebody else stored a pattern first. Those of this recorder that have to try again do so one after
// the other, so that they are not in each other's way.
func (r *Recorder) retry(ctx context.Context, do func() error) error {
	for n := range maxTries {
		if n == 1 {
			select {
			case r.turn <- struct{}{}:
				defer func() { <-r.turn }()
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := do()
		if race := (*raceError)(nil); err == nil || ctx.Err() != nil || !errors.As(err, &race) {
			return err
		}
	}
	return fmt.Errorf("%w: %d times over", heed.ErrConflict, maxTries)
}

// maxTries is how often others may come first. Each time one of them got on, so that only a store that is broken reaches it.
const maxTries = 10_000
