package sqlstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/sqlstore"
)

func fields(err error) (all []string) {
	for fault := range heed.ConfigErrors(err) {
		all = append(all, fault.Field)
	}
	return all
}

func TestConfigFaults(t *testing.T) {
	_, err := sqlstore.NewEvidence(nil, sqlstore.EvidenceConfig{
		HistoryPerCell: -1, HistoryFor: 48 * time.Hour, IDsFor: time.Hour, MaxEvents: -1, MaxAudit: -1, Stale: -1, MaxCached: -1,
	})
	assert.Equal(t, []string{"HistoryPerCell", "IDsFor", "MaxEvents", "MaxAudit", "Stale", "MaxCached"}, fields(err))
	_, err = sqlstore.NewChoices(nil, sqlstore.ChoicesConfig{For: -1})
	assert.Equal(t, []string{"For"}, fields(err))
	_, err = sqlstore.NewStream(context.Background(), nil, sqlstore.StreamConfig{Holder: "\x00", Lease: -1, Poll: -1, Max: -1})
	assert.Equal(t, []string{"Name", "Holder", "Lease", "Poll", "Max"}, fields(err))
	for _, dialect := range []sqlstore.Dialect{-1, 0, 4} {
		_, err := sqlstore.New(context.Background(), nil, dialect)
		assert.Equal(t, []string{"Dialect"}, fields(err))
		assert.Equal(t, []string{"Dialect"}, fields(sqlstore.Migrate(context.Background(), nil, dialect)))
		assert.Contains(t, dialect.String(), "Dialect(")
	}
}

func TestConfigDefaults(t *testing.T) {
	store, err := sqlstore.NewEvidence(nil, sqlstore.EvidenceConfig{})
	require.NoError(t, err)
	cfg := store.Config()
	assert.Equal(t, 100, cfg.HistoryPerCell)
	assert.Equal(t, 30*24*time.Hour, cfg.HistoryFor)
	assert.Equal(t, 30*24*time.Hour, cfg.IDsFor)
	assert.Equal(t, 1_000_000, cfg.MaxEvents)
	assert.Equal(t, 1_000_000, cfg.MaxAudit)
	assert.Equal(t, time.Second, cfg.Stale)
	assert.Equal(t, 100_000, cfg.MaxCached)
	choices, err := sqlstore.NewChoices(nil, sqlstore.ChoicesConfig{})
	require.NoError(t, err)
	assert.Equal(t, 30*24*time.Hour, choices.Config().For)
	stream, err := sqlstore.NewStream(context.Background(), nil, sqlstore.StreamConfig{Name: "n"})
	require.NoError(t, err)
	assert.Equal(t, sqlstore.StreamConfig{Name: "n", Lease: time.Minute, Poll: 100 * time.Millisecond, Max: 1_000_000}, stream.Config())
}
