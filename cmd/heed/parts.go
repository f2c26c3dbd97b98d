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
	what  string // its name for people
	own   string // its name in the agent [defaultAgent]. Others put their name and a dot before it
	names func(context.Context, store.Store) ([]string, error)
	open  func(ctx context.Context, v *view.Source, name string) error // into v
}

var (
	learners = part{"learner", "strategy", strategy.Names,
		func(ctx context.Context, v *view.Source, name string) (err error) {
			v.Strategy, err = strategy.Open(ctx, strategy.Config{Store: v.Store, Name: name, Now: v.Now})
			return err
		}}
	modules = part{"module", "learning", learning.Names,
		func(ctx context.Context, v *view.Source, name string) (err error) {
			v.Learning, err = learning.Open(ctx, learning.Config{Store: v.Store, Name: name, Now: v.Now})
			return err
		}}
	recorders = part{"recorder", "patterns", patterns.Names,
		func(ctx context.Context, v *view.Source, name string) (err error) {
			v.Patterns, err = patterns.Open(ctx, patterns.Config{Store: v.Store, Name: name, Now: v.Now})
			return err
		}}
	// A store has the rules of one service, which has no name.
	services = part{"service of rules", "",
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

// with calls a function with the one that --agent names, or with the only one.
func (t part) with(s *session, do func(*view.Source) error) error {
	return s.with(func() error {
		v := s.source()
		name, err := t.chosen(s)
		if err == nil {
			err = t.opened(s, v, name)
		}
		if err != nil {
			return err
		}
		return do(v)
	})
}

// defaultAgent is the name of agents whose hosts set no name.
const defaultAgent = "loop"

// named returns the name of the one that an agent has, or that has the name itself because it is
// used without an agent. "" stands for the only one.
func (t part) named(agent string, names []string) (name string, ok bool) {
	if len(names) == 1 && (agent == "" || names[0] == "") {
		return names[0], true
	}
	known := []string{agent, agent + "." + t.own}
	if agent == defaultAgent {
		known = append(known, t.own)
	}
	for _, name := range known {
		if agent != "" && slices.Contains(names, name) {
			return name, true
		}
	}
	return "", false
}

// chosen returns the name of the one that --agent names, or of the only one.
func (t part) chosen(s *session) (string, error) {
	names, err := t.names(s.ctx, s.at.view)
	name, ok := t.named(s.Agent, names)
	switch {
	case err != nil || ok:
		return name, err
	case len(names) == 0:
		return "", t.none(s)
	case s.Agent == "":
		return "", &usageError{fmt.Sprintf("%s has %d %ss: choose one with --agent: %s", s.at.place,
			len(names), t.what, show(strings.Join(names, ", ")))}
	}
	return "", unknown(t.what, s.Agent, names, fmt.Sprintf("%s has %s: choose one with --agent",
		s.at.place, strings.Join(texts(names, strconv.Quote), ", ")))
}

// opened opens the one of a name.
func (t part) opened(s *session, v *view.Source, name string) error {
	err := t.open(s.ctx, v, name)
	if errors.Is(err, heed.ErrNotFound) {
		return t.none(s)
	}
	return err
}

func (t part) none(s *session) error {
	return fmt.Errorf("%w any %s in %s: check --db or HEED_DB", errNone, t.what, s.at.place)
}

// each opens all that hosts have opened, one after the other, or the one that --agent names. It
// calls a function with each and the words that choose it on the command line.
func (t part) each(s *session, do func(v *view.Source, words []string) error) error {
	names, err := t.names(s.ctx, s.at.view)
	if err != nil {
		return err
	}
	several := len(names) > 1
	if one, ok := t.named(s.Agent, names); s.Agent != "" {
		names = slices.DeleteFunc(names, func(name string) bool { return !ok || name != one })
	}
	for _, name := range names {
		v := s.source()
		if err := t.opened(s, v, name); errors.Is(err, errNone) {
			continue
		} else if err != nil {
			return err
		}
		var words []string
		if several {
			words = []string{"--agent=" + name}
		}
		if err := do(v, words); err != nil {
			return err
		}
	}
	return nil
}

// some opens what the agent of a source left, or in a store without agents the one that --agent
// names, or the only one. If there is none, the source has none.
func (t part) some(s *session, v *view.Source) error {
	names, err := t.names(s.ctx, v.Store)
	name, ok := t.named(cmp.Or(v.Name, s.Agent), names)
	switch {
	case err != nil || ok:
	case v.Name != "":
		return nil // the agent was made without it
	case len(names) == 1:
		name = names[0]
	default:
		name, err = t.chosen(s)
	}
	if err == nil {
		err = t.opened(s, v, name)
	}
	if errors.Is(err, errNone) {
		return nil
	}
	return err
}

// openParts opens the parts of the agent of a source.
func (s *session) openParts(v *view.Source) error {
	for _, t := range []part{learners, modules, recorders, services} {
		if err := t.some(s, v); err != nil {
			return err
		}
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
