package patterns

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A past is what plans are made of, as a recorder has read it: the patterns, and the tasks that are compared with a new one. Each
// has the version of its kind, so that one small read tells whether it is stale. The zero value is ready to use.
type past struct {
	patterns atomic.Pointer[pastPatterns]
	tasks    atomic.Pointer[pastTasks]
}

type pastPatterns struct {
	version uint64
	*reading
	prospects []prospect // those that a plan may have at some time
}

// A prospect is a pattern with what its rank depends on.
type prospect struct {
	id    PatternID
	anti  bool
	tally evidence.Tally
	// recent and lapsed are its states while it is not long since it helped, and afterwards.
	recent, lapsed State
	literal        *Pattern // whose state depends on the time in other ways, or nil
}

func (p *prospect) state(r *Recorder, now time.Time) State {
	switch {
	case p.literal != nil:
		return r.stateAt(*p.literal, p.tally, now)
	case p.tally.Positive.N > 0 && r.cfg.Maturity.recent(&p.tally, now).Met:
		return p.recent
	default:
		return p.lapsed
	}
}

// stateAt returns the state that a pattern has at a moment.
func (r *Recorder) stateAt(p Pattern, t evidence.Tally, now time.Time) State {
	r.advance(&p, &t, now)
	return p.State
}

// prospects returns the patterns that a plan may have.
func (r *Recorder) prospects(found *reading) (all []prospect) {
	for _, id := range found.order {
		p := found.patterns[id].Value
		tally, tried := found.tallies[p.root()]
		if p.archived() || !p.Anti && !tried && p.Override == "" {
			continue
		}
		one := prospect{id: id, anti: p.Anti, tally: tally}
		if last := tally.Positive.Last.Time(); r.cfg.Literal && !p.Anti {
			one.literal = &p
		} else {
			one.recent = r.stateAt(p, tally, last)
			one.lapsed = r.stateAt(p, tally, last.Add(r.cfg.Maturity.Recency+24*time.Hour))
		}
		if p.Anti || one.literal != nil || r.plans(one.recent) || r.plans(one.lapsed) {
			all = append(all, one)
		}
	}
	return all
}

// pastTasks are the last outcomes of tasks, the latest first.
type pastTasks struct {
	version uint64
	all     []Precedent
	words   [][]string         // of each
	weights []float64          // of the words that each has
	posts   map[string][]int32 // in which of them a word is
}

// versions reads the versions of what plans are made of, in one call.
func (r *Recorder) versions(ctx context.Context) (patterns, tasks uint64, err error) {
	refs := []store.Ref{r.kinds.patterns.Ref("")}
	if r.cfg.Similar == nil {
		refs = append(refs, r.kinds.entries.Ref(""))
	}
	var s store.Snapshot
	if err := r.cfg.Store.Read(ctx, &s, nil, refs); err != nil {
		return 0, 0, err
	}
	if r.cfg.Similar == nil {
		tasks = s.Records[1].Revision
	}
	return s.Records[0].Revision, tasks, nil
}

// pastPatterns returns all patterns with their evidence. Nobody may change them.
func (r *Recorder) pastPatterns(ctx context.Context, version uint64) (*pastPatterns, error) {
	if p := r.past.patterns.Load(); p != nil && p.version == version {
		return p, nil
	}
	found, err := r.readAll(ctx, PatternQuery{})
	if err != nil {
		return nil, err
	}
	p := &pastPatterns{version, found, r.prospects(found)}
	r.past.patterns.Store(p)
	return p, nil
}

// pastTasks returns the tasks of the last outcomes. Nobody may change them.
func (r *Recorder) pastTasks(ctx context.Context, version uint64) (*pastTasks, error) {
	if p := r.past.tasks.Load(); p != nil && p.version == version {
		return p, nil
	}
	p := &pastTasks{version: version, posts: make(map[string][]int32)}
	seen := make(map[string]bool)
	for e, err := range r.Entries(ctx, HistoryQuery{Limit: scanned}) {
		if err != nil {
			return nil, err
		}
		o := &e.Outcome
		if e.isReview() || seen[o.Task] {
			continue
		}
		seen[o.Task] = true
		words, n := wordSet(o.Description), int32(len(p.all)) //nolint:gosec // at most scanned
		for _, w := range words {
			p.posts[w] = append(p.posts[w], n)
		}
		p.words = append(p.words, words)
		p.all = append(p.all, Precedent{
			Task: o.Task, Description: o.Description, Strategy: o.Strategy, Class: e.Score.Class, Result: plainly(e.Score),
		})
	}
	p.weigh()
	r.past.tasks.Store(p)
	return p, nil
}

// best is a list of the ranks that come first, at most mostPlanned.
type best []rank

// add adds a rank if it is one of the first.
func (b *best) add(r rank) {
	if len(*b) == mostPlanned && r.compare((*b)[mostPlanned-1]) > 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(*b, r, rank.compare)
	if len(*b) == mostPlanned {
		*b = (*b)[:mostPlanned-1]
	}
	*b = slices.Insert(*b, at, r)
}
