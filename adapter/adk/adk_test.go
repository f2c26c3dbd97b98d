package adk_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkagent "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/heedhq/heed/adapter/adk"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// A said is a model that answers with a response after the other, or an error.
type said struct {
	responses []*model.LLMResponse
	err       error
	requests  []*model.LLMRequest
}

func (m *said) Name() string { return "said" }

func (m *said) GenerateContent(_ context.Context, r *model.LLMRequest,
	_ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		m.requests = append(m.requests, r)
		if m.err != nil {
			yield(nil, m.err)
			return
		}
		yield(m.responses[min(len(m.requests), len(m.responses))-1], nil)
	}
}

func text(s string) *model.LLMResponse {
	return &model.LLMResponse{Content: genai.NewContentFromText(s, genai.RoleModel)}
}

func call(id, name string) *model.LLMResponse {
	return &model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
		{FunctionCall: &genai.FunctionCall{ID: id, Name: name, Args: map[string]any{}}},
	}}}
}

// A rig is a runner of ADK's with the plugin.
type rig struct {
	*testing.T
	learner *loop.Agent
	adapter *adk.Adapter
	runner  *runner.Runner
}

func newRig(t *testing.T, cfg adk.Config, lc loop.Config,
	root func(*adk.Adapter) (sdkagent.Agent, error), more ...*plugin.Plugin) *rig {
	t.Helper()
	learner, _ := looptest.New(t, lc)
	cfg.Agent = learner
	adapter, err := adk.New(cfg)
	require.NoError(t, err)
	made, err := root(adapter)
	require.NoError(t, err)
	run, err := runner.New(runner.Config{
		AppName: "test", Agent: made, SessionService: session.InMemoryService(),
		AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{
			Plugins: append([]*plugin.Plugin{adapter.Plugin()}, more...)},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.Zero(t, adk.Turns(adapter), "turns are forgotten") })
	return &rig{T: t, learner: learner, adapter: adapter, runner: run}
}

// run runs a turn, and returns its events and its error.
func (r *rig) run(e loop.Event, message *genai.Content) (events []*session.Event, err error) {
	r.Helper()
	for event, err := range r.runner.Run(adk.WithEvent(r.Context(), e), "ann", "s1", message,
		sdkagent.RunConfig{}) {
		if err != nil {
			return events, err
		}
		events = append(events, event)
	}
	return events, nil
}

func (r *rig) ask(words string) (*session.Event, error) {
	r.Helper()
	events, err := r.run(loop.Event{}, genai.NewContentFromText(words, genai.RoleUser))
	if len(events) == 0 {
		return nil, err
	}
	return events[len(events)-1], err
}

func ops(m model.LLM, tools ...tool.Tool) func(*adk.Adapter) (sdkagent.Agent, error) {
	return func(a *adk.Adapter) (sdkagent.Agent, error) {
		return llmagent.New(llmagent.Config{Name: "ops", Mode: llmagent.ModeChat,
			Model: a.Model(m, nil), Tools: tools})
	}
}

func TestNewNeedsAnAgent(t *testing.T) {
	_, err := adk.New(adk.Config{})
	adaptertest.Faults(t, err, "Agent")
}

// TestRunWithoutEvent gives the answer the invocation's id, and tells heed of the session and the
// user. The tokens reach the arm.
func TestRunWithoutEvent(t *testing.T) {
	answer := text("Look at the logs.")
	answer.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 7,
		CandidatesTokenCount: 3, ThoughtsTokenCount: 2}
	r := newRig(t, adk.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only", InputPrice: 1,
		OutputPrice: 1}}}, ops(&said{responses: []*model.LLMResponse{answer}}))
	event, err := r.ask("What now?")
	require.NoError(t, err)
	assert.Equal(t, event.InvocationID, adk.ID(event))
	works := true
	require.NoError(t, r.learner.Outcome(t.Context(), adk.ID(event), loop.Outcome{Success: &works}))
	result := adaptertest.Outcome(t, r.learner)
	assert.Equal(t, 12, result.Tokens)
}

