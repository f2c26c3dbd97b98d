package strategy_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/strategy"
)

const here = "session"

func positive(confidence float64) strategy.Signal {
	return strategy.Signal{Session: here, Kind: strategy.SignalPositive, Confidence: confidence}
}

func negative(confidence float64) strategy.Signal {
	return strategy.Signal{Session: here, Kind: strategy.SignalNegative, Confidence: confidence}
}

var (
	failed     = strategy.Signal{Session: here, Kind: strategy.SignalToolFailure}
	correction = strategy.Signal{Session: here, Kind: strategy.SignalCorrection}
	retry      = strategy.Signal{Session: here, Kind: strategy.SignalRetry}
	passed     = strategy.Signal{Session: here, Kind: strategy.SignalBuildStatus, Passed: true}
	broken     = strategy.Signal{Session: here, Kind: strategy.SignalBuildStatus}
)

func newRouter(t testing.TB, cfg strategy.RouterConfig) *strategy.Router {
	router, err := strategy.NewRouter(cfg)
	require.NoError(t, err)
	return router
}

func TestRouterCombines(t *testing.T) {
	used := func(value float64) *strategy.Attribution { return &strategy.Attribution{Activated: true, Value: value} }
	elsewhere := failed
	elsewhere.Session = "another session"
	for name, test := range map[string]struct {
		cfg         strategy.RouterConfig
		attribution *strategy.Attribution
		signals     []strategy.Signal
		want        strategy.Routed // the zero value: no outcome
	}{
		"nothing":                      {},
		"attribution":                  {attribution: used(0.6), want: strategy.Routed{Value: 0.6, Confidence: 0.8, Source: strategy.FromAttribution}},
		"attribution beyond the range": {attribution: used(2.5), want: strategy.Routed{Value: 1, Confidence: 0.8, Source: strategy.FromAttribution}},
		"not activated":                {attribution: &strategy.Attribution{Value: 0.8}},
		"not activated, but seen": {
			attribution: &strategy.Attribution{Value: 0.8}, signals: []strategy.Signal{positive(0.8), passed},
			want: strategy.Routed{Value: 1, Confidence: 0.5, Source: strategy.FromDirect},
		},
		"all bad":        {signals: []strategy.Signal{negative(0.7), failed}, want: strategy.Routed{Value: -1, Confidence: 0.5, Source: strategy.FromDirect}},
		"mixed":          {signals: []strategy.Signal{passed, failed}, want: strategy.Routed{Value: 0.3 / 1.3, Confidence: 0.5, Source: strategy.FromDirect}},
		"balanced":       {signals: []strategy.Signal{positive(0.3), retry}, want: strategy.Routed{Confidence: 0.5, Source: strategy.FromDirect}},
		"many":           {signals: []strategy.Signal{positive(0.8), correction, retry}, want: strategy.Routed{Value: -0.2 / 1.8, Confidence: 0.5, Source: strategy.FromDirect}},
		"a broken build": {signals: []strategy.Signal{broken}, want: strategy.Routed{Value: -1, Confidence: 0.5, Source: strategy.FromDirect}},
		"no mass":        {signals: []strategy.Signal{positive(0)}},
		"tiny mass":      {signals: []strategy.Signal{positive(0.01)}},
		"half a mass":    {signals: []strategy.Signal{positive(0.2)}, want: strategy.Routed{Value: 1, Confidence: 0.5 * 2 / 3, Source: strategy.FromDirect}},
		"confidence beyond the range": {
			signals: []strategy.Signal{positive(7), negative(-3), negative(0.5)},
			want:    strategy.Routed{Value: 0.5 / 1.5, Confidence: 0.5, Source: strategy.FromDirect},
		},
		"both": {
			attribution: used(0.5), signals: []strategy.Signal{negative(0.7), failed},
			want: strategy.Routed{Value: 0.05, Confidence: 0.9, Source: strategy.FromBoth},
		},
		"both, by other weights": {
			cfg:         strategy.RouterConfig{Weights: strategy.RouterWeights{Attribution: 0.2, Direct: 0.8}},
			attribution: used(0.3), signals: []strategy.Signal{positive(0.95), negative(0.05)},
			want: strategy.Routed{Value: 0.78, Confidence: 0.9, Source: strategy.FromBoth},
		},
		"both, in equal parts": {
			cfg:         strategy.RouterConfig{Weights: strategy.RouterWeights{Attribution: 0.5, Direct: 0.5}},
			attribution: used(1), signals: []strategy.Signal{negative(0.7), failed},
			want: strategy.Routed{Confidence: 0.9, Source: strategy.FromBoth},
		},
		"both, the direct without weight": {
			cfg:         strategy.RouterConfig{Weights: strategy.RouterWeights{Attribution: 1}},
			attribution: used(0.5), signals: []strategy.Signal{failed},
			want: strategy.Routed{Value: 0.5, Confidence: 0.8, Source: strategy.FromAttribution},
		},
		"both, the attributed without weight": {
			cfg:         strategy.RouterConfig{Weights: strategy.RouterWeights{Direct: 1}},
			attribution: used(0.5), signals: []strategy.Signal{failed},
			want: strategy.Routed{Value: -1, Confidence: 0.5, Source: strategy.FromDirect},
		},
		"an attributed value alone, without weight": {
			cfg:         strategy.RouterConfig{Weights: strategy.RouterWeights{Direct: 1}},
			attribution: used(0.5), want: strategy.Routed{Value: 0.5, Confidence: 0.8, Source: strategy.FromAttribution},
		},
		"both, the direct hardly": {
			attribution: used(1), signals: []strategy.Signal{negative(0.03)},
			want: strategy.Routed{Value: (0.7 - 0.03) / 0.73, Confidence: 0.81, Source: strategy.FromBoth},
		},
		"another session's signals": {attribution: used(0.5), signals: []strategy.Signal{elsewhere}, want: strategy.Routed{Value: 0.5, Confidence: 0.8, Source: strategy.FromAttribution}},
		"below the least confidence": {
			cfg: strategy.RouterConfig{MinConfidence: 0.6}, signals: []strategy.Signal{failed},
		},
		"other scores": {
			cfg:     strategy.RouterConfig{Scores: strategy.SignalScores{ToolFailure: 0.1, Correction: 0.2, Retry: 0.25, BuildStatus: 0.45}},
			signals: []strategy.Signal{failed, correction, retry, passed},
			want:    strategy.Routed{Value: -0.1, Confidence: 0.5, Source: strategy.FromDirect},
		},
		"other confidences and mass": {
			cfg:     strategy.RouterConfig{Confidences: strategy.RouterConfidences{Both: 1, Attribution: 0.9, Direct: 0.6}, FullMass: 1},
			signals: []strategy.Signal{failed},
			want:    strategy.Routed{Value: -1, Confidence: 0.3, Source: strategy.FromDirect},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, err := newRouter(t, test.cfg).Route(here, test.attribution, test.signals)
			require.NoError(t, err)
			assert.Equal(t, test.want != strategy.Routed{}, ok)
			if ok {
				assert.InDelta(t, test.want.Value, got.Value, 1e-9)
				assert.InDelta(t, test.want.Confidence, got.Confidence, 1e-9)
				assert.Equal(t, test.want.Source, got.Source)
			}
		})
	}
}

