package patterns

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A past is what a recorder has read to make plans: the patterns, and the tasks that are compared
// with a new one. Each has the version of its kind, so that one small read shows whether it is
// stale. The zero value is ready to use.
type past struct {
	patterns atomic.Pointer[pastPatterns]
	tasks    atomic.Pointer[pastTasks]
	// The records of either kind that this recorder wrote since. The next plan reads no more than
	// those, if no other recorder wrote.
	ownPatterns, ownTasks ownWrites
}

type pastPatterns struct {
	snapshot
	prospects []*prospect // those that a plan may have at some time
}

// A prospect is a pattern with what its rank depends on.
type prospect struct {
	id    PatternID
	from  *reading // has the pattern, and the one that it was made of
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
	case p.tally.Positive.N > 0 && r.cfg.tuning.Maturity.recent(&p.tally, now).Met:
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
func (r *Recorder) prospects(found *reading) (all []*prospect) {
	for _, id := range found.order {
		p := found.patterns[id].Value
		tally, tried := found.tallies[p.root()]
		if p.archived() || !p.Anti && !tried && p.Override == "" {
			continue
		}
		one := &prospect{id: id, from: found, anti: p.Anti, tally: tally}
		if last := tally.Positive.Last.Time(); r.cfg.tuning.Literal && !p.Anti {
			one.literal = &p
		} else {
			one.recent = r.stateAt(p, tally, last)
			one.lapsed = r.stateAt(p, tally, last.Add(r.cfg.tuning.Maturity.Recency+24*time.Hour))
		}
		if p.Anti || one.literal != nil || r.plans(one.recent) || r.plans(one.lapsed) {
			all = append(all, one)
		}
	}
	return all
}

// pastTasks are the last outcomes of tasks, the latest first.
type pastTasks struct {
	snapshot
	pastEntry []pastEntry // what they were made of
	all       []Precedent
	words     [][]string         // of each
	weights   []float64          // of the words that each has
	posts     map[string][]int32 // in which of them a word is
}

// A pastEntry is an outcome or a review that is compared with a new task.
type pastEntry struct {
	at     time.Time // when it was recorded
	review bool
	one    Precedent
	words  []string
}

func newPastEntry(e *Entry) pastEntry {
	o := &e.Outcome
	return pastEntry{e.RecordedAt, e.isReview(), Precedent{
		Task: o.Task, Description: o.Description, Strategy: o.Strategy, Class: e.Score.Class,
		Result: plainly(e.Score),
	}, wordSet(o.Description)}
}

// snapshots are what was current when a step began to plan.
type snapshots struct {
	of              *Recorder
	patterns, tasks snapshot
}

// snapshots begins the snapshots of a step. Call it before their versions are read.
func (r *Recorder) snapshots(tx *store.Tx) *snapshots {
	type key struct{ kind string }
	return tx.State(key{r.kinds.patterns.Name}, func() any {
		return &snapshots{r, r.past.ownPatterns.before(), r.past.ownTasks.before()}
	}).(*snapshots)
}

// PlanWants names what [Recorder.PlanIn] reads, in a step that plans.
func (r *Recorder) PlanWants(tx *store.Tx) store.Wants {
	r.snapshots(tx)
	refs := []store.Ref{r.kinds.patterns.Ref("")}
	if r.cfg.Similar == nil {
		refs = append(refs, r.kinds.entries.Ref(""))
	}
	return store.Wants{Refs: refs}
}

// current reads what is current of what plans are made of.
func (r *Recorder) current(tx *store.Tx) (patterns, tasks snapshot, err error) {
	w := r.PlanWants(tx)
	var s store.Snapshot
	if err := tx.Read(&s, nil, w.Refs); err != nil {
		return snapshot{}, snapshot{}, err
	}
	now := *r.snapshots(tx)
	if now.of != r { // the versions may be older than this recorder's last commits
		now = snapshots{}
	}
	r.past.ownPatterns.after(&now.patterns, s.Records[0].Revision)
	if r.cfg.Similar == nil {
		r.past.ownTasks.after(&now.tasks, s.Records[1].Revision)
	}
	return now.patterns, now.tasks, nil
}

// pastPatterns returns all patterns that a plan may have. They must not be changed.
func (r *Recorder) pastPatterns(tx *store.Tx, now snapshot) (*pastPatterns, error) {
	known := r.past.patterns.Load()
	if known != nil && known.version == now.version {
		return known, nil
	}
	if known != nil {
		if ids, ok := r.past.ownPatterns.since(known.snapshot, now); ok {
			return r.patternsAfter(tx, known, ids, now)
		}
	}
	found, err := r.readAll(tx, PatternQuery{})
	if err != nil {
		return nil, err
	}
	p := &pastPatterns{now, r.prospects(found)}
	r.past.patterns.Store(p)
	return p, nil
}

// patternsAfter brings patterns up to date by reading those that this recorder wrote.
func (r *Recorder) patternsAfter(tx *store.Tx, known *pastPatterns, ids []string,
	now snapshot) (*pastPatterns, error) {
	written, found := make([]PatternID, len(ids)), newReading()
	for i, id := range ids {
		written[i] = PatternID(id)
	}
	if err := r.look(tx, found, written); err != nil {
		return nil, err
	}
	for _, id := range family(written) {
		if _, ok := found.patterns[id]; ok {
			found.order = append(found.order, id)
		}
	}
	p := &pastPatterns{snapshot: now.exactly(),
		prospects: make([]*prospect, 0, len(known.prospects)+len(found.looked))}
	for _, one := range known.prospects {
		if !found.looked[one.id] {
			p.prospects = append(p.prospects, one)
		}
	}
	p.prospects = append(p.prospects, r.prospects(found)...)
	r.past.patterns.Store(p)
	return p, nil
}

// pastTasks returns the tasks of the last outcomes. They must not be changed.
func (r *Recorder) pastTasks(tx *store.Tx, now snapshot) (*pastTasks, error) {
	known := r.past.tasks.Load()
	if known != nil && known.version == now.version {
		return known, nil
	}
	if known != nil {
		if ids, ok := r.past.ownTasks.since(known.snapshot, now); ok {
			if all, ok, err := r.pastAfter(tx, known.pastEntry, ids); ok || err != nil {
				return r.keepTasks(all, now.exactly(), err)
			}
		}
	}
	entries, err := historyIn(tx, "task", &r.kinds.entries, HistoryQuery{Limit: scanned})
	all := make([]pastEntry, len(entries))
	for i := range entries {
		all[i] = newPastEntry(&entries[i])
	}
	return r.keepTasks(all, now, err)
}

// pastAfter puts the entries that this recorder wrote before the others. It reports whether their
// order is certain.
func (r *Recorder) pastAfter(
	tx *store.Tx, known []pastEntry, ids []string,
) (all []pastEntry, ok bool, err error) {
	refs := make([]store.Ref, len(ids))
	for i, id := range ids {
		refs[i] = r.kinds.entries.Ref(id)
	}
	var s store.Snapshot
	if err := tx.Read(&s, nil, refs); err != nil {
		return nil, false, err
	}
	for i := range s.Records {
		kept, err := r.kinds.entries.Of(s.Records[i])
		if err != nil {
			return nil, false, err
		}
		if kept.Revision == 0 {
			return nil, false, nil
		}
		all = append(all, newPastEntry(&kept.Value))
	}
	slices.SortFunc(all, func(a, b pastEntry) int { return b.at.Compare(a.at) })
	for i := 1; i < len(all); i++ {
		if all[i].at.Equal(all[i-1].at) {
			return nil, false, nil
		}
	}
	if len(all) > 0 && len(known) > 0 && all[len(all)-1].at.Before(known[0].at) {
		return nil, false, nil
	}
	all = append(all, known...)
	return all[:min(len(all), scanned)], true, nil
}

// keepTasks makes tasks of entries, the latest first, and keeps them.
func (r *Recorder) keepTasks(all []pastEntry, now snapshot, err error) (*pastTasks, error) {
	if err != nil {
		return nil, err
	}
	p := &pastTasks{snapshot: now, pastEntry: all, posts: make(map[string][]int32)}
	seen := make(map[string]bool)
	for i := range all {
		t := &all[i]
		if t.review || seen[t.one.Task] {
			continue
		}
		seen[t.one.Task] = true
		for _, w := range t.words {
			p.posts[w] = append(p.posts[w], int32(len(p.all))) //nolint:gosec // at most scanned
		}
		p.words, p.all = append(p.words, t.words), append(p.all, t.one)
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