// TestMessageWithoutText is left alone.
func TestMessageWithoutText(t *testing.T) {
	r := newRig(t, adk.Config{}, loop.Config{},
		ops(&said{responses: []*model.LLMResponse{text("A cat.")}}))
	events, err := r.run(loop.Event{}, genai.NewContentFromBytes([]byte{1}, "image/png",
		genai.RoleUser))
	require.NoError(t, err)
	assert.Empty(t, adk.ID(events[len(events)-1]))
	assert.Empty(t, adk.ID(nil))
}

// TestAgents has the answer of one agent in a sequence of two learn.
func TestAgents(t *testing.T) {
	first, second := &said{responses: []*model.LLMResponse{text("The disk is full.")}},
		&said{responses: []*model.LLMResponse{text("Rotate its logs.")}}
	root := func(a *adk.Adapter) (sdkagent.Agent, error) {
		looks, err := llmagent.New(llmagent.Config{Name: "looks", Model: a.Model(first, nil)})
		if err != nil {
			return nil, err
		}
		says, err := llmagent.New(llmagent.Config{Name: "says", Model: a.Model(second, nil)})
		if err != nil {
			return nil, err
		}
		return sequentialagent.New(sequentialagent.Config{AgentConfig: sdkagent.Config{Name: "both",
			SubAgents: []sdkagent.Agent{looks, says}}})
	}
	for want, agents := range map[string][]string{"Rotate its logs.": {"says"},
		"The disk is full.": nil} {
		first.requests, second.requests = nil, nil
		r := newRig(t, adk.Config{Agents: agents},
			loop.Config{Lessons: loop.Lessons{Notes: []loop.Note{{ID: "n", Text: "db-1 is small."}}}},
			root)
		events, err := r.run(loop.Event{ID: "m1"},
			genai.NewContentFromText("What of db-1?", genai.RoleUser))
		require.NoError(t, err)
		answers := map[string]string{}
		for _, e := range events {
			if adk.ID(e) != "" {
				answers[adk.ID(e)] = textOf(e.Content)
			}
		}
		assert.Equal(t, map[string]string{"m1": want}, answers)
		account, err := r.learner.Explain(t.Context(), "m1")
		require.NoError(t, err)
		assert.Equal(t, want, account.Text)
		assert.Contains(t, linesOf(second.requests[0])[0].Text, "db-1 is small.")
		assert.Equal(t, agents == nil, first.requests[0].Config.SystemInstruction != nil &&
			len(first.requests[0].Config.SystemInstruction.Parts) > 1)
	}
}

// TestOutputSchema has the model answer where a heuristic is trusted, as the session's state keeps
// JSON.
func TestOutputSchema(t *testing.T) {
	lessons := loop.Lessons{Heuristics: []learning.Heuristic{{ID: "h", Condition: "What of db-1?",
		Action: "It is well.", Initial: 0.8}}}
	for want, output := range map[string]*genai.Schema{"It is well.": nil, `{"up":true}`: {Type: genai.TypeObject}} {
		r := newRig(t, adk.Config{}, loop.Config{Lessons: lessons},
			func(a *adk.Adapter) (sdkagent.Agent, error) {
				m := a.Model(&said{responses: []*model.LLMResponse{text(`{"up":true}`)}}, nil)
				return llmagent.New(llmagent.Config{Name: "ops", Mode: llmagent.ModeChat, Model: m,
					OutputSchema: output, OutputKey: "state"})
			})
		event, err := r.ask("What of db-1?")
		require.NoError(t, err)
		assert.Equal(t, want, textOf(event.Content))
	}
}

// TestFallbackOfAnotherPlugin answers where the model failed. The answer counts, and the failure
// does not.
func TestFallbackOfAnotherPlugin(t *testing.T) {
	spare, err := plugin.New(plugin.Config{Name: "spare",
		OnModelErrorCallback: func(sdkagent.Context, *model.LLMRequest, error) (*model.LLMResponse,
			error) {
			return text("Ask the operator."), nil
		}})
	require.NoError(t, err)
	r := newRig(t, adk.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only"}}},
		ops(&said{err: errors.New("overloaded")}), spare)
	event, err := r.ask("What now?")
	require.NoError(t, err)
	account, err := r.learner.Explain(t.Context(), adk.ID(event))
	require.NoError(t, err)
	assert.Equal(t, "Ask the operator.", account.Text)
	assert.False(t, account.Known)
}

