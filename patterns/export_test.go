package patterns

import "github.com/heedhq/heed/store"

// Tests reach each rule alone by other values than a host's.
type (
	Tuning    = tuning
	Maturity  = maturity
	Criteria  = criteria
	Inversion = inversion
)

// Tuned returns a configuration with other values.
func Tuned(c Config, t Tuning) Config {
	c.tuning = t
	return c
}

// TuningOf returns the values of a configuration.
func TuningOf(c Config) Tuning { return c.tuning }

// Tune returns the values of a configuration, to change them.
func (c *Config) Tune() *Tuning { return &c.tuning }

// Config returns the configuration in force, with its defaults.
func (r *Recorder) Config() Config { return r.cfg }

// OutcomeWants names what RecordIn reads.
func OutcomeWants(r *Recorder, o Outcome) store.Wants { return r.outcomeWants(o) }

// The words of states and classes.
const (
	Helpful = helpful
	Neutral = neutral
	Harmful = harmful

	Candidate   = candidate
	Established = established
	Proven      = proven
	Deprecated  = deprecated
	Inverted    = inverted
)
