package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A part is what one package keeps in a store. It is opened with the settings that its host has
// left there.
type part struct {
	what  string // its name, and the name of the flag that chooses one
	names func(context.Context, store.Store) ([]string, error)
	open  func(ctx context.Context, v *view.Source, name string) error // into v
}

var (
	learners = part{"learner", strategy.Names,
		func(ctx context.Context, v *view.Source, name string) (err error) {
			v.Strategy, err = strategy.Open(ctx, strategy.Config{Store: v.Store, Name: name, Now: v.Now})
			return err
		}}
	modules = part{"module", learning.Names,
		func(ctx context.Context, v *view.Source, name string) (err error) {
			v.Learning, err = learning.Open(ctx, learning.Config{Store: v.Store, Name: name, Now: v.Now})
			return err
		}}
	recorders = part{"recorder", patterns.Names,
		func(ctx context.Context, v *view.Source, name string) (err error) {
			v.Patterns, err = patterns.Open(ctx, patterns.Config{Store: v.Store, Name: name, Now: v.Now})
			return err
		}}
	// A store has the rules of one service, which has no name.
	services = part{"service of rules",
		func(context.Context, store.Store) ([]string, error) { return []string{""}, nil },
		func(ctx context.Context, v *view.Source, _ string) (err error) {
			v.Feedback, err = feedback.Open(ctx, feedback.Config{Store: v.Store, Now: v.Now})
			return err
		}}
)

// source returns an empty source of the open store.
func (s *session) source() *view.Source { return &view.Source{Store: s.at.view, Now: s.now} }

// errNone begins the error that no host left records to look at.
var errNone = errors.New("no host has opened")

// with calls a function with the one of a name, or with the only one.
func (t part) with(s *session, name string, do func(*view.Source) error) error {
	return s.with(func() error {
		v := s.source()
		if err := t.one(s, v, name); err != nil {
			return err
		}
		return do(v)
	})
}

// named is with, of a name.
func (t part) named(s *session, name string) func(func(*view.Source) error) error {
	return func(do func(*view.Source) error) error { return t.with(s, name, do) }
}

// one opens the one of a name, or the only one.
func (t part) one(s *session, v *view.Source, name string) error {
	names, err := t.names(s.ctx, v.Store)
	none := fmt.Errorf("%w any %s in %s: check --db or HEED_DB", errNone, t.what, s.at.place)
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return none
	case name == "" && len(names) > 1:
		return &usageError{fmt.Sprintf("%s has %d %ss: choose one with --%s: %s", s.at.place,
			len(names), t.what, t.what, show(strings.Join(names, ", ")))}
	case name != "" && !slices.Contains(names, name):
		return unknown(t.what, name, names, fmt.Sprintf("%s has %s: choose one with --%s",
			s.at.place, strings.Join(texts(names, strconv.Quote), ", "), t.what))
	}
	if err = t.open(s.ctx, v, cmp.Or(name, names[0])); errors.Is(err, heed.ErrNotFound) {
		err = none
	}
	return err
}

// each opens all that hosts have opened, one after the other, and calls a function with each and
// the words that choose it on the command line.
func (t part) each(s *session, do func(v *view.Source, words []string) error) error {
	names, err := t.names(s.ctx, s.at.view)
	if err != nil {
		return err
	}
	for _, name := range names {
		v := s.source()
		if err := t.one(s, v, name); errors.Is(err, errNone) {
			continue
		} else if err != nil {
			return err
		}
		var words []string
		if len(names) > 1 {
			words = []string{"--" + t.what + "=" + name}
		}
		if err := do(v, words); err != nil {
			return err
		}
	}
	return nil
}

// defaultAgent is the name of agents whose hosts set no name.
const defaultAgent = "loop"

// openParts opens what the agent of a source left, or in a store without agents the only learner,
// module and recorder. A learner may be named.
func (s *session) openParts(v *view.Source, learner string) error {
	for _, of := range []struct {
		part
		own, named string
	}{{learners, "strategy", learner}, {modules, "learning", ""}, {recorders, "patterns", ""}} {
		name := cmp.Or(of.named, of.own)
		if of.named == "" && v.Name != "" && v.Name != defaultAgent {
			name = v.Name + "." + of.own
		}
		names, err := of.names(s.ctx, v.Store)
		switch {
		case err != nil:
			return err
		case of.named != "" || slices.Contains(names, name):
		case v.Name != "":
			continue // the agent was made without it
		default:
			name = ""
		}
		if err := of.one(s, v, name); err != nil && (of.named != "" || !errors.Is(err, errNone)) {
			return err
		}
	}
	if err := services.one(s, v, ""); err != nil && !errors.Is(err, errNone) {
		return err
	}
	return nil
}

// unknown reports that there is no thing of this name, and which of some names begin like it.
func unknown(what, name string, names []string, see string) error {
	alike := func(other string) (n int) {
		for n < min(len(name), len(other)) && strings.EqualFold(name[:n+1], other[:n+1]) {
			n++
		}
		return n
	}
	near := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(names))),
		func(other string) bool { return alike(other) < (len(name)+1)/2 })
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(alike(b), alike(a)) })
	if len(near) > 0 {
		near = texts(near[:min(len(near), 3)], strconv.Quote)
		see = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("there is no %s %q: %s", what, name, see)
}

// found returns what a read by an id returned, with errors for people. If no record has the id, it
// looks for the only one of all whose id begins with it, and reads that one.
func found[T, N any](
	what, id, see string, read func(id string) (T, error), all func() ([]N, error),
	idOf func(N) string,
) (one T, err error) {
	if id == "" {
		return one, &usageError{"which " + what + "? The id is empty"}
	}
	one, err = read(id)
	if errors.Is(err, heed.ErrDamaged) {
		return one, fmt.Errorf("the %s %s is damaged: see heed doctor", what, show(id))
	}
	if !errors.Is(err, heed.ErrNotFound) {
		return one, err
	}
	everyone, err := all()
	if err != nil {
		return one, err
	}
	names := texts(everyone, idOf)
	slices.Sort(names)
	names = slices.Compact(names)
	begun := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !strings.HasPrefix(name, id)
	})
	switch {
	case len(begun) == 0:
		return one, unknown(what, id, names, see)
	case len(begun) > 1:
		few := strings.Join(begun[:min(len(begun), 5)], ", ")
		return one, fmt.Errorf("%d ids begin with %q: give more of it (%s)", len(begun), id, show(few))
	}
	return read(begun[0])
}
