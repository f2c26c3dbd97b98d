package evidence

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/heedhq/heed"
)

// Store keeps evidence. It takes what is to be added and never a state that was read and changed, so that callers in any
// number, in one process or in many, never overwrite each other.
//
// An implementation must be safe for concurrent use by multiple goroutines. Every method honours its context: one that is
// done on entry gives its error and changes nothing. Slices, maps and bytes that go in or come out are copied.
// Package evidencetest has the suite that says whether an implementation keeps this contract.
type Store interface {
	// Commit applies a batch: all of it, or none of it and an error. What it applied, every Read that begins after its
	// return sees. A batch that is not valid by [Batch.Validate] and the store's clock is refused with that error.
	//
	// It returns a [*PolicyError] where a cell was opened with another policy, [heed.ErrNotFound] where an id to retract
	// was never seen, [ErrForgotten] where what it needs of the history is no longer kept, and [ErrFull] where the store
	// can take no more outgoing events.
	Commit(ctx context.Context, b Batch) (Receipt, error)

	// Read appends the parts of these cells to dst and returns it: the cells in the order asked, the parts of each by
	// channel and source. A cell with no evidence, or none any more, has no part.
	Read(ctx context.Context, dst []Part, cells ...Cell) ([]Part, error)

	// List returns all parts of a kind and a scope, by cell, channel and source. Commits that happen during the loop may
	// be seen or not. The loop may call the store and may end early; after an error it ends.
	List(ctx context.Context, kind, scope string) iter.Seq2[Part, error]

	// Scopes returns the scopes of a kind that have evidence, in order. The rules of List hold.
	Scopes(ctx context.Context, kind string) iter.Seq2[string, error]

	// History returns the observations of a cell that are still kept, the newest first by At, and of one moment the last
	// recorded first. Those retracted are not among them. The rules of List hold.
	History(ctx context.Context, c Cell) iter.Seq2[Observation, error]

	// Audit returns the audit entries that are still kept, the last recorded first. The rules of List hold.
	Audit(ctx context.Context) iter.Seq2[AuditEntry, error]

	// Outbox returns the outgoing events that are not yet marked as sent, the first recorded first. The rules of List
	// hold.
	Outbox(ctx context.Context) iter.Seq2[Event, error]
}

// A Batch is what stands or falls together. Its parts are applied in the order of the fields. A Batch must not be changed
// while a store has it; stores take it as immutable.
type Batch struct {
	// ID, where it is not empty, makes the batch as a whole count once: a batch whose ID the store knows already, as a
	// batch's or an observation's, is a duplicate and changes nothing.
	ID string

	// Policies says how the cells of a kind are kept. A kind that is not named has the zero policy.
	Policies map[string]Policy

	Reset   []Selection // cells to forget entirely, with their history; the ids of what they had seen stay known
	Rebuild []Cell      // cells to make anew from their whole history, under this batch's policy
	Restart []Restart   // cells whose evidence before a moment no longer counts

	// Retract takes back all observations of these ids: the state is then what it would be had they never been made. The
	// ids stay known, so that what comes again under them still counts nothing; to retract one again changes nothing.
	Retract []string
	// Expunge takes back, and erases from the history, all observations of these sources. Cells whose policy keeps origins
	// together are put right from their history; where that no longer holds all that had a source, it is ErrForgotten.
	Expunge []string

	// Observations to add. One whose id was known before this batch is left out, and named in the receipt.
	Observations []Observation

	Audit  []AuditEntry // to record; an entry whose id is known is left out
	Events []Event      // to put into the outbox; an event whose id is known is left out
	Sent   []string     // ids of events to take out of the outbox; unknown ones are of no account
}

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

