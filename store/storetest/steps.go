package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

var stepRules = []rule{
	{Name: "of concurrent steps on a record none is lost", Check: stepsConcurrent},
	{Name: "a step takes all or nothing", Check: stepsWhole},
	{Name: "what a step has written is read and found", Check: stepsSeen},
	{Name: "steps that are disturbed end as if they were not", Check: stepsDisturbed},
	{Name: "a step whose context ends writes nothing", Check: stepsCancelled},
}

// valuesOf is the typed view of a kind of the suite. A value's Text is its id.
func valuesOf(kind string) store.View[value] {
	return store.View[value]{Kind: store.Kind{Name: kind}, Place: place}
}

var (
	noteView = valuesOf(notes)
	caseView = valuesOf(cases)
)

// do runs a step that must succeed.
func (f *fixture) do(st store.Store, step func(*store.Tx) error) {
	f.Helper()
	if err := store.Do(ctx, st, step); err != nil {
		f.Fatalf("Do: %v", err)
	}
}

// fresh reads records and parts together, which no cache may answer.
func (f *fixture) fresh(st store.Store, c evidence.Cell, ids ...string) (values []value, n uint64) {
	f.Helper()
	var s store.Snapshot
	var refs []store.Ref
	for _, id := range ids {
		refs = append(refs, ref(notes, id))
	}
	if err := st.Read(ctx, &s, []evidence.Cell{c}, refs); err != nil {
		f.Fatalf("Read: %v", err)
	}
	for _, r := range s.Records {
		row, err := noteView.Of(r)
		if err != nil {
			f.Fatalf("%v", err)
		}
		values = append(values, row.Value)
	}
	for _, part := range s.Parts {
		n += part.Tally.N()
	}
	return values, n
}

