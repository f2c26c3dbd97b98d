package decision_test

import (
	"cmp"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/memstore"
)

func fieldsOf(err error) (fields []string) {
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	return fields
}

func TestDefaults(t *testing.T) {
	cfg := newHeuristicFirst(t, decision.Config{}).Config()
	assert.Equal(t, 0.7, cfg.Threshold)
	assert.Equal(t, 3, decision.TuningOf(cfg).MaxCandidates)
	assert.Zero(t, cfg.UrgencyReduction)
	assert.False(t, cfg.UrgencyTiers)
	assert.Equal(t, "heuristic_first", cfg.Strategy)
	assert.Equal(t, heed.Trigrams{}, cfg.Similarity)
	assert.Equal(t, 1.0, *cfg.Withhold)
	assert.False(t, cfg.Prediction)
	assert.Equal(t, decision.DefaultSystem, cfg.System)
	assert.NotRegexp(t, "(?i)urgent|threat|danger|wrong", cfg.System, "the default is neutral")
}

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
		_, err := decision.New(ctx, decision.Config{Strategy: name, Threshold: 2})
		assert.Equal(t, []string{"Strategy", "Threshold"}, fieldsOf(err), name)
	}
}

// The values of the Decision Strategy Interface design, and nothing else.
func TestSpecConfig(t *testing.T) {
	assert.Equal(t, decision.Tuned(
		decision.Config{Threshold: 0.7, Prediction: true, Withhold: new(float64)},
		decision.Tuning{MaxCandidates: 3, NoSimilarity: true, Event: "URGENT event:"},
	), decision.SpecConfig())
}

func TestAllFaultsAreReported(t *testing.T) {
	hot := 3.
	_, err := decision.New(ctx, decision.Config{
		Strategy: "hybrid", Threshold: math.NaN(), UrgencyReduction: -1,
		Timeout: -1, MaxInFlight: -1, MaxTokens: -1,
		Withhold: &hot,
	})
	assert.Equal(t, []string{
		"Strategy", "Threshold", "UrgencyReduction", "Withhold",
		"Timeout", "MaxInFlight", "MaxTokens",
	}, fieldsOf(err))
	_, err = decision.New(ctx, decision.Config{Strategy: "always_llm", Threshold: 2})
	assert.Equal(t, []string{"Threshold"}, fieldsOf(err))
	_, err = decision.NewExperiment("", nil, decision.Variant{Name: "a", Share: -1})
	assert.Equal(t, []string{"Variants", "Variants[0].Strategy", "Variants[0].Share"}, fieldsOf(err))
	_, err = decision.NewExperiment("", nil,
		decision.Variant{Name: "a", Strategy: says("a", decision.Model)},
		decision.Variant{Strategy: says("b", decision.Model)},
		decision.Variant{Name: "a", Strategy: says("c", decision.Model)})
	assert.Equal(t, []string{"Variants[1].Name", "Variants[2].Name"}, fieldsOf(err))
}

func TestConfigIsACopy(t *testing.T) {
	half := 0.5
	cfg := decision.Config{Goals: map[string][]string{"": {"goal"}}, Withhold: &half}
	h := newHeuristicFirst(t, cfg)
	cfg.Goals[""][0], *cfg.Withhold = "another", 1
	h.Config().Goals[""][0] = "a third"
	got := h.Config()
	assert.Equal(t, []string{"goal"}, got.Goals[""])
	assert.Equal(t, 0.5, *got.Withhold)
	again, err := decision.New(ctx, got)
	require.NoError(t, err)
	assert.Equal(t, got.System, again.Config().System)
}

// A model also gets these settings with its prompts.
func TestModelSettings(t *testing.T) {
	m := model("Do it.")
	cfg := decision.Config{Prediction: true, LLM: m, MaxTokens: 99}
	decide(t, cfg, decision.Request{})
	cfg.MaxTokens = 0
	decide(t, cfg, decision.Request{})
	requests := m.Requests()
	require.Len(t, requests, 4)
	for i, r := range requests {
		assert.Equal(t, i%2 == 1, r.JSON, "only the prediction asks for JSON")
		assert.Equal(t, i%2 == 0, r.System != "", "and it has no system prompt")
		if i < 2 {
			assert.Equal(t, 99, r.MaxTokens)
		} else {
			assert.Equal(t, 1024, r.MaxTokens)
		}
		assert.Nil(t, r.Temperature)
	}
}

