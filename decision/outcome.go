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

// An ExperimentOutcome is what came of a decision.
type ExperimentOutcome struct {
	Variant string // as in the result, or in a [Credit]
	// ID names the outcome; a repeated one counts once. Replaces is the ID of the outcome that this
	// one replaces, or empty.
	ID, Replaces string
	Reward       float64   // how good it was, in [0, 1]
	Source       string    // who caused it; may be empty
	At           time.Time // the zero time means now
}

// Observe counts an outcome. It returns a [*heed.InputError] for an invalid outcome, and
// [evidence.ErrForgotten] if the store no longer keeps the record of the outcome that it replaces.
// Both change nothing. The number of outcomes does not matter.
func (e *Experiment) Observe(ctx context.Context, o ExperimentOutcome) error {
	retract := func(b *store.Batch, id string) { b.Retract = []string{id} }
	observe := func(tx *store.Tx) error { return e.observe(tx, o, retract) }
	err := store.Do(ctx, e.cfg.Store, observe)
	if errors.Is(err, heed.ErrNotFound) { // the outcome that it replaces is still to come
		retract = func(*store.Batch, string) {}
		err = store.Do(ctx, e.cfg.Store, observe)
	}
	if err != nil {
		return fmt.Errorf("decision: observe: %w", err)
	}
	return nil
}

// ObserveIn counts an outcome as part of a step, for example together with the reaction that it
// comes from. It differs from [Experiment.Observe] in one case: if the store no longer keeps the
// outcome that this one replaces, both count, because the step cannot tell it from one that is
// still to come.
func (e *Experiment) ObserveIn(tx *store.Tx, o ExperimentOutcome) error {
	withdraw := func(b *store.Batch, id string) { b.Withdraw = []string{id} }
	if err := e.observe(tx, o, withdraw); err != nil {
		return fmt.Errorf("decision: observe: %w", err)
	}
	return nil
}

// observe adds an outcome to a step. takeBack takes the replaced outcome back if it has no record.
func (e *Experiment) observe(
	tx *store.Tx, o ExperimentOutcome, takeBack func(*store.Batch, string),
) error {
	if !slices.ContainsFunc(e.cfg.Variants, func(v Variant) bool { return v.Name == o.Variant }) {
		return &heed.InputError{Field: "Variant", Reason: "is no variant of the experiment"}
	}
	if o.ID == "" {
		return &heed.InputError{Field: "ID", Reason: "must not be empty"}
	}
	if o.At.IsZero() {
		o.At = e.cfg.Now()
	}
	repeated, err := e.count(tx, &o, takeBack)
	if err == nil && e.watch != nil {
		tx.Then(func(receipt store.Receipt, err error) {
			if err == nil {
				e.notify(tx.Context(), &o, repeated || slices.Contains(receipt.Duplicates, e.id(o.ID)))
			}
		})
	}
	return err
}

func (e *Experiment) notify(ctx context.Context, o *ExperimentOutcome, repeated bool) {
	name, now := e.watch.Name(), e.cfg.Now()
	if repeated {
		e.watch.Tell(ctx, heed.Duplicate{Component: name, At: now, What: "outcome", ID: o.ID})
		return
	}
	e.watch.Tell(ctx, heed.Counted{
		Component: name, At: now, Subject: o.Variant, Reward: o.Reward, Weight: 1,
	})
}

// count reads what is known of an outcome and of the one that it replaces, and adds what changes.
// It reports whether the outcome is known.
func (e *Experiment) count(
	tx *store.Tx, o *ExperimentOutcome, takeBack func(*store.Batch, string),
) (repeated bool, err error) {
	row := outcomeRow{
		Experiment: e.cfg.Name, ID: o.ID, Variant: o.Variant, Source: o.Source, Reward: o.Reward,
		At: o.At, Kept: e.cfg.Now(),
	}
	old := outcomeRow{Experiment: e.cfg.Name, ID: o.Replaces, Replaced: true, Kept: row.Kept}
	tx.Want(store.Wants{Refs: []store.Ref{outcomeKind.Ref(row.id()), outcomeKind.Ref(old.id())}})
	known, err := outcomeKind.In(tx, row.id())
	if err != nil {
		return false, err
	}
	before, err := outcomeKind.In(tx, old.id())
	if err != nil {
		return false, err
	}
	if known.Revision > 0 { // it counts, or was replaced before it came
		tx.Expect(outcomeKind.Expect(row.id(), known.Revision))
		return true, nil
	}
	tx.Observe(e.observation(&row, ""))
	outcomeKind.Put(tx, row, 0)
	switch was := before.Value; {
	case o.Replaces == "" || was.Replaced:
	case before.Revision > 0: // the sums of what was replaced are taken off in a report
		was.Replaced = true
		tx.Observe(e.observation(&was, replaced))
		outcomeKind.Put(tx, was, before.Revision)
	default: // it is still to come, or its record has been dropped
		var b store.Batch
		takeBack(&b, e.id(o.Replaces))
		tx.Add(b)
		outcomeKind.Put(tx, old, 0)
	}
	return false, nil
}

// replaced is the name of the cells of outcomes that were replaced. They are in the other cells as
// well.
const replaced = "replaced"

// observation returns an outcome as evidence.
func (e *Experiment) observation(row *outcomeRow, name string) evidence.Observation {
	cell := e.cell(row.Variant)
	cell.Name = name
	o := evidence.Observation{
		ID: e.id(row.ID), Cell: cell, Source: row.Source, Reward: row.Reward, Weight: 1, At: row.At,
	}
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
		Name: "decision.outcome", Limits: store.Limits{For: 30 * 24 * time.Hour, Most: 1_000_000},
		Caused: []string{"Source"}, Whole: true,
	},
	Place: func(o outcomeRow) (string, time.Time, []string) {
		return o.id(), o.Kept, personKeys(o.Source)
	},
}

// standing returns the sums of the outcomes of a variant that were not replaced. counted are
// the parts of its cell, and taken the parts of the replaced ones. Where a source was removed from
// the evidence, what it replaced is left out, too.
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
