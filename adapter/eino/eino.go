// Package eino lets the chat-model agents of CloudWeGo's Eino learn through a [loop.Agent].
//
//	heeding, err := eino.New(eino.Config{Agent: agent})
//	ops, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
//		Model: model, Handlers: []adk.ChatModelAgentMiddleware{heeding.Middleware()},
//	})
//	message := loop.Event{ID: "m1", Session: "s1", Person: "ann"}
//	for event, err := range heeding.Run(ctx, runner, message, messages) { … }
//
// If a trusted heuristic applies, the middleware answers a run with it. Otherwise it adds what was
// learned to the model's request. It reports the results of tools to heed. [Adapter.Run] runs
// Eino's runner, and reports the answer to heed once the host has all of it. [ID] returns the
// answer's id, for [loop.Agent.React] and the others.
package eino

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/loop"
)

// A Config configures an adapter.
type Config struct {
	// Agent is what learns. It must be set.
	Agent *loop.Agent
	// Agents are the names of Eino's agents whose answers count. nil means all of them. In a run in
	// which several agents answer, the first one of these counts. Give the middleware to these alone.
	Agents []string
	// Models are the models that arms name.
	Models map[string]model.BaseChatModel
	// Enforce refuses calls of tools that break an active rule, or that could not be checked: in each
	// turn, also in one without words, or one that goes on after a pause. The model receives the rule
	// instead of a result.
	Enforce bool
}

// An Adapter joins a [loop.Agent] to the agents and runners of Eino. Make one with [New]. It is
// safe for concurrent use by multiple goroutines.
type Adapter struct {
	cfg Config
	now func() time.Time // for the time that a model takes
}

// New returns an adapter. A fault of the configuration is a [*heed.ConfigError].
func New(cfg Config) (*Adapter, error) {
	if cfg.Agent == nil {
		return nil, &heed.ConfigError{Field: "Agent", Reason: "must be set"}
	}
	cfg.Agents, cfg.Models = slices.Clone(cfg.Agents), maps.Clone(cfg.Models)
	return &Adapter{cfg, time.Now}, nil //nolint:forbidigo // tests set it
}

// Middleware returns the middleware for the Handlers of an agent. Without [Adapter.Run] or
// [Adapter.Resume] it only enforces rules, if [Config].Enforce is set.
func (a *Adapter) Middleware() adk.ChatModelAgentMiddleware { return &middleware{adapter: a} }

// Run runs the runner, and yields its events. Of e, the ID is the message's id: a message that
// is delivered again gets the same answer. Session and Person are the conversation and who speaks.
// If Text is empty, it is the text of the last user message of the model's request.
//
// The answer counts when the host has all of it: when an event without a stream is yielded, or when
// the stream of an event was read to its end. If the loop ends earlier, the run's context ends.
func (a *Adapter) Run(ctx context.Context, r *adk.Runner, e loop.Event, messages []adk.Message,
	opts ...adk.AgentRunOption) iter.Seq2[*adk.AgentEvent, error] {
	return a.turn(ctx, e, func(ctx context.Context) (*adk.AsyncIterator[*adk.AgentEvent], error) {
		return r.Run(ctx, messages, opts...), nil
	})
}

// Resume goes on with a run after an interrupt, like ResumeWithParams of the runner. Give it the
// event that [Adapter.Run] had.
func (a *Adapter) Resume(ctx context.Context, r *adk.Runner, e loop.Event, checkpoint string,
	params *adk.ResumeParams, opts ...adk.AgentRunOption) iter.Seq2[*adk.AgentEvent, error] {
	return a.turn(ctx, e, func(ctx context.Context) (*adk.AsyncIterator[*adk.AgentEvent], error) {
		return r.ResumeWithParams(ctx, checkpoint, params, opts...)
	})
}

// ID returns the id of the answer that a message is, or "" if heed has no answer of that id. Of a
// stream, the last piece has it. So does the whole message that schema.ConcatMessages makes of the
// pieces.
func ID(m *schema.Message) string {
	if m == nil {
		return ""
	}
	return turn.ID(m.Extra)
}

// textOf returns the text of a message.
func textOf(m *schema.Message) string {
	var text strings.Builder
	text.WriteString(m.Content)
	for _, part := range m.UserInputMultiContent {
		text.WriteString(part.Text)
	}
	for _, part := range m.AssistantGenMultiContent {
		text.WriteString(part.Text)
	}
	return text.String()
}

// cutOff reports whether a message ends at its most tokens. Eino passes on the provider's own word
// for that: "length" with OpenAI, "max_tokens" with Anthropic, and "MAX_TOKENS" with Gemini.
func cutOff(m *schema.Message) bool {
	return m.ResponseMeta != nil && (m.ResponseMeta.FinishReason == "length" ||
		strings.EqualFold(m.ResponseMeta.FinishReason, "max_tokens"))
}

func tokensOf(m *schema.Message) (in, out int) {
	if m.ResponseMeta == nil || m.ResponseMeta.Usage == nil {
		return 0, 0
	}
	return max(m.ResponseMeta.Usage.PromptTokens, 0), max(m.ResponseMeta.Usage.CompletionTokens, 0)
}
