package loop

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/thoughts"
)

// How an answer is streamed: [Event].OnChunk is the host's receiver, a [Streamer] is a model that
// gives its answer in pieces, and a pipe between them takes out the model's thoughts. If a
// framework calls the model, [Spoken] does so.

// A Streamer is a [decision.LLM] that gives its answer in pieces as it comes. Stream calls piece on
// one goroutine at a time, and returns the whole answer. The rules of Generate hold. The pieces may
// have thoughts in tags, which the loop takes out.
type Streamer interface {
	decision.LLM
	Stream(ctx context.Context, r decision.LLMRequest, piece func(text string)) (decision.LLMResponse,
		error)
}

// A pipe brings the pieces of an answer to the host, without the thoughts in them. A model that was
// given up can't write any more. A pipe to nil drops the pieces.
//
// The lock is held while the host's function runs, so that pieces come one after the other, and a
// model that was given up can't write between them.
type pipe struct {
	to func(ctx context.Context, text string, restart bool)

	mu      sync.Mutex
	reader  *thoughts.Reader
	written bool // something was given to the host
	begun   bool // by the model that may write
	restart bool // the next piece begins the answer again, because the model before broke off
	writer  int  // the number of the model that may write; those before it were given up
	closed  bool
	failed  error         // the host's panic
	held    time.Duration // how long the host's function ran for the model that may write
}

// begin returns what the next model writes with. stop ends its call, where the host has panicked.
// The host is given the call's context. The number of the writer is compared with each piece,
// because the goroutine of a model that was given up may still run.
func (p *pipe) begin(ctx context.Context, stop func()) func(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writer++
	p.reader, p.begun, p.restart, p.held = new(thoughts.Reader), false, p.written, 0
	mine := p.writer
	return func(text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.to != nil && !p.closed && p.writer == mine {
			shown, restart := p.reader.Write(text)
			p.give(ctx, shown, restart)
		}
		if p.failed != nil {
			stop()
		}
	}
}

// giveUp stops the model that writes, and reports it in slow, unless it gave the host something
// already, or its call is over: then another model may write.
func (p *pipe) giveUp(call context.Context, slow *atomic.Bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun || call.Err() != nil {
		return false
	}
	p.writer++
	slow.Store(true)
	return true
}

// give calls the host with a piece, unless it is empty, because its text was a thought. A restart
// is only of use to a host that has received something.
func (p *pipe) give(ctx context.Context, text string, restart bool) {
	if restart = restart || p.restart && text != ""; p.failed == nil &&
		(text != "" || restart && p.written) {
		restart = restart && p.written
		p.written, p.begun, p.restart = true, true, false
		began := time.Now() //nolint:forbidigo // to be compared with a deadline, which is of real time
		p.failed = receive(func() { p.to(ctx, text, restart) })
		p.held += time.Since(began) //nolint:forbidigo // the same
	}
}

// end gives what was held back of an answer that is whole, and closes the pipe. It returns the
// host's panic, if there was one.
func (p *pipe) end(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		shown, restart := p.reader.Close()
		p.give(ctx, shown, restart)
	}
	return p.failed
}

// fault returns the host's panic. It may also stop delivery to the host.
func (p *pipe) fault(closing bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || closing
	return p.failed
}

// heldFor returns how long the host's function held the model that may write. It waits for a call
// that runs.
func (p *pipe) heldFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// show gives the host an answer that is ready. If restart is true, the answer replaces pieces of
// another one.
func (a *Agent) show(ctx context.Context, p *Plan, restart bool) error {
	ctx, cancel := context.WithTimeout(ctx, a.decider.Config().Timeout)
	defer cancel()
	return receive(func() { p.Event.OnChunk(ctx, p.Text, restart) })
}

// receive calls the receiver of pieces.
func receive(f func()) error {
	return host.Call("Event.OnChunk", func() error { f(); return nil })
}

// Spoken returns two functions for an answer that a framework streams. write takes each piece of
// it, and gives to what is not a thought of the model in tags, such as <think>. It may hold text
// back. Call end after the last piece. Thoughts that lack their opening tag are known too late.
// [Agent.Answered] takes all thoughts out.
//
// Both must not be used concurrently.
func Spoken(to func(text string)) (write func(piece string), end func()) {
	var r thoughts.Reader
	give := func(text string, _ bool) {
		if text != "" {
			to(text)
		}
	}
	return func(piece string) { give(r.Write(piece)) }, func() { give(r.Close()) }
}
