package storetest

import (
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// tenants are the tenants in the rules. The first is no tenant.
var tenants = []string{"", "acme", "acme@b_%", "ann"}

// through has a check made through the view of each tenant, with its number. If the store is itself
// the view of a tenant, it ends the rule, because a tenant has no tenants.
func (f *fixture) through(numbers []int, check func(n int)) {
	was := f.store
	defer func() { f.store, f.Prefix = was, f.where }()
	for _, n := range numbers {
		view, err := store.Tenant(was, tenants[n])
		if faultOf(err) == "Store" {
			f.Skip("the store is the view of a tenant")
		}
		f.Must("Tenant", err)
		f.store, f.Prefix = view, fmt.Sprintf("%sfor tenant %q: ", f.where, tenants[n])
		check(n)
	}
}

// fillTenant gives each tenant the same ids, and values that differ.
func fillTenant(f *fixture, n int) {
	weighted := from("ann", seen("id", plainCell, 1))
	weighted.Weight = float64(n + 1)
	b := under(weighted, from("ann", seen("other", otherCell, 1)))
	b.ID = "batch"
	b.Records = records{
		record(rare, "a", value{Of: "ann", N: int64(n)}, annKey), record(brief, "a", value{}),
	}
	for i := range 5 {
		b.Records = append(b.Records, late(few, fmt.Sprint(i), i))
	}
	receipt := f.commit(b)
	f.Check(!receipt.Duplicate && len(receipt.Duplicates) == 0, "another tenant's ids are known")
}

// hasFilled looks for what fillTenant wrote.
func hasFilled(f *fixture, n int) {
	got := f.snapshot([]evidence.Cell{plainCell}, []store.Ref{ref(rare, "")}, by(rare, annKey),
		by(few))
	f.Equal("the sum", got.Parts[0].Tally.Mass, float64(n+1))
	f.Equal("the cell", got.Parts[0].Cell, plainCell)
	f.has(rare, "a", value{Of: "ann", N: int64(n)})
	f.Check(got.Records[0].Revision > 0, "the version does not rise")
	f.Equal("the records that are found", len(got.Found[0]), 1)
	f.Equal("the kind of what is found", got.Found[0][0].Kind, rare)
	f.Equal("the records that a limit leaves", len(got.Found[1]), 3)
	f.Equal("the scopes", all(f, f.store.Scopes(ctx, plainCell.Kind)), []string{"scope"})
	history := f.history(plainCell)
	f.Check(len(history) == 1 && history[0].ID == "id", "the history is %+v", history)
	f.listed("the cells that name ann", f.cells(store.CellQuery{Naming: "ann"}), plainCell, otherCell)
	f.Equal("what is known", f.add(seen("id", otherCell, 1)).Duplicates, []string{"id"})
	f.Check(f.commit(store.Batch{ID: "batch"}).Duplicate, "the batch is not known")
}

// tenantsApart has one tenant forget somebody, and leave. The others keep what they had.
func tenantsApart(f *fixture) {
	every, one, others := []int{0, 1, 2, 3}, []int{1}, []int{0, 2, 3}
	f.through(every, func(n int) { fillTenant(f, n) })
	f.sweep(time.Time{})
	f.through(every, func(n int) { hasFilled(f, n) })
	f.through(one, func(n int) {
		f.commit(store.Batch{Retract: []string{"other"}})
		f.run(store.Job{Forget: []string{"ann"}, At: start})
		f.Equal("the cells that name ann", f.cells(store.CellQuery{Naming: "ann"}), nil)
		f.has(rare, "a", value{N: int64(n)})
		f.add(seen("new", plainCell, 1), seen("new", cell(origin, "i", "n"), 1))
	})
	f.through(others, func(n int) { hasFilled(f, n) })

	f.run(store.Job{Leave: tenants[1], At: start})
	left := store.CellQuery{Kind: store.KindIn("", tenants[1])}
	f.Equal("the cells of who left", f.cells(left), nil)
	f.through(one, func(int) {
		f.Equal("the parts of who left", f.read(plainCell, otherCell, originCell), nil)
		for _, kind := range kinds {
			f.Equal(kind.Name+" of who left", len(f.find(by(kind.Name))), 0)
		}
		f.write(note("a", value{Text: "a new beginning"}))
	})
	f.through(others, func(n int) { hasFilled(f, n) })

	f.setTime(2 * time.Hour)
	f.sweep(time.Time{})
	f.through(others, func(int) { f.finds(by(brief)) })
	for kind := range f.declarations() {
		_, tenant := store.KindOf(kind)
		f.Equal("the tenant of the declared kind "+kind, tenant, "")
	}
}
