package strategy_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

var parametered = []strategy.Arm{{ID: "a", Parameters: []strategy.Parameter{{Name: "n",
	Values: []string{"1", "2"}}}}, {ID: "b"}}

// A learner of another process knows only the ticket, when the session has long ended. Afterwards
// the beliefs, the record, the history, the events and the audit tell of the second outcome alone,
// in both processes.
func TestATicketIsOpenAgain(t *testing.T) {
	for _, pooling := range poolings {
		t.Run(fmt.Sprint(pooling), func(t *testing.T) {
			cfg, c := recording(t, strategy.Config{Pooling: pooling, Arms: parametered,
				Topic: "heed.strategy"})
			l := newLearner(t, cfg)
			q := strategy.Query{Session: "ticket 7", Item: "i", Category: "c",
				Arms: []strategy.ArmID{"a"}}
			made := choose(t, l, q)
			_, err := l.Observe(ctx, strategy.Outcome{Choice: made, ID: "resolved", Value: 1,
				Confidence: 1, Source: "ann"})
			require.NoError(t, err)
			require.NoError(t, l.EndSession(ctx, "ticket 7"))
			c.Advance(24 * time.Hour)
			newer := choose(t, l, q) // the ticket goes on, with another choice
			_ = beliefs(t, l, q)

			other := newLearner(t, cfg)
			found, err := other.FindSession(ctx, "ticket 7", made.At.Add(time.Hour))
			require.NoError(t, err)
			require.Len(t, found, 1)
			reopened := strategy.Outcome{Choice: found[0].Choice, ID: "open again", Value: -1,
				Confidence: 0.5, Source: "bob"}
			// it is delivered again
			for _, want := range []strategy.Disposition{strategy.Applied, strategy.Duplicate,
				strategy.Duplicate} {
				disposition, err := revise(other, "resolved", reopened)
				require.NoError(t, err)
				assert.Equal(t, want, disposition)
			}
			// and so is what it took the place of
			for _, old := range []strategy.Choice{made, found[0].Choice} {
				disposition, err := l.Observe(ctx, strategy.Outcome{Choice: old, ID: "resolved", Value: 1,
					Confidence: 1, Source: "ann"})
				require.NoError(t, err)
				assert.Equal(t, strategy.Duplicate, disposition)
			}

			alone := cfg
			alone.Store = newStore(t, c.Now)
			oracle := newLearner(t, alone)
			only := choose(t, oracle, q)
			_, err = oracle.Observe(ctx, strategy.Outcome{Choice: only, Value: -1, Confidence: 0.5})
			require.NoError(t, err)
			require.NoError(t, l.Refresh(ctx))
			for _, one := range []*strategy.Learner{l, other} {
				assert.InDeltaSlice(t, means(t, oracle, q), means(t, one, q), 1e-9)
				assert.Equal(t, &strategy.Result{ID: "open again", Value: -1, Confidence: 0.5,
					Source: "bob", At: c.Now()}, record(t, one, made.ID).Result)
				assert.Equal(t, strategy.Pending, record(t, one, newer.ID).Stage)
				outcomes, err := outcomes(one, q, 0)
				require.NoError(t, err)
				require.Len(t, outcomes, 1)
				assert.Equal(t, "open again", outcomes[0].Result.ID)
			}
			for _, p := range kept(t, cfg.Store, q, "arm", "parameter") {
				assert.Equal(t, 0.5, p.Tally.Mass, p.Cell)
				assert.Zero(t, p.Tally.Reward, p.Cell)
			}
			entries := audited(t, cfg.Store)
			require.NotEmpty(t, entries)
			assert.Equal(t, []string{"bob", "strategy.revise", "i", "resolved", made.ID.String()},
				[]string{entries[0].Actor, entries[0].Action, entries[0].Subject,
					entries[0].Details["outcome"], entries[0].Details["choice"]})
		})
	}
}

