package web

import (
	"sync"
	"time"
)

// A rate bounds how many calls each person may make in a second. If that is less than one, it
// bounds them to one in a longer time. It is safe for concurrent use.
type rate struct {
	perSecond float64
	now       func() time.Time

	mu    sync.Mutex
	begun time.Time      // the second that is counted
	used  map[string]int // the calls of each person in it
}

// take counts a call of a person, or returns how long to wait with it.
func (r *rate) take(person string) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, span := r.now(), time.Second
	if r.perSecond < 1 {
		span = time.Duration(float64(time.Second) / r.perSecond)
	}
	if begun := now.Truncate(span); !begun.Equal(r.begun) {
		r.begun, r.used = begun, make(map[string]int)
	}
	if r.used[person]++; float64(r.used[person]) > max(r.perSecond, 1) {
		return r.begun.Add(span).Sub(now)
	}
	return 0
}
