package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

type (
	batch       = store.Batch
	receipt     = store.Receipt
	record      = store.Record
	query       = store.Query
	cellQuery   = store.CellQuery
	observation = evidence.Observation
)

// broken is the reference with some of its methods replaced. A nil function leaves the method as it
// is.
type broken struct {
	*reference
	count   atomic.Int64
	commit  func(*broken, context.Context, []batch) ([]receipt, error)
	declare func(*broken, context.Context, []store.Kind) error
	read    func(*broken, context.Context, *store.Snapshot, []evidence.Cell, []store.Ref) error
	queries func(*broken, []query) []query // of a Read
	find    func(*broken, context.Context, query) iter.Seq2[record, error]
	list    func(b *broken, ctx context.Context, q cellQuery) iter.Seq2[evidence.Part, error]
	scopes  func(b *broken, kind string) iter.Seq2[string, error]
	history func(*broken, evidence.Cell) iter.Seq2[observation, error]
	sweep   func(*broken, context.Context, time.Time) error
	reopen  func(*broken) *broken
	another func(*broken) // breaks only the second handle
}

func (b *broken) Commit(ctx context.Context, batches ...batch) ([]receipt, error) {
	if b.commit == nil {
		return b.reference.Commit(ctx, batches...)
	}
	batches = slices.Clone(batches)
	for i := range batches {
		batches[i].Observations = slices.Clone(batches[i].Observations)
		batches[i].Records = slices.Clone(batches[i].Records)
	}
	return b.commit(b, ctx, batches)
}

func (b *broken) Declare(ctx context.Context, kinds ...store.Kind) error {
	if b.declare == nil {
		return b.reference.Declare(ctx, kinds...)
	}
	return b.declare(b, ctx, slices.Clone(kinds))
}

func (b *broken) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...query) error {
	read := b.read
	if read == nil {
		read = func(b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
			refs []store.Ref) error {
			return b.reference.Read(ctx, into, cells, refs)
		}
	}
	if err := read(b, ctx, into, cells, refs); err != nil || len(finds) == 0 {
		return err
	}
	if b.queries != nil {
		finds = b.queries(b, slices.Clone(finds))
	}
	return b.reference.Read(ctx, into, nil, nil, finds...)
}

func (b *broken) Find(ctx context.Context, q query) iter.Seq2[record, error] {
	if b.find == nil {
		return b.reference.Find(ctx, q)
	}
	return b.find(b, ctx, q)
}

func (b *broken) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	if b.list == nil {
		return b.reference.List(ctx, q)
	}
	return b.list(b, ctx, q)
}

func (b *broken) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	if b.scopes == nil {
		return b.reference.Scopes(ctx, kind)
	}
	return b.scopes(b, kind)
}

func (b *broken) History(ctx context.Context, c evidence.Cell) iter.Seq2[observation, error] {
	if b.history == nil {
		return b.reference.History(ctx, c)
	}
	return b.history(b, c)
}

func (b *broken) Sweep(ctx context.Context, now time.Time) error {
	if b.sweep == nil {
		return b.reference.Sweep(ctx, now)
	}
	return b.sweep(b, ctx, now)
}

var background = context.Background()

// changing breaks a store by changing each batch on its way in.
func changing(change func(*broken, *batch)) func(*broken) {
	return func(b *broken) {
		b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
			for i := range batches {
				change(b, &batches[i])
			}
			return b.reference.Commit(ctx, batches...)
		}
	}
}

// observing breaks a store by changing each observation on its way in.
func observing(edit func(*broken, *observation)) func(*broken) {
	return changing(func(b *broken, batch *batch) {
		for i := range batch.Observations {
			edit(b, &batch.Observations[i])
		}
	})
}

// writing breaks a store by changing each record on its way in.
func writing(edit func(*broken, *record)) func(*broken) {
	return changing(func(b *broken, batch *batch) {
		for i := range batch.Records {
			edit(b, &batch.Records[i])
		}
	})
}

// showing breaks a store by changing each record on its way out.
func showing(edit func(*broken, *record)) func(*broken) {
	return func(b *broken) {
		b.read = func(b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
			refs []store.Ref) error {
			had := len(into.Records)
			err := b.reference.Read(ctx, into, cells, refs)
			for i := had; i < len(into.Records); i++ {
				edit(b, &into.Records[i])
			}
			return err
		}
		b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
			return each(b.reference.Find(ctx, q), func(r *record) { edit(b, r) })
		}
	}
}

// asking breaks a store by changing each query.
func asking(edit func(*query)) func(*broken) {
	return func(b *broken) {
		b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
			edit(&q)
			return b.reference.Find(ctx, q)
		}
	}
}

// telling breaks a store by changing each receipt.
func telling(edit func(*broken, *receipt, batch)) func(*broken) {
	return func(b *broken) {
		b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
			receipts, err := b.reference.Commit(ctx, batches...)
			for i := range receipts {
				edit(b, &receipts[i], batches[i])
			}
			return receipts, err
		}
	}
}

// afterwards breaks a store by what it does after each commit that succeeds.
func afterwards(do func(*broken, []batch)) func(*broken) {
	return func(b *broken) {
		b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
			receipts, err := b.reference.Commit(ctx, batches...)
			if err == nil {
				b.file.mu.Lock()
				defer b.file.mu.Unlock()
				do(b, batches)
			}
			return receipts, err
		}
	}
}

// unraisedEmpty leaves the versions of kinds without records as they were, if a commit takes
// evidence away.
var unraisedEmpty = versions(func(b *broken, before map[string]uint64, batches []batch) {
	full := make(map[string]bool)
	for ref := range b.file.records {
		full[ref.Kind] = true
	}
	for kind := range b.file.versions {
		if batches[0].TakesAway() && !full[kind] {
			b.file.versions[kind] = before[kind]
		}
	}
})

// unraised breaks a store by leaving versions as they were at certain commits.
func unraised(at func([]batch) bool) func(*broken) {
	return versions(func(b *broken, before map[string]uint64, batches []batch) {
		if at(batches) {
			b.file.versions = before
		}
	})
}

// versions breaks a store by what it does to the versions after a commit. before are the versions
// that the commit found.
func versions(do func(b *broken, before map[string]uint64, batches []batch)) func(*broken) {
	return func(b *broken) {
		b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
			b.file.mu.Lock()
			before := maps.Clone(b.file.versions)
			b.file.mu.Unlock()
			receipts, err := b.reference.Commit(ctx, batches...)
			b.file.mu.Lock()
			defer b.file.mu.Unlock()
			do(b, before, batches)
			return receipts, err
		}
	}
}

func each[T any](all iter.Seq2[T, error], do func(*T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for one, err := range all {
			if err == nil {
				do(&one)
			}
			if !yield(one, err) {
				return
			}
		}
	}
}

func collect[T any](seq iter.Seq2[T, error]) (all []T) {
	for one, err := range seq {
		if err == nil {
			all = append(all, one)
		}
	}
	return all
}

