package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/thoughts"
	"github.com/heedhq/heed/prompt"
)

// A call is the model of one answer: a chain of models, which are told the conversation so far and
// may give the answer in pieces.
type call struct {
	models  chain
	history []Turn
	most    int         // how many characters of a turn the model is told
	pipe    *pipe       // nil: pieces are not wanted
	spare   atomic.Bool // a fallback answered, because the first model failed
}

// Generate implements [decision.LLM].
func (c *call) Generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	if r.JSON {
		return c.models.Generate(ctx, r)
	}
	r.Prompt = withHistory(c.history, r.Prompt, c.most)
	reply, by, err := c.models.ask(ctx, r, c.pipe)
	c.spare.Store(c.models.led && by > 0)
	return reply, err
}

var errNotAsked = errors.New("the model is asked elsewhere")

const historyHeading = "The conversation so far:"

// withHistory puts the conversation so far before a prompt. A turn of several lines stands in a fence.
func withHistory(history []Turn, text string, most int) string {
	if len(history) == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(historyHeading + "\n")
	for _, t := range history {
		b.WriteString(prompt.Line(t.Role, 0) + ":")
		if prompt.Check(t.Text) == nil {
			b.WriteString(" " + prompt.Line(t.Text, most) + "\n")
		} else {
			b.WriteString("\n" + prompt.Code(t.Text, most) + "\n")
		}
	}
	return b.String() + "\n" + text
}

// A member is a model that may be asked. Calls that were given up hold places of its gate.
type member struct {
	model decision.LLM
	gate  *host.Gate
}

// member returns a model, by the name that its gate has.
func (a *Agent) member(name string, m decision.LLM) member {
	return member{m, a.gate(name, a.decider.Config().MaxInFlight)}
}

// gate returns the gate of a name.
func (a *Agent) gate(name string, places int) *host.Gate {
	gate, ok := a.gates.Load(name)
	if !ok {
		gate, _ = a.gates.LoadOrStore(name, host.NewGate(places))
	}
	return gate.(*host.Gate)
}

// A chain asks models in their order until one answers.
type chain struct {
	models []member
	led    bool // the first one is no fallback
}

// chain returns a model and its fallbacks. It may be nil: then the fallbacks are all there is.
func (a *Agent) chain(name string, first decision.LLM) chain {
	c := chain{led: first != nil}
	if c.led {
		c.models = append(c.models, a.member(name, first))
	}
	for i, m := range a.cfg.Fallbacks {
		c.models = append(c.models, a.member(fmt.Sprint("fallback ", i), m))
	}
	return c
}

// model returns what answers for an arm. Without models, the chain is empty.
func (a *Agent) model(arm Arm) chain {
	switch named := a.cfg.Models[arm.ModelName]; {
	case arm.Model != nil:
		return a.chain("arm "+arm.ID, arm.Model)
	case named != nil:
		return a.chain("model "+arm.ModelName, named)
	default:
		return a.chain("model", a.cfg.Model)
	}
}

// Generate implements [decision.LLM]. A panic is an error, and an answer without text, or of thoughts alone, counts as none.
func (c chain) Generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	reply, _, err := c.ask(ctx, r, nil)
	return reply, err
}

// ask asks models in their order until one answers, and returns which one did. A model that broke off has the next one begin the answer anew.
func (c chain) ask(ctx context.Context, r decision.LLMRequest, p *pipe) (reply decision.LLMResponse, by int, err error) {
	var errs []error
	for i := range c.models {
		reply, err = c.try(ctx, i, r, p)
		if err == nil {
			if said, _ := thoughts.Split(reply.Text); strings.TrimSpace(said) != "" {
				err = p.end(ctx)
				return reply, i, err
			}
		}
		errs = append(errs, err)
		if ctx.Err() != nil || p.fault() != nil {
			break
		}
	}
	return reply, 0, errors.Join(errs...)
}

// errSlow says that a model took the time that it had.
var errSlow = fmt.Errorf("the model gave no answer in its time: %w", context.DeadlineExceeded)

// try asks the i-th model. If there is one after it, it has a limited time to answer, or to begin to.
func (c chain) try(ctx context.Context, i int, r decision.LLMRequest, p *pipe) (reply decision.LLMResponse, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, write := c.models[i], p.begin(ctx, cancel)
	ask := func(ctx context.Context) (reply decision.LLMResponse, err error) {
		if s, ok := m.model.(Streamer); ok && p != nil {
			return s.Stream(ctx, r, write)
		}
		if reply, err = m.model.Generate(ctx, r); err == nil {
			write(reply.Text)
		}
		return reply, err
	}
	end, limited := ctx.Deadline()
	if i == len(c.models)-1 || !limited {
		err = host.Call("the model", func() (err error) {
			reply, err = ask(ctx)
			return err
		})
		return reply, cmp.Or(p.fault(), err)
	}
	var slow atomic.Bool
	//nolint:forbidigo // the deadline is of real time, as context has it
	timer := time.AfterFunc(time.Until(end)/2, func() {
		if p.giveUp(&slow) {
			cancel()
		}
	})
	defer timer.Stop()
	if reply, err = host.Pass(ctx, m.gate, "the model", ask); slow.Load() && (err != nil || p != nil) {
		err = errSlow
	}
	return reply, cmp.Or(p.fault(), err)
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
		Cut: g.reply.Cut,
	}, g.reply.Err
}
