package genkit

import "time"

// SetNow sets the clock for the time that a model takes.
func SetNow(a *Adapter, now func() time.Time) { a.now = now }
