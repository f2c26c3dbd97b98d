package loop

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/thoughts"
)

// A Streamer is a [decision.LLM] that gives its answer in pieces as it comes. Stream calls piece on one goroutine at a time, and returns
// the whole answer. The rules of Generate hold.
type Streamer interface {
	decision.LLM
	Stream(ctx context.Context, r decision.LLMRequest, piece func(text string)) (decision.LLMResponse, error)
}

// A pipe brings the pieces of an answer to the host, without the thoughts in them. A model that was given up can't write any more.
type pipe struct {
	to func(text string, anew bool)

	mu      sync.Mutex
	reader  thoughts.Reader
	written bool // something was given to the host
	closed  bool
}

func (p *pipe) write(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.give(p.reader.Write(text))
	}
}

func (p *pipe) give(text string, anew bool) {
	if text != "" || anew && p.written {
		p.to(text, anew && p.written)
		p.written = true
	}
}

// end gives what was held back, and closes the pipe.
func (p *pipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.give(p.reader.Close())
	}
}

// began reports whether the host was given something.
func (p *pipe) began() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written
}

// stream asks models in their order until one answers. After a model whose answer has begun, no other is asked.
func (c chain) stream(ctx context.Context, r decision.LLMRequest, p *pipe) (reply decision.LLMResponse, err error) {
	var errs []error
	for _, m := range c.models {
		if s, ok := m.(Streamer); ok {
			reply, err = s.Stream(ctx, r, p.write)
		} else if reply, err = m.Generate(ctx, r); err == nil {
			p.write(reply.Text)
		}
		if err == nil && strings.TrimSpace(reply.Text) != "" {
			return reply, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil || p.began() {
			break
		}
	}
	return reply, errors.Join(errs...)
}
