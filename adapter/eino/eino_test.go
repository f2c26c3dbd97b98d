package eino_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/eino"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// A said is a model that answers with a message after the other, or an error.
type said struct {
	messages []*schema.Message
	err      error

	mu       sync.Mutex
	requests [][]*schema.Message
	options  []*model.Options
}

func (m *said) Generate(_ context.Context, input []*schema.Message,
	opts ...model.Option) (*schema.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, input)
	m.options = append(m.options, model.GetCommonOptions(nil, opts...))
	if m.err != nil {
		return nil, m.err
	}
	return m.messages[min(len(m.requests), len(m.messages))-1], nil
}

func (m *said) Stream(ctx context.Context, input []*schema.Message,
	opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	message, err := m.Generate(ctx, input, opts...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{message}), nil
}

func text(s string) *schema.Message { return schema.AssistantMessage(s, nil) }

func call(id, name string) *schema.Message {
	return schema.AssistantMessage("", []schema.ToolCall{{ID: id, Type: "function",
		Function: schema.FunctionCall{Name: name, Arguments: "{}"}}})
}

// A rig is a runner of Eino's with the middleware.
type rig struct {
	*testing.T
	learner *loop.Agent
	adapter *eino.Adapter
	runner  *adk.Runner
}

func newRig(t *testing.T, cfg eino.Config, lc loop.Config, m model.BaseChatModel, streaming bool,
	tools ...tool.BaseTool) *rig {
	t.Helper()
	r := &rig{T: t}
	r.learner, _ = looptest.New(t, lc)
	cfg.Agent = r.learner
	var err error
	r.adapter, err = eino.New(cfg)
	require.NoError(t, err)
	agent, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
		Name: "ops", Description: "Helps.", Model: m,
		Handlers:    []adk.ChatModelAgentMiddleware{r.adapter.Middleware()},
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: tools}},
	})
	require.NoError(t, err)
	r.runner = adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: agent, EnableStreaming: streaming,
		CheckPointStore: &checkpoints{}})
	return r
}

// ask returns the last message of the model.
func (r *rig) ask(e loop.Event, words ...*schema.Message) (last *schema.Message, err error) {
	r.Helper()
	for event, err := range r.adapter.Run(r.Context(), r.runner, e, words,
		adk.WithCheckPointID("c")) {
		if err != nil {
			return nil, err
		}
		if event.Output != nil && event.Output.MessageOutput != nil &&
			event.Output.MessageOutput.Role == schema.Assistant {
			if last, err = read(event.Output.MessageOutput, func(string) {}); err != nil {
				return nil, err
			}
		}
	}
	return last, nil
}

type checkpoints struct{ sync.Map }

func (c *checkpoints) Get(_ context.Context, id string) ([]byte, bool, error) {
	v, ok := c.Load(id)
	if !ok {
		return nil, false, nil
	}
	return v.([]byte), true, nil
}

func (c *checkpoints) Set(_ context.Context, id string, data []byte) error {
	c.Store(id, data)
	return nil
}

func toolOf[T any](t *testing.T, name string,
	run func(context.Context, struct{}) (T, error)) tool.BaseTool {
	t.Helper()
	made, err := utils.InferTool(name, "Does it.", run)
	require.NoError(t, err)
	return made
}

func TestNewNeedsAnAgent(t *testing.T) {
	_, err := eino.New(eino.Config{})
	adaptertest.Faults(t, err, "Agent")
}

// TestWithoutRun leaves the agent as it is without heed.
func TestWithoutRun(t *testing.T) {
	m := &said{messages: []*schema.Message{text("Look.")}}
	r := newRig(t, eino.Config{}, loop.Config{Lessons: loop.Lessons{
		Notes: []loop.Note{{ID: "n", Text: "db-1 is small."}}}}, m, false,
		toolOf(t, "look", func(context.Context, struct{}) (string, error) { return "It is up.", nil }))
	m.messages = []*schema.Message{call("c1", "look"), text("Look.")}
	events := r.runner.Query(t.Context(), "What of db-1?")
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		require.NoError(t, event.Err)
	}
	assert.Equal(t, looptest.Request{{Role: looptest.User, Text: "What of db-1?"}},
		linesOf(m.requests[0]))
	for range r.learner.Decision().Traces(t.Context()) {
		t.Error("an answer was kept")
	}
}

