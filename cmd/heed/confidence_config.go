package main

import (
	"cmp"
	"fmt"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
)

// learningSection is what a TOML file has of a [learning.Config], as far as it changes what is read, under the names that
// the LEARNING_ variables have.
type learningSection struct {
	Name     string   `toml:"name"`
	Initial  number   `toml:"initial_confidence"`
	Strength number   `toml:"prior_strength"`
	Floor    *float64 `toml:"confidence_floor"`
	Ceiling  number   `toml:"confidence_ceiling"`
	Guarded  bool     `toml:"guarded"`
	Caps     *struct {
		SourceMass  float64  `toml:"source_mass"`
		SourceShare float64  `toml:"source_share"`
		Silence     []string `toml:"silence"`
		SilenceMass float64  `toml:"silence_mass"`
	} `toml:"caps"`
	System constraintsSection            `toml:"system"`
	Packs  map[string]constraintsSection `toml:"packs"`
}

// constraintsSection is what one layer says.
type constraintsSection struct {
	Lock    learning.Lock `toml:"lock"`
	Floor   *float64      `toml:"floor"`
	Ceiling number        `toml:"ceiling"`
	Weight  number        `toml:"feedback_weight"`
}

// readLearning reads the configuration of a module, as far as a file has it.
func readLearning(s *session, file string) (learning.Config, error) {
	var section learningSection
	if found, err := readSection(s, file, "learning", &section); err != nil || !found {
		return learning.Config{}, err
	}
	cfg := learning.Config{
		Name: section.Name, Initial: float64(section.Initial), Strength: float64(section.Strength),
		Bounds: rangeOf(section.Floor, section.Ceiling, learning.Range{Floor: 0.05, Ceiling: 0.95}),
		System: section.System.constraints(),
	}
	switch {
	case section.Guarded && section.Caps != nil:
		return learning.Config{}, fmt.Errorf("%s: learning.guarded and learning.caps say two things: leave one of them out", file)
	case section.Guarded:
		cfg.Caps = learning.Guarded()
	case section.Caps != nil:
		cfg.Caps = evidence.Caps(*section.Caps)
	}
	for name, pack := range section.Packs {
		if cfg.Packs == nil {
			cfg.Packs = make(map[string]learning.Constraints)
		}
		cfg.Packs[name] = pack.constraints()
	}
	return cfg, nil
}

func (c *constraintsSection) constraints() learning.Constraints {
	return learning.Constraints{
		Lock: c.Lock, Range: rangeOf(c.Floor, c.Ceiling, learning.Range{Floor: 0, Ceiling: 1}), FeedbackWeight: float64(c.Weight),
	}
}

// rangeOf returns a range of which one end may be left open, and the zero one where both are.
func rangeOf(floor *float64, ceiling number, open learning.Range) learning.Range {
	if floor == nil && ceiling == 0 {
		return learning.Range{}
	}
	if floor != nil {
		open.Floor = *floor
	}
	return learning.Range{Floor: open.Floor, Ceiling: cmp.Or(float64(ceiling), open.Ceiling)}
}
