package patterns

import "sync"

// mostOwn is how many commits of itself a recorder remembers for the next plan.
const mostOwn = 1000

// ownWrites are the commits of this recorder that changed records of a kind. Every commit raises
// the version of its kind. So if the version rose by the number of the recorder's own commits,
// no other writer changed anything, and it need only read what it wrote. The zero value is ready to
// use.
type ownWrites struct {
	mu           sync.Mutex
	begun, ended uint64
	done         uint64     // those that are known to have changed something
	last         [][]string // the ids that the last of these wrote
}

// An snapshot records what was current when a kind was read.
type snapshot struct {
	version uint64
	done    uint64 // own commits that the version counts
	exact   bool   // it counts no other own commit
	begun   uint64
}

// exactly returns the snapshot of what has been brought up to date: the version was accounted for.
func (e snapshot) exactly() snapshot {
	e.exact = true
	return e
}

// begin marks the begin of a commit. The function that it returns marks its end, with the ids that
// the commit has certainly changed.
func (w *ownWrites) begin() (end func(ids []string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	return func(ids []string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended++
		if len(ids) == 0 {
			return
		}
		w.done++
		if w.last = append(w.last, ids); len(w.last) > mostOwn {
			w.last = append([][]string(nil), w.last[mostOwn/2:]...)
		}
	}
}

// before begins a snapshot before its version is read.
func (w *ownWrites) before() snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return snapshot{done: w.done, exact: w.begun == w.ended, begun: w.begun}
}

// after completes a snapshot with its version.
func (w *ownWrites) after(e *snapshot, version uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.version, e.exact = version, e.exact && e.begun == w.begun
}

// since returns the ids that were written between two snapshots, each once. It reports whether
// no other writer can have changed anything.
func (w *ownWrites) since(old, now snapshot) (ids []string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.done - uint64(len(w.last)) // commits that are no longer remembered
	if !old.exact || old.done < first || now.done <= old.done ||
		now.version-old.version != now.done-old.done {
		return nil, false
	}
	seen := make(map[string]bool)
	for _, commit := range w.last[old.done-first : now.done-first] {
		for _, id := range commit {
			if !seen[id] {
				seen[id], ids = true, append(ids, id)
			}
		}
	}
	return ids, true
}