func TestRouterRefusesWhatIsNoNumber(t *testing.T) {
	router := newRouter(t, strategy.RouterConfig{})
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for field, route := range map[string]func() (strategy.Routed, bool, error){
			"attribution.Value": func() (strategy.Routed, bool, error) {
				return router.Route(here, &strategy.Attribution{Activated: true, Value: x}, nil)
			},
			"signals[1].Confidence": func() (strategy.Routed, bool, error) {
				return router.Route(here, nil, []strategy.Signal{failed, positive(x)})
			},
		} {
			_, ok, err := route()
			var fault *heed.InputError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, field, fault.Field)
			assert.False(t, ok)
		}
	}
	_, _, err := router.Route(here, nil, []strategy.Signal{{Session: here, Kind: "applause"}})
	assert.ErrorContains(t, err, "signals[0].Kind")
}

// TestRouterStaysInRange gives the router anything finite: what it makes of it, a learner takes.
func TestRouterStaysInRange(t *testing.T) {
	router := newRouter(t, strategy.RouterConfig{})
	kinds := rapid.SampledFrom([]strategy.SignalKind{
		strategy.SignalPositive, strategy.SignalNegative, strategy.SignalToolFailure, strategy.SignalCorrection,
		strategy.SignalRetry, strategy.SignalBuildStatus,
	})
	rapid.Check(t, func(t *rapid.T) {
		var attribution *strategy.Attribution
		if rapid.Bool().Draw(t, "attributed") {
			attribution = &strategy.Attribution{Activated: rapid.Bool().Draw(t, "activated"), Value: rapid.Float64().Draw(t, "value")}
		}
		signals := rapid.SliceOf(rapid.Custom(func(t *rapid.T) strategy.Signal {
			return strategy.Signal{
				Session: rapid.SampledFrom([]string{here, "elsewhere"}).Draw(t, "session"), Kind: kinds.Draw(t, "kind"),
				Confidence: rapid.Float64().Draw(t, "confidence"), Passed: rapid.Bool().Draw(t, "passed"),
			}
		})).Draw(t, "signals")
		got, ok, err := router.Route(here, attribution, signals)
		require.NoError(t, err)
		assert.True(t, got.Value >= -1 && got.Value <= 1, got.Value)
		if ok {
			assert.True(t, got.Confidence >= 0.3 && got.Confidence <= 1, got.Confidence)
		}
	})
}

func TestRouterConfigFaults(t *testing.T) {
	_, err := strategy.NewRouter(strategy.RouterConfig{
		Weights:       strategy.RouterWeights{Attribution: -1, Direct: math.NaN()},
		Confidences:   strategy.RouterConfidences{Both: 2, Attribution: 0.8, Direct: 0.5},
		MinConfidence: -1, Scores: strategy.SignalScores{Retry: math.Inf(1)}, FullMass: 3,
	})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.Equal(t, []string{"Weights.Attribution", "Weights.Direct", "Confidences.Both", "MinConfidence", "Scores.Retry", "FullMass"}, fields)
	assert.Equal(t, 0.7, newRouter(t, strategy.RouterConfig{}).Config().Weights.Attribution)
}
