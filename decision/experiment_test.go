package decision_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
)

// says is a strategy that always gives this answer.
func says(text string, path decision.Path) decision.Strategy {
	return onlyDecides(func(_ context.Context, r decision.Request) (decision.Result, error) {
		return decision.Result{Path: path, Text: text, ResponseID: r.EventID, Variant: r.Variant}, nil
	})
}

func experiment(t testing.TB, name string, key func(decision.Request) string,
	variants ...decision.Variant) *decision.Experiment {
	t.Helper()
	if variants == nil {
		variants = []decision.Variant{
			{Name: "a", Strategy: says("a", decision.Heuristic)},
			{Name: "b", Strategy: says("b", decision.Model)},
		}
	}
	e, err := decision.NewExperiment(name, key, variants...)
	require.NoError(t, err)
	return e
}

// variantOf returns the name of the variant that decides about a request.
func variantOf(t testing.TB, e *decision.Experiment, r decision.Request) string {
	t.Helper()
	res, err := e.Decide(ctx, r)
	require.NoError(t, err)
	assert.Equal(t, res.Variant, res.Text)
	return res.Variant
}

// Over 10,000 keys a share has a standard error of at most 0.005.
func TestSplit(t *testing.T) {
	variants := []decision.Variant{
		{Name: "a", Strategy: says("a", decision.Heuristic), Share: 6},
		{Name: "b", Strategy: says("b", decision.Model), Share: 3},
		{Name: "none", Strategy: says("none", decision.Model)},
		{Name: "c", Strategy: says("c", decision.Model), Share: 1},
	}
	e := experiment(t, "first", nil, variants...)
	other := experiment(t, "second", nil, variants...)
	counts, both := make(map[string]float64), 0
	for i := range 10_000 {
		r := decision.Request{EventID: fmt.Sprint("event ", i)}
		name := variantOf(t, e, r)
		counts[name] += 1e-4
		if name == "c" && variantOf(t, other, r) == "c" {
			both++
		}
	}
	assert.InDelta(t, 0.6, counts["a"], 0.025)
	assert.InDelta(t, 0.3, counts["b"], 0.025)
	assert.InDelta(t, 0.1, counts["c"], 0.025)
	assert.Zero(t, counts["none"])
	assert.InDelta(t, 100, both, 50, "experiments of different names split differently")

	// where a key goes is fixed for ever
	var first strings.Builder
	for i := range 20 {
		first.WriteString(variantOf(t, e, decision.Request{EventID: fmt.Sprint("event ", i)}))
	}
	assert.Equal(t, "baaaaaaaabaaaabacaab", first.String())
}

func TestSplitByKey(t *testing.T) {
	bySource := func(r decision.Request) string { return r.Source }
	e := experiment(t, "", bySource)
	seen := make(map[string]string)
	for i := range 200 {
		r := decision.Request{EventID: fmt.Sprint(i), Source: fmt.Sprint("person ", i%10)}
		name := variantOf(t, e, r)
		if before, ok := seen[r.Source]; ok {
			assert.Equal(t, before, name)
		}
		seen[r.Source] = name
	}
	assert.Contains(t, fmt.Sprint(seen), ":a")
	assert.Contains(t, fmt.Sprint(seen), ":b")
}

// Requests that nothing tells apart would all meet one variant.
func TestARequestWithoutAKeyIsRefused(t *testing.T) {
	var fault *heed.InputError
	_, err := experiment(t, "", nil).Decide(ctx, decision.Request{Text: "hot"})
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Key", fault.Field)

	bySource := func(r decision.Request) string { return r.Source }
	e := experiment(t, "", bySource)
	_, err = e.Decide(ctx, decision.Request{EventID: "e"})
	require.ErrorAs(t, err, &fault)
	seen := make(map[string]bool)
	for i := range 40 {
		seen[variantOf(t, e, decision.Request{Source: fmt.Sprint(i)})] = true
	}
	assert.Len(t, seen, 2, "a key of the host's needs no EventID")

	alone := experiment(t, "", nil,
		decision.Variant{Name: "a", Strategy: says("a", decision.Model), Share: 0.1},
		decision.Variant{Name: "b", Strategy: says("b", decision.Model)})
	assert.Equal(t, "a", variantOf(t, alone, decision.Request{}), "there is nothing to split")
}

