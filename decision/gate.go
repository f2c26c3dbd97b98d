package decision

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// errBusy says that calls which were given up hold all places.
var errBusy = errors.New("calls that were given up hold all places")

// A gate lets a number of calls of a host's code through at a time, each on a goroutine of its own, so that one which does
// not heed its context can be given up. What was given up keeps its place until it returns; when all places are held so,
// nothing is let through. A gate is safe for concurrent use.
type gate struct {
	places  chan struct{}
	givenUp atomic.Int64
}

func newGate(places int) *gate { return &gate{places: make(chan struct{}, places)} }

// A PanicError says that a host's code panicked, or ended its goroutine.
type PanicError struct {
	Value any    // what it panicked with; nil where it ended its goroutine
	Stack []byte // where
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// pass calls f through the gate and returns what it returns, or the context's error as soon as that is done, errBusy, or a
// [*PanicError]. What f returns later is dropped.
func pass[T any](ctx context.Context, g *gate, f func(context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	select {
	case g.places <- struct{}{}:
	default:
		if int(g.givenUp.Load()) == cap(g.places) {
			return none, errBusy
		}
		select {
		case g.places <- struct{}{}:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	type reply struct {
		value T
		err   error
	}
	replies := make(chan reply, 1)
	var over atomic.Bool // whether the call has returned, or was given up, whichever was first
	go func() {
		var r reply
		returned := false
		defer func() {
			if !returned {
				r.err = &PanicError{Value: recover(), Stack: debug.Stack()}
			}
			if !over.CompareAndSwap(false, true) {
				g.givenUp.Add(-1)
			}
			<-g.places
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
		r := <-replies // it returned at the same moment
		return r.value, r.err
	}
}

// contain calls f and returns its panic as an error.
func contain(f func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}

// call calls f and returns its error, or its panic as one.
func call(f func() error) (err error) {
	if panicked := contain(func() { err = f() }); panicked != nil {
		return panicked
	}
	return err
}
