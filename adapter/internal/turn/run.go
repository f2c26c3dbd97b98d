package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/prompt"
)

// A Tool is a function that a model may call.
type Tool struct {
	Name, Description string
	// Schema is the JSON schema of the input, an object. nil means that the tool has no input.
	Schema map[string]any
	// Run is called with the input in JSON. The model gets an error's text as the result.
	Run func(ctx context.Context, input string) (string, error)
}

// A Call is a call of a tool that a model asks for.
type Call struct{ ID, Tool, Input string }

// A Result answers a call.
type Result struct {
	ID, Text string
	Failed   bool
}

// A Said is what a model replied: an answer, or calls of tools.
type Said struct {
	decision.LLMResponse

	Calls []Call
}

// An Asker asks a model with the results of the calls before. piece gets each piece of the reply,
// and is nil if no pieces are wanted.
type Asker func(ctx context.Context, results []Result, piece func(string)) (Said, error)

// A Request begins a conversation with a model. Messages end with the prompt.
type Request struct {
	decision.LLMRequest

	Model    string
	Messages []loop.Turn
	Tools    []Tool
}

// A Chat is a model of a provider's SDK. Open begins a conversation.
type Chat struct {
	Name, System string
	Tools        []Tool
	Open         func(Request) Asker
}

// mostTokens bounds each reply in [Chat.Answer].
const mostTokens = 16_384

// Stream asks the model once. If piece is nil, the reply comes as a whole.
func (c Chat) Stream(ctx context.Context, r decision.LLMRequest,
	piece func(text string)) (decision.LLMResponse, error) {
	ask := c.Open(Request{LLMRequest: r, Model: c.Name, Messages: []loop.Turn{{Text: r.Prompt}}})
	said, err := ask(ctx, nil, piece)
	return said.LLMResponse, err
}

// Answer answers an event: by what heed has ready, or by the model, which may call the tools.
func (c Chat) Answer(ctx context.Context, agent *loop.Agent, e loop.Event) (loop.Answer, error) {
	t := &Turn{Agent: agent, Enforce: true, Event: e}
	return t.run(ctx, c.Tools, func() Asker {
		r := Request{
			Model:    cmp.Or(t.Plan.Arm.ModelName, c.Name),
			Messages: append(slices.Clone(e.History), loop.Turn{Text: t.Plan.Prompt}),
			Tools:    Offered(t, c.Tools, func(tool Tool) string { return tool.Name }),
		}
		r.System, r.MaxTokens = c.System+"\n\n"+t.Plan.System, mostTokens
		if c.System == "" || t.Plan.System == "" {
			r.System = c.System + t.Plan.System
		}
		return c.Open(r)
	})
}

// mostRounds bounds how often a model asks for tools in one turn.
const mostRounds = 32

// run answers the turn's event. Open is called once the plan is there. Pieces go to the event's
// OnChunk.
func (t *Turn) run(
	ctx context.Context, tools []Tool, open func() Asker,
) (none loop.Answer, _ error) {
	if err := t.Prepare(ctx); err != nil {
		return none, err
	}
	out := &pieces{ctx: ctx, to: t.Event.OnChunk}
	if t.Plan.Ready {
		if out.to != nil {
			out.to(ctx, t.Plan.Text, false)
		}
		return loop.Answer{
			ID: t.Plan.Event.ID, Text: t.Plan.Text, Plan: t.Plan, Result: t.Plan.Result,
			Violations: t.Plan.Violations, Degraded: t.Plan.Degraded,
		}, nil
	}
	if arm := &t.Plan.Arm; arm.Model != nil {
		t.Reply.Err = fmt.Errorf("the arm %q has a Model, which can't be asked in a conversation with "+
			"tools: name a model of the same client by Arm.ModelName", arm.ID)
		return none, errors.Join(t.Reply.Err, t.Fail(ctx))
	}
	ask, results := open(), []Result(nil)
	for range mostRounds {
		began := time.Now() //nolint:forbidigo // how long it takes is of real time
		said, err := ask(ctx, results, out.round())
		took := time.Since(began) //nolint:forbidigo // the same
		t.Count(said.InputTokens, said.OutputTokens, took, said.Cut, err)
		if err != nil {
			return none, errors.Join(err, t.Fail(ctx))
		}
		out.end()
		if len(said.Calls) == 0 {
			t.Reply.Model = said.Model
			return t.Answered(ctx, said.Text)
		}
		results = results[:0:0]
		for _, call := range said.Calls {
			results = append(results, t.call(ctx, tools, call))
		}
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
	}
	t.Reply.Err = fmt.Errorf("%w: it asked for tools %d times", llm.Unusable, mostRounds)
	return none, errors.Join(t.Reply.Err, t.Fail(ctx))
}

