package adaptertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/heedhq/heed/adapter/internal/turn"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// A Provider is the API of a provider, as it is documented. The tests of its adapter run against a
// server of this form.
type Provider struct {
	Name        string // with which the variables of the environment begin
	Base, Path  string // the path of all requests, and the rest of the path of these
	Header, Key string // the header that has the key "key"
	// New returns a model of the server that the environment names. The SDK asks once only.
	New func(name, system string, tools []turn.Tool) Model
	// Read reads a request. It fails if a call has no result, or a result no call.
	Read func(body io.Reader) (Request, error)
	// Say sends a whole reply.
	Say func(w io.Writer, said decision.LLMResponse, calls []looptest.Call)
	// Stream begins a reply in pieces. It returns what sends a piece, and what ends the reply.
	Stream func(send Send, model string) (piece func(looptest.Piece), end func())
	// Failure is the body of a failure, Broken an event of a failure, and Half an event of which a
	// part is missing. Done is what follows on a stream's last event. Unusable are the bodies of
	// replies that are no answers, by name.
	Failure, Broken, Half, Done string
	Unusable                    map[string]string
}

// A Model is what an adapter makes of an SDK.
type Model interface {
	loop.Streamer
	Answer(ctx context.Context, agent *loop.Agent, e loop.Event) (loop.Answer, error)
}

// A Request is what a model is asked. Its System and Prompt are in Lines.
type Request struct {
	decision.LLMRequest

	Model   string
	Streams bool
	Lines   looptest.Request
}

// Send sends an event of a stream. Without a kind it has data only.
type Send func(kind string, data map[string]any)

// A script is a model behind the server.
type script interface {
	Generate(ctx context.Context, r looptest.Request) (looptest.Piece, error)
	Stream(ctx context.Context, r looptest.Request) iter.Seq2[looptest.Piece, error]
}

// Test has the suites judge the provider's adapter, and classifies its failures. The page is the
// README.md of the working directory.
func (p *Provider) Test(t *testing.T) {
	t.Run("model", p.model)
	t.Run("suite", p.suite)
	t.Run("failures", p.failures)
	t.Run("streams that fail", p.streamsThatFail)
	t.Run("pieces restart", p.piecesRestart)
	t.Run("page", func(t *testing.T) {
		p.serve(t, p.plays(func(string) script { return busy{} }))
		Page(t, "README.md")
	})
}

// serve starts a server, and has the environment name it.
func (p *Provider) serve(t *testing.T,
	handle func(w http.ResponseWriter, r *http.Request, in Request)) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := p.Read(r.Body)
		if err != nil || r.URL.Path != p.Base+p.Path || r.Header.Get(p.Header) != p.Key {
			http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		handle(w, r, in)
	})
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the suite has models that panic
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv(p.Name+"_BASE_URL", server.URL+p.Base)
	t.Setenv(p.Name+"_API_KEY", "key")
}

func (p *Provider) fails(w http.ResponseWriter, status int) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, p.Failure)
}

// failsBy fails in the way of an error.
func (p *Provider) failsBy(w http.ResponseWriter, err error) {
	switch llm.FailureOf(err) {
	case llm.Unusable:
		p.Say(w, decision.LLMResponse{}, nil)
	case llm.Unreachable:
		p.fails(w, http.StatusUnauthorized)
	case llm.RateLimited:
		p.fails(w, http.StatusTooManyRequests)
	case llm.TimedOut:
		p.fails(w, http.StatusRequestTimeout)
	default:
		p.fails(w, http.StatusServiceUnavailable)
	}
}

// plays has scripts answer by the name of the model.
func (p *Provider) plays(
	models func(name string) script,
) func(http.ResponseWriter, *http.Request, Request) {
	return func(w http.ResponseWriter, r *http.Request, in Request) {
		model := models(in.Model)
		if in.Streams {
			p.stream(w, in.Model, model.Stream(r.Context(), in.Lines))
			return
		}
		piece, err := model.Generate(r.Context(), in.Lines)
		if err != nil {
			p.failsBy(w, err)
			return
		}
		p.Say(w, decision.LLMResponse{
			Text: piece.Text, Thoughts: piece.Thought, Model: in.Model,
		}, piece.Calls)
	}
}