// Its choice waits again, and expires without silence.
func TestARetractedOutcomeWasNeverThere(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Silence: strategy.Silence{After: time.Hour,
		Confidence: 0.5}})
	l := newLearner(t, cfg)
	q := strategy.Query{Session: "s", Item: "i", Arms: []strategy.ArmID{"a"}}
	before := means(t, l, q)
	late := choose(t, l, q)
	c.Advance(2 * time.Hour)
	assert.Equal(t, 1, sweep(t, l))
	credit(t, l, late, 1) // which takes the silence back
	require.NoError(t, l.Retract(ctx, late, []string{""}, "ann", "a mistake"))
	assert.Equal(t, before, means(t, l, q))
	assert.Equal(t, strategy.Expired, record(t, l, late.ID).Stage)
	assert.Zero(t, sweep(t, l))

	early := choose(t, l, strategy.Query{Session: "t", Item: "i", Arms: q.Arms})
	credit(t, l, early, 1)
	require.NoError(t, l.Retract(ctx, early, []string{""}, "bob", ""))
	assert.Equal(t, strategy.Pending, record(t, l, early.ID).Stage)
	c.Advance(2 * time.Hour)
	assert.Equal(t, 1, sweep(t, l))
	assert.Equal(t, strategy.Expired, record(t, l, early.ID).Stage)
	assert.Equal(t, before, means(t, l, q), "it was not silent")

	require.NoError(t, l.Retract(ctx, late, []string{""}, "bob", "again"), "changes nothing")
	entries := audited(t, cfg.Store)
	require.Len(t, entries, 2)
	assert.Equal(t, []string{"ann", "strategy.retract", "a mistake"},
		[]string{entries[1].Actor, entries[1].Action, entries[1].Reason})
	_, err := l.Observe(ctx, strategy.Outcome{Choice: late, ID: "better", Value: 1, Confidence: 1})
	require.NoError(t, err)
	assert.Equal(t, "better", record(t, l, late.ID).Result.ID)
	did, err := revise(l, "better", strategy.Outcome{Choice: late, ID: "doubtful", Value: -1,
		Confidence: 0.1})
	require.NoError(t, err)
	assert.Equal(t, strategy.Dropped, did)
	assert.Equal(t, before, means(t, l, q))
	assert.Nil(t, record(t, l, late.ID).Result)
}

// Resolved, open again, resolved; then "open again" is delivered once more, and its handler
// revises what stands now.
func TestALateRevisionTakesNothingBack(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	choice := choose(t, l, strategy.Query{Session: "s", Item: "i", Arms: []strategy.ArmID{"a"}})
	credit(t, l, choice, 1)
	for n, id := range []string{"open again", "resolved", "open again"} {
		did, err := revise(l, record(t, l, choice.ID).Result.ID,
			strategy.Outcome{Choice: choice, ID: id, Value: float64(n%2)*2 - 1, Confidence: 1})
		require.NoError(t, err)
		assert.Equal(t, map[bool]strategy.Disposition{true: strategy.Applied,
			false: strategy.Duplicate}[n < 2], did)
	}
	assert.Equal(t, "resolved", record(t, l, choice.ID).Result.ID)
	did, err := revise(l, "resolved", strategy.Outcome{Choice: choice, ID: "weak", Value: -1,
		Confidence: 0.1})
	require.NoError(t, err)
	assert.Equal(t, strategy.Dropped, did)
	_, err = l.Observe(ctx, strategy.Outcome{Choice: choice, ID: "sure", Value: 1, Confidence: 1})
	require.NoError(t, err)
	did, err = revise(l, "sure", strategy.Outcome{Choice: choice, ID: "weak", Value: -1,
		Confidence: 0.1})
	require.NoError(t, err)
	assert.Equal(t, strategy.Duplicate, did, "also one that was dropped")
	assert.Equal(t, "sure", record(t, l, choice.ID).Result.ID)
}

