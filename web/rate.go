package web

import (
	"maps"
	"sync"
	"time"
)

// A rate bounds how many requests each person may make in a second. So many may come at once, or
// one if that is less. It is safe for concurrent use.
type rate struct {
	perSecond float64
	now       func() time.Time

	mu sync.Mutex
	// until has, for each person, when their requests would be over if they came evenly at this rate.
	// Entries of the past are removed when there are tidyAt.
	until  map[string]time.Time
	tidyAt int
}

const leastTidied = 1000

// take counts a request of a person, or returns how long to wait with it.
func (r *rate) take(person string) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, one := r.now(), time.Duration(float64(time.Second)/r.perSecond)
	atOnce := max(time.Second, one)
	until := r.until[person]
	if until.Before(now) || until.Sub(now) > atOnce { // the latter if the clock was set back
		until = now
	}
	until = until.Add(one)
	if wait := until.Sub(now) - atOnce; wait > 0 {
		return wait
	}
	if len(r.until) >= r.tidyAt {
		maps.DeleteFunc(r.until, func(_ string, at time.Time) bool { return !at.After(now) })
		r.tidyAt = max(leastTidied, 2*len(r.until))
	}
	r.until[person] = until
	return 0
}
