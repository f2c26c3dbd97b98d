package store_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A step that has failed runs again if a package can do without what has failed.
func TestAgain(t *testing.T) {
	no := errors.New("no")
	runs, asked := 0, 0
	step := func(tx *store.Tx) error {
		runs++
		tx.Again(func(err error) bool {
			asked++
			assert.ErrorIs(t, err, no)
			return runs < 3
		})
		tx.Before(func() error {
			if runs < 3 {
				return no
			}
			return nil
		})
		return nil
	}
	require.NoError(t, store.Do(t.Context(), &memstore.Store{}, step))
	assert.Equal(t, []int{3, 2}, []int{runs, asked})
	runs, asked = 2, 0
	require.ErrorIs(t, store.Do(t.Context(), &memstore.Store{}, func(tx *store.Tx) error {
		require.NoError(t, step(tx))
		return no
	}), no)
	assert.Equal(t, []int{3, 1}, []int{runs, asked})
}