// TestWhatCannotBeRetracted changes nothing.
func TestWhatCannotBeRetracted(t *testing.T) {
	c := &clock{}
	small,
		err := memstore.New(memstore.Config{Now: c.Now, Retention: store.Retention{HistoryPerCell: 3}})
	require.NoError(t, err)
	l := newLearner(t, strategy.Config{Now: c.Now, Store: small})
	q := strategy.Query{Session: "s", Item: "i", Arms: []strategy.ArmID{"a"}}
	first := choose(t, l, q)
	credit(t, l, first, 1)
	before := means(t, l, q)
	outcome := func(id string) strategy.Outcome {
		return strategy.Outcome{Choice: first, ID: id, Value: -1, Confidence: 1}
	}
	retract := func(choice strategy.Choice, id string) error {
		return l.Retract(ctx, choice,
			[]string{id}, "ann", "r")
	}

	require.ErrorIs(t, retract(first, "unknown"), heed.ErrNotFound)
	_, err = revise(l, "unknown", outcome("new"))
	require.ErrorIs(t, err, heed.ErrNotFound)
	foreign := choose(t, newLearner(t, strategy.Config{Name: "other"}), q)
	assertInputError(t, retract(foreign, ""), "Choice")
	assertInputError(t, retract(strategy.Choice{}, ""), "Choice")
	assertInputError(t, retract(first, "heed:silence"), "ID")
	assertInputError(t, l.Retract(ctx, first, []string{"", "heed:silence"}, "ann", "r"), "ID")
	_, err = revise(l, "", outcome(""))
	assertInputError(t, err, "ID")
	wrong := outcome("new")
	wrong.Value = 2
	_, err = revise(l, "", wrong)
	assertInputError(t, err, "Value")
	done, cancel := contextDone()
	defer cancel()
	require.Error(t, l.Retract(done, first, []string{""}, "", ""))
	assert.Equal(t, before, means(t, l, q))

	for n := range 4 {
		q.Session = fmt.Sprint(n)
		try(t, l, q, "a", 1)
	}
	before = means(t, l, q)
	require.ErrorIs(t, retract(first, ""), evidence.ErrForgotten)
	_, err = revise(l, "", outcome("new"))
	require.ErrorIs(t, err, evidence.ErrForgotten)
	assert.Equal(t, before, means(t, l, q))
	assert.InDelta(t, 1, record(t, l, first.ID).Result.Value, 0)
	assert.Empty(t, audited(t, small))
	unrecorded := newLearner(t, strategy.Config{Unrecorded: true})
	cold := means(t, unrecorded, q)
	choice := choose(t, unrecorded, q)
	credit(t, unrecorded, choice, 1)
	require.NoError(t, unrecorded.Retract(ctx, throughJSON(t, choice), []string{""}, "", ""))
	assert.Equal(t, cold, means(t, unrecorded, q), "it needs no record")
}

// TestOutcomesComeAndGo makes random outcomes, corrections and sweeps through one or two learners
// of one store, and compares what is there with a list of the outcomes that stand.
func TestOutcomesComeAndGo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg, c := recording(t, strategy.Config{
			Arms: parametered, Topic: "heed.strategy", Silence: strategy.Silence{After: time.Hour},
			Pooling: strategy.Alone{},
		})
		learners := []*strategy.Learner{newLearner(t, cfg),
			newLearner(t, cfg)}[:rapid.IntRange(1, 2).Draw(rt, "learners")]
		q := strategy.Query{Session: "s", Item: "i", Category: "c", Arms: []strategy.ArmID{"a"}}
		choice := choose(t, learners[0], q)
		standing, seen := make(map[string]strategy.Result), make(map[string]bool)
		id := rapid.SampledFrom([]string{"", "x", "y", "z"})
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			l := learners[rapid.IntRange(0, len(learners)-1).Draw(rt, "learner")]
			of := choice
			if rapid.Bool().Draw(rt, "through JSON") {
				of = throughJSON(t, choice)
			}
			c.Advance(rapid.SampledFrom([]time.Duration{0, time.Second, 2 * time.Hour}).Draw(rt, "wait"))
			o := strategy.Outcome{
				Choice: of, ID: id.Draw(rt, "id"), Value: rapid.SampledFrom([]float64{-1, 0, 0.5, 1}).Draw(
					rt, "value"), Confidence: 1,
				At: start.Add(time.Duration(rapid.IntRange(0, 9).Draw(rt, "at"))),
			}
			stands := func() { // unless it did before
				if !seen[o.ID] {
					standing[o.ID] = strategy.Result{ID: o.ID, Value: o.Value, Confidence: 1,
						At: evidence.InstantOf(o.At).Time()}
				}
				seen[o.ID] = true
			}
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0, 1:
				_, err := l.Observe(ctx, o)
				require.NoError(rt, err)
				stands()
			case 2:
				old := id.Draw(rt, "old")
				_, err := revise(l, old, o)
				switch {
				case old == o.ID:
					require.Error(rt, err)
				case seen[o.ID]:
					require.NoError(rt, err) // it is a duplicate
				case !seen[old]:
					require.ErrorIs(rt, err, heed.ErrNotFound)
				default:
					require.NoError(rt, err)
					delete(standing, old)
					stands()
				}
			case 3:
				if err := l.Retract(ctx, of, []string{o.ID}, "", ""); seen[o.ID] {
					require.NoError(rt, err)
					delete(standing, o.ID)
				} else {
					require.ErrorIs(rt, err, heed.ErrNotFound)
				}
			case 4:
				require.NoError(rt, l.Sweep(ctx, time.Time{}))
			}
			sum, last := 0., (*strategy.Result)(nil)
			for _, r := range standing {
				sum += (r.Value + 1) / 2
				if last == nil || last.At.Before(r.At) || last.At.Equal(r.At) && last.ID < r.ID {
					last = &r
				}
			}
			kept := kept(t, cfg.Store, q, "arm", "parameter")
			require.Len(rt, kept, 2*min(len(standing), 1))
			for _, p := range kept {
				require.InDelta(rt, float64(len(standing)), p.Tally.Mass, 1e-9)
				require.InDelta(rt, sum, p.Tally.Reward, 1e-9)
			}
			r := record(t, l, choice.ID)
			require.Equal(rt, last, r.Result)
			require.Equal(rt, last != nil, r.Stage == strategy.Observed)
			if len(learners) == 1 { // what another has done is seen after Config.Refresh
				require.InDeltaSlice(rt, means(t, newLearner(t, cfg), q), means(t, l, q), 1e-9)
			}
		}
	})
}

