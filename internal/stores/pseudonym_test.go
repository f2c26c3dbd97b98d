package stores_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// Without the store there is no key: the zero key would leave every name as it is.
func TestPseudonymKeyWithoutTheStore(t *testing.T) {
	st := &storetest.Failing{Store: &memstore.Store{}}
	st.SetAway(true)
	_, err := stores.PseudonymKeyIn(store.Reading(t.Context(), st))
	assert.Error(t, err)
}
