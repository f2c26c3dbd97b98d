package web

import (
	"maps"
	"sync"
	"time"
)

// A rate bounds how often each person may call: a number of calls a second, and as many at once. It
// is safe for concurrent use.
type rate struct {
	perSecond float64
	now       func() time.Time

	mu   sync.Mutex
	used map[string]time.Time // when the calls of each person will have been paid for
}

// mostUsers is from how many people on those who have not called of late are left out.
const mostUsers = 10_000

// take counts a call of a person, or returns how long to wait with it.
func (r *rate) take(person string) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, each := r.now(), time.Duration(float64(time.Second)/r.perSecond)
	last := now.Add(max(each, time.Second))
	used, known := r.used[person]
	if used.Before(now) {
		used = now
	} else if used.After(last) { // the clock was set back
		used = last
	}
	if used = used.Add(each); used.After(last) {
		return used.Sub(last)
	}
	if !known && len(r.used) >= mostUsers {
		maps.DeleteFunc(r.used, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	if r.used == nil {
		r.used = make(map[string]time.Time)
	}
	r.used[person] = used
	return 0
}
