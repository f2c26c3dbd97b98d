package storetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// TestReference is one half of the proof: a good store passes, whether it forgets history or not.
func TestReference(t *testing.T) {
	for name, perCell := range map[string]int{"bounded": 100, "unbounded": 0} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Subject{
				New:    func(o storetest.Options) (store.Store, error) { return newReference(o, perCell), nil },
				Reopen: func(s store.Store, _ storetest.Options) (store.Store, error) { return s.(*reference).reopen(), nil },
			})
		})
	}
	require.NoError(t, storetest.Check(storetest.Subject{
		New: func(o storetest.Options) (store.Store, error) { return newReference(o, 0), nil },
	}))
}