// A choice has several outcomes, and one is known already. The record still gets the others.
func TestARecordMissesNoOutcomeOfSeveral(t *testing.T) {
	l := newLearner(t, strategy.Config{})
	choice := choose(t, l, strategy.Query{Session: "s", Item: "i"})
	outcomes := []strategy.Outcome{{ID: "1"}, {ID: "2"}, {ID: "3"}}
	for i := range outcomes {
		outcomes[i].Choice, outcomes[i].Value, outcomes[i].Confidence = choice, 1, 1
	}
	for n, want := range []int{1, 1, 3} { // the second time, all is known
		_, err := l.ObserveAll(ctx, outcomes[:want], "", "")
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(want), record(t, l, choice.ID).Result.ID, n)
	}
	require.NoError(t, l.Retract(ctx, choice, []string{"3"}, "", ""))
	assert.Equal(t, "2", record(t, l, choice.ID).Result.ID)
	_, err := l.ObserveAll(ctx, slices.Concat(outcomes,
		[]strategy.Outcome{{Choice: choice, ID: "0", Value: 1, Confidence: 1}}), "", "")
	require.NoError(t, err)
	assert.Equal(t, "2", record(t, l, choice.ID).Result.ID,
		"what was taken back does not come back beside what is new")
}

// TestFindSession finds what Find finds of each item, and of each segment without items.
func TestFindSession(t *testing.T) {
	cfg, c := recording(t, strategy.Config{})
	l := newLearner(t, cfg)
	queries := []strategy.Query{
		{Session: "s", Item: "i", Category: "c"}, {Session: "s", Item: "j", Category: "d"},
		{Session: "s", Category: "c"}, {Session: "s", Category: "d"},
	}
	var made [][]strategy.ChoiceID
	for range 3 {
		var ids []strategy.ChoiceID
		for _, q := range queries {
			ids = append(ids, choose(t, l, q).ID)
			c.Advance(time.Minute)
		}
		choose(t, l, strategy.Query{Session: "t", Item: "i"})
		slices.Reverse(ids)
		made = append(made, ids)
		require.NoError(t, l.EndSession(ctx, "s"))
		c.Advance(time.Hour)
	}
	for at, want := range map[time.Time][]strategy.ChoiceID{
		{}: made[2], c.Now(): made[2], start.Add(30 * time.Minute): made[0], start: made[0],
		start.Add(90 * time.Minute):  made[1],
		start.Add(-evidence.MaxSkew): made[0][3:],
	} {
		found, err := newLearner(t, cfg).FindSession(ctx, "s", at)
		require.NoError(t, err)
		var ids []strategy.ChoiceID
		for _, r := range found {
			ids = append(ids, r.Choice.ID)
		}
		assert.Equal(t, want, ids, at)
	}
	// The newest choices may be several of one item.
	c.Advance(time.Hour)
	var last []strategy.ChoiceID
	for _, arm := range []strategy.ArmID{"a", "b", "c"} {
		made := choose(t, l, strategy.Query{Session: "u", Item: "i", Arms: []strategy.ArmID{arm}})
		if arm == "a" {
			last = []strategy.ChoiceID{choose(t, l, strategy.Query{Session: "u", Item: "j"}).ID}
		}
		if c.Advance(time.Minute); arm == "c" {
			last = append(last, made.ID)
		}
	}
	found, err := l.FindSession(ctx, "u", time.Time{})
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.ElementsMatch(t, last, []strategy.ChoiceID{found[0].Choice.ID, found[1].Choice.ID})
	cfg.Name = "other"
	for _, none := range []func() ([]strategy.ChoiceRecord, error){
		func() ([]strategy.ChoiceRecord, error) { return l.FindSession(ctx, "", c.Now()) },
		func() ([]strategy.ChoiceRecord, error) { return l.FindSession(ctx, "nobody's", c.Now()) },
		func() ([]strategy.ChoiceRecord, error) {
			return l.FindSession(ctx, "s",
				start.Add(-time.Hour))
		},
		func() ([]strategy.ChoiceRecord, error) {
			return newLearner(t, cfg).FindSession(ctx, "s",
				c.Now())
		},
		func() ([]strategy.ChoiceRecord, error) {
			return newLearner(t, strategy.Config{Unrecorded: true}).FindSession(ctx, "s", c.Now())
		},
	} {
		_, err := none()
		assert.ErrorIs(t, err, heed.ErrNotFound)
	}
}

