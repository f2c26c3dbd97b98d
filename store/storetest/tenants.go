package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// tenants are the tenants in the rules. The first is no tenant.
var tenants = []string{"", "acme", "acme@b_%", "ann"}

// A view is the store as the tenant of a number sees it.
type view struct {
	n  int
	st store.Store
}

// views returns the views of all tenants. If the store is itself the view of a tenant, it ends the
// rule, because a tenant has no tenants.
func (f *fixture) views() (all []view) {
	for n, tenant := range tenants {
		st, err := store.Tenant(f.store, tenant)
		if faultOf(err) == "Store" {
			f.Skip("the store is the view of a tenant")
		}
		f.Must("Tenant", err)
		all = append(all, view{n, st})
	}
	return all
}

// through has a check made through each view, with the number of the tenant.
func (f *fixture) through(views []view, check func(n int)) {
	was := f.store
	defer func() { f.store, f.Prefix = was, f.where }()
	for _, v := range views {
		f.store, f.Prefix = v.st, fmt.Sprintf("%sfor tenant %q: ", f.where, tenants[v.n])
		check(v.n)
	}
}

// fillTenant gives each tenant the same ids, and values that differ.
func fillTenant(f *fixture, n int) {
	weighted := from("ann", seen("id", plainCell, 1))
	weighted.Weight = float64(n + 1)
	b := under(weighted, from("ann", seen("other", otherCell, 1)))
	b.ID, b.PartsOf = "batch", []evidence.Cell{plainCell}
	b.Records = records{
		note("a", value{N: int64(n)}, "k"),
		record(rare, "a", value{Of: "ann", N: int64(n)}, store.PersonKey("ann")),
		record(brief, "a", value{N: int64(n)}),
	}
	receipt := f.commit(b)
	f.Check(!receipt.Duplicate, "the batch of another tenant is known")
	f.Equal("the parts of the receipt", receipt.Parts, f.snapshot([]evidence.Cell{plainCell},
		nil).Parts)
	for i := range 5 {
		f.write(at(time.Duration(i)*time.Second, record(few, fmt.Sprint(i), value{N: int64(n)})))
	}
}

// hasFilled looks for what fillTenant wrote.
func hasFilled(f *fixture, n int) {
	got := f.snapshot([]evidence.Cell{plainCell}, []store.Ref{ref(notes, "a"), ref(rare, "")},
		by(notes, "k"), by(few))
	f.Equal("the sum", got.Parts[0].Tally.Mass, float64(n+1))
	f.Equal("the cell", got.Parts[0].Cell, plainCell)
	f.has(notes, "a", value{N: int64(n)})
	f.Check(got.Records[1].Revision > 0, "the version does not rise")
	f.Equal("the records that are found", len(got.Found[0]), 1)
	f.Equal("the kind of what is found", got.Found[0][0].Kind, notes)
	f.Equal("the records that a limit leaves", len(got.Found[1]), 3)
	f.Equal("the scopes", all(f, f.store.Scopes(ctx, plainCell.Kind)), []string{"scope"})
	history := all(f, f.store.History(ctx, plainCell))
	f.Equal("the history", len(history), 1)
	f.Equal("the id in the history", history[0].ID, "id")
	f.listed("the cells that name ann", f.cells(store.CellQuery{Naming: "ann"}), plainCell, otherCell)
}

// tenantsApart has each tenant see and change what is its own.
func tenantsApart(f *fixture) {
	views := f.views()
	f.through(views, func(n int) { fillTenant(f, n) })
	f.sweep(time.Time{})
	f.through(views, func(n int) {
		hasFilled(f, n)
		known := under(seen("id", otherCell, 1))
		f.Equal("what is known", f.commit(known).Duplicates, []string{"id"})
		f.Check(f.commit(store.Batch{ID: "batch"}).Duplicate, "the batch is not known")
	})

	// One takes back, forgets and sweeps. The others keep what they had.
	f.through(views[1:2], func(int) {
		f.commit(store.Batch{Retract: []string{"other"}})
		f.run(store.Job{Forget: []string{"ann"}, At: start})
		f.Equal("the cells that name ann", f.cells(store.CellQuery{Naming: "ann"}), nil)
		f.has(rare, "a", value{N: 1})
		f.Check(errors.Is(f.refused(store.Batch{Retract: []string{"unknown"}}), heed.ErrNotFound),
			"what no tenant has can be retracted")
	})
	others := slices.Concat(views[:1], views[2:])
	f.through(others, func(n int) {
		hasFilled(f, n)
		f.has(rare, "a", value{Of: "ann", N: int64(n)})
	})
	f.setTime(2 * time.Hour)
	f.sweep(time.Time{})
	f.through(others, func(int) { f.Equal("what is past its limit", len(f.find(by(brief))), 0) })
	f.through(views[:1], func(int) {
		f.Equal("the kinds", len(all(f, f.store.Find(ctx, store.Query{Kind: store.Declarations}))),
			len(kinds)+3) // three kinds of jobs
	})
}

// tenantLeaves takes a tenant out, by a job that is cut off after each of its commits.
func tenantLeaves(f *fixture) {
	for cut := 1; ; cut++ {
		f := f.fresh()
		views := f.views()
		f.through(views, func(n int) {
			fillTenant(f, n)
			if n == 1 {
				f.write(repeat(200, func(i int) store.Record {
					return note(fmt.Sprint(i), value{}, "k")
				})...)
			}
		})
		f.sweep(time.Time{})
		cutAt := &cutStore{f.store, cut}
		err := store.Run(ctx, cutAt, store.Job{Leave: "acme", At: start})
		if cutAt.left < 0 {
			f.through(views[1:2], func(int) {
				var s store.Snapshot
				for what, err := range map[string]error{
					"a read":   f.store.Read(ctx, &s, nil, []store.Ref{ref(notes, "a")}),
					"a commit": f.refused(store.Batch{Records: records{note("new", value{})}}),
				} {
					f.Check(errors.Is(err, evidence.ErrForgotten), "%s: %v", what, err)
				}
				f.Equal("what was read", len(s.Records), 0)
			})
			f.sweep(time.Time{})
		} else {
			f.Must("Run", err)
		}
		f.Equal("the cells of who left", f.cells(store.CellQuery{Kind: store.KindIn("", "acme")}), nil)
		f.through(views[1:2], func(int) {
			cells := []evidence.Cell{plainCell, otherCell}
			f.Equal("the parts of who left", len(f.snapshot(cells, nil).Parts), 0)
			for _, kind := range kinds {
				f.Equal(kind.Name+" of who left", len(f.find(by(kind.Name))), 0)
			}
			f.write(note("a", value{Text: "a new beginning"}))
		})
		f.through(slices.Concat(views[:1], views[2:]), func(n int) { hasFilled(f, n) })
		if cutAt.left >= 0 {
			f.Check(cut > 3, "the tenant has left after %d commits", cut)
			return
		}
	}
}