// TestPause has a tool wait for a person. The run that goes on is the same turn, unless the model
// answered meanwhile.
func TestPause(t *testing.T) {
	for interim, want := range map[string]string{"": "It is approved.",
		"I have asked.": "I have asked."} {
		approve, err := functiontool.New(functiontool.Config{Name: "approve",
			Description: "Asks the boss.", IsLongRunning: true},
			func(sdkagent.Context, struct{}) (map[string]any, error) {
				if interim == "" {
					return nil, nil
				}
				return map[string]any{"status": "pending"}, nil
			})
		require.NoError(t, err)
		m := &said{responses: []*model.LLMResponse{call("c1", "approve"), text("It is approved.")}}
		if interim != "" {
			m.responses = []*model.LLMResponse{call("c1", "approve"), text(interim),
				text("It is approved.")}
		}
		r := newRig(t, adk.Config{}, loop.Config{}, ops(m, approve))
		events, err := r.run(loop.Event{}, genai.NewContentFromText("May I?", genai.RoleUser))
		require.NoError(t, err)
		for _, e := range events {
			assert.Equal(t, interim != "" && textOf(e.Content) == interim, adk.ID(e) != "",
				"a pause is no answer")
		}
		resumed, err := r.run(loop.Event{}, &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
			{FunctionResponse: &genai.FunctionResponse{ID: "c1", Name: "approve",
				Response: map[string]any{"status": "approved"}}},
		}})
		require.NoError(t, err)
		assert.Equal(t, "It is approved.", textOf(resumed[len(resumed)-1].Content))
		kept := 0
		for trace, err := range r.learner.Decision().Traces(t.Context()) {
			require.NoError(t, err)
			kept++
			assert.Equal(t, "May I?", trace.Text)
			assert.Equal(t, want, trace.Response)
			assert.Equal(t, events[0].InvocationID, trace.EventID)
		}
		assert.Equal(t, 1, kept)
	}
}

// TestUnknownTool counts once as an error.
func TestUnknownTool(t *testing.T) {
	r := newRig(t, adk.Config{}, loop.Config{},
		ops(&said{responses: []*model.LLMResponse{call("c1", "fly"), text("I can't fly.")}}))
	event, err := r.ask("Fly!")
	require.NoError(t, err)
	failed := adaptertest.ToolErrors(t, r.learner)
	require.Len(t, failed, 1)
	assert.Equal(t, adk.ID(event), failed[0].Task)
}

// TestModelThatOnlyThinks ends the run, as ADK would ask it for ever.
func TestModelThatOnlyThinks(t *testing.T) {
	m := &said{responses: []*model.LLMResponse{{Content: &genai.Content{Role: genai.RoleModel,
		Parts: []*genai.Part{{Text: "Hm.", Thought: true}}}}}}
	r := newRig(t, adk.Config{}, loop.Config{}, ops(m))
	_, err := r.ask("What now?")
	require.Error(t, err)
	assert.Len(t, m.requests, 3)
}

// TestCut has an answer that ends at its most tokens. ADK calls that an error where it streams,
// beside the text.
func TestCut(t *testing.T) {
	streamed := text("The beg")
	streamed.ErrorCode = string(genai.FinishReasonMaxTokens)
	whole := text("The beg")
	whole.FinishReason = genai.FinishReasonMaxTokens
	for _, last := range []*model.LLMResponse{whole, streamed, text("The end.")} {
		r := newRig(t, adk.Config{}, loop.Config{}, ops(&said{responses: []*model.LLMResponse{last}}))
		event, err := r.ask("What now?")
		require.NoError(t, err)
		require.NotEmpty(t, adk.ID(event))
		kept, err := r.learner.Answer(t.Context(), loop.Event{ID: adk.ID(event)})
		require.NoError(t, err)
		want := last.Content.Parts[0].Text == "The beg"
		assert.Equal(t, want, kept.Result.Cut)
	}
}

// TestNoContent of a response is a model that failed, with an error code or without.
func TestNoContent(t *testing.T) {
	for _, response := range []*model.LLMResponse{{ErrorCode: "SAFETY", ErrorMessage: "no"}, {}} {
		r := newRig(t, adk.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only"}}},
			ops(&said{responses: []*model.LLMResponse{response}}))
		event, err := r.ask("What now?")
		require.NoError(t, err)
		assert.Empty(t, adk.ID(event))
		assert.Equal(t, 1, adaptertest.Outcomes(t, r.learner))
	}
}

