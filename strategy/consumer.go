package strategy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/stream"
)

// ConsumerConfig configures a [Consumer]. Learner, Source and DeadLetters must be set; every other field has a default.
type ConsumerConfig struct {
	// Learner learns from what is read. It must record its choices, as they are found there.
	Learner *Learner
	// Source delivers the events, each an [AttributionEvent].
	Source stream.Source
	// DeadLetters takes the events that can't be applied, each as a [DeadLetter].
	DeadLetters stream.Sink
	// Events, where it is set, is sent what the learner has put into its store's outbox: when Run begins, after events were
	// dealt with, and when it ends. Learning does not wait for it.
	Events stream.Sink
	// Router makes outcomes of attributions and signals. nil means that of the zero [RouterConfig], with the learner's
	// least confidence.
	Router *Router
	// Hook is told of outcomes and of the ends of sessions. nil: nobody is.
	Hook NoveltyHook
	// HookTimeout is how long a call of the hook is waited for. 0 means a second.
	HookTimeout time.Duration
	// Workers is how many events are worked on at a time. 0 means 1, which keeps the source's order.
	Workers int
	// Attempts is how often whatever fails is tried: to apply an event, to receive the next, to write a dead letter, to
	// acknowledge. 0 means 5.
	Attempts int
	// Backoff is how long to wait before the second attempt; before each further one it is twice as long as before the one
	// before, up to a hundred times. 0 means 100 ms.
	Backoff time.Duration
	// Timeout is how long one attempt may take. 0 means 30 seconds.
	Timeout time.Duration
	// Drain is how long Run goes on with the events in hand when it is to end; then they are given back. 0 means 10 seconds.
	Drain time.Duration
	// Logger is told of dead letters, of failures of the hook, and of events that could not be acknowledged. nil is silent.
	Logger *slog.Logger
}

func (c ConsumerConfig) withDefaults() ConsumerConfig {
	c.HookTimeout = cmp.Or(c.HookTimeout, time.Second)
	c.Workers = cmp.Or(c.Workers, 1)
	c.Attempts = cmp.Or(c.Attempts, 5)
	c.Backoff = cmp.Or(c.Backoff, 100*time.Millisecond)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.Drain = cmp.Or(c.Drain, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c ConsumerConfig) validate() error {
	var found faults.List
	found.Check(c.Learner != nil, "Learner", nil, "must be set")
	found.Check(c.Learner == nil || !c.Learner.cfg.Unrecorded, "Learner", nil, "must record its choices")
	found.Check(c.Source != nil, "Source", nil, "must be set")
	found.Check(c.DeadLetters != nil, "DeadLetters", nil, "must be set")
	found.Check(c.HookTimeout > 0, "HookTimeout", c.HookTimeout, "must not be negative")
	found.Check(c.Workers > 0, "Workers", c.Workers, "must not be negative")
	found.Check(c.Attempts > 0, "Attempts", c.Attempts, "must not be negative")
	found.Check(c.Backoff > 0, "Backoff", c.Backoff, "must not be negative")
	found.Check(c.Timeout > 0, "Timeout", c.Timeout, "must not be negative")
	found.Check(c.Drain > 0, "Drain", c.Drain, "must not be negative")
	return found.Err()
}

// A DeadLetter is an event that could not be applied, as the JSON payload of an event of the same id. To publish its Event
// to the source's topic again is to try once more; what of it was applied does not count twice.
type DeadLetter struct {
	Event    stream.Event `json:"event"`
	Reason   string       `json:"reason"`
	Attempts int          `json:"attempts"`
}

// DeadTopic is the topic of dead letters.
const DeadTopic = "groove.attribution.dead"

// Counts says what a [Consumer] has done since it was made.
type Counts struct {
	Received   uint64 // events
	Applied    uint64 // events that are dealt with, those without any outcome among them
	Dead       uint64 // events that were put with the dead letters
	Outcomes   uint64 // outcomes that were counted
	Duplicates uint64 // outcomes that had been counted before
	Unmatched  uint64 // attributions of items for which no choice is known
	Retries    uint64 // attempts after the first
	HookCalls  uint64
	HookFailed uint64 // calls that failed, in whatever way
	NotAcked   uint64 // events that could be neither acknowledged nor given back; they will come again
}

// A Consumer reads attribution events and lets a learner learn from them: each event exactly once in effect, however often
// it is delivered, as its outcomes are counted by its id. An event is acknowledged when its effect is in the store, or its
// dead letter in the sink, and not before. What can't be right at any attempt, such as a payload that is not JSON, is dead
// at once; what fails otherwise is tried again, a bounded number of times. If even the dead letter can't be written, the
// consumer stops.
//
// A Consumer is safe for concurrent use by multiple goroutines.
type Consumer struct {
	cfg   ConsumerConfig
	hook  contained
	dealt chan struct{} // has something when events may be in the outbox

	received, applied, dead, outcomes, duplicates, unmatched, retries, hookCalls, hookFailed, notAcked atomic.Uint64
}

// NewConsumer returns a consumer, or all faults of its configuration, joined.
func NewConsumer(cfg ConsumerConfig) (*Consumer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("strategy: consumer: %w", err)
	}
	if cfg.Router == nil {
		router, err := NewRouter(RouterConfig{MinConfidence: cfg.Learner.cfg.MinConfidence})
		if err != nil {
			return nil, err
		}
		cfg.Router = router
	}
	return &Consumer{cfg: cfg, hook: contained{timeout: cfg.HookTimeout}, dealt: make(chan struct{}, 1)}, nil
}

