package best

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/cells"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// Config configures a [Race]. Learner must be set.
type Config struct {
	// Learner has the arms and learns from their outcomes. Its evidence must not fade: its HalfLife must be 0. With its Change, a change of
	// an arm in use opens the race anew.
	Learner *strategy.Learner
	// Error is the probability with which a race may ever end with an arm that is worse than another by more than Indifference, in (0, ½). It
	// holds for each time that the race is opened. 0 means 0.05.
	Error float64
	// Indifference is the difference of mean rewards, in [0, 1], that does not matter. Without it, a race of two equally good arms
	// never ends. 0 means 0.01.
	Indifference float64
	// Explore is the share of choices after the end, in [0, ½], that goes to the other arms, each as often. A change for the better of an arm that is
	// never chosen goes unnoticed. 0: none.
	Explore float64
}

// A Race looks for the best arm of a learner, for each category, context and item by itself. Make one with [New].
//
// It is safe for concurrent use by multiple goroutines.
type Race struct {
	cfg     Config
	learner strategy.Config
	mu      sync.Mutex
	looks   map[string]look
}

// A look is what was found at the last look at a race.
type look struct {
	mass   float64 // of the evidence then
	arms   int
	shares []float64
}

// maxLooks bounds the looks that are remembered.
const maxLooks = 10_000

// New returns a race, or all faults of its configuration, joined; each is a [*heed.ConfigError].
func New(ctx context.Context, cfg Config) (*Race, error) {
	cfg.Error, cfg.Indifference = cmp.Or(cfg.Error, 0.05), cmp.Or(cfg.Indifference, 0.01)
	var found faults.List
	found.Check(cfg.Learner != nil, "Learner", nil, "must be set")
	found.Check(cfg.Error > 0 && cfg.Error < 0.5, "Error", cfg.Error, "must be in (0, 0.5), or 0 for the default")
	found.Check(cfg.Indifference > 0 && cfg.Indifference <= 1, "Indifference", cfg.Indifference, "must be in (0, 1], or 0 for the default")
	found.Check(cfg.Explore >= 0 && cfg.Explore <= 0.5, "Explore", cfg.Explore, "must be in [0, 0.5]")
	var learner strategy.Config
	if cfg.Learner != nil {
		learner = cfg.Learner.Config()
		found.Check(learner.HalfLife == 0, "Learner.HalfLife", learner.HalfLife, "must be 0: evidence that fades never suffices")
	}
	err := found.Err()
	if err == nil {
		err = learner.Store.Declare(ctx, endings.Kind, store.Audit)
	}
	if err != nil {
		return nil, fmt.Errorf("best: %w", err)
	}
	return &Race{cfg: cfg, learner: learner, looks: make(map[string]look)}, nil
}

// An ending is the record of a race that has ended.
type ending struct {
	ID           string           `json:"id"`
	Learner      string           `json:"learner"`
	Category     string           `json:"category,omitempty"`
	Context      string           `json:"context,omitempty"`
	Item         string           `json:"item,omitempty"`
	Arm          strategy.ArmID   `json:"arm"`
	Arms         []strategy.ArmID `json:"arms"`
	Masses       []float64        `json:"masses"` // of the arms' evidence then
	Outcomes     uint64           `json:"outcomes"`
	Error        float64          `json:"error"`
	Indifference float64          `json:"indifference"`
	At           time.Time        `json:"at"`
}

var endings = records.Kind[ending]{
	Kind: store.Kind{Name: "strategy.winner", Limits: store.Limits{Most: 100_000}},
	Place: func(e ending) (id string, at time.Time, keys []string) {
		return e.ID, e.At, []string{store.Key("learner", e.Learner)}
	},
}

// Select chooses an arm: by the shares of the race, or the winner if it has ended. The rules of [strategy.Learner.Select] hold. If the race
// can't be read, the learner chooses by itself, and the error says so.
func (r *Race) Select(ctx context.Context, q strategy.Query) (strategy.Choice, error) {
	if r.learner.Disabled || len(q.Shares) > 0 {
		return r.cfg.Learner.Select(ctx, q)
	}
	s, err := r.read(ctx, q)
	if err == nil {
		err = r.settle(ctx, &s)
	}
	if err == nil {
		q.Shares = r.shares(&s, q.Arms)
	}
	c, failed := r.cfg.Learner.Select(ctx, q)
	return c, errors.Join(failed, err)
}

// A state is how a race stands in the store.
type state struct {
	id       string
	query    strategy.Query
	records  []winner.Record
	counts   []uint64
	mass     float64
	outcomes uint64
	ended    records.Kept[ending]
}