// TestADeliveryFindsItsChoiceAgain, though the item was chosen for again in between: by the time of
// the event, it counts once.
func TestADeliveryFindsItsChoiceAgain(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Cache: strategy.Cache{TTL: time.Minute}})
	l := newLearner(t, cfg)
	q := strategy.Query{Session: "s", Item: "i"}
	choose(t, l, q)
	happened := c.Now()
	var got []strategy.Disposition
	for range 2 {
		c.Advance(time.Hour)
		found, err := l.FindSession(ctx, "s", happened)
		require.NoError(t, err)
		disposition, err := l.Observe(ctx, strategy.Outcome{Choice: found[0].Choice, ID: "review 8",
			Value: 1, Confidence: 1, At: happened})
		require.NoError(t, err)
		got = append(got, disposition)
		choose(t, l, q)
	}
	assert.Equal(t, []strategy.Disposition{strategy.Applied, strategy.Duplicate}, got)
	assert.InDelta(t, 1, massOf(kept(t, cfg.Store, strategy.Query{}, "arm")), 0)
}

// TestAnOutcomeIsNotBeforeItsChoice, but for clocks that differ.
func TestAnOutcomeIsNotBeforeItsChoice(t *testing.T) {
	c := &clock{}
	c.Advance(time.Hour)
	l := newLearner(t, strategy.Config{Now: c.Now})
	choice := choose(t, l, strategy.Query{Item: "i"})
	o := strategy.Outcome{Choice: choice, Value: 1, Confidence: 1,
		At: choice.At.Add(-evidence.MaxSkew - 1)}
	_, err := l.Observe(ctx, o)
	assertInputError(t, err, "At")
	o.At = choice.At.Add(-evidence.MaxSkew)
	_, err = l.Observe(ctx, o)
	require.NoError(t, err)
}

