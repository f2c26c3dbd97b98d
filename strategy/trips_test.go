package strategy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/strategy/injection"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

// TestRoundTrips counts the calls of the store: a database answers each in a round trip.
func TestRoundTrips(t *testing.T) {
	for _, unrecorded := range []bool{false, true} {
		for _, pooling := range poolings {
			c := &clock{}
			st := &storetest.Failing{Store: newStore(t, c.Now)}
			cfg := strategy.Config{
				Now: c.Now, Store: st, Pooling: pooling, Unrecorded: unrecorded, Topic: "heed.strategy",
				Arms: injection.Arms(),
			}
			l := newLearner(t, cfg)
			trips := func(list, read, find, commit int, do func()) {
				t.Helper()
				st.Fail(0, false)
				do()
				got := []int{st.Calls("List"), st.Calls("Read"), st.Calls("Find"), st.Calls("Commit"),
					st.Calls()}
				assert.Equal(t, []int{list, read, find, commit, list + read + find + commit}, got,
					"%v, unrecorded: %v", pooling, unrecorded)
			}
			recorded := 1
			if unrecorded {
				recorded = 0
			}
			var first, second, third strategy.Choice
			s, q := strategy.Query{Session: "s", Item: "i"}, strategy.Query{Session: "t", Item: "i"}
			trips(1, 1, 0, recorded, func() { first = choose(t, l, s) })
			trips(0, 0, 0, 0, func() { choose(t, l, s) })
			trips(0, 1, 0, recorded, func() { second = choose(t, l, q) })
			trips(0, 1, 0, recorded, func() { third = choose(t, l, strategy.Query{Item: "i"}) })
			for _, choice := range []strategy.Choice{first, second, third} {
				trips(0, 0, 0, 1, func() { credit(t, l, choice, 1) })
			}
			trips(0, 0, 0, 1-recorded, func() { // it comes again, and the choice knows its record
				_, err := l.Observe(ctx, strategy.Outcome{Choice: first, Value: 1, Confidence: 1})
				require.NoError(t, err)
			})
			other := newLearner(t, cfg)
			trips(0, recorded, 0, 1, func() { // another process needs the record, and not the segment
				_, err := other.Observe(ctx, strategy.Outcome{Choice: throughJSON(t, second), ID: "2",
					Value: 1, Confidence: 1})
				require.NoError(t, err)
			})
			trips(0, recorded, 0, recorded, func() { require.NoError(t, l.EndSession(ctx, "t")) })
			if unrecorded {
				continue
			}
			trips(0, 0, 1, 0, func() { require.NoError(t, l.Sweep(ctx, time.Time{})) })
			found := strategy.ChoiceRecord{}
			trips(0, 0, 1, 0, func() {
				var err error
				found, err = other.Find(ctx, "s", "i", c.Now())
				require.NoError(t, err)
			})
			trips(0, 0, 0, 1, func() {
				_, err := other.Observe(ctx, strategy.Outcome{Choice: found.Choice, ID: "3", Value: 1,
					Confidence: 1})
				require.NoError(t, err)
			})
		}
	}
}

// An outcome has the segment listed again only if its confidence moves the scale of the weights
// far, on which the values of parameters were learned.
func TestOutcomesThatHaveTheSegmentReadAgain(t *testing.T) {
	for _, test := range []struct {
		arms       []strategy.Arm
		confidence float64
		lists      int
	}{{parametered, 1, 0}, {parametered, 0.3, 1}, {plain("a"), 0.3, 0}} {
		c := &clock{}
		st := &storetest.Failing{Store: newStore(t, c.Now)}
		l := newLearner(t, strategy.Config{
			Now: c.Now, Store: st, Arms: test.arms, Pooling: strategy.Alone{},
		})
		q := strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}}
		for range 2 { // the second has the scale of the first
			credit(t, l, choose(t, l, q), 1)
			require.NoError(t, l.Refresh(ctx))
		}
		st.Fail(0, false)
		for range 6 {
			_, err := l.Observe(ctx, strategy.Outcome{
				Choice: choose(t, l, q), Value: 1, Confidence: test.confidence,
			})
			require.NoError(t, err)
		}
		assert.Equal(t, test.lists, min(st.Calls("List"), 1), "%v", test)
	}
}

