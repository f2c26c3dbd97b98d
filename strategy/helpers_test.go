package strategy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/stream"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// A clock stands still until it is told to go on.
type clock struct{ since atomic.Int64 }

func (c *clock) Now() time.Time          { return start.Add(time.Duration(c.since.Load())) }
func (c *clock) Advance(d time.Duration) { c.since.Add(int64(d)) }

// plain returns arms without parameters and of equal weight.
func plain(ids ...strategy.ArmID) []strategy.Arm {
	arms := make([]strategy.Arm, len(ids))
	for i, id := range ids {
		arms[i].ID = id
	}
	return arms
}

func newStore(t testing.TB, now func() time.Time) *memstore.Store {
	st, err := memstore.New(memstore.Config{Now: now})
	require.NoError(t, err)
	return st
}

// withFixtures fills in what a test does not care about: a clock that stands, a store of its own, a
// fixed seed, four arms.
func withFixtures(t testing.TB, cfg strategy.Config) strategy.Config {
	if cfg.Now == nil {
		cfg.Now = (&clock{}).Now
	}
	if cfg.Store == nil {
		cfg.Store = newStore(t, cfg.Now)
	}
	if cfg.Seed == nil {
		cfg.Seed = rand.NewPCG(1, 2)
	}
	if cfg.Arms == nil {
		cfg.Arms = plain("a", "b", "c", "d")
	}
	return cfg
}

func newLearner(t testing.TB, cfg strategy.Config) *strategy.Learner {
	l, err := strategy.New(ctx, withFixtures(t, cfg))
	require.NoError(t, err)
	return l
}

func choose(t testing.TB, l *strategy.Learner, q strategy.Query) strategy.Choice {
	c, err := l.Select(ctx, q)
	require.NoError(t, err)
	return c
}

// credit observes an outcome of full confidence.
func credit(t testing.TB, l *strategy.Learner, c strategy.Choice, value float64) {
	disposition, err := l.Observe(ctx, strategy.Outcome{Choice: c, Value: value, Confidence: 1})
	require.NoError(t, err)
	require.Equal(t, strategy.Applied, disposition)
}

// try makes the arm the only one that is permitted, and credits it.
func try(t testing.TB, l *strategy.Learner, q strategy.Query, arm strategy.ArmID, value float64) {
	q.Arms = []strategy.ArmID{arm}
	credit(t, l, choose(t, l, q), value)
}

func beliefs(t testing.TB, l *strategy.Learner, q strategy.Query) []evidence.Belief {
	b, err := l.Beliefs(ctx, q)
	require.NoError(t, err)
	return b
}

// means returns the mean of each belief about an item.
func means(t testing.TB, l *strategy.Learner, q strategy.Query) []float64 {
	var all []float64
	for _, b := range beliefs(t, l, q) {
		all = append(all, b.Mean())
	}
	return all
}

// shares returns how often each arm is chosen for an item by choices without a session.
func shares(t testing.TB, l *strategy.Learner, q strategy.Query, n int) map[strategy.ArmID]float64 {
	q.Session = ""
	share := make(map[strategy.ArmID]float64)
	for range n {
		share[choose(t, l, q).Arm] += 1 / float64(n)
	}
	return share
}

// assertShare checks a share of n draws against a probability, within the given number of standard
// errors.
func assertShare(t testing.TB, want, got float64, n int, errors float64, about ...any) {
	t.Helper()
	assert.InDelta(t, want, got, errors*math.Sqrt(want*(1-want)/float64(n)), about...)
}

// drawn writes all of a choice that comes from its randomness and from what was believed.
func drawn(c strategy.Choice) string {
	text := string(c.Arm)
	for _, d := range c.Record().Draws {
		text += fmt.Sprintf(" %s:%v+%v", d.Arm, d.Sample, d.Bonus)
	}
	for name, value := range c.Parameters() {
		text += " " + name + "=" + value
	}
	return text
}

// throughJSON returns the choice as another process would read it.
func throughJSON(t testing.TB, c strategy.Choice) (read strategy.Choice) {
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &read))
	return read
}

// kept returns all that a store has of a learner in the segment of a query, as far as it is of one
// of these sorts: "arm", "given", "sessions", "parameter".
func kept(t testing.TB, st store.Store, q strategy.Query, sorts ...string) []evidence.Part {
	scope := strategy.Choice{Category: q.Category, Context: q.Context}.Cells()[0].Scope
	var parts []evidence.Part
	for _, sort := range sorts {
		for part, err := range st.List(ctx, store.CellQuery{Kind: "strategy." + sort, Scope: scope}) {
			require.NoError(t, err)
			parts = append(parts, part)
		}
	}
	return parts
}

func everything(t testing.TB, st store.Store, q strategy.Query) []evidence.Part {
	return kept(t, st, q, "arm", "given", "sessions", "parameter")
}

func massOf(parts []evidence.Part) (mass float64) {
	for _, p := range parts {
		mass += p.Tally.Mass
	}
	return mass
}

func assertInputError(t testing.TB, err error, field string) {
	t.Helper()
	var fault *heed.InputError
	if assert.ErrorAs(t, err, &fault) {
		assert.Equal(t, field, fault.Field)
	}
}

// fields returns the fields of all faults of a configuration, in order.
func fields(err error) (names []string) {
	for fault := range heed.ConfigErrors(err) {
		names = append(names, fault.Field)
	}
	return names
}

