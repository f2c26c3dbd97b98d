package attribution_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
)

const here = "session"

func positive(confidence float64) attribution.DirectSignal {
	return attribution.DirectSignal{Session: here, Kind: attribution.Positive, Confidence: confidence}
}

func negative(confidence float64) attribution.DirectSignal {
	return attribution.DirectSignal{Session: here, Kind: attribution.Negative, Confidence: confidence}
}

var (
	failed     = attribution.DirectSignal{Session: here, Kind: attribution.ToolFailure}
	correction = attribution.DirectSignal{Session: here, Kind: attribution.Correction}
	retry      = attribution.DirectSignal{Session: here, Kind: attribution.Retry}
	passed     = attribution.DirectSignal{Session: here, Kind: attribution.BuildStatus, Passed: true}
	broken     = attribution.DirectSignal{Session: here, Kind: attribution.BuildStatus}
)

func TestRouterCombines(t *testing.T) {
	used := func(value float64) *attribution.Worth {
		return &attribution.Worth{Activated: true,
			Value: value}
	}
	elsewhere := failed
	elsewhere.Session = "another session"
	for name, test := range map[string]struct {
		router  attribution.Router
		worth   *attribution.Worth
		signals []attribution.DirectSignal
		want    strategy.Outcome // the zero value: no outcome
	}{
		"nothing": {},
		"attribution": {worth: used(0.6), want: strategy.Outcome{Value: 0.6, Confidence: 0.8,
			Channel: "attribution"}},
		"not activated": {worth: &attribution.Worth{Value: 0.8}},
		"not activated, but seen": {
			worth: &attribution.Worth{Value: 0.8}, signals: []attribution.DirectSignal{positive(0.8),
				passed},
			want: strategy.Outcome{Value: 1, Confidence: 0.5, Channel: "direct"},
		},
		"all bad": {signals: []attribution.DirectSignal{negative(0.7), failed},
			want: strategy.Outcome{Value: -1, Confidence: 0.5, Channel: "direct"}},
		"mixed": {signals: []attribution.DirectSignal{passed, failed},
			want: strategy.Outcome{Value: 0.3 / 1.3, Confidence: 0.5, Channel: "direct"}},
		"balanced": {signals: []attribution.DirectSignal{positive(0.3), retry},
			want: strategy.Outcome{Confidence: 0.5, Channel: "direct"}},
		"many": {signals: []attribution.DirectSignal{positive(0.8), correction, retry},
			want: strategy.Outcome{Value: -0.2 / 1.8, Confidence: 0.5, Channel: "direct"}},
		"a broken build": {signals: []attribution.DirectSignal{broken},
			want: strategy.Outcome{Value: -1, Confidence: 0.5, Channel: "direct"}},
		"no mass":   {signals: []attribution.DirectSignal{positive(0)}},
		"tiny mass": {signals: []attribution.DirectSignal{positive(0.01)}},
		"half a mass": {signals: []attribution.DirectSignal{positive(0.2)},
			want: strategy.Outcome{Value: 1, Confidence: 0.5 * 2 / 3, Channel: "direct"}},
		"both": {
			worth: used(0.5), signals: []attribution.DirectSignal{negative(0.7), failed},
			want: strategy.Outcome{Value: 0.05, Confidence: 0.9, Channel: "both"},
		},
		"both, by other weights": {
			router: attribution.Router{WeightAttribution: 0.2, WeightDirect: 0.8},
			worth:  used(0.3), signals: []attribution.DirectSignal{positive(0.95), negative(0.05)},
			want: strategy.Outcome{Value: 0.78, Confidence: 0.9, Channel: "both"},
		},
		"both, in equal parts": {
			router: attribution.Router{WeightAttribution: 0.5, WeightDirect: 0.5},
			worth:  used(1), signals: []attribution.DirectSignal{negative(0.7), failed},
			want: strategy.Outcome{Confidence: 0.9, Channel: "both"},
		},
		"both, the direct without weight": {
			router: attribution.Router{WeightAttribution: 1},
			worth:  used(0.5), signals: []attribution.DirectSignal{failed},
			want: strategy.Outcome{Value: 0.5, Confidence: 0.8, Channel: "attribution"},
		},
		"both, the attributed without weight": {
			router: attribution.Router{WeightDirect: 1},
			worth:  used(0.5), signals: []attribution.DirectSignal{failed},
			want: strategy.Outcome{Value: -1, Confidence: 0.5, Channel: "direct"},
		},
		"an attributed value alone, without weight": {
			router: attribution.Router{WeightDirect: 1},
			worth:  used(0.5), want: strategy.Outcome{Value: 0.5, Confidence: 0.8,
				Channel: "attribution"},
		},
		"both, the direct hardly": {
			worth: used(1), signals: []attribution.DirectSignal{negative(0.03)},
			want: strategy.Outcome{Value: (0.7 - 0.03) / 0.73, Confidence: 0.81, Channel: "both"},
		},
		"another session's signals": {worth: used(0.5), signals: []attribution.DirectSignal{elsewhere},
			want: strategy.Outcome{Value: 0.5, Confidence: 0.8, Channel: "attribution"}},
		"below the least confidence": {
			router: attribution.Router{MinConfidence: 0.6}, signals: []attribution.DirectSignal{failed},
		},
		"one of each kind": {
			signals: []attribution.DirectSignal{failed, correction, retry, passed},
			want:    strategy.Outcome{Value: -0.7 / 2.3, Confidence: 0.5, Channel: "direct"},
		},
		"other confidences": {
			router: attribution.Router{ConfidenceBoth: 1, ConfidenceAttribution: 0.9,
				ConfidenceDirect: 0.6},
			signals: []attribution.DirectSignal{positive(0.15)},
			want:    strategy.Outcome{Value: 1, Confidence: 0.3, Channel: "direct"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, err := test.router.Route(here, test.worth, test.signals)
			require.NoError(t, err)
			assert.Equal(t, test.want.Channel != "", ok)
			if ok {
				assert.InDelta(t, test.want.Value, got.Value, 1e-9)
				assert.InDelta(t, test.want.Confidence, got.Confidence, 1e-9)
				assert.Equal(t, test.want.Channel, got.Channel)
			}
		})
	}
}