func yielding[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// copied returns the store as it is now, as a handle that no commit reaches.
func (b *broken) copied() *reference {
	b.file.mu.Lock()
	defer b.file.mu.Unlock()
	again := b.reference.reopen()
	again.file = &file{state: b.file.clone()}
	return again
}

// current returns the revision of a record.
func (b *broken) current(ref store.Ref) uint64 {
	var s store.Snapshot
	if b.reference.Read(background, &s, nil, []store.Ref{ref}) != nil {
		return 0
	}
	return s.Records[0].Revision
}

// knows reports whether an id is known.
func (b *broken) knows(id string) bool {
	b.file.mu.Lock()
	defer b.file.mu.Unlock()
	return b.file.known[id]
}

// stored returns a record as the reference has it.
func (b *broken) stored(ref store.Ref) (written, bool) {
	b.file.mu.Lock()
	defer b.file.mu.Unlock()
	w, ok := b.file.records[ref]
	return w, ok
}

// stale reports whether a batch has a revision that is not current.
func (b *broken) stale(batches []batch) bool {
	for _, batch := range batches {
		for _, r := range batch.Records {
			if r.Revision != store.Once && b.current(r.Ref) != r.Revision {
				return true
			}
		}
		for _, e := range batch.Expect {
			if b.current(e.Ref) != e.Revision {
				return true
			}
		}
	}
	return false
}

type fault struct {
	name     string
	spoil    func(*broken)
	caughtBy string
}

// TestSuiteBites runs the suite against stores that each break one rule, and expects it to say so.
func TestSuiteBites(t *testing.T) {
	if raced {
		t.Skip("takes minutes with the race detector, which looks at the suite in other tests")
	}
	for _, test := range slices.Concat(
		brokenEvidence, brokenRecords, brokenQueries, brokenKeeping, brokenSteps,
	) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // waits of the suite and of steps take no time
				require.ErrorContains(t, test.check(), test.caughtBy+": ")
			})
		})
	}
}

// check runs the rule that must catch the fault on a store that has it.
func (test fault) check() error {
	return storetest.CheckRule(storetest.Subject{
		New: func(o storetest.Options) (store.Store, error) {
			b := &broken{reference: newReference(o, 100)}
			test.spoil(b)
			return b, nil
		},
		Reopen: func(s store.Store, _ storetest.Options) (store.Store, error) {
			b := s.(*broken)
			if b.reopen != nil {
				return b.reopen(b), nil
			}
			again := &broken{reference: b.reference.reopen()}
			test.spoil(again)
			return again, nil
		},
		Beside: func(s store.Store, _ storetest.Options) (store.Store, error) {
			again := &broken{reference: s.(*broken).reference.reopen()}
			if spoil := s.(*broken).another; spoil != nil {
				spoil(again)
			} else {
				test.spoil(again)
			}
			return again, nil
		},
	}, test.caughtBy)
}

var raced bool // whether the race detector runs

// TestEveryRuleBites expects a broken store for each rule.
func TestEveryRuleBites(t *testing.T) {
	proven := make(map[string]bool)
	for _, test := range slices.Concat(
		brokenEvidence, brokenRecords, brokenQueries, brokenKeeping, brokenSteps,
	) {
		proven[test.caughtBy] = true
	}
	for _, name := range storetest.Rules() {
		assert.True(t, proven[name], "no broken store is caught by %q", name)
	}
}

