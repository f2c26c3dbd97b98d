package learning_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
)

// vars are variables as lookup gives them, after LEARNING_.
type vars map[string]string

func (v vars) lookup(name string) (string, bool) {
	value, ok := v[strings.TrimPrefix(name, "LEARNING_")]
	return value, ok
}

func (v vars) environ() (all []string) {
	for name, value := range v {
		all = append(all, "LEARNING_"+name+"="+value)
	}
	return all
}

func settings(t testing.TB, cfg learning.Config) learning.BayesianConfig {
	t.Helper()
	return withoutFuncs(learning.SettingsOf(cfg.Strategy))
}

// withoutFuncs returns settings that can be compared.
func withoutFuncs(c learning.BayesianConfig) learning.BayesianConfig {
	c.IsUndo, c.IsThanks = nil, nil
	return c
}

func TestConfigFromEnvDefaults(t *testing.T) {
	for _, none := range []vars{{}, {"STRATEGY": "", "UNDO_WINDOW_SEC": " "}} {
		cfg, err := learning.ConfigFromEnv(none.lookup, nil, none.environ()...)
		require.NoError(t, err)
		assert.Equal(t, withoutFuncs(learning.SettingsOf(newBayesian(t, learning.BayesianConfig{Weights: map[string]float64{}}))), settings(t, cfg))
		f := newFixture(t, cfg)
		got, want := f.Config(), newFixture(t, learning.Config{}).Config()
		assert.Equal(t, []any{want.Initial, want.Strength, want.Bounds, want.Diminish, want.HalfLife, want.Caps, want.Expectations},
			[]any{got.Initial, got.Strength, got.Bounds, got.Diminish, got.HalfLife, got.Caps, got.Expectations})
	}
}

func TestConfigFromEnv(t *testing.T) {
	v := vars{
		"STRATEGY": "bayesian", "UNDO_WINDOW_SEC": "45", "IGNORED_THRESHOLD": "5", "UNDO_KEYWORDS": "undo, ,Stop ,", "IMPLICIT_MAGNITUDE": "0.9",
		"EXPLICIT_MAGNITUDE": " 0.7 ", "SILENCE_WINDOW_SEC": "150", "SILENCE_IS_NEUTRAL": "true", "SILENCE_MAGNITUDE": "0.3",
		"IGNORE_MAGNITUDE": "0.1", "DIMINISH": "0.5", "INITIAL_CONFIDENCE": "0.4", "PRIOR_STRENGTH": "3",
		"CONFIDENCE_FLOOR": "0", "CONFIDENCE_CEILING": "1", "HALF_LIFE_DAYS": "90.5", "GUARDED": "true",
	}
	cfg, err := learning.ConfigFromEnv(v.lookup, nil, append(v.environ(), "PATH=/bin", "OTHER_LEARNING_X=1", "LEARNINGS=2")...)
	require.NoError(t, err)
	assert.Equal(t, learning.BayesianConfig{
		UndoWindow: 45 * time.Second, SilenceWindow: 150 * time.Second, IgnoreThreshold: 5, SilenceIsNeutral: true,
		Implicit: 0.9, Explicit: 0.7, Silence: 0.3, Ignore: 0.1,
		Weights: map[string]float64{}, UserScores: [3]float64{-0.4, 0.05, 0.4}, DevScores: [5]float64{-0.4, -0.2, 0.05, 0.2, 0.4},
	}, settings(t, cfg))
	assert.True(t, cfg.Strategy.IsUndo("please stop"))
	assert.False(t, cfg.Strategy.IsUndo("revert that"))
	logged := cfg.Strategy.Config()
	for key, want := range map[string]string{"undo_window_sec": "45", "ignored_threshold": "5", "implicit_magnitude": "0.9", "explicit_magnitude": "0.7", "silence_window_sec": "150"} {
		assert.Equal(t, want, logged[key])
	}
	cfg.Strategy = nil
	assert.Equal(t, learning.Config{
		Initial: 0.4, Strength: 3, Bounds: learning.Range{Floor: 0, Ceiling: 1}, Diminish: 0.5, HalfLife: 2172 * time.Hour, Caps: learning.Guarded(),
	}, cfg)
}

// An empty list, or a comma too many, makes no event an undo.
func TestNoKeywordIsEveryKeyword(t *testing.T) {
	for _, keywords := range []string{"", ",", "undo, ,stop", "undo,,", " , "} {
		cfg, err := learning.ConfigFromEnv(vars{"UNDO_KEYWORDS": keywords}.lookup, nil)
		require.NoError(t, err)
		signals, err := cfg.Strategy.InterpretUndo("hello", []learning.Answer{{HeuristicID: "h", EventID: "e"}})
		require.NoError(t, err)
		assert.Empty(t, signals, "%q", keywords)
	}
}

