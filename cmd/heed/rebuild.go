package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

type rebuildCommand struct {
	Part             string         `arg:"" optional:"" enum:",strategy,confidence,patterns" default:"" help:"Only what strategy, confidence or patterns show."`
	Name             string         `placeholder:"NAME" help:"Only the learner, module or recorder of this name."`
	HalfLife         *time.Duration `placeholder:"TIME" help:"The time after which evidence counts half, such as 720h. 0s: it never fades (not for patterns)."`
	CriteriaHalfLife *time.Duration `placeholder:"TIME" help:"The same for the evidence on criteria of patterns."`
	BySource         *bool          `negatable:"" help:"Keep apart what each source has caused, as caps need it (not for patterns)."`
	change
}

// A kept is how the evidence of a learner, module or recorder is kept.
type kept struct {
	Part             string `json:"part"`
	Name             string `json:"name"`
	HalfLife         string `json:"half_life"`
	CriteriaHalfLife string `json:"criteria_half_life,omitempty"`
	BySource         *bool  `json:"by_source,omitempty"`
	Rebuilt          bool   `json:"rebuilt"` // false: these were its settings, so that only cells with another half-life were made anew
}

// String says how the evidence is kept.
func (k kept) String() string {
	text := fmt.Sprintf("%s %s: half-life %s", k.Part, show(k.Name), k.HalfLife)
	if k.CriteriaHalfLife != "" {
		text += ", of criteria " + k.CriteriaHalfLife
	}
	if k.BySource != nil {
		text += fmt.Sprintf(", sources apart: %t", *k.BySource)
	}
	return text
}

// A rebuilding is what becomes of one learner, module or recorder.
type rebuilding struct {
	kept
	do func(actor, reason string) error
}

// Run rebuilds what was learned.
func (cmd *rebuildCommand) Run(s *session) error {
	if cmd.HalfLife == nil && cmd.BySource == nil && cmd.CriteriaHalfLife == nil {
		return &usageError{"what is to change? Give --half-life, --criteria-half-life or --by-source"}
	}
	return s.with(func(st *opened) error {
		all, err := cmd.plan(s, st)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("%s has nothing that these settings are for: check the part and --name", st.place)
		}
		var texts []string
		done := []kept{}
		for _, r := range all {
			texts, done = append(texts, r.String()), append(done, r.kept)
		}
		if err := cmd.confirm(s, "This makes anew what was learned, for "+strings.Join(texts, "; ")); err != nil {
			return err
		}
		for i, r := range all {
			err := r.do(cmd.Actor, cmd.Reason)
			if errors.Is(err, evidence.ErrForgotten) {
				err = errors.New("the store no longer has the whole history: reset what was learned first, or keep the settings")
			}
			if err != nil {
				return fmt.Errorf("%s %s (%d of %d): %w", r.Part, show(r.Name), i+1, len(all), st.explain(err))
			}
		}
		return s.answer(done, func(p *printer) {
			for _, k := range done {
				if k.Rebuilt {
					p.line("Rebuilt %s.", k)
				} else {
					p.line("Rebuilt only where cells had another half-life, as these were the settings: %s.", k)
				}
			}
		})
	})
}

// plan returns the rebuildings, in order.
func (cmd *rebuildCommand) plan(s *session, st *opened) (all []rebuilding, err error) {
	for _, part := range []struct {
		name  string
		names func(context.Context, store.Store) ([]string, error)
		of    func(*session, *opened, string) (*rebuilding, error)
	}{{"strategy", strategy.Names, cmd.learner}, {"confidence", learning.Names, cmd.module}, {"patterns", patterns.Names, cmd.recorder}} {
		if cmd.Part != "" && cmd.Part != part.name {
			continue
		}
		names, err := part.names(s.ctx, st.store)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if cmd.Name != "" && cmd.Name != name {
				continue
			}
			r, err := part.of(s, st, name)
			if err != nil {
				return nil, err
			}
			if r != nil {
				all = append(all, *r)
			}
		}
	}
	return all, nil
}

func (cmd *rebuildCommand) learner(s *session, st *opened, name string) (*rebuilding, error) {
	l, err := learners.one(s, st, name)
	if err != nil {
		return nil, err
	}
	cfg := l.Config()
	r := cmd.evidence("strategy", name, &cfg.HalfLife, &cfg.BySource, func(actor, reason string) error {
		_, err := strategy.Rebuild(s.ctx, cfg, actor, reason)
		return err
	})
	if r != nil {
		r.Rebuilt = true // strategy.Rebuild makes its sums anew also if nothing changes
	}
	return r, nil
}

func (cmd *rebuildCommand) module(s *session, st *opened, name string) (*rebuilding, error) {
	m, err := modules.one(s, st, name)
	if err != nil {
		return nil, err
	}
	cfg := m.Config()
	return cmd.evidence("confidence", name, &cfg.HalfLife, &cfg.BySource, func(actor, reason string) error {
		_, err := learning.Rebuild(s.ctx, cfg, actor, reason)
		return err
	}), nil
}

// evidence changes settings, and returns the rebuilding that they need. It returns nil if no flag is for them.
func (cmd *rebuildCommand) evidence(part, name string, halfLife *time.Duration, bySource *bool, do func(actor, reason string) error) *rebuilding {
	if cmd.HalfLife == nil && cmd.BySource == nil {
		return nil
	}
	changed := set(halfLife, cmd.HalfLife)
	changed = set(bySource, cmd.BySource) || changed
	return &rebuilding{kept{part, name, halfLife.String(), "", bySource, changed}, do}
}

func (cmd *rebuildCommand) recorder(s *session, st *opened, name string) (*rebuilding, error) {
	r, err := recorders.one(s, st, name)
	if err != nil || cmd.HalfLife == nil && cmd.CriteriaHalfLife == nil {
		return nil, err
	}
	cfg := patterns.Config{Store: st.store, Name: name, Now: s.now} // what it leaves open stays, and may follow the half-life
	cfg.HalfLife, cfg.CriteriaHalfLife = r.Config().HalfLife, r.Config().CriteriaHalfLife
	changed := set(&cfg.HalfLife, cmd.HalfLife)
	changed = set(&cfg.CriteriaHalfLife, cmd.CriteriaHalfLife) || changed
	return &rebuilding{
		kept{"patterns", name, cfg.HalfLife.String(), cfg.CriteriaHalfLife.String(), nil, changed},
		func(actor, reason string) error {
			_, err := patterns.Rebuild(s.ctx, cfg, actor, reason)
			return err
		},
	}, nil
}

// set gives a setting a value, if there is one, and reports whether that is another.
func set[T comparable](setting *T, value *T) (changed bool) {
	if value != nil {
		changed = *setting != *value
		*setting = *value
	}
	return changed
}
