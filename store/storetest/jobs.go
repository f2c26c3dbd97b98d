package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// jobNeeds looks at what jobs ask a store for.
func jobNeeds(f *fixture) {
	declared := f.declarations()
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

// declarations returns the kinds that handles declared, by name.
func (f *fixture) declarations() map[string]store.Kind {
	declared := make(map[string]store.Kind)
	for _, r := range f.find(by(store.Declarations)) {
		kind, err := store.Decode[store.Kind](r.Body)
		f.Must("decode a declaration", err)
		declared[r.ID] = kind
	}
	return declared
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

// ending is a handle whose program ends after a number of commits.
func (f *fixture) ending(commits int) store.Store {
	ended := &Failing{away: true}
	return &Failing{pick: func(method string) store.Store {
		if method == "Commit" {
			commits--
		}
		if commits < 0 {
			return ended
		}
		return f.store
	}}
}

// jobCutOff ends a program when its job has begun, and sweeps then.
func jobCutOff(f *fixture) {
	f.write(people()...)
	f.add(from("ann", seen("1", originCell, 1)), from("bob", seen("2", originCell, 1)))
	err := store.Run(ctx, f.ending(1), store.Job{Forget: []string{"ann"}})
	f.Check(errors.Is(err, ErrFailed), "Run: %v, want %v", err, ErrFailed)
	jobs := by("heed.job")
	f.Equal("the jobs that have begun", len(f.find(jobs)), 1)
	f.sweep(time.Time{})
	f.finds(jobs)
	f.finds(by(cases, annKey))
	f.gone(wholes, "ann")
	f.expect(observations{from("bob", seen("2", originCell, 1))}, originCell)
}
