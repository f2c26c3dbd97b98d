package strategy

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// A NoveltyHook is told what a [Consumer] has learned: the place for the detection of novelty, and for whatever else a host
// wants to do about outcomes. It is called outside of every lock, when the event is acknowledged. What it returns is
// counted, and stops nothing; nor does a panic. A call that takes longer than ConsumerConfig.HookTimeout is left to itself.
// It must be safe for concurrent use by multiple goroutines.
type NoveltyHook interface {
	// OnOutcome is called once for each outcome that was counted, after it was; never, if the process ends in between.
	OnOutcome(ctx context.Context, o Outcome) error
	// OnSessionEnd is called after a session's end was told; again, if it is told again.
	OnSessionEnd(ctx context.Context, session string) error
}

// maxLeft is how many calls of a hook may be left to themselves at a time. While there are so many it is not called.
const maxLeft = 8

var (
	errHookExit    = errors.New("it ended its goroutine")
	errHookTimeout = errors.New("it takes too long")
	errHookHangs   = errors.New("not called, as too many of its calls have not returned")
)

// A contained calls what may fail in any way.
type contained struct {
	timeout time.Duration
	left    atomic.Int64 // calls that were left to themselves and have not returned
}

// call returns what became of a call, at the latest when its time is over.
func (c *contained) call(ctx context.Context, do func(context.Context) error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.left.Load() >= maxLeft:
		return errHookHangs
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	result := make(chan error, 1)
	var over atomic.Bool // whether the call has ended, or its time: whichever comes first sets it
	go func() {
		err := errHookExit // unless it returns or panics
		defer func() {
			if reason := recover(); reason != nil {
				err = &panicError{reason, debug.Stack()}
			}
			if over.Swap(true) {
				c.left.Add(-1)
				return
			}
			result <- err
		}()
		err = do(ctx)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	if over.Swap(true) {
		return <-result
	}
	c.left.Add(1)
	return errHookTimeout
}

// A panicError is a panic that was contained.
type panicError struct {
	reason any
	stack  []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.reason) }

// contain makes an error of a panic.
func contain(do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = &panicError{reason, debug.Stack()}
		}
	}()
	return do()
}
