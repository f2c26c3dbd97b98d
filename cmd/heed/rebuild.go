package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

type rebuildCommand struct {
	Part             string         `arg:"" optional:"" enum:",strategy,confidence,patterns" default:""`
	Name             string         `placeholder:"NAME"`
	HalfLife         *time.Duration `placeholder:"TIME"`
	CriteriaHalfLife *time.Duration `placeholder:"TIME"`
	change
}

// A rebuilding is how the evidence of a learner, module or recorder will be kept.
type rebuilding struct {
	Part             string `json:"part"`
	Name             string `json:"name"`
	HalfLife         string `json:"half_life"`
	CriteriaHalfLife string `json:"criteria_half_life,omitempty"`
	// Rebuilt is false if these were its settings, so that only cells with another half-life change.
	Rebuilt bool `json:"rebuilt"`
	do      func() error
}

func (r *rebuilding) words() plain {
	words := say("%v %v: half-life %v", r.Part, r.Name, r.HalfLife)
	if r.CriteriaHalfLife != "" {
		words += say(", of criteria %v", r.CriteriaHalfLife)
	}
	return words
}

// Run rebuilds what was learned.
func (cmd *rebuildCommand) Run(s *session) error {
	if cmd.HalfLife == nil && cmd.CriteriaHalfLife == nil {
		return &usageError{"what is to change? Give --half-life or --criteria-half-life"}
	}
	return s.with(func() error {
		all, err := cmd.plan(s)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("%s has nothing that these settings are for: check the part and --name",
				s.at.place)
		}
		words := texts(all, func(r rebuilding) string { return string(r.words()) })
		if err := cmd.confirm(s, "This makes anew what was learned, for %v",
			plain(strings.Join(words, "; "))); err != nil {
			return err
		}
		for i := range all {
			r := &all[i]
			err := r.do()
			if errors.Is(err, evidence.ErrForgotten) {
				err = errors.New("the store no longer has the whole history: reset what was learned " +
					"first, or keep the settings")
			}
			if err != nil {
				return fmt.Errorf("%s %s (%d of %d): %w", r.Part, show(r.Name), i+1, len(all),
					s.at.explain(err))
			}
		}
		return s.answer(all, func(p *printer) {
			for i := range all {
				if all[i].Rebuilt {
					p.line("Rebuilt %v.", all[i].words())
				} else {
					p.line("Rebuilt only where cells had another half-life, as these were the settings: %v.",
						all[i].words())
				}
			}
		})
	})
}

// plan returns the rebuildings, in order.
func (cmd *rebuildCommand) plan(s *session) (all []rebuilding, err error) {
	for _, t := range []part{learners, modules, recorders} {
		if err := t.each(s, func(_ checked, v *view.Source, _ []string) error {
			r := cmd.rebuilding(s, v)
			wanted := cmd.Part == "" || cmd.Part == r.Part
			if r.do != nil && wanted && (cmd.Name == "" || cmd.Name == r.Name) {
				all = append(all, r)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// rebuilding returns what becomes of the part of a source. It does nothing if no flag is for it.
func (cmd *rebuildCommand) rebuilding(s *session, v *view.Source) (r rebuilding) {
	switch {
	case v.Strategy != nil && cmd.HalfLife != nil:
		cfg := v.Strategy.Config()
		r = cmd.kept("strategy", cfg.Name, &cfg.HalfLife)
		r.Rebuilt = true // strategy.Rebuild makes its sums anew also if nothing changes
		r.do = func() error {
			_, err := strategy.Rebuild(s.ctx, cfg, cmd.Actor, cmd.Reason)
			return err
		}
	case v.Learning != nil && cmd.HalfLife != nil:
		cfg := v.Learning.Config()
		r = cmd.kept("confidence", cfg.Name, &cfg.HalfLife)
		r.do = func() error {
			_, err := learning.Rebuild(s.ctx, cfg, cmd.Actor, cmd.Reason)
			return err
		}
	case v.Patterns != nil && (cmd.HalfLife != nil || cmd.CriteriaHalfLife != nil):
		was := v.Patterns.Config()
		// What it leaves open stays, and may follow the half-life.
		cfg := patterns.Config{Store: v.Store, Name: was.Name, Now: v.Now}
		cfg.HalfLife, cfg.CriteriaHalfLife = was.HalfLife, was.CriteriaHalfLife
		r = cmd.kept("patterns", cfg.Name, &cfg.HalfLife)
		r.Rebuilt = set(&cfg.CriteriaHalfLife, cmd.CriteriaHalfLife) || r.Rebuilt
		r.CriteriaHalfLife = cfg.CriteriaHalfLife.String()
		r.do = func() error {
			_, err := patterns.Rebuild(s.ctx, cfg, cmd.Actor, cmd.Reason)
			return err
		}
	}
	return r
}

// kept changes settings as the flags say.
func (cmd *rebuildCommand) kept(part, name string, halfLife *time.Duration) rebuilding {
	changed := set(halfLife, cmd.HalfLife)
	return rebuilding{Part: part, Name: name, HalfLife: halfLife.String(), Rebuilt: changed}
}

// set gives a setting a value, if there is one, and reports whether the value is another.
func set[T comparable](setting *T, value *T) (changed bool) {
	if value != nil {
		changed = *setting != *value
		*setting = *value
	}
	return changed
}