var brokenEvidence = []fault{
	{
		"every delivery counts",
		observing(func(b *broken, o *observation) {
			if o.ID != "" {
				o.ID = fmt.Sprint(o.ID, b.count.Add(1))
			}
		}),
		"an id counts once",
	},
	{
		"what looks alike counts once",
		observing(func(_ *broken, o *observation) {
			o.ID = fmt.Sprint(o.Cell, o.Reward, o.Weight,
				o.At)
		}),
		"concurrent callers lose and double nothing",
	},
	{
		"a batch is counted by its observations alone",
		changing(func(_ *broken, b *batch) { b.ID = "" }),
		"a batch with an id counts once",
	},
	{
		"a share is a whole event",
		observing(func(_ *broken, o *observation) { o.Share = 0 }),
		"sums do not depend on order, batches or delay",
	},
	{
		"weight 0 means 1",
		observing(func(_ *broken, o *observation) {
			if o.Weight == 0 {
				o.Weight = 1
			}
		}),
		"sums do not depend on order, batches or delay",
	},
	{
		"numbers are clamped",
		observing(func(_ *broken, o *observation) {
			o.Reward = min(max(o.Reward, 0), 1)
			if math.IsNaN(o.Reward) {
				o.Reward = 0.5
			}
		}),
		"what is not valid is refused with its field",
	},
	{
		"the future is brought to now",
		observing(func(b *broken, o *observation) {
			if now := b.options.Now(); o.At.After(now) {
				o.At = now
			}
		}),
		"what is not valid is refused with its field",
	},
	{
		"evidence ages from its arrival",
		observing(func(b *broken, o *observation) {
			if !o.At.IsZero() {
				o.At = b.options.Now()
			}
		}),
		"sums do not depend on order, batches or delay",
	},
	{
		"a batch is applied piece by piece",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				for _, whole := range batches {
					for _, o := range whole.Observations {
						if _, err := b.reference.Commit(ctx,
							batch{Policies: whole.Policies, Observations: []observation{o}}); err != nil {
							return nil, err
						}
					}
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"a refused commit changes nothing",
	},
	{
		"of commits at the same time one is lost",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				defer b.count.Add(-1)
				if b.count.Add(1) > 1 && len(batches[0].Observations) > 0 {
					return make([]receipt, len(batches)), nil
				}
				time.Sleep(time.Microsecond)
				return b.reference.Commit(ctx, batches...)
			}
		},
		"concurrent callers lose and double nothing",
	},
	{
		"another policy resets the cell",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(ctx, batches...)
				if conflict := (*heed.SettingsError)(nil); errors.As(err, &conflict) {
					batches[0].Reset = append(batches[0].Reset, batches[0].Observations[0].Cell)
					return b.reference.Commit(ctx, batches...)
				}
				return receipts, err
			}
		},
		"a policy is kept until reset or rebuilt",
	},
	{"a rebuild is left for later", changing(func(_ *broken, b *batch) { b.Rebuild = nil }),
		"a rebuild counts the history again"},
	{
		"a restart forgets all",
		changing(func(_ *broken, b *batch) {
			for _, r := range b.Restart {
				b.Reset = append(b.Reset, r.Cell)
			}
			b.Restart = nil
		}),
		"a restart leaves out what was before, and only moves forward",
	},
	{"a retraction is a note", changing(func(_ *broken, b *batch) { b.Retract = nil }),
		"what is taken back is as if it had never been seen"},
	{
		"a retraction of the unknown does no harm",
		changing(func(b *broken, batch *batch) {
			batch.Retract = slices.DeleteFunc(slices.Clone(batch.Retract),
				func(id string) bool { return !b.knows(id) })
		}),
		"a refused commit changes nothing",
	},
	{
		"a retraction asks for history that a reset took",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				if len(batches) == 1 && slices.Contains(batches[0].Retract, "ann0") {
					return nil, evidence.ErrForgotten
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"to retract what no longer counts needs no history",
	},
	{
		"one source of several is expunged",
		changing(func(_ *broken, b *batch) { b.Expunge = b.Expunge[:min(1, len(b.Expunge))] }),
		"what is taken back is as if it had never been seen",
	},
	{
		"a reset takes the whole scope",
		changing(func(broken *broken, b *batch) {
			broken.file.mu.Lock()
			defer broken.file.mu.Unlock()
			for _, c := range b.Reset {
				for other := range broken.file.cells {
					if other.Kind == c.Kind && other.Scope == c.Scope {
						b.Reset = append(slices.Clip(b.Reset), other)
					}
				}
			}
		}),
		"what is taken back is as if it had never been seen",
	},
	{
		"history is oldest first",
		func(b *broken) {
			b.history = func(b *broken, c evidence.Cell) iter.Seq2[observation, error] {
				all := collect(b.reference.History(background, c))
				slices.Reverse(all)
				return yielding(all)
			}
		},
		"history is newest first and without what was taken back",
	},
	{
		"list knows no scopes",
		func(b *broken) {
			b.list = func(b *broken, _ context.Context, q cellQuery) iter.Seq2[evidence.Part, error] {
				other := store.CellQuery{Kind: q.Kind, Scope: "scope2"}
				return yielding(slices.Concat(
					collect(b.reference.List(background, q)), collect(b.reference.List(background, other)),
				))
			}
		},
		"lists and scopes have what has evidence, in order",
	},
	samples("a sample is of the first names", true,
		func(parts []evidence.Part, n int) []evidence.Part { return parts[:2*n] }),
	samples("a sample is of every fourth cell", true,
		func(parts []evidence.Part, n int) []evidence.Part {
			var some []evidence.Part
			for i := 0; i < len(parts); i += 4 {
				some = append(some, parts[i])
			}
			return some
		}),
	samples("a sample is said to be whole", false,
		func(parts []evidence.Part, n int) []evidence.Part {
			var some []evidence.Part
			for i := 0; i < len(parts); i += 8 {
				some = append(some, parts[i:i+2]...)
			}
			return some
		}),
	{
		"scopes are those of every kind",
		func(b *broken) {
			b.scopes = func(b *broken, _ string) iter.Seq2[string, error] {
				return b.reference.Scopes(background, "suite.fading")
			}
		},
		"lists and scopes have what has evidence, in order",
	},
	{
		"read begins a new slice",
		func(b *broken) {
			b.read = func(b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
				refs []store.Ref) error {
				into.Parts = nil
				return b.reference.Read(ctx, into, cells, refs)
			}
		},
		"a read has all that is asked for, in order",
	},
	{
		"a receipt has the parts of before",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				var before store.Snapshot
				for _, batch := range batches {
					for _, o := range batch.Observations {
						_ = b.reference.Read(ctx, &before, []evidence.Cell{o.Cell}, nil)
					}
				}
				receipts, err := b.reference.Commit(ctx, batches...)
				for i := range receipts {
					if len(batches[i].PartsOf) > 0 {
						receipts[i].Parts = before.Parts
					}
				}
				return receipts, err
			}
		},
		"a receipt has the parts that a read would have",
	},
	{
		"receipts tell all cells",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				batches = slices.Clone(batches)
				for i := range batches {
					if one := &batches[i]; len(one.PartsOf) > 0 {
						one.PartsOf = store.CellsOf(one.Observations...)
					}
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"a receipt has the parts that a read would have",
	},
	{
		"a known id is told for each of its cells",
		telling(func(_ *broken, r *receipt, b batch) {
			if len(r.Duplicates) == 0 {
				return
			}
			r.Duplicates = nil
			for _, o := range b.Observations {
				if o.ID == "once" {
					r.Duplicates = append(r.Duplicates, o.ID)
				}
			}
		}),
		"an id counts once",
	},
	{
		"parts of an earlier batch are those of that moment",
		telling(func(_ *broken, r *receipt, b batch) {
			if len(b.Observations) == 1 && b.Observations[0].ID == "9" {
				r.Parts = nil
			}
		}),
		"a receipt has the parts that a read would have",
	},
	{
		"rewards are whole",
		observing(func(_ *broken, o *observation) {
			if o.Reward > 0 && o.Reward < 1 {
				o.Reward = math.Round(o.Reward)
			}
		}),
		"sums do not depend on order, batches or delay",
	},
	{
		"ids are checked before the lock",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				for i := range batches {
					for j, o := range batches[i].Observations {
						if !b.knows(o.ID) {
							time.Sleep(10 * time.Microsecond)
							batches[i].Observations[j].ID = fmt.Sprint(o.ID, "-", b.count.Add(1))
						}
					}
				}
				receipts, err := b.reference.Commit(ctx, batches...)
				b.file.mu.Lock()
				defer b.file.mu.Unlock()
				for id := range maps.Clone(b.file.known) {
					short, _, _ := strings.Cut(id, "-")
					b.file.known[short] = true
				}
				return receipts, err
			}
		},
		"concurrent callers lose and double nothing",
	},
	{
		"an event tells of one cell",
		changing(func(_ *broken, b *batch) {
			b.Observations = slices.CompactFunc(b.Observations,
				func(x, y observation) bool { return x.ID == y.ID })
		}),
		"an id counts once",
	},
	{
		"the last of a batch comes late",
		observing(func(_ *broken, o *observation) {
			if o.ID == "some-7" {
				o.At = o.At.Add(24 * time.Hour)
			}
		}),
		"sums do not depend on order, batches or delay",
	},
	{
		"a clock that goes back clears the store",
		func(b *broken) {
			var last atomic.Int64
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				now := b.options.Now().UnixMicro()
				if last.Swap(now) > now {
					b.file.mu.Lock()
					clear(b.file.known)
					b.file.mu.Unlock()
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"a clock that goes back changes nothing",
	},
	{
		"cells are of any case",
		func(b *broken) {
			observing(func(_ *broken, o *observation) { o.Cell.Scope = strings.ToLower(o.Cell.Scope) })(b)
			b.read = func(b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
				refs []store.Ref) error {
				cells = slices.Clone(cells)
				for i := range cells {
					cells[i].Scope = strings.ToLower(cells[i].Scope)
				}
				return b.reference.Read(ctx, into, cells, refs)
			}
		},
		"texts of any kind are kept apart",
	},
	{
		"a restart may go back",
		changing(func(b *broken, batch *batch) {
			b.file.mu.Lock()
			defer b.file.mu.Unlock()
			for _, r := range batch.Restart {
				delete(b.file.restarts, r.Cell)
			}
		}),
		"a restart leaves out what was before, and only moves forward",
	},
	{
		"a batch adds first and takes back then",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				if len(batches) != 1 || len(batches[0].Retract)+len(batches[0].Expunge) == 0 ||
					len(batches[0].Observations) == 0 {
					return b.reference.Commit(ctx, batches...)
				}
				take := batches[0]
				take.Observations = nil
				batches[0].Retract, batches[0].Expunge = nil, nil
				receipts, err := b.reference.Commit(ctx, batches[0])
				if err == nil {
					_, err = b.reference.Commit(ctx, take)
				}
				return receipts, err
			}
		},
		"to retract is never to have seen, beside many others",
	},
	{
		"what is forgotten is taken back from something else",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(ctx, batches...)
				if errors.Is(err, evidence.ErrForgotten) && len(batches[0].Retract) > 0 {
					b.file.mu.Lock()
					defer b.file.mu.Unlock()
					b.file.seen = b.file.seen[1:]
					b.file.seen[0].Weight = 2
					return make([]receipt, len(batches)), nil
				}
				return receipts, err
			}
		},
		"to retract what is forgotten changes nothing",
	},
	{"what is kept is not told", telling(func(_ *broken, r *receipt, _ batch) { r.Kept = nil }),
		"to withdraw takes back what can be, and tells the rest"},
	{
		"everything is called kept",
		telling(func(_ *broken, r *receipt, b batch) { r.Kept = b.Withdraw }),
		"to withdraw takes back what can be, and tells the rest",
	},
	{
		"what can't be withdrawn is an error",
		changing(func(_ *broken, b *batch) {
			b.Retract,
				b.Withdraw = slices.Concat(b.Retract, b.Withdraw), nil
		}),
		"to withdraw takes back what can be, and tells the rest",
	},
	{
		"forgetting is for records alone",
		changing(func(_ *broken, b *batch) { b.Expunge = nil }),
		"what is taken back is as if it had never been seen",
	},
}