// TestTokensAndTime reach the arm, of all calls of the model. Without an ID, the answer has one all
// the same.
func TestTokensAndTime(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		now := time.Unix(0, 0)
		clock := func() time.Time { now = now.Add(time.Second); return now }
		first, second := call("c1", "look"), text("It is up.")
		first.ResponseMeta = &schema.ResponseMeta{Usage: &schema.TokenUsage{PromptTokens: 7,
			CompletionTokens: 1}}
		second.ResponseMeta = &schema.ResponseMeta{Usage: &schema.TokenUsage{PromptTokens: 9,
			CompletionTokens: 3}}
		r := newRig(t, eino.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only"}}},
			&said{messages: []*schema.Message{first, second}}, streaming,
			toolOf(t, "look", func(context.Context, struct{}) (string, error) {
				return "It is up.",
					nil
			}))
		eino.SetNow(r.adapter, clock)
		answer, err := r.ask(loop.Event{Session: "s1"}, schema.UserMessage("What now?"))
		require.NoError(t, err)
		require.NotEmpty(t, eino.ID(answer))
		require.NoError(t, r.learner.React(t.Context(), eino.ID(answer), loop.Reaction{Value: 1}))
		result := adaptertest.Outcome(t, r.learner)
		assert.Equal(t, 20, result.Tokens)
		assert.Equal(t, 2*time.Second, result.Latency)
	}
}

// TestCut has an answer that ends at its most tokens, in the words of each provider.
func TestCut(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		for reason, want := range map[string]bool{"length": true, "max_tokens": true,
			"MAX_TOKENS": true, "stop": false} {
			message := text("The beg")
			message.ResponseMeta = &schema.ResponseMeta{FinishReason: reason}
			m := &said{messages: []*schema.Message{message}}
			r := newRig(t, eino.Config{}, loop.Config{}, m, streaming)
			answer, err := r.ask(loop.Event{}, schema.UserMessage("What now?"))
			require.NoError(t, err)
			kept, err := r.learner.Answer(t.Context(), loop.Event{ID: eino.ID(answer)})
			require.NoError(t, err)
			assert.Equal(t, want, kept.Result.Cut, reason)
		}
	}
}

// TestPictures go to the model, beside the prompt. A picture alone is none of heed's.
func TestPictures(t *testing.T) {
	m := &said{messages: []*schema.Message{text("A disk.")}}
	r := newRig(t, eino.Config{}, loop.Config{}, m, false)
	picture := schema.MessageInputPart{Type: schema.ChatMessagePartTypeImageURL,
		Image: &schema.MessageInputImage{}}
	answer, err := r.ask(loop.Event{}, &schema.Message{Role: schema.User,
		UserInputMultiContent: []schema.MessageInputPart{picture}})
	require.NoError(t, err)
	assert.Empty(t, eino.ID(answer))
	answer, err = r.ask(loop.Event{ID: "m1"}, &schema.Message{Role: schema.User,
		UserInputMultiContent: []schema.MessageInputPart{
			{Type: schema.ChatMessagePartTypeText, Text: "What"}, picture,
			{Type: schema.ChatMessagePartTypeText, Text: " is it?"},
		}})
	require.NoError(t, err)
	assert.Equal(t, "m1", eino.ID(answer))
	assert.Equal(t, []schema.MessageInputPart{{Type: schema.ChatMessagePartTypeText,
		Text: "What is it?"}, picture}, m.requests[1][0].UserInputMultiContent)
	assert.Empty(t, eino.ID(nil))
}

// TestAgents says whose answers count.
func TestAgents(t *testing.T) {
	r := newRig(t, eino.Config{Agents: []string{"another"}}, loop.Config{},
		&said{messages: []*schema.Message{text("Look.")}}, false)
	answer, err := r.ask(loop.Event{}, schema.UserMessage("What now?"))
	require.NoError(t, err)
	assert.Empty(t, eino.ID(answer))
}

