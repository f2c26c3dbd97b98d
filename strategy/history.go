package strategy

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
)

// History yields the learner's choices that a filter lets pass, the newest first, each with its
// outcome if it has one. The loop may end early. After an error it ends. With Config.Unrecorded the
// error is [heed.ErrNotFound], unless the filter asks for the evidence. A filter with a stage looks
// at every choice that it would let pass otherwise, until the limit is reached.
func (l *Learner) History(ctx context.Context, f ChoiceFilter) iter.Seq2[ChoiceRecord, error] {
	all := l.recorded
	if f.Evidence {
		all = l.outcomes
	}
	return func(yield func(ChoiceRecord, error) bool) {
		n := 0
		for r, err := range all(ctx, f) {
			if err != nil {
				yield(ChoiceRecord{}, fmt.Errorf("strategy: history: %w", err))
				return
			}
			if f.Stage != "" && f.Stage != r.Stage {
				continue
			}
			if n++; !yield(r, nil) || n == f.Limit {
				return
			}
		}
	}
}

// recorded yields the choices that a filter lets pass. It leaves the stage and the limit to the
// caller. An error is passed on as an element, and ends the loop.
func (l *Learner) recorded(ctx context.Context, f ChoiceFilter) iter.Seq2[ChoiceRecord, error] {
	return func(yield func(ChoiceRecord, error) bool) {
		for a, err := range l.find(ctx, f) {
			var r ChoiceRecord
			if err == nil {
				r = l.record(a.Answer)
			}
			if !yield(r, err) {
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
			if !yield(keptChoice{Answer: &row.Value, revision: row.Revision}, err) ||
				err != nil {
				return
			}
		}
	}
}

// Find returns the choice that an attribution is about: the last one made for an item in a session,
// at the given time or before. Otherwise it is the first one made at most [evidence.MaxSkew] later,
// because clocks differ. So the same question finds the same choice, even if heed chose again
// since. The zero time finds the last choice of all. Give the time at which the event happened, and
// not the time of its delivery: otherwise a second delivery may find another choice. The item may
// be empty, like in a [Query]. Without such a choice, and with Config.Unrecorded, the error is
// [heed.ErrNotFound].
func (l *Learner) Find(
	ctx context.Context, session, item string, at time.Time,
) (_ ChoiceRecord, err error) {
	defer because(&err, "find")
	// an empty item lets the records of all items pass
	found, err := l.search(ctx, ChoiceFilter{Session: session, Item: item}, at,
		func(c *answer.Choice) (string, bool) { return "", c.Item == item })
	if err != nil {
		return ChoiceRecord{}, err
	}
	return found[0], nil
}

// FindSession returns what [Learner.Find] finds for each item of a session, and for each segment in
// which the session chose without an item: the choice made last at most. It is for an event that
// names a session alone, for example of a ticket. Without any choice, and with Config.Unrecorded,
// the error is [heed.ErrNotFound].
func (l *Learner) FindSession(ctx context.Context, session string,
	at time.Time) (found []ChoiceRecord, err error) {
	defer because(&err, "find session")
	return l.search(ctx, ChoiceFilter{Session: session}, at, func(c *answer.Choice) (string, bool) {
		return answers.InSession(c.Item, c.Category, c.Context), true
	})
}

// search returns the choice that a moment is about for each name of choices that a filter lets
// pass. of returns the name of a choice, and whether it is looked for. Without any choice, the
// error is [heed.ErrNotFound].
func (l *Learner) search(
	ctx context.Context, f ChoiceFilter, at time.Time, of func(*answer.Choice) (string, bool),
) (found []ChoiceRecord, err error) {
	if f.Session == "" {
		return nil, heed.ErrNotFound
	}
	if !at.IsZero() {
		f.Until = at.Add(evidence.MaxSkew + time.Microsecond)
	}
	var all []*finding
	byName := make(map[string]*finding)
	for kept, err := range l.find(ctx, f) {
		if err != nil {
			return nil, err
		}
		name, wanted := of(kept.Choice)
		if !wanted {
			continue
		}
		one := byName[name]
		if one == nil {
			one = &finding{}
			byName[name], all = one, append(all, one)
		}
		if one.meet(kept, at) && name == "" {
			break // there is no other name
		}
	}
	for _, one := range all {
		found = append(found, l.found(one))
	}
	if len(found) == 0 {
		err = heed.ErrNotFound
	}
	return found, err
}

// A finding is the choice of a name in a session that a moment is about, if it was found. It is
// filled by meet, with choices from the newest to the oldest: each replaces the one before, until
// one was made at the moment or earlier.
type finding struct {
	keptChoice
	// done is set if no older choice can be the one.
	done bool
}

// meet takes the next choice, from the newest to the oldest. It reports whether the search is over.
// Two choices of one moment are ordered by which of them still has the session's own record: that
// is the later one.
func (f *finding) meet(kept keptChoice, at time.Time) bool {
	same := f.revision > 0 && kept.At.Equal(f.At)
	f.done = f.done || f.revision > 0 && !same && (at.IsZero() || !f.At.After(at))
	if !f.done && (!same || !kept.Choice.Own) { // of one moment, the last of all
		f.keptChoice = kept
	}
	return f.done
}

// found returns the record that was found. A choice of this package alone then has its record.
func (l *Learner) found(f *finding) ChoiceRecord {
	r := l.record(f.Answer)
	if answers.Alone(f.Answer) {
		r.Choice.details.kept.Store(&f.keptChoice)
	}
	return r
}