// read reads how the race of a query stands.
func (r *Race) read(ctx context.Context, q strategy.Query) (s state, err error) {
	l := &r.learner
	scope := cells.Scope(q.Category, q.Context)
	s = state{
		id: records.ID("winner", l.Name, scope, q.Item), query: q,
		records: make([]winner.Record, len(l.Arms)), counts: make([]uint64, len(l.Arms)),
	}
	wanted := make([]evidence.Cell, len(l.Arms))
	for i, arm := range l.Arms {
		wanted[i] = cells.Arm(l.Name, scope, q.Item, string(arm.ID))
	}
	var read store.Snapshot
	if err := l.Store.Read(ctx, &read, wanted, []store.Ref{endings.Ref(s.id)}); err != nil {
		return s, fmt.Errorf("best: %w", err)
	}
	if s.ended, err = endings.Of(read.Records[0]); err != nil {
		return s, fmt.Errorf("best: %w", err)
	}
	now, parts := evidence.InstantOf(l.Now()), read.Parts
	for i, cell := range wanted {
		n := 0
		for ; n < len(parts) && parts[n].Cell == cell; n++ {
			s.counts[i] += parts[n].Tally.N()
		}
		s.records[i] = winner.Of(l.Caps.Pool(parts[:n], now))
		s.mass += s.records[i].Mass
		s.outcomes += s.counts[i]
		parts = parts[n:]
	}
	return s, nil
}

// settle ends the race if there is enough, and opens it anew if its end no longer holds.
func (r *Race) settle(ctx context.Context, s *state) error {
	if s.ended.Revision > 0 {
		if r.holds(s) {
			return nil
		}
	} else if last, ok := r.last(s.id); ok && last.arms == len(s.records) && !winner.Due(last.mass, s.mass) {
		return nil
	}
	best := winner.Stop(s.records, r.cfg.Error, r.cfg.Indifference)
	if best < 0 && s.ended.Revision == 0 {
		return nil
	}
	return r.commit(ctx, s, best)
}

// holds reports whether the end of a race still stands: for the same arms and settings, and on evidence that is still there.
func (r *Race) holds(s *state) bool {
	e := &s.ended.Value
	if e.Error != r.cfg.Error || e.Indifference != r.cfg.Indifference || len(e.Arms) != len(s.records) || len(e.Masses) != len(s.records) {
		return false
	}
	for i, arm := range r.learner.Arms {
		if e.Arms[i] != arm.ID || s.records[i].Mass < e.Masses[i]*(1-1e-9) {
			return false
		}
	}
	return true
}

// commit stores the end of a race, or that it is open again, with an entry in the audit. Who is slower takes what the other has stored.
func (r *Race) commit(ctx context.Context, s *state, best int) error {
	now, before := evidence.InstantOf(r.learner.Now()).Time(), s.ended
	b := store.Batch{}
	entry := store.AuditEntry{
		ID: records.ID("race", s.id, fmt.Sprint(before.Revision), fmt.Sprint(best), now.String()), At: now, Actor: "heed", Subject: s.query.Item,
		Details: map[string]string{"category": s.query.Category, "context": s.query.Context},
	}
	if best < 0 {
		entry.Action, entry.Reason = r.learner.Name+".reopen", fmt.Sprintf("the evidence for %s no longer suffices", before.Value.Arm)
		b.Records = append(b.Records, endings.Removal(s.id, before.Revision))
		s.ended = records.Kept[ending]{ID: s.id}
	} else {
		e := ending{
			ID: s.id, Learner: r.learner.Name, Category: s.query.Category, Context: s.query.Context, Item: s.query.Item, Arm: r.learner.Arms[best].ID,
			Outcomes: s.outcomes, Error: r.cfg.Error, Indifference: r.cfg.Indifference, At: now,
		}
		for i, arm := range r.learner.Arms {
			e.Arms, e.Masses = append(e.Arms, arm.ID), append(e.Masses, s.records[i].Mass)
		}
		entry.Action = r.learner.Name + ".winner"
		entry.Reason = fmt.Sprintf("%s is best, with an error of at most %v, after %d outcomes", e.Arm, e.Error, e.Outcomes)
		b.Records = append(b.Records, endings.Record(e, before.Revision))
		s.ended.Value = e
	}
	b.Records = append(b.Records, entry.Record())
	receipts, err := r.learner.Store.Commit(ctx, b)
	if errors.Is(err, heed.ErrConflict) {
		*s, err = r.read(ctx, s.query)
		return err
	}
	if err != nil {
		return fmt.Errorf("best: %w", err)
	}
	if best >= 0 {
		s.ended.Revision = receipts[0].Revision
	}
	return nil
}

func (r *Race) last(id string) (look, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.looks[id]
	return l, ok
}

// shares returns with which probability each of the permitted arms is chosen next. nil: the learner refuses the query.
func (r *Race) shares(s *state, permitted []strategy.ArmID) []float64 {
	all := len(permitted) == 0
	var of []winner.Record
	lead := -1
	add := func(i int) {
		if s.ended.Revision > 0 && r.learner.Arms[i].ID == s.ended.Value.Arm {
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
	switch last, ok := r.last(s.id); {
	case lead >= 0:
		return r.settled(len(of), lead)
	case !all:
		return winner.Shares(of)
	case ok && last.arms == len(of) && !winner.Due(last.mass, s.mass):
		return last.shares
	}
	shares := winner.Shares(of)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.looks) >= maxLooks {
		clear(r.looks)
	}
	r.looks[s.id] = look{s.mass, len(of), shares}
	return shares
}

// settled returns the shares of n arms after the end.
func (r *Race) settled(n, lead int) []float64 {
	shares := make([]float64, n)
	for i := range shares {
		if n > 1 {
			shares[i] = r.cfg.Explore / float64(n-1)
		}
	}
	shares[lead] = 1
	if n > 1 {
		shares[lead] = 1 - r.cfg.Explore
	}
	return shares
}