// The document's variable is for all implicit signals, and heed's for one go before it.
func TestMagnitudesOfTheEnvironment(t *testing.T) {
	for _, test := range []struct {
		vars            vars
		silence, ignore float64
	}{
		{vars{}, 0.4, 0.4},
		{vars{"IMPLICIT_MAGNITUDE": "1"}, 1, 1},
		{vars{"IMPLICIT_MAGNITUDE": "1", "SILENCE_MAGNITUDE": "0"}, 0, 1},
		{vars{"IMPLICIT_MAGNITUDE": "0", "SILENCE_MAGNITUDE": "0.2"}, 0.2, 0},
	} {
		cfg, err := learning.ConfigFromEnv(test.vars.lookup, nil)
		require.NoError(t, err)
		a := learning.Answer{HeuristicID: "h", EventID: "e", Consecutive: 3}
		silence, err := cfg.Strategy.InterpretTimeout(a)
		require.NoError(t, err)
		ignore, err := cfg.Strategy.InterpretIgnore(a)
		require.NoError(t, err)
		assert.Equal(t, []float64{test.silence, test.ignore}, []float64{silence.Magnitude, ignore.Magnitude}, test.vars)
	}
	cfg, err := learning.ConfigFromEnv(vars{"UNDO_WINDOW_SEC": "120"}.lookup, nil)
	require.NoError(t, err)
	assert.Equal(t, learning.Windows{Undo: 2 * time.Minute, Ignore: 2 * time.Minute, Silence: 2 * time.Minute}, cfg.Strategy.Windows(""), "the document has one window for both")
}

func TestConfigFromEnvFaults(t *testing.T) {
	for name, values := range map[string][]string{
		"STRATEGY":           {"reinforcement", "Bayesian"},
		"UNDO_WINDOW_SEC":    {"NaN", "Inf", "-1", "0", "1e-9", "1e300", "30s", "1,5"},
		"SILENCE_WINDOW_SEC": {"nan", "0"},
		"IGNORED_THRESHOLD":  {"0", "-3", "2.5", "three", "99999999999999999999"},
		"IMPLICIT_MAGNITUDE": {"NaN", "-0.1", "+Inf", "much", "1e7"},
		"EXPLICIT_MAGNITUDE": {"NaN"},
		"SILENCE_IS_NEUTRAL": {"yes", "2"},
		"GUARDED":            {"on"},
		"SILENCE_MAGNITUDE":  {"NaN", "-1"},
		"IGNORE_MAGNITUDE":   {"much"},
		"DIMINISH":           {"-1", "NaN"},
		"INITIAL_CONFIDENCE": {"0", "1", "NaN"},
		"PRIOR_STRENGTH":     {"0", "-1", "NaN", "1e9"},
		"CONFIDENCE_FLOOR":   {"-0.1", "1.1", "NaN"},
		"CONFIDENCE_CEILING": {"2", "0.01", "NaN"},
		"HALF_LIFE_DAYS":     {"-1", "NaN", "1e-9", "36501"},
	} {
		for _, value := range values {
			_, err := learning.ConfigFromEnv(vars{name: value}.lookup, nil)
			if assert.Error(t, err, "%s=%s", name, value) {
				for _, field := range fields(err) {
					assert.Equal(t, "LEARNING_"+name, field, value)
				}
				assert.NotEmpty(t, fields(err), "%s=%s: %v", name, value, err)
			}
		}
	}
	_, err := learning.ConfigFromEnv(vars{"CONFIDENCE_FLOOR": "0", "CONFIDENCE_CEILING": "0"}.lookup, nil)
	assert.Error(t, err)
}

// 0 is no default, where somebody has written it.
func TestMagnitudesOfNothing(t *testing.T) {
	cfg, err := learning.ConfigFromEnv(vars{"IMPLICIT_MAGNITUDE": "0", "EXPLICIT_MAGNITUDE": "0.0"}.lookup, nil)
	require.NoError(t, err)
	worth := func(s learning.Signal, err error) float64 { require.NoError(t, err); return s.Magnitude }
	a, j := learning.Answer{HeuristicID: "h", EventID: "e", Consecutive: 9}, thumb("h", "e", true)
	assert.Zero(t, worth(cfg.Strategy.InterpretTimeout(a)))
	assert.Zero(t, worth(cfg.Strategy.InterpretIgnore(a)))
	assert.Zero(t, worth(cfg.Strategy.InterpretOutcome(a)))
	assert.Zero(t, worth(cfg.Strategy.InterpretJudgement(j)))
	undone, err := cfg.Strategy.InterpretUndo("undo", []learning.Answer{a})
	require.NoError(t, err)
	assert.Zero(t, undone[0].Magnitude)
	j.Channel = learning.ChannelDev
	assert.Zero(t, worth(cfg.Strategy.InterpretJudgement(j)))
}

