package attribution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
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
	// DeadLetters takes the events that can't be applied, each as a [stream.DeadLetter].
	DeadLetters stream.Sink
	// Router makes outcomes of reports. The zero value has the design's weights.
	Router Router
	// Hook is called for outcomes and for the ends of sessions. nil: no hook. Set it to notice new
	// situations.
	Hook Hook
	// HookTimeout is how long the consumer waits for a call of the hook. 0 means a second. Raise it
	// if the hook calls a service.
	HookTimeout time.Duration
	// Workers is how many events are worked on at a time. 0 means 1, which keeps the stream's order.
	// Raise it if events come faster than one is done.
	Workers int
	// Attempts is how often anything that fails is tried, before an event is dead. 0 means 5. Raise
	// it if the store is away more often.
	Attempts int
	// Observer is called for dead letters and hidden failures. The learner has an observer too, for
	// what it counts. nil switches it off.
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

// A Hook is called with what a [Consumer] learned, for example to detect novelty. Either function
// may be nil. They are called outside of every lock, after the event is acknowledged. An error, a
// panic or a hang is counted and does not stop the consumer. They must be safe for concurrent use
// by multiple goroutines.
type Hook struct {
	// Outcome is called at most once for each outcome, after it was counted. It is not called if
	// the process ends in between, or if the store counted the outcome and its answer was lost: the
	// next attempt then finds a duplicate.
	Outcome func(context.Context, strategy.Outcome) error
	// SessionEnd is called after a report of the end of a session, for each delivery of that report.
	SessionEnd func(ctx context.Context, session string) error
}

// Counts counts what a [Consumer] did since it was made. Events that were handled by
// [Consumer.Handle] are Received, and Applied if they were.
type Counts struct {
	stream.RunnerCounts

	Outcomes   uint64 // outcomes that were counted
	Duplicates uint64 // outcomes that had been counted before
	Unmatched  uint64 // worths of items for which no choice is known
	HookCalls  uint64
	HookFailed uint64 // calls that failed, in whatever way
}

// A Consumer reads reports and lets a learner learn from them. Each event has its effect exactly
// once, however often it is delivered, because its outcomes are counted by its id. A report that
// can never be applied, such as a payload that is not JSON, is dead at once. The rules of
// [stream.Runner] hold for the rest.
//
// A Consumer is safe for concurrent use by multiple goroutines.
type Consumer struct {
	cfg     Config
	learner strategy.Config
	runner  stream.Runner
	hook    *host.Gate
	watch   *watch.Watch

	mu     sync.Mutex
	counts Counts
}

// attempt bounds an attempt to apply an event.
const attempt = 30 * time.Second

// New returns a consumer, or all faults of its configuration, joined: each is a
// [*heed.ConfigError].
func New(cfg Config) (*Consumer, error) {
	c := &Consumer{hook: host.NewGate(max(hung, cfg.Workers))}
	var found valid.Faults
	c.learner = strategy.Config{Name: "answers", Now: time.Now} //nolint:forbidigo // of dead letters
	found.Check(cfg.Learner != nil || cfg.Answers != nil, "Learner", nil, "must be set, or Answers")
	found.Check(cfg.Learner == nil || cfg.Answers == nil, "Answers", nil,
		"must not be set together with Learner")
	if cfg.Learner != nil {
		c.learner = cfg.Learner.Config()
		cfg.Router.MinConfidence = cmp.Or(cfg.Router.MinConfidence, c.learner.MinConfidence)
	}
	found.Check(!c.learner.Unrecorded, "Learner", nil, "must record its choices")
	var err error
	cfg.Router, err = cfg.Router.ready()
	found.Add("Router", err)
	cfg.HookTimeout = cmp.Or(cfg.HookTimeout, time.Second)
	found.Check(cfg.HookTimeout > 0, "HookTimeout", cfg.HookTimeout, "must not be negative")
	c.cfg, c.watch = cfg, watch.New(cfg.Observer, "attribution/"+c.learner.Name, c.learner.Now)
	c.runner = stream.Runner{
		Stream: cfg.Stream, DeadLetters: cfg.DeadLetters, Topic: DeadTopic, Apply: c.apply,
		Workers: cfg.Workers, Attempts: cfg.Attempts, Timeout: attempt, Observer: cfg.Observer,
		Name: "attribution/" + c.learner.Name, Now: c.learner.Now,
	}
	found.Join(c.runner.Validate())
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("attribution: %w", err)
	}
	return c, nil
}

// hung is how many calls of the hook may hang before it is no longer called, if there are fewer
// workers.
const hung = 8

// Counts returns what was done so far.
func (c *Consumer) Counts() Counts {
	run := c.runner.Counts()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.counts
	run.Received, run.Applied = run.Received+all.Received, run.Applied+all.Applied
	all.RunnerCounts = run
	return all
}

