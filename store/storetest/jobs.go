package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// jobNeeds looks at what jobs ask a store for.
func jobNeeds(f *fixture) {
	declared := make(map[string]store.Kind)
	for _, r := range all(f, f.store.Find(ctx, store.Query{Kind: store.Declarations})) {
		kind, err := store.Decode[store.Kind](r.Body)
		f.Must("decode a declaration", err)
		declared[r.ID] = kind
	}
	for _, kind := range kinds {
		f.Equal("the declaration of "+kind.Name, declared[kind.Name], kind)
	}

	// A cell without evidence is in a list that asks for it, and goes with a reset.
	f.commit(restart(plainCell, 0))
	f.add(from("ann", seen("1", otherCell, 1)))
	q := store.CellQuery{Kind: plain, Scope: "scope"}
	f.Equal("the cells", f.cells(q), []evidence.Cell{otherCell})
	q.Empty = true
	f.listed("the cells with empty ones", f.cells(q), plainCell, otherCell)
	f.run(store.Job{Reset: []store.Selection{{Kind: plain, Scope: "scope"}}})
	f.Equal("the cells after a reset", f.cells(q), nil)
	before := dated(-time.Hour, seen("before", plainCell, 1))
	f.add(before)
	f.expect(observations{before}, plainCell)

	// What names a source: a history, a sum, and a cell with the source alone.
	nothing := from("ann", seen("nothing", fadingCell, 1))
	nothing.Weight = 0
	named := evidence.Cell{Kind: fading, Scope: "scope", Item: "ann"}
	f.add(nothing, from("ann", seen("2", originCell, 1)), from("bob", seen("3", otherCell, 1)))
	f.commit(restart(named, 0))
	want := []evidence.Cell{fadingCell, originCell, named}
	f.listed("the cells that name ann", f.cells(store.CellQuery{Naming: "ann"}), want...)
	f.run(store.Job{Expunge: []string{"ann"}})
	f.Equal("the cells that name ann", f.cells(store.CellQuery{Naming: "ann"}), nil)

	// What the history no longer has.
	f.add(crowd("", otherCell, 0)...)
	f.sweep(time.Time{})
	lost := f.cells(store.CellQuery{Kind: plain, Scope: "scope", Lost: true})
	rebuild := store.Batch{Policies: policies, Rebuild: []evidence.Cell{otherCell}}
	_, err := f.store.Commit(ctx, rebuild)
	f.Check(err == nil || errors.Is(err, evidence.ErrForgotten), "a rebuild: %v", err)
	f.Check((err == nil) == (len(lost) == 0), "lost are %v, and a rebuild says %v", lost, err)
	job := store.Job{Rebuild: map[string]evidence.Policy{plain: {}}}
	err = store.Run(ctx, f.store, job)
	f.Check(errors.Is(err, evidence.ErrForgotten) == (len(lost) > 0), "a job that rebuilds: %v", err)
}

// cells returns the cells that a query lists, each once.
func (f *fixture) cells(q store.CellQuery) (cells []evidence.Cell) {
	for _, p := range all(f, f.store.List(ctx, q)) {
		cells = append(cells, p.Cell)
	}
	return slices.Compact(cells)
}

// listed checks that there are these cells, in order.
func (f *fixture) listed(what string, got []evidence.Cell, want ...evidence.Cell) {
	slices.SortFunc(want, evidence.Cell.Compare)
	f.Equal(what, got, want)
}

// A cutStore is a handle whose program ends after a number of commits.
type cutStore struct {
	store.Store
	left int
}

func (s *cutStore) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if s.left--; s.left < 0 {
		return nil, ErrFailed
	}
	return s.Store.Commit(ctx, batches...)
}

// The cells and records that the job of jobCutOff changes, and some that it leaves alone.
const (
	cellsOfJob   = 6 // of each sort, with so many observations that they are two steps
	eachOfJob    = 90
	recordsOfJob = 300
)

func (f *fixture) fillForJob() (cells []evidence.Cell, job store.Job) {
	var all observations
	add := func(kind, scope, source string, n int) {
		for i := range cellsOfJob {
			c := evidence.Cell{Kind: kind, Scope: scope, Item: fmt.Sprint(i)}
			cells = append(cells, c)
			for k := range n {
				all = append(all, from(source, seen(fmt.Sprint(kind, scope, source, i, " ", k), c, 1)))
			}
		}
	}
	add(plain, "reset", "", eachOfJob)
	add(plain, "stays", "", 1)
	add(origin, "s", "ann", eachOfJob)
	add(origin, "s", "bob", 2)
	add(fading, "s", "", 2)
	f.add(all...)
	batch := store.Batch{Records: records{record(cases, "bob", value{Of: "bob"}, bobKey)}}
	for i := range recordsOfJob {
		batch.Records = append(batch.Records, record(cases, fmt.Sprint(i), value{Of: "ann"}, annKey))
	}
	f.commit(batch)
	return cells, store.Job{
		Rebuild: map[string]evidence.Policy{fading: {HalfLife: 2 * halfLife}},
		Reset:   []store.Selection{{Kind: plain, Scope: "reset"}}, Forget: []string{"ann"},
	}
}

// image returns what each cell and each record is like.
func (f *fixture) image(cells []evidence.Cell) map[string]string {
	image := make(map[string]string)
	for _, c := range cells {
		image[fmt.Sprint(c)] = fmt.Sprintf("%+v %d", f.read(c), len(f.history(c)))
	}
	for _, r := range f.find(by(cases)) {
		text, err := r.Body.JSON()
		f.Must("JSON", err)
		image[r.ID] = fmt.Sprintf("%s %q", text, r.Keys)
	}
	return image
}

// jobCutOff ends a program after each commit of a job, and sweeps then.
func jobCutOff(f *fixture) {
	jobs := store.Query{Kind: "heed.job"}
	cells, job := f.fillForJob()
	before := f.image(cells)
	f.run(job)
	after := f.image(cells)
	f.Check(!sameJSON(before, after), "the job changes nothing")
	f.finds(jobs)
	for commits := 0; ; commits++ {
		f = f.fresh()
		f.after("a job that ended after %d commits", commits)
		cells, job := f.fillForJob()
		err := store.Run(ctx, &cutStore{f.store, commits}, job)
		if err == nil {
			f.Check(commits > 8, "a large job has %d commits", commits)
			return
		}
		for name, is := range f.image(cells) {
			whole := is == before[name] || is == after[name]
			f.Check(whole, "%s is %s, and was %s before and is %s after", name, is, before[name],
				after[name])
		}
		begun := len(f.find(jobs)) > 0
		f.Check(begun == (commits > 0), "the job has begun: %v", begun)
		f.sweep(time.Time{})
		want := after
		if !begun {
			want = before
		}
		f.Equal("the store after a sweep", f.image(cells), want)
		f.finds(jobs)
	}
}
