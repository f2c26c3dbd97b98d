package strategy

import (
	"context"
	"iter"
	"slices"
	"time"
)

// Choices keeps the choices of learners as records, so that an outcome finds its choice after the session has ended, after
// the cache has let go of it, and after a restart; and so that what was chosen can be listed with what came of it.
//
// An implementation must be safe for concurrent use by multiple goroutines. Every method honours its context: one that is
// done on entry gives its error and changes nothing. What goes in or out is copied. How long records are kept is the
// implementation's; one that is gone is [heed.ErrNotFound]. Package strategytest has the suite that says whether an
// implementation keeps this contract.
type Choices interface {
	// Add keeps a choice, which is then [Pending]. One whose id is known stays as it is.
	Add(ctx context.Context, c Choice) error

	// Get returns the record of a choice, or [heed.ErrNotFound].
	Get(ctx context.Context, id ChoiceID) (Record, error)

	// List returns the records that a filter lets pass, the newest first by the choice's At, and of one moment the greater
	// id first. Changes that happen during the loop may be seen or not. The loop may call the store and may end early;
	// after an error it ends.
	List(ctx context.Context, f ChoiceFilter) iter.Seq2[Record, error]

	// Settle writes down what came of a choice, which is then [Observed], and returns its stage before. Of several results
	// that is kept which came about last by At, and of one moment that with the greater id, in whatever order they are
	// written. It returns [heed.ErrNotFound] where there is no such choice.
	Settle(ctx context.Context, id ChoiceID, r Result) (before Stage, err error)

	// Expire makes a pending choice [Expired] and reports whether it was pending. It returns [heed.ErrNotFound] where there
	// is no such choice.
	Expire(ctx context.Context, id ChoiceID) (bool, error)

	// EndSession marks the choices that a learner made in a session as ended. It is no error where there are none.
	EndSession(ctx context.Context, learner, session string) error
}

// A Record is a choice with what is known of it since.
type Record struct {
	Choice Choice `json:"choice"`
	Stage  Stage  `json:"stage"`
	// Result is what came of it; nil unless it is Observed.
	Result *Result `json:"result,omitempty"`
	// Ended tells that its session has ended: whoever asks again in it gets another choice.
	Ended bool `json:"ended,omitempty"`
}

// Stage says how far a choice has come.
type Stage string

// How far a choice can have come.
const (
	Pending  Stage = "pending"  // its outcome may still come
	Observed Stage = "observed" // an outcome came
	Expired  Stage = "expired"  // none came in time; one that comes late makes it Observed
)

// Valid reports whether the stage is one of those.
func (s Stage) Valid() bool { return slices.Contains([]Stage{Pending, Observed, Expired}, s) }

// A Result is what came of a choice: an [Outcome] without it.
type Result struct {
	ID         string    `json:"id,omitempty"`
	Value      float64   `json:"value"`
	Confidence float64   `json:"confidence"`
	Channel    string    `json:"channel,omitempty"`
	Source     string    `json:"source,omitempty"`
	At         time.Time `json:"at"`
}

// Before reports whether a result gives way to another, by the rule of [Choices].Settle.
func (r Result) Before(o Result) bool {
	if n := r.At.Compare(o.At); n != 0 {
		return n < 0
	}
	return r.ID < o.ID
}

// A ChoiceFilter lets those choices pass that have all the properties it names. The zero filter lets all pass.
type ChoiceFilter struct {
	Learner  string
	Session  string
	Item     string
	Category string
	Context  string
	Stage    Stage
	Since    time.Time // made then or later
	Until    time.Time // made before
	Limit    int       // at most so many, the newest. 0: all
}

// Passes reports whether the filter lets a record pass. The limit is of no account.
func (f ChoiceFilter) Passes(r Record) bool {
	c := &r.Choice
	return (f.Learner == "" || f.Learner == c.Learner()) &&
		(f.Session == "" || f.Session == c.Session) &&
		(f.Item == "" || f.Item == c.Item) &&
		(f.Category == "" || f.Category == c.Category) &&
		(f.Context == "" || f.Context == c.Context) &&
		(f.Stage == "" || f.Stage == r.Stage) &&
		(f.Since.IsZero() || !c.At.Before(f.Since)) &&
		(f.Until.IsZero() || c.At.Before(f.Until))
}

// Compare orders records as lists have them: the newest first, and of one moment the greater id.
func (r Record) Compare(o Record) int {
	if n := o.Choice.At.Compare(r.Choice.At); n != 0 {
		return n
	}
	return slices.Compare(o.Choice.ID[:], r.Choice.ID[:])
}
