package best

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// Config configures a [Race]. Learner must be set.
type Config struct {
	// Learner has the arms and learns from their outcomes. Its evidence must not fade: its HalfLife
	// must be 0. Unless it has IgnoreChanges, a change of an arm in use opens the race again. Its
	// Exploration must have a Bonus of 0, or of 1: a race then gives each arm MinSamples outcomes
	// first.
	Learner *strategy.Learner
	// Error is the probability with which a race may ever end with an arm that is worse than another
	// by more than 0.01, in (0, ½). It holds for each time that the race is opened. 0 means
	// 0.05. Lower it if a wrong winner is expensive. The race then needs more outcomes.
	Error float64
	// Explore is the share of choices after the end, in [0, ½], that goes to the other arms, each as
	// often. A change for the better of an arm that is never chosen goes unnoticed. 0 means no
	// exploration. Set it if arms may become better.
	Explore float64
}

// indifference is the difference of mean rewards that does not matter. Without it, a race of two
// equally good arms never ends.
const indifference = 0.01

// A Race looks for the best arm of a learner, for each category, context and item by itself. Make
// one with [New].
//
// Several processes may race for the same item, also with other settings: outcomes are shared
// through the store, and an end counts for each process whose settings are no stricter. The arms of
// a race that has ended may change; a race with other arms is a new one.
//
// It is safe for concurrent use by multiple goroutines.
type Race struct {
	cfg     Config
	learner strategy.Config // the settings of cfg.Learner, with its defaults

	looks *text.Memo[look] // by the id of a race; only a cache, because all state is in the store
}

// A look is what was found at the last look at a race. Shares cost an integral for each arm, so
// they are used again until the evidence has grown by a fiftieth.
type look struct {
	seen   winner.Seen
	resets uint64
	shares []float64
}

// due reports whether the shares have to be computed again for a state of the race.
func (l *look) due(s *state) bool { return l.resets != s.resets || l.seen.Due(s.seen) }

// maxLooks is how many looks are remembered at least.
const maxLooks = 5000

// New returns a race, or all faults of its configuration, joined; each is a [*heed.ConfigError].
func New(ctx context.Context, cfg Config) (*Race, error) {
	cfg.Error = cmp.Or(cfg.Error, 0.05)
	var found valid.Faults
	found.Check(cfg.Learner != nil, "Learner", nil, "must be set")
	found.Check(cfg.Error > 0 && cfg.Error < 0.5, "Error", cfg.Error,
		"must be in (0, 0.5), or 0 for the default")
	found.Check(cfg.Explore >= 0 && cfg.Explore <= 0.5, "Explore", cfg.Explore, "must be in [0, 0.5]")
	var learner strategy.Config
	if cfg.Learner != nil {
		learner = cfg.Learner.Config()
		found.Check(learner.HalfLife == 0, "Learner.HalfLife", learner.HalfLife,
			"must be 0: evidence that fades never suffices")
		bonus := learner.Exploration.Bonus
		found.Check(bonus == 0 || bonus == 1, "Learner.Exploration", bonus,
			"must be 0 or 1: a race draws no rates to which a bonus could be added")
	}
	err := found.Err()
	if err == nil {
		err = learner.Store.Declare(ctx, endings.Kind, store.Audit)
	}
	if err != nil {
		return nil, fmt.Errorf("best: %w", err)
	}
	return &Race{cfg: cfg, learner: learner, looks: text.NewMemo[look](maxLooks)}, nil
}

// An ending is the record of a race that ended. It keeps the arms and the sums that decided, so
// that a later process can find out whether they are still the same: see holds.
type ending struct {
	ID       string           `json:"id"`
	Learner  string           `json:"learner"`
	Category string           `json:"category,omitempty"`
	Context  string           `json:"context,omitempty"`
	Item     string           `json:"item,omitempty"`
	Arm      strategy.ArmID   `json:"arm"`
	Arms     []strategy.ArmID `json:"arms"`
	Sums     []winner.Record  `json:"sums"`   // of the arms' outcomes then, before any limits
	Resets   uint64           `json:"resets"` // how often the race's evidence had been reset

	// The permitted error with which it ended, after how many outcomes, and when. It has ended for
	// each process that permits this error or more. A process that permits less continues until the
	// evidence is enough, and then writes the end again.
	Error    float64   `json:"error"`
	Outcomes uint64    `json:"outcomes"`
	At       time.Time `json:"at"`
}

// endings is where the records of ended races are. There is no limit in time, because an arm that
// has won stays in use for long.
var endings = store.View[ending]{
	Kind:  store.Kind{Name: "strategy.winner", Limits: store.Limits{Most: 100_000}},
	Place: func(e ending) (id string, at time.Time, keys []string) { return e.ID, e.At, nil },
}

