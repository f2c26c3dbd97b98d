package learningtest_test

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/learning/learningtest"
)

type signal = learning.Signal

func TestStrategies(t *testing.T) {
	for name, cfg := range map[string]learning.BayesianConfig{
		"defaults": {},
		"words":    {IsUndo: learning.Keywords("undo", "never mind")},
		"weights":  {Weights: map[string]float64{learning.ChannelUndo: 0, learning.ChannelTimeout: 0}},
		"quiet":    {IsUndo: learning.Keywords()},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := learning.NewBayesian(cfg)
			require.NoError(t, err)
			learningtest.RunStrategy(t, b)
		})
	}
}

// brokenStrategy is a good strategy with something spoilt.
type brokenStrategy struct {
	learning.Strategy
	feedback func(good learning.Strategy, f learning.Judgement) (signal, error)
	timeout  func(good learning.Strategy, t learning.Answer) (signal, error)
	undo     func(good learning.Strategy, text string, answers []learning.Answer) ([]signal, error)
	isUndo   func(text string) bool
	windows  func(domain string) learning.Windows
	config   func() map[string]string
}

func (b *brokenStrategy) InterpretJudgement(f learning.Judgement) (signal, error) {
	if b.feedback == nil {
		return b.Strategy.InterpretJudgement(f)
	}
	return b.feedback(b.Strategy, f)
}

func (b *brokenStrategy) InterpretTimeout(t learning.Answer) (signal, error) {
	if b.timeout == nil {
		return b.Strategy.InterpretTimeout(t)
	}
	return b.timeout(b.Strategy, t)
}

func (b *brokenStrategy) InterpretUndo(text string, answers []learning.Answer) ([]signal, error) {
	if b.undo == nil {
		return b.Strategy.InterpretUndo(text, answers)
	}
	return b.undo(b.Strategy, text, answers)
}

func (b *brokenStrategy) IsUndo(text string) bool {
	if b.isUndo == nil {
		return b.Strategy.IsUndo(text)
	}
	return b.isUndo(text)
}

func (b *brokenStrategy) Windows(domain string) learning.Windows {
	if b.windows == nil {
		return b.Strategy.Windows(domain)
	}
	return b.windows(domain)
}

func (b *brokenStrategy) Config() map[string]string {
	if b.config == nil {
		return b.Strategy.Config()
	}
	return b.config()
}

// TestStrategySuiteBites runs the suite against strategies that each break one rule, and expects it
// to say so.
func TestStrategySuiteBites(t *testing.T) {
	var asked atomic.Int64
	shared := map[string]string{"strategy": "shared"}
	metadata := map[string]string{"elapsed": "x"}
	for _, test := range []struct {
		fault    string
		broken   brokenStrategy
		caughtBy string
	}{
		{"its signals are worth no number", brokenStrategy{timeout: func(good learning.Strategy,
			t learning.Answer) (signal, error) {
			s, err := good.InterpretTimeout(t)
			s.Worth = math.NaN()
			return s, err
		}}, "signals can be counted"},
		{"it speaks of nobody", brokenStrategy{timeout: func(good learning.Strategy,
			t learning.Answer) (signal, error) {
			s, err := good.InterpretTimeout(t)
			s.HeuristicID = ""
			return s, err
		}}, "signals can be counted"},
		{"it turns thumbs round", brokenStrategy{feedback: func(good learning.Strategy,
			f learning.Judgement) (signal, error) {
			f.Value = -f.Value
			return good.InterpretJudgement(f)
		}}, "praise is no complaint"},
		{"it takes every score", brokenStrategy{feedback: func(good learning.Strategy,
			f learning.Judgement) (signal, error) {
			f.Score = min(max(f.Score, 1), map[string]int{"": 1, learning.UserScale: 3,
				learning.DevScale: 5}[f.Scale])
			return good.InterpretJudgement(f)
		}}, "a judgement that is not valid is an error"},
		{"it undoes everything twice", brokenStrategy{undo: func(good learning.Strategy, text string,
			answers []learning.Answer) ([]signal, error) {
			signals, err := good.InterpretUndo(text, answers)
			return append(signals, signals...), err
		}}, "names no answer that was shown"},
		{"it undoes the last first", brokenStrategy{undo: func(good learning.Strategy, text string,
			answers []learning.Answer) ([]signal, error) {
			signals, err := good.InterpretUndo(text, answers)
			slices.Reverse(signals)
			return signals, err
		}}, "names no answer that was shown"},
		{"it undoes what was not shown", brokenStrategy{undo: func(good learning.Strategy, text string,
			answers []learning.Answer) ([]signal, error) {
			signals, err := good.InterpretUndo(text, answers)
			return append(signals, learning.Signal{HeuristicID: "h9", EventID: "e9",
				Channel: "x", Worth: -1}), err
		}}, "without answers, "},
		{"it recognises no undo", brokenStrategy{isUndo: func(string) bool { return false }},
			"IsUndo returns false"},
		{"it hears no command", brokenStrategy{undo: func(good learning.Strategy, text string,
			answers []learning.Answer) ([]signal, error) {
			if text == "" {
				return nil, nil
			}
			return good.InterpretUndo(text, answers)
		}}, "a command without words takes something back"},
		{"it has moods", brokenStrategy{timeout: func(good learning.Strategy,
			t learning.Answer) (signal, error) {
			s, err := good.InterpretTimeout(t)
			s.Worth = float64(asked.Add(1) % 5)
			return s, err
		}}, "equal requests have equal answers, which a caller may change"},
		{"it sorts what it is given", brokenStrategy{undo: func(good learning.Strategy, text string,
			answers []learning.Answer) ([]signal, error) {
			signals, err := good.InterpretUndo(text, answers)
			slices.Reverse(answers)
			return signals, err
		}}, "the answers that it was asked about"},
		{"its answers share a map", brokenStrategy{timeout: func(good learning.Strategy,
			t learning.Answer) (signal, error) {
			s, err := good.InterpretTimeout(t)
			s.Metadata = metadata
			return s, err
		}}, "equal requests have equal answers, which a caller may change"},
		{"it hands out its configuration", brokenStrategy{
			config: func() map[string]string { return shared }}, "the configuration names the strategy"},
		{"it has no name", brokenStrategy{config: func() map[string]string { return nil }},
			"the configuration names the strategy"},
		{"its windows are negative", brokenStrategy{
			windows: func(string) learning.Windows { return learning.Windows{Undo: -1} }},
			"windows are not negative"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			test.broken.Strategy = learning.SpecConfig().Strategy
			require.ErrorContains(t, learningtest.CheckStrategy(&test.broken), test.caughtBy)
		})
	}
}
