package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/stream"
)

const day, month = 24 * time.Hour, 30 * 24 * time.Hour

// waiting is how long an event may wait before somebody should look, and deliveries how often it may be delivered.
const waiting, deliveries = time.Hour, 3

// A recordSize counts the records of one kind.
type recordSize struct {
	Kind    string `json:"kind"`
	Records int    `json:"records"`
}

// records reads every record, by its kind.
func (d *diagnosis) records(s *session, st *opened) error {
	status, err := st.store.Status(s.ctx)
	if err != nil {
		return err
	}
	for _, kind := range status.Kinds {
		size, overdue := recordSize{Kind: kind.Name}, 0
		for r, err := range st.store.Find(s.ctx, store.Query{Kind: kind.Name}) {
			if errors.Is(err, heed.ErrDamaged) {
				d.fault("%v: restore the store from a copy", err)
				break
			}
			if err != nil {
				return err
			}
			size.Records++
			if kind.Limits.For > 0 && s.now().Sub(r.At) > kind.Limits.For+day {
				overdue++
			}
		}
		if size.Records > 0 {
			d.Records = append(d.Records, size)
		}
		if overdue > 0 {
			d.stale(overdue, kind.Name, kind.Limits.For)
		}
	}
	return nil
}

// A checked is what a package keeps in a store, as far as it can tell which records are damaged.
type checked interface {
	Damaged(context.Context) ([]store.Ref, error)
}

// values reads the records of each package as the package's own types, and names those that are damaged.
func (d *diagnosis) values(s *session, st *opened) error {
	decider, err := decision.New(s.ctx, decision.Config{Store: st.store})
	if err != nil {
		return err
	}
	all := []checked{decider}
	for _, add := range []error{add(&all, learners, s, st), add(&all, modules, s, st), add(&all, recorders, s, st), add(&all, services, s, st)} {
		if errors.Is(add, heed.ErrDamaged) {
			d.fault("%v: restore it from a copy", add)
		} else if add != nil {
			return add
		}
	}
	var damaged []store.Ref
	for _, one := range all {
		refs, err := one.Damaged(s.ctx)
		if err != nil {
			return err
		}
		damaged = append(damaged, refs...)
	}
	slices.SortFunc(damaged, func(a, b store.Ref) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	for _, ref := range slices.Compact(damaged) { // learners share their records
		d.fault("record %s of %s is damaged, as heed has not written what is in there: restore it from a copy", show(ref.ID), show(ref.Kind))
	}
	return nil
}

// add opens all that one package keeps in a store.
func add[T checked](all *[]checked, t tool[T], s *session, st *opened) error {
	names, err := t.names(s.ctx, st.store)
	for _, name := range names {
		one, err := t.one(s, st, name)
		if err != nil && !errors.Is(err, errNone) {
			return err
		}
		if err == nil {
			*all = append(*all, one)
		}
	}
	return err
}

// stale warns of what should have been dropped a day ago.
func (d *diagnosis) stale(n int, of string, limit time.Duration) {
	d.warning("%s of %s longer than %s: does the host call Sweep of its store, or is its limit longer?",
		plural(n, "is kept", "are kept"), show(of), plural(int(limit/day), "day", "days"))
}

// everything reads all that a dump has, and counts what should be gone from it.
func (d *diagnosis) everything(s *session, st *opened) error {
	overdue := map[string]int{}
	limit := s.now().Add(-month - day).UnixMicro()
	for r, err := range st.rows(s.ctx) {
		switch {
		case s.ctx.Err() != nil:
			return s.ctx.Err()
		case err != nil:
			if d.faults() == 0 {
				d.fault("not everything can be read: %v", err)
			}
			return nil
		case r.Observation != nil && int64(r.Observation.Recorded) < limit:
			overdue["the history"]++
		case r.ID != nil && int64(r.ID.Recorded) < limit:
			overdue["the ids"]++
		}
	}
	for _, of := range slices.Sorted(maps.Keys(overdue)) {
		d.stale(overdue[of], of, month)
	}
	return nil
}

// events looks at what waits to be published.
func (d *diagnosis) events(s *session, st *opened) error {
	n, oldest := 0, time.Time{}
	for e, err := range stream.Waiting(s.ctx, st.store) {
		if err != nil {
			return err
		}
		if n++; n == 1 {
			oldest = e.At
		}
	}
	if n > 0 && s.now().Sub(oldest) > waiting {
		d.warning("%s in the outbox, the first since %s: does a relay run?", plural(n, "event waits", "events wait"), moment(oldest))
	}
	status, err := st.store.Status(s.ctx)
	for _, inbox := range status.Inboxes {
		if inbox.Deliveries > deliveries {
			d.warning("inbox %s has an event that was delivered %d times: see what its consumer logs", show(inbox.Name), inbox.Deliveries)
		}
	}
	return err
}

// choices looks at the choices that have waited for an outcome for more than two days.
func (d *diagnosis) choices(s *session, st *opened) error {
	names, err := strategy.Names(s.ctx, st.store)
	if err != nil {
		return err
	}
	n := 0
	for _, name := range names {
		learner, err := learners.one(s, st, name)
		if err != nil {
			return err
		}
		for _, err := range learner.History(s.ctx, strategy.ChoiceFilter{Stage: strategy.Pending, Until: s.now().Add(-2 * day)}) {
			if errors.Is(err, heed.ErrNotFound) {
				break
			}
			if err != nil {
				return err
			}
			n++
		}
	}
	if n > 0 {
		d.warning("%s for an outcome for more than two days: does the host call Learner.Sweep?", plural(n, "choice waits", "choices wait"))
	}
	return nil
}

// placeOf names the part of a store that a row is in, for people.
func placeOf(r dump.Row) string {
	switch {
	case r.Record != nil:
		return r.Record.Kind
	case r.Observation != nil:
		return "observations"
	case r.Tally != nil, r.Cell != nil:
		return "evidence"
	}
	return fmt.Sprintf("%T", r)
}
