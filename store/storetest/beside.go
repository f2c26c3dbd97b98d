package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A pair is one store through two handles. Commits take turns, and all else goes to the handle that
// did not commit last. Rules run over it as over one handle.
type pair struct {
	Failing // which never fails
	handles [2]store.Store
	commits atomic.Uint64
}

func newPair(one, other store.Store) *pair {
	p := &pair{handles: [2]store.Store{one, other}}
	p.pick = func(method string) store.Store {
		if method == "Commit" {
			return p.handles[(p.commits.Add(1)+1)%2]
		}
		return p.handles[p.commits.Load()%2]
	}
	return p
}

func (p *pair) Declare(ctx context.Context, kinds ...store.Kind) error {
	return errors.Join(p.handles[0].Declare(ctx, kinds...), p.handles[1].Declare(ctx, kinds...))
}

// Read names a record where cells alone are asked for, because cells alone may be a second old.
func (p *pair) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	had := len(into.Records)
	if len(refs) > 0 {
		return p.Failing.Read(ctx, into, cells, refs, finds...)
	}
	err := p.Failing.Read(ctx, into, cells, []store.Ref{ref(notes, "none")}, finds...)
	into.Records = into.Records[:had]
	return err
}

// bare returns a handle without declarations, with a clock that is ahead of the store's. If there
// can be one handle only, it is the store.
func (f *fixture) bare(ahead time.Duration) store.Store {
	if f.subject.Beside == nil {
		return f.store
	}
	options := f.options
	options.Now = func() time.Time { return f.time().Add(ahead) }
	st, err := f.subject.Beside(f.handles()[0], options)
	f.Must("open another handle", err)
	return st
}

// handleDeclaredNothing forgets a person and sweeps through a handle without declarations.
func handleDeclaredNothing(f *fixture) {
	f.write(people()...)
	f.write(record(brief, "old", value{}))
	f.Must("Run", store.Run(ctx, f.bare(0), store.Job{Forget: []string{"ann"}}))
	f.gone(wholes, "ann")
	for _, r := range f.find(by(cases)) {
		v := f.decode(r)
		f.Check(v.Of != "ann" && v.By != "ann", "record %q names ann", r.ID)
	}
	f.finds(by(cases, annKey))
	f.setTime(2 * time.Hour)
	f.Must("Sweep", f.bare(0).Sweep(ctx, time.Time{}))
	f.gone(brief, "old")
}

// clocksDiffer writes through handles whose clocks are four minutes ahead and behind.
func clocksDiffer(f *fixture) {
	const off = 4 * time.Minute
	handles := []store.Store{f.opened(f.bare(off), nil), f.opened(f.bare(-off), nil), f.store}
	var ids []string
	var added observations
	revision := uint64(0)
	for i := range 6 {
		id := fmt.Sprint(i)
		f.store = handles[i%3]
		next := f.write(over(revision, note("one", value{N: int64(i)})), note(id, value{}, "k"))
		f.Check(next > revision, "revision %d follows %d", next, revision)
		f.conflicts(over(revision, note("one", value{})))
		revision = next
		o := dated(time.Duration(i-5)*time.Minute, seen(id, fadingCell, 1))
		ids, added = append(ids, id), append(added, o)
		f.add(o)
		f.sweep(time.Time{})
		for _, f.store = range handles {
			f.has(notes, "one", value{N: int64(i)})
			f.finds(store.Query{Kind: notes, Keys: []string{"k"}, Oldest: true}, ids...)
			f.Equal("the duplicates", f.add(added...).Duplicates, ids)
		}
	}
	f.commit(store.Batch{Retract: []string{"0"}})
	for _, f.store = range handles {
		refs := []store.Ref{ref(notes, "one")}
		f.Equal("the sum", number(f.snapshot([]evidence.Cell{fadingCell}, refs).Parts), 5)
	}
}

// A cutContext ends when it was looked at a number of times.
type cutContext struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int64
}

func (c *cutContext) look() context.Context {
	if c.left.Add(-1) == 0 {
		c.end()
	}
	return c.Context
}

// Done implements [context.Context].
func (c *cutContext) Done() <-chan struct{} { return c.look().Done() }

// Err implements [context.Context].
func (c *cutContext) Err() error { return c.look().Err() }

// commitCutOff ends the context of a commit wherever the store looks at it. It reads by another
// handle what is left, repeats the commit, and opens the store again if it keeps things.
func commitCutOff(f *fixture) {
	const most = 60 // looks
	cells := []evidence.Cell{plainCell}
	counted := uint64(0)
	applied := func(id string) (whole bool) {
		s := f.snapshot(cells, []store.Ref{ref(notes, id)})
		whole = s.Records[0].Revision > 0
		f.Check(whole == (number(s.Parts) > counted), "commit %s is there in part: %+v", id, s)
		return whole
	}
	for looks := 1; looks <= most; looks++ {
		id := fmt.Sprint(looks)
		f.after("a commit that ended at look %d", looks)
		b := under(seen(id, plainCell, 1))
		b.ID, b.Records = "batch "+id, records{note(id, value{N: 1})}
		c := &cutContext{}
		c.Context, c.end = context.WithCancel(ctx)
		c.left.Store(int64(looks))
		_, err := f.store.Commit(c, b)
		if !errors.Is(err, heed.ErrOutcomeUnknown) {
			f.Check(applied(id) == (err == nil), "the error is %v, and it is there: %v", err, err != nil)
		}
		f.commit(b) // known or not
		f.Check(applied(id), "a repeated commit is not there")
		counted++
		f.Equal("the observations", number(f.snapshot(cells, nil).Parts), counted)
		done := c.left.Load() > 0
		c.end()
		if done {
			break
		}
	}
	if f.subject.Reopen != nil {
		f.store = f.opened(f.subject.Reopen(f.handles()[0], f.options))
		f.after("opening again")
		f.Equal("the observations", number(f.snapshot(cells, nil).Parts), counted)
		f.Equal("the records", uint64(len(f.find(by(notes)))), counted)
	}
}

// cellsCatchUp reads a cell alone through each handle, which may be a second old.
func cellsCatchUp(f *fixture) {
	handles := f.handles()
	for i := range uint64(4) {
		for _, st := range handles { // so that all have read what was
			f.Must("Read", st.Read(ctx, &store.Snapshot{}, []evidence.Cell{plainCell}, nil))
		}
		f.store = handles[i%uint64(len(handles))]
		f.add(seen(fmt.Sprint(i), plainCell, 1))
		f.Equal("the sum where it was committed", number(f.read(plainCell)), i+1)
		until := time.Now().Add(slowest) //nolint:forbidigo // how old a Read may be is real time
		for _, f.store = range handles {
			//nolint:forbidigo // the same
			for number(f.read(plainCell)) != i+1 && time.Now().Before(until) {
				time.Sleep(20 * time.Millisecond)
			}
			f.Equal("the sum after a second", number(f.read(plainCell)), i+1)
		}
	}
}

// slowest is how old cells alone may be, with room for a machine that is busy.
const slowest = 3 * time.Second
