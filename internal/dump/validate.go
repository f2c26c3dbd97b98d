package dump

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// lastInstant is the last microsecond of the year 9999.
var lastInstant = evidence.InstantOf(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC))

// validate reports the first fault of a row by itself. Whether it fits to others is for
// [NewLoader]. Faults of all its members are joined. A row without a member that is known would be
// skipped silently, so it is refused.
func (r *Row) validate() (err error) {
	fields := 0
	count := func(set bool, validate func() error) {
		if set {
			fields++
			err = errors.Join(err, validate())
		}
	}
	count(r.Kind != nil, func() error { return r.Kind.Validate() })
	count(r.Cell != nil, func() error { return r.Cell.validate() })
	count(r.Tally != nil, func() error { return r.Tally.validate() })
	count(r.Observation != nil, func() error { return r.Observation.validate() })
	count(r.Lost != nil, func() error { return r.Lost.validate() })
	count(r.ID != nil, func() error { return moments(r.ID.Recorded) })
	count(r.Record != nil, func() error { return r.Record.validate() })
	if fields != 1 {
		return errors.New("a row must be of one sort")
	}
	return err
}

// validate checks the texts and the moment of a loss.
func (l *Lost) validate() error {
	if l.Origin != nil {
		if err := errors.Join(evidence.CheckText("Channel", l.Origin.Channel),
			evidence.CheckText("Source", l.Origin.Source)); err != nil {
			return err
		}
	}
	return moments(l.Recorded)
}

// moments reports a moment that is not 0 and not in the years 1970 to 9999.
func moments(all ...evidence.Instant) error {
	for _, at := range all {
		if at < 0 || at > lastInstant {
			return errors.New("a moment must be in the years 1970 to 9999")
		}
	}
	return nil
}

// EvidenceCell returns the cell itself.
func (c *Cell) EvidenceCell() evidence.Cell {
	return evidence.Cell{Kind: c.Kind, Scope: c.Scope, Item: c.Item, Name: c.Name}
}

// Policy returns under which policy the cell is kept. The store refuses observations under another
// policy.
func (c *Cell) Policy() evidence.Policy {
	return evidence.Policy{HalfLife: time.Duration(c.HalfLife) * time.Microsecond,
		ByOrigin: c.ByOrigin}
}

// validate checks the names, the hash, which later rows refer to, and the policy.
func (c *Cell) validate() error {
	cell := c.EvidenceCell()
	if err := cell.Validate(); err != nil {
		return err
	}
	if c.Hash != HashOfCell(cell) {
		return errors.New("the hash is not the cell's")
	}
	if c.HalfLife < 0 || c.HalfLife > valid.MaxHalfLife.Microseconds() {
		return fmt.Errorf("halfLife must be in 0 to %d", valid.MaxHalfLife.Microseconds())
	}
	return errors.Join(c.Policy().Validate(), moments(c.Restart))
}

// Evidence returns the sums, of a cell with a policy of this half-life. The half-life is the
// cell's, because all tallies of a cell have the same.
func (t *Tally) Evidence(halfLife time.Duration) evidence.Tally {
	return evidence.Tally{
		HalfLife: halfLife, Landmark: t.Landmark,
		Mass: t.Mass, Squares: t.Squares, Reward: t.Reward, RewardSquares: t.RewardSquares,
		Positive: evidence.Count{N: t.Positive.N, Last: t.Positive.Last},
		Negative: evidence.Count{N: t.Negative.N, Last: t.Negative.Last},
		Neutral:  evidence.Count{N: t.Neutral.N, Last: t.Neutral.Last},
	}
}

// validate checks that counts and moments go together. Sums may be negative by rounding, so their
// signs are not checked. They are finite, because all numbers in JSON are. A count must fit into 32
// bits.
func (t *Tally) validate() error {
	n := uint64(0)
	for _, c := range []Count{t.Positive, t.Negative, t.Neutral} {
		if c.N > math.MaxUint32 || (c.N == 0) != (c.Last == 0) || c.N == 0 && c.Lost != 0 ||
			c.Lost > c.Last {
			return errors.New("a count does not agree with its moments")
		}
		if err := moments(c.Last, c.Lost); err != nil {
			return err
		}
		n += c.N
	}
	if n == 0 {
		return errors.New("a tally must have an observation")
	}
	return errors.Join(moments(t.Landmark),
		valid.Texts(evidence.MaxText, "channel", t.Channel, "source", t.Source))
}

// fits reports whether the tally can be one of the cell. A landmark that is too old would let the
// weights of later observations overflow. Landmarks lie on the grid of steps that all stores use.
func (t *Tally) fits(c *Cell) error {
	step := evidence.Instant(valid.LandmarkStep * c.HalfLife)
	last := max(t.Positive.Last, t.Negative.Last, t.Neutral.Last)
	switch {
	case !c.ByOrigin && t.Channel+t.Source != "":
		return errors.New("a cell that keeps origins together has a tally with an origin")
	case step == 0 && t.Landmark != 0:
		return errors.New("a cell that never fades has a tally with a landmark")
	case step > 0 && (t.Landmark%step != 0 || last-t.Landmark >= step):
		return errors.New("a landmark must be a whole number of steps, and less than one before the " +
			"last observation")
	}
	return nil
}

// Of returns the observation as one of a cell.
func (o *Observation) Of(c evidence.Cell) evidence.Observation {
	return evidence.Observation{
		ID: o.ID, Cell: c, Channel: o.Channel, Source: o.Source, Session: o.Session,
		Reward: o.Reward, Weight: o.Weight, Share: o.Share, At: o.At.Time(),
	}
}

// validate checks an observation by the rules that a commit has. Its moment may lie in the future
// of this clock, because another clock recorded it.
func (o *Observation) validate() error {
	// the cell's own row is looked at by itself
	of := o.Of(evidence.Cell{Kind: "kind", Item: "item"})
	if err := moments(o.At, o.Recorded); err != nil {
		return err
	}
	return of.Validate(lastInstant.Time())
}

// record returns the record. Its body refers to the row.
func (r *Record) record() store.Record {
	return store.Record{
		Ref: store.Ref{Kind: r.Kind, ID: r.ID}, Revision: r.Revision, At: r.At.Time(), Keys: r.Keys,
		Body: store.Raw(r.Body),
	}
}

// validate checks a record by the rules that a commit has, and the key of pseudonyms by separate
// ones, because no commit may write it and a load must. The body is cloned, because the reader's
// buffer is used again for the next line.
func (r *Record) validate() error {
	if r.Revision == 0 || r.Revision >= math.MaxInt64 {
		return errors.New("revision must be one that a store gives")
	}
	if r.Seq < 0 || r.Seq >= math.MaxInt64/2 {
		return errors.New("seq must be a number that a store gives")
	}
	if r.Body == nil {
		return errors.New("body must be there")
	}
	r.Body = bytes.Clone(r.Body)
	if err := moments(r.At); err != nil {
		return err
	}
	of := r.record()
	kind, _ := store.KindOf(of.Kind)
	if (store.Ref{Kind: kind, ID: of.ID}) == stores.PseudonymKeyRef() { // which no commit may write
		row, err := store.Pseudonyms.Of(of)
		if err == nil && len(row.Value.Secret) < 16 {
			err = errors.New("the key of pseudonyms must have 16 bytes or more")
		}
		return err
	}
	return store.Validate(lastInstant.Time(), store.Batch{Records: []store.Record{of}})
}
