// Package genkit lets what is generated with Firebase Genkit learn through a [loop.Agent].
//
//	heeding, err := genkit.New(genkit.Config{Agent: agent})
//	message := loop.Event{ID: "m1", Session: "s1", Person: "ann"}
//	response, err := sdk.Generate(ctx, g, ai.WithPrompt(text), ai.WithUse(heeding.For(message)))
//	err = agent.React(ctx, genkit.ID(response), loop.Reaction{Person: "ann", Value: 1})
//
// If a trusted heuristic applies, the middleware answers a call of Generate with it. Otherwise it
// adds what was learned to the model's request. It reports the model's answer and the results of
// tools to heed.
package genkit

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/firebase/genkit/go/ai"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/loop"
)

// A Config configures an adapter.
type Config struct {
	// Agent is what learns. It must be set.
	Agent *loop.Agent
	// Models are the models that arms name.
	Models map[string]ai.Model
	// Enforce refuses calls of tools that break an active rule, or that could not be checked: in each
	// turn, also in one without words, or one that goes on after a pause. The model receives the rule
	// instead of a result.
	Enforce bool
}

// An Adapter joins a [loop.Agent] to Genkit. Make one with [New]. It is safe for concurrent use by
// multiple goroutines.
type Adapter struct {
	cfg Config
	now func() time.Time // for the time that a model takes
}

// New returns an adapter. A fault of the configuration is a [*heed.ConfigError].
func New(cfg Config) (*Adapter, error) {
	if cfg.Agent == nil {
		return nil, &heed.ConfigError{Field: "Agent", Reason: "must be set"}
	}
	cfg.Models = maps.Clone(cfg.Models)
	return &Adapter{cfg, time.Now}, nil //nolint:forbidigo // tests set it
}

// For returns the middleware for a call of Generate that answers a message. Of e, the ID is the id
// of the message: a message that is delivered again gets the same answer. Session and Person are
// the conversation and who speaks. If Text is empty, it is the text of the last user message. The
// middleware works in the process that made it, and not from Genkit's Dev UI.
func (a *Adapter) For(e loop.Event) ai.Middleware {
	return ai.MiddlewareFunc(func(context.Context) (*ai.Hooks, error) {
		t := &call{adapter: a}
		t.Agent, t.Enforce, t.Event = a.cfg.Agent, a.cfg.Enforce, e
		return &ai.Hooks{WrapGenerate: t.generate, WrapModel: t.model, WrapTool: t.tool}, nil
	})
}

// ID returns the id of the answer that a response is, or "" if heed has no answer of that id. The
// id is in the message's Metadata.
func ID(r *ai.ModelResponse) string {
	if r == nil || r.Message == nil {
		return ""
	}
	return turn.ID(r.Message.Metadata)
}

// written reports whether a part of a message is what somebody wrote. Genkit adds instructions and
// documents as further parts.
func written(p *ai.Part) bool { return p != nil && p.IsText() && p.Metadata["purpose"] == nil }

// textOf returns the text of a person's message or of an answer.
func textOf(m *ai.Message) string {
	if m == nil {
		return ""
	}
	var text strings.Builder
	for _, part := range m.Content {
		if written(part) || part != nil && part.IsData() && part.Metadata["purpose"] == nil {
			text.WriteString(part.Text)
		}
	}
	return text.String()
}

// withText returns a message with another text. All other parts stay.
func withText(m *ai.Message, text string) *ai.Message {
	changed := &ai.Message{Role: m.Role, Metadata: m.Metadata}
	for _, part := range m.Content {
		if written(part) {
			if text == "" {
				continue
			}
			other := *part
			other.Text, text = text, ""
			part = &other
		}
		changed.Content = append(changed.Content, part)
	}
	return changed
}

func tokensOf(r *ai.ModelResponse) (in, out int) {
	if r.Usage == nil {
		return 0, 0
	}
	return max(r.Usage.InputTokens, 0), max(r.Usage.OutputTokens, 0) + max(r.Usage.ThoughtsTokens, 0)
}
