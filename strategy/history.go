package strategy

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/cells"
)

// History returns the learner's choices that a filter lets pass, the newest first, each with its
// outcome if it has one. The loop may end early. After an error it ends. With Config.Unrecorded the
// error is [heed.ErrNotFound].
func (l *Learner) History(ctx context.Context, f ChoiceFilter) iter.Seq2[ChoiceRecord, error] {
	return func(yield func(ChoiceRecord, error) bool) {
		n := 0
		for a, err := range l.find(ctx, f) {
			if err != nil {
				yield(ChoiceRecord{}, fmt.Errorf("strategy: history: %w", err))
				return
			}
			r := l.record(a.Answer)
			if f.Stage != "" && f.Stage != r.Stage {
				continue
			}
			if n++; !yield(r, nil) || n == f.Limit {
				return
			}
		}
	}
}

// find yields the records that a filter lets pass, the newest first. It leaves the stage and the
// limit to the caller.
func (l *Learner) find(ctx context.Context, f ChoiceFilter) iter.Seq2[keptChoice, error] {
	return func(yield func(keptChoice, error) bool) {
		if l.cfg.Unrecorded {
			yield(keptChoice{}, fmt.Errorf("the learner keeps no records of choices: %w", heed.ErrNotFound))
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
// at the given time or before. If there is none, it is the first one made at most
// [evidence.MaxSkew] later, as clocks differ. So the same question finds the same choice, even if
// heed has chosen again since. The zero time finds the last choice of all. Give the time at which
// the event happened, and not the time of its delivery: otherwise a second delivery may find
// another choice. The item may be empty, as in a [Query]. Without such a choice, and with
// Config.Unrecorded, the error is [heed.ErrNotFound].
func (l *Learner) Find(ctx context.Context, session, item string, at time.Time) (_ ChoiceRecord, err error) {
	defer because(&err, "find")
	if session == "" {
		return ChoiceRecord{}, heed.ErrNotFound
	}
	f := ChoiceFilter{Session: session, Item: item}
	if !at.IsZero() {
		f.Until = at.Add(evidence.MaxSkew + time.Microsecond)
	}
	var last finding
	for kept, err := range l.find(ctx, f) {
		if err != nil {
			return ChoiceRecord{}, err
		}
		if kept.Choice.Item == item && last.meet(kept, at) { // an empty item lets all pass
			break
		}
	}
	if last.revision == 0 {
		return ChoiceRecord{}, heed.ErrNotFound
	}
	return l.found(&last), nil
}

// FindSession returns what [Learner.Find] finds for each item of a session, and for each segment in
// which the session chose without an item: the choice made last at most. It is for an event that
// names a session alone, for example of a ticket. Without any choice, and with Config.Unrecorded,
// the error is [heed.ErrNotFound].
func (l *Learner) FindSession(ctx context.Context, session string, at time.Time) (found []ChoiceRecord, err error) {
	defer because(&err, "find session")
	if session == "" {
		return nil, heed.ErrNotFound
	}
	f := ChoiceFilter{Session: session}
	if !at.IsZero() {
		f.Until = at.Add(evidence.MaxSkew + time.Microsecond)
	}
	var all []*finding
	byName := make(map[string]*finding)
	for kept, err := range l.find(ctx, f) {
		if err != nil {
			return nil, err
		}
		c := kept.Choice
		name := answers.InSession(c.Item, c.Category, c.Context)
		of := byName[name]
		if of == nil {
			of = &finding{}
			byName[name], all = of, append(all, of)
		}
		of.meet(kept, at)
	}
	if len(all) == 0 {
		return nil, heed.ErrNotFound
	}
	for _, of := range all {
		found = append(found, l.found(of))
	}
	return found, nil
}

// A finding is the choice of a name in a session that a moment is about, as far as it was met.
type finding struct {
	keptChoice
	done bool
}

// meet takes the next choice, from the newest to the oldest. It reports whether the search is over.
func (f *finding) meet(kept keptChoice, at time.Time) bool {
	same := f.revision > 0 && kept.At.Equal(f.At)
	f.done = f.done || f.revision > 0 && !same && (at.IsZero() || !f.At.After(at))
	if !f.done && (!same || !kept.Choice.Own) { // of one moment, the last of all
		f.keptChoice = kept
	}
	return f.done
}

// found returns the record that was found. A choice of this package alone then knows its record.
func (l *Learner) found(f *finding) ChoiceRecord {
	r := l.record(f.Answer)
	if answers.Alone(f.Answer) {
		r.Choice.details.kept.Store(&f.keptChoice)
	}
	return r
}

// A HistoryEntry is one outcome that was counted.
type HistoryEntry struct {
	Arm     ArmID  `json:"arm"`
	Session string `json:"session,omitempty"`
	Result
}

// Outcomes returns the outcomes of an item that the store still keeps, the last first: at most
// limit of them, or all if limit is 0. They are the evidence behind the beliefs about the item. The
// query's session and permitted arms are ignored.
func (l *Learner) Outcomes(ctx context.Context, q Query, limit int) (credits []HistoryEntry, err error) {
	defer because(&err, "outcomes")
	if err := q.validate(); err != nil {
		return nil, err
	}
	space := space{l.kinds, cells.Scope(q.Category, q.Context)}
	for _, arm := range l.cfg.Arms {
		n := 0
		for o, err := range l.cfg.Store.History(ctx, space.arm(q.Item, arm.ID)) {
			if err != nil {
				return nil, err
			}
			// The id of the evidence is the learner's, the choice's and the outcome's.
			_, id, _ := strings.Cut(strings.TrimPrefix(o.ID, l.cfg.Name+":"), ":")
			credits = append(credits, HistoryEntry{arm.ID, o.Session, Result{
				ID: id, Value: 2*o.Reward - 1, Confidence: massOf(&o), Channel: o.Channel, Source: o.Source, At: o.At,
			}})
			if n++; n == limit {
				break
			}
		}
	}
	slices.SortStableFunc(credits, func(a, b HistoryEntry) int { return b.At.Compare(a.At) })
	if limit > 0 && len(credits) > limit {
		credits = credits[:limit]
	}
	return credits, nil
}
