package learning

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// A Module watches what becomes of what was shown, lets its strategy interpret it, and counts the signals. Make one with
// [New]. It starts no goroutine and needs no closing; all that it knows is in its store.
//
// A Module is safe for concurrent use by multiple goroutines.
type Module struct {
	cfg      Config
	kinds    kinds
	policies map[string]evidence.Policy
	phrases  []string // of the outcomes of all patterns, each once
}

// open returns a module that knows nothing of the settings in the store.
func open(ctx context.Context, cfg Config) (*Module, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.BySource = cfg.policy().ByOrigin
	m := &Module{cfg: cfg, kinds: kindsOf(cfg.Name, cfg.DryRun), phrases: phrases(cfg.Expectations)}
	return m, cfg.Store.Declare(ctx, m.kinds.all()...)
}

// Config returns the configuration in force, defaults filled in.
func (m *Module) Config() Config { return m.cfg.withDefaults() }

// A Limit is something that kept a signal from counting in full.
type Limit string

// The limits, in the order in which they come to bear.
const (
	LimitLocked     Limit = "locked"     // the heuristic takes no signal
	LimitNeutral    Limit = "neutral"    // the signal says nothing, or is worth nothing
	LimitWeight     Limit = "weight"     // the heuristic's feedback weight is below 1
	LimitDiminished Limit = "diminished" // it was judged the same way before
	LimitOutdated   Limit = "outdated"   // the person has said something else of the answer since
	LimitDuplicate  Limit = "duplicate"  // it was counted before, or the answer has had its implicit signal
	LimitDryRun     Limit = "dry run"    // nothing is counted
	LimitKept       Limit = "kept"       // the silence before it can't be taken back any more, and counts beside it
	LimitCap        Limit = "cap"        // part of the heuristic's evidence is over a cap
	LimitFloor      Limit = "floor"      // the confidence would be below it
	LimitCeiling    Limit = "ceiling"    // the confidence would be above it
)

// A Change says what a signal did to a confidence.
type Change struct {
	Signal Signal
	// Old and New are the confidence as it was read, and with this signal; Delta is New - Old. What others count at the
	// same moment is in neither. All three are 0 where no confidence was read: of signals that are neutral or outdated, and
	// of answers that no heuristic gave.
	Old, New, Delta float64
	Weight          float64 // what the signal counted for as evidence
	Limits          []Limit // what limited it, in order
}

// Apply counts a signal that the host made itself. The id names what it was made of: what comes again under the same id
// counts once. It is none of an answer's one implicit signal, and no explicit feedback. Further batches are committed with it,
// as with [Module.Judge].
func (m *Module) Apply(ctx context.Context, s Signal, o Origin, with ...store.Batch) (Change, error) {
	if err := o.validate(); err != nil {
		return Change{}, fmt.Errorf("learning: apply: %w", err)
	}
	if err := s.Validate(); err != nil {
		return Change{}, fmt.Errorf("learning: apply: signal: %w", err)
	}
	at := m.orNow(o.At)
	if s.neutral() { // there is nothing to ask the store
		_, err := m.commit(ctx, store.Batch{}, with...)
		return Change{Signal: s, Limits: []Limit{LimitNeutral}}, err
	}
	var changes []Change
	err := m.retry(ctx, with, func() error {
		l := m.newLedger()
		err := l.read(ctx, []string{s.HeuristicID}, nil)
		if err == nil {
			_, err = l.account(s.HeuristicID)
		}
		if err != nil {
			return err
		}
		l.batch.ID = "signal:" + records.ID(m.cfg.Name, o.ID)
		err = l.count(&entry{
			signal: s, cell: cellSeen, id: l.batch.ID + ":seen", person: o.Person, session: o.Session, at: at,
		})
		if err == nil {
			changes, err = l.commit(ctx, with...)
		}
		return err
	})
	if err != nil {
		return Change{}, fmt.Errorf("learning: apply: %w", err)
	}
	return changes[0], nil
}

// An Origin says where a signal comes from.
type Origin struct {
	ID      string // never empty
	Person  string // who caused it; may be empty
	Session string // where; may be empty
	At      time.Time
}

func (o *Origin) validate() error {
	if o.ID == "" {
		return errEmpty("ID")
	}
	return checkTexts(text{"ID", o.ID}, text{"Person", o.Person}, text{"Session", o.Session})
}

func (m *Module) orNow(at time.Time) time.Time {
	if at.IsZero() {
		at = m.cfg.Now()
	}
	return instant(at)
}

var errPanic = errors.New("the strategy panicked")

// ask lets the strategy, which may be a host's, interpret something.
func ask[T any](f func() (T, error)) (answer T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return f()
}
