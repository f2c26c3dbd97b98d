package web

import (
	"sync"
	"time"
)

// A rate bounds how often each person may call, as buckets that fill with a number of calls a second and hold those of one second. It is safe
// for concurrent use.
type rate struct {
	perSecond float64
	now       func() time.Time

	mu      sync.Mutex
	buckets map[string]bucket
}

type bucket struct {
	left float64
	at   time.Time
}

// mostBuckets is from how many people on those who have not called of late are left out.
const mostBuckets = 10_000

// take takes a call out of a person's bucket, or says how long to wait for one.
func (r *rate) take(person string) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	b := r.level(r.buckets[person], now)
	if b.left < 1 {
		return time.Duration((1 - b.left) / r.perSecond * float64(time.Second))
	}
	if _, known := r.buckets[person]; !known && len(r.buckets) >= mostBuckets {
		r.prune(now)
	}
	if r.buckets == nil {
		r.buckets = make(map[string]bucket)
	}
	b.left--
	r.buckets[person] = b
	return 0
}

// level returns a bucket as it is now. A new one is full.
func (r *rate) level(b bucket, now time.Time) bucket {
	full := max(1, r.perSecond)
	if b.at.IsZero() {
		return bucket{full, now}
	}
	if passed := now.Sub(b.at); passed > 0 {
		b = bucket{min(full, b.left+passed.Seconds()*r.perSecond), now}
	}
	return b
}

// prune leaves out full buckets, which are as those of people who never called.
func (r *rate) prune(now time.Time) {
	for person, b := range r.buckets {
		if r.level(b, now).left >= max(1, r.perSecond) {
			delete(r.buckets, person)
		}
	}
}