// Its choice is recorded, found and credited like any other, also by another process.
func TestAHostChoosesByItself(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Arms: parametered, Topic: "heed.strategy"})
	l := newLearner(t, cfg)
	q := strategy.Query{Session: "s", Item: "i", Category: "c", Arms: []strategy.ArmID{"b"}}
	n2 := answer.Setting{Name: "n", Value: "2"}
	made, err := l.Record(ctx, q, "a", 0.25, n2)
	require.NoError(t, err)
	assert.Equal(t, []any{strategy.ArmID("a"), "2", 0.25, false},
		[]any{made.Arm, made.Parameter("n"), made.Propensity(), made.Record().Fallback})
	// within the session it is the same choice
	for _, one := range []*strategy.Learner{l, newLearner(t, cfg)} {
		again, err := one.Record(ctx, q, "a", 0, n2)
		require.NoError(t, err)
		assert.Equal(t, throughJSON(t, made), throughJSON(t, again))
		assert.Equal(t, made.ID, choose(t, one, strategy.Query{Session: "s", Item: "i",
			Category: "c"}).ID)
	}
	found, err := newLearner(t, cfg).Find(ctx, "s", "i", c.Now())
	require.NoError(t, err)
	assert.InDelta(t, 0.25, found.Choice.Propensity(), 0)
	credit(t, l, found.Choice, 1)
	for _, p := range read(t, cfg.Store, made.Cells()...) {
		assert.InDelta(t, 1, p.Tally.Reward, 0)
	}
	c.Advance(time.Second)
	other, err := l.Record(ctx, q, "b", 0)
	require.NoError(t, err)
	assert.NotEqual(t, made.ID, other.ID, "another arm takes its place")
	assert.True(t, math.IsNaN(other.Propensity()), "nobody knows")
	assert.True(t, math.IsNaN(throughJSON(t, other).Propensity()))
	assert.Equal(t, other.ID, choose(t, l, strategy.Query{Session: "s", Item: "i", Category: "c"}).ID)
	loose, err := l.Record(ctx, strategy.Query{Item: "i", Category: "c"}, "a", 1)
	require.NoError(t, err)
	assert.Empty(t, loose.Parameter("n"), "what is not known is not learned from")
	credit(t, l, loose, 1)
	assert.Len(t, historyOf(t, l, strategy.ChoiceFilter{}), 3)
}

func TestRecordNamesWhatIsWrong(t *testing.T) {
	cfg, _ := recording(t, strategy.Config{Arms: parametered})
	st := &faulty{Store: cfg.Store}
	cfg.Store = st
	l := newLearner(t, cfg)
	q := strategy.Query{Session: "s", Item: "i"}
	n := func(values ...string) (all []answer.Setting) {
		for _, v := range values {
			all = append(all, answer.Setting{Name: "n", Value: v})
		}
		return all
	}
	for _, test := range []struct {
		field      string
		q          strategy.Query
		arm        strategy.ArmID
		propensity float64
		parameters []answer.Setting
	}{
		{"Arm", q, "z", 1, nil},
		{"Propensity", q, "a", -0.1, nil}, {"Propensity", q, "a", 1.1, nil},
		{"Propensity", q, "a", math.NaN(), nil},
		{"Parameters", q, "a", 1, n("3")}, {"Parameters", q, "a", 1, n("1", "2")},
		{"Parameters", q, "b", 1, n("1")},
		{"Parameters", q, "a", 1, n("1", "1")}, {"Session", strategy.Query{Session: "\x00"}, "a", 1,
			nil},
	} {
		_, err := l.Record(ctx, test.q, test.arm, test.propensity, test.parameters...)
		assertInputError(t, err, test.field)
	}
	assert.Empty(t, historyOf(t, l, strategy.ChoiceFilter{}))
	done, cancel := contextDone()
	defer cancel()
	_, err := l.Record(done, q, "a", 1)
	require.Error(t, err)

	st.commit.Store(&errStore)
	c, err := l.Record(ctx, q, "b", 0.5)
	require.ErrorIs(t, err, errStore)
	st.commit.Store(nil)
	assert.Equal(t, strategy.ArmID("b"), c.Arm)
	assert.Zero(t, l.Remembered())
	credit(t, l, c, 1)
	assert.Empty(t, historyOf(t, l, strategy.ChoiceFilter{}))

	cfg.Disabled = true
	c, err = newLearner(t, cfg).Record(ctx, q, "b", 0.5)
	require.NoError(t, err)
	assert.Equal(t, strategy.ArmID("b"), c.Arm)
	assert.Empty(t, historyOf(t, l, strategy.ChoiceFilter{}))
}

