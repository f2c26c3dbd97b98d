package strategy

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
)

// History yields the learner's choices that a filter lets pass, the newest first, each with its
// outcome if it has one. The loop may end early. After an error it ends, unless only that choice is
// damaged. With Config.Unrecorded the error is [heed.ErrNotFound], unless the filter asks for the
// evidence. A filter with a stage looks at every choice that it would let pass otherwise, until the
// limit is reached.
func (l *Learner) History(ctx context.Context, f ChoiceFilter) iter.Seq2[ChoiceRecord, error] {
	return func(yield func(ChoiceRecord, error) bool) {
		n := 0
		pass := func(r ChoiceRecord, err error) bool {
			if err != nil {
				return yield(ChoiceRecord{}, fmt.Errorf("strategy: history: %w", err))
			}
			if f.Stage != "" && f.Stage != r.Stage {
				return true
			}
			n++
			return yield(r, nil) && n != f.Limit
		}
		if f.Evidence {
			l.outcomes(ctx, f)(pass)
			return
		}
		for a, err := range l.find(ctx, f) {
			var r ChoiceRecord
			if err == nil {
				r = l.record(a.Answer)
			}
			if !pass(r, err) {
				return
			}
		}
	}
}

// outcomes yields the outcomes of an item that the store still keeps. The store lists a history for
// each arm's cell, so all arms are read before they can be put in the order of time. The limit
// holds for each arm, because any one of them may have all of the newest. It needs the memory of
// all that it yields, at most the limit for each arm.
func (l *Learner) outcomes(ctx context.Context, f ChoiceFilter) iter.Seq2[ChoiceRecord, error] {
	return func(yield func(ChoiceRecord, error) bool) {
		q := Query{Session: f.Session, Item: f.Item, Category: f.Category, Context: f.Context}
		err := q.validate()
		var all []ChoiceRecord
		for _, arm := range l.cfg.Arms {
			if err == nil {
				all, err = l.outcomesOf(ctx, &f, arm.ID, all)
			}
		}
		if err != nil {
			yield(ChoiceRecord{}, err)
			return
		}
		slices.SortStableFunc(all, func(a, b ChoiceRecord) int {
			return b.Result.At.Compare(a.Result.At)
		})
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// outcomesOf appends the outcomes of one arm that a filter lets pass, at most as many as its limit.
func (l *Learner) outcomesOf(
	ctx context.Context, f *ChoiceFilter, arm ArmID, all []ChoiceRecord,
) ([]ChoiceRecord, error) {
	space, n := space{l.kinds, answers.Scope(f.Category, f.Context)}, 0
	for o, err := range l.cfg.Store.History(ctx, space.arm(f.Item, arm)) {
		if err != nil {
			return nil, err
		}
		if f.Session != "" && f.Session != o.Session || o.At.Before(f.Since) ||
			!f.Until.IsZero() && !o.At.Before(f.Until) {
			continue
		}
		all = append(all, l.outcomeRecord(f, arm, &o))
		if n++; n == f.Limit {
			break
		}
	}
	return all, nil
}

// outcomeRecord returns the record of a choice as far as the evidence of an outcome has it. What
// only the record of the choice had, such as its draws, is missing.
func (l *Learner) outcomeRecord(f *ChoiceFilter, arm ArmID, o *evidence.Observation) ChoiceRecord {
	// The id of the evidence is the learner's, the choice's and the outcome's.
	choice, id, _ := strings.Cut(strings.TrimPrefix(o.ID, l.cfg.Name+":"), ":")
	r := ChoiceRecord{
		Choice: Choice{
			Arm: arm, Session: o.Session, Item: f.Item, Category: f.Category, Context: f.Context,
		},
		Stage: Observed, Mean: 2*o.Reward - 1, Mass: massOf(o), Reports: 1,
	}
	_ = r.Choice.ID.UnmarshalText([]byte(choice)) // another package may have written the evidence
	r.Result = &Result{
		ID: id, Value: r.Mean, Confidence: r.Mass, Channel: o.Channel, Source: o.Source, At: o.At,
	}
	return r
}

// find yields the records that a filter lets pass, the newest first. It leaves the stage and the
// limit to the caller. Answers of other learners, and answers without a choice, may be of the same
// kind. The query has the filter's keys, and passes decides about the rest.
func (l *Learner) find(ctx context.Context, f ChoiceFilter) iter.Seq2[keptChoice, error] {
	return func(yield func(keptChoice, error) bool) {
		if l.cfg.Unrecorded {
			yield(keptChoice{}, fmt.Errorf("the learner keeps no records of choices: %w",
				heed.ErrNotFound))
			return
		}
		for row, err := range l.answers.Find(ctx, l.cfg.Store, l.query(&f)) {
			c := row.Value.Choice
			if err == nil && (c == nil || c.Learner != l.cfg.Name || !f.passes(&row.Value)) {
				continue
			}
			if !yield(keptChoice{Answer: &row.Value, revision: row.Revision}, err) {
				return
			}
		}
	}
}
