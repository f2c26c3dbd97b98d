package eino

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"

	"github.com/heedhq/heed/loop"
)

// A turn is a run of the runner. Eino calls the model and the tools on goroutines of its own, ahead of the host.
type turn struct {
	adapter *Adapter

	mu       sync.Mutex
	event    loop.Event
	said     string // the person's message, once it is prepared
	prepared bool
	plan     loop.Plan
	reply    loop.Reply
	failed   error // of a tool, since the model's last call
	broken   bool  // the run ended with an error
	lost     error // why heed could not be told of a tool
	told     bool  // of the answer
}

type turnKey struct{ adapter *Adapter }

// turnOf returns the turn that a call belongs to, or nil.
func (a *Adapter) turnOf(ctx context.Context) *turn {
	t, _ := ctx.Value(turnKey{a}).(*turn)
	return t
}

// turn runs a turn.
func (a *Adapter) turn(
	ctx context.Context, e loop.Event, run func(context.Context) (*adk.AsyncIterator[*adk.AgentEvent], error),
) iter.Seq2[*adk.AgentEvent, error] {
	return func(yield func(*adk.AgentEvent, error) bool) {
		t := &turn{adapter: a, event: e}
		running, stop := context.WithCancel(context.WithValue(ctx, turnKey{a}, t))
		defer stop()
		events, err := run(running)
		if err != nil {
			yield(nil, err)
			return
		}
		defer t.end(ctx)
		for event, ok := events.Next(); ok; event, ok = events.Next() {
			if err = event.Err; err == nil {
				event, err = t.handed(ctx, event)
			} else {
				t.breaks()
			}
			if err != nil {
				event = nil
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

func (t *turn) breaks() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = true
}

// end tells heed that the model failed, or that a tool ended the run.
func (t *turn) end(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken {
		t.reply.Err = cmp.Or(t.reply.Err, t.failed)
	}
	if t.prepared && !t.plan.Ready && !t.told && t.reply.Err != nil && ctx.Err() == nil {
		t.told = true
		_, _ = t.adapter.cfg.Agent.Answered(ctx, t.plan, t.reply) // the run has its error, and can't be given another one
	}
}

// handed returns an event as the host gets it.
func (t *turn) handed(ctx context.Context, e *adk.AgentEvent) (*adk.AgentEvent, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Output == nil || e.Output.MessageOutput == nil || e.Output.MessageOutput.Role != schema.Assistant || !t.learns(e.AgentName) {
		return e, nil
	}
	variant := *e.Output.MessageOutput
	switch {
	case variant.IsStreaming && variant.MessageStream != nil:
		variant.MessageStream = t.streamed(ctx, variant.MessageStream)
	case variant.Message != nil && len(variant.Message.ToolCalls) == 0:
		said := textOf(variant.Message)
		answer, err := t.answered(ctx, said)
		if err != nil {
			return nil, err
		}
		message := *variant.Message
		if answer.Text != said {
			message.Content, message.AssistantGenMultiContent = answer.Text, nil
		}
		message.Extra = extra(message.Extra, &answer)
		variant.Message = &message
	default:
		return e, nil
	}
	event, output := *e, *e.Output
	output.MessageOutput = &variant
	event.Output = &output
	return &event, nil
}

// learns reports whether the answer of an agent is awaited.
func (t *turn) learns(agent string) bool {
	named := t.adapter.cfg.Agents == nil || slices.Contains(t.adapter.cfg.Agents, agent)
	return named && t.prepared && !t.plan.Ready && !t.told
}

// answered tells heed the answer.
func (t *turn) answered(ctx context.Context, text string) (loop.Answer, error) {
	if t.lost != nil {
		return loop.Answer{}, t.lost
	}
	t.reply.Text = text
	answer, err := t.adapter.cfg.Agent.Answered(ctx, t.plan, t.reply)
	if err != nil {
		return loop.Answer{}, err
	}
	t.told = true
	if answer.Text == "" {
		return loop.Answer{}, errors.New("heed has no answer: " + string(answer.Result.Reason))
	}
	return answer, nil
}

// extra returns what a message has in its Extra, with the id of the answer and the rules that it breaks.
func extra(m map[string]any, answer *loop.Answer) map[string]any {
	m = maps.Clone(m)
	if m == nil {
		m = make(map[string]any)
	}
	m[idKey] = answer.ID
	if len(answer.Violations) > 0 {
		rules := make([]string, len(answer.Violations))
		for i, v := range answer.Violations {
			rules[i] = v.Rule
		}
		m[rulesKey] = strings.Join(rules, " ")
	}
	return m
}

// streamed returns a stream as the host reads it: without thoughts in tags. At its end, heed is told the answer.
func (t *turn) streamed(ctx context.Context, pieces *schema.StreamReader[*schema.Message]) *schema.StreamReader[*schema.Message] {
	var whole, shown, spoken strings.Builder
	calls := false
	write, end := loop.Spoken(func(text string) {
		shown.WriteString(text)
		spoken.WriteString(text)
	})
	take := func() string {
		defer spoken.Reset()
		return spoken.String()
	}
	return schema.StreamReaderWithConvert(pieces, func(m *schema.Message) (*schema.Message, error) {
		whole.WriteString(textOf(m))
		calls = calls || len(m.ToolCalls) > 0
		write(m.Content)
		piece := *m
		if piece.Content = take(); m.Content != "" && piece.Content == "" && bare(m) {
			return nil, schema.ErrNoValue
		}
		return &piece, nil
	}, schema.WithOnEOF(func() (any, error) {
		end() // what was held back
		last := schema.AssistantMessage(take(), nil)
		t.mu.Lock()
		defer t.mu.Unlock()
		if !calls && !t.told {
			answer, err := t.answered(ctx, whole.String())
			if err != nil {
				return nil, err
			}
			if !strings.HasSuffix(strings.TrimSpace(shown.String()), answer.Text) { // thoughts may come before it that lack their opening tag
				return nil, errors.New("the message was answered meanwhile, as it was delivered twice: deliver it again")
			}
			last.Extra = extra(nil, &answer)
		} else if last.Content == "" {
			return nil, io.EOF
		}
		return last, nil
	}))
}

// bare reports whether a piece has nothing but its content.
func bare(m *schema.Message) bool {
	return len(m.ToolCalls) == 0 && m.ReasoningContent == "" && m.ResponseMeta == nil && len(m.Extra) == 0 && len(m.AssistantGenMultiContent) == 0
}
