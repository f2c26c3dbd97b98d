package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed/strategy"
)

// strategyCommands look at what learners of package strategy believe.
type strategyCommands struct {
	Learner string `complete:"learner" placeholder:"NAME" help:"Which learner, where the store has more than one."`

	Status        strategyStatus        `cmd:"" help:"Sum up each learner."`
	Distributions strategyDistributions `cmd:"" help:"List the segments: categories and contexts that have outcomes."`
	Show          strategyShow          `cmd:"" help:"Show what is believed in a category: arms, parameters, items."`
	Item          strategyItem          `cmd:"" aliases:"learning" help:"Show what is believed of an item, beside its segment."`
	History       strategyHistory       `cmd:"" help:"List what was chosen for an item, and what came of it."`
	Reset         strategyReset         `cmd:"" help:"Forget what was learned in a category."`
	ResetItem     strategyResetItem     `cmd:"" name:"reset-item" aliases:"reset-learning" help:"Forget what was learned of an item."`
	Rebuild       strategyRebuild       `cmd:"" help:"Keep what was learned with another half-life, or with sources apart."`
}

func (strategyCommands) Help() string {
	return `Examples:

    heed --db agent.db strategy status
    heed --db agent.db strategy show correction --context interactive
    heed --db agent.db strategy item prefer-tabs

Each learner is shown as its host has configured it: the store has its arms, its weights and its settings.`
}

// A view is a learner over an open store, made to look at what one of this name has learned there.
type view struct {
	*strategy.Learner
	*opened
	name   string
	copies bool // items specialise by a copy of their segment
}

// learners returns the names of the learners that a store knows, in order.
func (s *session) learners(st *opened) ([]string, error) {
	names, err := strategy.Names(s.ctx, st.store)
	return names, st.explain(err)
}

// view opens the learner that was asked for, or the only one.
func (c *strategyCommands) view(s *session) (*view, error) {
	st, err := s.open()
	if err != nil {
		return nil, err
	}
	v, err := c.viewOf(s, st)
	if err != nil {
		st.close()
	}
	return v, err
}

func (c *strategyCommands) viewOf(s *session, st *opened) (*view, error) {
	names, err := s.learners(st)
	if err != nil {
		return nil, err
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("no learner has outcomes in %s yet: let its host run", st)
	case c.Learner == "" && len(names) > 1:
		return nil, &usageError{fmt.Sprintf("%s has %d learners: choose one with --learner: %s", st, len(names), show(strings.Join(names, ", ")))}
	case c.Learner == "":
		return c.named(s, st, names[0])
	case !slices.Contains(names, c.Learner):
		return nil, unknown("learner", c.Learner, names, "heed strategy status lists them")
	}
	return c.named(s, st, c.Learner)
}

// named opens a learner as its host has configured it.
func (c *strategyCommands) named(s *session, st *opened, name string) (*view, error) {
	learner, err := strategy.Open(s.ctx, strategy.Config{Store: st.store, Name: name, Now: s.now})
	if err != nil {
		return nil, st.explain(err)
	}
	_, copies := learner.Config().Pooling.(strategy.Specializer)
	return &view{learner, st, name, copies}, nil
}

// A segment is a category in a context.
type segment struct{ category, context string }

// distributions returns what is believed in all segments.
func (v *view) distributions(s *session) (all []strategy.Distribution, err error) {
	for d, err := range v.Distributions(s.ctx) {
		if err != nil {
			return nil, v.explain(err)
		}
		all = append(all, d)
	}
	return all, nil
}

// segments returns the segments of a category, or of all where it is empty, in one context or in all.
func (v *view) segments(s *session, category string, context *string) ([]strategy.Distribution, error) {
	all, err := v.distributions(s)
	if err != nil {
		return nil, err
	}
	var categories, contexts []string
	var found []strategy.Distribution
	for _, d := range all {
		categories = append(categories, d.Category)
		if d.Category != category {
			continue
		}
		contexts = append(contexts, d.Context)
		if context == nil || d.Context == *context {
			found = append(found, d)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(contexts) > 0:
		return nil, unknown("context", *context, contexts, fmt.Sprintf("category %q has %s", category, strings.Join(quoted(contexts), ", ")))
	}
	return nil, unknown("category", category, categories, "heed strategy distributions lists them")
}

func quoted(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = fmt.Sprintf("%q", text)
	}
	return all
}

// An itemFilter says where an item is looked for.
type itemFilter struct {
	Category *string `complete:"category" placeholder:"NAME" help:"In this category alone."`
	Context  *string `complete:"context" placeholder:"NAME" help:"In this context alone."`
}

// find returns the segments in which an item has outcomes.
func (f *itemFilter) find(s *session, v *view, item string) (found []segment, err error) {
	all, err := v.distributions(s)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range all {
		if f.Category != nil && d.Category != *f.Category || f.Context != nil && d.Context != *f.Context {
			continue
		}
		for _, standing := range d.Standings {
			names = append(names, standing.Item)
			if standing.Item == item {
				found = append(found, segment{d.Category, d.Context})
			}
		}
	}
	if len(found) == 0 {
		return nil, unknown("item", item, names, "no item of that name has outcomes; heed strategy show lists the items of a category")
	}
	return found, nil
}