// Select chooses an arm: by the shares of the race, or the winner if it ended. The rules of
// [strategy.Learner.Select] hold. If the race can't be read, the learner chooses by itself, and the
// error reports why.
func (r *Race) Select(ctx context.Context, q strategy.Query) (strategy.Choice, error) {
	if r.learner.Disabled || len(q.Shares) > 0 {
		return r.cfg.Learner.Select(ctx, q)
	}
	s, err := r.stands(ctx, q)
	if err == nil {
		q.Shares = r.shares(&s, q.Arms)
	}
	c, failed := r.cfg.Learner.Select(ctx, q)
	return c, errors.Join(failed, err)
}

// Wants names what [Race.SelectIn] reads for a query: the state of the race, and what the learner
// reads.
func (r *Race) Wants(q strategy.Query) (w store.Wants) {
	if !r.learner.Disabled && len(q.Shares) == 0 {
		w = r.wants(&q)
	}
	w.Add(r.cfg.Learner.Wants(q))
	return w
}

// SelectIn does what [Race.Select] does as a part of a step. The rules of
// [strategy.Learner.SelectIn] hold. If the race ends or is opened again, that is a part of the step
// as well.
func (r *Race) SelectIn(tx *store.Tx, q strategy.Query) (strategy.Choice, error) {
	if r.learner.Disabled || len(q.Shares) > 0 {
		return r.cfg.Learner.SelectIn(tx, q)
	}
	s, err := r.standsIn(tx, q)
	if err == nil {
		q.Shares = r.shares(&s, q.Arms)
	}
	c, failed := r.cfg.Learner.SelectIn(tx, q)
	return c, errors.Join(failed, err)
}

// A state is the stored state of a race.
type state struct {
	id    string // of the ending's record
	query strategy.Query
	// records are the sums of each arm, within the limits on people. They decide.
	records []winner.Record
	counts  []uint64 // the outcomes of each arm
	// seen are the sums before any limits. They show what was taken back since the race ended: limits
	// may move sums without that.
	seen     winner.Seen
	resets   uint64 // how often the item and its segment were reset or restarted
	outcomes uint64 // of all arms
	ended    store.Row[ending]
	over     bool // the race ended, also by the settings of this process
}

// stands returns the state of the race of a query, and ends the race if there is enough evidence.
// If two processes end it at once, the store lets one commit, and the other reads its ending.
func (r *Race) stands(ctx context.Context, q strategy.Query) (s state, err error) {
	err = store.Do(ctx, r.learner.Store, func(tx *store.Tx) (err error) {
		s, err = r.standsIn(tx, q)
		return err
	})
	return s, valid.Wrap("best", err)
}

// standsIn does what stands does, as a part of a step.
func (r *Race) standsIn(tx *store.Tx, q strategy.Query) (state, error) {
	s, err := r.read(tx, q)
	if err == nil {
		r.settle(tx, &s)
	}
	return s, err
}

// id returns the id of the record with the end of a race.
func id(learner string, q *strategy.Query) string {
	return store.IDOf("winner", learner, answers.Scope(q.Category, q.Context), q.Item)
}

// wants names what is read of the race of a query: the arms' cells, the resets, and the ending.
func (r *Race) wants(q *strategy.Query) (w store.Wants) {
	l := &r.learner
	scope := answers.Scope(q.Category, q.Context)
	for _, arm := range l.Arms {
		w.Cells = append(w.Cells, answers.ArmCell(l.Name, scope, q.Item, string(arm.ID)))
	}
	w.Cells = append(w.Cells, answers.ResetsCell(l.Name, scope, ""))
	if q.Item != "" {
		w.Cells = append(w.Cells, answers.ResetsCell(l.Name, scope, q.Item))
	}
	w.Refs = []store.Ref{endings.Ref(id(l.Name, q))}
	return w
}

// read reads the state of the race of a query. The cells of the arms come first, then those that
// count resets, in the order of wants. It is one round trip, and none if a step has read them.
func (r *Race) read(tx *store.Tx, q strategy.Query) (s state, err error) {
	l, w := &r.learner, r.wants(&q)
	s = state{
		id: w.Refs[0].ID, query: q, records: make([]winner.Record, len(l.Arms)),
		counts: make([]uint64, len(l.Arms)),
	}
	var read store.Snapshot
	if err := tx.Read(&read, w.Cells, w.Refs); err != nil {
		return s, err
	}
	if s.ended, err = endings.In(tx, s.id); err != nil {
		return s, err
	}
	now, parts := evidence.InstantOf(l.Now()), read.Parts
	arms := make([][]evidence.Part, len(l.Arms))
	for i, cell := range w.Cells[:len(l.Arms)] {
		n, all := 0, evidence.Sums{}
		for ; n < len(parts) && parts[n].Cell == cell; n++ {
			s.counts[i] += parts[n].Tally.N()
			all = all.Plus(parts[n].Tally.At(now))
		}
		s.seen.Sums = append(s.seen.Sums, winner.Of(all))
		s.outcomes += s.counts[i]
		arms[i], parts = parts[:n], parts[n:]
	}
	for i, sums := range fair.Pool(l.Trust, arms, now) {
		s.records[i] = winner.Of(sums)
	}
	for _, part := range parts {
		s.resets += part.Tally.N()
	}
	s.seen.Outcomes = float64(s.outcomes)
	return s, nil
}

