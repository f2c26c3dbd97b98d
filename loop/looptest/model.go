package looptest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/heedhq/heed/decision"
)

// The roles of [Line].
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
	ToolRole  = "tool" // the output of a tool, or its error
)

// A Request is what the framework sends to the model: all of it, in its order, the system prompt
// first.
type Request []Line

// A Line is one message of a request.
type Line struct {
	Role string // one of the constants
	Text string
}

// A Piece is a piece of the model's reply, or all of it.
type Piece struct {
	Text    string
	Thought string // what it thinks, which is not for the user: a thought part, reasoning content
	Calls   []Call // of tools. The framework runs them and asks the model again
}

// A Call is a call of a tool.
type Call struct {
	ID, Tool string
	Input    string // a JSON object
}

// A Model is the suite's model. Wrap it as a model of the framework. It is safe for concurrent use
// by multiple goroutines.
type Model struct {
	mu     sync.Mutex
	script script
	sent   []Request
}

// A script answers a request in place of a model. It stops if emit returns false.
type script func(ctx context.Context, r Request, emit func(Piece) bool) error

// Generate returns the model's reply in one piece.
func (m *Model) Generate(ctx context.Context, r Request) (Piece, error) {
	var all Piece
	for piece, err := range m.Stream(ctx, r) {
		if err != nil {
			return Piece{}, err
		}
		all.Text += piece.Text
		all.Thought += piece.Thought
		all.Calls = append(all.Calls, piece.Calls...)
	}
	return all, nil
}

// Stream yields the model's reply piece by piece. After an error it ends.
func (m *Model) Stream(ctx context.Context, r Request) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		m.mu.Lock()
		m.sent = append(m.sent, slices.Clone(r))
		say := m.script
		m.mu.Unlock()
		err, more := ctx.Err(), true
		if err == nil {
			err = say(ctx, r, func(p Piece) bool {
				more = more && yield(p, nil)
				return more
			})
		}
		if err != nil && more {
			yield(Piece{}, err)
		}
	}
}

// asLLM returns a model as [loop.Config].Models has it, for adapters that leave the call to the
// loop.
func asLLM(m *Model) decision.LLM {
	return decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		p, err := m.Generate(ctx, Request{{System, r.System}, {User, r.Prompt}})
		return decision.LLMResponse{Text: p.Text, Thoughts: p.Thought}, err
	})
}

// will sets the model's replies from now on, and forgets what it was sent.
func (m *Model) will(s script) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script, m.sent = s, nil
}

// requests returns what the model was sent since will.
func (m *Model) requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.sent)
}

// emits is the script of a model that returns pieces.
func emits(pieces ...Piece) script {
	return func(_ context.Context, _ Request, emit func(Piece) bool) error {
		for _, piece := range pieces {
			if !emit(piece) {
				break
			}
		}
		return nil
	}
}

// says is the script of a model that returns texts, each in a piece.
func says(texts ...string) script {
	var pieces []Piece
	for _, text := range texts {
		pieces = append(pieces, Piece{Text: text})
	}
	return emits(pieces...)
}

const databaseHost = `{"host":"db-1"}` // what the model gives to tools

// calls is the script of a model that calls a tool as often, one call after the other, and then
// returns a text.
func calls(tool, input string, times int64, text string) script {
	var made atomic.Int64
	return func(ctx context.Context, r Request, emit func(Piece) bool) error {
		n := made.Add(1)
		if n > times {
			return says(text)(ctx, r, emit)
		}
		emit(Piece{Calls: []Call{{ID: fmt.Sprint("call-", n), Tool: tool, Input: input}}})
		return nil
	}
}

// count returns how often a text is in a request.
func (r Request) count(text string) (n int) {
	for _, line := range r {
		n += strings.Count(line.Text, text)
	}
	return n
}