// call carries out a call, unless a rule or the arm is against it.
func (t *Turn) call(ctx context.Context, tools []Tool, c Call) Result {
	if why := t.Refusal(ctx, c.ID, c.Tool, c.Input); why != "" {
		return Result{c.ID, why, true}
	}
	i := slices.IndexFunc(tools, func(tool Tool) bool { return tool.Name == c.Tool })
	if i < 0 {
		return Result{c.ID, refused, true}
	}
	text, err := tools[i].Run(ctx, c.Input)
	t.Tool(ctx, c.ID, c.Tool, c.Input, text, err)
	if err != nil {
		return Result{c.ID, err.Error(), true}
	}
	return Result{c.ID, text, false}
}

// Pieces pass on what a model streams, without thoughts in tags. The text before a call of a tool
// is no part of the answer, so the round after it begins with a restart.
type pieces struct {
	Speech

	ctx  context.Context //nolint:containedctx // of the turn
	to   func(ctx context.Context, text string, restart bool)
	said bool // in the rounds before
	now  bool // in this round
}

// round returns what takes the pieces of the next reply, or nil.
func (p *pieces) round() func(string) {
	if p.to == nil {
		return nil
	}
	p.said, p.now = p.said || p.now, false
	return func(text string) { p.pass(p.Say(text)) }
}

func (p *pieces) end() { p.pass(p.Rest()) }

func (p *pieces) pass(text string) {
	if text == "" {
		return
	}
	p.to(p.ctx, text, p.said && !p.now)
	p.said, p.now = p.said && p.now, true
}

// ErrBroken is the error of a stream that ended before the answer did.
var ErrBroken = &llm.Error{
	Failure: llm.Unreachable, Err: fmt.Errorf("the stream broke off: %w", io.ErrUnexpectedEOF),
}

// Failed classifies an error of a provider's SDK by the response, which is nil if there was none.
// After a status of success, an error that heed does not recognise is a failure of the provider.
func Failed(err error, response *http.Response) error {
	if err == nil || response == nil {
		return err
	}
	status, kind := response.StatusCode, llm.FailureOf(err)
	if status < 400 && kind == llm.Unrecognised {
		err = malformed{err}
	}
	switch {
	case status >= 300:
		header := response.Header.Get("Retry-After")
		seconds, _ := strconv.Atoi(header)
		if at, failed := http.ParseTime(header); failed == nil {
			seconds = int(time.Until(at).Seconds()) //nolint:forbidigo // the date is of real time
		}
		return llm.FromStatus(status, time.Duration(max(0, min(seconds, 1<<20)))*time.Second, err)
	case kind == llm.Unrecognised:
		return &llm.Error{Failure: llm.ServerError, Err: err}
	}
	return err
}

// A malformed error is about a response that can't be read. Its text does not have the response,
// which may repeat the prompt or the key.
type malformed struct{ error }

func (malformed) Error() string   { return "the server's response can't be used" }
func (m malformed) Unwrap() error { return m.error }

// These bound what a server can make a program hold.
const (
	mostBytes = 16 << 20 // of a response, with what JSON and events add
	mostText  = 1 << 20  // bytes of an answer
	mostName  = 200      // characters of a model's name
)

// Bounded ends a response that is too large. It is a middleware of the SDKs.
func Bounded(
	r *http.Request, next func(*http.Request) (*http.Response, error),
) (*http.Response, error) {
	response, err := next(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, mostBytes)
	}
	return response, err
}

// Each reads the stream of an SDK to its end, and closes it.
func Each[P any](stream interface {
	Next() bool
	Current() P
	Err() error
	Close() error
}, take func(P) error) error {
	defer stream.Close() //nolint:errcheck // what was read is what counts
	for stream.Next() {
		if err := take(stream.Current()); err != nil {
			return err
		}
	}
	return stream.Err()
}

// Unusable is the error of a reply that is no answer.
func Unusable(why string) error {
	return &llm.Error{Failure: llm.Unusable, Err: errors.New("the model gave no answer: " + why)}
}

// Usable returns what a model replied, or the error of a reply that is no answer.
func Usable(said Said, refused bool) (Said, error) {
	said.Model = prompt.Line(said.Model, mostName)
	switch {
	case refused:
		return said, Unusable("it refused")
	case len(said.Text) > mostText:
		return said, Unusable("it is longer than 1 MiB")
	case said.Text == "" && len(said.Calls) == 0:
		return said, Unusable("no text") // thoughts may have taken all tokens
	}
	return said, nil
}