// All outcomes of a consumed event and the end of its session are one read and one commit.
func TestAnEventIsOneCommit(t *testing.T) {
	c := &clock{}
	st := &storetest.Failing{Store: newStore(t, c.Now)}
	l := newLearner(t, strategy.Config{Now: c.Now, Store: st, Topic: "heed.strategy"})
	a := attribution.Report{Session: "s", Ended: true}
	for _, item := range []string{"i", "j", "k"} {
		choose(t, l, strategy.Query{Session: "s", Item: item})
		a.Items = append(a.Items, attribution.Worth{Item: item, Activated: true, Value: 1})
	}
	e, err := a.Event("e", c.Now())
	require.NoError(t, err)
	consumer, err := attribution.New(attribution.Config{Learner: l, Stream: &streamtest.Stream{},
		DeadLetters: &streamtest.Stream{}})
	require.NoError(t, err)
	for _, commits := range []int{1, 0} { // the second time, all of it is known
		st.Fail(0, false)
		require.NoError(t, consumer.Handle(ctx, e))
		assert.Equal(t, []int{1, commits}, []int{st.Calls("Read"), st.Calls("Commit")})
	}
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 2, Applied: 2},
		Outcomes:     3, Duplicates: 3,
	}, consumer.Counts())
	assert.InDelta(t, 2.4, massOf(kept(t, st, strategy.Query{}, "arm")), 1e-9)
	after := choose(t, l, strategy.Query{Session: "s", Item: "i"})
	require.NoError(t, consumer.Handle(ctx, e), "what comes again ends no session again")
	found, err := l.Find(ctx, "s", "i", time.Time{})
	require.NoError(t, err)
	assert.Equal(t, after.ID, found.Choice.ID)
}

// TestAStepThatCountsOnce has its outcomes known when it comes again, by the id of the step alone.
func TestAStepThatCountsOnce(t *testing.T) {
	l := newLearner(t, strategy.Config{Unrecorded: true})
	choice := choose(t, l, strategy.Query{Item: "i"})
	for n, want := range []strategy.Disposition{strategy.Applied, strategy.Duplicate} {
		var did *strategy.Disposition
		require.NoError(t, store.Do(ctx, l.Config().Store, func(tx *store.Tx) (err error) {
			tx.Add(store.Batch{ID: "the host's"})
			did, err = l.ObserveIn(tx, strategy.Outcome{
				Choice: choice, ID: fmt.Sprint(n), Value: 1, Confidence: 1,
			})
			return err
		}))
		assert.Equal(t, want, *did)
		assert.InDeltaSlice(t, means(t, newLearner(t, l.Config()), strategy.Query{Item: "i"}),
			means(t, l, strategy.Query{Item: "i"}), 1e-9)
	}
}

// An id of a batch costs the store one row. Ids of observations cost one for each parameter.
func TestAnOutcomeByItselfCountsByItsBatch(t *testing.T) {
	var ids []string
	st := &fragile{Store: newStore(t, (&clock{}).Now)}
	l := newLearner(t, strategy.Config{Store: st, Arms: parametered})
	choice := choose(t, l, strategy.Query{Session: "s", Item: "i", Arms: []strategy.ArmID{"a"}})
	st.before = func(_ context.Context, b store.Batch) error {
		if len(b.Observations) > 0 {
			ids = append(ids, b.ID)
		}
		return nil
	}
	credit(t, l, choice, 1)
	_, err := l.ObserveAll(ctx, []strategy.Outcome{
		{Choice: choice, ID: "1", Value: 1, Confidence: 1},
		{Choice: choice, ID: "2", Value: 1, Confidence: 1},
	}, "", "")
	require.NoError(t, err)
	require.Len(t, ids, 2)
	assert.NotEmpty(t, ids[0])
	assert.Empty(t, ids[1], "a duplicate among several does not stop the others")
}

