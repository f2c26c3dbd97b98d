package decision_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
)

// drawn draws a request with candidates.
func drawn(t *rapid.T) decision.Request {
	r := decision.Request{
		EventID: rapid.StringMatching("[a-z]{1,3}").Draw(t, "id"), Text: "it is full", Source: "ann",
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "candidates") {
		r.Candidates = append(r.Candidates, decision.Candidate{
			HeuristicID: fmt.Sprint("h", rapid.IntRange(0, i).Draw(t, "heuristic")),
			Condition:   fmt.Sprint("condition ", i),
			Action: rapid.SampledFrom([]string{"Rotate the logs.", "Call ann.", "Wait."}).Draw(
				t, "action",
			),
			Confidence: float64(rapid.IntRange(0, 10).Draw(t, "confidence")) / 10,
		})
	}
	r.Urgency = float64(rapid.IntRange(0, 2).Draw(t, "urgency")) / 2
	r.CanWait = rapid.IntRange(0, 5).Draw(t, "can wait") == 0
	return r
}

// inParts decides as a caller of the parts does.
func inParts(
	t require.TestingT, d *decision.Decider, r decision.Request, m decision.LLM,
) decision.Result {
	if res, ok := d.Trusted(r); ok {
		again, _ := d.Trusted(r)
		require.Equal(t, res, again, "it is pure")
		return res
	}
	ask, err := d.Ask(r)
	require.NoError(t, err)
	again, err := d.Ask(r)
	require.NoError(t, err)
	require.Equal(t, ask, again, "it is pure")
	res, err := d.Reply(ctx, r, ask, m)
	require.NoError(t, err)
	return res
}

// The parts give what Decide gives, except for the id of the trace.
func TestThePartsDecideAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := float64(rapid.IntRange(0, 2).Draw(t, "withhold")) / 2
		cfg := decision.Config{
			LLM: model("Rotate the logs.", `{"success": 0.6, "confidence": 0.4}`), Withhold: &share,
			Prediction: rapid.Bool().Draw(t, "prediction"),
			Strategy:   rapid.SampledFrom([]string{"", "always_llm"}).Draw(t, "strategy"),
		}
		d, err := decision.New(ctx, withFixtures(cfg))
		require.NoError(t, err)
		r := drawn(t)
		r.AskModel, r.ShowNone = rapid.Bool().Draw(t, "ask model"), rapid.Bool().Draw(t, "show none")
		whole, err := d.Decide(ctx, r)
		require.NoError(t, err)
		parts := inParts(t, d, r, cfg.LLM)
		require.Empty(t, parts.ResponseID)
		whole.ResponseID = ""
		require.Equal(t, whole, parts)
	})
}

// One decider does what deciders of several configurations do.
func TestARequestAsksTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		half := 0.5
		cfg := decision.Config{LLM: model("Rotate the logs."), Withhold: &half}
		ask := func(cfg decision.Config, r decision.Request) decision.Result {
			cfg.Seed = rand.NewPCG(7, 8)
			d, err := decision.New(ctx, withFixtures(cfg))
			require.NoError(t, err)
			res, err := d.Decide(ctx, r)
			require.NoError(t, err)
			return res
		}
		r, all := drawn(t), cfg
		all.Strategy, all.Withhold = "always_llm", new(float64)
		asked := r
		asked.AskModel = true
		require.Equal(t, ask(all, r), ask(cfg, asked), "the model is shown all candidates")

		none := r
		none.ShowNone, asked.ShowNone = true, true
		all.Withhold = &half
		require.Equal(t, ask(all, none), ask(cfg, asked), "the model is shown none")
	})
}

func TestAskNamesWhatItCuts(t *testing.T) {
	long, longer := strings.Repeat("again ", prompt.DefaultMax), strings.Repeat("again ", 6000)
	h := newHeuristicFirst(t, decision.Tuned(decision.Config{Bare: true},
		decision.Tuning{MaxCandidates: 5}))
	ask, err := h.Ask(decision.Request{AskModel: true, Candidates: []decision.Candidate{
		{HeuristicID: "short", Condition: "a", Action: "b"},
		{HeuristicID: "condition", Condition: long, Action: "b"},
		{HeuristicID: "action", Condition: "a", Action: long},
		{HeuristicID: "code", Condition: "a", Action: long[:4000], Code: true},
		{HeuristicID: "long code", Condition: "a", Action: longer, Code: true},
		{HeuristicID: "not shown", Condition: long, Action: "b"},
	}})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"condition", "action", "long code"}, ask.LeftOut)
	assert.Len(t, ask.Shown, 5)
}

