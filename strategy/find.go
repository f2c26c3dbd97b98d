package strategy

import (
	"context"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
)

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