// settle ends the race if there is enough evidence, and opens it again if its end no longer holds.
// For a frozen query it leaves the race as it is. It ends a race again whose end holds for a
// greater error only, once the evidence is enough for this one.
func (r *Race) settle(tx *store.Tx, s *state) {
	ended := s.ended.Revision > 0
	holds := ended && r.holds(s)
	if s.over = holds && s.ended.Value.Error <= r.cfg.Error; s.over {
		return
	}
	best := winner.Stop(s.records, r.cfg.Error, indifference)
	if best < 0 && (holds || !ended) || s.query.Frozen {
		return
	}
	r.put(tx, s, best)
}

// holds reports whether the end of a race is still valid: for the same arms, on outcomes that were
// neither taken back nor reset, unless another arm is surely better by now. The winner is refuted
// by the error with which it won, whatever the settings are now.
func (r *Race) holds(s *state) bool {
	e := &s.ended.Value
	same := slices.EqualFunc(e.Arms, r.learner.Arms, func(id strategy.ArmID, a strategy.Arm) bool {
		return id == a.ID
	})
	if e.Resets != s.resets || !same || winner.Lost(e.Sums, s.seen.Sums) {
		return false
	}
	lead := slices.Index(e.Arms, e.Arm)
	return lead >= 0 && !winner.Refuted(s.records, lead, e.Error, indifference)
}

// put adds the end of a race to a step, or that it is open again if best is negative, with an entry
// in the audit. The ids of entries have the revision, so that a step that is repeated after a
// conflict writes one entry. A race that is open again has no record. Processes that had read the
// old one meet a conflict.
func (r *Race) put(tx *store.Tx, s *state, best int) {
	now, before := evidence.InstantOf(r.learner.Now()).Time(), s.ended
	entry := store.AuditEntry{
		ID: store.IDOf("race", s.id, fmt.Sprint(before.Revision), fmt.Sprint(best), now.String()),
		At: now, Actor: "heed", Subject: s.query.Item,
		Details: map[string]string{"category": s.query.Category, "context": s.query.Context},
	}
	if best < 0 {
		entry.Action, entry.Reason = r.learner.Name+".reopen",
			fmt.Sprintf("the evidence for %s no longer suffices", before.Value.Arm)
		tx.Put(endings.Removal(s.id, before.Revision))
	} else {
		e := ending{
			ID: s.id, Learner: r.learner.Name, Category: s.query.Category, Context: s.query.Context,
			Item: s.query.Item, Arm: r.learner.Arms[best].ID, Sums: s.seen.Sums, Resets: s.resets,
			Error: r.cfg.Error, Outcomes: s.outcomes, At: now,
		}
		for _, arm := range r.learner.Arms {
			e.Arms = append(e.Arms, arm.ID)
		}
		entry.Action = r.learner.Name + ".winner"
		entry.Reason = fmt.Sprintf("%s is best, with an error of at most %v, after %d outcomes", e.Arm,
			r.cfg.Error, s.outcomes)
		endings.Put(tx, e, before.Revision)
		s.ended.Value, s.over = e, true
	}
	tx.Put(entry.Record())
}

// shares returns with which probability each of the permitted arms is chosen next: after the end by
// settled, before it first the arms with too few outcomes for Exploration, then by top-two
// sampling. Looks are kept only if all arms are permitted. nil: the learner refuses the query,
// because an arm is unknown.
func (r *Race) shares(s *state, permitted []strategy.ArmID) []float64 {
	all := len(permitted) == 0
	var of []winner.Record
	var few []int
	lead := -1
	add := func(i int) {
		if s.counts[i] < uint64(r.learner.Exploration.MinSamples) { // 0 without a bonus
			few = append(few, len(of))
		}
		if s.over && r.learner.Arms[i].ID == s.ended.Value.Arm {
			lead = len(of)
		}
		of = append(of, s.records[i])
	}
	for i := range r.learner.Arms {
		if all {
			add(i)
		}
	}
	for _, id := range permitted {
		i := slices.IndexFunc(r.learner.Arms, func(a strategy.Arm) bool { return a.ID == id })
		if i < 0 {
			return nil
		}
		add(i)
	}
	switch last, ok := r.looks.Get(s.id); {
	// The winner may not be permitted for this query. Then lead is negative, and the permitted arms
	// are raced among themselves.
	case lead >= 0:
		return r.settled(len(of), lead)
	case len(few) > 0:
		shares := make([]float64, len(of))
		for _, at := range few {
			shares[at] = 1 / float64(len(few))
		}
		return shares
	case !all:
		return winner.Shares(of)
	case ok && !last.due(s):
		return last.shares
	}
	shares := winner.Shares(of)
	r.looks.Put(s.id, look{s.seen, s.resets, shares})
	return shares
}

// settled returns the shares of n arms after the end. Without Explore the winner has all.
func (r *Race) settled(n, lead int) []float64 {
	if n == 1 {
		return []float64{1}
	}
	shares := slices.Repeat([]float64{r.cfg.Explore / float64(n-1)}, n)
	shares[lead] = 1 - r.cfg.Explore
	return shares
}
