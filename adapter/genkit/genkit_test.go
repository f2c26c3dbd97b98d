package genkit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firebase/genkit/go/ai"
	sdk "github.com/firebase/genkit/go/genkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/genkit"
	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// A said is a model that answers with a response after the other, or an error. Without responses,
// it says "Look.".
type said struct {
	responses []*ai.ModelResponse
	err       error

	mu       sync.Mutex
	requests []*ai.ModelRequest
}

func (m *said) generate(ctx context.Context, r *ai.ModelRequest,
	stream ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	m.mu.Lock()
	m.requests = append(m.requests, r)
	n := len(m.requests)
	m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	response := text("Look.")
	if len(m.responses) > 0 {
		copied := *m.responses[min(n, len(m.responses))-1]
		response = &copied
	}
	if stream != nil {
		if err := stream(ctx, &ai.ModelResponseChunk{Content: response.Message.Content}); err != nil {
			return nil, err
		}
	}
	response.Request = r
	return response, nil
}

func text(s string) *ai.ModelResponse {
	return &ai.ModelResponse{Message: ai.NewModelTextMessage(s), FinishReason: ai.FinishReasonStop}
}

func call(id, name string) *ai.ModelResponse {
	part := ai.NewToolRequestPart(&ai.ToolRequest{Ref: id, Name: name, Input: map[string]any{}})
	return &ai.ModelResponse{Message: ai.NewModelMessage(part), FinishReason: ai.FinishReasonStop}
}

// A rig is Genkit with the middleware.
type rig struct {
	*testing.T
	g       *sdk.Genkit
	learner *loop.Agent
	adapter *genkit.Adapter
}

func newRig(t *testing.T, cfg genkit.Config, lc loop.Config, m *said) *rig {
	t.Helper()
	r := &rig{T: t, g: sdk.Init(t.Context())}
	define(r.g, "main", m.generate)
	r.learner, _ = looptest.New(t, lc)
	cfg.Agent = r.learner
	var err error
	r.adapter, err = genkit.New(cfg)
	require.NoError(t, err)
	return r
}

func (r *rig) ask(e loop.Event, opts ...ai.GenerateOption) (*ai.ModelResponse, error) {
	r.Helper()
	return sdk.Generate(r.Context(), r.g, append(opts, ai.WithModelName("test/main"),
		ai.WithUse(r.adapter.For(e)))...)
}

func TestNewNeedsAnAgent(t *testing.T) {
	_, err := genkit.New(genkit.Config{})
	adaptertest.Faults(t, err, "Agent")
}

// TestTokensAndTime reach the arm, of all calls of the model. Without an ID, the answer has one all
// the same.
func TestTokensAndTime(t *testing.T) {
	now := time.Unix(0, 0)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	first, second := call("c1", "look"), text("It is up.")
	first.Usage = &ai.GenerationUsage{InputTokens: 7, OutputTokens: 1}
	second.Usage = &ai.GenerationUsage{InputTokens: 9, OutputTokens: 2, ThoughtsTokens: 1}
	r := newRig(t, genkit.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only"}}},
		&said{responses: []*ai.ModelResponse{first, second}})
	genkit.SetNow(r.adapter, clock)
	look := sdk.DefineTool(r.g, "look", "Looks.",
		func(*ai.ToolContext, struct{}) (string, error) { return "It is up.", nil })
	response, err := r.ask(loop.Event{Session: "s1"}, ai.WithPrompt("What now?"), ai.WithTools(look))
	require.NoError(t, err)
	require.NotEmpty(t, genkit.ID(response))
	require.NoError(t, r.learner.React(t.Context(), genkit.ID(response), loop.Reaction{Value: 1}))
	result := adaptertest.Outcome(t, r.learner)
	assert.Equal(t, 20, result.Tokens)
	assert.Equal(t, 2*time.Second, result.Latency)
}

// TestCut has an answer that ends at its most tokens.
func TestCut(t *testing.T) {
	for reason, want := range map[ai.FinishReason]bool{ai.FinishReasonLength: true,
		ai.FinishReasonStop: false} {
		response := text("The beg")
		response.FinishReason = reason
		m := &said{responses: []*ai.ModelResponse{response}}
		r := newRig(t, genkit.Config{}, loop.Config{}, m)
		answer, err := r.ask(loop.Event{}, ai.WithPrompt("What now?"))
		require.NoError(t, err)
		kept, err := r.learner.Answer(t.Context(), loop.Event{ID: genkit.ID(answer)})
		require.NoError(t, err)
		assert.Equal(t, want, kept.Result.Cut)
	}
}