// Neither its draws nor the time of its propensity are at the mercy of who sent it.
func TestAForgedChoiceIsBounded(t *testing.T) {
	forge := func(draws int) (c strategy.Choice, err error) {
		text := []byte(`{"id":"00000000-0000-0000-0000-000000000001","arm":"0","learner":"strategy","draws":[`)
		for n := range draws {
			if n > 0 {
				text = append(text, ',')
			}
			text = fmt.Appendf(text,
				`{"arm":"%d","sample":1,"belief":{"level":{"alpha":1,"beta":1},"strength":1,"concentration":2}}`, n)
		}
		return c, c.UnmarshalJSON(append(text, "]}"...))
	}
	_, err := forge(1001)
	assertInputError(t, err, "draws")
	for arms := 1; arms <= 1000; arms++ {
		n, most := strategy.DrawsFor(arms)
		require.LessOrEqual(t, n*arms, most)
		require.Greater(t, n, 2000)
	}
	c, err := forge(1000)
	require.NoError(t, err)
	if long(0, 1) == 1 {
		began := time.Now()
		// this share of its draws is 1, and the first arm wins a tie
		assert.InDelta(t, 0.0138, c.Propensity(), 0.001)
		// a second, and not fourteen, on an idle machine without the race detector
		assert.Less(t, time.Since(began), 2*time.Minute)
	}
	_, err = strategy.New(ctx, withFixtures(t, strategy.Config{
		Arms: plain(slices.Repeat([]strategy.ArmID{"a"}, 1001)...)}))
	assert.Contains(t, fields(err), "Arms")
}

// With a store as it comes, outcomes can be revised and taken back beyond a hundred of an item's
// arm.
func TestTheDefaultHistoryIsEnough(t *testing.T) {
	cfg, c := recording(t, strategy.Config{Arms: parametered})
	l := newLearner(t, cfg)
	q := strategy.Query{Item: "i", Arms: []strategy.ArmID{"a"}}
	var made []strategy.Choice
	for i := range 150 {
		q.Session = fmt.Sprint(i)
		made = append(made, choose(t, l, q))
		_, err := l.Observe(ctx, strategy.Outcome{Choice: made[i], ID: "resolved", Value: 1,
			Confidence: 1})
		require.NoError(t, err)
	}
	c.Advance(time.Minute)
	_, err := revise(l, "resolved", strategy.Outcome{Choice: made[0], ID: "open again", Value: -1,
		Confidence: 1})
	require.NoError(t, err)
	require.NoError(t, l.Retract(ctx, made[1], []string{"resolved"}, "ann", "a mistake"))
	for _, p := range kept(t, cfg.Store, q, "arm") {
		assert.Equal(t, []float64{149, 148}, []float64{p.Tally.Mass, p.Tally.Reward})
	}
}