func TestTraces(t *testing.T) {
	c := &clock{}
	c.Advance(time.Hour + 1)
	long, sure := strings.Repeat("ö", 9000), decision.Prediction{Success: 0.9, Confidence: 0.9}
	request := decision.Request{
		EventID: "e", Text: "the oven is on", Source: "kitchen", Domain: "home",
		Candidates: candidates(0.9), Variant: "b",
	}
	for name, tt := range map[string]struct {
		cfg    decision.Config
		change func(*decision.Request)
		want   decision.Trace
	}{
		"of a heuristic": {decision.Config{}, nil, decision.Trace{
			Path: decision.Heuristic, Text: "the oven is on", Response: "action 1", MatchedID: "h1",
			CreditID: "h1", Prediction: &sure,
		}},
		"of the model": {decision.Config{Withhold: new(float64), Prediction: true, LLM: model("Off.", `{"success": 0.6, "confidence": 0.4}`)}, func(r *decision.Request) { r.Candidates = candidates(0.6, 0.5) }, decision.Trace{
			Path: decision.Model, Text: "the oven is on", Response: "Off.", MatchedID: "h1",
			Prediction: &decision.Prediction{Success: 0.6, Confidence: 0.4},
			ShownIDs:   []string{"h1", "h2"}, System: decision.DefaultSystem,
			Prompt: "Event [source]: the oven is on\n\n" +
				"Previous responses to similar situations (for context — you may ignore these):\n" +
				"1. Situation: \"condition 1\" → Response: \"action 1\"\n2. Situation: \"condition 2\" → " +
				"Response: \"action 2\"\n\nHow should I respond?",
		}},
		"of what no database keeps": {decision.Config{},
			func(r *decision.Request) { r.Text = "a\x00b\xff\xfec" }, decision.Trace{
				Path: decision.Heuristic, Text: "ab\ufffdc", Response: "action 1", MatchedID: "h1",
				CreditID: "h1", Prediction: &sure,
			}},
		"of a long text": {decision.Config{}, func(r *decision.Request) { r.Text = "x" + long },
			decision.Trace{
				Path: decision.Heuristic, Text: ("x" + long)[:16<<10-1], Response: "action 1",
				MatchedID: "h1", CreditID: "h1", Prediction: &sure,
			}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Now, tt.cfg.Store = c.Now, newStore(c.Now)
			r := request
			if tt.change != nil {
				tt.change(&r)
			}
			h := newHeuristicFirst(t, tt.cfg)
			res, err := h.Decide(ctx, r)
			require.NoError(t, err)
			got, err := h.Trace(ctx, res.ResponseID)
			require.NoError(t, err)
			tt.want.ResponseID, tt.want.EventID, tt.want.Source, tt.want.Domain,
				tt.want.Variant = res.ResponseID, "e", "kitchen", "home", "b"
			tt.want.At = start.Add(time.Hour)
			assert.Equal(t, tt.want, got)
		})
	}
	res := decide(t, decision.Config{}, decision.Request{})
	assert.Empty(t, res.ResponseID, "of no answer there is no trace")
	h, err := decision.New(ctx, decision.Config{})
	require.NoError(t, err)
	res, err = h.Decide(ctx, request)
	require.NoError(t, err)
	assert.Len(t, res.ResponseID, 36, "without a store an answer has a random id all the same")
}

func TestZeroStore(t *testing.T) {
	h, err := decision.New(ctx, decision.Config{Store: &memstore.Store{}})
	require.NoError(t, err)
	res, err := h.Decide(ctx, decision.Request{Candidates: candidates(0.9)})
	require.NoError(t, err)
	trace, err := h.Trace(ctx, res.ResponseID)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), trace.At, time.Minute)
}
