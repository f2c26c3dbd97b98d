package patterns

import "github.com/heedhq/heed/store"

// Literal reports whether a configuration has the arithmetic of the learning-systems design.
func (c Config) Literal() bool { return c.literal }

// StateByEvidence is the state that conditions make, without an inversion.
func StateByEvidence(conditions []Condition) string { return stateOf(conditions) }

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