// Outcomes of several people whose shares add up to 1 are worth as much as one outcome of their
// mean. They are replaced in one commit, and replayed from their events.
func TestSharesOfAnOutcome(t *testing.T) {
	for _, pooling := range poolings {
		t.Run(fmt.Sprint(pooling), func(t *testing.T) {
			cfg, c := recording(t, strategy.Config{Pooling: pooling, Arms: parametered,
				Topic: "heed.strategy", MinConfidence: 0.5})
			l := newLearner(t, cfg)
			alone := cfg
			alone.Store = newStore(t, c.Now)
			oracle := newLearner(t, alone)
			q := strategy.Query{Session: "s", Item: "i", Category: "c", Arms: []strategy.ArmID{"a"}}
			choice, only := choose(t, l, q), choose(t, oracle, q)
			says := func(id, source string, value, share float64) strategy.Outcome {
				return strategy.Outcome{Choice: choice, ID: id, Value: value, Confidence: 0.5, Share: share,
					Source: source}
			}
			did, err := l.Revise(ctx, nil, []strategy.Outcome{says("1", "ann", 1, 0.75),
				says("2", "bob", 1, 0.25)}, "")
			require.NoError(t, err)
			assert.Equal(t, []strategy.Disposition{strategy.Applied, strategy.Applied}, did)
			for range 2 { // it is delivered again
				_, err = l.Revise(ctx, []string{"1", "2"},
					[]strategy.Outcome{says("3", "ann", -1, 0.2), says("4", "bob", -1, 0.3),
						says("5", "cy", -1, 0.5)}, "cy")
				require.NoError(t, err)
			}
			_, err = oracle.Observe(ctx, strategy.Outcome{Choice: only, Value: -1, Confidence: 0.5})
			require.NoError(t, err)
			assert.InDeltaSlice(t, means(t, oracle, q), means(t, l, q), 1e-9)
			assert.Equal(t, "5", record(t, l, choice.ID).Result.ID)
			assert.InDelta(t, 0.25, record(t, l, choice.ID).Result.Confidence, 1e-9)
			entry := audited(t, cfg.Store)[0]
			assert.Equal(t, []string{"cy", "strategy.revise", "1, 2"},
				[]string{entry.Actor, entry.Action, entry.Details["outcome"]})

			require.NoError(t, l.Retract(ctx, choice, []string{"3", "4", "5"}, "ann", "r"))
			assert.Empty(t, kept(t, cfg.Store, q, "arm", "parameter"))
			assert.Equal(t, strategy.Pending, record(t, l, choice.ID).Stage)
		})
	}
	l := newLearner(t, strategy.Config{})
	choice := choose(t, l, strategy.Query{})
	for _, share := range []float64{-0.1, 1.1, math.NaN()} {
		_, err := l.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1,
			Share: share})
		assertInputError(t, err, "Share")
	}
	one := strategy.Outcome{Choice: choice, ID: "x", Value: 1, Confidence: 1}
	_, err := l.Revise(ctx, nil, []strategy.Outcome{one, one}, "")
	assertInputError(t, err, "ID")
	_, err = l.Revise(ctx, []string{"y"}, nil, "")
	assertInputError(t, err, "outcomes")
	_, err = l.Revise(ctx, nil, []strategy.Outcome{one,
		{Choice: choose(t, l, strategy.Query{}), Value: 1, Confidence: 1}}, "")
	assertInputError(t, err, "Choice")
	assertInputError(t, l.Retract(ctx, choice, nil, "", ""), "ids")
}

// A record keeps the ids of the last outcomes that were taken back. Those that it no longer has are
// known to the store.
func TestARecordOfManyRetractionsIsBounded(t *testing.T) {
	cfg, _ := recording(t, strategy.Config{})
	l := newLearner(t, cfg)
	choice := choose(t, l, strategy.Query{Session: "s", Item: "i"})
	observe := func(id string) strategy.Disposition {
		did, err := l.Observe(ctx, strategy.Outcome{Choice: choice, ID: id, Value: 1, Confidence: 1})
		require.NoError(t, err)
		return did
	}
	for n := range 40 {
		require.Equal(t, strategy.Applied, observe(fmt.Sprint(n)))
		require.NoError(t, l.Retract(ctx, choice, []string{fmt.Sprint(n)}, "", ""))
	}
	rows := answers.View("strategy.answer")
	for row, err := range rows.Find(ctx, cfg.Store, store.Query{}) {
		require.NoError(t, err)
		require.Len(t, row.Value.Choice.Taken, 16)
		assert.Equal(t, "39", row.Value.Choice.Taken[15])
	}
	for _, id := range []string{"0", "39"} {
		assert.Equal(t, strategy.Duplicate, observe(id))
	}
	assert.Empty(t, kept(t, cfg.Store, strategy.Query{}, "arm"))
}

// A record has each outcome that was taken back once, also if it is taken back again with others.
func TestAnOutcomeIsTakenBackOnce(t *testing.T) {
	cfg := withFixtures(t, strategy.Config{})
	l := newLearner(t, cfg)
	c := choose(t, l, strategy.Query{Item: "i"})
	for _, id := range []string{"a", "b"} {
		_, err := l.Observe(ctx, strategy.Outcome{Choice: c, ID: id, Value: 1, Confidence: 1})
		require.NoError(t, err)
	}
	for _, ids := range [][]string{{"a"}, {"a", "b"}, {"b"}} {
		require.NoError(t, l.Retract(ctx, c, ids, "ann", "a mistake"))
	}
	rows := answers.View("strategy.answer")
	for row, err := range rows.Find(ctx, cfg.Store, store.Query{}) {
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, row.Value.Choice.Taken)
	}
}
