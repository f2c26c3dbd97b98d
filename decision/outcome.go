package decision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// An ExperimentOutcome is what came of a decision. The fields of a [Credit] fit.
type ExperimentOutcome struct {
	Variant string // as in the result
	// ID names the outcome; a repeated one counts once. Replaces is the ID of the outcome that this one replaces, or empty.
	ID, Replaces string
	Reward       float64 // how good it was, in [0, 1]
	Source       string  // who caused it; may be empty
	At           time.Time
}

// Observe counts an outcome. Further batches are committed with it, in one Commit: the reaction that it comes from, for
// example. It returns a [*heed.InputError] for an invalid outcome, and [evidence.ErrForgotten] if the store no longer keeps
// the record of the outcome that it replaces. Both change nothing. The number of outcomes does not matter.
func (e *Experiment) Observe(ctx context.Context, o ExperimentOutcome, with ...store.Batch) error {
	repeated, err := e.observe(ctx, &o, with)
	switch {
	case err != nil:
		return fmt.Errorf("decision: observe: %w", err)
	case e.watch == nil:
	case repeated:
		e.watch.Tell(ctx, heed.Duplicate{Component: e.watch.Name(), At: e.cfg.Now(), What: "outcome", ID: o.ID})
	default:
		e.watch.Tell(ctx, heed.Counted{Component: e.watch.Name(), At: e.cfg.Now(), Subject: o.Variant, Reward: o.Reward, Weight: 1})
	}
	return nil
}

func (e *Experiment) observe(ctx context.Context, o *ExperimentOutcome, with []store.Batch) (repeated bool, err error) {
	if !slices.ContainsFunc(e.cfg.Variants, func(v Variant) bool { return v.Name == o.Variant }) {
		return false, &heed.InputError{Field: "Variant", Reason: "is no variant of the experiment"}
	}
	if o.ID == "" {
		return false, &heed.InputError{Field: "ID", Reason: "must not be empty"}
	}
	if o.At.IsZero() {
		o.At = e.cfg.Now()
	}
	err = patiently(ctx, func() (err error) {
		repeated, err = e.count(ctx, o, with)
		return err
	})
	return repeated, err
}

// count reads what is known of an outcome and of the one that it replaces, and commits it.
func (e *Experiment) count(ctx context.Context, o *ExperimentOutcome, with []store.Batch) (repeated bool, err error) {
	row := outcomeRow{Experiment: e.cfg.Name, ID: o.ID, Variant: o.Variant, Source: o.Source, Reward: o.Reward, At: o.At, Kept: e.cfg.Now()}
	old := outcomeRow{Experiment: e.cfg.Name, ID: o.Replaces, Replaced: true, Kept: row.Kept}
	refs := []store.Ref{outcomeKind.Ref(row.id()), outcomeKind.Ref(old.id())}
	var read store.Snapshot
	if err := e.cfg.Store.Read(ctx, &read, nil, refs); err != nil {
		return false, err
	}
	known, err := outcomeKind.Of(read.Records[0])
	before, err2 := outcomeKind.Of(read.Records[1])
	if err := errors.Join(err, err2); err != nil {
		return false, err
	}
	if known.Revision > 0 { // it counts, or was replaced before it came
		_, err := e.cfg.Store.Commit(ctx, slices.Concat([]store.Batch{{Expect: []store.Precondition{outcomeKind.Expect(row.id(), known.Revision)}}}, with)...)
		return true, err
	}
	b := store.Batch{Observations: []evidence.Observation{e.observation(&row, "")}, Records: []store.Record{outcomeKind.Record(row, 0)}}
	switch was := before.Value; {
	case o.Replaces == "" || was.Replaced:
	case before.Revision > 0: // the sums of what was replaced are taken off in a report
		was.Replaced = true
		b.Observations = append(b.Observations, e.observation(&was, replaced))
		b.Records = append(b.Records, outcomeKind.Record(was, before.Revision))
	default: // it is still to come, or its record has been dropped
		b.Retract = []string{e.id(o.Replaces)}
		if repeated, err = e.commit(ctx, o.ID, b, with); !errors.Is(err, heed.ErrNotFound) {
			return repeated, err
		}
		b.Retract, b.Records = nil, append(b.Records, outcomeKind.Record(old, 0))
	}
	return e.commit(ctx, o.ID, b, with)
}

func (e *Experiment) commit(ctx context.Context, id string, b store.Batch, with []store.Batch) (repeated bool, err error) {
	receipts, err := e.cfg.Store.Commit(ctx, slices.Concat([]store.Batch{b}, with)...)
	return err == nil && slices.Contains(receipts[0].Duplicates, e.id(id)), err
}

// replaced is the name of the cells of outcomes that were replaced. They are in the other cells as well.
const replaced = "replaced"

// observation returns an outcome as evidence.
func (e *Experiment) observation(row *outcomeRow, name string) evidence.Observation {
	cell := e.cell(row.Variant)
	cell.Name = name
	o := evidence.Observation{ID: e.id(row.ID), Cell: cell, Source: row.Source, Reward: row.Reward, Weight: 1, At: row.At}
	if name == replaced {
		o.ID = "replaced:" + o.ID
	}
	return o
}

// id returns the id of an outcome among all that the store has.
func (e *Experiment) id(id string) string { return "experiment:" + store.IDOf(e.cfg.Name, id) }

func (e *Experiment) cell(variant string) evidence.Cell {
	return evidence.Cell{Kind: "experiment.outcome", Scope: e.cfg.Name, Item: variant}
}

// An outcomeRow is an outcome as it is stored.
type outcomeRow struct {
	Experiment, ID, Variant string
	Source                  string `json:",omitempty"`
	Reward                  float64
	At                      time.Time
	Replaced                bool      // it counts no more, also if it is still to come
	Kept                    time.Time // when it was stored
}

func (o *outcomeRow) id() string { return store.IDOf("outcome", o.Experiment, o.ID) }

// outcomeKind keeps outcomes for as long as they can be replaced.
var outcomeKind = store.View[outcomeRow]{
	Kind: store.Kind{
		Name: "decision.outcome", Limits: store.Limits{For: 30 * 24 * time.Hour, Most: 1_000_000}, Caused: []string{"Source"}, Whole: true,
	},
	Place: func(o outcomeRow) (string, time.Time, []string) { return o.id(), o.Kept, personKeys(o.Source) },
}

// standing returns the sums of the outcomes of a variant that were not replaced. The parts are those of its cell, and then of the
// replaced ones. Where a source was removed from the evidence, what it replaced is left out, too.
func standing(counted, taken []evidence.Part, now evidence.Instant) evidence.Sums {
	sums := evidence.Caps{}.Pool(counted, now)
	for _, p := range taken {
		if slices.ContainsFunc(counted, func(c evidence.Part) bool { return c.Channel == p.Channel && c.Source == p.Source }) {
			less := evidence.Caps{}.Pool([]evidence.Part{p}, now)
			sums.Mass, sums.Reward = sums.Mass-less.Mass, sums.Reward-less.Reward
		}
	}
	return sums
}
