package attribution

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
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/stream"
)

// Config configures a [Consumer]. Learner or Answers, Stream and DeadLetters must be set. Every
// other field has a default.
type Config struct {
	// Learner learns from what is read, if it is used without package loop. It must record its
	// choices, because the consumer finds them there.
	Learner *strategy.Learner
	// Answers records what is read as outcomes of answers, in place of Learner. Set it to the
	// *loop.Agent that gave them: an outcome then ends the silence, counts for the heuristic and
	// for the arm, and is listed with the answer.
	Answers Answers
	// Stream delivers the events, each with a [Report].
	Stream stream.Source
	// DeadLetters takes the events that can't be applied, each as a [DeadLetter].
	DeadLetters stream.Sink
	// Router makes outcomes of reports.
	Router Router
	// Hook is told of outcomes and of the ends of sessions.
	Hook Hook
	// HookTimeout is how long the consumer waits for a call of the hook. 0 means a second.
	HookTimeout time.Duration
	// Workers is how many events are worked on at a time. 0 means 1, which keeps the stream's order.
	Workers int
	// Attempts is how often anything that fails is tried. 0 means 5.
	Attempts int
	// Backoff is the wait before the second attempt. It doubles with each attempt, up to a hundredfold. 0 means 100 ms.
	Backoff time.Duration
	// Timeout is how long one attempt may take. 0 means 30 seconds.
	Timeout time.Duration
	// Drain is how long Run goes on with the events in hand when it ends. After that they are given back. 0 means 10 seconds.
	Drain time.Duration
	// Observer is told of dead letters and hidden failures. The learner has one of its own, for what it counts.
	Observer heed.Observer
}

// Answers records outcomes on the answers that they are about. A *loop.Agent does.
type Answers interface {
	// Attribute records an outcome of the answer of an id. If the id is empty, it is the answer
	// that was given last in a session at the outcome's moment, for o.Choice.Item unless that is
	// empty. Without such an answer the error is [heed.ErrNotFound].
	Attribute(
		ctx context.Context, id, session string, o strategy.Outcome,
	) (strategy.Disposition, error)
	// EndSession forgets the choices of a session.
	EndSession(ctx context.Context, session string) error
}

// A Hook is told what a [Consumer] has learned. It is the place for the detection of novelty. Either function may be nil. They
// are called outside of every lock, after the event is acknowledged. An error, a panic or a hang is counted and stops nothing.
// They must be safe for concurrent use by multiple goroutines.
type Hook struct {
	// Outcome is called at most once for each outcome, after it was counted. It is not called if the process ends in between, or if the
	// store counted the outcome and its answer was lost: the next attempt then finds a duplicate.
	Outcome func(context.Context, strategy.Outcome) error
	// SessionEnd is called after a report said that a session has ended, for each delivery of that report.
	SessionEnd func(ctx context.Context, session string) error
}

// A DeadLetter is an event that could not be applied, as the JSON payload of an event of the same id. To try once more,
// publish its Event to the stream again. Outcomes that were counted do not count twice.
type DeadLetter struct {
	Event    stream.Event `json:"event"`
	Reason   string       `json:"reason"`
	Attempts int          `json:"attempts"`
}

// Counts says what a [Consumer] has done since it was made.
type Counts struct {
	Received   uint64 // events
	Applied    uint64 // events that were dealt with, also those without any outcome
	Dead       uint64 // events that became dead letters
	Outcomes   uint64 // outcomes that were counted
	Duplicates uint64 // outcomes that had been counted before
	Unmatched  uint64 // worths of items for which no choice is known
	Retries    uint64 // attempts after the first
	HookCalls  uint64
	HookFailed uint64 // calls that failed, in whatever way
	NotAcked   uint64 // events that could be neither acknowledged nor given back; they will come again
}

// A Consumer reads reports and lets a learner learn from them. Each event has its effect exactly once, however often it is
// delivered, as its outcomes are counted by its id. An event is acknowledged after its effect is in the store, or its dead
// letter in the sink. A report that no attempt can make right, such as a payload that is not JSON, is dead at once. Any other
// failure is tried again, a bounded number of times. If the dead letter can't be written either, the consumer stops.
//
// A Consumer is safe for concurrent use by multiple goroutines.
type Consumer struct {
	cfg     Config
	learner strategy.Config
	hook    *host.Gate
	watch   *watch.Watch

	mu     sync.Mutex
	counts Counts
}