var brokenRecords = []fault{
	{"seconds are kept", showing(func(_ *broken, r *record) { r.At = r.At.Truncate(time.Second) }),
		"a record is read back as it was written"},
	{"nanoseconds are kept", writing(func(_ *broken,
		r *record) {
		r.At = r.At.Add(time.Microsecond / 2).Round(time.Microsecond)
	}),
		"a record is read back as it was written"},
	{"times keep their zone", showing(func(_ *broken,
		r *record) {
		r.At = r.At.In(time.FixedZone("", 3600))
	}),
		"a record is read back as it was written"},
	{
		"bodies lose what is behind the first 60 bytes",
		showing(func(_ *broken, r *record) {
			if text, _ := r.Body.JSON(); len(text) > 60 {
				r.Body = store.Raw([]byte("{}"))
			}
		}),
		"a record is read back as it was written",
	},
	{
		"numbers are floats",
		showing(func(_ *broken, r *record) {
			if v, err := store.Decode[any](r.Body); err == nil && v != nil {
				r.Body = store.Of(v)
				text, _ := r.Body.JSON()
				again, _ := store.Decode[any](store.Raw(text))
				r.Body = store.Of(again)
			}
		}),
		"a record is read back as it was written",
	},
	{"keys are sorted", showing(func(_ *broken, r *record) { slices.Sort(r.Keys) }),
		"a record is read back as it was written"},
	{"quotes are dropped", writing(func(_ *broken,
		r *record) {
		r.ID = strings.ReplaceAll(r.ID, "'", "")
	}), "texts of any kind are kept apart"},
	{
		"ids are of any case",
		func(b *broken) {
			writing(func(_ *broken, r *record) { r.ID = strings.ToLower(r.ID) })(b)
			b.read = func(b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
				refs []store.Ref) error {
				refs = slices.Clone(refs)
				for i := range refs {
					refs[i].ID = strings.ToLower(refs[i].ID)
				}
				return b.reference.Read(ctx, into, cells, refs)
			}
		},
		"texts of any kind are kept apart",
	},
	{"keys are of any case", asking(func(q *query) {
		if len(q.Keys) > 0 && q.Keys[0] == "k=A" {
			q.Keys = []string{"k=a"}
		}
	}), "texts of any kind are kept apart"},
	{
		"kinds share their ids",
		func(b *broken) {
			b.read = func(b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
				refs []store.Ref) error {
				had := len(into.Records)
				err := b.reference.Read(ctx, into, cells, refs)
				for i := had; i < len(into.Records); i++ {
					if other := (store.Ref{Kind: "suite.note", ID: into.Records[i].ID}); b.current(
						other) > 0 {
						w, _ := b.stored(other)
						into.Records[i] = w.copy()
						into.Records[i].Ref = refs[i-had]
					}
				}
				return err
			}
		},
		"a read has all that is asked for, in order",
	},
	{
		"a missing record is left out",
		func(b *broken) {
			b.read = func(b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
				refs []store.Ref) error {
				refs = slices.DeleteFunc(slices.Clone(refs),
					func(ref store.Ref) bool { return b.current(ref) == 0 && len(refs) > 1 })
				return b.reference.Read(ctx, into, cells, refs)
			}
		},
		"a read has all that is asked for, in order",
	},
	{
		"what is missing is there, and empty",
		showing(func(_ *broken, r *record) {
			if r.Revision == 0 {
				r.Revision, r.Body = 1, store.Raw([]byte("{}"))
			}
		}),
		"a record is written over the revision that was read, which never comes again",
	},
	{"revisions stand still", showing(func(_ *broken, r *record) { r.Revision = min(r.Revision, 1) }),
		"a record is written over the revision that was read, which never comes again"},
	{
		"the last writer wins",
		writing(func(b *broken, r *record) {
			if r.Revision != store.Once && !r.Body.IsZero() {
				r.Revision = b.current(r.Ref)
			}
		}),
		"a record is written over the revision that was read, which never comes again",
	},
	{
		"a new record writes over an old one",
		writing(func(b *broken, r *record) {
			if r.Revision == 0 && !r.Body.IsZero() {
				r.Revision = b.current(r.Ref)
			}
		}),
		"a record is written over the revision that was read, which never comes again",
	},
	{
		"a removal takes any revision",
		writing(func(b *broken, r *record) {
			if now := b.current(r.Ref); r.Body.IsZero() && now > 0 {
				r.Revision = now
			}
		}),
		"a record is written over the revision that was read, which never comes again",
	},
	{
		"removals are forgotten",
		changing(func(b *broken, batch *batch) {
			batch.Records = slices.DeleteFunc(batch.Records,
				func(r record) bool { return r.Body.IsZero() && r.Revision == b.current(r.Ref) })
		}),
		"a record is written over the revision that was read, which never comes again",
	},
	{
		"a removed revision is used again",
		func(b *broken) {
			afterwards(func(b *broken, batches []batch) {
				for _, batch := range batches {
					for _, r := range batch.Records {
						if r.Body.IsZero() {
							b.file.revision = 0
						}
					}
				}
			})(b)
		},
		"a record is written over the revision that was read, which never comes again",
	},
	{"receipts know no revision", telling(func(_ *broken, r *receipt, _ batch) { r.Revision = 0 }),
		"a record is written over the revision that was read, which never comes again"},
	{
		"a conflict leaves its observations",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(ctx, batches...)
				if errors.Is(err, heed.ErrConflict) {
					for _, whole := range batches {
						_, _ = b.reference.Commit(ctx, batch{Policies: whole.Policies,
							Observations: whole.Observations})
					}
				}
				return receipts, err
			}
		},
		"a refused commit changes nothing",
	},
	{
		"a conflict leaves the records before it",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(ctx, batches...)
				if errors.Is(err, heed.ErrConflict) {
					for _, whole := range batches {
						for _, r := range whole.Records {
							_, _ = b.reference.Commit(ctx, batch{Records: []record{r}})
						}
					}
				}
				return receipts, err
			}
		},
		"a refused commit changes nothing",
	},
	{
		"records written once are written first",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				for _, whole := range batches {
					for _, r := range whole.Records {
						if r.Revision == store.Once {
							_, _ = b.reference.Commit(ctx, batch{Records: []record{r}})
						}
					}
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"a refused commit changes nothing",
	},
	{
		"a conflict makes its batch known",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(ctx, batches...)
				if errors.Is(err, heed.ErrConflict) {
					for _, whole := range batches {
						b.file.mu.Lock()
						b.file.known[whole.ID] = true
						b.file.mu.Unlock()
					}
				}
				return receipts, err
			}
		},
		"a refused commit changes nothing",
	},
	{
		"revisions are checked before the id",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				if ctx.Err() == nil && store.Validate(b.options.Now(), batches...) == nil &&
					b.stale(batches) {
					return nil, heed.ErrConflict
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"a batch with an id counts once",
	},
	{
		"a known batch leaves the others out",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				for _, whole := range batches {
					if b.knows(whole.ID) {
						all := make([]receipt, len(batches))
						for i := range all {
							all[i].Duplicate = true
						}
						return all, nil
					}
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"a batch with an id counts once",
	},
	{
		"an expectation raises the revision",
		afterwards(func(b *broken, batches []batch) {
			for _, batch := range batches {
				for _, e := range batch.Expect {
					if w, ok := b.file.records[e.Ref]; ok {
						b.file.revision++
						w.Revision = b.file.revision
						b.file.records[e.Ref] = w
					}
				}
			}
		}),
		"an expectation holds and changes nothing",
	},
	{"expectations do not hold", changing(func(_ *broken, b *batch) { b.Expect = nil }),
		"an expectation holds and changes nothing"},
	{
		"nobody can expect nothing",
		changing(func(_ *broken, b *batch) {
			b.Expect = slices.DeleteFunc(slices.Clone(b.Expect),
				func(e store.Precondition) bool { return e.Revision == 0 })
		}),
		"an expectation holds and changes nothing",
	},
	{
		"revisions are checked before the lock",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				if ctx.Err() == nil && store.Validate(b.options.Now(), batches...) == nil &&
					b.stale(batches) {
					return b.reference.Commit(ctx, batches...) // which says so
				}
				time.Sleep(50 * time.Microsecond)
				for i := range batches {
					batches[i].Expect = nil
					for j, r := range batches[i].Records {
						if now := b.current(r.Ref); r.Revision != store.Once && (now > 0 || !r.Body.IsZero()) {
							batches[i].Records[j].Revision = now
						}
					}
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"of concurrent writers that rely on one revision one wins",
	},
	{
		"expectations are checked before the lock",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				if ctx.Err() == nil && store.Validate(b.options.Now(), batches...) == nil &&
					b.stale(batches) {
					return b.reference.Commit(ctx, batches...)
				}
				time.Sleep(50 * time.Microsecond)
				for i := range batches {
					batches[i].Expect = nil
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"of concurrent writers that rely on one revision one wins",
	},
	{
		"what conflicts is thrown away",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				time.Sleep(100 * time.Microsecond)
				receipts, err := b.reference.Commit(ctx, batches...)
				if errors.Is(err, heed.ErrConflict) {
					return make([]receipt, len(batches)), nil
				}
				return receipts, err
			}
		},
		"of concurrent steps on a record none is lost",
	},
	{
		"one of a moment is kept",
		writing(func(_ *broken, r *record) {
			if r.Revision == 0 && !r.Body.IsZero() && slices.Contains(r.Keys, "k") &&
				strings.Contains(r.ID, "-") {
				r.ID, r.Revision = r.At.String(), store.Once
			}
		}),
		"concurrent callers lose and double nothing",
	},
	{
		"once is a new one",
		writing(func(_ *broken, r *record) {
			if r.Revision == store.Once && !r.Body.IsZero() {
				r.Revision = 0
			}
		}),
		"a record written once stays as it is",
	},
	{
		"once is once more",
		writing(func(b *broken, r *record) {
			if r.Revision == store.Once && !r.Body.IsZero() {
				r.Revision = b.current(r.Ref)
			}
		}),
		"a record written once stays as it is",
	},
	{"nobody hears what was left", telling(func(_ *broken, r *receipt, _ batch) { r.Left = nil }),
		"a record written once stays as it is"},
	{
		"what is left has a revision",
		telling(func(b *broken, r *receipt, _ batch) {
			if len(r.Left) > 0 && r.Revision == 0 {
				r.Revision = 1
			}
		}),
		"a record written once stays as it is",
	},
	{
		"batches are commits of their own",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) (all []receipt, err error) {
				if err := store.Validate(b.options.Now(), batches...); err != nil {
					return nil, err
				}
				for _, batch := range batches {
					receipts, err := b.reference.Commit(ctx, batch)
					if err != nil {
						return nil, err
					}
					all = append(all, receipts...)
				}
				return all, ctx.Err()
			}
		},
		"a refused commit changes nothing",
	},
	{
		"an id is known from the next commit on",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				for i := range batches {
					same := func(other batch) bool { return other.ID == batches[i].ID }
					if batches[i].ID != "" && slices.ContainsFunc(batches[:i], same) {
						batches[i].ID += " again"
					}
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"batches are applied in order",
	},
	{
		"the last batch comes first",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				if err := store.Validate(b.options.Now(), batches...); err != nil {
					return nil, err
				}
				for i := range batches {
					if batches[i].TakesAway() {
						return b.reference.Commit(ctx, batches...)
					}
				}
				slices.Reverse(batches)
				receipts, err := b.reference.Commit(ctx, batches...)
				slices.Reverse(receipts)
				return receipts, err
			}
		},
		"a query selects by keys and time, and sorts by time and first writing",
	},
	{
		"everything is taken",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(ctx, batches...)
				if fault := (*heed.InputError)(nil); errors.As(err, &fault) {
					return make([]receipt, len(batches)), nil
				}
				return receipts, err
			}
		},
		"what is not valid is refused with its field",
	},
	{
		"kinds declare themselves",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				for _, batch := range batches {
					for _, r := range batch.Records {
						_ = b.reference.Declare(ctx, store.Kind{Name: r.Kind})
					}
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"a kind must be declared",
	},
	{
		"a declaration replaces the paths",
		func(b *broken) {
			b.declare = func(b *broken, ctx context.Context, kinds []store.Kind) error {
				for _, k := range kinds {
					delete(b.kinds, k.Name)
				}
				return b.reference.Declare(ctx, kinds...)
			}
		},
		"a kind must be declared",
	},
	{
		"keys are shared",
		func(b *broken) {
			b.read = func(b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
				refs []store.Ref) error {
				had := len(into.Records)
				err := b.reference.Read(ctx, into, cells, refs)
				for i := had; i < len(into.Records); i++ {
					w, _ := b.stored(into.Records[i].Ref)
					into.Records[i].Keys = w.Keys
				}
				return err
			}
		},
		"what goes in and out is copied",
	},
	{
		"parts are read before records",
		func(b *broken) {
			b.read = func(b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
				refs []store.Ref) error {
				if err := b.reference.Read(ctx, into, cells, nil); err != nil {
					return err
				}
				time.Sleep(100 * time.Microsecond)
				return b.reference.Read(ctx, into, nil, refs)
			}
		},
		"what is read together was there together",
	},
	{
		"commits do not look at their context",
		func(b *broken) {
			b.commit = func(b *broken, _ context.Context, batches []batch) ([]receipt, error) {
				return b.reference.Commit(background, batches...)
			}
		},
		"a context that is done changes nothing",
	},
	{
		"a late reading is empty",
		func(b *broken) {
			b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
				if ctx.Err() != nil {
					return yielding[record](nil)
				}
				return b.reference.Find(ctx, q)
			}
		},
		"a context that is done changes nothing",
	},
}