// A request that is not valid, or whose caller has left, reaches no key and no variant.
func TestWhatAnExperimentRefuses(t *testing.T) {
	called := 0
	e := experiment(t, "", func(r decision.Request) string { called++; return r.EventID },
		decision.Variant{Name: "a", Share: 1, Strategy: onlyDecides(
			func(context.Context, decision.Request) (decision.Result, error) {
				called++
				return decision.Result{}, nil
			})}, decision.Variant{Name: "b", Strategy: says("b", decision.Model)})
	left, leave := context.WithCancel(ctx)
	leave()
	_, err := e.Decide(left, decision.Request{EventID: "e"})
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.Decide(ctx, decision.Request{EventID: "e\x00"})
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "EventID", fault.Field)
	assert.Zero(t, called)
	_, err = e.Decide(ctx, decision.Request{EventID: "e"})
	require.NoError(t, err)
	assert.Equal(t, 2, called)
}

// The error of a variant is the experiment's, with the name of the variant.
func TestAVariantThatFails(t *testing.T) {
	broken := errors.New("broken")
	fails := onlyDecides(func(context.Context, decision.Request) (decision.Result, error) {
		return decision.Result{}, broken
	})
	e := experiment(t, "x", nil, decision.Variant{Name: "a", Strategy: fails, Share: 1},
		decision.Variant{Name: "b", Strategy: fails})
	res, err := e.Decide(ctx, decision.Request{EventID: "e"})
	require.ErrorIs(t, err, broken)
	assert.Equal(t, "a", res.Variant)
}

func TestVariantIsInTheTrace(t *testing.T) {
	h := newHeuristicFirst(t, decision.Config{})
	e := experiment(t, "", nil, decision.Variant{Name: "a", Strategy: h},
		decision.Variant{Name: "b", Strategy: h})
	seen := make(map[string]bool)
	for i := range 20 {
		r := decision.Request{EventID: fmt.Sprint(i), Candidates: candidates(0.9)}
		res, err := e.Decide(ctx, r)
		require.NoError(t, err)
		_, trace := feedback(t, h, res.ResponseID, answer.Statement{Value: 1})
		assert.Equal(t, res.Variant, trace.Variant)
		seen[trace.Variant] = true
	}
	assert.Len(t, seen, 2)
}

// All variants but the one that answered decide again, and none can harm the others.
func TestShadow(t *testing.T) {
	panics := onlyDecides(func(context.Context, decision.Request) (decision.Result, error) {
		panic("boom")
	})
	e := experiment(t, "", nil,
		decision.Variant{Name: "control", Strategy: says("a", decision.Heuristic), Share: 1},
		decision.Variant{Name: "broken", Strategy: panics},
		decision.Variant{Name: "other", Strategy: says("b", decision.Model)})
	for i := range 20 {
		r := decision.Request{EventID: fmt.Sprint(i), Candidates: candidates(0.5)}
		res, err := e.Decide(ctx, r)
		require.NoError(t, err)
		assert.Equal(t, [2]string{"a", "control"}, [2]string{res.Text, res.Variant})
		all := e.Shadow(ctx, r, res)
		require.Len(t, all, 2)
		var panicked *heed.PanicError
		assert.ErrorAs(t, all[0].Err, &panicked)
		assert.Equal(t, "broken", all[0].Variant)
		assert.NoError(t, all[1].Err)
		assert.Equal(t, [2]string{"b", "other"}, [2]string{all[1].Text, all[1].Variant})
	}
	all := e.Shadow(ctx, decision.Request{}, decision.Result{Variant: "other"})
	assert.Equal(t, [2]string{"control", "broken"}, [2]string{all[0].Variant, all[1].Variant})
}

func TestExperimentSurvivesPanics(t *testing.T) {
	panics := onlyDecides(func(context.Context, decision.Request) (decision.Result, error) {
		panic("boom")
	})
	var panicked *heed.PanicError
	for name, e := range map[string]*decision.Experiment{
		"a variant": experiment(t, "", nil, decision.Variant{Name: "a", Strategy: panics},
			decision.Variant{Name: "b", Strategy: panics}),
		"the key": experiment(t, "", func(decision.Request) string { panic("boom") }),
	} {
		_, err := e.Decide(ctx, decision.Request{EventID: "e"})
		assert.ErrorAs(t, err, &panicked, name)
	}
}
