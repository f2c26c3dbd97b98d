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

// named returns the names of all, and the one that an agent has. Without an agent of the name, it
// is the one with the name itself. An empty name finds the only one.
func (t part) named(s *session, agent string) (name string, ok bool, names []string, err error) {
	if names, err = t.names(s.ctx, s.at.view); err != nil {
		return "", false, nil, err
	}
	if len(names) == 1 && (agent == "" || names[0] == "") {
		return names[0], true, names, nil
	}
	known := []string{agent + "." + t.own, agent}
	if agent == defaultAgent {
		known[0] = t.own
	}
	if t.own == "" {
		known[0] = agent
	} else if hosts, err := agents.names(s.ctx, s.at.view); err != nil {
		return "", false, nil, err
	} else if slices.Contains(hosts, agent) {
		known = known[:1] // the name itself may be of what another agent has
	}
	for _, name := range known {
		if agent != "" && slices.Contains(names, name) {
			return name, true, names, nil
		}
	}
	return "", false, names, nil
}

// words returns what to give as --agent for each of some names: the agent that has it, if any.
func (t part) words(s *session, names []string) []string {
	hosts, _ := agents.names(s.ctx, s.at.view) // without them, the names are their own words
	return texts(names, func(name string) string {
		agent, ok := strings.CutSuffix(name, "."+t.own)
		if name == t.own {
			agent, ok = defaultAgent, true
		}
		if ok && slices.Contains(hosts, agent) {
			return agent
		}
		return name
	})
}

// known refuses an --agent that is no agent, is used without one, or is in a rule.
func (s *session) known() error {
	if s.Agent == "" {
		return nil
	}
	var all []string
	for _, t := range []part{agents, learners, modules, recorders} {
		_, ok, names, err := t.named(s, s.Agent)
		if err != nil || ok {
			return err
		}
		all = append(all, t.words(s, names)...)
	}
	ruled, err := s.ruled()
	if all = append(all, ruled...); err != nil || slices.Contains(all, s.Agent) {
		return err
	}
	return s.unknown("agent", all)
}

// ruled returns the agents that the rules and proposals of the store are for.
func (s *session) ruled() ([]string, error) {
	v := s.source()
	if err := services.some(s, v); err != nil || v.Feedback == nil {
		return nil, err
	}
	rules, err := v.Feedback.Rules().List(s.ctx, feedback.RuleQuery{})
	if err != nil {
		return nil, err
	}
	proposals, _, err := v.Feedback.Rules().Proposals(s.ctx, feedback.ProposalQuery{}, 0)
	all := v.Feedback.Config().Agents
	for i := range rules {
		all = append(all, rules[i].Agents...)
	}
	for i := range proposals {
		all = append(all, proposals[i].Agents...)
	}
	return all, err
}

// chosen returns the name of the one that --agent names, or of the only one.
func (t part) chosen(s *session) (string, error) {
	name, ok, names, err := t.named(s, s.Agent)
	switch {
	case err != nil || ok:
		return name, err
	case len(names) == 0:
		return "", t.none(s)
	case s.Agent == "":
		return "", &usageError{fmt.Sprintf("%s has %d %ss: choose one with --agent: %s", s.at.place,
			len(names), t.what, show(strings.Join(t.words(s, names), ", ")))}
	}
	return "", s.unknown(t.what, t.words(s, names))
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

// each opens all that hosts have opened, one after the other, or the one that --agent names. It
// calls a function with each and the words that choose it on the command line.
func (t part) each(s *session, do func(v *view.Source, words []string) error) error {
	one, ok, names, err := t.named(s, s.Agent)
	if err != nil {
		return err
	}
	several := len(names) > 1
	if s.Agent != "" {
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
			words = []string{"--agent=" + t.words(s, []string{name})[0]}
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
	name, ok, _, err := t.named(s, cmp.Or(v.Name, s.Agent))
	switch {
	case err != nil || ok:
	case v.Name != "" || s.Agent != "":
		return nil // the agent was made without it
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
