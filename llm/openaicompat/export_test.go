package openaicompat

import "cmp"

// Tuning has the values that a host cannot set.
type Tuning = tuning

// Tuned returns a configuration with values that a host cannot set. What it has already stays.
func Tuned(c Config, t Tuning) Config {
	own := &c.tuning
	own.MaxAttempts = cmp.Or(own.MaxAttempts, t.MaxAttempts)
	own.Backoff = cmp.Or(own.Backoff, t.Backoff)
	own.MaxResponse = cmp.Or(own.MaxResponse, t.MaxResponse)
	return c
}
