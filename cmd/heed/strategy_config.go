package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

// strategySection is the section of the Adaptive Strategies design, as TOML has it.
type strategySection struct {
	Enabled  *bool `toml:"enabled"`
	Sampling struct {
		Alpha      *float64 `toml:"initial_alpha"`
		Beta       *float64 `toml:"initial_beta"`
		Bonus      float64  `toml:"exploration_bonus"`
		MinSamples int      `toml:"min_samples_for_confidence"`
	} `toml:"sampling"`
	Hierarchy struct {
		Sessions   int     `toml:"specialization_threshold"`
		Confidence float64 `toml:"specialization_confidence"`
	} `toml:"hierarchy"`
	Outcome struct {
		Attribution   float64 `toml:"attribution_weight"`
		Direct        float64 `toml:"direct_weight"`
		MinConfidence float64 `toml:"min_outcome_confidence"`
	} `toml:"outcome"`
	Cache struct {
		TTL float64 `toml:"ttl_seconds"`
	} `toml:"cache"`
	Defaults struct {
		Strategy string             `toml:"default_strategy"`
		Trigger  string             `toml:"default_trigger"`
		Weights  map[string]float64 `toml:"initial_weights"`
	} `toml:"defaults"`
}

const strategyPath = "plugins.groove.strategy"

// readStrategy reads the configuration of a learner, as far as a file has it.
func readStrategy(s *session, file string) (strategy.Config, error) {
	var section strategySection
	if found, err := readSection(s, file, strategyPath, &section); err != nil || !found {
		return strategy.Config{}, err
	}
	cfg, err := section.config()
	if err != nil {
		return strategy.Config{}, keyFaults(file, strategyPath, section, err)
	}
	return cfg, nil
}

// config returns what a learner of this section is configured with.
func (c *strategySection) config() (strategy.Config, error) {
	cfg := strategy.Config{
		Disabled:      c.Enabled != nil && !*c.Enabled,
		Prior:         evidence.Beta{Alpha: 1, Beta: 1},
		Exploration:   strategy.Exploration{Bonus: c.Sampling.Bonus, MinSamples: c.Sampling.MinSamples},
		Pooling:       strategy.Copy{Sessions: c.Hierarchy.Sessions, MinConfidence: c.Hierarchy.Confidence},
		MinConfidence: c.Outcome.MinConfidence,
		Default:       strategy.ArmID(snake(c.Defaults.Strategy)),
		Cache:         strategy.Cache{TTL: time.Duration(c.Cache.TTL * float64(time.Second))},
	}
	if cfg.Exploration.Bonus == 0 {
		cfg.Exploration.MinSamples = 0 // which then means nothing
	}
	if c.Sampling.Alpha != nil {
		cfg.Prior.Alpha = *c.Sampling.Alpha
	}
	if c.Sampling.Beta != nil {
		cfg.Prior.Beta = *c.Sampling.Beta
	}
	for name, weight := range c.Defaults.Weights {
		cfg.Arms = append(cfg.Arms, strategy.Arm{ID: strategy.ArmID(snake(name)), Weight: weight})
	}
	slices.SortFunc(cfg.Arms, func(a, b strategy.Arm) int { return strings.Compare(string(a.ID), string(b.ID)) })
	if trigger := strategy.Trigger(snake(c.Defaults.Trigger)); trigger != "" && !trigger.Valid() {
		return cfg, fmt.Errorf("defaults.default_trigger is %q: it must be one of the catalogue's", c.Defaults.Trigger)
	}
	_, err := strategy.NewRouter(strategy.RouterConfig{
		Weights:       strategy.RouterWeights{Attribution: c.Outcome.Attribution, Direct: c.Outcome.Direct},
		MinConfidence: c.Outcome.MinConfidence,
	})
	return cfg, err
}

// snake writes MainContext as main_context.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
