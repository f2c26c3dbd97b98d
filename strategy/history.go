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
	"github.com/heedhq/heed/store"
)

// ErrNoChoices says that a learner keeps no records of its choices: see Config.Unrecorded.
var ErrNoChoices = errors.New("the learner keeps no records of choices")

// History returns the learner's choices that a filter lets pass, the newest first, each with its outcome if it has one:
// those of an item, of a session, of a time. The loop may end early; after an error it ends. With Config.Unrecorded that
// error is [ErrNoChoices].
func (l *Learner) History(ctx context.Context, f ChoiceFilter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var page []*choiceRow
		left := f.Limit
		flush := func() error {
			ended, err := l.endedOf(ctx, page)
			if err != nil {
				return err
			}
			for i, row := range page {
				if !yield(row.record(ended[i]), nil) {
					return errEnough
				}
				if left--; left == 0 {
					return errEnough
				}
			}
			page = page[:0]
			return nil
		}
		err := l.find(ctx, f, func(kept keptChoice) error {
			if page = append(page, kept.Value); len(page) == historyPage || len(page) == left {
				return flush()
			}
			return nil
		})
		if err == nil {
			err = flush()
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(Record{}, fmt.Errorf("strategy: history: %w", err))
		}
	}
}

// historyPage is of how many choices it is read at once whether their sessions have ended.
const historyPage = 100

// errEnough ends a loop.
var errEnough = errors.New("enough")

// find calls a function with the records that a filter lets pass, the newest first, until it returns an error.
func (l *Learner) find(ctx context.Context, f ChoiceFilter, do func(keptChoice) error) error {
	if l.cfg.Unrecorded {
		return ErrNoChoices
	}
	for kept, err := range choices.Find(ctx, l.cfg.Store, f.query(l.cfg.Name)) {
		if err == nil && kept.Value.Choice.Learner() == l.cfg.Name && f.passes(kept.Value) {
			err = do(kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endedOf reports of each choice whether its session has ended.
func (l *Learner) endedOf(ctx context.Context, rows []*choiceRow) ([]bool, error) {
	ended := make([]bool, len(rows))
	var refs []store.Ref
	for _, row := range rows {
		if row.Choice.Session != "" {
			refs = append(refs, sessions.Ref(sessionID(l.cfg.Name, row.Choice.Session)))
		}
	}
	if len(refs) == 0 {
		return ended, nil
	}
	var read store.Snapshot
	if err := l.cfg.Store.Read(ctx, &read, nil, refs); err != nil {
		return nil, err
	}
	n := 0
	for i, row := range rows {
		if row.Choice.Session == "" {
			continue
		}
		session, err := sessions.Of(read.Records[n])
		if err != nil {
			return nil, err
		}
		ended[i] = session.Value.Epoch > row.Epoch
		n++
	}
	return ended, nil
}

// Find returns the choice that an attribution is about: the one that was made last for an item in a session, at the given
// time or before; and where there is none, as clocks differ, the first that was made up to [evidence.MaxSkew] later. So
// what is asked again finds the same choice, whatever was chosen since. The zero time finds the last of all: an event that
// may be delivered again needs its own time here, or it would be counted for another choice then. The item may be empty, as
// in a [Query]. Where there is no such choice it is [heed.ErrNotFound], and with Config.Unrecorded [ErrNoChoices].
func (l *Learner) Find(ctx context.Context, session, item string, at time.Time) (Record, error) {
	row, err := l.findAt(ctx, session, item, at)
	if err != nil {
		return Record{}, fmt.Errorf("strategy: find: %w", err)
	}
	ended, err := l.endedOf(ctx, []*choiceRow{row})
	if err != nil {
		return Record{}, fmt.Errorf("strategy: find: %w", err)
	}
	return row.record(ended[0]), nil
}

func (l *Learner) findAt(ctx context.Context, session, item string, at time.Time) (_ *choiceRow, err error) {
	if session == "" && !l.cfg.Unrecorded {
		return nil, heed.ErrNotFound
	}
	f := ChoiceFilter{Session: session, Item: item}
	if !at.IsZero() {
		f.Until = at.Add(evidence.MaxSkew + time.Microsecond)
	}
	var last keptChoice
	err = l.find(ctx, f, func(kept keptChoice) error {
		c := &kept.Value.Choice
		switch {
		case c.Item != item: // an empty item lets all pass
		case last.Revision > 0 && (at.IsZero() || !last.Value.Choice.At.After(at)) && !c.At.Equal(last.Value.Choice.At):
			return errEnough
		case last.Revision == 0 || !c.At.Equal(last.Value.Choice.At) || !kept.Value.Own: // of one moment, the last of all
			last = kept
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return nil, err
	case last.Revision == 0:
		return nil, heed.ErrNotFound
	}
	last.Value.Choice.remember(last)
	return last.Value, nil
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