// stepsConcurrent counts in one record by steps of many callers, on each handle of the store.
func stepsConcurrent(t tb, s Subject) {
	f := newFixture(t, s)
	const callers, each = 8, 8
	c := cell(plain, "i", "n")
	handles := f.handles()
	f.parallel(callers, func(caller int) error {
		for i := range each {
			err := store.Do(ctx, handles[(caller+i)%len(handles)], func(tx *store.Tx) error {
				tx.Want(store.Wants{Cells: []evidence.Cell{c}})
				row, err := noteView.In(tx, "counter")
				if err != nil {
					return err
				}
				runtime.Gosched() // so that others have read the same, on one processor, too
				v := value{Text: "counter", N: row.Value.N + 1}
				noteView.Put(tx, v, row.Revision)
				tx.Observe(observation(fmt.Sprintf("%d-%d", caller, i), c, 1))
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, st := range handles {
		got, n := f.fresh(st, c, "counter")
		if got[0].N != callers*each || n != callers*each {
			t.Errorf("after %d steps a record counts %d, and there are %d observations",
				callers*each, got[0].N, n)
		}
	}
}

// stepsWhole moves something between records while others look: the sum stays as it is. Steps that
// are refused leave nothing.
func stepsWhole(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	handles := f.handles()
	ids := []string{"a", "b", "c"}
	for _, id := range ids {
		f.write(record(notes, id, value{Text: id, N: 100}))
	}
	const callers, each = 4, 6
	f.parallel(callers, func(caller int) error {
		for i := range each {
			if err := f.move(handles[caller%len(handles)], c, ids, caller, i); err != nil {
				return err
			}
		}
		return nil
	})
	values, n := f.fresh(f.store, c, ids...)
	if sum := values[0].N + values[1].N + values[2].N; sum != 300 || n != callers*each {
		t.Errorf("after moves between records their sum is %d, want 300, with %d observations of %d",
			sum, n, callers*each)
	}
	err := store.Do(ctx, f.store, func(tx *store.Tx) error {
		noteView.Put(tx, value{Text: "new"}, 0)
		tx.Observe(observation("new", c, 1))
		tx.Put(record("suite.undeclared", "new", value{}))
		return nil
	})
	if fault := (*heed.InputError)(nil); !errors.As(err, &fault) {
		t.Errorf("a step with a record of an undeclared kind is refused with %v", err)
	}
	f.gone("after a step that was refused", notes, "new")
	if _, after := f.fresh(f.store, c, "a"); after != n {
		t.Errorf("a step that was refused left %d observations", after-n)
	}
}

// move takes one from a record and gives it to another, and checks the sum of all three.
func (f *fixture) move(st store.Store, c evidence.Cell, ids []string, caller, i int) error {
	from, to := (caller+i)%3, (caller+i+1+caller%2)%3
	var sum int64
	err := store.Do(ctx, st, func(tx *store.Tx) error {
		tx.Want(store.Wants{
			Refs: []store.Ref{noteView.Ref(ids[0]), noteView.Ref(ids[1]), noteView.Ref(ids[2])},
		})
		sum = 0
		for k, id := range ids {
			row, err := noteView.In(tx, id)
			if err != nil {
				return err
			}
			sum += row.Value.N
			switch k {
			case from:
				row.Value.N--
			case to:
				row.Value.N++
			default:
				tx.Expect(noteView.Expect(id, row.Revision))
				continue
			}
			noteView.Put(tx, row.Value, row.Revision)
		}
		runtime.Gosched() // so that others move the same
		tx.Observe(observation(fmt.Sprintf("%d-%d", caller, i), c, 1))
		return nil
	})
	if err == nil && sum != 300 {
		f.Errorf("a step that was committed had read records whose sum is %d, want 300", sum)
	}
	return err
}

// stepsSeen writes, changes and removes records of two kinds in one step, and looks for them on
// each handle.
func stepsSeen(t tb, s Subject) {
	f := newFixture(t, s)
	handles := f.handles()
	for i, st := range handles {
		a, b, gone := fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("gone", i)
		key := fmt.Sprint("of=", i)
		revision := f.write(over(record(notes, gone, value{Text: gone}, key), 0))
		var receipt store.Receipt
		f.do(st, func(tx *store.Tx) error {
			r := noteView.Record(value{Text: a, N: 1}, 0)
			r.Keys = []string{key}
			tx.Put(r)
			caseView.Put(tx, value{Text: b, N: 2}, 0)
			tx.Put(noteView.Removal(gone, revision))
			tx.Then(func(r store.Receipt, _ error) { receipt = r })
			return nil
		})
		for _, other := range handles {
			var read store.Snapshot
			refs := []store.Ref{noteView.Ref(a), caseView.Ref(b), noteView.Ref(gone)}
			if err := other.Read(
				ctx, &read, nil, refs, store.Query{Kind: notes, Keys: []string{key}},
			); err != nil {
				t.Fatalf("Read: %v", err)
			}
			for k, want := range []uint64{receipt.Revision, receipt.Revision, 0} {
				if got := read.Records[k].Revision; got != want {
					t.Errorf("after a step record %v has the revision %d, want %d", refs[k], got, want)
				}
			}
			var found []string
			for r, err := range other.Find(ctx, store.Query{Kind: notes, Keys: []string{key}}) {
				if err != nil {
					t.Fatalf("Find: %v", err)
				}
				found = append(found, r.ID)
			}
			if len(read.Found) != 1 || len(read.Found[0]) != 1 || !slices.Equal(found, []string{a}) {
				t.Errorf("after a step Find yields %q and Read finds %d, want only %q",
					found, len(read.Found), a)
			}
		}
	}
}

// A disturbance is what happens to one commit of a store.
type disturbance struct {
	name string
	do   func(
		d *disturbed, commit func() ([]store.Receipt, error), batches []store.Batch,
	) ([]store.Receipt, error)
	ends bool // Do returns the error, and the caller calls it again
}

var errBroken = errors.New("the suite broke this commit")

var disturbances = []disturbance{
	{name: "no disturbance"},
	{name: "another writer is quicker", do: (*disturbed).overtake},
	{name: "a commit fails", ends: true, do: func(
		_ *disturbed, _ func() ([]store.Receipt, error), _ []store.Batch,
	) ([]store.Receipt, error) {
		return nil, errBroken
	}},
	{name: "the connection breaks before a commit", do: func(
		_ *disturbed, _ func() ([]store.Receipt, error), _ []store.Batch,
	) ([]store.Receipt, error) {
		return nil, fmt.Errorf("%w: %w", heed.ErrOutcomeUnknown, errBroken)
	}},
	{name: "the connection breaks after a commit", do: func(
		_ *disturbed, commit func() ([]store.Receipt, error), _ []store.Batch,
	) ([]store.Receipt, error) {
		if _, err := commit(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", heed.ErrOutcomeUnknown, errBroken)
	}},
}

// disturbed is a store that disturbs the commit number at.
type disturbed struct {
	store.Store
	with    disturbance
	at      int
	commits int
}

func (d *disturbed) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	commit := func() ([]store.Receipt, error) { return d.Store.Commit(ctx, batches...) }
	if d.commits++; d.commits != d.at || d.with.do == nil {
		return commit()
	}
	return d.with.do(d, commit, batches)
}

// overtake writes the records again that a commit is about to write, so that its revisions are not
// current.
func (d *disturbed) overtake(
	commit func() ([]store.Receipt, error), batches []store.Batch,
) ([]store.Receipt, error) {
	var own store.Batch
	for i := range batches {
		for k := range batches[i].Records {
			var s store.Snapshot
			if err := d.Store.Read(ctx, &s, nil, []store.Ref{batches[i].Records[k].Ref}); err != nil {
				return nil, err
			}
			if s.Records[0].Revision > 0 {
				own.Records = append(own.Records, s.Records[0])
			}
		}
	}
	if _, err := d.Store.Commit(ctx, own); err != nil {
		return nil, fmt.Errorf("write over: %w", err)
	}
	return commit()
}

// stepsDisturbed runs a few steps, and disturbs each of their commits once in each way. What is
// stored in the end is the same.
func stepsDisturbed(t tb, s Subject) {
	f := newFixture(t, s)
	want := ""
	for n, d := range disturbances {
		for at := 1; ; at++ {
			run := fmt.Sprintf("%d-%d-", n, at)
			st := &disturbed{Store: f.store, with: d, at: at}
			for i := range 6 {
				err := store.Do(ctx, st, func(tx *store.Tx) error { return countOnce(tx, run, i) })
				if d.ends && errors.Is(err, errBroken) {
					err = store.Do(ctx, st, func(tx *store.Tx) error { return countOnce(tx, run, i) })
				}
				if err != nil {
					t.Fatalf("%s, at commit %d: step %d: %v", d.name, at, i, err)
				}
			}
			if want == "" {
				want = f.counted(run)
			}
			if got := f.counted(run); got != want {
				t.Errorf("%s, at commit %d: the store has %s, want %s", d.name, at, got, want)
			}
			if st.commits < at || d.do == nil {
				break
			}
		}
	}
}

// countOnce is a step that counts in a record and in a cell. It is made in three ways to be safe to
// repeat.
func countOnce(tx *store.Tx, run string, i int) error {
	c := cell(plain, "i", run)
	id, step := run+"counter", fmt.Sprint(run, i)
	tx.Want(store.Wants{
		Refs: []store.Ref{noteView.Ref(id), noteView.Ref(step)}, Cells: []evidence.Cell{c},
	})
	row, err := noteView.In(tx, id)
	if err != nil {
		return err
	}
	v := value{Text: id, N: row.Value.N + 1, Sources: slices.Clone(row.Value.Sources)}
	switch i % 3 {
	case 0: // the whole step counts once
		tx.Add(store.Batch{ID: "batch " + step})
	case 1: // the record has what it has counted
		if slices.Contains(row.Value.Sources, step) {
			return nil
		}
		v.Sources = append(v.Sources, step)
	default: // another record is new only once
		made, err := noteView.In(tx, step)
		if err != nil || made.Revision > 0 {
			return err
		}
		noteView.Put(tx, value{Text: step}, 0)
	}
	noteView.Put(tx, v, row.Revision)
	tx.Observe(observation(step, c, 1))
	return nil
}

// counted describes what the steps of a run have stored.
func (f *fixture) counted(run string) string {
	f.Helper()
	c := cell(plain, "i", run)
	ids := []string{run + "counter"}
	for i := range 6 {
		ids = append(ids, fmt.Sprint(run, i))
	}
	values, n := f.fresh(f.store, c, ids...)
	var found []string
	for _, o := range all(f, f.store.History(ctx, c)) {
		found = append(found, o.ID)
	}
	slices.Sort(found)
	text := fmt.Sprintf("%+v, %d observations, history %q", values, n, found)
	return strings.ReplaceAll(text, run, "")
}

// stepsCancelled ends the context of a step before its commit.
func stepsCancelled(t tb, s Subject) {
	f := newFixture(t, s)
	c := cell(plain, "i", "n")
	within, cancel := context.WithCancel(ctx)
	err := store.Do(within, f.store, func(tx *store.Tx) error {
		noteView.Put(tx, value{Text: "late"}, 0)
		tx.Observe(observation("late", c, 1))
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, heed.ErrOutcomeUnknown) {
		t.Errorf("a step whose context ended before its commit returns %v", err)
	}
	f.gone("after a step whose context ended", notes, "late")
	if n := f.sums(c).Mass; n != 0 {
		t.Errorf("a step whose context ended left evidence of %v", n)
	}
}
