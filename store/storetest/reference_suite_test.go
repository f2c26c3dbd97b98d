package storetest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// good returns the reference as a subject. Each of its handles is seen through a view.
func good(perCell int, view func(*reference) store.Store) storetest.Subject {
	again := func(s store.Store, _ storetest.Options) (store.Store, error) {
		if n, ok := s.(*neighbour); ok {
			s = n.of
		}
		return view(s.(*reference).reopen()), nil
	}
	return storetest.Subject{
		New: func(o storetest.Options) (store.Store, error) {
			return view(newReference(o, perCell)), nil
		},
		Reopen: again, Beside: again,
	}
}

func itself(r *reference) store.Store { return r }

// TestReference is one half of the proof: a good store passes, whether it forgets history or not.
func TestReference(t *testing.T) {
	t.Run("bounded", func(t *testing.T) { storetest.Run(t, good(100, itself)) })
	if raced { // what is bounded has all of the locks
		return
	}
	t.Run("unbounded", func(t *testing.T) { require.NoError(t, storetest.Check(good(0, itself))) })
}

// TestTenantIsAStore has the view of a tenant pass like a store, next to tenants with the same ids.
func TestTenantIsAStore(t *testing.T) {
	if raced {
		t.Skip("the locks are the reference's")
	}
	storetest.Run(t, good(100, func(r *reference) store.Store {
		n := &neighbour{of: r, others: []store.Store{r}}
		for _, tenant := range []string{"acme2", "acme"} {
			view, err := store.Tenant(r, tenant)
			require.NoError(t, err)
			n.Store, n.others = view, append(n.others, view)
		}
		n.others = n.others[:2]
		return n
	}))
}

// A neighbour is the view of one tenant of a store in which another tenant, and the store itself,
// do the same at the same time: each commit first adds what it adds there, under the same ids.
type neighbour struct {
	store.Store
	of     *reference
	others []store.Store
}

// Root has [store.Tenant] see a view.
func (n *neighbour) Root() (root store.Store, tenant string) { return n.of, "acme" }

func (n *neighbour) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	echo := make([]store.Batch, len(batches))
	for i, b := range batches {
		echo[i] = store.Batch{ID: b.ID, Policies: b.Policies, Observations: b.Observations}
		for _, r := range b.Records {
			if r.Revision = store.Once; !r.Body.IsZero() && r.Kind != "heed.job" {
				echo[i].Records = append(echo[i].Records, r)
			}
		}
	}
	for _, other := range n.others { // which may refuse it, as the tenant may
		_, _ = other.Commit(ctx, slices.Clone(echo)...)
	}
	return n.Store.Commit(ctx, batches...)
}
