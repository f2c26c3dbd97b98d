package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

// section is that of the Adaptive Strategies design, with each key other than its default.
const section = `
[plugins.groove.strategy]
enabled = false
[plugins.groove.strategy.sampling]
initial_alpha = 2.0
initial_beta = 3.0
exploration_bonus = 0.2
min_samples_for_confidence = 7
[plugins.groove.strategy.hierarchy]
specialization_threshold = 12
specialization_confidence = 0.5
[plugins.groove.strategy.outcome]
attribution_weight = 0.6
direct_weight = 0.4
min_outcome_confidence = 0.2
[plugins.groove.strategy.cache]
ttl_seconds = 60
[plugins.groove.strategy.defaults]
default_strategy = "Subagent"
default_trigger = "Explicit"
[plugins.groove.strategy.defaults.initial_weights]
MainContext = 0.1
Subagent = 0.2
BackgroundSubagent = 0.3
Deferred = 0.4
`

func write(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "agent.toml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestConfig(t *testing.T) {
	cfg, err := readStrategy(nil, write(t, section))
	require.NoError(t, err)
	assert.Equal(t, strategy.Config{
		Disabled: true, Prior: evidence.Beta{Alpha: 2, Beta: 3}, Exploration: strategy.Exploration{Bonus: 0.2, MinSamples: 7},
		Pooling: strategy.Copy{Sessions: 12, MinConfidence: 0.5}, MinConfidence: 0.2, Default: strategy.Subagent,
		Cache: strategy.Cache{TTL: time.Minute},
		Arms: []strategy.Arm{
			{ID: strategy.BackgroundSubagent, Weight: 0.3}, {ID: strategy.Deferred, Weight: 0.4},
			{ID: strategy.MainContext, Weight: 0.1}, {ID: strategy.Subagent, Weight: 0.2},
		},
	}, cfg)
}

func TestConfigOfACommand(t *testing.T) {
	db := sqliteFile(t)
	of := func(file string) []string {
		return at(db, "strategy", "--learner", "strategy", "--config", file, "item", "explain-first")
	}
	without := call{args: at(db, "strategy", "--learner", "strategy", "item", "explain-first")}.run(t)
	assert.Contains(t, without.out, "specialised: in 10 sessions")
	with := call{args: of(write(t, section))}.run(t)
	assert.Zero(t, with.code, with.err)
	assert.Empty(t, with.err)
	assert.Contains(t, with.out, "specialised: in 2 sessions")

	typo := call{args: of(write(t, section+"\n[plugins.groove.strategy.hierarchie]\nspecialization_treshold = 3\n[plugins.groove.other]\nx = 1\n"))}.run(t)
	assert.Zero(t, typo.code)
	assert.Contains(t, typo.err, "unknown key hierarchie.specialization_treshold")
	assert.Contains(t, typo.err, "did you mean hierarchy.specialization_threshold?")
	assert.NotContains(t, typo.err, "other")
	assert.Contains(t, call{args: of(write(t, "[other]\nx = 1"))}.run(t).err, "has no section [plugins.groove.strategy]")

	for text, says := range map[string]string{
		"[plugins.groove.strategy.sampling]\ninitial_alpha = -1":               "Prior",
		"[plugins.groove.strategy.sampling]\ninitial_alpha = 'x'":              "agent.toml",
		"[plugins.groove.strategy\n":                                           "line ",
		"[plugins.groove.strategy.defaults]\ndefault_trigger = 'Whenever'":     "default_trigger",
		"[plugins.groove.strategy.outcome]\nattribution_weight = -1":           "agent.toml",
		"[plugins.groove.strategy.hierarchy]\nspecialization_confidence = 2.0": "MinConfidence",
	} {
		assertFails(t, call{args: of(write(t, text))}.run(t), failed, says)
	}
}
