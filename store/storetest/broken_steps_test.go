package storetest_test

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// overwrite breaks a store by writing over whatever revision is current.
func overwrite(b *broken, r *record) {
	if r.Revision != store.Once {
		r.Revision = b.current(r.Ref)
	}
}

// inParts breaks a store by committing observations and records one after the other.
func inParts(b *broken) {
	b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
		rest := slices.Clone(batches)
		for i := range rest {
			first := batch{Policies: rest[i].Policies, Observations: rest[i].Observations}
			if _, err := b.reference.Commit(ctx, first); err != nil {
				return nil, err
			}
			rest[i].Observations = nil
		}
		return b.reference.Commit(ctx, rest...)
	}
}

// aCopy has a handle read what the store had when the handle read first.
func aCopy(b *broken) {
	var copied *reference
	b.read = func(
		b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	) error {
		b.file.mu.Lock()
		if copied == nil {
			copied = b.reference.reopen()
			copied.file = &file{state: b.file.clone()}
		}
		b.file.mu.Unlock()
		return copied.Read(ctx, into, cells, refs)
	}
}

const (
	concurrentSteps = "of concurrent steps on a record none is lost"
	wholeSteps      = "a refused commit changes nothing"
	seenSteps       = "what one handle writes, each handle reads and finds"
	disturbedSteps  = "a batch with an id counts once"
	cancelledSteps  = "a context that is done changes nothing"
	sized           = "a commit that is too large is refused"
)

var brokenSteps = []fault{
	{"a stale revision is written over by steps", writing(overwrite), concurrentSteps},
	{
		"another handle writes over a stale revision",
		func(b *broken) { b.another = writing(overwrite) },
		concurrentSteps,
	},
	{"another handle reads a copy", func(b *broken) { b.another = aCopy }, concurrentSteps},
	{"observations and records of a step are two commits", inParts, wholeSteps},
	{
		"what a step relies on is not checked",
		changing(func(b *broken, batch *batch) {
			batch.Expect = nil
			for i := range batch.Records {
				overwrite(b, &batch.Records[i])
			}
		}),
		wholeSteps,
	},
	{
		"a record that a step removes stays to be found",
		func(b *broken) {
			b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
				all := collect(b.reference.Find(ctx, q))
				if len(q.Keys) > 0 {
					all = append(all, record{
						Ref: store.Ref{Kind: q.Kind, ID: "gone0"}, Revision: 1, Keys: q.Keys,
					})
				}
				return yielding(all)
			}
		},
		seenSteps,
	},
	{
		"a Read does not find what a step has written",
		func(b *broken) {
			b.queries = func(_ *broken, all []query) []query {
				for i := range all {
					all[i].Until = evidence.Instant(1).Time()
				}
				return all
			}
		},
		seenSteps,
	},
	{"another handle reads what was", func(b *broken) { b.another = aCopy }, seenSteps},
	{"the id of a step is lost", changing(func(_ *broken, b *batch) { b.ID = "" }), disturbedSteps},
	{
		"a step that is repeated counts its observations again",
		changing(func(b *broken, batch *batch) {
			for i := range batch.Observations {
				if o := &batch.Observations[i]; b.knows(o.ID) {
					o.ID += "again"
				}
			}
			batch.ID = ""
		}),
		disturbedSteps,
	},
	{
		"a conflict of a step is another error",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(ctx, batches...)
				if errors.Is(err, heed.ErrConflict) {
					err = errors.New("it is not as you think")
				}
				return receipts, err
			}
		},
		"a record is written over the revision that was read",
	},
	{
		"a commit goes on when its context ends",
		func(b *broken) {
			b.commit = func(b *broken, _ context.Context, batches []batch) ([]receipt, error) {
				return b.reference.Commit(background, batches...)
			}
		},
		cancelledSteps,
	},
	{
		"a context that ended before leaves the outcome unknown",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(ctx, batches...)
				if err != nil {
					err = errors.Join(heed.ErrOutcomeUnknown, err)
				}
				return receipts, err
			}
		},
		cancelledSteps,
	},
	{
		"a body that is too large is cut",
		writing(func(_ *broken, r *record) {
			if text, err := r.Body.JSON(); err == nil && len(text) > store.MaxBody {
				r.Body = store.Of(map[string]string{"text": "cut"})
			}
		}),
		sized,
	},
	{
		"a commit that is too large is cut",
		changing(func(_ *broken, b *batch) {
			if len(b.Retract) > 100 {
				b.Retract = nil
			}
		}),
		sized,
	},
}
