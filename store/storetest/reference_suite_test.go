package storetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// TestReference is one half of the proof: a good store passes, whether it forgets history or not.
func TestReference(t *testing.T) {
	subject := func(perCell int) storetest.Subject {
		return storetest.Subject{
			Tenants: !raced,
			New: func(o storetest.Options) (store.Store, error) {
				return newReference(o, perCell),
					nil
			},
			Reopen: func(s store.Store, _ storetest.Options) (store.Store,
				error) {
				return s.(*reference).reopen(), nil
			},
			Beside: func(s store.Store, _ storetest.Options) (store.Store, error) {
				return s.(*reference).reopen(), nil
			},
		}
	}
	t.Run("bounded", func(t *testing.T) { storetest.Run(t, subject(100)) })
	if raced { // what is bounded has all of the locks
		return
	}
	t.Run("unbounded", func(t *testing.T) { require.NoError(t, storetest.Check(subject(0))) })
}