// TestRouterRefusesWhatIsOutOfRange, as a learner does: what it cut to the range would hide a fault
// of the host.
func TestRouterRefusesWhatIsOutOfRange(t *testing.T) {
	router := attribution.Router{}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1.01, -1.01, 5} {
		for field, route := range map[string]func() (strategy.Outcome, bool, error){
			"attributed_value": func() (strategy.Outcome, bool, error) {
				return router.Route(here, &attribution.Worth{Activated: true, Value: x}, nil)
			},
			"signals[1].Confidence": func() (strategy.Outcome, bool, error) {
				return router.Route(here, nil, []attribution.DirectSignal{failed, positive(x)})
			},
		} {
			_, ok, err := route()
			var fault *heed.InputError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, field, fault.Field)
			assert.False(t, ok)
		}
	}
	_, _, err := router.Route(here, nil, []attribution.DirectSignal{{Session: here,
		Kind: "applause"}})
	assert.ErrorContains(t, err, "signals[0].Kind")
}

// TestRouterStaysInRange gives the router anything that it accepts: what it makes of it, a learner
// takes.
func TestRouterStaysInRange(t *testing.T) {
	router := attribution.Router{}
	kinds := rapid.SampledFrom([]string{
		attribution.Positive, attribution.Negative, attribution.ToolFailure, attribution.Correction,
		attribution.Retry, attribution.BuildStatus,
	})
	rapid.Check(t, func(t *rapid.T) {
		var worth *attribution.Worth
		if rapid.Bool().Draw(t, "attributed") {
			worth = &attribution.Worth{Activated: rapid.Bool().Draw(t, "activated"),
				Value: rapid.Float64Range(-1, 1).Draw(t, "value")}
		}
		signals := rapid.SliceOf(rapid.Custom(func(t *rapid.T) attribution.DirectSignal {
			return attribution.DirectSignal{
				Session:    rapid.SampledFrom([]string{here, "elsewhere"}).Draw(t, "session"),
				Kind:       kinds.Draw(t, "kind"),
				Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence"),
				Passed:     rapid.Bool().Draw(t, "passed"),
			}
		})).Draw(t, "signals")
		got, ok, err := router.Route(here, worth, signals)
		require.NoError(t, err)
		assert.True(t, got.Value >= -1 && got.Value <= 1, got.Value)
		if ok {
			assert.True(t, got.Confidence >= 0.3 && got.Confidence <= 1, got.Confidence)
		}
	})
}

func TestRouterConfigFaults(t *testing.T) {
	router := attribution.Router{
		WeightAttribution: -1, WeightDirect: math.NaN(),
		ConfidenceBoth: 2, ConfidenceAttribution: 0.8, ConfidenceDirect: 0.5,
		MinConfidence: -1,
	}
	want := []string{"WeightAttribution", "WeightDirect", "ConfidenceBoth", "MinConfidence"}
	_, _, err := router.Route(here, nil, nil)
	assert.Equal(t, want, fields(err))
	_, err = attribution.New(attribution.Config{
		Learner: newLearner(t, strategy.Config{}), Stream: &tape{}, DeadLetters: &letterbox{},
		Router: router,
	})
	assert.Len(t, fields(err), len(want))
	assert.Equal(t, "Router.WeightAttribution", fields(err)[0])
}

// Each number of a router is bounded on both sides, and its bounds are allowed. A weight may be 0.
// Elsewhere 0 means the default, except for one of several confidences, which must be above 0.
func TestRouterBounds(t *testing.T) {
	kind := reflect.TypeFor[attribution.Router]()
	for i := range kind.NumField() {
		field, most := kind.Field(i).Name, 1.
		weight := strings.HasPrefix(field, "Weight")
		if weight {
			most = 1e6
		}
		refused := func(x float64) []string {
			router := attribution.Router{
				WeightAttribution: 1, WeightDirect: 1,
				ConfidenceBoth: 0.9, ConfidenceAttribution: 0.8, ConfidenceDirect: 0.5,
			}
			reflect.ValueOf(&router).Elem().Field(i).SetFloat(x)
			_, _, err := router.Route(here, nil, nil)
			return fields(err)
		}
		for _, x := range []float64{1e-9, most / 2, most} {
			assert.Empty(t, refused(x), "%s %v", field, x)
		}
		for _, x := range []float64{-1e-9, -1, most * (1 + 1e-9), 3 * most, math.NaN()} {
			assert.Equal(t, []string{field}, refused(x), x)
		}
		assert.Equal(t, strings.HasPrefix(field, "Confidence"), len(refused(0)) > 0, field)
	}
}
