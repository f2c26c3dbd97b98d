package stream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/internal/watch"
)

// A Runner reads the events of a source and applies them, each once in effect if Apply counts an
// event once. An event is acknowledged after it is applied, or after its dead letter is in the
// sink. Packages strategy/attribution and feedback have a runner each, for their own events. Set
// Stream, DeadLetters, Topic and Apply, and change no field after the first call of [Runner.Run].
//
// It is safe for concurrent use by multiple goroutines.
type Runner struct {
	Stream Source
	// DeadLetters takes the events that can't be applied, each as a [DeadLetter] on Topic.
	DeadLetters Sink
	Topic       string
	// Apply applies an event. A [*heed.InputError], a [*heed.SettingsError] and an error that
	// [Refuse] returned are final: the event is dead. After any other error Apply is called
	// again. It may return a function, also with an error, which is called when the event is out of
	// hand.
	Apply func(ctx context.Context, e Event) (after func(ctx context.Context), err error)
	// Workers is how many events are worked on at a time. 0 means 1, which keeps the stream's order.
	// Set it higher if Apply waits for a network and the order does not matter.
	Workers int
	// Attempts is how often anything that fails is tried, before an event is dead. 0 means 5. Raise
	// it if what Apply calls is often away for more than some seconds.
	Attempts int
	// Strict has Run end at the first failure that is not final, with its error. The event is given
	// back, and is not dead.
	Strict bool
	// Timeout bounds an attempt. 0: it has no bound. Set it to less than the lease of the source, or
	// an event that hangs is delivered again while it is still worked on.
	Timeout time.Duration
	// Observer is called for dead letters and hidden failures of the component Name. Now is the
	// clock; nil means time.Now.
	Observer heed.Observer
	Name     string
	Now      func() time.Time

	mu     sync.Mutex
	counts RunnerCounts
	watch  *watch.Watch
}

// The waits between attempts double, up to a hundredfold. At the end of Run, drain is how long it
// goes on with the events in hand before it gives them back.
const (
	backoff = 100 * time.Millisecond
	drain   = 10 * time.Second
)

// RunnerCounts counts what a [Runner] did since it was made.
type RunnerCounts struct {
	Received uint64 // events
	Applied  uint64 // events that were applied
	Dead     uint64 // events that became dead letters
	Retries  uint64 // attempts after the first
	NotAcked uint64 // events that could be neither acknowledged nor given back; they come again
}

// A DeadLetter is an event that could not be applied, stored as the JSON payload of an event of the
// same id. To try once more, publish its Event to the stream again.
type DeadLetter struct {
	Event    Event  `json:"event"`
	Reason   string `json:"reason"`
	Attempts int    `json:"attempts"`
}

// Refuse returns an error that makes an event dead at once. The observer receives what: unlike the
// error, it must not quote what may be private.
func Refuse(err error, what string) error { return &refusal{err, what} }

// A refusal is an error that is final, with what an observer may know of it.
type refusal struct {
	error
	what string
}

func (r *refusal) Unwrap() error { return r.error }

// final reports whether another attempt would fail as well, and what the observer receives. Faults
// of the input and of settings are final: the event would be the same the next time.
func final(err error) (what string, is bool) {
	var refused *refusal
	var fault *heed.InputError
	var settings *heed.SettingsError
	switch {
	case errors.As(err, &refused):
		return refused.what, true
	case errors.As(err, &fault):
		return fault.Error(), true // what wraps it may quote the host
	case errors.As(err, &settings):
		return settings.Error(), true
	}
	return "", false
}

// Validate returns all faults of the settings, joined: each is a [*heed.ConfigError].
func (r *Runner) Validate() error {
	var found valid.Faults
	found.Check(r.Stream != nil, "Stream", nil, "must be set")
	found.Check(r.DeadLetters != nil, "DeadLetters", nil, "must be set")
	found.Check(r.Workers >= 0, "Workers", r.Workers, "must not be negative")
	found.Check(r.Attempts >= 0, "Attempts", r.Attempts, "must not be negative")
	return found.Err()
}

// Counts returns what was done so far.
func (r *Runner) Counts() RunnerCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// count changes the counts under the lock.
func (r *Runner) count(what func(*RunnerCounts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what(&r.counts)
}

// Run reads and applies events until the context ends, or the stream is closed. Then it finishes
// the events in hand, gives back those that it can't finish, and returns nil. It returns an error
// if the stream fails for good, or a dead letter can't be written.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.Validate(); err != nil {
		return err
	}
	r.mu.Lock()
	if r.watch == nil {
		r.watch = watch.New(r.Observer, r.Name, r.now)
	}
	r.mu.Unlock()
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	working, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	failures := make([]error, max(r.Workers, 1))
	var workers sync.WaitGroup
	for i := range failures {
		workers.Go(func() {
			// unless it returns
			failures[i] = errors.New("a worker's goroutine was ended from within")
			defer func() {
				if failures[i] != nil {
					stop()
				}
			}()
			failures[i] = host.Call("a worker", func() error { return r.work(receiving, working) })
		})
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		workers.Wait()
		stop()
	}()
	<-receiving.Done()
	select {
	case <-finished:
	case <-time.After(drain):
		abandon()
		<-finished
	}
	return errors.Join(failures...)
}

// now returns the moment by the host's clock.
func (r *Runner) now() time.Time {
	if r.Now == nil {
		return time.Now() //nolint:forbidigo // the default clock of a host that sets no clock
	}
	return r.Now()
}