// TestToolKinds has tools of all four kinds work and fail: each error counts once.
func TestToolKinds(t *testing.T) {
	refusal := errors.New("the host is locked")
	result := &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText,
		Text: "It is up."}}}
	breaks := func() *schema.StreamReader[string] {
		reader, writer := schema.Pipe[string](2)
		writer.Send("It", nil)
		writer.Send("", refusal)
		writer.Close()
		return reader
	}
	stream := func(run func() (*schema.StreamReader[string], error)) tool.BaseTool {
		made, err := utils.InferStreamTool("t", "Does it.",
			func(context.Context, struct{}) (*schema.StreamReader[string], error) { return run() })
		require.NoError(t, err)
		return made
	}
	rich := func(run func() (*schema.ToolResult, error)) tool.BaseTool {
		made, err := utils.InferEnhancedTool("t", "Does it.",
			func(context.Context, struct{}) (*schema.ToolResult, error) { return run() })
		require.NoError(t, err)
		return made
	}
	richStream := func(run func() (*schema.StreamReader[*schema.ToolResult], error)) tool.BaseTool {
		made, err := utils.InferEnhancedStreamTool("t", "Does it.",
			func(context.Context, struct{}) (*schema.StreamReader[*schema.ToolResult],
				error) {
				return run()
			})
		require.NoError(t, err)
		return made
	}
	for name, tt := range map[string]struct {
		tool   tool.BaseTool
		errors int
	}{
		"plain": {toolOf(t, "t", func(context.Context, struct{}) (string,
			error) {
			return "It is up.", nil
		}), 0},
		"plain, fails": {toolOf(t, "t", func(context.Context, struct{}) (string, error) {
			return "",
				refusal
		}), 1},
		"stream": {stream(func() (*schema.StreamReader[string], error) {
			return schema.StreamReaderFromArray([]string{"It ", "is up."}), nil
		}), 0},
		"stream, fails": {stream(func() (*schema.StreamReader[string], error) {
			return nil,
				refusal
		}), 1},
		"stream, breaks off": {stream(func() (*schema.StreamReader[string],
			error) {
			return breaks(), nil
		}), 1},
		"enhanced":        {rich(func() (*schema.ToolResult, error) { return result, nil }), 0},
		"enhanced, fails": {rich(func() (*schema.ToolResult, error) { return nil, refusal }), 1},
		"enhanced stream, fails": {richStream(func() (*schema.StreamReader[*schema.ToolResult],
			error) {
			return nil, refusal
		}), 1},
		"enhanced stream": {richStream(func() (*schema.StreamReader[*schema.ToolResult], error) {
			return schema.StreamReaderFromArray([]*schema.ToolResult{result}), nil
		}), 0},
	} {
		for _, allowed := range []bool{true, false} {
			arm := loop.Arm{ID: "only", Tools: []string{"t"}}
			if !allowed {
				arm.Tools, tt.errors = []string{"another"}, 0
			}
			m := &said{messages: []*schema.Message{call("c1", "t"), text("Done.")}}
			r := newRig(t, eino.Config{}, loop.Config{Arms: []loop.Arm{arm}}, m,
				strings.Contains(name, "stream"), tt.tool)
			answer, err := r.ask(loop.Event{ID: "m1"}, schema.UserMessage("What now?"))
			assert.Equal(t, tt.errors > 0, err != nil, name)
			if err == nil {
				assert.Equal(t, "m1", eino.ID(answer), name)
				want := "It is up."
				if !allowed {
					want = "This tool is not available."
				}
				assert.Equal(t, want, toolText(m.requests[1][len(m.requests[1])-1]), name)
				assert.Equal(t, allowed, len(m.options[0].Tools) == 1, name)
			}
			assert.Len(t, adaptertest.ToolErrors(t, r.learner), tt.errors, name)
		}
	}
}

func toolText(m *schema.Message) string {
	content := m.Content
	for _, part := range m.UserInputMultiContent {
		content += part.Text
	}
	return content
}

// TestInterrupt has a tool ask a person. That is no error, and the run that goes on is the same
// turn.
func TestInterrupt(t *testing.T) {
	asked := false
	m := &said{messages: []*schema.Message{call("c1", "approve"), text("It is approved.")}}
	r := newRig(t, eino.Config{}, loop.Config{}, m, false,
		toolOf(t, "approve", func(ctx context.Context, _ struct{}) (string, error) {
			if !asked {
				asked = true
				return "", tool.Interrupt(ctx, "May it?")
			}
			return "approved", nil
		}))
	last, err := r.ask(loop.Event{ID: "m1"}, schema.UserMessage("May I?"))
	require.NoError(t, err)
	assert.Empty(t, eino.ID(last))
	for event, err := range r.adapter.Resume(t.Context(), r.runner, loop.Event{ID: "m1"}, "c",
		&adk.ResumeParams{}) {
		require.NoError(t, err)
		if event.Output != nil && event.Output.MessageOutput.Role == schema.Assistant {
			last = event.Output.MessageOutput.Message
		}
	}
	assert.Equal(t, "m1", eino.ID(last))
	assert.Equal(t, "It is approved.", last.Content)
	assert.Empty(t, adaptertest.ToolErrors(t, r.learner))
	for _, err := range r.adapter.Resume(t.Context(), r.runner, loop.Event{}, "none",
		&adk.ResumeParams{}) {
		require.Error(t, err)
	}
}

