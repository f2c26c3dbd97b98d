package eino

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"

	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/loop"
)

// A run is one of the runner. Eino calls the model and the tools on its own goroutines, ahead of
// the host.
type run struct {
	turn.Turn

	adapter *Adapter
}

func (a *Adapter) newRun(e loop.Event) *run {
	t := &run{adapter: a}
	t.Agent, t.Enforce, t.Event = a.cfg.Agent, a.cfg.Enforce, e
	return t
}

type runKey struct{ adapter *Adapter }

// runOf returns the run that a call belongs to, or nil.
func (a *Adapter) runOf(ctx context.Context) *run {
	t, _ := ctx.Value(runKey{a}).(*run)
	return t
}

// turn runs a turn.
func (a *Adapter) turn(
	ctx context.Context, e loop.Event,
	start func(context.Context) (*adk.AsyncIterator[*adk.AgentEvent], error),
) iter.Seq2[*adk.AgentEvent, error] {
	return func(yield func(*adk.AgentEvent, error) bool) {
		t := a.newRun(e)
		running, stop := context.WithCancel(context.WithValue(ctx, runKey{a}, t))
		defer stop()
		events, err := start(running)
		if err != nil {
			yield(nil, err)
			return
		}
		broken := false
		defer func() { t.end(ctx, broken) }()
		for event, ok := events.Next(); ok; event, ok = events.Next() {
			if err = event.Err; err == nil {
				event, err = t.handed(ctx, event)
			} else {
				broken = true
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

// end reports to heed that the model failed, or that a tool ended the run with an error.
func (t *run) end(ctx context.Context, broken bool) {
	t.Lock()
	defer t.Unlock()
	if broken {
		t.ToolFailed()
	}
	if t.Open() && t.Reply.Err != nil {
		_ = t.Fail(ctx) // the run has its error, and can't be given another one
	}
}

// handed returns an event as the host gets it.
func (t *run) handed(ctx context.Context, e *adk.AgentEvent) (*adk.AgentEvent, error) {
	t.Lock()
	defer t.Unlock()
	if e.Output == nil || e.Output.MessageOutput == nil ||
		e.Output.MessageOutput.Role != schema.Assistant || !t.learns(e.AgentName) {
		return e, nil
	}
	variant := *e.Output.MessageOutput
	switch {
	case variant.IsStreaming && variant.MessageStream != nil:
		variant.MessageStream = t.streamed(ctx, variant.MessageStream)
	case variant.Message != nil && len(variant.Message.ToolCalls) == 0:
		said := textOf(variant.Message)
		answer, err := t.Answered(ctx, said)
		if err != nil {
			return nil, err
		}
		message := *variant.Message
		if answer.Text != said {
			message.Content, message.AssistantGenMultiContent = answer.Text, nil
		}
		message.Extra = turn.Metadata(message.Extra, answer.ID, answer.Violations)
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
func (t *run) learns(agent string) bool {
	named := t.adapter.cfg.Agents == nil || slices.Contains(t.adapter.cfg.Agents, agent)
	return named && t.Open()
}

// streamed returns a stream for the host, without thoughts in tags. At its end, the answer is
// reported to heed.
func (t *run) streamed(ctx context.Context,
	pieces *schema.StreamReader[*schema.Message]) *schema.StreamReader[*schema.Message] {
	var whole, shown strings.Builder
	var speech turn.Speech
	calls := false
	return schema.StreamReaderWithConvert(pieces, func(m *schema.Message) (*schema.Message, error) {
		whole.WriteString(textOf(m))
		calls = calls || len(m.ToolCalls) > 0
		piece := *m
		piece.Content = speech.Say(m.Content)
		shown.WriteString(piece.Content)
		if m.Content != "" && piece.Content == "" && bare(m) {
			return nil, schema.ErrNoValue
		}
		return &piece, nil
	}, schema.WithOnEOF(func() (any, error) {
		last := schema.AssistantMessage(speech.Rest(), nil)
		shown.WriteString(last.Content)
		t.Lock()
		defer t.Unlock()
		if !calls && !t.Told {
			answer, err := t.Answered(ctx, whole.String())
			if err != nil {
				return nil, err
			}
			// thoughts may come before it that lack their opening tag
			if !strings.HasSuffix(strings.TrimSpace(shown.String()), answer.Text) {
				return nil, errors.New(
					"the message was answered already, because it was delivered twice: deliver it again")
			}
			last.Extra = turn.Metadata(nil, answer.ID, answer.Violations)
		} else if last.Content == "" {
			return nil, io.EOF
		}
		return last, nil
	}))
}

// bare reports whether a piece has only its content.
func bare(m *schema.Message) bool {
	return len(m.ToolCalls) == 0 && m.ReasoningContent == "" && m.ResponseMeta == nil &&
		len(m.Extra) == 0 && len(m.AssistantGenMultiContent) == 0
}
