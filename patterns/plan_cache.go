package patterns

import (
	"sync/atomic"

	"github.com/heedhq/heed/store"
)

// A past is what a recorder has read to make plans: the patterns, and the tasks that are compared
// with a new one. Each is of a version of its kind, so one small read shows whether it is stale.
// The zero value is ready to use.
type past struct {
	// Each is replaced as a whole, so planners read without a lock. Two that find it stale both read.
	patterns atomic.Pointer[versioned[*reading]]
	tasks    atomic.Pointer[versioned[*pastTasks]]
}

// A versioned value was read when a kind had at least this version.
type versioned[T any] struct {
	// version is the revision of the kind's own record, which every write of the kind raises.
	version uint64
	value   T
}

// current returns the value for a version, and reads it unless it is remembered. A lower version
// counts as another one, because a store may be restored from a backup.
func current[T any](
	p *atomic.Pointer[versioned[T]], version uint64, read func() (T, error),
) (T, error) {
	if known := p.Load(); known != nil && known.version == version {
		return known.value, nil
	}
	value, err := read()
	if err == nil {
		p.Store(&versioned[T]{version, value})
	}
	return value, err
}

// The bounds of what a plan is made of, so that its time does not grow with the store.
const (
	mostRead    = 500 // patterns that are not candidates: those that changed last
	mostPlanned = 100 // patterns of each list of a plan
	scanned     = 500 // outcomes that are compared with a task: those recorded last
)

// PlanWants names what PlanIn reads, in a step that plans.
func (r steps) PlanWants() store.Wants {
	refs := []store.Ref{r.kinds.patterns.Ref("")}
	if r.cfg.Similar == nil {
		refs = append(refs, r.kinds.entries.Ref(""))
	}
	return store.Wants{Refs: refs}
}

// pastTasks are the last outcomes of tasks, the latest first.
type pastTasks struct {
	// all, words and weights have one element for each task.
	all     []Precedent
	words   [][]string         // of each
	weights []float64          // of the words that each has
	posts   map[string][]int32 // in which of them a word is
	// known has the words of each description, for the next reading.
	known map[string][]string
}

// pastTasks reads the tasks of the last outcomes. They must not be changed. It divides each
// description into words once, because the next plan reads most of them again.
func (r *Recorder) pastTasks(tx *store.Tx) (*pastTasks, error) {
	entries, err := historyIn(tx, "task", &r.kinds.entries, HistoryQuery{Limit: scanned})
	if err != nil {
		return nil, err
	}
	var before map[string][]string
	if last := r.past.tasks.Load(); last != nil {
		before = last.value.known
	}
	p := &pastTasks{posts: make(map[string][]int32), known: make(map[string][]string)}
	seen := make(map[string]bool)
	for i := range entries {
		o := &entries[i].Outcome
		if seen[o.Task] {
			continue
		}
		seen[o.Task] = true
		words, known := before[o.Description]
		if !known {
			words = wordSet(o.Description)
		}
		p.known[o.Description] = words
		for _, w := range words {
			p.posts[w] = append(p.posts[w], int32(len(p.all))) //nolint:gosec // at most scanned
		}
		p.words, p.all = append(p.words, words), append(p.all, Precedent{
			Task: o.Task, Description: o.Description, Strategy: o.Strategy,
			Class: entries[i].Score.Class, Result: plainly(entries[i].Score),
		})
	}
	p.weigh()
	return p, nil
}