// TestACommitOfUnknownOutcome took effect. It is repeated, and nothing is made or counted twice.
func TestACommitOfUnknownOutcome(t *testing.T) {
	for _, session := range []string{"", "s"} {
		st := &doubtful{}
		cfg, c := recording(t, strategy.Config{Store: st, Topic: "t"})
		st.Store = newStore(t, c.Now)
		l := newLearner(t, cfg)
		st.times = 1
		choice := choose(t, l, strategy.Query{Session: session, Item: "i"})
		assert.False(t, choice.Record().Fallback)
		assert.Len(t, historyOf(t, l, strategy.ChoiceFilter{}), 1)
		st.times = 1
		_, err := l.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1})
		require.NoError(t, err)
		assert.Equal(t, strategy.Observed, record(t, l, choice.ID).Stage)
		assert.InDelta(t, 1, massOf(kept(t, st, strategy.Query{}, "arm")), 1e-9)
		assert.Len(t, outbox(t, st), 2, "one event each")
		st.times = 1
		require.NoError(t, l.Retract(ctx, choice, []string{""}, "ann", "r"))
		assert.Equal(t, strategy.Pending, record(t, l, choice.ID).Stage)
		assert.Len(t, audited(t, st), 1)
	}
}

// A doubtful store does not know of some commits whether they took effect.
type doubtful struct {
	store.Store
	times int
}

func (d *doubtful) Commit(
	ctx context.Context, batches ...store.Batch,
) ([]store.Receipt, error) {
	receipts, err := d.Store.Commit(ctx, batches...)
	if err == nil && d.times > 0 {
		d.times--
		return nil, heed.ErrOutcomeUnknown
	}
	return receipts, err
}

// TestTwoProcesses over one store: an outcome in one finds the choice of the other, one of them
// alone makes a session's choice, and each sees no later than Config.Refresh what the other ends or
// resets.
func TestTwoProcesses(t *testing.T) {
	cfg, c := recording(t, strategy.Config{})
	one, two := newLearner(t, cfg), newLearner(t, cfg)
	q := strategy.Query{Session: "s", Item: "i"}
	made := choose(t, one, q)
	assert.Equal(t, made.ID, choose(t, two, q).ID)
	found, err := two.Find(ctx, "s", "i", c.Now())
	require.NoError(t, err)
	credit(t, two, found.Choice, 1)
	assert.Equal(t, strategy.Observed, record(t, one, made.ID).Stage)
	_, err = one.Observe(ctx, strategy.Outcome{Choice: made, ID: "another", Value: -1, Confidence: 1})
	require.NoError(t, err, "though the other process has changed the record")
	assert.Equal(t, "another", record(t, two, made.ID).Result.ID)

	require.NoError(t, two.EndSession(ctx, "s"))
	assert.NotEqual(t, made.ID, choose(t, two, q).ID)
	c.Advance(cfg.Refresh + 10*time.Minute - 1)
	assert.Equal(t, made.ID, choose(t, one, q).ID)
	c.Advance(1)
	assert.Equal(t, choose(t, two, q).ID, choose(t, one, q).ID, "the end is seen")

	before := means(t, one, strategy.Query{Item: "new"})
	require.NoError(t, two.Reset(ctx, strategy.Reset{Reason: "r"}))
	assert.Equal(t, before, means(t, one, strategy.Query{Item: "new"}))
	c.Advance(10 * time.Minute)
	assert.Equal(t, []float64{0.5, 0.5, 0.5, 0.5}, means(t, one, strategy.Query{Item: "new"}),
		"the reset is seen")
}

// TestOneProcessMakesAChoice, however many ask for it at the same time.
func TestOneProcessMakesAChoice(t *testing.T) {
	st := &fragile{}
	cfg, c := recording(t, strategy.Config{Store: st})
	st.Store = newStore(t, c.Now)
	one, two := newLearner(t, cfg), newLearner(t, cfg)
	q := strategy.Query{Session: "s", Item: "i"}
	var quicker strategy.Choice
	st.before = func(context.Context, store.Batch) error { // before one has committed its choice
		st.before = nil
		quicker = choose(t, two, q)
		return nil
	}
	assert.Equal(t, quicker.ID, choose(t, one, q).ID)
	assert.Len(t, historyOf(t, one, strategy.ChoiceFilter{}), 1)
}

