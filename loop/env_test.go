package loop_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// An operator sets variables, and a misspelt name is found.
func ExampleConfigFromEnv() {
	// in a host: loop.ConfigFromEnv(os.Environ())
	cfg, err := loop.ConfigFromEnv([]string{
		"LEARNING_UNDO_WINDOW_SEC=45", "EXECUTIVE_GOALS=safety; comfort",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(cfg.Tuning.Learning.Strategy.Windows("").Undo, cfg.Tuning.Decision.Goals)

	_, err = loop.ConfigFromEnv([]string{"LEARNING_UNDO_WINDOW_SEC=NaN", "EXECUTIVE_GOAL=safety"})
	for fault := range heed.ConfigErrors(err) {
		fmt.Println(fault.Field, fault.Reason)
	}
	// Output:
	// 45s map[:[safety comfort]]
	// LEARNING_UNDO_WINDOW_SEC must be a number from 1e-06 to 3.1536e+09
	// EXECUTIVE_GOAL is not a known variable: ConfigFromEnv lists them
}

func fromEnv(t testing.TB, environ ...string) loop.Config {
	t.Helper()
	cfg, err := loop.ConfigFromEnv(environ)
	require.NoError(t, err)
	return cfg
}

func TestConfigFromEnv(t *testing.T) {
	none, err := learning.NewBayesian(learning.BayesianConfig{})
	require.NoError(t, err)
	blank := []string{"LEARNING_STRATEGY=", "LEARNING_UNDO_WINDOW_SEC= ", "EXECUTIVE_GOALS=;; "}
	for _, environ := range [][]string{nil, {"PATH=/bin", "LEARNINGS=1", "X_LEARNING_Y=2"}, blank} {
		cfg := fromEnv(t, environ...)
		assert.Equal(t, none.Config(), cfg.Tuning.Learning.Strategy.Config())
		assert.Equal(t, none.Windows(""), cfg.Tuning.Learning.Strategy.Windows(""))
		cfg.Tuning.Learning.Strategy = nil
		assert.Equal(t, loop.Config{}, cfg)
	}

	cfg := fromEnv(t,
		"LEARNING_STRATEGY=bayesian", "LEARNING_UNDO_WINDOW_SEC=45.5", "LEARNING_IGNORED_THRESHOLD=5",
		"LEARNING_UNDO_KEYWORDS=undo, ,Stop ,", "LEARNING_IMPLICIT_MAGNITUDE=0.9",
		"LEARNING_EXPLICIT_MAGNITUDE= 0.7 ", "EXECUTIVE_DECISION_STRATEGY=always_llm",
		"EXECUTIVE_HEURISTIC_THRESHOLD=0.65", "EXECUTIVE_GOALS= safety; ;comfort;",
	)
	s := cfg.Tuning.Learning.Strategy
	window := 45500 * time.Millisecond
	assert.Equal(t, learning.Windows{Undo: window, Ignore: window, Silence: window}, s.Windows(""),
		"the design has one window for both")
	assert.True(t, s.IsUndo("please stop"))
	assert.False(t, s.IsUndo("revert that"))
	logged := s.Config()
	for key, want := range map[string]string{
		"ignored_threshold": "5", "implicit_magnitude": "0.9", "explicit_magnitude": "0.7",
	} {
		assert.Equal(t, want, logged[key])
	}
	assert.Equal(t, decision.Config{
		Strategy: "always_llm", Threshold: 0.65,
		Goals: map[string][]string{"": {"safety", "comfort"}},
	}, cfg.Tuning.Decision)
}

// An empty list, or a comma too many, makes no event an undo.
func TestNoKeywordIsEveryKeyword(t *testing.T) {
	for _, keywords := range []string{"", ",", "undo, ,stop", "undo,,", " , "} {
		s := fromEnv(t, "LEARNING_UNDO_KEYWORDS="+keywords).Tuning.Learning.Strategy
		signals, err := s.InterpretUndo("hello", []learning.Answer{{HeuristicID: "h", EventID: "e"}})
		require.NoError(t, err)
		assert.Empty(t, signals, "%q", keywords)
	}
}

// The design's variable holds for all implicit signals, and 0 is not the default if it was set.
func TestMagnitudesOfTheEnvironment(t *testing.T) {
	for implicit, want := range map[string][3]float64{
		"": {0.4, 0.4, 1}, "0.9": {0.9, 0.9, 0.9}, "0": {},
	} {
		s := fromEnv(t, "LEARNING_IMPLICIT_MAGNITUDE="+implicit, "LEARNING_EXPLICIT_MAGNITUDE=0").
			Tuning.Learning.Strategy
		worth := func(s learning.Signal, err error) float64 {
			require.NoError(t, err)
			return math.Abs(s.Worth)
		}
		a := learning.Answer{HeuristicID: "h", EventID: "e", Consecutive: 3}
		undone, err := s.InterpretUndo("undo that", []learning.Answer{a})
		require.NoError(t, err)
		assert.Equal(t, want, [3]float64{
			worth(s.InterpretTimeout(a)), worth(s.InterpretIgnore(a)), -undone[0].Worth,
		})
		j := learning.Judgement{HeuristicID: "h", EventID: "e", Channel: learning.ChannelDev, Value: 1}
		assert.Zero(t, worth(s.InterpretJudgement(j)))
	}
}

func TestConfigFromEnvFaults(t *testing.T) {
	for name, values := range map[string][]string{
		"LEARNING_STRATEGY":             {"reinforcement", "Bayesian"},
		"LEARNING_UNDO_WINDOW_SEC":      {"NaN", "Inf", "-1", "0", "1e-9", "1e300", "30s", "1,5"},
		"LEARNING_IGNORED_THRESHOLD":    {"0", "-3", "2.5", "three", "99999999999999999999"},
		"LEARNING_IMPLICIT_MAGNITUDE":   {"NaN", "-0.1", "+Inf", "much", "1e7"},
		"LEARNING_EXPLICIT_MAGNITUDE":   {"NaN"},
		"LEARNING_UNDO_WINDOW":          {"30"},
		"EXECUTIVE_DECISION_STRATEGY":   {"hybrid", "Always_LLM"},
		"EXECUTIVE_HEURISTIC_THRESHOLD": {"NaN", "0,7", "0", "70", "-0.1", "1e999"},
		"EXECUTIVE_HEURISTIC_TRESHOLD":  {"0.7"},
	} {
		for _, value := range values {
			_, err := loop.ConfigFromEnv([]string{name + "=" + value})
			assert.Equal(t, []string{name}, faultyFields(err), value)
		}
	}
	_, err := loop.ConfigFromEnv([]string{
		"LEARNING_IGNORED_THRESHOLD=0", "EXECUTIVE_HEURISTIC_THRESHOLD=x", "LEARNING_X=",
	})
	assert.Equal(t, []string{
		"LEARNING_IGNORED_THRESHOLD", "EXECUTIVE_HEURISTIC_THRESHOLD", "LEARNING_X",
	}, faultyFields(err), "all at once")
}

// A number may be as little and as much as the reason of a fault states.
func TestBoundsOfTheEnvironment(t *testing.T) {
	for name, bounds := range map[string][2]string{
		"LEARNING_UNDO_WINDOW_SEC":      {"1e-06", "3.1536e+09"},
		"LEARNING_IGNORED_THRESHOLD":    {"1", "1e+06"},
		"LEARNING_IMPLICIT_MAGNITUDE":   {"0", "1e+06"},
		"LEARNING_EXPLICIT_MAGNITUDE":   {"0", "1e+06"},
		"EXECUTIVE_HEURISTIC_THRESHOLD": {"1e-06", "1"},
	} {
		for i, bound := range bounds {
			fromEnv(t, name+"="+bound)
			x, err := strconv.ParseFloat(bound, 64)
			require.NoError(t, err)
			beyond := math.Nextafter(x, math.Inf(2*i-1))
			_, err = loop.ConfigFromEnv([]string{fmt.Sprint(name, "=", beyond)})
			assert.ErrorContains(t, err, "a number from "+bounds[0]+" to "+bounds[1], name)
		}
	}
}

func faultyFields(err error) (fields []string) {
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	return fields
}

// FuzzConfigFromEnv holds that whatever is read is a configuration that can be used, or an error
// whose fault names the variable.
func FuzzConfigFromEnv(f *testing.F) {
	names := []string{
		"LEARNING_STRATEGY", "LEARNING_UNDO_WINDOW_SEC", "LEARNING_IGNORED_THRESHOLD",
		"LEARNING_UNDO_KEYWORDS", "LEARNING_IMPLICIT_MAGNITUDE", "LEARNING_EXPLICIT_MAGNITUDE",
		"EXECUTIVE_DECISION_STRATEGY", "EXECUTIVE_HEURISTIC_THRESHOLD", "EXECUTIVE_GOALS",
	}
	seeds := []string{"bayesian", "NaN", "1e308", "a,,b", "0", "-0", "0x1p-2", "1e-6", ";"}
	for i, seed := range seeds {
		f.Add(uint8(i), seed)
	}
	f.Fuzz(func(t *testing.T, which uint8, value string) {
		name := names[int(which)%len(names)]
		cfg, err := loop.ConfigFromEnv([]string{name + "=" + value})
		if err != nil {
			assert.Equal(t, []string{name}, slices.Compact(faultyFields(err)))
			return
		}
		if cfg.Tuning.Decision.Goals != nil && !strings.Contains(name, "GOALS") {
			t.Fatal("goals of another variable")
		}
		assert.Positive(t, cfg.Tuning.Learning.Strategy.Windows("").Undo)
		_, err = loop.New(ctx, cfg)
		require.NoError(t, err)
	})
}
