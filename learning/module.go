package learning

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Module follows what becomes of answers, lets its strategy interpret it, and counts the signals.
// Make one with [New]. It starts no goroutine and needs no closing. All of its state is in its
// store.
//
// Methods whose names end in "In" are parts of a step: see [store.Do]. The other methods are a step
// each.
//
// A Module is safe for concurrent use by multiple goroutines.
type Module struct {
	cfg       Config
	agreement agreement // changed by tests only
	kinds     kinds
	phrases   []string // of the outcomes of all expectations
	watch     *watch.Watch
	known     known
	// heuristics are those that were read last, by id. One that is missing counts as a heuristic
	// without a domain, in its first version.
	heuristics sync.Map
}

// known are the heuristics of one version.
type known struct {
	mu      sync.Mutex
	read    bool
	version uint64
	all     []Heuristic // never changed in place
}

// open returns a module that has not read the settings in the store. It declares the kinds.
func open(ctx context.Context, cfg Config) (*Module, error) {
	m, err := build(cfg)
	if err == nil {
		err = m.cfg.Store.Declare(ctx, m.kinds.all()...)
	}
	return m, err
}

// build returns a module without any use of the store.
func build(cfg Config) (*Module, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	kinds := kindsOf(cfg.Name, cfg.Answers)
	m := &Module{
		cfg: cfg, agreement: defaultAgreement, kinds: kinds, phrases: phrases(cfg.Expectations),
	}
	m.watch = watch.New(cfg.Observer, component(cfg.Name), cfg.Now)
	return m, nil
}

// Config returns the configuration in force, with its defaults.
func (m *Module) Config() Config { return m.cfg.withDefaults() }

// Steps returns what a host's own step needs around [Module.FireIn], [Module.JudgeIn] and
// [Module.UndoIn]. Answers is the view of the answers' records, Wants(heuristics...) names what is
// read about heuristics, so that it is read together with the host's records, and FailuresIn(tx)
// returns the errors of the strategy. The rest is for package loop: parts of Hear and Sweep.
func (m *Module) Steps() steps { return steps{m} }

// steps are the methods of a module for package loop.
type steps struct{ *Module }

// Answers returns the view of the kind of records that hold the module's answers.
func (m steps) Answers() store.View[answer.Answer] { return m.kinds.answers }

// The limits of signals: see [Change].Limits.
const (
	limitLocked    = "locked"
	limitNeutral   = "neutral"
	limitOutdated  = "outdated"
	limitFull      = "full"
	limitDuplicate = "duplicate"
	// limitOutweighed: a judgement of the answer, or another implicit signal, counts in its place.
	limitOutweighed = "outweighed"

	limitRestarted  = "restarted"
	limitWeight     = "weight"
	limitDiminished = "diminished"
	limitKept       = "kept"
	limitPeople     = "people"
	limitCap        = "cap"
	limitFloor      = "floor"
	limitCeiling    = "ceiling"

	limitDisagreement = "disagreement"
)

// A Change is the effect of a signal on a confidence. Steps return it before the commit, which
// completes its Limits, Weight and Delta.
type Change struct {
	Signal Signal
	// Old and New are the confidence as it was read, and with this signal. Delta is New - Old. They
	// do not include what others count at the same moment. All are 0 if no confidence was read: for
	// neutral and outdated signals, and for answers that no heuristic gave.
	Old, New, Delta float64
	// Weight is what the signal counted for as evidence. 1 is one full observation.
	Weight float64
	// Limits are what kept the signal from counting in full, in the order in which they were applied.
	// With some, the signal did not count at all:
	//   - "locked" means that the heuristic is locked;
	//   - "neutral" means that the signal is worth 0;
	//   - "outdated" means that the person stated something later about the answer;
	//   - "full" means that the answer has no room for another statement;
	//   - "duplicate" means that it was counted before;
	//   - "outweighed" means that a judgement of the answer, or another implicit signal, counts in
	//     its place;
	//   - "restarted" means that the heuristic had another wording when it answered.
	//
	// With the others, it counted in part:
	//   - "weight" means that the feedback weight is below 1;
	//   - "diminished" means that the heuristic was judged the same way before;
	//   - "kept" means that what the signal replaces can't be taken back any more, and counts too;
	//   - "people" means that some people have stated more than one of so many may: [Config].Trust;
	//   - "cap" means that agreement or silence weighs all that it may;
	//   - "floor" and "ceiling" mean that they hold the confidence;
	//   - "disagreement" means that the model disagreed more than it agreed; the excess is left out.
	Limits []string
}

// notify reports to the observer what a commit counted.
func (m *Module) notify(ctx context.Context, e *entry) {
	c, now := &e.change, m.cfg.Now()
	name, subject := m.watch.Name(), c.Signal.HeuristicID
	switch {
	case slices.Contains(c.Limits, limitDuplicate):
		m.watch.Tell(ctx, heed.Duplicate{Component: name, At: now, What: c.Signal.Channel, ID: e.id})
	case e.counted != nil:
		m.watch.Tell(ctx, heed.Counted{
			Component: name, At: now, Subject: subject, Channel: c.Signal.Channel,
			Reward: e.counted.Reward, Weight: c.Weight,
			Before: c.Old, After: c.New,
		})
		switch {
		case c.New < c.Old && slices.Contains(c.Limits, limitFloor):
			m.watch.Tell(ctx, heed.Changed{What: "harmful", Component: name, At: now, Subject: subject,
				Reason: "its confidence fell to the floor"})
		case c.Signal.Channel == ChannelOutcome && c.Signal.Worth < 0:
			m.watch.Tell(ctx, heed.Changed{What: "harmful", Component: name, At: now, Subject: subject,
				Reason: "an expected outcome speaks against it"})
		}
	}
}

// doing adds to an error what was being done. It is deferred.
func doing(what string, err *error) {
	if *err != nil {
		*err = fmt.Errorf("learning: %s: %w", what, *err)
	}
}

// orNow returns a time as stores keep it, and the clock's for the zero time.
func (m *Module) orNow(at time.Time) time.Time {
	if at.IsZero() {
		at = m.cfg.Now()
	}
	return evidence.InstantOf(at).Time()
}

// ask calls the strategy, which may be the host's.
func ask[T any](f func() (T, error)) (answer T, err error) {
	err = host.Call("the strategy", func() error {
		answer, err = f()
		return err
	})
	return answer, err
}
