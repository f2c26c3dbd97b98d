package loop

import (
	"context"
	"errors"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/thoughts"
	"github.com/heedhq/heed/prompt"
)

// A call says what the decider's model does in one call of Decide. It goes with the context, so that one decider serves every arm,
// every framework and every conversation.
type call struct {
	model decision.LLM // nil: the request is kept, and nothing is asked
	event *Event
	pipe  *pipe // nil: nobody wants pieces
	asked decision.LLMRequest
}

type callKey struct{}

// quietKey marks a call of Decide of which the host's observer is not told: true, or false if it is told of an answer.
type quietKey struct{}

var errNotAsked = errors.New("the model is asked elsewhere")

// generate is the model of the deciders.
func generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil {
		return decision.LLMResponse{}, errNotAsked
	}
	if c.model == nil {
		c.asked = r
		return decision.LLMResponse{}, errNotAsked
	}
	if c.event != nil && !r.JSON {
		r.Prompt = withHistory(c.event.History, r.Prompt)
	}
	if models, ok := c.model.(chain); ok && c.pipe != nil && !r.JSON {
		return models.stream(ctx, r, c.pipe)
	}
	return c.model.Generate(ctx, r)
}

const turnRunes = 4000

// withHistory puts the conversation so far before a prompt.
func withHistory(history []Turn, text string) string {
	if len(history) == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString("The conversation so far:\n")
	for _, t := range history {
		b.WriteString(prompt.Line(t.Role, 0) + ": " + prompt.Line(t.Text, turnRunes) + "\n")
	}
	return b.String() + "\n" + text
}

// unasked returns an observer that is not told of calls that only look.
func unasked(o heed.Observer) heed.Observer {
	if o == nil {
		return nil
	}
	return func(ctx context.Context, n heed.Notice) {
		quiet, marked := ctx.Value(quietKey{}).(bool)
		decided, ok := n.(heed.Decided)
		if !marked || !quiet && !(ok && decided.Path == string(decision.Rejected)) {
			o(ctx, n)
		}
	}
}

// A chain asks models in their order until one answers.
type chain struct{ models []decision.LLM }

// Generate implements [decision.LLM]. A panic is an error, and an answer without text, or of thoughts alone, counts as none.
func (c chain) Generate(ctx context.Context, r decision.LLMRequest) (reply decision.LLMResponse, err error) {
	var errs []error
	for _, m := range c.models {
		err = host.Call("the model", func() error {
			reply, err = m.Generate(ctx, r)
			return err
		})
		if err == nil {
			if said, _ := thoughts.Split(reply.Text); strings.TrimSpace(said) != "" {
				return reply, nil
			}
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return reply, errors.Join(errs...)
}

// model returns what answers for an arm, or nil.
func (a *Agent) model(arm Arm) decision.LLM {
	first := arm.Model
	if first == nil {
		first = a.cfg.Models[arm.ModelName]
	}
	if first == nil {
		first = a.cfg.Model
	}
	if first == nil && len(a.cfg.Fallbacks) == 0 {
		return nil
	}
	c := chain{append([]decision.LLM(nil), a.cfg.Fallbacks...)}
	if first != nil {
		c.models = append([]decision.LLM{first}, c.models...)
	}
	return c
}

// given is the model of an answer that is there already.
type given struct{ reply Reply }

// Generate implements [decision.LLM].
func (g given) Generate(_ context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	if r.JSON {
		return decision.LLMResponse{}, errNotAsked
	}
	return decision.LLMResponse{
		Text: g.reply.Text, Model: g.reply.Model, InputTokens: g.reply.InputTokens, OutputTokens: g.reply.OutputTokens,
	}, g.reply.Err
}
