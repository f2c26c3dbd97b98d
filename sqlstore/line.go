package sqlstore

import (
	"slices"
	"sync"
	"time"
)

// A line has callers of one sort: leaders, who work for all that wait, and those that wait. The
// first caller leads at once.
//
// It is what queue and readers share: who works, who waits, and when one who waits may begin to
// work. There is no goroutine of the store behind it. If the leaders are slow, those who wait
// become leaders, up to most.
type line[M comparable] struct {
	mu      sync.Mutex
	leaders int // how many there are
	most    int // how many there may be
	// waiting are those that wait, the first to come first.
	waiting []M
}

// mostLeaders is how many may commit at the same time in PostgreSQL, and read in any database.
// SQLite has one writer.
const mostLeaders = 4

// patience is how long a caller waits for a leader before it leads itself. If there may be no other
// leader then, it asks again after longPatience: those who lead may have stopped in between, except
// for one who waits for somebody else's lock.
const (
	patience     = 5 * time.Millisecond
	longPatience = 10 * patience
)

// enter reports whether the caller leads at once. Else it waits from now on.
func (l *line[M]) enter(m M) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaders == 0 {
		l.leaders++
		return true
	}
	l.waiting = append(l.waiting, m)
	return false
}

// leave takes out a caller, and reports whether it waited. The caller holds the mutex.
func (l *line[M]) leave(m M) bool {
	i := slices.Index(l.waiting, m)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	return i >= 0
}

// goAhead makes a caller that waits a leader, if there may be another one.
func (l *line[M]) goAhead(m M) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaders == l.most || !l.leave(m) {
		return false
	}
	l.leaders++
	return true
}

// pass makes the first that waits the leader in the place of the caller, unless there is another
// leader. lead informs the leader.
func (l *line[M]) pass(lead func(M)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Another leader takes those that wait when it is done, in one piece of work, which is cheaper
	// than two.
	if len(l.waiting) == 0 || l.leaders > 1 {
		l.leaders--
		return
	}
	next := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	lead(next)
}