// Config returns the configuration in force.
func (c *Consumer) Config() ConsumerConfig { return c.cfg }

// Counts returns what was done so far.
func (c *Consumer) Counts() Counts {
	return Counts{
		c.received.Load(), c.applied.Load(), c.dead.Load(), c.outcomes.Load(), c.duplicates.Load(), c.unmatched.Load(),
		c.retries.Load(), c.hookCalls.Load(), c.hookFailed.Load(), c.notAcked.Load(),
	}
}

// Run reads and applies events until the context is done, or the source is closed: then it finishes the events in hand,
// gives back those that it can't, and returns nil. It returns an error when the source fails for good, or a dead letter
// can't be written.
func (c *Consumer) Run(ctx context.Context) error {
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	working, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	failures := make([]error, c.cfg.Workers)
	var workers, relays sync.WaitGroup
	for i := range failures {
		workers.Go(func() {
			failures[i] = errors.New("a worker's goroutine was ended from within") // unless it returns
			defer func() {
				if failures[i] != nil {
					stop()
				}
			}()
			failures[i] = contain(func() error { return c.work(receiving, working) })
		})
	}
	idle, finished := make(chan struct{}), make(chan struct{})
	if c.cfg.Events != nil {
		relays.Go(func() { c.relay(working, idle) })
	}
	go func() {
		defer close(finished)
		workers.Wait()
		stop()
		close(idle)
		relays.Wait()
	}()
	<-receiving.Done()
	select {
	case <-finished:
	case <-time.After(c.cfg.Drain):
		abandon()
		<-finished
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("strategy: consumer: %w", err)
	}
	return nil
}

// work deals with one event after the other. It returns nil at the end of the source or of the context.
func (c *Consumer) work(receiving, working context.Context) error {
	for receiving.Err() == nil {
		var d stream.Delivery
		var e stream.Event
		_, err := c.try(receiving, func() (err error) {
			if d, err = c.cfg.Source.Receive(receiving); err == nil {
				e = d.Event()
			}
			return err
		}, func(err error) bool { return errors.Is(err, stream.ErrClosed) })
		switch {
		case err != nil && (receiving.Err() != nil || errors.Is(err, stream.ErrClosed)):
			return nil //nolint:nilerr // it is to end
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		}
		c.received.Add(1)
		if err := c.deal(receiving, working, d, e); err != nil {
			return err
		}
		select {
		case c.dealt <- struct{}{}:
		default:
		}
	}
	return nil
}

// relay brings out what the learner has told: at first, and whenever events were dealt with, until the workers are idle for
// good. It is apart from them, so that learning does not wait for a sink that is slow.
func (c *Consumer) relay(working context.Context, idle <-chan struct{}) {
	for {
		_, err := c.try(working, c.timed(working, func(ctx context.Context) error {
			_, err := stream.Relay(ctx, c.cfg.Learner.cfg.Store, c.cfg.Events)
			return err
		}), never)
		if err != nil {
			c.warn(working, "strategy: events stay in the outbox", err)
		}
		select {
		case <-c.dealt:
			continue
		case <-idle:
		}
		select {
		case <-c.dealt:
		default:
			return
		}
	}
}

