package evidence

import (
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
)

// A Policy says how a cell is kept. It is stored with the cell when its first observation comes, and from then on a batch
// with another policy is refused, until the cell is reset or rebuilt.
type Policy struct {
	// HalfLife is the time after which evidence counts half: whole microseconds, from a minute to a hundred years. 0:
	// evidence never fades.
	HalfLife time.Duration
	// ByOrigin keeps a tally for each channel and source, which [Caps] need and which lets a source be expunged at any
	// time. Without it a cell has one tally.
	ByOrigin bool
}

// The bounds of a half-life other than 0.
const (
	MinHalfLife = time.Minute
	MaxHalfLife = 100 * 365 * 24 * time.Hour
)

// Validate reports the fault of the policy, if it has one, as a [*heed.ConfigError].
func (p Policy) Validate() error {
	if h := p.HalfLife; h != 0 && (h < MinHalfLife || h > MaxHalfLife || h%time.Microsecond != 0) {
		return &heed.ConfigError{Field: "HalfLife", Value: h, Reason: "must be 0 or whole microseconds between a minute and a hundred years"}
	}
	return nil
}

// A Selection names cells: all of a kind and a scope, or those of one item, or one of its alternatives.
type Selection struct {
	Kind, Scope string
	Item        string // empty: of every item
	Name        string // empty: every alternative
}

// Covers reports whether the selection names the cell.
func (s Selection) Covers(c Cell) bool {
	return s.Kind == c.Kind && s.Scope == c.Scope &&
		(s.Item == "" || s.Item == c.Item) && (s.Name == "" || s.Name == c.Name)
}

// A Restart leaves out of a cell what happened before At: what came already, and what comes late. A cell's restart only
// moves forward. Unless At is after all that the cell has seen, the cell is made anew from its history.
type Restart struct {
	Cell Cell
	At   time.Time
}

// ErrForgotten says that what would have to be taken back or counted anew is known but no longer kept.
var ErrForgotten = errors.New("no longer kept")

// ErrFull says that a bounded store can take no more.
var ErrFull = errors.New("full")

// A PolicyError says that a cell is kept under another policy than the batch gives it. It is a [heed.ErrConflict]. The
// cell is not printed, as its texts may be private.
type PolicyError struct {
	Cell           Cell
	Stored, Wanted Policy
}

func (e *PolicyError) Error() string {
	return fmt.Sprintf("a cell of kind %q is kept with %+v, and not with %+v: reset or rebuild it first", e.Cell.Kind, e.Stored, e.Wanted)
}

func (e *PolicyError) Unwrap() error { return heed.ErrConflict }
