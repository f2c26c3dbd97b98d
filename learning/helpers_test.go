package learning_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)
)

// A clock stands still until it is told to go on.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// faulty is a store that fails as long as it is told to, and counts what is asked of it.
type faulty struct {
	store.Store
	mu       sync.Mutex
	err      error // of Commit
	blind    error // of all that reads
	blindAt  int   // the read from now that fails; 0 none
	failOnce error // of the next Commit
	commits  []store.Batch
	reads    int
	forgets  bool // the batches, as long tests make many of them
}

func (f *faulty) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *faulty) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	f.mu.Lock()
	if !f.forgets {
		asJSON(batches)
		f.commits = append(f.commits, batches...)
	}
	err := f.err
	if f.failOnce != nil {
		err, f.failOnce = f.failOnce, nil
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.Store.Commit(ctx, batches...)
}

// asJSON has the records be JSON, as a database has them.
func asJSON(batches []store.Batch) {
	for _, b := range batches {
		for i, r := range b.Records {
			if text, err := r.Body.JSON(); err == nil && text != nil {
				b.Records[i].Body = store.Raw(text)
			}
		}
	}
}

func (f *faulty) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	f.mu.Lock()
	f.reads++
	f.blindAt--
	blind := f.blindAt == 0
	f.mu.Unlock()
	if blind {
		return errDown
	}
	if f.blind != nil {
		return f.blind
	}
	return f.Store.Read(ctx, into, cells, refs, finds...)
}

func (f *faulty) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	if f.blind != nil {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, f.blind) }
	}
	return f.Store.Find(ctx, q)
}

func (f *faulty) History(ctx context.Context, c evidence.Cell) iter.Seq2[evidence.Observation,
	error] {
	if f.blind != nil {
		return func(yield func(evidence.Observation, error) bool) {
			yield(evidence.Observation{},
				f.blind)
		}
	}
	return f.Store.History(ctx, c)
}

func (f *faulty) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	if f.blind != nil {
		return func(yield func(evidence.Part, error) bool) { yield(evidence.Part{}, f.blind) }
	}
	return f.Store.List(ctx, q)
}

var errDown = errors.New("the store is down")

// A fixture is a module with its store and its clock.
type fixture struct {
	testing.TB
	*learning.Module
	clock      *clock
	store      *faulty
	wanted     learning.Heuristic // by a deed
	duplicates *atomic.Int64      // the notices of what was counted before, in a test of faults
}

// newFixture makes a module over a fresh store, with these heuristics, whose initial confidence is
// ½.
func newFixture(t testing.TB, cfg learning.Config, ids ...string) *fixture {
	t.Helper()
	return newFixtureOver(t, memstore.Config{}, cfg, ids...)
}

// allAlike has every implicit signal count 1.
var allAlike = map[string]float64{learning.ChannelTimeout: 1, learning.ChannelIgnored: 1}

// loud has implicit signals of 1, so that sums are easy to see. SpecConfig and the defaults have
// tests of their own.
var loud = must(learning.NewBayesian(learning.BayesianConfig{Weights: allAlike}))

// plain is a configuration for tests: with implicit signals of 1 unless it says otherwise.
func plain(cfg learning.Config) learning.Config {
	if cfg.Strategy == nil {
		cfg.Strategy = loud
	}
	return cfg
}

func newFixtureOver(t testing.TB, over memstore.Config, cfg learning.Config,
	ids ...string) *fixture {
	t.Helper()
	return newFixtureAsIs(t, over, plain(cfg), ids...)
}

// newFixtureDefault has the defaults where the configuration does not say otherwise.
func newFixtureDefault(t testing.TB, cfg learning.Config, ids ...string) *fixture {
	t.Helper()
	return newFixtureAsIs(t, memstore.Config{}, cfg, ids...)
}

// newFixtureAsIs leaves the configuration as it is.
func newFixtureAsIs(t testing.TB, over memstore.Config, cfg learning.Config,
	ids ...string) *fixture {
	t.Helper()
	f := &fixture{TB: t, clock: &clock{now: start}}
	over.Now = f.clock.Now
	st, err := memstore.New(over)
	require.NoError(t, err)
	f.store = &faulty{Store: st}
	cfg.Store, cfg.Now = f.store, f.clock.Now
	f.Module, err = learning.New(ctx, cfg)
	require.NoError(t, err)
	for _, id := range ids {
		f.put(learning.Heuristic{ID: id, Initial: 0.5})
	}
	f.store.commits, f.store.reads = nil, 0
	return f
}

