// Package watch calls a host's observer, so that its panic or its hanging does no harm.
package watch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
)

const (
	patience = 100 * time.Millisecond // how long a caller waits for the observer
	places   = 8                      // calls of the observer at a time
)

// A Watch calls an observer. It is safe for concurrent use. nil is a Watch without an observer;
// check for it before a notice is made, so that it is free:
//
//	if l.watch != nil {
//		l.watch.Tell(ctx, heed.Selected{…})
//	}
type Watch struct {
	observer heed.Observer
	name     string
	now      func() time.Time
	gate     *host.Gate
	dropped  atomic.Int64 // notices that the observer missed, and that were not yet reported to it
}

// New returns a Watch for a component, or nil where there is no observer. now is the component's
// clock.
func New(observer heed.Observer, name string, now func() time.Time) *Watch {
	if observer == nil {
		return nil
	}
	return &Watch{observer: observer, name: name, now: now, gate: host.NewGate(places)}
}

// Name returns the component's name, for a notice.
func (w *Watch) Name() string { return w.name }

// Tell calls the observer with a notice. It returns when the observer does, or when it takes too
// long.
func (w *Watch) Tell(ctx context.Context, n heed.Notice) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := w.call(ctx, n)
	switch panicked := (*heed.PanicError)(nil); {
	case errors.As(err, &panicked):
		_ = w.fail(ctx, err)
	case notCalled(err):
		w.dropped.Add(1)
	case err == nil:
		w.confess(ctx)
	}
}

// Failed reports a failure. It is a short form of Tell, and has no effect without a failure or an
// observer.
func (w *Watch) Failed(ctx context.Context, what string, err error) {
	if w != nil && err != nil {
		w.Tell(ctx, heed.Failed{Component: w.name, At: w.now(), What: what, Err: err})
	}
}

// Swept reports how many things a sweep changed. It is a short form of Tell, and has no effect
// without any or without an observer.
func (w *Watch) Swept(ctx context.Context, at time.Time, n int) {
	if w != nil && n > 0 {
		w.Tell(ctx, heed.Swept{Component: w.name, At: at, Count: n})
	}
}

// confess reports to the observer how many notices were dropped.
func (w *Watch) confess(ctx context.Context) {
	dropped := w.dropped.Swap(0)
	if dropped > 0 && notCalled(w.fail(ctx, fmt.Errorf("it was too slow, and %d notices were dropped",
		dropped))) {
		w.dropped.Add(dropped)
	}
}

func notCalled(err error) bool {
	return errors.Is(err, host.ErrBusy) || errors.Is(err, host.ErrWaited)
}

// fail reports to the observer how its own call ended.
func (w *Watch) fail(ctx context.Context, err error) error {
	return w.call(ctx, heed.Failed{Component: w.name, At: w.now(), What: "observer", Err: err})
}

func (w *Watch) call(ctx context.Context, n heed.Notice) error {
	_, err := host.Pass(ctx, w.gate, "the observer", func(ctx context.Context) (struct{}, error) {
		w.observer(ctx, n)
		return struct{}{}, nil
	})
	return err
}