// begin begins a reply in pieces.
func (p *Provider) begin(
	w http.ResponseWriter, model string,
) (piece func(looptest.Piece), end func()) {
	w.Header().Set("Content-Type", "text/event-stream")
	return p.Stream(func(kind string, data map[string]any) {
		text, _ := json.Marshal(data)
		if kind != "" {
			_, _ = fmt.Fprintf(w, "event: %s\n", kind)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
		_ = http.NewResponseController(w).Flush()
	}, model)
}

func (p *Provider) stream(w http.ResponseWriter, model string,
	pieces iter.Seq2[looptest.Piece, error]) {
	var send func(looptest.Piece)
	var end func()
	for piece, err := range pieces {
		empty := llm.FailureOf(err) == llm.Unusable // a reply without a text
		if err != nil && send == nil && !empty {
			p.failsBy(w, err)
			return
		}
		if send == nil {
			send, end = p.begin(w, model)
		}
		if err != nil && !empty {
			_, _ = io.WriteString(w, p.Broken)
			return
		}
		send(piece)
	}
	end()
	_, _ = io.WriteString(w, p.Done)
}

// model has the suite of models judge Generate and Stream.
func (p *Provider) model(t *testing.T) {
	llmtest.Run(t, func(provider decision.LLM) (decision.LLM, error) {
		p.serve(t, func(w http.ResponseWriter, r *http.Request, in Request) {
			for _, line := range in.Lines {
				if line.Role == looptest.System {
					in.System = line.Text
				} else {
					in.Prompt = line.Text
				}
			}
			got, err := provider.Generate(r.Context(), in.LLMRequest)
			if err != nil {
				p.fails(w, http.StatusInternalServerError)
				return
			}
			p.Say(w, got, nil)
		})
		return p.New("m", "", nil), nil
	})
}

// suite has the suite of adapters judge Answer, whole and in pieces.
func (p *Provider) suite(t *testing.T) {
	looptest.Run(t, looptest.Subject{Models: true, Tools: true, Enforce: true,
		New: func(agent *loop.Agent, s looptest.Script) (looptest.Driver, error) {
			p.serve(t, p.plays(func(name string) script {
				if m := s.Models[name]; m != nil {
					return m
				}
				return s.Model
			}))
			return talk(agent, p.New("main", s.System, toolsOf(s)).Answer), nil
		}})
}

// failures classifies failures of whole answers.
func (p *Provider) failures(t *testing.T) {
	check := func(name string, want llm.Failure, wait time.Duration, handle http.HandlerFunc) {
		p.serve(t, func(w http.ResponseWriter, r *http.Request, _ Request) { handle(w, r) })
		_, err := p.New("m", "", nil).Generate(t.Context(), asked)
		if llm.FailureOf(err) != want || llm.RetryAfter(err) != wait {
			t.Errorf("%s: %q, again after %s: %v", name, llm.FailureOf(err), llm.RetryAfter(err), err)
		}
	}
	for failure, wait := range map[llm.Failure]time.Duration{
		llm.RateLimited: 30 * time.Second, llm.ServerError: 0, llm.Unreachable: 0, llm.TimedOut: 0,
		llm.Unusable: 0,
	} {
		check("a provider that fails", failure, wait, func(w http.ResponseWriter, _ *http.Request) {
			if wait > 0 {
				w.Header().Set("Retry-After", fmt.Sprint(wait.Seconds()))
			}
			p.failsBy(w, failure)
		})
	}
	check("a connection that breaks", llm.Unreachable, 0, func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler) //nolint:forbidigo // the handler's way to do so
	})
	for name, body := range p.Unusable {
		check(name, llm.Unusable, 0, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, body)
		})
	}
}

var asked = decision.LLMRequest{Prompt: "p", MaxTokens: 10}

// streamsThatFail give the pieces that came, and the failure.
func (p *Provider) streamsThatFail(t *testing.T) {
	for rest, want := range map[string]llm.Failure{
		"": llm.Unreachable, p.Broken: llm.ServerError, p.Half: llm.ServerError,
	} {
		p.serve(t, func(w http.ResponseWriter, _ *http.Request, in Request) {
			if !in.Streams {
				t.Error("no stream is asked for")
			}
			piece, _ := p.begin(w, in.Model)
			piece(looptest.Piece{Text: "Rotate"})
			_, _ = io.WriteString(w, rest)
		})
		var got string
		_, err := p.New("m", "", nil).Stream(t.Context(), asked, func(text string) { got += text })
		if llm.FailureOf(err) != want || got != "Rotate" {
			t.Errorf("%q: %q after %q: %v", rest, llm.FailureOf(err), got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.New("m", "", nil).Stream(ctx, asked, func(string) {})
	if llm.FailureOf(err) != llm.Cancelled {
		t.Errorf("a context that has ended: %v", err)
	}
}

// A busy model calls a tool, with a word before, and then answers with what the tool gave.
type busy struct{}

func (busy) Generate(_ context.Context, r looptest.Request) (looptest.Piece, error) {
	if last := r[len(r)-1]; last.Role == looptest.ToolRole {
		return looptest.Piece{Text: "Rotate its logs: " + last.Text}, nil
	}
	return looptest.Piece{Text: "Let me look.", Calls: []looptest.Call{
		{ID: "call-1", Tool: "df", Input: `{}`},
	}}, nil
}

func (b busy) Stream(ctx context.Context, r looptest.Request) iter.Seq2[looptest.Piece, error] {
	return func(yield func(looptest.Piece, error) bool) { yield(b.Generate(ctx, r)) }
}

// piecesRestart after a call of a tool, because the text before is no part of the answer.
func (p *Provider) piecesRestart(t *testing.T) {
	p.serve(t, p.plays(func(string) script { return busy{} }))
	model := p.New("m", "", []turn.Tool{{
		Name: "df", Run: func(context.Context, string) (string, error) { return "97%", nil },
	}})
	agent, _ := looptest.New(t, loop.Config{})
	var pieces string
	answer, err := model.Answer(t.Context(), agent, loop.Event{
		ID: "m1", Text: "The disk is full.",
		OnChunk: func(_ context.Context, text string, restart bool) {
			pieces += fmt.Sprint(text, " ", restart, "\n")
		},
	})
	if err != nil || answer.Text != "Rotate its logs: 97%" ||
		pieces != "Let me look. false\nRotate its logs: 97% true\n" {
		t.Errorf("answers %q, %v, in pieces:\n%s", answer.Text, err, pieces)
	}
}