// try does something until it succeeds, fails for good, has failed as often as may be, or the context is done.
func (c *Consumer) try(ctx context.Context, do func() error, final func(error) bool) (attempts int, err error) {
	wait := c.cfg.Backoff
	for attempts = 1; ; attempts++ {
		if err = contain(do); err == nil || final(err) || attempts == c.cfg.Attempts {
			return attempts, err
		}
		select {
		case <-ctx.Done():
			return attempts, err
		case <-time.After(wait):
		}
		wait = min(2*wait, 100*c.cfg.Backoff)
		c.retries.Add(1)
	}
}

// timed gives each attempt its time.
func (c *Consumer) timed(ctx context.Context, do func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		return do(ctx)
	}
}

// deal applies a delivery, or writes it off, and acknowledges it. It returns an error where neither could be done.
func (c *Consumer) deal(receiving, working context.Context, d stream.Delivery, e stream.Event) error {
	var n news
	defer func() { c.tell(working, n) }() // when the event is out of hand, as it may take long
	attempts, err := c.try(receiving, c.timed(working, func(ctx context.Context) error { return c.apply(ctx, e, &n) }), hopeless)
	switch {
	case err == nil:
		c.applied.Add(1)
	case !hopeless(err) && (attempts < c.cfg.Attempts || working.Err() != nil):
		c.giveBack(working, d, e)
		return nil
	default:
		if err := c.bury(working, e, err, attempts); err != nil {
			c.giveBack(working, d, e)
			if working.Err() != nil {
				return nil
			}
			return err
		}
		c.dead.Add(1)
	}
	if _, err := c.try(working, c.timed(working, d.Ack), never); err != nil {
		c.notAcked.Add(1)
		c.warn(working, "strategy: an event could not be acknowledged", err, "id", e.ID)
	}
	return nil
}

// giveBack rejects what could not be dealt with before Run is to end.
func (c *Consumer) giveBack(working context.Context, d stream.Delivery, e stream.Event) {
	ctx := context.WithoutCancel(working)
	if err := contain(c.timed(ctx, func(ctx context.Context) error { return d.Reject(ctx, 0) })); err != nil {
		c.notAcked.Add(1)
		c.warn(ctx, "strategy: an event could not be given back", err, "id", e.ID)
	}
}

// warn logs an error, with the stack of a panic.
func (c *Consumer) warn(ctx context.Context, message string, err error, about ...any) {
	about = append(about, "error", err)
	if p := (*panicError)(nil); errors.As(err, &p) {
		about = append(about, "stack", string(p.stack))
	}
	c.cfg.Logger.WarnContext(ctx, message, about...)
}

func never(error) bool { return false }

// hopeless reports whether another attempt would fail as well.
func hopeless(err error) bool {
	var policy *evidence.PolicyError
	return isInputError(err) || errors.As(err, &policy)
}

// bury publishes the dead letter of an event.
func (c *Consumer) bury(ctx context.Context, e stream.Event, reason error, attempts int) error {
	if _, err := e.At.MarshalJSON(); err != nil {
		e.At = time.Time{} // a year that JSON does not know may be why the event is dead
	}
	payload, err := json.Marshal(DeadLetter{e, reason.Error(), attempts})
	if err != nil {
		return err
	}
	letter := stream.Event{ID: e.ID, Topic: DeadTopic, At: c.cfg.Learner.cfg.Now(), Payload: payload}
	if letter.ID == "" {
		sum := sha256.Sum256(e.Payload)
		letter.ID = "nameless:" + hex.EncodeToString(sum[:])
	}
	publish := func(ctx context.Context) error { return c.cfg.DeadLetters.Publish(ctx, letter) }
	if _, err := c.try(ctx, c.timed(ctx, publish), never); err != nil {
		return fmt.Errorf("the dead letter of an event can't be written: %w", err)
	}
	c.warn(ctx, "strategy: an event can't be applied", reason, "id", e.ID, "attempts", attempts)
	return nil
}

