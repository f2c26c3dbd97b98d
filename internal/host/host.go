// Package host calls code of the host application, such as a model, an evaluator or a hook, so that
// its panic, its end or its hanging does no harm to heed.
package host

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/heedhq/heed"
)

// Call calls f on the caller's goroutine and returns its error. A panic becomes a
// [*heed.PanicError] with who was called.
func Call(who string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &heed.PanicError{Who: who, Value: value, Stack: debug.Stack()}
		}
	}()
	return f()
}

var (
	// ErrBusy means that no call was made, because too many calls that were given up have not
	// returned.
	ErrBusy = errors.New("calls that were given up have not returned")
	// ErrWaited means that no call was made, because no place became free before the context ended.
	// It comes with the context's error.
	ErrWaited = errors.New("no call returned in time")
)

// A Gate lets a number of calls through at a time. A call that was given up keeps its place until
// it returns. While such calls hold all places, no other call is made. A Gate is safe for
// concurrent use.
type Gate struct {
	places  chan struct{} // nil: no limit
	givenUp atomic.Int64
}

// mostGivenUp is how many calls of a gate without a limit may be given up and not have returned.
// It is more than the calls that end at the same moment in a busy process, because these return a
// moment after they were given up.
const mostGivenUp = 1000

// NewGate returns a Gate for a number of calls at a time. 0 means no limit.
func NewGate(places int) *Gate {
	if places == 0 {
		return &Gate{}
	}
	return &Gate{places: make(chan struct{}, places)}
}

// GivenUp returns how many calls were given up and have not returned yet.
func (g *Gate) GivenUp() int { return int(g.givenUp.Load()) }

// Pass calls f on a new goroutine and returns its result. It returns the context's error as
// soon as the context ends, even if f does not return; a later result is dropped. If no place is
// free, it waits for one, and returns [ErrBusy] at once if calls that were given up hold them all.
// A panic, or the end of the goroutine, becomes a [*heed.PanicError].
func Pass[T any](
	ctx context.Context, g *Gate, who string, f func(context.Context) (T, error),
) (T, error) {
	if err := g.Enter(ctx); err != nil {
		var none T
		return none, err
	}
	return Entered(ctx, g, who, f)
}

// Entered is [Pass] for a caller that has a place by [Gate.Enter]. It gives the place back.
func Entered[T any](
	ctx context.Context, g *Gate, who string, f func(context.Context) (T, error),
) (T, error) {
	var none T
	type reply struct {
		value T
		err   error
	}
	replies := make(chan reply, 1)
	var over atomic.Bool // set by the first of two: the call returns, or it is given up
	go func() {
		var r reply
		returned := false
		defer func() {
			if !returned {
				r.err = &heed.PanicError{Who: who, Value: recover(), Stack: debug.Stack()}
			}
			if !over.CompareAndSwap(false, true) {
				g.givenUp.Add(-1)
			}
			if g.places != nil {
				<-g.places
			}
			replies <- r
		}()
		r.value, r.err = f(ctx)
		returned = true
	}()
	select {
	case r := <-replies:
		return r.value, r.err
	case <-ctx.Done():
		if over.CompareAndSwap(false, true) {
			g.givenUp.Add(1)
			return none, ctx.Err()
		}
		r := <-replies // the call returned at the same moment
		return r.value, r.err
	}
}

// Enter takes a place, which only [Entered] gives back. It waits for one as long as the context
// lasts.
func (g *Gate) Enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.places == nil {
		if g.GivenUp() >= mostGivenUp {
			return ErrBusy
		}
		return nil
	}
	select {
	case g.places <- struct{}{}:
		return nil
	default:
	}
	if g.GivenUp() == cap(g.places) {
		return ErrBusy
	}
	select {
	case g.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrWaited, ctx.Err())
	}
}
