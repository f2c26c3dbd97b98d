package learning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Module follows what becomes of answers, lets its strategy interpret it, and counts the signals. Make one with [New]. It starts no
// goroutine and needs no closing. Everything it knows is in its store.
//
// A Module is safe for concurrent use by multiple goroutines.
type Module struct {
	cfg      Config
	kinds    kinds
	policies map[string]evidence.Policy
	phrases  []string // of the outcomes of all expectations
	watch    *watch.Watch
	known    known
	editions sync.Map // by heuristic, as they were last read; a heuristic that is not there is in its first
}

// known are the heuristics of one version.
type known struct {
	mu      sync.Mutex
	read    bool
	version uint64
	all     []Heuristic // never changed in place
}

// open returns a module that has not read the settings in the store.
func open(ctx context.Context, cfg Config) (*Module, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.BySource = cfg.policy().ByOrigin
	m := &Module{cfg: cfg, kinds: kindsOf(cfg.Name, cfg.DryRun), phrases: phrases(cfg.Expectations)}
	m.watch = watch.New(cfg.Observer, component(cfg.Name), cfg.Now)
	return m, cfg.Store.Declare(ctx, m.kinds.all()...)
}

// Config returns the configuration in force, with its defaults.
func (m *Module) Config() Config { return m.cfg.withDefaults() }

// A Limit is something that kept a signal from counting in full. The constants below, and "dry run", mean that it did not
// count at all. Of the others, "weight" means that the feedback weight is below 1; "diminished": the heuristic was judged the same way
// before; "kept": what it replaces can't be taken back any more, and counts too; "cap": part of the evidence is over a cap; "floor" and
// "ceiling": they hold the confidence; "disagreement": the model disagreed more than it agreed, and the excess counts nothing. "restarted": the heuristic said
// something else in the answer, and the signal did not count.
type Limit string

// The limits of signals that did not count.
const (
	LimitLocked    Limit = "locked"    // the heuristic is locked
	LimitNeutral   Limit = "neutral"   // the signal says nothing, or is worth nothing
	LimitOutdated  Limit = "outdated"  // the person has said something later about the answer
	LimitDuplicate Limit = "duplicate" // it was counted before
	// LimitOutweighed: what was said of the answer, or another implicit signal, counts in its place.
	LimitOutweighed Limit = "outweighed"

	limitRestarted  Limit = "restarted"
	limitDryRun     Limit = "dry run"
	limitWeight     Limit = "weight"
	limitDiminished Limit = "diminished"
	limitKept       Limit = "kept"
	limitCap        Limit = "cap"
	limitFloor      Limit = "floor"
	limitCeiling    Limit = "ceiling"

	limitDisagreement Limit = "disagreement"
)

// A Change says what a signal did to a confidence.
type Change struct {
	Signal Signal
	// Old and New are the confidence as it was read, and with this signal. Delta is New - Old. They do not include what others count at
	// the same moment. All are 0 if no confidence was read: for neutral and outdated signals, and for answers that no heuristic gave.
	Old, New, Delta float64
	Weight          float64 // what the signal counted for as evidence
	Limits          []Limit // in the order in which they were applied
}

// An Origin says where a signal comes from.
type Origin struct {
	ID      string // never empty
	Person  string // who caused it; may be empty
	Session string // where; may be empty
	At      time.Time
}

// Apply counts a signal that the host made. Signals of the same origin ID count once. If the signal names an event, and its channel is
// not one of the implicit ones, it counts as said about that answer: silence and other things that were only seen give way to it, as they do
// to a judgement. Further batches are committed with it, as in [Module.Judge].
func (m *Module) Apply(ctx context.Context, s Signal, o Origin, with ...store.Batch) (change Change, err error) {
	defer doing("apply", &err)
	if o.ID == "" {
		return Change{}, errEmpty("ID")
	}
	if err := cmp.Or(checkTexts(text{"ID", o.ID}, text{"Person", o.Person}, text{"Session", o.Session}), s.Validate()); err != nil {
		return Change{}, err
	}
	o.At = m.orNow(o.At)
	if s.HeuristicID == "" {
		return Change{}, errEmpty("HeuristicID")
	}
	if s.neutral() { // there is nothing to ask the store
		_, err := m.commit(ctx, store.Batch{}, with...)
		return Change{Signal: s, Limits: []Limit{LimitNeutral}}, err
	}
	err = m.retry(ctx, with, func() (err error) {
		change, err = m.apply(ctx, s, &o, with)
		return err
	})
	return change, err
}

func (m *Module) apply(ctx context.Context, s Signal, o *Origin, with []store.Batch) (Change, error) {
	l := m.newLedger()
	said := s.EventID != "" && !implicit(s.Channel)
	var others []store.Ref
	if said {
		others = []store.Ref{m.fireRef(s.HeuristicID, s.EventID)}
	}
	if err := l.read(ctx, []string{s.HeuristicID}, others); err != nil {
		return Change{}, err
	}
	l.batch.ID = "signal:" + store.IDOf(m.cfg.Name, o.ID)
	e := &entry{signal: s, cell: cellSeen, id: l.batch.ID + ":seen", person: o.Person, session: o.Session, at: o.At}
	if s.Channel == ChannelTimeout {
		e.cell = cellSilence
	}
	if said {
		w, err := l.readAnswer(ctx, l.rest[0], s.HeuristicID, s.EventID)
		if err != nil {
			return Change{}, err
		}
		if w.Value.before(o.At) {
			return Change{}, errBefore
		}
		w.Value.Facts.add(s.worth(), 1)
		e.answer, e.spoken = &w, true
	}
	if err := l.count(e); err != nil {
		return Change{}, err
	}
	changes, err := l.commit(ctx, with...)
	if err != nil {
		return Change{}, err
	}
	return changes[0], nil
}

// tell tells the observer what a commit has counted.
func (m *Module) tell(ctx context.Context, e *entry) {
	c, now := &e.change, m.cfg.Now()
	name, subject := m.watch.Name(), c.Signal.HeuristicID
	switch {
	case slices.Contains(c.Limits, LimitDuplicate):
		m.watch.Tell(ctx, heed.Duplicate{Component: name, At: now, What: c.Signal.Channel, ID: e.id})
	case e.counted != nil && !m.cfg.DryRun:
		m.watch.Tell(ctx, heed.Counted{
			Component: name, At: now, Subject: subject, Channel: c.Signal.Channel, Reward: e.counted.Reward, Weight: c.Weight,
			Before: c.Old, After: c.New,
		})
		switch {
		case c.New < c.Old && slices.Contains(c.Limits, limitFloor):
			m.watch.Tell(ctx, heed.Harmful{Component: name, At: now, Subject: subject, Reason: "its confidence fell to the floor"})
		case c.Signal.Channel == ChannelOutcome && c.Signal.Type == Negative:
			m.watch.Tell(ctx, heed.Harmful{Component: name, At: now, Subject: subject, Reason: "an expected outcome speaks against it"})
		}
	}
}

// doing adds to an error what was being done. It is deferred.
func doing(what string, err *error) {
	if *err != nil {
		*err = fmt.Errorf("learning: %s: %w", what, *err)
	}
}

// retry is records.Retry with more patience, as many messages at once may be about the same answers. With batches of the caller's,
// do is called once.
func (m *Module) retry(ctx context.Context, with []store.Batch, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(with) > 0 {
		return do()
	}
	return records.Retry(ctx, func() error { return records.Retry(ctx, do) })
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
