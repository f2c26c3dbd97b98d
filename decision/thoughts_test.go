package decision_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
)

// Thoughts has the text that a model writes to itself. No other field has it.
func TestThoughtsAreInNoAnswer(t *testing.T) {
	m := model("<think>SECRET\nRotate the logs?</think>\n\nCall the people on call.", `<think>{"success": 0.1, "confidence": 0.1} SECRET</think>{"success": 0.6, "confidence": 0.4}`)
	h := newHeuristicFirst(t, decision.Config{LLM: m, Prediction: true,
		Withhold: share(1)})
	res, err := h.Decide(ctx, decision.Request{EventID: "e", Text: "full", Candidates: oneAndOther()})
	require.NoError(t, err)
	assert.Equal(t, "Call the people on call.", res.Text)
	assert.Equal(t, "SECRET\nRotate the logs?", res.Thoughts)
	assert.Equal(t, &decision.Prediction{Success: 0.6, Confidence: 0.4}, res.Prediction)
	require.Len(t, res.Compared, 2)
	assert.False(t, res.Compared[0].Agrees)
	assert.True(t, res.Compared[1].Agrees, "the thoughts are not compared")
	for _, r := range m.Requests() {
		assert.NotContains(t, r.System+r.Prompt, "SECRET")
	}
	trace, err := h.Trace(ctx, res.ResponseID)
	require.NoError(t, err)
	assert.NotContains(t, trace.Text+trace.Response+trace.System+trace.Prompt, "SECRET")
	assert.Equal(t, "Call the people on call.", trace.Response)
}

func TestThoughtsAloneAreNoAnswer(t *testing.T) {
	for _, text := range []string{"<think>SECRET</think>", "<reasoning>SECRET", "SECRET</think>\n",
		"<thinking>a<thinking>SECRET</thinking></thinking> "} {
		res := decide(t, decision.Config{LLM: model(text)}, decision.Request{})
		assert.Equal(t, "llm_no_response", res.Reason, text)
		assert.Empty(t, res.Text+res.ResponseID)
		assert.Contains(t, res.Thoughts, "SECRET")
	}
}

// What is recorded is what the caller got, so it must be text.
func TestAnAnswerIsText(t *testing.T) {
	for _, text := range []string{"\u200b", " \u200b\ufeff\n", "\u2060\ufe0f"} {
		res := decide(t, decision.Config{LLM: model(text)}, decision.Request{})
		assert.Equal(t, "llm_no_response", res.Reason, "%q", text)
		assert.Empty(t, res.Text+res.ResponseID)
	}
	assert.Equal(t, "a\ufffdb", decide(t, decision.Config{LLM: model("a\xff\xfeb")},
		decision.Request{}).Text)
	assert.Equal(t, "👍", decide(t, decision.Config{LLM: model("👍")}, decision.Request{}).Text)
}

// A provider may tell thoughts apart, and the model may add some in its text.
func TestThoughtsThatAProviderTells(t *testing.T) {
	m := decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: "<think>two</think>Do it.", Thoughts: "one"}, nil
	})
	res := decide(t, decision.Config{LLM: m}, decision.Request{})
	assert.Equal(t, "Do it.", res.Text)
	assert.Equal(t, "one\n\ntwo", res.Thoughts)
}

func TestAnExtractionHasNoThoughts(t *testing.T) {
	reply := `<think>{"condition": "SECRET"}</think>{"condition": "the oven or the stove is on and there is nobody in the kitchen", ` +
		`"action": {"type": "warn", "message": "Turn the oven off, and tell whoever is in that it had been left on."}}`
	m := &llmtest.Model{Answers: llmtest.Say("Turn it off."), Predictions: llmtest.Say(reply)}
	h := newHeuristicFirst(t, decision.Config{LLM: m})
	res, err := h.Decide(ctx, decision.Request{Text: "The oven is on."})
	require.NoError(t, err)
	got, err := h.Extract(ctx, res.ResponseID, nil)
	require.NoError(t, err)
	require.NotEmpty(t, got.Condition, got.Refused)
	assert.NotContains(t, got.Condition, "SECRET")
}

// By default nothing is predicted: no second call, no number anywhere.
func TestNoPrediction(t *testing.T) {
	m := model(`Do it. {"success": 0.6, "confidence": 0.4}`, `{"success": 0.6, "confidence": 0.4}`)
	h := newHeuristicFirst(t, decision.Config{LLM: m})
	res, err := h.Decide(ctx, decision.Request{EventID: "e"})
	require.NoError(t, err)
	assert.Equal(t, 1, res.Calls)
	assert.Nil(t, res.Prediction)
	assert.Contains(t, res.Text, "success", "the text stays as it is")
	trace, err := h.Trace(ctx, res.ResponseID)
	require.NoError(t, err)
	assert.Nil(t, trace.Prediction)
	res = decide(t, decision.Config{}, decision.Request{Candidates: candidates(0.9)})
	assert.Equal(t, 0.9, res.Prediction.Success)
}

// A host's redaction changes each text of a trace, and neither the result nor the prompt.
func TestRedaction(t *testing.T) {
	cfg := decision.Config{LLM: model("Call Ann."),
		Redact: func(text string) string { return strings.ReplaceAll(text, "Ann", "***") }}
	cfg.Withhold = share(0)
	h := newHeuristicFirst(t, cfg)
	r := decision.Request{Text: "Ann rings.", Briefing: "Ann is the boss.",
		Candidates: []decision.Candidate{{HeuristicID: "h", Condition: "Ann", Action: "Hello, Ann."}}}
	res, err := h.Decide(ctx, r)
	require.NoError(t, err)
	assert.Contains(t, res.System, "Ann is the boss.")
	assert.Contains(t, res.Prompt, "Hello, Ann.")
	assert.Equal(t, "Call Ann.", res.Text)
	trace, err := h.Trace(ctx, res.ResponseID)
	require.NoError(t, err)
	assert.Equal(t, "*** rings.", trace.Text)
	assert.Equal(t, "Call ***.", trace.Response)
	assert.Equal(t, strings.ReplaceAll(res.System, "Ann", "***"), trace.System)
	assert.Equal(t, strings.ReplaceAll(res.Prompt, "Ann", "***"), trace.Prompt)

	cfg.Redact = func(string) string { panic("boom") }
	res, err = newHeuristicFirst(t, cfg).Decide(ctx, r)
	require.Error(t, err, "nothing is stored that was not redacted")
	assert.Equal(t, "Call Ann.", res.Text)
	assert.Empty(t, res.ResponseID)
}

// The model is sent what the result and the trace say.
func TestTheWholePromptIsKept(t *testing.T) {
	m := &llmtest.Model{Answers: []llmtest.Step{{Text: "Do it."}, {Err: errors.New("out of order")}}}
	h := newHeuristicFirst(t, decision.Config{LLM: m})
	for range 2 {
		res, err := h.Decide(ctx, decision.Request{Text: "hot", Briefing: "- Never open the door.",
			Goals: []string{"Be kind."}, Candidates: candidates(0.1)})
		require.NoError(t, err)
		sent := m.Requests()[len(m.Requests())-1]
		assert.Equal(t, [2]string{sent.System, sent.Prompt}, [2]string{res.System, res.Prompt})
		assert.Contains(t, res.System, "Never open the door.")
		if res.ResponseID != "" {
			trace, err := h.Trace(ctx, res.ResponseID)
			require.NoError(t, err)
			assert.Equal(t, [2]string{sent.System, sent.Prompt}, [2]string{trace.System, trace.Prompt})
		}
	}
}