// another returns a module as another process has it.
func (f *fixture) another(cfg learning.Config) *fixture {
	f.Helper()
	cfg = plain(cfg)
	cfg.Store, cfg.Now = f.store, f.clock.Now
	m, err := learning.New(ctx, cfg)
	require.NoError(f, err)
	return &fixture{TB: f.TB, Module: m, clock: f.clock, store: f.store}
}

func (f *fixture) put(h learning.Heuristic) learning.Heuristic {
	f.Helper()
	h, err := f.Put(ctx, h)
	require.NoError(f, err)
	return h
}

func (f *fixture) fire(heuristic, event, source string) {
	f.Helper()
	require.NoError(f, f.Fire(ctx, learning.Fire{HeuristicID: heuristic, EventID: event,
		Stream: source, Session: "room"}))
}

func (f *fixture) event(source, text string) []learning.Change {
	f.Helper()
	changes, err := f.Hear(ctx, learning.Message{Stream: source, Session: "room", Text: text})
	require.NoError(f, err)
	return changes
}

func (f *fixture) hear(m learning.Message) []learning.Change {
	f.Helper()
	changes, err := f.Hear(ctx, m)
	require.NoError(f, err)
	return changes
}

func (f *fixture) sweep() []learning.Change {
	f.Helper()
	changes, err := f.Timeouts(ctx, time.Time{})
	require.NoError(f, err)
	return changes
}

func (f *fixture) say(fb learning.Judgement) learning.Change {
	f.Helper()
	change, err := f.Judge(ctx, fb)
	require.NoError(f, err)
	return change
}

// thumb is thumbs of ann.
func thumb(heuristic, event string, positive bool) learning.Judgement {
	return learning.Judgement{HeuristicID: heuristic, EventID: event, Person: "ann",
		Value: value(positive)}
}

func value(positive bool) float64 {
	if positive {
		return 1
	}
	return -1
}

func (f *fixture) apply(id, heuristic string, weight float64) learning.Change {
	f.Helper()
	s := learning.Signal{HeuristicID: heuristic, Channel: "user_implicit", Worth: weight}
	change, err := f.Apply(ctx, s, learning.Origin{ID: id})
	require.NoError(f, err)
	return change
}

// waiting returns how many answers have not ended.
func (f *fixture) waiting() int {
	f.Helper()
	n, err := learning.Awaited(ctx, f.Module)
	require.NoError(f, err)
	return n
}

// answer returns the record of the answer to an event.
func (f *fixture) answer(event string) *answer.Answer {
	f.Helper()
	view := f.Steps().Answers()
	row, err := view.Get(ctx, f.store, store.IDOf(event))
	require.NoError(f, err)
	return &row.Value
}

func (f *fixture) standing(heuristic string) learning.Standing {
	f.Helper()
	s, err := f.Standing(ctx, heuristic)
	require.NoError(f, err)
	return s
}

// rate returns how often a heuristic works.
func rate(s learning.Standing) float64 {
	return float64(s.Successes) / float64(
		s.Successes+s.Failures)
}

func (f *fixture) confidence(heuristic string) float64 { return f.standing(heuristic).Confidence }

// counted returns what is in the evidence of a heuristic: its observations with their signed
// weights, by channel.
func (f *fixture) counted(heuristic string) map[string][]float64 {
	f.Helper()
	e, err := f.Explain(ctx, heuristic)
	require.NoError(f, err)
	all := map[string][]float64{}
	for i := len(e.History) - 1; i >= 0; i-- {
		o := e.History[i]
		weight := o.Weight
		if o.Reward < 0.5 {
			weight = -weight
		}
		all[o.Channel] = append(all[o.Channel], weight)
	}
	return all
}

// types returns the directions of the signals of changes, and what they were about.
func types(changes []learning.Change) (all []string) {
	for _, c := range changes {
		way := "neutral"
		if c.Signal.Worth > 0 {
			way = "positive"
		} else if c.Signal.Worth < 0 {
			way = "negative"
		}
		all = append(all, way+" "+c.Signal.HeuristicID)
	}
	return all
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

// readJSON reads a file of testdata.
func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into))
}

const oracleUndo, oracleSilence = 60 * time.Second, 30 * time.Second

// undoAll needs no order of answers that were shown at the same moment.
var undoAll = learning.Config{Strategy: learning.UndoAll(learning.BayesianConfig{
	Weights: allAlike, UndoWindow: oracleUndo, SilenceWindow: oracleSilence,
})}
