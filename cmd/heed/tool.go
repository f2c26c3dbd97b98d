package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A tool opens what one package keeps in a store, with the settings that its host has left there.
type tool[T any] struct {
	what  string // it is called
	flag  string // which names one
	names func(context.Context, store.Store) ([]string, error)
	open  func(ctx context.Context, st store.Store, name string, now func() time.Time) (T, error)
}

var (
	learners = tool[*strategy.Learner]{"learner", "learner", strategy.Names,
		func(ctx context.Context, st store.Store, name string, now func() time.Time) (*strategy.Learner, error) {
			return strategy.Open(ctx, strategy.Config{Store: st, Name: name, Now: now})
		}}
	modules = tool[*learning.Module]{"module", "module", learning.Names,
		func(ctx context.Context, st store.Store, name string, now func() time.Time) (*learning.Module, error) {
			return learning.Open(ctx, learning.Config{Store: st, Name: name, Now: now})
		}}
	recorders = tool[*patterns.Recorder]{"recorder", "recorder", patterns.Names,
		func(ctx context.Context, st store.Store, name string, now func() time.Time) (*patterns.Recorder, error) {
			return patterns.Open(ctx, patterns.Config{Store: st, Name: name, Now: now})
		}}
	// A store has the rules of one service, which has no name.
	services = tool[*feedback.Service]{"service of rules", "", func(context.Context, store.Store) ([]string, error) { return []string{""}, nil },
		func(ctx context.Context, st store.Store, _ string, now func() time.Time) (*feedback.Service, error) {
			return feedback.Open(ctx, feedback.Config{Store: st, Now: now})
		}}
)

// errNone begins the error that says that no host has left anything to look at.
var errNone = errors.New("no host has opened")

// with calls a function with the one of a name, or with the only one.
func (t tool[T]) with(s *session, name string, do func(*opened, T) error) error {
	return s.with(func(st *opened) error {
		one, err := t.one(s, st, name)
		if err != nil {
			return err
		}
		return do(st, one)
	})
}

// one opens the one of a name, or the only one.
func (t tool[T]) one(s *session, st *opened, name string) (one T, err error) {
	names, err := t.names(s.ctx, st.store)
	article := "a"
	if strings.ContainsAny(t.what[:1], "aeiou") {
		article = "an"
	}
	none := fmt.Errorf("%w %s %s in %s: check --db or HEED_DB", errNone, article, t.what, st.place)
	switch {
	case err != nil:
		return one, err
	case len(names) == 0:
		return one, none
	case name == "" && len(names) > 1:
		return one, &usageError{fmt.Sprintf("%s has %d %ss: choose one with --%s: %s", st.place, len(names), t.what, t.flag, show(strings.Join(names, ", ")))}
	case name != "" && !slices.Contains(names, name):
		return one, unknown(t.what, name, names, fmt.Sprintf("%s has %s: choose one with --%s", st.place, strings.Join(quoted(names), ", "), t.flag))
	}
	one, err = t.open(s.ctx, st.store, cmp.Or(name, names[0]), s.now)
	if errors.Is(err, heed.ErrNotFound) {
		err = none
	}
	return one, err
}

// answerList writes a list that was read. It is empty if there is nothing to read from yet. Flags are those that leave things
// out, each a name and a value. Notes are written below.
func answerList[T any](s *session, all []T, err error, what string, flags []string, print func(*printer, []T), notes ...string) error {
	if err != nil && !errors.Is(err, errNone) {
		return err
	}
	if all == nil {
		all = []T{} // null in JSON otherwise
	}
	return s.answer(all, func(p *printer) {
		if len(all) == 0 {
			p.nothing(what, flags...)
		} else {
			print(p, all)
		}
		p.note(strings.Join(notes, "\n"))
	})
}