// work deals with one event after the other. It returns nil at the end of the stream or of the
// context.
func (r *Runner) work(receiving, working context.Context) error {
	for receiving.Err() == nil {
		var d Delivery
		var e Event
		closed := false
		_, err := r.try(receiving, "the source", func(context.Context) (err error) {
			if d, err = r.Stream.Receive(receiving); err == nil {
				e = d.Event()
			}
			if closed = errors.Is(err, ErrClosed); closed {
				err = nil
			}
			return err
		})
		switch {
		case closed || err != nil && receiving.Err() != nil:
			return nil //nolint:nilerr // it ends
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		}
		r.count(func(n *RunnerCounts) { n.Received++ })
		if err := r.deal(receiving, working, d, e); err != nil {
			return err
		}
	}
	return nil
}

// try calls a function until it succeeds, fails for good, failed in all attempts, or the context
// ends.
func (r *Runner) try(
	ctx context.Context, who string, do func(context.Context) error,
) (attempts int, err error) {
	for attempts = 1; ; attempts++ {
		if err = host.Call(who, func() error { return do(ctx) }); err == nil {
			return attempts, nil
		}
		if errors.As(err, new(*heed.PanicError)) {
			r.watch.Failed(ctx, "host", err)
		}
		if _, is := final(err); is || r.Strict || attempts == cmp.Or(r.Attempts, 5) {
			return attempts, err
		}
		select {
		case <-ctx.Done():
			return attempts, err
		case <-time.After(min(backoff<<min(attempts-1, 30), 100*backoff)):
		}
		r.count(func(n *RunnerCounts) { n.Retries++ })
	}
}

// timed bounds each attempt by the runner's Timeout. The context of the work outlasts the
// one of Run, so that events in hand can be finished.
func (r *Runner) timed(working context.Context,
	do func(context.Context) error) func(context.Context) error {
	return func(context.Context) error {
		if r.Timeout == 0 {
			return do(working)
		}
		ctx, cancel := context.WithTimeout(working, r.Timeout)
		defer cancel()
		return do(ctx)
	}
}

// deal applies a delivery, or writes its dead letter, and acknowledges it. It returns an error if
// neither could be done.
func (r *Runner) deal(receiving, working context.Context, d Delivery, e Event) error {
	var afters []func(context.Context)
	defer func() { // when the event is out of hand, because it may take long
		for _, after := range afters {
			after(working)
		}
	}()
	attempts, err := r.try(receiving, "the host's code",
		r.timed(working, func(ctx context.Context) error {
			after, err := r.Apply(ctx, e)
			if after != nil {
				afters = append(afters, after)
			}
			return err
		}))
	_, is := final(err)
	switch {
	case err == nil:
		r.count(func(n *RunnerCounts) { n.Applied++ })
	case !is && r.Strict:
		r.giveBack(working, d)
		return err
	case !is && (attempts < cmp.Or(r.Attempts, 5) || working.Err() != nil):
		r.giveBack(working, d)
		return nil
	default:
		if err := r.bury(working, e, err, attempts); err != nil {
			r.giveBack(working, d)
			if working.Err() != nil {
				return nil
			}
			return err
		}
		r.count(func(n *RunnerCounts) { n.Dead++ })
	}
	if _, err := r.try(working, "the delivery", r.timed(working, d.Ack)); err != nil {
		r.count(func(n *RunnerCounts) { n.NotAcked++ })
		r.watch.Failed(working, "acknowledge", err)
		if r.Strict {
			return fmt.Errorf("acknowledge: %w", err)
		}
	}
	return nil
}

// giveBack rejects an event that could not be dealt with.
func (r *Runner) giveBack(working context.Context, d Delivery) {
	ctx := context.WithoutCancel(working)
	reject := r.timed(ctx, d.Reject)
	if err := host.Call("the delivery", func() error { return reject(ctx) }); err != nil {
		r.count(func(n *RunnerCounts) { n.NotAcked++ })
		r.watch.Failed(ctx, "give back", err)
	}
}

// bury publishes the dead letter of an event. It has the event's id, so that a sink which counts
// ids once keeps one letter even if the event is buried again after a crash. An event without an id
// gets one made of its payload.
func (r *Runner) bury(ctx context.Context, e Event, reason error, attempts int) error {
	if _, err := e.At.MarshalJSON(); err != nil {
		e.At = time.Time{} // a year that JSON cannot express may be why the event is dead
	}
	payload, err := json.Marshal(DeadLetter{e, reason.Error(), attempts})
	if err != nil {
		return err
	}
	letter := Event{ID: e.ID, Topic: r.Topic, At: r.now(), Payload: payload}
	if letter.ID == "" {
		sum := sha256.Sum256(e.Payload)
		letter.ID = "nameless:" + hex.EncodeToString(sum[:])
	}
	publish := func(ctx context.Context) error { return r.DeadLetters.Publish(ctx, letter) }
	if _, err := r.try(ctx, "the dead letters", r.timed(ctx, publish)); err != nil {
		return fmt.Errorf("the dead letter of an event can't be written: %w", err)
	}
	if r.watch != nil {
		description, is := final(reason)
		if !is { // a host's error or panic may contain what is private
			description = fmt.Sprintf("failed in %d attempts", attempts)
		}
		r.watch.Tell(ctx, heed.DeadLettered{
			Component: r.Name, At: letter.At, ID: letter.ID, Reason: description,
		})
	}
	return nil
}