// Every field that names a person has a path in the kind of its record, and the record has the
// person's key. The field is found by reflection, so that a new one fails here.
func TestWhoIsForgottenIsGone(t *testing.T) {
	var named []string
	var look func(of reflect.Type, path string, within []reflect.Type)
	look = func(of reflect.Type, path string, within []reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || slices.Contains(within, of) ||
			of == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range of.NumField() {
			f := of.Field(i)
			at := strings.TrimPrefix(path+"."+f.Name, ".")
			if f.Type.Kind() == reflect.String && slices.Contains([]string{"Source", "Actor", "Person",
				"Reviewer"}, f.Name) {
				named = append(named, of.Name()+"."+at)
			}
			look(f.Type, at, append(within, of))
		}
	}
	for _, of := range []any{
		strategy.ChoiceRecord{}, strategy.LearnerEvent{}, attribution.Report{}, stream.DeadLetter{},
	} {
		look(reflect.TypeOf(of), "", nil)
	}
	assert.ElementsMatch(t, []string{
		"Result.Result.Source", // of a record and of an event
		"Result.Result.Source", "LearnerEvent.Actor",
		"Report.Source", // which a dead letter has in its payload
	}, named)

	const person = "Annika"
	cfg, c := recording(t, strategy.Config{Topic: "heed.strategy"})
	l := newLearner(t, cfg)
	choice := choose(t, l, strategy.Query{Session: "s", Item: "i"})
	// of the choice's record, one is the last and one an earlier one
	for _, id := range []string{"", "wrong", "other"} {
		_, err := l.Observe(ctx, strategy.Outcome{Choice: choice, ID: id, Value: 1, Confidence: 1,
			Source: person})
		require.NoError(t, err)
	}
	_, err := revise(l, "wrong", strategy.Outcome{Choice: choice, ID: "right", Value: 1,
		Confidence: 1, Source: person})
	require.NoError(t, err)
	require.NoError(t, l.Retract(ctx, choice, []string{"right"}, person, "r"))
	require.NoError(t, l.Reset(ctx, strategy.Reset{Item: "i", Actor: person, Reason: "r"}))
	cfg.HalfLife = 48 * time.Hour
	_, err = strategy.Rebuild(ctx, cfg, person, "r")
	require.NoError(t, err)
	report, err := attribution.Report{Session: "s", Source: person}.Event("a", c.Now())
	require.NoError(t, err)
	text, err := json.Marshal(stream.DeadLetter{Event: report})
	require.NoError(t, err)
	letter := stream.Event{ID: "l", Topic: attribution.DeadTopic, At: c.Now(), Payload: text}
	_, err = cfg.Store.Commit(ctx, store.Batch{Records: []store.Record{report.Waiting(person),
		letter.Waiting(person)}})
	require.NoError(t, err)
	assert.Positive(t, strings.Count(everyText(t, cfg.Store), strings.ToLower(person)))

	err = store.Run(ctx, cfg.Store, store.Job{Forget: []string{person}})
	require.NoError(t, err)
	assert.NotContains(t, everyText(t, cfg.Store), strings.ToLower(person))
	assert.Empty(t, kept(t, cfg.Store, strategy.Query{}, "arm"))
	assert.Equal(t, strategy.Observed, record(t, l, choice.ID).Stage)
}

// everyText is all text in the records and parts of a store, in lower case, payloads decoded.
func everyText(t testing.TB, st store.Store) string {
	var all []string
	for _, kind := range []string{
		"strategy.answer", "strategy.session", "heed.audit", "heed.settings", "stream.outbox",
	} {
		for r, err := range st.Find(ctx, store.Query{Kind: kind}) {
			require.NoError(t, err)
			text, err := r.Body.JSON()
			require.NoError(t, err)
			all = append(all, r.ID, string(text))
			all = append(all, r.Keys...)
			if kind != "stream.outbox" {
				continue
			}
			e, err := store.Decode[stream.Event](r.Body)
			require.NoError(t, err)
			var letter stream.DeadLetter
			require.NoError(t, json.Unmarshal(e.Payload, &letter))
			all = append(all, string(e.Payload), string(letter.Event.Payload))
		}
	}
	for _, p := range everything(t, st, strategy.Query{}) {
		all = append(all, p.Source, p.Cell.Item)
	}
	for o, err := range st.History(ctx, evidence.Cell{Kind: "strategy.arm", Scope: `""/`, Item: "i", Name: "a"}) {
		require.NoError(t, err)
		all = append(all, o.Source)
	}
	return strings.ToLower(strings.Join(all, "\n"))
}
