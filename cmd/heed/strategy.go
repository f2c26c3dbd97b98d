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
	Config  string `type:"path" placeholder:"FILE" help:"The TOML file that configures the learner: its section [plugins.groove.strategy]."`

	Status        strategyStatus        `cmd:"" help:"Sum up each learner."`
	Distributions strategyDistributions `cmd:"" help:"List the segments: categories and contexts that have outcomes."`
	Show          strategyShow          `cmd:"" help:"Show what is believed in a category: arms, parameters, items."`
	Item          strategyItem          `cmd:"" aliases:"learning" help:"Show what is believed of an item, beside its segment."`
	History       strategyHistory       `cmd:"" help:"List what was chosen for an item, and what came of it."`
	Reset         strategyReset         `cmd:"" help:"Forget what was learned in a category."`
	ResetItem     strategyResetItem     `cmd:"" name:"reset-item" aliases:"reset-learning" help:"Forget what was learned of an item."`
}

func (strategyCommands) Help() string {
	return `Examples:

    heed --db agent.db strategy status
    heed --db agent.db strategy show correction --context interactive
    heed --db agent.db strategy --config agent.toml item prefer-tabs

Arms, their order and their parameters are taken from the store. What it does not hold (weights of a cold start, thresholds) is
taken from --config, or is the default. It reads, with any of these, which are the defaults of the section but for examples:

    [plugins.groove.strategy]
    enabled = true
    [plugins.groove.strategy.sampling]
    initial_alpha = 1.0
    initial_beta = 1.0
    exploration_bonus = 0.1    # an example: there is none
    min_samples_for_confidence = 5
    [plugins.groove.strategy.hierarchy]
    specialization_threshold = 20
    specialization_confidence = 0.6
    [plugins.groove.strategy.outcome]
    attribution_weight = 0.7
    direct_weight = 0.3
    min_outcome_confidence = 0.3
    [plugins.groove.strategy.cache]
    ttl_seconds = 3600
    [plugins.groove.strategy.defaults]
    default_strategy = "Deferred"
    default_trigger = "Explicit"
    [plugins.groove.strategy.defaults.initial_weights]
    MainContext = 0.3
    Subagent = 0.2
    BackgroundSubagent = 0.1
    Deferred = 0.4`
}

// A view is a learner over an open store, made to look at what one of this name has learned there.
type view struct {
	*strategy.Learner
	*opened
	name   string
	copies bool // items specialise by a copy of their segment
}

// learners returns the names of the learners that a store knows, in order.
func (s *session) learners(st *opened) (names []string, err error) {
	if names, err = st.named(s, strategy.ArmKind("x")); err != nil || len(names) > 0 {
		return names, err
	}
	for record, err := range st.choices.List(s.ctx, strategy.ChoiceFilter{Limit: recentChoices}) {
		if err != nil {
			return nil, st.explain(err)
		}
		names = append(names, record.Choice.Learner())
	}
	slices.Sort(names)
	return slices.Compact(names), nil
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

// named makes a learner of this name, with the arms that the store knows.
func (c *strategyCommands) named(s *session, st *opened, name string) (*view, error) {
	cfg, err := readStrategy(s, c.Config)
	if err != nil {
		return nil, err
	}
	cfg.Name, cfg.Store, cfg.Choices, cfg.Now = name, st.evidence, st.choices, s.now
	arms, err := s.arms(st, name)
	if err != nil {
		return nil, err
	}
	cfg.Arms = weigh(arms, cfg.Arms)
	if !slices.ContainsFunc(cfg.Arms, func(a strategy.Arm) bool { return a.ID == cfg.Default }) {
		cfg.Default = ""
	}
	if cfg.Pooling == nil {
		given, err := s.gives(st, name)
		if err != nil {
			return nil, err
		}
		if given {
			cfg.Pooling = strategy.SpecConfig().Pooling
		}
	}
	learner, err := strategy.New(cfg)
	if err != nil {
		return nil, keyFaults(c.Config, strategyPath, strategySection{}, err)
	}
	_, copies := learner.Config().Pooling.(strategy.Specializer)
	return &view{learner, st, name, copies}, nil
}

// gives reports whether items of a learner were given copies of their segments, as the pooling of the Adaptive Strategies
// design has it.
func (s *session) gives(st *opened, name string) (bool, error) {
	for _, err := range st.evidence.Scopes(s.ctx, strings.TrimSuffix(strategy.ArmKind(name), "arm")+"given") {
		return err == nil, st.explain(err)
	}
	return false, nil
}

// recentChoices is how many choices are looked at to learn which arms there are.
const recentChoices = 200

// arms returns a learner's arms in its own order, as far as its choices tell it, and then those that have outcomes besides.
func (s *session) arms(st *opened, name string) ([]strategy.Arm, error) {
	stored, err := strategy.StoredArms(s.ctx, st.evidence, name)
	if err != nil {
		return nil, st.explain(err)
	}
	var order []strategy.ArmID
	for record, err := range st.choices.List(s.ctx, strategy.ChoiceFilter{Learner: name, Limit: recentChoices}) {
		if err != nil {
			return nil, st.explain(err)
		}
		var drawn []strategy.ArmID
		for draw := range record.Choice.Draws() {
			drawn = append(drawn, draw.Arm)
		}
		if len(drawn) > len(order) {
			order = drawn
		}
	}
	if len(order) == 0 { // then as the catalogue has them, if they are from there
		for _, arm := range strategy.Injection(strategy.InjectionConfig{}) {
			order = append(order, arm.ID)
		}
		order = slices.DeleteFunc(order, func(id strategy.ArmID) bool {
			return !slices.ContainsFunc(stored, func(a strategy.Arm) bool { return a.ID == id })
		})
	}
	var arms []strategy.Arm
	for _, id := range order {
		arm := strategy.Arm{ID: id}
		if i := slices.IndexFunc(stored, func(a strategy.Arm) bool { return a.ID == id }); i >= 0 {
			arm = stored[i]
			stored = slices.Delete(stored, i, i+1)
		}
		arms = append(arms, arm)
	}
	return append(arms, stored...), nil
}

// weigh gives arms the weights that are configured; and where none are, those of the catalogue if they are its arms.
func weigh(arms, configured []strategy.Arm) []strategy.Arm {
	if configured == nil {
		configured = strategy.Injection(strategy.InjectionConfig{})
	}
	weights := make(map[strategy.ArmID]float64)
	for _, arm := range configured {
		weights[arm.ID] = arm.Weight
	}
	for i := range arms {
		arms[i].Weight = weights[arms[i].ID]
	}
	if slices.ContainsFunc(arms, func(a strategy.Arm) bool { return a.Weight == 0 }) {
		for i := range arms {
			arms[i].Weight = 0
		}
	}
	return arms
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
		standings, err := v.Standings(s.ctx, d.Category, d.Context)
		if err != nil {
			return nil, v.explain(err)
		}
		for _, standing := range standings {
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
