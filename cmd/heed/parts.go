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
	modules = part{"module", "learning", settings.Names("learning/"),
		func(ctx context.Context, v *view.Source, name string) (err error) {
			v.Learning, err = learning.Open(ctx, learning.Config{Store: v.Store, Name: name, Now: v.Now})
			return err
		}}
	recorders = part{"recorder", "patterns", settings.Names("patterns/"),
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
		h, err := t.chosen(s)
		if err == nil {
			err = t.opened(s, v, h.name)
		}
		if err != nil {
			return err
		}
		return do(v)
	})
}

// defaultAgent is the name of agents whose hosts set no name.
const defaultAgent = "loop"

// A holding is one part in a store, with what to give as --agent for it: the agent that has it, or
// the name of a part that is used without an agent. The owner is ""
// if --agent can't choose the part, because an agent has the same name.
type holding struct{ name, owner string }

// holdings returns all parts of this sort.
func (t part) holdings(s *session) (all []holding, err error) {
	names, err := t.names(s.ctx, s.at.view)
	if err != nil || t.own == "" {
		for _, name := range names {
			all = append(all, holding{name, name})
		}
		return all, err
	}
	hosts, err := agents.names(s.ctx, s.at.view)
	for _, name := range names {
		h := holding{name, name}
		agent, is := strings.CutSuffix(name, "."+t.own)
		if name == t.own {
			agent, is = defaultAgent, true
		}
		if is && slices.Contains(hosts, agent) {
			h.owner = agent
		} else if slices.Contains(hosts, name) {
			h.owner = ""
		}
		all = append(all, h)
	}
	return all, err
}

// find returns what an agent has, and all. An empty name finds the only one.
func (t part) find(s *session, agent string) (h holding, ok bool, all []holding, err error) {
	all, err = t.holdings(s)
	if len(all) == 1 && (agent == "" || all[0].name == "") {
		return all[0], true, all, err
	}
	i := slices.IndexFunc(all, func(h holding) bool { return agent != "" && h.owner == agent })
	if i < 0 {
		return h, false, all, err
	}
	return all[i], true, all, err
}

// owners returns what --agent may name.
func owners(all []holding) []string {
	names := texts(all, func(h holding) string { return h.owner })
	slices.Sort(names)
	return slices.Compact(slices.DeleteFunc(names, func(name string) bool { return name == "" }))
}

// known refuses an --agent that is no agent, is used without one, or is in a rule.
func (s *session) known() error {
	if s.Agent == "" {
		return nil
	}
	var names []string
	for _, t := range []part{agents, learners, modules, recorders} {
		_, ok, all, err := t.find(s, s.Agent)
		if err != nil || ok {
			return err
		}
		names = append(names, owners(all)...)
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
	if err != nil {
		return nil, err
	}
	proposals, err := v.Proposals(s.ctx, view.RuleQuery{})
	all := v.Feedback.Config().Agents
	for _, r := range slices.Concat(rules.Items, proposals.Items) {
		all = append(all, r.Agents...)
	}
	return all, err
}

// chosen returns the one that --agent names, or the only one.
func (t part) chosen(s *session) (holding, error) {
	h, ok, all, err := t.find(s, s.Agent)
	switch {
	case err != nil || ok:
		return h, err
	case len(all) == 0:
		return h, t.none(s)
	case s.Agent == "":
		return h, &usageError{fmt.Sprintf("%s has %d %ss: choose one with --agent: %s", s.at.place,
			len(all), t.what, show(strings.Join(owners(all), ", ")))}
	}
	return h, s.unknown(t.what, owners(all))
}

// unknown reports that no thing is called as --agent is, and which names there are.
func (s *session) unknown(what string, names []string) error {
	slices.Sort(names)
	names = slices.Compact(names)
	see := fmt.Sprintf("%s has no agent: leave out --agent and HEED_AGENT", s.at.place)
	if len(names) > 0 {
		see = fmt.Sprintf("%s has %s: choose one with --agent", s.at.place,
			strings.Join(texts(names, strconv.Quote), ", "))
	}
	return unknown(what, s.Agent, see)
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

// each opens all that hosts have opened, one after the other, or the one that --agent names, and
// calls a function with each.
func (t part) each(s *session, do func(v *view.Source) error) error {
	one, ok, all, err := t.find(s, s.Agent)
	if err != nil {
		return err
	}
	if s.Agent != "" {
		all = slices.DeleteFunc(all, func(h holding) bool { return !ok || h != one })
	}
	for _, h := range all {
		v := s.source()
		if err := t.opened(s, v, h.name); errors.Is(err, errNone) {
			continue
		} else if err != nil {
			return err
		}
		if err := do(v); err != nil {
			return err
		}
	}
	return nil
}

// some opens what the agent of a source left, or in a store without agents the one that --agent
// names, or the only one. If there is none, the source has none.
func (t part) some(s *session, v *view.Source) error {
	agent := cmp.Or(v.Name, s.Agent)
	h, ok, _, err := t.find(s, agent)
	if err == nil && !ok {
		if agent != "" {
			return nil // the agent was made without it
		}
		h, err = t.chosen(s)
	}
	if err == nil {
		err = t.opened(s, v, h.name)
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