func (c *Consumer) count(what func(*Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(&c.counts)
}

// Run reads and applies events like a [stream.Runner].
func (c *Consumer) Run(ctx context.Context) error { return wrap(c.runner.Run(ctx)) }

// Handle applies one event and calls the hook, like Run for each event. It is for hosts that have a
// loop of their own. After a [*heed.InputError] or an [*heed.SettingsError] the event can't be
// applied. After any other error it may be handled again.
func (c *Consumer) Handle(ctx context.Context, e stream.Event) error {
	c.count(func(n *Counts) { n.Received++ })
	after, err := c.apply(ctx, e)
	after(ctx)
	if err == nil {
		c.count(func(n *Counts) { n.Applied++ })
	}
	return wrap(err)
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("attribution: %w", err)
}

// apply applies an event. It returns the function that calls the hook.
func (c *Consumer) apply(ctx context.Context, e stream.Event) (func(context.Context), error) {
	n := &news{}
	report, err := decode(e)
	var all []routed
	if err == nil {
		all, err = c.outcomes(e, &report)
	}
	switch {
	case err != nil:
	case c.cfg.Answers != nil:
		err = c.attribute(ctx, &report, all, n)
	default:
		err = c.learn(ctx, e, &report, all, n)
	}
	return func(ctx context.Context) { c.notify(ctx, n) }, err
}

// A routed is the outcome of one worth of a report.
type routed struct {
	*Worth
	outcome strategy.Outcome
}

// outcomes returns the outcomes of a report.
func (c *Consumer) outcomes(e stream.Event, r *Report) (all []routed, err error) {
	signals := balances(r.Signals)
	for i := range r.Items {
		worth := &r.Items[i]
		o, ok, err := c.cfg.Router.route(worth, signals[worth.Session])
		if err != nil {
			return nil, err
		}
		if ok {
			o.ID, o.Source, o.At = fmt.Sprintf("%s/%d", e.ID, i), r.Source, e.At
			all = append(all, routed{worth, o})
		}
	}
	return all, nil
}

// learn lets the learner learn from a report, in one commit.
func (c *Consumer) learn(ctx context.Context, e stream.Event, r *Report, all []routed,
	n *news) error {
	var outcomes []strategy.Outcome
	var unmatched uint64
	for _, one := range all {
		record, err := c.cfg.Learner.Find(ctx, one.Session, one.Item, e.At)
		if errors.Is(err, heed.ErrNotFound) {
			unmatched++
			continue
		}
		if err != nil {
			return err
		}
		one.outcome.Choice = record.Choice
		outcomes = append(outcomes, one.outcome)
	}
	ended := ""
	if r.Ended {
		ended = r.Session
	}
	did, err := c.cfg.Learner.ObserveAll(ctx, outcomes, e.ID, ended)
	if err != nil {
		return err
	}
	n.ended = ended
	c.count(func(counts *Counts) { counts.Unmatched += unmatched })
	for i := range did {
		c.did(did[i], outcomes[i], n)
	}
	return nil
}

// attribute records the outcomes of a report on the answers that they are about. Each is a commit:
// if one fails, the report is read again, and those that were recorded are repetitions.
func (c *Consumer) attribute(ctx context.Context, r *Report, all []routed, n *news) error {
	var unmatched uint64
	for _, one := range all {
		one.outcome.Choice.Item = one.Item
		did, err := c.cfg.Answers.Attribute(ctx, one.Answer, one.Session, one.outcome)
		switch {
		case errors.Is(err, heed.ErrNotFound):
			unmatched++
		case err != nil:
			return err
		default:
			c.did(did, one.outcome, n)
		}
	}
	if r.Ended {
		if err := c.cfg.Answers.EndSession(ctx, r.Session); err != nil {
			return err
		}
		n.ended = r.Session
	}
	c.count(func(counts *Counts) { counts.Unmatched += unmatched })
	return nil
}

// did counts what became of an outcome.
func (c *Consumer) did(did strategy.Disposition, o strategy.Outcome, n *news) {
	switch did {
	case strategy.Applied:
		n.outcomes = append(n.outcomes, o)
		c.count(func(n *Counts) { n.Outcomes++ })
	case strategy.Duplicate:
		c.count(func(n *Counts) { n.Duplicates++ })
	case strategy.Dropped:
	}
}

// news is what the hook receives for an event.
type news struct {
	outcomes []strategy.Outcome
	ended    string // the session that ended; or empty
}

func (c *Consumer) notify(ctx context.Context, n *news) {
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
	_, err := host.Pass(ctx, c.hook, "the hook", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, do(ctx)
	})
	if err != nil {
		c.count(func(n *Counts) { n.HookFailed++ })
		c.watch.Failed(ctx, "hook", err)
	}
}