// An AuditEntry says who did what to what, when and why.
type AuditEntry struct {
	ID      string            `json:"id"` // counts once
	At      time.Time         `json:"at"`
	Actor   string            `json:"actor,omitempty"`
	Action  string            `json:"action"` // never empty
	Subject string            `json:"subject,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Details map[string]string `json:"details,omitempty"`
}

// An Event is a message to the outside that is to be sent if and only if its batch was committed.
type Event struct {
	ID      string    `json:"id"`    // counts once
	Topic   string    `json:"topic"` // never empty
	At      time.Time `json:"at"`
	Payload []byte    `json:"payload,omitempty"`
}

// A Receipt says what a commit did.
type Receipt struct {
	Duplicate  bool     // the batch's ID was known: nothing was applied
	Duplicates []string // the ids of observations that were known, each once
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

// Validate reports the first fault of the batch, by the clock's now: a [*heed.InputError], or a [*heed.ConfigError] of a
// policy. Stores call it before they do anything else.
func (b *Batch) Validate(now time.Time) error {
	if err := checkTexts(text{"ID", b.ID}); err != nil {
		return err
	}
	for _, policy := range b.Policies {
		if err := policy.Validate(); err != nil {
			return err
		}
	}
	for i, s := range b.Reset {
		if s.Kind == "" {
			return &heed.InputError{Field: fmt.Sprintf("Reset[%d].Kind", i), Reason: "must not be empty"}
		}
	}
	for i := range b.Rebuild {
		if err := b.Rebuild[i].Validate(); err != nil {
			return inside("Rebuild", i, err)
		}
	}
	for i := range b.Restart {
		if err := b.Restart[i].Cell.Validate(); err != nil {
			return inside("Restart", i, err)
		}
		if err := CheckTime("At", b.Restart[i].At, now); err != nil {
			return inside("Restart", i, err)
		}
	}
	for i := range b.Observations {
		if err := b.Observations[i].Validate(now); err != nil {
			return inside("Observations", i, err)
		}
	}
	for i, id := range b.Retract {
		if err := CheckText(fmt.Sprintf("Retract[%d]", i), id); err != nil {
			return err
		}
		if id == "" || b.observes(func(o *Observation) bool { return o.ID == id }) {
			return &heed.InputError{Field: fmt.Sprintf("Retract[%d]", i), Reason: "must not be empty, nor the id of an observation of the batch"}
		}
	}
	for i, source := range b.Expunge {
		if err := CheckText(fmt.Sprintf("Expunge[%d]", i), source); err != nil {
			return err
		}
		if source == "" || b.observes(func(o *Observation) bool { return o.Source == source }) {
			return &heed.InputError{Field: fmt.Sprintf("Expunge[%d]", i), Reason: "must not be empty, nor the source of an observation of the batch"}
		}
	}
	for i, id := range b.Sent {
		if err := CheckText(fmt.Sprintf("Sent[%d]", i), id); err != nil {
			return err
		}
	}
	return b.validateRecords(now)
}

// observes reports whether an observation of the batch has the property; what a batch adds it can't also take back.
func (b *Batch) observes(property func(*Observation) bool) bool {
	for i := range b.Observations {
		if property(&b.Observations[i]) {
			return true
		}
	}
	return false
}

func (b *Batch) validateRecords(now time.Time) error {
	for i := range b.Audit {
		e := &b.Audit[i]
		if err := checkRecord(e.ID, "Action", e.Action, e.At, now); err != nil {
			return inside("Audit", i, err)
		}
		texts := []text{{"Actor", e.Actor}, {"Subject", e.Subject}, {"Reason", e.Reason}}
		for key, value := range e.Details {
			texts = append(texts, text{"Details", key}, text{"Details", value})
		}
		if err := checkTexts(texts...); err != nil {
			return inside("Audit", i, err)
		}
	}
	for i := range b.Events {
		e := &b.Events[i]
		if err := checkRecord(e.ID, "Topic", e.Topic, e.At, now); err != nil {
			return inside("Events", i, err)
		}
	}
	return nil
}

func checkRecord(id, field, value string, at, now time.Time) error {
	switch {
	case id == "":
		return &heed.InputError{Field: "ID", Reason: "must not be empty"}
	case value == "":
		return &heed.InputError{Field: field, Reason: "must not be empty"}
	}
	if err := checkTexts(text{"ID", id}, text{field, value}); err != nil {
		return err
	}
	return CheckTime("At", at, now)
}

// inside puts the place of an element before the field of its fault.
func inside(list string, i int, err error) error {
	if fault := (*heed.InputError)(nil); errors.As(err, &fault) {
		return &heed.InputError{Field: fmt.Sprintf("%s[%d].%s", list, i, fault.Field), Reason: fault.Reason}
	}
	return err
}
