package feedback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/settings"
)

func TestALoweredQuorumIsInTheAuditLog(t *testing.T) {
	st := newStore(t, nil)
	with := func(cfg feedback.Config) *feedback.Service {
		cfg.Store = st
		s, err := feedback.New(ctx, cfg)
		require.NoError(t, err)
		return s
	}
	with(feedback.Config{Gate: feedback.Gate{Quorum: 3, Pending: 5}})
	entries, err := (&world{store: st}).Audit(ctx, 0)
	require.NoError(t, err)
	assert.Empty(t, entries, "what was never otherwise is no change")
	asStored := func(cfg feedback.Config) feedback.Config {
		cfg.Store = st
		s, err := feedback.Open(ctx, cfg)
		require.NoError(t, err)
		return s.Config()
	}
	assert.Equal(t, 3, asStored(feedback.Config{}).Gate.Quorum)
	lax := with(feedback.Config{Gate: feedback.Gate{Pending: 5}})
	assert.Equal(t, 2, lax.Config().Gate.Quorum)
	entries, err = (&world{store: st}).Audit(ctx, 0)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, "settings", entries[0].Action)
	assert.Equal(t, map[string]string{"gate.quorum": "3 -> 2"}, entries[0].Details)

	// A tool beside the application does what the application does, and leaves the settings alone.
	tool := asStored(feedback.Config{Gate: feedback.Gate{Outsiders: 2}})
	assert.Equal(t, feedback.Gate{Quorum: 2, Outsiders: 1, Pending: 5}, tool.Gate)
	stored, err := settings.Stored(ctx, st, "feedback")
	require.NoError(t, err)
	assert.Equal(t, "1", string(stored["gate.outsiders"].Value))
	_, err = feedback.Open(ctx, feedback.Config{Store: st, Gate: feedback.Gate{Outsiders: 3}})
	assert.ErrorAs(t, err, new(*heed.ConfigError), "a tool's own settings have to be valid, too")
	_, err = feedback.Open(ctx, feedback.Config{Store: newStore(t, nil)})
	assert.ErrorIs(t, err, heed.ErrNotFound, "no application has been there")
}

// Each number, and each yes or no, that says what a service does is in the store.
func TestEverySettingIsKept(t *testing.T) {
	st := newStore(t, nil)
	host := feedback.Config{
		Store: st, Gate: feedback.Gate{Quorum: 4, Outsiders: 3, Pending: 9},
	}
	_, err := feedback.New(ctx, host)
	require.NoError(t, err)
	tool, err := feedback.Open(ctx, feedback.Config{Store: st})
	require.NoError(t, err)
	cfg := tool.Config()
	assert.Equal(t, host.Gate, cfg.Gate)
}
