package storetest_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"

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
	var once sync.Once
	b.read = func(
		b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	) error {
		once.Do(func() { copied = b.copied() })
		return copied.Read(ctx, into, cells, refs)
	}
}

// lockedAlone has each handle check revisions under a lock that only itself knows.
func lockedAlone(b *broken) {
	var own sync.Mutex
	b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
		own.Lock()
		defer own.Unlock()
		if b.stale(batches) {
			return nil, heed.ErrConflict
		}
		for range 20 {
			runtime.Gosched()
		}
		for i := range batches {
			batches[i].Expect = nil
			for k := range batches[i].Records {
				overwrite(b, &batches[i].Records[k])
			}
		}
		return b.reference.Commit(ctx, batches...)
	}
}

// untilItCommits has each handle see the store as it was when the handle committed last.
func untilItCommits(b *broken) {
	seen := b.copied()
	b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
		defer func() { seen = b.copied() }()
		return b.reference.Commit(ctx, batches...)
	}
	b.read = func(
		_ *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	) error {
		return seen.Read(ctx, into, cells, refs)
	}
}

// cellsForGood has a handle that read cells alone never read them again before it commits.
func cellsForGood(b *broken) {
	known := make(map[evidence.Cell]store.Snapshot)
	b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
		clear(known)
		return b.reference.Commit(ctx, batches...)
	}
	b.read = func(
		b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	) error {
		if len(cells) != 1 || len(refs) > 0 {
			return b.reference.Read(ctx, into, cells, refs)
		}
		s, ok := known[cells[0]]
		if !ok {
			if err := b.reference.Read(ctx, &s, cells, nil); err != nil {
				return err
			}
			known[cells[0]] = s
		}
		into.Parts = append(into.Parts, s.Parts...)
		return nil
	}
}

// idsOfItsOwn has each handle know only the ids that were committed through it.
func idsOfItsOwn(b *broken) {
	own := make(map[string]bool)
	changing(func(b *broken, batch *batch) {
		for i := range batch.Observations {
			o := &batch.Observations[i]
			if !own[o.ID] && b.knows(o.ID) {
				o.ID += " again"
			}
			own[o.ID] = true
		}
	})(b)
}

// clockRevisions has each handle draw revisions from its clock.
func clockRevisions(b *broken) {
	afterwards(func(b *broken, batches []batch) {
		b.file.revision = uint64(b.options.Now().UnixMicro() + b.count.Add(1))
		for _, whole := range batches {
			for _, r := range whole.Records {
				if w, ok := b.file.records[r.Ref]; ok {
					w.Revision = b.file.revision
					b.file.records[r.Ref] = w
				}
			}
		}
	})(b)
	commit := b.commit
	b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
		receipts, err := commit(b, ctx, batches)
		for i := range receipts {
			if receipts[i].Revision > 0 {
				receipts[i].Revision = b.file.revision
			}
		}
		return receipts, err
	}
}

// versionsOfItsOwn has each handle count versions by the commits made through it.
func versionsOfItsOwn(b *broken) {
	afterwards(func(b *broken, _ []batch) { b.count.Add(1) })(b)
	showing(func(b *broken, r *record) {
		if r.ID == "" {
			r.Revision = uint64(b.count.Load())
		}
	})(b)
}

const (
	concurrentSteps = "of concurrent steps on a record none is lost"
	wholeSteps      = "a refused commit changes nothing"
	disturbedSteps  = "a batch with an id counts once"
	cancelledSteps  = "a context that is done changes nothing"
	sized           = "a commit that is too large is refused"
	cutSteps        = "a commit that is cut off is whole or not at all"
)

var brokenSteps = []fault{
	{"a stale revision is written over by steps", writing(overwrite), concurrentSteps},
	{
		"another handle writes over a stale revision",
		func(b *broken) { b.another = writing(overwrite) },
		concurrentSteps,
	},
	{"another handle reads a copy", func(b *broken) { b.another = aCopy }, concurrentSteps},
	{"a lock that one handle knows guards revisions", lockedAlone, concurrentSteps},
	{"a handle reads what was when it committed last", untilItCommits, concurrentSteps},
	{"cells alone are never read again", cellsForGood, "cells alone are a second old at most"},
	{"each handle knows ids of its own", idsOfItsOwn, "an id counts once"},
	{
		"each handle counts versions of its own", versionsOfItsOwn,
		"every change raises the version of its kind",
	},
	{
		"revisions are of a handle's clock", clockRevisions,
		"handles whose clocks differ by minutes agree",
	},
	{
		"declarations are in memory",
		func(b *broken) { b.another = func(b *broken) { b.kinds = make(map[string]store.Kind) } },
		"a handle that declared nothing keeps to what others declared",
	},
	{"a commit is two, and it is cut off between", inParts, cutSteps},
	{
		"a commit that took effect is reported as a time-out",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(background, batches...)
				return receipts, errors.Join(err, ctx.Err())
			}
		},
		cutSteps,
	},
	{
		"a commit whose outcome is unknown counts again",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(background, batches...)
				if err == nil && ctx.Err() != nil {
					b.file.mu.Lock()
					clear(b.file.known)
					b.file.mu.Unlock()
					return nil, errors.Join(heed.ErrOutcomeUnknown, ctx.Err())
				}
				return receipts, err
			}
		},
		cutSteps,
	},
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
		"a record is read back as it was written",
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
		"a read has all that is asked for, in order",
	},
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
		"a record is written over the revision that was read, which never comes again",
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