// A host may change the question. The result and the trace have the prompt as it was sent.
func TestAChangedAsk(t *testing.T) {
	h := newHeuristicFirst(t, decision.Config{})
	r := decision.Request{EventID: "e", Text: "it is full", Candidates: oneAndOther()}
	ask, err := h.Ask(r)
	require.NoError(t, err)
	assert.Equal(t, []string{"same", "other"}, ask.Withheld)
	warm := 0.5
	ask.Prompt, ask.MaxTokens, ask.Temperature = "Rotate the logs?\n"+ask.Prompt, 7, &warm
	m := model("Rotate the logs.")
	res, err := h.Reply(ctx, r, ask, m)
	require.NoError(t, err)
	sent := m.Requests()[0]
	assert.Equal(t, []any{ask.Prompt, 7, 0.5}, []any{sent.Prompt, sent.MaxTokens, *sent.Temperature})
	assert.Equal(t, ask.Prompt, res.Prompt)
	assert.Equal(t, []string{"same"}, res.Told, "the changed prompt has it")
	assert.Len(t, res.Compared, 1)
	require.NoError(t, store.Do(ctx, h.Config().Store, func(tx *store.Tx) error {
		return h.TraceIn(tx, r, &res)
	}))
	trace, err := h.Trace(ctx, res.ResponseID)
	require.NoError(t, err)
	assert.Equal(t, ask.Prompt, trace.Prompt)

	res, err = h.Reply(ctx, r, decision.Ask{}, m)
	require.NoError(t, err)
	assert.Equal(t, h.Config().MaxTokens, m.Requests()[1].MaxTokens)
	assert.Empty(t, slices.Concat(res.ShownIDs, res.Told))
	assert.Empty(t, res.Compared, "nothing was withheld")
}

func TestReplyWithoutAModel(t *testing.T) {
	h := newHeuristicFirst(t, decision.Config{})
	res, err := h.Reply(ctx, decision.Request{}, decision.Ask{}, nil)
	require.NoError(t, err)
	assert.Equal(t, "llm_unavailable", res.Reason)
	res, err = h.Reply(ctx, decision.Request{CanWait: true}, decision.Ask{}, model("x"))
	require.NoError(t, err)
	assert.Equal(t, "not_immediate", res.Reason)
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err = h.Reply(done, decision.Request{}, decision.Ask{}, model("x"))
	require.ErrorIs(t, err, context.Canceled)

	bad, fault := decision.Request{Urgency: 2, Candidates: candidates(1)}, (*heed.InputError)(nil)
	_, err = h.Ask(bad)
	require.ErrorAs(t, err, &fault)
	_, err = h.Reply(ctx, bad, decision.Ask{}, model("x"))
	require.ErrorAs(t, err, &fault)
	_, ok := h.Trusted(bad)
	assert.False(t, ok)
}

// The parts notify nobody. Notify does, once.
func TestNotify(t *testing.T) {
	var l listener
	boom := errors.New("boom")
	h := newHeuristicFirst(t, decision.Config{Observer: l.observe, Prediction: true})
	r := decision.Request{EventID: "e", Candidates: candidates(0.1)}
	res := inParts(t, h, r, &llmtest.Model{Answers: []llmtest.Step{{Err: boom}}})
	require.Equal(t, "llm_error", res.Reason)
	assert.Empty(t, l.take())
	h.Notify(ctx, res, start)
	exposed := l.take()
	require.Len(t, exposed, 2)
	assert.ErrorIs(t, exposed[0].(heed.Failed).Err, boom)
	decided := heed.Decided{Component: "decision", At: start, Path: "fallback", Reason: "llm_error"}
	assert.Equal(t, decided, exposed[1])

	res.Reason, decided.Reason = "", "" // something else stopped the model
	h.Notify(ctx, res, start)
	assert.Equal(t, []heed.Notice{decided}, l.take())

	res = inParts(t, h, r, &llmtest.Model{
		Answers: llmtest.Say("Do it."), Predictions: []llmtest.Step{{Err: boom}},
	})
	h.Notify(ctx, res, start)
	exposed = l.take()
	require.Len(t, exposed, 2)
	assert.Equal(t, "prediction", exposed[0].(heed.Failed).What)
	newHeuristicFirst(t, decision.Config{}).Notify(ctx, res, start)
}

// The name of a forgotten person is in no text that heed has written.
func TestATraceDoesNotNameAForgottenPerson(t *testing.T) {
	const name = "Ann [the] Example"
	for what, cfg := range map[string]decision.Config{
		"default": {}, "design": decision.SpecConfig(),
	} {
		cfg.LLM = model("Do it.")
		h := newHeuristicFirst(t, cfg)
		res, err := h.Decide(ctx, decision.Request{EventID: "e", Text: "it is full", Source: name})
		require.NoError(t, err)
		assert.Contains(t, res.Prompt, "[Ann (the) Example]: it is full", what)
		trace, err := h.Trace(ctx, res.ResponseID)
		require.NoError(t, err)
		assert.Equal(t, name, trace.Source)
		assert.Contains(t, trace.Prompt, "[source]: it is full", what)
		st := h.Config().Store
		err = store.Run(ctx, st, store.Job{Forget: []string{name}})
		require.NoError(t, err)
		n := 0
		for r, err := range st.Find(ctx, store.Query{Kind: "decision.trace"}) {
			require.NoError(t, err)
			body, err := r.Body.JSON()
			require.NoError(t, err)
			assert.NotContains(t, strings.ToLower(string(body)+fmt.Sprint(r.Keys)), "ann", what)
			n++
		}
		assert.Equal(t, 1, n)
	}
}