func TestAllFaultsAtOnce(t *testing.T) {
	v := vars{"UNDO_WINDOW_SEC": "NaN", "IGNORED_THRESHOLD": "0", "PRIOR_STRENGTH": "-1", "IMPLICIT_MAGNITUDE": "x", "GUARDED": "1.5"}
	_, err := learning.ConfigFromEnv(v.lookup, nil, "LEARNING_UNDO_WINDOW=30", "LEARNING_STRATEGY=bayesian", "HOME=/")
	assert.ElementsMatch(t, []string{"LEARNING_UNDO_WINDOW_SEC", "LEARNING_IGNORED_THRESHOLD", "LEARNING_PRIOR_STRENGTH", "LEARNING_IMPLICIT_MAGNITUDE",
		"LEARNING_GUARDED", "LEARNING_UNDO_WINDOW"}, fields(err))
}

func TestStrategiesByName(t *testing.T) {
	errMood := errors.New("not today")
	own := map[string]func(learning.BayesianConfig) (learning.Strategy, error){
		"moody": func(cfg learning.BayesianConfig) (learning.Strategy, error) {
			b, err := learning.NewBayesian(cfg)
			return moody{Strategy: b}, err
		},
		"broken": func(learning.BayesianConfig) (learning.Strategy, error) { return nil, errMood },
		"none":   func(learning.BayesianConfig) (learning.Strategy, error) { return nil, nil },
	}
	cfg, err := learning.ConfigFromEnv(vars{"STRATEGY": "moody", "UNDO_WINDOW_SEC": "7"}.lookup, own)
	require.NoError(t, err)
	assert.IsType(t, moody{}, cfg.Strategy)
	assert.Equal(t, 7*time.Second, cfg.Strategy.Windows("").Undo)
	cfg, err = learning.ConfigFromEnv(vars{}.lookup, own)
	require.NoError(t, err)
	assert.IsType(t, newBayesian(t, learning.BayesianConfig{}), cfg.Strategy)
	_, err = learning.ConfigFromEnv(vars{"STRATEGY": "broken"}.lookup, own)
	assert.ErrorIs(t, err, errMood)
	_, err = learning.ConfigFromEnv(vars{"STRATEGY": "other"}.lookup, own)
	var fault *heed.ConfigError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "must be one of bayesian, broken, moody, none", fault.Reason)
	_, err = learning.ConfigFromEnv(vars{"STRATEGY": "none"}.lookup, own)
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, heed.ConfigError{Field: "LEARNING_STRATEGY", Value: "none", Reason: "its function made no strategy"}, *fault)
	own["strict"] = func(learning.BayesianConfig) (learning.Strategy, error) {
		return learning.NewBayesian(learning.BayesianConfig{IgnoreThreshold: -1})
	}
	_, err = learning.ConfigFromEnv(vars{"STRATEGY": "strict"}.lookup, own)
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, heed.ConfigError{Field: "LEARNING_STRATEGY", Value: "strict", Reason: "IgnoreThreshold: must not be negative"}, *fault)
}

// FuzzConfigFromEnv holds that whatever is read is a configuration that can be used, or an error whose faults each name a
// variable.
func FuzzConfigFromEnv(f *testing.F) {
	names := []string{"UNDO_WINDOW_SEC", "IGNORED_THRESHOLD", "UNDO_KEYWORDS", "IMPLICIT_MAGNITUDE", "HALF_LIFE_DAYS", "PRIOR_STRENGTH",
		"INITIAL_CONFIDENCE", "CONFIDENCE_FLOOR", "SILENCE_WINDOW_SEC", "STRATEGY"}
	for i, seed := range []string{"30", "3", "undo,,", "0.8", "NaN", "1e308", "0x1p-2", "0.95", "1e-6", "bayesian"} {
		f.Add(uint8(i), seed)
	}
	f.Fuzz(func(t *testing.T, which uint8, value string) {
		name := names[int(which)%len(names)]
		cfg, err := learning.ConfigFromEnv(vars{name: value}.lookup, nil)
		if err != nil {
			for _, field := range fields(err) {
				if field != "LEARNING_CONFIDENCE_CEILING" { // which the floor may be above
					assert.Equal(t, "LEARNING_"+name, field)
				}
			}
			assert.NotEmpty(t, fields(err))
			return
		}
		fx := newFixture(t, cfg)
		fx.put(learning.Heuristic{ID: "h"})
		s, err := cfg.Strategy.InterpretJudgement(thumb("h", "e", true))
		require.NoError(t, err)
		assert.False(t, math.IsNaN(s.Magnitude))
		assert.Positive(t, cfg.Strategy.Windows("").Undo)
		assert.Positive(t, fx.confidence("h"))
	})
}
