package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/prompt"
)

// How a model is asked. The decider gets a call as its model, which puts the conversation before
// the prompt and asks a chain: the arm's model first, and then the fallbacks. The tries of a call
// record what became of each attempt, because that is evidence about the model or about the arm:
// see attempt.whose. An attempt may go on after the answer was given up. What it returns is dropped
// then.

// A call is the model of one answer: a chain of models, which get the conversation so far and may
// give the answer in pieces. It serves one answer, and is used by the decider alone.
type call struct {
	models  chain
	history []Turn
	spare   atomic.Bool // a fallback answered, and not the model of the arm
	tries   tries
}

// Generate implements [decision.LLM].
func (c *call) Generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	if r.JSON {
		return c.models.Generate(ctx, r)
	}
	r.Prompt = withHistory(c.history, r.Prompt)
	reply, spare, err := c.models.ask(ctx, r, &c.tries)
	c.spare.Store(spare)
	return reply, err
}

var errNotAsked = errors.New("the model is asked elsewhere")

const historyHeading = "The conversation so far:"

// withHistory puts the conversation so far before a prompt that is not empty. A turn of several
// lines is put in a fence.
func withHistory(history []Turn, text string) string {
	if len(history) == 0 || text == "" {
		return text
	}
	var b strings.Builder
	b.WriteString(historyHeading + "\n")
	for _, t := range history {
		b.WriteString(prompt.Line(t.Role, 0) + ":")
		if prompt.Check(t.Text) == nil {
			b.WriteString(" " + prompt.Line(t.Text, maxText) + "\n")
		} else {
			b.WriteString("\n" + prompt.Code(t.Text, maxText) + "\n")
		}
	}
	return b.String() + "\n" + text
}

// A member is a model that may be asked. Calls that were given up hold places of its gate.
type member struct {
	name  string
	model decision.LLM
	gate  *host.Gate
	spare bool // it is a fallback of the arm's model
}

// gate returns the gate of a name. Gates are shared by the agents of all tenants, because they
// bound calls of the process.
func (a *Agent) gate(name string, places int) *host.Gate {
	gate, _ := a.gates.LoadOrStore(name, host.NewGate(places))
	return gate.(*host.Gate)
}

// A chain asks models in their order until one answers.
type chain []member

// chain returns a model and its fallbacks. It may be nil: then the fallbacks are all there is, and
// each of them counts as the arm's model.
func (a *Agent) chain(name string, first decision.LLM) (c chain) {
	if first != nil {
		c = append(c, member{name, first, a.gate(name, 0), false})
	}
	names := a.asked
	names = names[len(names)-len(a.cfg.Fallbacks):]
	for i, m := range a.cfg.Fallbacks {
		c = append(c, member{names[i], m, a.gate(names[i], 0), first != nil})
	}
	return c
}

// model returns what answers for an arm. Without models, the chain is empty.
func (a *Agent) model(arm Arm) chain {
	return a.chain(a.nameOf(&arm), cmp.Or(arm.Model, a.cfg.Models[arm.ModelName], a.cfg.Model))
}

// without passes over models that are unavailable, if others are left. asked is the arm's model,
// and spared reports whether that is unavailable for this event.
func (c chain) without(v *availability, asked string, spared bool, now time.Time) (rest chain) {
	rest = slices.DeleteFunc(slices.Clone(c), func(m member) bool {
		if m.name == asked {
			return spared
		}
		other, _ := v.spared(m.name, now)
		return other
	})
	if len(rest) == 0 {
		return c
	}
	return rest
}

// Generate implements [decision.LLM]. A panic is an error, and an answer without text, or of
// thoughts alone, counts as no answer.
func (c chain) Generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	reply, _, err := c.ask(ctx, r, new(tries))
	return reply, err
}

// ask asks models in their order until one answers, and reports whether that is a fallback. A model
// that broke off has the next one begin the answer again. The host's receiver begins again if a
// model broke off after its first piece: see pipe.
func (c chain) ask(
	ctx context.Context, r decision.LLMRequest, t *tries,
) (reply decision.LLMResponse, spare bool, err error) {
	var errs []error
	p := &t.pipe
	for i, m := range c {
		// Each attempt is counted, also if a later model answers, because it shows whether its model
		// works.
		t.begin(m.name, !m.spare)
		reply, err = c.try(ctx, i, r, p)
		called := !errors.Is(err, host.ErrBusy)
		got := attempt{called: called, text: reply.Text, err: err, ended: ctx.Err()}
		t.end(ctx, &got)
		if got.answered() {
			return reply, m.spare, p.end(ctx)
		}
		if err != nil && (len(c) > 1 || m.name != defaultModel) { // a single model needs no name
			err = fmt.Errorf("%s: %w", m.name, err)
		}
		errs = append(errs, err) // Join leaves out nil
		// The caller has left, or the host's receiver failed: no other model would help.
		if ctx.Err() != nil || p.fault(false) != nil {
			break
		}
	}
	return reply, false, errors.Join(errs...)
}

