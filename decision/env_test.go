package decision_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
)

func TestNewByName(t *testing.T) {
	s, err := decision.New(ctx, "heuristic_first", decision.Config{})
	require.NoError(t, err)
	assert.IsType(t, &decision.HeuristicFirst{}, s)
	s, err = decision.New(ctx, "always_llm", decision.Config{})
	require.NoError(t, err)
	assert.IsType(t, &decision.AlwaysLLM{}, s)
	for _, name := range []string{"", "hybrid", "Heuristic_First"} {
		_, err = decision.New(ctx, name, decision.Config{})
		assert.Equal(t, []string{"Strategy"}, fieldsOf(err), name)
	}
	s, err = decision.New(ctx, "heuristic_first", decision.Config{Ceiling: 2})
	assert.Equal(t, []string{"Ceiling"}, fieldsOf(err))
	assert.Equal(t, decision.Strategy(nil), s, "and no interface with nothing in it")
}

func TestAHostsStrategiesByName(t *testing.T) {
	own := decision.Strategies{"silent": func(context.Context, decision.Config) (decision.Strategy, error) { return silent{}, nil }}
	name, cfg, err := own.ConfigFromEnv(vars{"DECISION_STRATEGY": "silent"}.lookup)
	require.NoError(t, err)
	s, err := own.New(ctx, name, cfg)
	require.NoError(t, err)
	assert.Equal(t, silent{}, s)
	s, err = own.New(ctx, "always_llm", cfg)
	require.NoError(t, err)
	assert.IsType(t, &decision.AlwaysLLM{}, s)
	_, err = own.New(ctx, "hybrid", cfg)
	assert.ErrorContains(t, err, "always_llm, heuristic_first, silent")
}

type silent struct{}

func (silent) Decide(context.Context, decision.Request) (decision.Result, error) {
	return decision.Result{Path: decision.Rejected, Reason: "silent"}, nil
}

// vars are EXECUTIVE_ variables, without that.
type vars map[string]string

func (v vars) lookup(name string) (string, bool) {
	value, ok := v[name[len("EXECUTIVE_"):]]
	return value, ok
}

func TestConfigFromEnv(t *testing.T) {
	for name, tt := range map[string]struct {
		vars     vars
		strategy string
		want     decision.Config
	}{
		"nothing is set": {vars{}, "heuristic_first", decision.Config{}},
		"the design's": {
			vars{"DECISION_STRATEGY": "always_llm", "HEURISTIC_THRESHOLD": " 0.65 ", "GOALS": " safety; ;comfort;"}, "always_llm",
			decision.Config{Threshold: 0.65, Goals: map[string][]string{"": {"safety", "comfort"}}},
		},
		"heed's": {
			vars{
				"MAX_CANDIDATES": "5", "LLM_CONFIDENCE_CEILING": "1", "LLM_TIMEOUT_SEC": "1.5", "LLM_MAX_IN_FLIGHT": "9",
				"URGENCY_REDUCTION": "0.2", "HASH_TEXTS": "true",
			}, "heuristic_first",
			decision.Config{
				MaxCandidates: 5, Ceiling: 1, Timeout: 1500 * time.Millisecond, MaxInFlight: 9,
				Urgency: decision.Urgency{Reduction: 0.2}, HashTexts: true,
			},
		},
		"no candidates": {vars{"MAX_CANDIDATES": "0"}, "heuristic_first", decision.Config{NoCandidates: true}},
		"blanks are nothing": {
			vars{"DECISION_STRATEGY": " ", "HEURISTIC_THRESHOLD": "", "GOALS": ";; ", "MAX_CANDIDATES": " ", "HASH_TEXTS": ""}, "heuristic_first",
			decision.Config{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			strategy, cfg, err := decision.ConfigFromEnv(tt.vars.lookup)
			require.NoError(t, err)
			assert.Equal(t, tt.strategy, strategy)
			assert.Equal(t, tt.want, cfg)
			_, err = decision.New(ctx, strategy, cfg)
			assert.NoError(t, err)
		})
	}
}

func TestConfigFromEnvFaults(t *testing.T) {
	for name, values := range map[string][]string{
		"DECISION_STRATEGY":      {"hybrid", "Heuristic_First"},
		"HEURISTIC_THRESHOLD":    {"NaN", "0,7", "0", "70", "-0.1", "1e999"},
		"MAX_CANDIDATES":         {"6", "-1", "1.5"},
		"LLM_CONFIDENCE_CEILING": {"NaN", "0", "1.1"},
		"LLM_TIMEOUT_SEC":        {"NaN", "Inf", "0", "-1", "30s", "1e-9"},
		"LLM_MAX_IN_FLIGHT":      {"0", "many"},
		"URGENCY_REDUCTION":      {"NaN", "2"},
		"HASH_TEXTS":             {"maybe"},
	} {
		for _, value := range values {
			_, _, err := decision.ConfigFromEnv(vars{name: value}.lookup)
			assert.Equal(t, []string{"EXECUTIVE_" + name}, fieldsOf(err), value)
		}
	}
	_, _, err := decision.ConfigFromEnv(vars{"DECISION_STRATEGY": "hybrid", "HEURISTIC_THRESHOLD": "NaN", "HASH_TEXTS": "maybe"}.lookup,
		"PATH=/bin", "EXECUTIVE_GOALS=", "EXECUTIVE_HEURISTIC_TRESHOLD=0.7", "EXECUTIVE_HASH_TEXTS=maybe")
	assert.Equal(t, []string{
		"EXECUTIVE_DECISION_STRATEGY", "EXECUTIVE_HEURISTIC_THRESHOLD", "EXECUTIVE_HASH_TEXTS", "EXECUTIVE_HEURISTIC_TRESHOLD",
	}, fieldsOf(err), "all at once, misspelt names among them")
}

// FuzzConfigFromEnv holds that whatever is read is a configuration that can be used, or an error whose faults each name a
// variable.
func FuzzConfigFromEnv(f *testing.F) {
	names := []string{"DECISION_STRATEGY", "HEURISTIC_THRESHOLD", "GOALS", "MAX_CANDIDATES", "LLM_CONFIDENCE_CEILING", "LLM_TIMEOUT_SEC",
		"LLM_MAX_IN_FLIGHT", "URGENCY_REDUCTION", "HASH_TEXTS"}
	for i, seed := range []string{"always_llm", "0.7", "a;;b", "5", "NaN", "1e308", "0", "-0", "T"} {
		f.Add(uint8(i), seed)
	}
	f.Fuzz(func(t *testing.T, i uint8, value string) {
		name := names[int(i)%len(names)]
		strategy, cfg, err := decision.ConfigFromEnv(vars{name: value}.lookup)
		if err != nil {
			assert.Equal(t, []string{"EXECUTIVE_" + name}, fieldsOf(err))
			return
		}
		_, err = decision.New(ctx, strategy, cfg)
		assert.NoError(t, err)
	})
}