// Handle applies one event and tells the hook, as Run does for each: for hosts that have a loop of their own. An error that
// is a [*heed.InputError] or an [*evidence.PolicyError] says that it can't be applied; after any other it may be handled
// again.
func (c *Consumer) Handle(ctx context.Context, e stream.Event) error {
	c.received.Add(1)
	var n news
	err := c.apply(ctx, e, &n)
	c.tell(ctx, n)
	if err != nil {
		return fmt.Errorf("strategy: handle: %w", err)
	}
	c.applied.Add(1)
	return nil
}

// apply lets the learner learn from an event, in one commit, and says what the hook is to be told.
func (c *Consumer) apply(ctx context.Context, e stream.Event, n *news) error {
	attribution, err := checkAttribution(e)
	if err != nil {
		return err
	}
	outcomes, unmatched, err := c.outcomesOf(ctx, e, &attribution)
	if err != nil {
		return err
	}
	l := c.cfg.Learner
	var end ending
	if attribution.Ended {
		end = ending{session: attribution.Session, id: derivedID("ended", l.cfg.Name, e.ID)}
		defer l.sessions.Drop(attribution.Session)
	}
	dispositions, err := l.credit(ctx, l.cfg.Now(), outcomes, end)
	if err != nil {
		return err
	}
	for i, disposition := range dispositions {
		switch disposition {
		case Applied:
			c.outcomes.Add(1)
			n.outcomes = append(n.outcomes, outcomes[i])
		case Duplicate:
			c.duplicates.Add(1)
		case Dropped:
		}
	}
	n.ended = end.session
	c.unmatched.Add(unmatched)
	return nil
}

func checkAttribution(e stream.Event) (AttributionEvent, error) {
	switch {
	case e.ID == "":
		return AttributionEvent{}, &heed.InputError{Field: "ID", Reason: "must not be empty"}
	case e.At.IsZero():
		return AttributionEvent{}, &heed.InputError{Field: "At", Reason: "must be set"}
	}
	return decodeAttribution(e.Payload)
}

// outcomesOf returns what the learner is to observe, and how many attributions are of no choice that is known. Whatever may
// be wrong with the event shows before any of it is observed.
func (c *Consumer) outcomesOf(ctx context.Context, e stream.Event, a *AttributionEvent) (outcomes []Outcome, unmatched uint64, err error) {
	signals := c.cfg.Router.balances(a.Signals)
	for i, r := range a.Records {
		routed, ok, err := c.cfg.Router.route(&Attribution{r.Activated, r.Value}, signals[r.Session])
		if err != nil {
			return nil, 0, err
		}
		if !ok {
			continue
		}
		row, err := c.cfg.Learner.findAt(ctx, r.Session, r.Item, e.At)
		switch {
		case errors.Is(err, heed.ErrNotFound):
			unmatched++
			continue
		case err != nil:
			return nil, 0, err
		}
		o := Outcome{
			Choice: row.Choice, ID: fmt.Sprintf("%s/%d", e.ID, i), Value: routed.Value, Confidence: routed.Confidence,
			Channel: string(routed.Source), Source: a.Source, At: e.At,
		}
		if err := c.cfg.Learner.validateOutcome(&o, c.cfg.Learner.cfg.Now()); err != nil {
			return nil, 0, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, unmatched, nil
}

// news is what the hook is to be told of an event.
type news struct {
	outcomes []Outcome
	ended    string // the session that did; empty: none
}

func (c *Consumer) tell(ctx context.Context, n news) {
	if c.cfg.Hook == nil {
		return
	}
	for _, o := range n.outcomes {
		c.callHook(ctx, func(ctx context.Context) error { return c.cfg.Hook.OnOutcome(ctx, o) })
	}
	if n.ended != "" {
		c.callHook(ctx, func(ctx context.Context) error { return c.cfg.Hook.OnSessionEnd(ctx, n.ended) })
	}
}

func (c *Consumer) callHook(ctx context.Context, do func(context.Context) error) {
	c.hookCalls.Add(1)
	if err := c.hook.call(ctx, do); err != nil {
		c.hookFailed.Add(1)
		c.warn(ctx, "strategy: the novelty hook failed", err)
	}
}