// tries are the attempts of one answer. The last one may still run when the answer is given up.
type tries struct {
	agent *Agent // nil: the attempts are not counted
	pipe  pipe

	mu     sync.Mutex
	open   bool // an attempt runs
	name   string
	first  bool // it answers for the arm, and is no fallback
	began  time.Time
	blamed bool // the arm's model gave an answer that is of no use
}

// begin notes that a model is asked, so that an attempt that never returns can be ended by close.
func (t *tries) begin(name string, first bool) {
	if t.agent == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open, t.name, t.first = true, name, first
	t.began = time.Now() //nolint:forbidigo // of a deadline, which is of real time
	t.agent.models.probe(name, t.agent.cfg.Testing.Now())
}

// end counts what became of the attempt that runs, once. An attempt that was closed, because the
// answer was given up, is not counted again when it returns. A model waits while the host receives
// a piece, so that time was not the model's.
func (t *tries) end(ctx context.Context, got *attempt) {
	if t.agent == nil {
		return
	}
	held := t.pipe.heldFor()
	got.host = t.pipe.fault(false) != nil
	t.mu.Lock()
	open, name := t.open, t.name
	if t.open = false; open {
		//nolint:forbidigo // of a deadline, too
		got.patient = t.agent.patient(time.Since(t.began) - held)
		t.blamed = t.blamed || t.first && got.whose() == someArm
		// It is counted before close, which may wait for the lock, reports outages.
		t.agent.models.note(name, got, t.agent.cfg.Testing.Now())
	}
	t.mu.Unlock()
	if open {
		t.agent.reportUnrecognised(ctx, name, got)
	}
}

// close ends an attempt that was given up. err is why there is no answer. It reports whether the
// arm is to blame.
func (t *tries) close(ctx context.Context, err error) (blamed bool) {
	ended := context.DeadlineExceeded
	if errors.Is(err, context.Canceled) {
		ended = context.Canceled
	}
	t.end(ctx, &attempt{called: true, err: ended, ended: ended})
	t.agent.reportOutages(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.blamed
}

// errSlow reports that a model used up its time.
var errSlow = fmt.Errorf("the model gave no answer in its time: %w", context.DeadlineExceeded)

// try asks the i-th model. If there is one after it, it has a limited time to answer, or to begin
// to.
//
// The timer takes half of what is left of the deadline. If the model has begun to stream by then,
// it keeps its time, because a person is reading the answer already.
func (c chain) try(ctx context.Context, i int, r decision.LLMRequest,
	p *pipe) (reply decision.LLMResponse, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, write := c[i], p.begin(ctx, cancel)
	ask := func(ctx context.Context) (reply decision.LLMResponse, err error) {
		if s, ok := m.model.(Streamer); ok && p.to != nil {
			return s.Stream(ctx, r, write)
		}
		if reply, err = m.model.Generate(ctx, r); err == nil {
			write(reply.Text)
		}
		return reply, err
	}
	end, limited := ctx.Deadline()
	// The last model has all the time that is left, so it needs no timer.
	if i == len(c)-1 || !limited {
		err = host.Call("the model", func() (err error) {
			reply, err = ask(ctx)
			return err
		})
		return reply, cmp.Or(p.fault(false), err)
	}
	var slow atomic.Bool
	//nolint:forbidigo // the deadline is of real time
	timer := time.AfterFunc(time.Until(end)/2, func() {
		if p.giveUp(ctx, &slow) {
			cancel()
		}
	})
	defer timer.Stop()
	if reply, err = host.Pass(ctx, m.gate, "the model", ask); slow.Load() &&
		(err != nil || p.to != nil) {
		err = errSlow
	}
	return reply, cmp.Or(p.fault(false), err)
}

// given is the model of an answer that is there already.
type given struct{ reply Reply }

// Generate implements [decision.LLM].
func (g given) Generate(_ context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	if r.JSON {
		return decision.LLMResponse{}, errNotAsked
	}
	return decision.LLMResponse{
		Text: g.reply.Text, Model: g.reply.Model, InputTokens: g.reply.InputTokens,
		OutputTokens: g.reply.OutputTokens, Cut: g.reply.Cut,
	}, g.reply.Err
}