// New returns a consumer, or all faults of its configuration, joined: each is a [*heed.ConfigError].
func New(cfg Config) (*Consumer, error) {
	cfg.Workers, cfg.Attempts = cmp.Or(cfg.Workers, 1), cmp.Or(cfg.Attempts, 5)
	c := &Consumer{hook: host.NewGate(max(hung, cfg.Workers))}
	var found faults.List
	c.learner = strategy.Config{Name: "answers", Now: time.Now} //nolint:forbidigo // of dead letters
	found.Check(cfg.Learner != nil || cfg.Answers != nil, "Learner", nil, "must be set, or Answers")
	found.Check(cfg.Learner == nil || cfg.Answers == nil, "Answers", nil,
		"must not be set together with Learner")
	if cfg.Learner != nil {
		c.learner = cfg.Learner.Config()
		cfg.Router.MinConfidence = cmp.Or(cfg.Router.MinConfidence, c.learner.MinConfidence)
	}
	found.Check(!c.learner.Unrecorded, "Learner", nil, "must record its choices")
	found.Check(cfg.Stream != nil, "Stream", nil, "must be set")
	found.Check(cfg.DeadLetters != nil, "DeadLetters", nil, "must be set")
	var err error
	cfg.Router, err = cfg.Router.ready()
	found.Add("Router", err)
	found.Check(cfg.Workers > 0, "Workers", cfg.Workers, "must not be negative")
	found.Check(cfg.Attempts > 0, "Attempts", cfg.Attempts, "must not be negative")
	for _, d := range []struct {
		field    string
		value    *time.Duration
		standard time.Duration
	}{
		{"HookTimeout", &cfg.HookTimeout, time.Second},
		{"Backoff", &cfg.Backoff, 100 * time.Millisecond},
		{"Timeout", &cfg.Timeout, 30 * time.Second},
		{"Drain", &cfg.Drain, 10 * time.Second},
	} {
		*d.value = cmp.Or(*d.value, d.standard)
		found.Check(*d.value > 0, d.field, *d.value, "must not be negative")
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("attribution: %w", err)
	}
	c.cfg, c.watch = cfg, watch.New(cfg.Observer, "attribution/"+c.learner.Name, c.learner.Now)
	return c, nil
}

// hung is how many calls of the hook may hang before it is no longer called, if there are fewer workers.
const hung = 8

// Counts returns what was done so far.
func (c *Consumer) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

