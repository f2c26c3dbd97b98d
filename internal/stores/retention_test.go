package stores_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

const day = 24 * time.Hour

func TestDefaults(t *testing.T) {
	for _, test := range []struct{ set, want store.Retention }{
		{store.Retention{},
			store.Retention{HistoryPerCell: 100, HistoryFor: 30 * day, IDsFor: 30 * day}},
		{store.Retention{HistoryFor: 90 * day},
			store.Retention{HistoryPerCell: 100, HistoryFor: 90 * day, IDsFor: 90 * day}},
		{store.Retention{HistoryFor: day},
			store.Retention{HistoryPerCell: 100, HistoryFor: day, IDsFor: 30 * day}},
		{store.Retention{HistoryPerCell: 7, HistoryFor: 2 * day, IDsFor: 3 * day},
			store.Retention{HistoryPerCell: 7, HistoryFor: 2 * day, IDsFor: 3 * day}},
	} {
		stores.Defaults(&test.set)
		assert.Equal(t, test.want, test.set)
	}
}

func TestCheck(t *testing.T) {
	err := stores.Check(store.Retention{HistoryPerCell: -1, HistoryFor: -day, IDsFor: -2 * day,
		Limits: map[string]store.Limits{"note": {Most: -1}}})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.Equal(t, []string{"HistoryPerCell", "HistoryFor", "IDsFor", `Limits["note"].Most`}, fields)
	assert.NoError(t, stores.Check(store.Retention{HistoryPerCell: 1, HistoryFor: day, IDsFor: day,
		Limits: map[string]store.Limits{"note": {Most: 1}}}))
}
