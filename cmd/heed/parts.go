package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A part is what one package keeps in a store. It is opened with the settings of its host.
type part struct {
	what  string // its name for people
	own   string // its name in the agent [defaultAgent]. Others put their name and a dot before it
	names func(context.Context, store.Store) ([]string, error)
	open  func(ctx context.Context, v *view.Source, name string) error // into v
}

var (
	learners = part{"learner", "strategy", settings.Names("strategy/"),
		func(ctx context.Context, v *view.Source, name string) (err error) {
			v.Strategy, err = strategy.Open(ctx, strategy.Config{Store: v.Store, Name: name, Now: v.Now})
			return err
		}}
	modules = part{"agent with heuristics", "learning", settings.Names("learning/"),
		func(ctx context.Context, v *view.Source, name string) (err error) {
			v.Learning, err = learning.Open(ctx, learning.Config{Store: v.Store, Name: name, Now: v.Now})
			return err
		}}
	recorders = part{"agent with patterns", "patterns", settings.Names("patterns/"),
		func(ctx context.Context, v *view.Source, name string) (err error) {
			v.Patterns, err = patterns.Open(ctx, patterns.Config{Store: v.Store, Name: name, Now: v.Now})
			return err
		}}
	// A store has the rules of one service, which has no name.
	services = part{"service of rules", "", settings.Names("feedback"),
		func(ctx context.Context, v *view.Source, _ string) (err error) {
			v.Feedback, err = feedback.Open(ctx, feedback.Config{Store: v.Store, Now: v.Now})
			return err
		}}
)

// source returns an empty source of the open store.
func (s *session) source() *view.Source { return &view.Source{Store: s.at.view, Now: s.now} }

// errNone begins the error that no host left records to look at.
var errNone = errors.New("no host has opened")

// defaultAgent is the name of agents whose hosts set no name.
const defaultAgent = "loop"

// find returns the names of the parts of this sort that an agent has, or of all without an agent,
// and what may be given as --agent: the agents that have one, and the names of those that are used
// without an agent. A part of the last sort that is named like an agent can't be chosen.
func (t part) find(s *session, agent string) (found, known []string, err error) {
	names, err := t.names(s.ctx, s.at.view)
	var hosts []string
	if err == nil && t.own != "" {
		hosts, err = agents.names(s.ctx, s.at.view)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		owner, has := strings.CutSuffix(name, "."+t.own)
		if name == t.own {
			owner, has = defaultAgent, true
		}
		switch {
		case has && slices.Contains(hosts, owner):
		case slices.Contains(hosts, name):
			owner = ""
		default:
			owner = name
		}
		if agent == "" || agent == owner || name == "" {
			found = append(found, name)
		}
		if owner != "" {
			known = append(known, owner)
		}
	}
	slices.Sort(known)
	return found, slices.Compact(known), nil
}

// with calls a function with the one that --agent names, or with the only one.
func (t part) with(s *session, do func(*view.Source) error) error {
	return s.with(func() error {
		v := s.source()
		has, known, err := t.choose(s, v)
		switch {
		case err != nil:
			return err
		case has:
			return do(v)
		case len(known) > 0:
			return s.unknown(t.what, known)
		}
		return fmt.Errorf("%w any %s in %s: check --db or HEED_DB", errNone, t.what, s.at.place)
	})
}

// choose opens what the agent of a source left, or in a store without agents the one that --agent
// names, or the only one. It reports whether there is one, and what may be given as --agent.
func (t part) choose(s *session, v *view.Source) (has bool, known []string, _ error) {
	found, known, err := t.find(s, cmp.Or(v.Name, s.Agent))
	if len(found) > 1 {
		err = &usageError{fmt.Sprintf("%s has more than one %s: choose one with --agent: %s",
			s.at.place, t.what, show(strings.Join(known, ", ")))}
	}
	if err != nil || len(found) == 0 {
		return false, known, err
	}
	return true, known, t.open(s.ctx, v, found[0])
}

// some is choose for a source that may stay without this part.
func (t part) some(s *session, v *view.Source) error {
	_, _, err := t.choose(s, v)
	return err
}

// known refuses an --agent that is no agent, is used without one, or is in a rule.
func (s *session) known() error {
	if s.Agent == "" {
		return nil
	}
	var names []string
	for _, t := range []part{agents, learners, modules, recorders} {
		found, known, err := t.find(s, s.Agent)
		if err != nil || len(found) > 0 {
			return err
		}
		names = append(names, known...)
	}
	ruled, err := s.ruled()
	if names = append(names, ruled...); err != nil || slices.Contains(names, s.Agent) {
		return err
	}
	return s.unknown("agent", names)
}

// ruled returns the agents that the rules and proposals of the store are for.
func (s *session) ruled() ([]string, error) {
	v := s.source()
	if err := services.some(s, v); err != nil || v.Feedback == nil {
		return nil, err
	}
	rules, err := v.Rules(s.ctx, view.RuleQuery{})
	proposals, failure := v.Proposals(s.ctx, view.RuleQuery{})
	all := v.Feedback.Config().Agents
	for _, r := range slices.Concat(rules.Items, proposals.Items) {
		all = append(all, r.Agents...)
	}
	return all, cmp.Or(err, failure)
}

// unknown reports that no thing is called as --agent is, and which names there are.
func (s *session) unknown(what string, names []string) error {
	slices.Sort(names)
	names = slices.Compact(names)
	see := fmt.Sprintf("%s has no agent: leave out --agent and HEED_AGENT", s.at.place)
	if len(names) > 0 {
		see = fmt.Sprintf("%s has %s: choose one with --agent%s", s.at.place, someOf(names),
			s.orBegin())
	}
	return unknown(what, s.Agent, see)
}

// each opens all that hosts have opened, one after the other, or the one that --agent names, and
// calls a function with each. It goes on after damage, and returns the first error.
func (t part) each(s *session, do func(v *view.Source) error) error {
	found, _, first := t.find(s, s.Agent)
	for _, name := range found {
		v := s.source()
		err := t.open(s.ctx, v, name)
		if err == nil {
			err = do(v)
		}
		if err != nil && !errors.Is(err, heed.ErrDamaged) {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
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

// unknown reports that there is no thing of this name, and where the names are.
func unknown(what, name, see string) error {
	return fmt.Errorf("there is no %s %q: %s", what, name, see)
}

// found returns what a read by an id returned, with errors for people.
func found[T any](what, id, see string, read func(id string) (T, error)) (one T, err error) {
	if id == "" {
		return one, &usageError{"which " + what + "? The id is empty"}
	}
	one, err = read(id)
	if errors.Is(err, heed.ErrDamaged) {
		err = fmt.Errorf("the %s %s is damaged: see heed doctor", what, show(id))
	} else if errors.Is(err, heed.ErrNotFound) {
		err = unknown(what, id, see)
	}
	return one, err
}