// TestToolThatEndsTheRun is no evidence about the arm. The error of the tool counts.
func TestToolThatEndsTheRun(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		r := newRig(t, eino.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only"}}},
			&said{messages: []*schema.Message{call("c1", "look")}}, streaming,
			toolOf(t, "look", func(context.Context, struct{}) (string, error) {
				return "",
					errors.New("the host is locked")
			}))
		_, err := r.ask(loop.Event{ID: "m1"}, schema.UserMessage("What now?"))
		require.ErrorContains(t, err, "the host is locked")
		assert.Zero(t, adaptertest.Outcomes(t, r.learner))
		assert.Len(t, adaptertest.ToolErrors(t, r.learner), 1)
	}
}

// TestAskModel has the model answer where a heuristic is trusted.
func TestAskModel(t *testing.T) {
	r := newRig(t, eino.Config{}, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{{ID: "h", Condition: "What of db-1?", Action: "It is well.",
			Initial: 0.8}},
	}}, &said{messages: []*schema.Message{text("{}")}}, false)
	for want, e := range map[string]loop.Event{"It is well.": {}, "{}": {AskModel: true}} {
		answer, err := r.ask(e, schema.UserMessage("What of db-1?"))
		require.NoError(t, err)
		assert.Equal(t, want, answer.Content)
	}
}

// TestRetry has Eino ask a model again. The answer counts, and the failure does not.
func TestRetry(t *testing.T) {
	m := &said{messages: []*schema.Message{text("Look.")}}
	flaky := &flaky{said: m, fails: 1}
	learner, _ := looptest.New(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	adapter, err := eino.New(eino.Config{Agent: learner})
	require.NoError(t, err)
	agent, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
		Name: "ops", Description: "Helps.", Model: flaky,
		Handlers: []adk.ChatModelAgentMiddleware{adapter.Middleware()},
		ModelRetryConfig: &adk.ModelRetryConfig{MaxRetries: 2,
			BackoffFunc: func(context.Context, int) time.Duration { return 0 }},
	})
	require.NoError(t, err)
	r := &rig{T: t, learner: learner, adapter: adapter,
		runner: adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: agent})}
	answer, err := r.ask(loop.Event{ID: "m1"}, schema.UserMessage("What now?"))
	require.NoError(t, err)
	account, err := learner.Explain(t.Context(), eino.ID(answer))
	require.NoError(t, err)
	assert.Equal(t, "Look.", account.Text)
	assert.False(t, account.Known)
}

type flaky struct {
	*said
	fails int
}

func (f *flaky) Generate(ctx context.Context, input []*schema.Message,
	opts ...model.Option) (*schema.Message, error) {
	if f.fails--; f.fails >= 0 {
		return nil, errors.New("overloaded")
	}
	return f.said.Generate(ctx, input, opts...)
}

// TestModelThatIsMissing is an error that names it.
func TestModelThatIsMissing(t *testing.T) {
	m := &said{messages: []*schema.Message{text("Look.")}}
	r := newRig(t, eino.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only", ModelName: "flash"}},
		Models: map[string]decision.LLM{"flash": decision.LLMFunc(nil)}}, m, false)
	_, err := r.ask(loop.Event{}, schema.UserMessage("What now?"))
	require.ErrorContains(t, err, `"flash"`)
}

// TestEnforce has a call refused that breaks a rule. Without it, the call is made.
func TestEnforce(t *testing.T) {
	for _, enforce := range []bool{true, false} {
		runs := 0
		drop, err := utils.InferTool("drop", "Drops a database.",
			func(context.Context, map[string]any) (string, error) { runs++; return "dropped", nil })
		require.NoError(t, err)
		called := call("c1", "drop")
		called.ToolCalls[0].Function.Arguments = `{"name":"db-1"}`
		m := &said{messages: []*schema.Message{called, text("Done.")}}
		r := newRig(t, eino.Config{Enforce: enforce}, loop.Config{}, m, false, drop)
		words := adaptertest.Approve(t, r.learner, feedback.Check{Tool: "drop", Forbid: "db-1"})
		answer, err := r.ask(loop.Event{ID: "m1"}, schema.UserMessage("Drop it!"))
		require.NoError(t, err)
		assert.Equal(t, "m1", eino.ID(answer))
		assert.Equal(t, enforce, runs == 0)
		assert.Equal(t, enforce, strings.Contains(m.requests[1][len(m.requests[1])-1].Content, words))
		assert.Empty(t, adaptertest.ToolErrors(t, r.learner), "a refusal is no error of the tool")
	}
}
