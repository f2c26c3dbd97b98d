package stores_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

const day = 24 * time.Hour

func TestDefaults(t *testing.T) {
	type kept struct {
		perCell         int
		history, idsFor time.Duration
	}
	for _, test := range []struct{ set, want kept }{
		{kept{}, kept{100, 30 * day, 30 * day}},
		{kept{history: 90 * day}, kept{100, 90 * day, 90 * day}},
		{kept{history: day}, kept{100, day, 30 * day}},
		{kept{7, 2 * day, 3 * day}, kept{7, 2 * day, 3 * day}},
	} {
		got := test.set
		stores.Defaults(&got.perCell, &got.history, &got.idsFor)
		assert.Equal(t, test.want, got)
	}
}

func TestCheck(t *testing.T) {
	var found valid.Faults
	stores.Check(&found, -1, -day, -2*day, map[string]store.Limits{"note": {Most: -1}})
	var fields []string
	for fault := range heed.ConfigErrors(found.Err()) {
		fields = append(fields, fault.Field)
	}
	assert.Equal(t, []string{"HistoryPerCell", "HistoryFor", "IDsFor", `Limits["note"].Most`}, fields)
	found = valid.Faults{}
	stores.Check(&found, 1, day, day, map[string]store.Limits{"note": {Most: 1}})
	assert.NoError(t, found.Err())
}