// TestModelThatIsMissing is an error that names it.
func TestModelThatIsMissing(t *testing.T) {
	r := newRig(t, adk.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only", ModelName: "flash"}},
		Models: map[string]decision.LLM{"flash": decision.LLMFunc(nil)}}, ops(&said{}))
	_, err := r.ask("What now?")
	require.ErrorContains(t, err, `"flash"`)
}

// TestReceiverThatStops leaves no answer and no turn behind.
func TestReceiverThatStops(t *testing.T) {
	m := &said{responses: []*model.LLMResponse{call("c1", "fly"), text("I can't fly.")}}
	r := newRig(t, adk.Config{}, loop.Config{}, ops(m))
	for range r.runner.Run(t.Context(), "ann", "s1", genai.NewContentFromText("Fly!", genai.RoleUser),
		sdkagent.RunConfig{}) {
		break
	}
	for range r.learner.Decision().Traces(t.Context()) {
		t.Error("an answer was kept that nobody saw")
	}
	require.NoError(t, r.learner.Sweep(t.Context(), time.Time{}))
}

// TestEnforce has a call refused that breaks a rule. Without it, the call is made.
func TestEnforce(t *testing.T) {
	for _, enforce := range []bool{true, false} {
		runs := 0
		drop, err := functiontool.New(functiontool.Config{Name: "drop",
			Description: "Drops a database."},
			func(sdkagent.Context, map[string]any) (map[string]any, error) {
				runs++
				return map[string]any{"status": "dropped"}, nil
			})
		require.NoError(t, err)
		called := call("c1", "drop")
		called.Content.Parts[0].FunctionCall.Args = map[string]any{"name": "db-1"}
		m := &said{responses: []*model.LLMResponse{called, text("Done.")}}
		r := newRig(t, adk.Config{Enforce: enforce}, loop.Config{}, ops(m, drop))
		words := adaptertest.Approve(t, r.learner, feedback.Check{Tool: "drop", Forbid: "db-1"})
		event, err := r.ask("Drop it!")
		require.NoError(t, err)
		assert.NotEmpty(t, adk.ID(event))
		assert.Equal(t, enforce, runs == 0)
		told := linesOf(m.requests[1])
		assert.Equal(t, enforce, strings.Contains(told[len(told)-1].Text, words))
		assert.Empty(t, adaptertest.ToolErrors(t, r.learner), "a refusal is no error of the tool")
	}
}

// TestEnforceAfterPause has a call refused in a run that goes on after a pause, although the model
// had answered before it.
func TestEnforceAfterPause(t *testing.T) {
	approve, err := functiontool.New(functiontool.Config{Name: "approve",
		Description: "Asks the boss.", IsLongRunning: true},
		func(sdkagent.Context, struct{}) (map[string]any, error) {
			return map[string]any{"status": "pending"}, nil
		})
	require.NoError(t, err)
	runs := 0
	drop, err := functiontool.New(functiontool.Config{Name: "drop", Description: "Drops a database."},
		func(sdkagent.Context, map[string]any) (map[string]any, error) {
			runs++
			return map[string]any{"status": "dropped"}, nil
		})
	require.NoError(t, err)
	called := call("c2", "drop")
	called.Content.Parts[0].FunctionCall.Args = map[string]any{"name": "db-1"}
	m := &said{responses: []*model.LLMResponse{call("c1", "approve"), text("I have asked."), called,
		text("Done.")}}
	r := newRig(t, adk.Config{Enforce: true}, loop.Config{}, ops(m, approve, drop))
	adaptertest.Approve(t, r.learner, feedback.Check{Tool: "drop", Forbid: "db-1"})
	_, err = r.run(loop.Event{}, genai.NewContentFromText("May I?", genai.RoleUser))
	require.NoError(t, err)
	_, err = r.run(loop.Event{}, &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		{FunctionResponse: &genai.FunctionResponse{ID: "c1", Name: "approve",
			Response: map[string]any{"status": "approved"}}},
	}})
	require.NoError(t, err)
	assert.Zero(t, runs)
}