func (c *Consumer) count(what func(*Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(&c.counts)
}

// Run reads and applies events until the context ends, or the stream is closed. Then it finishes the events in hand, gives
// back those that it can't, and returns nil. It returns an error when the stream fails for good, or a dead letter can't be
// written.
func (c *Consumer) Run(ctx context.Context) error {
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	working, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	failures := make([]error, c.cfg.Workers)
	var workers sync.WaitGroup
	for i := range failures {
		workers.Go(func() {
			failures[i] = errors.New("a worker's goroutine was ended from within") // unless it returns
			defer func() {
				if failures[i] != nil {
					stop()
				}
			}()
			failures[i] = host.Call("a worker", func() error { return c.work(receiving, working) })
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
	case <-time.After(c.cfg.Drain):
		abandon()
		<-finished
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("attribution: %w", err)
	}
	return nil
}

// work deals with one event after the other. It returns nil at the end of the stream or of the context.
func (c *Consumer) work(receiving, working context.Context) error {
	for receiving.Err() == nil {
		var d stream.Delivery
		var e stream.Event
		_, err := c.try(receiving, func() (err error) {
			if d, err = c.cfg.Stream.Receive(receiving); err == nil {
				e = d.Event()
			}
			return err
		}, func(err error) bool { return errors.Is(err, stream.ErrClosed) })
		switch {
		case err != nil && (receiving.Err() != nil || errors.Is(err, stream.ErrClosed)):
			return nil //nolint:nilerr // it ends
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		}
		c.count(func(n *Counts) { n.Received++ })
		if err := c.deal(receiving, working, d, e); err != nil {
			return err
		}
	}
	return nil
}

// try calls a function until it succeeds, fails for good, has failed in all attempts, or the context ends.
func (c *Consumer) try(ctx context.Context, do func() error, final func(error) bool) (attempts int, err error) {
	wait := c.cfg.Backoff
	for attempts = 1; ; attempts++ {
		if err = host.Call("the host's code", do); errors.As(err, new(*heed.PanicError)) {
			c.watch.Failed(ctx, "host", err)
		}
		if err == nil || final != nil && final(err) || attempts == c.cfg.Attempts {
			return attempts, err
		}
		select {
		case <-ctx.Done():
			return attempts, err
		case <-time.After(wait):
		}
		wait = min(2*wait, 100*c.cfg.Backoff)
		c.count(func(n *Counts) { n.Retries++ })
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

// deal applies a delivery, or writes its dead letter, and acknowledges it. It returns an error where neither could be done.
func (c *Consumer) deal(receiving, working context.Context, d stream.Delivery, e stream.Event) error {
	var n news
	defer func() { c.tell(working, n) }() // when the event is out of hand, as it may take long
	attempts, err := c.try(receiving, c.timed(working, func(ctx context.Context) error { return c.apply(ctx, e, &n) }), hopeless)
	switch {
	case err == nil:
		c.count(func(n *Counts) { n.Applied++ })
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
		c.count(func(n *Counts) { n.Dead++ })
	}
	if _, err := c.try(working, c.timed(working, d.Ack), nil); err != nil {
		c.count(func(n *Counts) { n.NotAcked++ })
		c.watch.Failed(working, "acknowledge", err)
	}
	return nil
}

// giveBack rejects an event that could not be dealt with before the end of Run.
func (c *Consumer) giveBack(working context.Context, d stream.Delivery, e stream.Event) {
	ctx := context.WithoutCancel(working)
	reject := c.timed(ctx, func(ctx context.Context) error { return d.Reject(ctx, 0) })
	if err := host.Call("the stream", reject); err != nil {
		c.count(func(n *Counts) { n.NotAcked++ })
		c.watch.Failed(ctx, "give back", err)
	}
}

// hopeless reports whether another attempt would fail as well.
func hopeless(err error) bool {
	return errors.As(err, new(*heed.InputError)) || errors.As(err, new(*heed.SettingsError))
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
	letter := stream.Event{ID: e.ID, Topic: DeadTopic, At: c.learner.Now(), Payload: payload}
	if letter.ID == "" {
		sum := sha256.Sum256(e.Payload)
		letter.ID = "nameless:" + hex.EncodeToString(sum[:])
	}
	publish := func(ctx context.Context) error { return c.cfg.DeadLetters.Publish(ctx, letter) }
	if _, err := c.try(ctx, c.timed(ctx, publish), nil); err != nil {
		return fmt.Errorf("the dead letter of an event can't be written: %w", err)
	}
	if c.watch != nil {
		told := reason.Error()
		if !hopeless(reason) { // a host's error or panic may say what is private
			told = fmt.Sprintf("failed in %d attempts", attempts)
		}
		c.watch.Tell(ctx, heed.DeadLettered{Component: c.watch.Name(), At: letter.At, ID: letter.ID, Reason: told})
	}
	return nil
}

// Handle applies one event and tells the hook, as Run does for each. It is for hosts that have a loop of their own. After a
// [*heed.InputError] or an [*heed.SettingsError] the event can't be applied. After any other error it may be handled again.
func (c *Consumer) Handle(ctx context.Context, e stream.Event) error {
	c.count(func(n *Counts) { n.Received++ })
	var n news
	err := c.apply(ctx, e, &n)
	c.tell(ctx, n)
	if err != nil {
		return fmt.Errorf("attribution: %w", err)
	}
	c.count(func(n *Counts) { n.Applied++ })
	return nil
}

// apply lets the learner learn from an event, in one commit, and returns what the hook must be told.
func (c *Consumer) apply(ctx context.Context, e stream.Event, n *news) error {
	report, err := decode(e)
	if err != nil {
		return err
	}
	if c.cfg.Answers != nil {
		return c.attribute(ctx, e, &report, n)
	}
	outcomes, unmatched, err := c.outcomesOf(ctx, e, &report)
	if err != nil {
		return err
	}
	ended := ""
	if report.Ended {
		ended = report.Session
	}
	dispositions, err := c.cfg.Learner.ObserveAll(ctx, outcomes, e.ID, ended)
	if err != nil {
		return err
	}
	c.count(func(counts *Counts) {
		counts.Unmatched += unmatched
		for i, disposition := range dispositions {
			switch disposition {
			case strategy.Applied:
				counts.Outcomes++
				n.outcomes = append(n.outcomes, outcomes[i])
			case strategy.Duplicate:
				counts.Duplicates++
			case strategy.Dropped:
			}
		}
	})
	n.ended = ended
	return nil
}

// attribute records the outcomes of a report on the answers that they are about. Each is a commit:
// if one fails, the report is read again, and those that were recorded are repetitions.
func (c *Consumer) attribute(ctx context.Context, e stream.Event, r *Report, n *news) error {
	n.outcomes = nil
	signals := c.cfg.Router.balances(r.Signals)
	for i := range r.Items {
		worth := &r.Items[i]
		o, ok, err := c.cfg.Router.route(worth, signals[worth.Session])
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		o.Choice.Item, o.ID, o.Source, o.At = worth.Item, fmt.Sprintf("%s/%d", e.ID, i), r.Source, e.At
		did, err := c.cfg.Answers.Attribute(ctx, worth.Answer, worth.Session, o)
		switch {
		case errors.Is(err, heed.ErrNotFound):
			c.count(func(n *Counts) { n.Unmatched++ })
		case err != nil:
			return err
		case did == strategy.Applied:
			n.outcomes = append(n.outcomes, o)
			c.count(func(n *Counts) { n.Outcomes++ })
		default:
			c.count(func(n *Counts) { n.Duplicates++ })
		}
	}
	if !r.Ended {
		return nil
	}
	n.ended = r.Session
	return c.cfg.Answers.EndSession(ctx, r.Session)
}

// outcomesOf returns the outcomes of a report, and how many of its worths are of no known choice.
func (c *Consumer) outcomesOf(ctx context.Context, e stream.Event, r *Report) (outcomes []strategy.Outcome, unmatched uint64, err error) {
	signals := c.cfg.Router.balances(r.Signals)
	for i := range r.Items {
		worth := &r.Items[i]
		o, ok, err := c.cfg.Router.route(worth, signals[worth.Session])
		if err != nil {
			return nil, 0, err
		}
		if !ok {
			continue
		}
		record, err := c.cfg.Learner.Find(ctx, worth.Session, worth.Item, e.At)
		switch {
		case errors.Is(err, heed.ErrNotFound):
			unmatched++
			continue
		case err != nil:
			return nil, 0, err
		}
		o.Choice, o.ID, o.Source, o.At = record.Choice, fmt.Sprintf("%s/%d", e.ID, i), r.Source, e.At
		outcomes = append(outcomes, o)
	}
	return outcomes, unmatched, nil
}

// news is what the hook is told of an event.
type news struct {
	outcomes []strategy.Outcome
	ended    string // the session that ended; empty: none
}

func (c *Consumer) tell(ctx context.Context, n news) {
	if c.cfg.Hook.Outcome != nil {
		for _, o := range n.outcomes {
			c.callHook(ctx, func(ctx context.Context) error { return c.cfg.Hook.Outcome(ctx, o) })
		}
	}
	if n.ended != "" && c.cfg.Hook.SessionEnd != nil {
		c.callHook(ctx, func(ctx context.Context) error { return c.cfg.Hook.SessionEnd(ctx, n.ended) })
	}
}

func (c *Consumer) callHook(ctx context.Context, do func(context.Context) error) {
	c.count(func(n *Counts) { n.HookCalls++ })
	ctx, cancel := context.WithTimeout(ctx, c.cfg.HookTimeout)
	defer cancel()
	_, err := host.Pass(ctx, c.hook, "the hook", func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	if err != nil {
		c.count(func(n *Counts) { n.HookFailed++ })
		c.watch.Failed(ctx, "hook", err)
	}
}