var brokenQueries = []fault{
	{
		"those of one moment come by their ids",
		func(b *broken) {
			b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
				if q.After != "" || q.Limit > 0 || q.Validate() != nil || ctx.Err() != nil {
					return b.reference.Find(ctx, q)
				}
				all := collect(b.reference.Find(ctx, q))
				slices.SortStableFunc(all, func(x, y record) int {
					n := x.At.Compare(y.At)
					if n == 0 {
						n = strings.Compare(x.ID, y.ID)
					}
					if !q.Oldest {
						n = -n
					}
					return n
				})
				return yielding(all)
			}
		},
		"a query selects by keys and time, and sorts by time and first writing",
	},
	{
		"the last changed comes last",
		afterwards(func(b *broken, batches []batch) {
			for _, batch := range batches {
				for _, r := range batch.Records {
					if w, ok := b.file.records[r.Ref]; ok && r.Revision != store.Once {
						w.order = b.file.next()
						b.file.records[r.Ref] = w
					}
				}
			}
		}),
		"a query selects by keys and time, and sorts by time and first writing",
	},
	{
		"a record keeps its first moment",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				for i := range batches {
					for j, r := range batches[i].Records {
						if w, ok := b.stored(r.Ref); ok {
							batches[i].Records[j].At = w.At
						}
					}
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"a query selects by keys and time, and sorts by time and first writing",
	},
	{
		"a record keeps its first keys",
		writing(func(b *broken, r *record) {
			if w, ok := b.stored(r.Ref); ok {
				r.Keys = w.Keys
			}
		}),
		"a query selects by keys and time, and sorts by time and first writing",
	},
	{"newest first is oldest first", asking(func(q *query) { q.Oldest = true }),
		"a query selects by keys and time, and sorts by time and first writing"},
	{"there is no limit", asking(func(q *query) { q.Limit = min(q.Limit, 0) }),
		"a query selects by keys and time, and sorts by time and first writing"},
	{"one too many passes the limit", asking(func(q *query) {
		if q.Limit > 0 {
			q.Limit++
		}
	}), "a query selects by keys and time, and sorts by time and first writing"},
	{"since is after", asking(func(q *query) {
		if !q.Since.IsZero() {
			q.Since = q.Since.Add(time.Microsecond)
		}
	}), "a query selects by keys and time, and sorts by time and first writing"},
	{"until is not before", asking(func(q *query) {
		if !q.Until.IsZero() {
			q.Until = q.Until.Add(time.Microsecond)
		}
	}), "a query selects by keys and time, and sorts by time and first writing"},
	{"one key will do", asking(func(q *query) { q.Keys = q.Keys[:min(1, len(q.Keys))] }),
		"a query selects by keys and time, and sorts by time and first writing"},
	{"queries are not looked at", asking(func(q *query) {
		q.Limit = max(q.Limit, 0)
		if len(q.After) > 0 && !strings.Contains(q.After, ".") {
			q.After = ""
		}
	}), "what is not valid is refused with its field"},
	{"a read knows no queries", func(b *broken) {
		b.queries = func(_ *broken, all []query) []query { return all[:0] }
	}, "a read has all that is asked for, in order"},
	{"a read finds without limits", func(b *broken) {
		b.queries = func(_ *broken, all []query) []query {
			for i := range all {
				all[i].Limit = 0
			}
			return all
		}
	}, "a read has all that is asked for, in order"},
	{"a removal leaves the version", unraised(func(batches []batch) bool {
		return len(batches[0].Records) > 0 && batches[0].Records[0].Body.IsZero()
	}), "every change raises the version of its kind"},
	{"only the first batch raises a version", unraised(
		func(batches []batch) bool { return len(batches) > 1 }),
		"every change raises the version of its kind"},
	{"commits at the same time raise a version once", unraised(func(batches []batch) bool {
		return len(batches[0].Records) > 0 && strings.HasPrefix(batches[0].Records[0].ID, "together") &&
			batches[0].Records[0].ID != "together0"
	}), "every change raises the version of its kind"},
	{"evidence has no version", unraised(func(batches []batch) bool {
		return len(batches[0].Expunge)+len(batches[0].Reset) > 0
	}), "every change raises the version of its kind"},
	{"a kind without records keeps its version", unraisedEmpty,
		"every change raises the version of its kind"},
	{"a sweep leaves versions", func(b *broken) {
		b.sweep = func(b *broken, ctx context.Context, now time.Time) error {
			before := maps.Clone(b.file.versions)
			err := b.reference.Sweep(ctx, now)
			b.file.versions = before
			return err
		}
	}, "every change raises the version of its kind"},
	{"a version is read last", func(b *broken) {
		b.read = func(b *broken, ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
			refs []store.Ref) error {
			err := b.reference.Read(ctx, into, cells, refs)
			for i, ref := range refs {
				if r := &into.Records[len(into.Records)-len(refs)+i]; err == nil && ref.ID == "" {
					time.Sleep(time.Millisecond)
					r.Revision = b.current(ref)
				}
			}
			return err
		}
	}, "what is read together was there together"},
	{"every kind has a version, which may stay", func(b *broken) {
		b.declare = func(b *broken, ctx context.Context, kinds []store.Kind) error {
			for i := range kinds {
				kinds[i].Versioned = true
			}
			return b.reference.Declare(ctx, kinds...)
		}
	}, "only kinds that say so have a version"},
	{"a page loses its first record", func(b *broken) {
		b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
			all := b.reference.Find(ctx, q)
			if q.After == "" || !strings.Contains(q.After, ".") {
				return all
			}
			if limited := q.Limit > 0; limited {
				q.Limit++
				return yielding(skip(collect(b.reference.Find(ctx, q)), 1))
			}
			return all
		}
	}, "pages and long loops lose and double nothing"},
	{"a page begins with the last record of the one before", func(b *broken) {
		b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
			all := collect(b.reference.Find(ctx, q))
			if q.After != "" && q.Limit > 1 && len(all) == q.Limit {
				q.After, q.Limit = "", 0
				if whole := collect(b.reference.Find(ctx, q)); len(whole) > 0 {
					all = slices.Insert(all[:len(all)-1], 0, whole[0])
				}
			}
			if len(all) == 0 {
				return b.reference.Find(ctx, q)
			}
			return yielding(all)
		}
	}, "pages and long loops lose and double nothing"},
	{"a page begins with the next moment", func(b *broken) {
		b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
			var micros, order int64
			if n, _ := fmt.Sscanf(q.After, "%d.%d", &micros, &order); n != 2 {
				return b.reference.Find(ctx, q)
			}
			q.After = fmt.Sprintf("%d.%d", micros, map[bool]int64{true: math.MaxInt64,
				false: -1}[q.Oldest])
			return b.reference.Find(ctx, q)
		}
	}, "pages and long loops lose and double nothing"},
	{"places are counted", func(b *broken) {
		b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
			from := 0
			if n, _ := fmt.Sscanf(q.After, "#%d", &from); n != 1 && q.After != "" ||
				q.Validate() != nil || ctx.Err() != nil {
				return b.reference.Find(ctx, q)
			}
			limit := q.Limit
			q.After, q.Limit = "", 0
			all := collect(b.reference.Find(ctx, q))
			for i := range all {
				all[i].Place = fmt.Sprint("#", i+1)
			}
			all = skip(all, from)
			if limit > 0 {
				all = all[:min(limit, len(all))]
			}
			return yielding(all)
		}
	}, "pages and long loops lose and double nothing"},
	{
		"a long loop is read in careless pages",
		func(b *broken) {
			b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
				if q.Limit > 0 || q.Validate() != nil || q.After != "" || ctx.Err() != nil {
					return b.reference.Find(ctx, q)
				}
				return func(yield func(record, error) bool) {
					for from := 0; ; {
						all := skip(collect(b.reference.Find(ctx, q)), from)
						for _, r := range all[:min(500, len(all))] {
							from++
							if !yield(r, nil) {
								return
							}
						}
						if len(all) <= 500 {
							return
						}
					}
				}
			}
		},
		"pages and long loops lose and double nothing",
	},
	{
		"the loop holds a lock",
		func(b *broken) {
			var locked atomic.Bool
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				if locked.Load() {
					return nil, errors.New("would wait for ever")
				}
				return b.reference.Commit(ctx, batches...)
			}
			b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
				return func(yield func(record, error) bool) {
					locked.Store(true)
					defer locked.Store(false)
					b.reference.Find(ctx, q)(yield)
				}
			}
		},
		"a loop may end early and call the store",
	},
}

