package decision_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
)

func TestNewByName(t *testing.T) {
	for _, name := range []string{"", "heuristic_first", "always_llm"} {
		d, err := decision.New(ctx, decision.Config{Strategy: name, LLM: model("Do it.")})
		require.NoError(t, err)
		res, err := d.Decide(ctx, decision.Request{Candidates: candidates(0.9)})
		require.NoError(t, err)
		assert.Equal(t, name == "always_llm", res.Path == decision.Model)
		assert.Equal(t, cmp.Or(name, "heuristic_first"), res.Strategy)
	}
	for _, name := range []string{"hybrid", "Heuristic_First"} {
		_, err := decision.New(ctx, decision.Config{Strategy: name, Ceiling: 2})
		assert.Equal(t, []string{"Strategy", "Ceiling"}, fieldsOf(err), name)
	}
}

// vars are EXECUTIVE_ variables, without that.
type vars map[string]string

func (v vars) lookup(name string) (string, bool) {
	value, ok := v[name[len("EXECUTIVE_"):]]
	return value, ok
}

func TestConfigFromEnv(t *testing.T) {
	for name, tt := range map[string]struct {
		vars vars
		want decision.Config
	}{
		"nothing is set": {vars{}, decision.Config{}},
		"the design's": {
			vars{"DECISION_STRATEGY": "always_llm", "HEURISTIC_THRESHOLD": " 0.65 ", "GOALS": " safety; ;comfort;"},
			decision.Config{Strategy: decision.AlwaysLLM, Threshold: 0.65, Goals: map[string][]string{"": {"safety", "comfort"}}},
		},
		"heed's": {
			vars{
				"MAX_CANDIDATES": "5", "LLM_CONFIDENCE_CEILING": "1", "LLM_TIMEOUT_SEC": "1.5", "LLM_MAX_IN_FLIGHT": "9",
				"URGENCY_REDUCTION": "0.2", "HASH_TEXTS": "true", "WITHHOLD": "0", "PREDICTION": "same_call",
			},
			decision.Config{
				MaxCandidates: 5, Ceiling: 1, Timeout: 1500 * time.Millisecond, MaxInFlight: 9,
				Urgency: decision.Urgency{Reduction: 0.2}, HashTexts: true, Withhold: share(0), Prediction: decision.SameCall,
			},
		},
		"no candidates": {vars{"MAX_CANDIDATES": "0"}, decision.Config{NoCandidates: true}},
		"no prediction": {vars{"PREDICTION": "off", "WITHHOLD": " "}, decision.Config{}},
		"blanks are nothing": {
			vars{"DECISION_STRATEGY": " ", "HEURISTIC_THRESHOLD": "", "GOALS": ";; ", "MAX_CANDIDATES": " ", "HASH_TEXTS": ""},
			decision.Config{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := decision.ConfigFromEnv(tt.vars.lookup)
			require.NoError(t, err)
			assert.Equal(t, tt.want, cfg)
			_, err = decision.New(ctx, cfg)
			assert.NoError(t, err)
		})
	}
}

func TestConfigFromEnvFaults(t *testing.T) {
	for name, values := range map[string][]string{
		"HEURISTIC_THRESHOLD":    {"NaN", "0,7", "0", "70", "-0.1", "1e999"},
		"MAX_CANDIDATES":         {"6", "-1", "1.5"},
		"LLM_CONFIDENCE_CEILING": {"NaN", "0", "1.1"},
		"LLM_TIMEOUT_SEC":        {"NaN", "Inf", "0", "-1", "30s", "1e-9"},
		"LLM_MAX_IN_FLIGHT":      {"0", "many"},
		"URGENCY_REDUCTION":      {"NaN", "2"},
		"HASH_TEXTS":             {"maybe"},
		"WITHHOLD":               {"NaN", "1.1", "-1", "all"},
		"PREDICTION":             {"on", "Second_Call"},
	} {
		for _, value := range values {
			_, err := decision.ConfigFromEnv(vars{name: value}.lookup)
			assert.Equal(t, []string{"EXECUTIVE_" + name}, fieldsOf(err), value)
		}
	}
	_, err := decision.ConfigFromEnv(vars{"HEURISTIC_THRESHOLD": "NaN", "HASH_TEXTS": "maybe"}.lookup,
		"PATH=/bin", "EXECUTIVE_GOALS=", "EXECUTIVE_HEURISTIC_TRESHOLD=0.7", "EXECUTIVE_HASH_TEXTS=maybe")
	assert.Equal(t, []string{
		"EXECUTIVE_HEURISTIC_THRESHOLD", "EXECUTIVE_HASH_TEXTS", "EXECUTIVE_HEURISTIC_TRESHOLD",
	}, fieldsOf(err), "all at once, misspelt names among them")
}

// FuzzConfigFromEnv holds that whatever is read is a configuration that can be used, or an error whose faults each name a
// variable.
func FuzzConfigFromEnv(f *testing.F) {
	names := []string{"DECISION_STRATEGY", "HEURISTIC_THRESHOLD", "GOALS", "MAX_CANDIDATES", "LLM_CONFIDENCE_CEILING", "LLM_TIMEOUT_SEC",
		"LLM_MAX_IN_FLIGHT", "URGENCY_REDUCTION", "HASH_TEXTS", "WITHHOLD", "PREDICTION"}
	for i, seed := range []string{"always_llm", "0.7", "a;;b", "5", "NaN", "1e308", "0", "-0", "T"} {
		f.Add(uint8(i), seed)
	}
	f.Fuzz(func(t *testing.T, i uint8, value string) {
		name := names[int(i)%len(names)]
		cfg, err := decision.ConfigFromEnv(vars{name: value}.lookup)
		if err != nil {
			assert.Equal(t, []string{"EXECUTIVE_" + name}, fieldsOf(err))
			return
		}
		_, err = decision.New(ctx, cfg)
		assert.Equal(t, cfg.Strategy != "" && cfg.Strategy != decision.HeuristicFirst && cfg.Strategy != decision.AlwaysLLM, err != nil)
	})
}
