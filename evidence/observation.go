package evidence

import (
	"cmp"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/valid"
)

// A Cell names one thing that is believed in. Stores read and list cells of one kind and scope
// together. Cells that differ only in the name are alternatives for one item. The limits of
// [Observation] hold for each text.
//
// For example, the arms of a bandit are the cells {"strategy.arm", segment, item, arm}.
type Cell struct {
	Kind  string `json:"kind"`            // what sort of thing; never empty
	Scope string `json:"scope,omitempty"` // the group that it belongs to: a segment, a domain, a tenant
	Item  string `json:"item,omitempty"`  // the thing itself; an item or a name there must be
	Name  string `json:"name,omitempty"`  // which of the item's alternatives
}

// Compare orders cells by kind, scope, item and name.
func (c Cell) Compare(o Cell) int {
	return cmp.Or(strings.Compare(c.Kind, o.Kind), strings.Compare(c.Scope, o.Scope),
		strings.Compare(c.Item, o.Item), strings.Compare(c.Name, o.Name))
}

// An Observation records that a cell earned a reward. Texts are valid UTF-8 without NUL, of at most
// [MaxText] bytes. Once a store keeps it, it is immutable.
type Observation struct {
	// ID names the event that was observed. A store counts an id once, and anything that comes later
	// under it is a duplicate. Observations of one batch may share an id, if one event is evidence on
	// several cells.
	ID   string `json:"id"`
	Cell Cell   `json:"cell"`
	// Channel is how it is known: "user_explicit", "implicit_timeout". May be empty.
	Channel string `json:"channel,omitempty"`
	// Source is who caused it, an opaque name that can be limited ([Trust]) and removed
	// (store.Job). May be empty.
	Source  string `json:"source,omitempty"`
	Session string `json:"session,omitempty"` // where it happened; may be empty
	// Reward is how good it was, in [0, 1]. Above ½ it is positive, below ½ negative.
	Reward float64 `json:"reward"`
	// Weight is how much evidence it is, in [0, MaxWeight]. 1 is one full observation. 0 leaves the
	// cell as it is; only the id is kept.
	Weight float64 `json:"weight"`
	// Share is the part of an event that this observation is, in (0, 1], where several sources caused
	// one event. It multiplies what counts. So observations of one weight whose shares add up to 1
	// are as much evidence as one observation of that weight. 0 means 1.
	Share float64 `json:"share,omitempty"`
	// At is when it happened; its fading depends on it. It lies between 1970 and [MaxSkew] ahead of
	// the store's clock. Stores keep microseconds.
	At time.Time `json:"at"`
}

// The limits of an observation.
const (
	// bytes of an id, of each text of a cell, of a channel, a source and a session
	MaxText   = valid.Name
	MaxWeight = 1e6           // of one observation
	MaxSkew   = valid.MaxSkew // how far ahead of the store's clock an observation may be
)

// Validate reports the first fault of the observation as a [*heed.InputError], by the clock's now.
func (o *Observation) Validate(now time.Time) error {
	if err := cmp.Or(valid.Names(MaxText, "ID", o.ID), valid.Texts(MaxText, "Channel", o.Channel,
		"Source", o.Source, "Session", o.Session), o.Cell.Validate()); err != nil {
		return err
	}
	switch {
	case !(o.Reward >= 0 && o.Reward <= 1):
		return valid.Input("Reward", "is %v, must be in [0, 1]", o.Reward)
	case !(o.Weight >= 0 && o.Weight <= MaxWeight):
		return valid.Input("Weight", "is %v, must be in [0, %v]", o.Weight, float64(MaxWeight))
	case !(o.Share >= 0 && o.Share <= 1):
		return valid.Input("Share", "is %v, must be in (0, 1], or 0 for 1", o.Share)
	}
	return valid.Time("At", o.At, now)
}

// Validate reports the first fault of the cell as a [*heed.InputError].
func (c Cell) Validate() error {
	if c.Kind != "" && c.Item == "" && c.Name == "" {
		return valid.Input("Cell", "must have an item or a name")
	}
	return cmp.Or(valid.Names(MaxText, "Cell.Kind", c.Kind), valid.Texts(MaxText,
		"Cell.Scope", c.Scope, "Cell.Item", c.Item, "Cell.Name", c.Name))
}

// CheckText returns a [*heed.InputError] for this field if some store could not keep the text: see
// [Observation].
func CheckText(field, value string) error { return valid.Texts(MaxText, field, value) }

// An Instant is a moment in microseconds since 1970-01-01 UTC, the precision in which evidence is
// kept. 0 means no moment.
type Instant int64

// InstantOf returns the moment of a time, rounded down to the microsecond.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	micros := t.UnixMicro()
	if micros == 0 {
		micros = 1 // 0 means no moment
	}
	return Instant(micros)
}

// Time returns the moment in UTC, and the zero time of the zero instant.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}
