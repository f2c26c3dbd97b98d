package stores

import (
	"fmt"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// CheckDeclared returns a [*heed.InputError] for the first record of a kind that was not declared.
// It names the record like [store.Validate].
func CheckDeclared(batches []store.Batch, declared func(kind string) bool) error {
	for i := range batches {
		for k := range batches[i].Records {
			kind := batches[i].Records[k].Kind
			if declared(kind) {
				continue
			}
			field := fmt.Sprintf("Records[%d].Kind", k)
			if len(batches) > 1 {
				field = fmt.Sprintf("Batches[%d].%s", i, field)
			}
			return &heed.InputError{Field: field, Reason: fmt.Sprintf("%q must be declared first", kind)}
		}
	}
	return nil
}

// Sign returns which of a tally's three counts an observation of this reward is of: 0 is positive,
// 1 negative and 2 neutral.
func Sign(reward float64) int {
	switch {
	case reward > 0.5:
		return 0
	case reward < 0.5:
		return 1
	default:
		return 2
	}
}

// TakesMuch reports whether a batch does more than to take single ids back.
func TakesMuch(b *store.Batch) bool {
	return len(b.Reset)+len(b.Rebuild)+len(b.Restart)+len(b.Expunge) > 0
}

// TenantsOf returns the tenants whose evidence a batch takes away by more than ids. It has "" for
// cells without a tenant. The versions of all their kinds rise, also of kinds without records,
// because a copy may be empty.
func TenantsOf(b *store.Batch) map[string]bool {
	all := make(map[string]bool)
	add := func(c evidence.Cell) {
		_, tenant := store.KindOf(c.Kind)
		all[tenant] = true
	}
	for _, c := range slices.Concat(b.Reset, b.Rebuild) {
		add(c)
	}
	for _, r := range b.Restart {
		add(r.Cell)
	}
	for _, e := range b.Expunge {
		add(e.Cell)
	}
	return all
}
