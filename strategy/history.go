package strategy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// ErrNoChoices says that a learner keeps no records of its choices: see Config.Choices.
var ErrNoChoices = errors.New("the learner keeps no records of choices")

// History returns the learner's choices that a filter lets pass, the newest first, each with its outcome if it has one:
// those of an item, of a session, of a time. The filter's learner is of no account. The loop may end early; after an error
// it ends. Without Config.Choices that error is [ErrNoChoices].
func (l *Learner) History(ctx context.Context, f ChoiceFilter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if l.cfg.Choices == nil {
			yield(Record{}, fmt.Errorf("strategy: history: %w", ErrNoChoices))
			return
		}
		f.Learner = l.cfg.Name
		for record, err := range l.cfg.Choices.List(ctx, f) {
			if err != nil {
				yield(Record{}, fmt.Errorf("strategy: history: %w", err))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}

// Find returns the choice that an attribution is about: the one that was made last for an item in a session, at the given
// time or before; and where there is none, as clocks differ, the first that was made up to [evidence.MaxSkew] later. So
// what is asked again finds the same choice, whatever was chosen since. The zero time finds the last of all. The item may
// be empty, as in a [Query]. Where there is no such choice it is [heed.ErrNotFound], and without Config.Choices
// [ErrNoChoices].
func (l *Learner) Find(ctx context.Context, session, item string, at time.Time) (Record, error) {
	record, err := l.find(ctx, ChoiceFilter{Session: session, Item: item}, at)
	if err != nil {
		return Record{}, fmt.Errorf("strategy: find: %w", err)
	}
	return record, nil
}

// find is Find, among the choices that a filter lets pass. Its session and item are the ones that are asked for.
func (l *Learner) find(ctx context.Context, f ChoiceFilter, at time.Time) (Record, error) {
	switch {
	case l.cfg.Choices == nil:
		return Record{}, ErrNoChoices
	case f.Session == "":
		return Record{}, heed.ErrNotFound
	}
	f.Learner = l.cfg.Name
	if !at.IsZero() {
		f.Until = at.Add(evidence.MaxSkew + time.Microsecond)
	}
	later, err := Record{}, heed.ErrNotFound
	for record, listErr := range l.cfg.Choices.List(ctx, f) {
		switch {
		case listErr != nil:
			return Record{}, listErr
		case record.Choice.Item != f.Item: // an empty item lets all pass
		case at.IsZero() || !record.Choice.At.After(at):
			return record, nil
		default:
			later, err = record, nil
		}
	}
	return later, err
}

// A Credit is one outcome that was counted.
type Credit struct {
	Arm     ArmID  `json:"arm"`
	Session string `json:"session,omitempty"`
	Result
}

// Outcomes returns the outcomes of an item that the store still keeps, the last first: at most limit of them, or all where
// limit is 0. They are what is believed of the item, one by one. The query's session and permitted arms are of no account.
func (l *Learner) Outcomes(ctx context.Context, q Query, limit int) ([]Credit, error) {
	if err := q.validate(); err != nil {
		return nil, fmt.Errorf("strategy: outcomes: %w", err)
	}
	space := space{l.kinds, segmentScope(q.Category, q.Context)}
	var credits []Credit
	for _, arm := range l.cfg.Arms {
		n := 0
		for o, err := range l.cfg.Store.History(ctx, space.arm(q.Item, arm.ID)) {
			if err != nil {
				return nil, fmt.Errorf("strategy: outcomes: %w", err)
			}
			credits = append(credits, Credit{arm.ID, o.Session, Result{
				ID: l.outcomeID(o.ID), Value: 2*o.Reward - 1, Confidence: o.Weight, Channel: o.Channel, Source: o.Source, At: o.At,
			}})
			if n++; n == limit {
				break
			}
		}
	}
	slices.SortStableFunc(credits, func(a, b Credit) int { return b.At.Compare(a.At) })
	if limit > 0 && len(credits) > limit {
		credits = credits[:limit]
	}
	return credits, nil
}

// outcomeID is what evidenceID has made of an outcome's id.
func (l *Learner) outcomeID(evidenceID string) string {
	rest, _ := strings.CutPrefix(evidenceID, l.cfg.Name+":")
	_, id, _ := strings.Cut(rest, ":")
	return id
}
