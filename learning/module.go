package learning

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
)

// A Module watches what becomes of what was shown, lets its strategy interpret it, and counts the signals. Make one with
// [New]. It starts no goroutine and needs no closing; what it holds in memory are the fires that are still waited for.
//
// A Module is safe for concurrent use by multiple goroutines.
type Module struct {
	cfg      Config
	kinds    kinds
	policies map[string]evidence.Policy
	fires    tracker
}

// kinds are the kinds of a module's cells.
type kinds struct{ heuristic, fire, click, calibration string }

func kindsOf(module string) kinds {
	return kinds{module + ".heuristic", module + ".fire", module + ".click", module + ".calibration"}
}

// Kinds returns the kinds of the cells in which a module of this name keeps what it learns, each its name and an ending: for
// a tool that looks into a store of a host that it doesn't know.
func Kinds(module string) []string {
	k := kindsOf(module)
	return []string{k.heuristic, k.fire, k.click, k.calibration}
}

// New returns a module, or all faults of its configuration, joined: each is a [*heed.ConfigError].
func New(cfg Config) (*Module, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("learning: %w", err)
	}
	m := &Module{cfg: cfg, fires: newTracker(cfg.MaxFires)}
	m.kinds = kindsOf(cfg.Name)
	apart := evidence.Policy{ByOrigin: cfg.policy().ByOrigin} // counts do not fade
	m.policies = map[string]evidence.Policy{
		m.kinds.heuristic: cfg.policy(), m.kinds.fire: apart, m.kinds.click: apart, m.kinds.calibration: apart,
	}
	return m, nil
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
// counts once. It is none of an answer's one implicit signal, and no explicit feedback.
func (m *Module) Apply(ctx context.Context, s Signal, o Origin) (Change, error) {
	if err := o.validate(); err != nil {
		return Change{}, fmt.Errorf("learning: apply: %w", err)
	}
	id := "signal:" + hash(m.cfg.Name, o.ID)
	change, _, err := m.count(ctx, &entry{
		signal: s, cell: cellSeen, batch: id, id: id,
		person: o.Person, session: o.Session, at: m.orNow(o.At),
	})
	if err != nil {
		return Change{}, fmt.Errorf("learning: apply: %w", err)
	}
	return change, nil
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
