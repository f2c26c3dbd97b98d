package patterns

import (
	"context"
	"iter"
)

// Store keeps patterns, what became of them, and the outcomes that were recorded. Evidence is not in it: that is in an
// [github.com/heedhq/heed/evidence.Store].
//
// An implementation must be safe for concurrent use by multiple goroutines. Every method honours its context: one that is
// done on entry gives its error and changes nothing. Slices that go in or come out are copied. Times are kept in UTC, to
// the microsecond. A loop over a listing may call the store and may end early; after an error it ends. Package patternstest
// has the suite that says whether an implementation keeps this contract.
type Store interface {
	// Commit applies changes: all of them, or none and an error. A pattern replaces the stored one if its Revision is that
	// of the stored one, or 0 where there is none, and is stored with the next Revision; else nothing changes and the
	// error is [heed.ErrConflict]. Transitions and entries whose id is known are left out. What a [Changes.Validate]
	// refuses is refused with that error.
	Commit(ctx context.Context, c Changes) error

	// Pattern returns a pattern, or [heed.ErrNotFound].
	Pattern(ctx context.Context, id PatternID) (Pattern, error)

	// Patterns returns the patterns that the query selects, in the order in which they were first stored. None that is
	// stored is ever dropped: a store that is full refuses new ones with [github.com/heedhq/heed/evidence.ErrFull].
	Patterns(ctx context.Context, q PatternQuery) iter.Seq2[Pattern, error]

	// Transitions returns what became of a pattern, as far as it is still kept, the last recorded first.
	Transitions(ctx context.Context, id PatternID) iter.Seq2[Transition, error]

	// Entry returns the entry of this id if it is still kept, and else [heed.ErrNotFound].
	Entry(ctx context.Context, id string) (Entry, error)

	// Entries returns the entries that are still kept and that the query selects, the last recorded first.
	Entries(ctx context.Context, q EntryQuery) iter.Seq2[Entry, error]
}

// ErrorStore keeps the errors that tasks ran into, the newest of each task. The rules of [Store] hold for implementations
// and listings.
type ErrorStore interface {
	// Add adds an error; one whose id is known changes nothing. What an [ErrorEntry.Validate] refuses is refused with
	// that error.
	Add(ctx context.Context, e ErrorEntry) error

	// Resolve marks an error as resolved, or returns [heed.ErrNotFound]. One that is resolved stays so.
	Resolve(ctx context.Context, id string) error

	// Errors returns the errors of a task that are still kept, or of all tasks where it is empty, in the order in which
	// they were added.
	Errors(ctx context.Context, task string) iter.Seq2[ErrorEntry, error]

	// Forget drops the errors of a task.
	Forget(ctx context.Context, task string) error
}

// Changes is what stands or falls together. It must not be changed while a store has it; stores take it as immutable.
type Changes struct {
	Patterns    []Pattern    // no id twice
	Transitions []Transition // each counts once, by its id
	Entries     []Entry      // likewise
}

// Validate reports the first fault as a [*heed.InputError]. Stores call it before they do anything else.
func (c *Changes) Validate() error {
	seen := make(map[PatternID]bool, len(c.Patterns))
	for i := range c.Patterns {
		p := &c.Patterns[i]
		if err := p.validate(); err != nil {
			return inside("Patterns", i, err)
		}
		if seen[p.ID] {
			return inside("Patterns", i, inputError("ID", "must not stand twice in one commit"))
		}
		seen[p.ID] = true
	}
	for i := range c.Transitions {
		if err := checkIDs(field{"ID", c.Transitions[i].ID}, field{"Pattern", string(c.Transitions[i].Pattern)}); err != nil {
			return inside("Transitions", i, err)
		}
	}
	for i := range c.Entries {
		if err := checkIDs(field{"ID", c.Entries[i].ID()}, field{"Task", c.Entries[i].Outcome.Task}); err != nil {
			return inside("Entries", i, err)
		}
	}
	return nil
}

// A PatternQuery selects patterns: those that are all that it says. The zero query selects every pattern.
type PatternQuery struct {
	Kind    Kind
	State   State  // as it was when last stored; [Recorder.Standings] has it as it is now
	Tag     string // one of the pattern's tags, exactly
	Content string // is part of its content, whatever the case of the letters
}

// An EntryQuery selects entries. The zero query selects every entry.
type EntryQuery struct {
	Task  string
	Limit int // at most so many, the last recorded; 0: all
}

// Selects reports whether the query selects the pattern.
func (q PatternQuery) Selects(p *Pattern) bool {
	return (q.Kind == "" || q.Kind == p.Kind) && (q.State == "" || q.State == p.State) &&
		(q.Tag == "" || p.hasTag(q.Tag)) && (q.Content == "" || containsFold(p.Content, q.Content))
}