// A faulty store fails as long as it is told to.
type faulty struct {
	store.Store
	read, list, find, commit atomic.Pointer[error]
}

func failure(p *atomic.Pointer[error]) error {
	if err := p.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *faulty) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	if err := failure(&f.read); err != nil {
		return err
	}
	return f.Store.Read(ctx, into, cells, refs, finds...)
}

func (f *faulty) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	if err := failure(&f.list); err != nil {
		return func(yield func(evidence.Part, error) bool) { yield(evidence.Part{}, err) }
	}
	return f.Store.List(ctx, q)
}

func (f *faulty) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	if err := failure(&f.find); err != nil {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, err) }
	}
	return f.Store.Find(ctx, q)
}

func (f *faulty) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if err := failure(&f.commit); err != nil {
		return nil, err
	}
	return f.Store.Commit(ctx, batches...)
}

// read returns the parts of cells.
func read(t testing.TB, st store.Store, cells ...evidence.Cell) []evidence.Part {
	var s store.Snapshot
	require.NoError(t, st.Read(ctx, &s, cells, nil))
	return s.Parts
}

// audited returns the audit entries of a store, the newest first.
func audited(t testing.TB, st store.Store) (entries []store.AuditEntry) {
	for e, err := range store.AuditEntries(ctx, st, store.Query{}) {
		require.NoError(t, err)
		entries = append(entries, e)
	}
	return entries
}

// poolings are those that come with the package.
var poolings = []strategy.Pooling{strategy.TwoLevel{}, strategy.Copy{}, strategy.Alone{}}

// contextDone returns a context that is done.
func contextDone() (context.Context, context.CancelFunc) {
	done, cancel := context.WithCancel(ctx)
	cancel()
	return done, cancel
}

func outbox(t testing.TB, st store.Store) (events []stream.Event) {
	for e, err := range stream.Waiting(ctx, st) {
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

// A fragile store asks first whether a commit may fail now. After a method (Read,
// Commit) had its effect, and before it returns, it calls after, once.
type fragile struct {
	store.Store
	before func(ctx context.Context, b store.Batch) error
	after  map[string]func() // by method
}

func (s *fragile) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	defer s.did("Read")
	return s.Store.Read(ctx, into, cells, refs, finds...)
}

func (s *fragile) did(method string) {
	if after := s.after[method]; after != nil {
		s.after = nil
		after()
	}
}

func (s *fragile) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	for _, b := range batches {
		if s.before != nil {
			if err := s.before(ctx, b); err != nil {
				return nil, err
			}
		}
	}
	defer s.did("Commit")
	return s.Store.Commit(ctx, batches...)
}

// long returns how often a long test repeats what it does: with HEED_LONG the full number, and else
// the short one. A test that states a standard error states it for both.
func long(short, full int) int {
	if os.Getenv("HEED_LONG") != "" {
		return full
	}
	return short
}

// No test of this package may leave a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// revise puts one outcome in the place of another, by its source.
func revise(l interface {
	Revise(
		ctx context.Context, ids []string, outcomes []strategy.Outcome, actor string,
	) ([]strategy.Disposition, error)
}, id string, o strategy.Outcome) (strategy.Disposition, error) {
	did, err := l.Revise(ctx, []string{id}, []strategy.Outcome{o}, o.Source)
	if err != nil {
		return "", err
	}
	return did[0], nil
}

// distribution returns what is believed in a segment.
func distribution(
	l *strategy.Learner, category, context string,
) (strategy.Distribution, error) {
	for d, err := range l.Distributions(ctx, strategy.Query{Category: category, Context: context}) {
		return d, err
	}
	return strategy.Distribution{}, heed.ErrNotFound
}

// itemReport returns what is believed of an item.
func itemReport(l *strategy.Learner, q strategy.Query) (strategy.Standing, error) {
	q.Session, q.Arms = "", nil
	for d, err := range l.Distributions(ctx, q) {
		r, ok := d.Item(q.Item)
		if err == nil && !ok {
			err = heed.ErrNotFound
		}
		return r, err
	}
	return strategy.Standing{}, heed.ErrNotFound
}

// outcomes returns the outcomes that the evidence of an item has, the last first.
func outcomes(
	l *strategy.Learner, q strategy.Query, limit int,
) (all []strategy.ChoiceRecord, err error) {
	for r, err := range l.History(ctx, strategy.ChoiceFilter{
		Evidence: true, Item: q.Item, Category: q.Category, Context: q.Context, Limit: limit,
	}) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// reported returns all that is believed as text.
func reported(t testing.TB, l *strategy.Learner) string {
	text, err := json.Marshal(distributionsOf(t, l))
	require.NoError(t, err)
	return string(text)
}

// stages counts the choices by how far they have come.
func stages(t testing.TB, l *strategy.Learner) map[strategy.Stage]int {
	all := make(map[strategy.Stage]int)
	for _, r := range historyOf(t, l, strategy.ChoiceFilter{}) {
		all[r.Stage]++
	}
	return all
}

// linearOf returns what the linear level believes: mean and deviation of each arm, and then the
// weight of the level.
func linearOf(t testing.TB, l *strategy.Learner, x []float32) (all []float64) {
	c := choose(t, l, strategy.Query{Vector: x, Frozen: true})
	r := c.Record()
	require.NotNil(t, r.Linear)
	for _, d := range r.Draws {
		all = append(all, d.Mean, d.Deviation)
	}
	return append(all, r.Linear.Weight)
}
