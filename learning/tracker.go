package learning

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// An answer is what a fire is known by.
type answer struct{ heuristicID, eventID string }

// watched is a fire that is waited for. The flags are guarded by the tracker's lock; silent and counted are only written by
// who has it busy, who may read them without.
type watched struct {
	Fire
	domain  string
	pattern *Pattern
	undo    time.Time // the ends of its windows; zero: it has none
	silence time.Time

	busy    bool // somebody is counting a signal of it
	ended   bool // it has had its one implicit signal, or is no longer waited for
	heard   bool // somebody judged it
	silent  bool // its silence was interpreted
	counted bool // that silence is counted, and an undo has to take it back
	stored  bool // that it was shown is counted
}

func (w *watched) key() answer { return answer{w.HeuristicID, w.EventID} }

// undoable reports whether the fire can still be taken back at a moment.
func (w *watched) undoable(at time.Time) bool {
	return !w.ended && !w.undo.IsZero() && !at.After(w.undo) && !at.Before(w.At)
}

// tracker holds the fires that are waited for, in the order in which they came, and how often in a row each heuristic was
// ignored. It is safe for concurrent use.
type tracker struct {
	mu      sync.Mutex
	most    int
	live    map[answer]*watched
	order   []*watched // those that have ended are taken out now and then
	dead    int        // how many of them have
	ignores map[string]*streak
	clicks  int64 // the newest period of clicks for which a sweep has dropped the old ones
}

type streak struct {
	n    int
	last time.Time
}

func newTracker(most int) tracker {
	return tracker{most: most, live: make(map[answer]*watched), ignores: make(map[string]*streak)}
}

// add begins to wait for a fire. It returns false if that is waited for already, and the fire that had to make room.
func (t *tracker) add(w *watched) (added bool, dropped *watched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.live[w.key()]; ok {
		return false, nil
	}
	for ; len(t.order) > 0 && t.order[0].ended; t.dead-- {
		t.order[0], t.order = nil, t.order[1:]
	}
	if len(t.live) >= t.most {
		dropped = t.order[0]
		t.end(dropped)
	}
	t.live[w.key()] = w
	t.order = append(t.order, w)
	return true, dropped
}

func (t *tracker) end(w *watched) {
	if w.ended {
		return
	}
	w.ended = true
	delete(t.live, w.key())
	if t.dead++; t.dead > 32 && t.dead > len(t.order)/2 {
		t.order = slices.DeleteFunc(t.order, func(w *watched) bool { return w.ended })
		t.dead = 0
	}
}

// each calls the second function, without the lock, with each fire for which the first is true. Meanwhile nobody else counts
// a signal of that fire.
func (t *tracker) each(wanted func(*watched) bool, f func(*watched)) {
	t.mu.Lock()
	var all []*watched
	for _, w := range t.order {
		if !w.ended && !w.busy && wanted(w) {
			all = append(all, w)
		}
	}
	t.mu.Unlock()
	for _, w := range all {
		t.one(w.key(), wanted, f)
	}
}

// one is each for the fire of one answer.
func (t *tracker) one(a answer, wanted func(*watched) bool, f func(*watched)) {
	t.mu.Lock()
	w := t.live[a]
	free := w != nil && !w.busy && wanted(w)
	if free {
		w.busy = true
	}
	t.mu.Unlock()
	if !free {
		return
	}
	defer t.locked(func() { w.busy = false }) // also where a store panics
	f(w)
}

// drop ends a fire without a signal.
func (t *tracker) drop(w *watched) { t.locked(func() { t.end(w) }) }

// locked calls the function under the lock.
func (t *tracker) locked(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// recent returns copies of what can be taken back.
func (t *tracker) recent(at time.Time, wanted func(*watched) bool) []RecentFire {
	t.mu.Lock()
	defer t.mu.Unlock()
	fires := make([]RecentFire, 0, len(t.live))
	for _, w := range t.order {
		if w.undoable(at) && wanted(w) {
			fires = append(fires, RecentFire{HeuristicID: w.HeuristicID, EventID: w.EventID, Domain: w.domain, Age: at.Sub(w.At)})
		}
	}
	return fires
}

// find calls the function with a fire that is waited for, if it is.
func (t *tracker) find(a answer, f func(*watched)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.live[a]; w != nil {
		f(w)
	}
}

// ignored counts one more ignore of a heuristic in a row. Where too many heuristics have such a count, those that were
// ignored longest ago lose theirs.
func (t *tracker) ignored(heuristicID string, at time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ignores[heuristicID]
	if s == nil {
		if len(t.ignores) >= t.most {
			t.dropStreaks()
		}
		s = &streak{}
		t.ignores[heuristicID] = s
	}
	s.n++
	s.last = at
	return s.n
}

// unignored takes one ignore back that could not be counted.
func (t *tracker) unignored(heuristicID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.ignores[heuristicID]; s != nil && s.n > 0 {
		s.n--
	}
}

// noticed ends a row of ignores.
func (t *tracker) noticed(heuristicID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ignores, heuristicID)
}

// dropStreaks forgets the older half.
func (t *tracker) dropStreaks() {
	ids := make([]string, 0, len(t.ignores))
	for id := range t.ignores {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		if n := t.ignores[a].last.Compare(t.ignores[b].last); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	for _, id := range ids[:(len(ids)+1)/2] {
		delete(t.ignores, id)
	}
}