// TestStructuredOutput has Genkit's instructions reach the model, and not heed.
func TestStructuredOutput(t *testing.T) {
	m := &said{responses: []*ai.ModelResponse{text(`{"server":"db-1"}`)}}
	r := newRig(t, genkit.Config{}, loop.Config{Lessons: loop.Lessons{
		Notes: []loop.Note{{ID: "n", Text: "db-1 is small."}},
		Heuristics: []learning.Heuristic{{ID: "h", Condition: "What of db-1?", Action: "It is well.",
			Initial: 0.8}},
	}}, m)
	ready, err := r.ask(loop.Event{}, ai.WithPrompt("What of db-1?"))
	require.NoError(t, err)
	require.Equal(t, "It is well.", ready.Text())
	type where struct {
		Server string `json:"server"`
	}
	response, err := r.ask(loop.Event{ID: "m1"}, ai.WithPrompt("What of db-1?"),
		ai.WithOutputType(where{}))
	require.NoError(t, err)
	assert.Equal(t, "m1", genkit.ID(response))
	var got where
	require.NoError(t, response.Output(&got))
	assert.Equal(t, where{"db-1"}, got)
	require.Len(t, m.requests, 1)
	sent := m.requests[0].Messages
	assert.Contains(t, sent[0].Text(), "db-1 is small.")
	require.Len(t, sent[1].Content, 2, "the prompt and Genkit's instructions")
	assert.Contains(t, sent[1].Content[0].Text, "What of db-1?")
	for trace, err := range r.learner.Decision().Traces(t.Context()) {
		require.NoError(t, err)
		assert.Equal(t, "What of db-1?", trace.Text)
		if trace.Path == decision.Heuristic {
			continue
		}
		assert.JSONEq(t, `{"server":"db-1"}`, trace.Response)
	}
}

// TestPictures go to the model, beside the prompt. A picture alone is none of heed's.
func TestPictures(t *testing.T) {
	m := &said{}
	r := newRig(t, genkit.Config{}, loop.Config{}, m)
	picture := ai.NewMediaPart("image/png", "data:image/png;base64,AA==")
	response, err := r.ask(loop.Event{}, ai.WithMessages(ai.NewUserMessage(picture)))
	require.NoError(t, err)
	assert.Empty(t, genkit.ID(response))
	response, err = r.ask(loop.Event{ID: "m1"},
		ai.WithMessages(ai.NewUserMessage(ai.NewTextPart("What"), picture, ai.NewTextPart(" is it?"))))
	require.NoError(t, err)
	assert.Equal(t, "m1", genkit.ID(response))
	sent := m.requests[1].Messages[0].Content
	require.Len(t, sent, 2)
	assert.Equal(t, "What is it?", sent[0].Text)
	assert.True(t, sent[1].IsMedia())
	assert.Empty(t, genkit.ID(nil))
}

// TestInterrupt has a tool ask a person. That is no error, and the call that goes on is the same
// turn.
func TestInterrupt(t *testing.T) {
	m := &said{responses: []*ai.ModelResponse{call("c1", "approve"), text("It is approved.")}}
	r := newRig(t, genkit.Config{}, loop.Config{}, m)
	approve := sdk.DefineTool(r.g, "approve", "Asks the boss.",
		func(ctx *ai.ToolContext, _ struct{}) (string, error) {
			return "", ctx.Interrupt(&ai.InterruptOptions{})
		})
	response, err := r.ask(loop.Event{ID: "m1"}, ai.WithPrompt("May I?"), ai.WithTools(approve))
	require.NoError(t, err)
	assert.Empty(t, genkit.ID(response))
	require.Len(t, response.Interrupts(), 1)
	approved, err := approve.RespondWith(response.Interrupts()[0], "approved")
	require.NoError(t, err)
	response, err = r.ask(loop.Event{ID: "m1"}, ai.WithMessages(response.History()...),
		ai.WithTools(approve), ai.WithToolResponses(approved))
	require.NoError(t, err)
	assert.Equal(t, "m1", genkit.ID(response))
	assert.Equal(t, "It is approved.", response.Text())
	assert.Empty(t, adaptertest.ToolErrors(t, r.learner))
}