func skip[T any](all []T, n int) []T { return all[min(n, len(all)):] }

var brokenKeeping = []fault{
	{
		"a store that is opened again is empty",
		func(b *broken) {
			b.reopen = func(b *broken) *broken {
				return &broken{reference: newReference(b.options,
					b.perCell)}
			}
		},
		"a store that is opened again has all it had",
	},
	{
		"opened again, it has lost its key of pseudonyms",
		func(b *broken) {
			b.reopen = func(b *broken) *broken {
				delete(b.file.records, stores.PseudonymKeyRef())
				return &broken{reference: b.reference.reopen()}
			}
		},
		"a store that is opened again has all it had",
	},
	{
		"opened again, it counts revisions again",
		func(b *broken) {
			b.reopen = func(b *broken) *broken {
				b.file.revision = 0
				return &broken{reference: b.reference.reopen()}
			}
		},
		"a store that is opened again has all it had",
	},
	{
		"opened again, it knows no ids",
		func(b *broken) {
			b.reopen = func(b *broken) *broken {
				clear(b.file.known)
				return &broken{reference: b.reference.reopen()}
			}
		},
		"a store that is opened again has all it had",
	},
	{
		"nothing is too old",
		func(b *broken) {
			b.declare = func(b *broken, ctx context.Context, kinds []store.Kind) error {
				for i := range kinds {
					kinds[i].Limits.For = min(kinds[i].Limits.For, 0)
				}
				return b.reference.Declare(ctx, kinds...)
			}
		},
		"records live as long as their kind says",
	},
	{
		"records live from their writing",
		func(b *broken) {
			b.sweep = func(b *broken, ctx context.Context, now time.Time) error {
				for _, k := range b.kinds {
					if limit := k.Limits.For; limit > 0 &&
						!b.options.Now().After(time.Date(2026, 3, 14, 18, 0, 0, 0, time.UTC)) {
						return nil
					}
				}
				return b.reference.Sweep(ctx, now)
			}
		},
		"records live as long as their kind says",
	},
	{
		"the youngest make room",
		func(b *broken) {
			b.sweep = func(b *broken, ctx context.Context, now time.Time) error {
				for _, k := range b.kinds {
					if k.Limits.Most > 0 && !k.Limits.Refuse && ctx.Err() == nil {
						for _, r := range skip(collect(b.reference.Find(ctx,
							query{Kind: k.Name, Oldest: true})), k.Limits.Most) {
							delete(b.file.records, r.Ref)
						}
					}
				}
				return b.reference.Sweep(ctx, now)
			}
		},
		"the oldest records make room",
	},
	{
		"there is always room",
		func(b *broken) {
			b.declare = func(b *broken, ctx context.Context, kinds []store.Kind) error {
				for i := range kinds {
					kinds[i].Limits.Refuse = false
				}
				return b.reference.Declare(ctx, kinds...)
			}
		},
		"a kind that refuses more is full",
	},
	{
		"a full kind takes no change",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				for _, whole := range batches {
					for _, r := range whole.Records {
						k := b.kinds[r.Kind]
						if k.Limits.Refuse && !r.Body.IsZero() &&
							len(collect(b.reference.Find(ctx, query{Kind: r.Kind}))) >= k.Limits.Most {
							return nil, evidence.ErrFull
						}
					}
				}
				return b.reference.Commit(ctx, batches...)
			}
		},
		"a kind that refuses more is full",
	},
	{
		"declared limits win",
		func(b *broken) {
			b.options.Limits = nil
		},
		"limits of the store win, and then those declared last",
	},
	{
		"a declaration without limits lifts them",
		func(b *broken) {
			b.declare = func(b *broken, ctx context.Context, kinds []store.Kind) error {
				err := b.reference.Declare(ctx, kinds...)
				for _, k := range kinds {
					if stored := b.kinds[k.Name]; k.Limits == (store.Limits{}) && err == nil {
						stored.Limits = b.options.Limits[k.Name]
						b.kinds[k.Name] = stored
					}
				}
				return err
			}
		},
		"limits of the store win, and then those declared last",
	},
	{
		"a sweep believes its caller",
		func(b *broken) {
			b.sweep = func(b *broken, ctx context.Context, now time.Time) error {
				clock := b.options.Now
				defer func() { b.options.Now = clock }()
				if !now.IsZero() {
					b.options.Now = func() time.Time { return now }
				}
				return b.reference.Sweep(ctx, now)
			}
		},
		"a sweep goes by the earlier clock",
	},
	{
		"a sweep goes by its own clock alone",
		func(b *broken) {
			b.sweep = func(b *broken, ctx context.Context,
				_ time.Time) error {
				return b.reference.Sweep(ctx, time.Time{})
			}
		},
		"a sweep goes by the earlier clock",
	},
	{
		"a sweep by a clock that is ahead makes ids unknown",
		func(b *broken) {
			b.sweep = func(b *broken, ctx context.Context, now time.Time) error {
				if now.Sub(b.options.Now()) > 24*time.Hour {
					clear(b.file.known)
				}
				return b.reference.Sweep(ctx, now)
			}
		},
		"a sweep goes by the earlier clock",
	},
	forgetting("payloads are not entered", func(k *store.Kind) {
		k.Decided = slices.DeleteFunc(slices.Clone(k.Decided),
			func(path string) bool { return strings.Contains(path, "~") })
	}, "a list has what a job needs"),
	forgetting("lists are not looked at", func(k *store.Kind) {
		k.Decided = slices.DeleteFunc(slices.Clone(k.Decided),
			func(path string) bool { return strings.Contains(path, "*") })
	}, "a list has what a job needs"),
	forgetting("causes are kept", func(k *store.Kind) { k.Caused = nil },
		"a forgotten person's name is in no record, and whole records go"),
	forgetting("causes get a pseudonym", func(k *store.Kind) {
		k.Decided,
			k.Caused = slices.Concat(k.Decided, k.Caused), nil
	}, "a forgotten person's name is in no record, and whole records go"),
	forgetting("whole records are changed", func(k *store.Kind) { k.Whole = false },
		"a forgotten person's name is in no record, and whole records go"),
	forgetting("every record goes as a whole", func(k *store.Kind) { k.Whole = len(k.Caused) > 0 },
		"a forgotten person's name is in no record, and whole records go"),
	{
		"a record without a key keeps its revision",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				b.file.mu.Lock()
				before := maps.Clone(b.file.records)
				b.file.mu.Unlock()
				receipts, err := b.reference.Commit(ctx, batches...)
				for ref, w := range b.file.records {
					if had := before[ref]; err == nil && len(w.Keys) < len(had.Keys) {
						w.Revision = had.Revision
						b.file.records[ref] = w
					}
				}
				return receipts, err
			}
		},
		"a forgotten person's name is in no record, and whole records go",
	},
	{"all stores have one key of pseudonyms", writing(func(_ *broken, r *record) {
		if r.Kind == store.Pseudonyms.Name {
			r.Body = store.Of(text.PseudonymKey{Secret: make([]byte, 32), Since: time.Unix(1, 0)})
		}
	}), "a person's pseudonym stays the same, and is no other's"},
	{
		"the key of pseudonyms goes with those who were forgotten",
		func(b *broken) {
			b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
				receipts, err := b.reference.Commit(ctx, batches...)
				if len(batches) > 0 && len(batches[0].Forgotten) > 0 {
					delete(b.file.records, stores.PseudonymKeyRef())
				}
				return receipts, err
			}
		},
		"a person's pseudonym stays the same, and is no other's",
	},
	{
		"a source is looked for in what is left of it",
		func(b *broken) {
			b.list = func(b *broken, ctx context.Context, q cellQuery) iter.Seq2[evidence.Part, error] {
				all := b.reference.List(ctx, q)
				for _, err := range all {
					if errors.Is(err, evidence.ErrForgotten) {
						return yielding[evidence.Part](nil)
					}
				}
				return all
			}
		},
		"forgetting takes all or nothing",
	},
	{"to forget is to forget everywhere", func(b *broken) {
		b.list = func(b *broken, ctx context.Context, q cellQuery) iter.Seq2[evidence.Part, error] {
			if q.Naming == "" {
				return b.reference.List(ctx, q)
			}
			var all []evidence.Part
			for _, tenant := range []string{"", "@acme", "@ann"} {
				q.Kind = tenant
				all = append(all, collect(b.reference.List(ctx, q))...)
			}
			return yielding(all)
		}
	}, "a tenant sees, changes and leaves what is its own"},
	{"the cells of a tenant are some", func(b *broken) {
		b.list = func(b *broken, ctx context.Context, q cellQuery) iter.Seq2[evidence.Part, error] {
			all := collect(b.reference.List(ctx, q))
			if strings.HasPrefix(q.Kind, "@") && q.Naming == "" && len(all) > 0 {
				all = all[1:]
			}
			return yielding(all)
		}
	}, "a tenant sees, changes and leaves what is its own"},
	{"a list has no cells without evidence", func(b *broken) {
		b.list = func(b *broken, ctx context.Context, q cellQuery) iter.Seq2[evidence.Part, error] {
			q.Empty = false
			return b.reference.List(ctx, q)
		}
	}, "a list has what a job needs"},
	{"all sums have their history", func(b *broken) {
		b.list = func(b *broken, ctx context.Context, q cellQuery) iter.Seq2[evidence.Part, error] {
			if q.Lost {
				return yielding[evidence.Part](nil)
			}
			return b.reference.List(ctx, q)
		}
	}, "a list has what a job needs"},
	{"declarations are in no record", func(b *broken) {
		b.find = func(b *broken, ctx context.Context, q query) iter.Seq2[record, error] {
			if q.Kind == store.Declarations {
				return yielding[record](nil)
			}
			return b.reference.Find(ctx, q)
		}
	}, "a list has what a job needs"},
	{"a sweep leaves jobs", func(b *broken) {
		b.sweep = func(b *broken, ctx context.Context, now time.Time) error {
			jobs := maps.Clone(b.file.records)
			maps.DeleteFunc(b.file.records, func(ref store.Ref, _ written) bool {
				return ref.Kind == "heed.job"
			})
			err := b.reference.Sweep(ctx, now)
			for ref, w := range jobs {
				if ref.Kind == "heed.job" {
					b.file.records[ref] = w
				}
			}
			return err
		}
	}, "a job that is cut off is finished by a sweep"},
	{"a reset leaves a restart", func(b *broken) {
		b.commit = func(b *broken, ctx context.Context, batches []batch) ([]receipt, error) {
			before := maps.Clone(b.file.restarts)
			receipts, err := b.reference.Commit(ctx, batches...)
			for i := range batches {
				for _, c := range batches[i].Reset {
					if at, known := before[c]; known && err == nil {
						b.file.restarts[c] = at
					}
				}
			}
			return receipts, err
		}
	}, "a list has what a job needs"},
}

// forgetting breaks a store by changing what it is told of kinds.
// samples makes a store that draws a sample of the parts it would list, and tells of it or does
// not.
func samples(
	name string, tells bool, draw func(parts []evidence.Part, items int) []evidence.Part,
) fault {
	return fault{name, func(b *broken) {
		b.list = func(b *broken, ctx context.Context, q cellQuery) iter.Seq2[evidence.Part, error] {
			parts := collect(b.reference.List(ctx, q))
			if sample := q.Sample; sample != nil && len(parts) > 2*sample.Most {
				all := len(parts) / 2
				parts = draw(parts, sample.Most)
				if tells {
					sample.Given, sample.All = sample.Most, all
				}
			}
			return yielding(parts)
		}
	}, "a list may be a sample, by no order"}
}

func forgetting(name string, edit func(*store.Kind), caughtBy string) fault {
	return fault{name, func(b *broken) {
		b.declare = func(b *broken, ctx context.Context, kinds []store.Kind) error {
			for i := range kinds {
				edit(&kinds[i])
			}
			return b.reference.Declare(ctx, kinds...)
		}
	}, caughtBy}
}
