package main

import (
	"time"

	"github.com/heedhq/heed/patterns"
)

// patternsSection is what a TOML file has of a [patterns.Config], as far as it changes what is read, under its names.
type patternsSection struct {
	Name     string `toml:"name"`
	Literal  bool   `toml:"literal"`
	Maturity struct {
		HalfLife    days   `toml:"half_life_days"`
		MinFeedback whole  `toml:"min_feedback"`
		MinHelpful  whole  `toml:"min_helpful"`
		MaxHarmful  number `toml:"max_harmful"`
		Deprecation number `toml:"deprecation"`
		Recency     days   `toml:"recency_days"`
		Multipliers struct {
			Candidate   float64 `toml:"candidate"`
			Established float64 `toml:"established"`
			Proven      number  `toml:"proven"`
		} `toml:"multipliers"`
	} `toml:"maturity"`
	Inversion struct {
		MinObservations whole  `toml:"min_observations"`
		FailureRatio    number `toml:"failure_ratio"`
		Rehabilitation  whole  `toml:"rehabilitation"`
		Prefix          string `toml:"prefix"`
	} `toml:"inversion"`
}

// readPatterns reads the configuration of a recorder, as far as a file has it.
func readPatterns(s *session, file string) (patterns.Config, error) {
	var section patternsSection
	x := &section.Maturity.Multipliers
	x.Candidate, x.Established, x.Proven = 0.5, 1, 1.5
	if found, err := readSection(s, file, "patterns", &section); err != nil || !found {
		return patterns.Config{}, err
	}
	m, v := &section.Maturity, &section.Inversion
	return patterns.Config{
		Name: section.Name, Literal: section.Literal,
		Maturity: patterns.Maturity{
			HalfLife: time.Duration(m.HalfLife), MinFeedback: int(m.MinFeedback), MinHelpful: int(m.MinHelpful),
			MaxHarmful: float64(m.MaxHarmful), Deprecation: float64(m.Deprecation), Recency: time.Duration(m.Recency),
			Multipliers: patterns.Multipliers{Candidate: x.Candidate, Established: x.Established, Proven: float64(x.Proven)},
		},
		Inversion: patterns.Inversion{
			MinObservations: int(v.MinObservations), FailureRatio: float64(v.FailureRatio), Rehabilitation: int(v.Rehabilitation), Prefix: v.Prefix,
		},
	}, nil
}