// TestReceiverThatFails is no failure of the model's.
func TestReceiverThatFails(t *testing.T) {
	r := newRig(t, genkit.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only"}}}, &said{})
	gone := errors.New("the person has left")
	_, err := r.ask(loop.Event{}, ai.WithPrompt("What now?"),
		ai.WithStreaming(func(context.Context, *ai.ModelResponseChunk) error { return gone }))
	require.ErrorIs(t, err, gone)
	assert.Zero(t, adaptertest.Outcomes(t, r.learner))
	for range r.learner.Decision().Traces(t.Context()) {
		t.Error("an answer was kept that nobody saw")
	}
}

// TestToolThatFails ends Genkit's turn. The error of the tool counts once, and nothing for the arm.
func TestToolThatFails(t *testing.T) {
	r := newRig(t, genkit.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only"}}},
		&said{responses: []*ai.ModelResponse{call("c1", "look")}})
	look := sdk.DefineTool(r.g, "look", "Looks.",
		func(*ai.ToolContext, struct{}) (string, error) { return "", errors.New("the host is locked") })
	_, err := r.ask(loop.Event{ID: "m1"}, ai.WithPrompt("What now?"), ai.WithTools(look))
	require.Error(t, err)
	assert.Len(t, adaptertest.ToolErrors(t, r.learner), 1)
	assert.Zero(t, adaptertest.Outcomes(t, r.learner), "a tool is no evidence about the arm")
}

// TestToolThatFailsOnce is told to the model by a middleware of the host's. The turn goes on, and
// fails by nothing.
func TestToolThatFailsOnce(t *testing.T) {
	r := newRig(t, genkit.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only"}}},
		&said{responses: []*ai.ModelResponse{call("c1", "look"), text("Ask.")}})
	look := sdk.DefineTool(r.g, "look", "Looks.",
		func(*ai.ToolContext, struct{}) (string, error) { return "", errors.New("the host is locked") })
	response, err := sdk.Generate(t.Context(), r.g, ai.WithModelName("test/main"),
		ai.WithPrompt("What now?"), ai.WithTools(look),
		ai.WithUse(toldErrors(), r.adapter.For(loop.Event{ID: "m1"})))
	require.NoError(t, err)
	assert.Equal(t, "m1", genkit.ID(response))
	assert.Len(t, adaptertest.ToolErrors(t, r.learner), 1)
	assert.Zero(t, adaptertest.Outcomes(t, r.learner))
}

// TestAggregatedChunks have all pieces before them. Thoughts are left out of each.
func TestAggregatedChunks(t *testing.T) {
	r := newRig(t, genkit.Config{}, loop.Config{}, &said{})
	sdk.DefineModel(r.g, "test/whole", nil, func(ctx context.Context, q *ai.ModelRequest,
		stream ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		for _, whole := range []string{"<think>Hm.</think>Look", "<think>Hm.</think>Look up."} {
			if err := stream(ctx, &ai.ModelResponseChunk{Aggregated: true,
				Content: []*ai.Part{ai.NewTextPart(whole)}}); err != nil {
				return nil, err
			}
		}
		return text("<think>Hm.</think>Look up."), nil
	})
	var seen []string
	response, err := sdk.Generate(t.Context(), r.g, ai.WithModelName("test/whole"),
		ai.WithPrompt("What now?"), ai.WithUse(r.adapter.For(loop.Event{})),
		ai.WithStreaming(func(_ context.Context, c *ai.ModelResponseChunk) error {
			seen = append(seen,
				c.Text())
			return nil
		}))
	require.NoError(t, err)
	assert.Equal(t, []string{"Look", "Look up."}, seen)
	assert.Equal(t, "Look up.", response.Text())
}

// TestModelThatIsMissing is an error that names it.
func TestModelThatIsMissing(t *testing.T) {
	r := newRig(t, genkit.Config{}, loop.Config{Arms: []loop.Arm{{ID: "only", ModelName: "flash"}},
		Models: map[string]decision.LLM{"flash": decision.LLMFunc(nil)}}, &said{})
	_, err := r.ask(loop.Event{}, ai.WithPrompt("What now?"))
	require.ErrorContains(t, err, `"flash"`)
}

// TestEnforce has a call refused that breaks a rule. Without it, the call is made.
func TestEnforce(t *testing.T) {
	for _, enforce := range []bool{true, false} {
		runs := 0
		called := call("c1", "drop")
		called.Message.Content[0].ToolRequest.Input = map[string]any{"name": "db-1"}
		m := &said{responses: []*ai.ModelResponse{called, text("Done.")}}
		r := newRig(t, genkit.Config{Enforce: enforce}, loop.Config{}, m)
		drop := sdk.DefineTool(r.g, "drop", "Drops a database.",
			func(*ai.ToolContext, map[string]any) (string, error) { runs++; return "dropped", nil })
		words := adaptertest.Approve(t, r.learner, feedback.Check{Tool: "drop", Forbid: "db-1"})
		response, err := r.ask(loop.Event{ID: "m1"}, ai.WithPrompt("Drop it!"), ai.WithTools(drop))
		require.NoError(t, err)
		assert.Equal(t, "m1", genkit.ID(response))
		assert.Equal(t, enforce, runs == 0)
		told := linesOf(m.requests[1])
		assert.Equal(t, enforce, strings.Contains(told[len(told)-1].Text, words))
		assert.Empty(t, adaptertest.ToolErrors(t, r.learner), "a refusal is no error of the tool")
	}
}
