package learning

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/env"
)

// ConfigFromEnv reads a configuration from the LEARNING_ variables that lookup gives, such as [os.LookupEnv]. The caller sets the
// store. LEARNING_STRATEGY names the strategy: "bayesian", or one of the host's own, each made from what the variables say. Given the
// environment too, as [os.Environ] lists it, a LEARNING_ variable that is not known is a fault. All faults are reported together, each
// a [*heed.ConfigError] whose field is the variable.
//
// These are the variables of the Learning Strategy Interface design. One that is not set, or blank, leaves the field as it is, and so
// means the default of its field:
//
//	LEARNING_STRATEGY             bayesian
//	LEARNING_UNDO_WINDOW_SEC      600; set, for silence, too
//	LEARNING_IGNORED_THRESHOLD    3
//	LEARNING_UNDO_KEYWORDS        as BayesianConfig.IsUndo; else words by commas (set but blank: none)
//	LEARNING_IMPLICIT_MAGNITUDE   1.0 for an undo and an outcome; set, for silence and an ignore, too
//	LEARNING_EXPLICIT_MAGNITUDE   0.8
//
// and these are heed's:
//
//	LEARNING_SILENCE_WINDOW_SEC   as LEARNING_UNDO_WINDOW_SEC; else 30
//	LEARNING_SILENCE_IS_NEUTRAL   false
//	LEARNING_SILENCE_MAGNITUDE    0.4
//	LEARNING_IGNORE_MAGNITUDE     0.4
//	LEARNING_DIMINISH             0
//	LEARNING_INITIAL_CONFIDENCE   0.3
//	LEARNING_PRIOR_STRENGTH       2
//	LEARNING_CONFIDENCE_FLOOR     0.05
//	LEARNING_CONFIDENCE_CEILING   0.95
//	LEARNING_HALF_LIFE_DAYS       0 (none)
//	LEARNING_GUARDED              false (true: the caps of Guarded)
//
// The host sets scores, weights by channel and expectations in code.
func ConfigFromEnv(lookup func(name string) (string, bool), own map[string]func(BayesianConfig) (Strategy, error), environ ...string) (Config, error) {
	r := reader{env.Reader{Prefix: "LEARNING_", Lookup: lookup}}
	cfg, bayesian := r.module(), r.bayesian()
	name, variable := r.Text("STRATEGY")
	name = cmp.Or(name, "bayesian")
	r.CheckUnknown(environ)
	makers := map[string]func(BayesianConfig) (Strategy, error){"bayesian": NewBayesian}
	maps.Copy(makers, own)
	maker, known := makers[name]
	r.Faults.Check(known, variable, name, "must be one of "+strings.Join(slices.Sorted(maps.Keys(makers)), ", "))
	err := r.Faults.Err()
	if err == nil {
		cfg.Strategy, err = maker(bayesian)
		if err == nil && cfg.Strategy == nil {
			err = &heed.ConfigError{Field: variable, Value: name, Reason: "its function made no strategy"}
		}
		for fault := range heed.ConfigErrors(err) {
			r.Faults.Check(false, variable, name, strings.TrimPrefix(fault.Field+": "+fault.Reason, variable+": "))
		}
	}
	if err != nil {
		return Config{}, fmt.Errorf("learning: environment: %w", cmp.Or(r.Faults.Err(), err))
	}
	return cfg, nil
}

// A reader reads what only this package has.
type reader struct{ env.Reader }

func (r *reader) module() (c Config) {
	r.Number("INITIAL_CONFIDENCE", &c.Initial, "must be above 0 and below 1", isConfidence)
	r.Number("PRIOR_STRENGTH", &c.Strength, "must be in [1e-3, 1e6]", isStrength)
	isShare := func(x float64) bool { return x >= 0 && x <= 1 }
	bounds := defaultBounds
	r.Number("CONFIDENCE_FLOOR", &bounds.Floor, "must be in [0, 1]", isShare)
	r.Number("CONFIDENCE_CEILING", &bounds.Ceiling, "must be in [0, 1]", isShare)
	r.Faults.Check(bounds.valid() && bounds.Ceiling > 0, r.Prefix+"CONFIDENCE_CEILING", bounds.Ceiling, "must be above 0, and not below LEARNING_CONFIDENCE_FLOOR")
	if bounds != defaultBounds {
		c.Bounds = bounds
	}
	r.Number("DIMINISH", &c.Diminish, notMagnitude, isMagnitude)
	r.Duration("HALF_LIFE_DAYS", &c.HalfLife, 24*time.Hour, 0, longest)
	r.Faults.Check(c.policy().Validate() == nil, r.Prefix+"HALF_LIFE_DAYS", c.HalfLife, "must be 0 or at least a minute")
	guarded := false
	if r.Boolean("GUARDED", &guarded); guarded {
		c.Caps = Guarded()
	}
	return c
}

const longest = 100 * 365 * 24 * time.Hour

func (r *reader) bayesian() BayesianConfig {
	c := BayesianConfig{Weights: make(map[string]float64)}
	r.Duration("UNDO_WINDOW_SEC", &c.UndoWindow, time.Second, time.Microsecond, longest)
	c.SilenceWindow = c.UndoWindow // one window in the document
	r.Duration("SILENCE_WINDOW_SEC", &c.SilenceWindow, time.Second, time.Microsecond, longest)
	r.Count("IGNORED_THRESHOLD", &c.IgnoreThreshold, 1, 1e6)
	r.Boolean("SILENCE_IS_NEUTRAL", &c.SilenceIsNeutral)
	c.Implicit = r.magnitude("IMPLICIT_MAGNITUDE", &c, ChannelTimeout, ChannelUndo, ChannelIgnored, ChannelOutcome)
	own := func(name, channel string) float64 {
		x := r.magnitude(name, &c, channel)
		if x > 0 {
			delete(c.Weights, channel)
		}
		return cmp.Or(x, c.Implicit)
	}
	c.Silence, c.Ignore = own("SILENCE_MAGNITUDE", ChannelTimeout), own("IGNORE_MAGNITUDE", ChannelIgnored)
	c.Explicit = r.magnitude("EXPLICIT_MAGNITUDE", &c, ChannelExplicit, ChannelDev)
	_, variable := r.Text("UNDO_KEYWORDS")
	if keywords, ok := r.Lookup(variable); ok { // also where it is blank
		c.IsUndo = Keywords(strings.Split(keywords, ",")...)
	}
	return c
}

// magnitude reads the magnitude of some channels. As 0 means the default in a configuration, weights set it to 0.
func (r *reader) magnitude(name string, c *BayesianConfig, channels ...string) float64 {
	x := -1.
	if r.Number(name, &x, notMagnitude, isMagnitude); x == 0 {
		for _, channel := range channels {
			c.Weights[channel] = 0
		}
	}
	return max(x, 0)
}
