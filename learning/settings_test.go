package learning_test

import (
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
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

const aDay = 24 * time.Hour

// A half-life, and sources that are apart, stay as they are stored until somebody rebuilds.
func TestSettingsOfTheStore(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "s")
	require.NoError(t, f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "f", Person: "bob",
		Session: "room"}))
	f.clock.Advance(time.Minute)
	f.sweep()
	f.say(thumb("h", "e", true))
	f.clock.Advance(aDay)
	assert.InDelta(t, 2.8/3.8, f.confidence("h"), 1e-12)

	for field, cfg := range map[string]learning.Config{
		"HalfLife": {HalfLife: aDay},
	} {
		cfg.Store, cfg.Now = f.store, f.clock.Now
		_, err := learning.New(ctx, cfg)
		var fault *heed.SettingsError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, field, fault.Field)
		assert.Equal(t, "learning/learning", fault.Component)
		assert.ErrorIs(t, err, heed.ErrConflict)
	}
	rebuilt, err := learning.Rebuild(ctx, learning.Config{Store: f.store, Now: f.clock.Now,
		HalfLife: aDay}, "ops", "too old")
	require.NoError(t, err)
	s, err := rebuilt.Standing(ctx, "h")
	require.NoError(t, err)
	decayed := 0.5 * 0.8
	assert.InDelta(t, (1+decayed+0.5)/(2+decayed+0.5), s.Confidence, 1e-3,
		"what was heard a day ago counts half")
	assert.EqualValues(t, 2, s.Fires)
	assert.Equal(t, []string{"learning.rebuild", "ops", "too old"},
		[]string{f.audit()[0].Action, f.audit()[0].Actor, f.audit()[0].Reason})

	same := f.another(learning.Config{})
	assert.Equal(t, aDay, same.Config().HalfLife, "a field that is not set is the stored one")
	same.apply("1", "h", 1)
	same.fire("h", "new", "s")
	err = store.Run(ctx, f.store, store.Job{Expunge: []string{"ann", "bob"}})
	require.NoError(t, err)
	assert.EqualValues(t, 2, same.standing("h").Fires, "sources are apart")
	_, err = f.Apply(ctx, learning.Signal{HeuristicID: "h", Channel: "x", Worth: 1},
		learning.Origin{ID: "2"})
	var policy *heed.SettingsError
	assert.ErrorAs(t, err, &policy, "the module that was open has to be opened again")
}

// A module does not see what a host changes later in the configuration that it passed or read.
func TestTheConfigurationIsACopy(t *testing.T) {
	cfg := learning.Config{
		Packs:        map[string]learning.Constraints{"p": {FeedbackWeight: 2}},
		Trust:        evidence.Trust{Instruments: []string{"ci"}, Silence: []string{"quiet"}},
		Expectations: []learning.Expectation{{Trigger: "oven", Outcome: "off"}},
	}
	f := newFixture(t, cfg)
	was := f.Config()
	for _, c := range []learning.Config{cfg, f.Config()} {
		c.Packs["p"] = learning.Constraints{}
		c.Trust.Instruments[0], c.Trust.Silence[0] = "x", "x"
		c.Expectations[0].Outcome = "x"
		is := f.Config()
		assert.Equal(t, was.Packs, is.Packs)
		assert.Equal(t, was.Trust, is.Trust)
		assert.Equal(t, was.Expectations, is.Expectations)
	}
}

// If the history is not whole, Rebuild changes nothing.
func TestRebuildNeedsTheHistory(t *testing.T) {
	f := newFixtureOver(t, memstore.Config{Retention: store.Retention{HistoryPerCell: 1}},
		learning.Config{}, "h")
	f.apply("1", "h", 1)
	f.apply("2", "h", 1)
	cfg := learning.Config{Store: f.store, Now: f.clock.Now, HalfLife: aDay}
	_, err := learning.Rebuild(ctx, cfg, "", "")
	assert.ErrorIs(t, err, evidence.ErrForgotten)
	assert.Zero(t, f.another(learning.Config{}).Config().HalfLife)
	err = store.Run(ctx, f.store, store.Job{Reset: []store.Selection{{Kind: "learning.heuristic"}}})
	require.NoError(t, err)
	_, err = learning.Rebuild(ctx, cfg, "", "")
	require.NoError(t, err, "after a reset there is nothing to need it for")
	assert.Equal(t, aDay, f.another(learning.Config{}).Config().HalfLife)
}

// Settings that apply to reads are taken over, and the audit has an entry.
func TestSettingsThatApplyWhenReadAreTakenOver(t *testing.T) {
	f := newFixture(t, learning.Config{Initial: 0.4}, "h")
	f.put(learning.Heuristic{ID: "other"})
	assert.InDelta(t, 0.4, f.confidence("other"), 1e-12)
	assert.Empty(t, f.audit())
	next := f.another(learning.Config{Initial: 0.6,
		Packs: map[string]learning.Constraints{"": {FeedbackWeight: 2}}})
	assert.InDelta(t, 0.6, next.confidence("other"), 1e-12)
	require.Len(t, f.audit(), 1)
	assert.Equal(t, map[string]string{"Initial": "0.4 -> 0.6",
		"Packs": f.audit()[0].Details["Packs"]}, f.audit()[0].Details)
}

// A tool sees what the host sees, and changes nothing by looking.
func TestOpen(t *testing.T) {
	cfg := learning.Tuned(learning.Config{
		Name: "mine", Answers: "desk.answer", Initial: 0.4,
		Trust: evidence.Trust{Instruments: []string{"ci"}}, HalfLife: aDay,
		Diminish: 0.1,
		Packs: map[string]learning.Constraints{"": {FeedbackWeight: 0.5},
			"p": {Lock: "locked"}},
	}, learning.Tuning{Strength: 3, Bounds: learning.Range{Floor: 0.1, Ceiling: 0.8}})
	f := newFixture(t, cfg, "h")
	delete(cfg.Packs, "p") // the map of the host is no longer the module's
	f.put(learning.Heuristic{ID: "p", Pack: "p"})
	for _, id := range []string{"h", "p"} {
		f.say(thumb(id, "e", true))
	}
	commits := len(f.store.commits)
	m, err := learning.Open(ctx, learning.Config{Store: f.store, Name: "mine", Now: f.clock.Now})
	require.NoError(t, err)
	assert.Equal(t, f.Config().Trust, m.Config().Trust)
	answers := m.Steps().Answers()
	assert.Equal(t, "desk.answer", answers.Name)
	for _, id := range []string{"h", "p"} {
		want, err := f.Explain(ctx, id)
		require.NoError(t, err)
		got, err := m.Explain(ctx, id)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	assert.Len(t, f.store.commits, commits)
	_, err = learning.Open(ctx, learning.Config{Store: f.store, Name: "yours"})
	assert.ErrorIs(t, err, heed.ErrNotFound)

	f.another(learning.Config{Name: "alike"})
	names, err := settings.Names("learning/")(ctx, f.store)
	require.NoError(t, err)
	assert.Equal(t, []string{"alike", "mine"}, names)
}

// Every field of a row that holds the name of a person has a path, and the record the key by which
// it is found.
// An initial confidence leaves both shapes of the prior above 0.
func TestBoundsOfAnInitialConfidence(t *testing.T) {
	for initial, valid := range map[float64]bool{
		1e-9: true, 1 - 1e-9: true, 1e-10: false, 1 - 1e-10: false, 1: false,
	} {
		_, err := learning.New(ctx, learning.Config{Store: new(memstore.Store), Initial: initial})
		assert.Equal(t, valid, err == nil, initial)
	}
}

func TestNamesOfPeopleAreFound(t *testing.T) {
	kinds, rows := learning.RecordKinds("learning")
	named := map[string]bool{}
	for i, row := range rows {
		paths := slices.Concat(kinds[i].Caused, kinds[i].Decided)
		for _, field := range reflect.VisibleFields(reflect.TypeOf(row)) {
			within, of := "", []reflect.StructField{field}
			if field.Type.Kind() == reflect.Pointer && field.Type.Elem().Kind() == reflect.Struct {
				within, of = field.Name+".", reflect.VisibleFields(field.Type.Elem())
			}
			for _, field := range of {
				if field.Name == "Person" || field.Name == "Actor" {
					named[kinds[i].Name] = true
					name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
					assert.Contains(t, paths, within+name, kinds[i].Name)
				}
			}
		}
	}
	assert.Len(t, named, 2)
	for _, r := range learning.Filled("learning", "Ann") {
		assert.Contains(t, r.Keys, store.PersonKey("Ann"), r.Kind)
		assert.NotContains(t, r.ID, "Ann", r.Kind)
		delete(named, r.Kind)
	}
	assert.Empty(t, named)
}

// TestSpecConfig holds the values of the Learning Strategy Interface design, one by one.
func TestSpecConfig(t *testing.T) {
	cfg := learning.SpecConfig()
	strategy := cfg.Strategy
	answer := learning.Answer{HeuristicID: "h", EventID: "e", Consecutive: 3}
	worth := func(s learning.Signal, err error) float64 {
		require.NoError(t, err)
		return s.Worth
	}
	assert.Equal(t, learning.Windows{Undo: 30 * time.Second, Ignore: 30 * time.Second,
		Silence: 30 * time.Second}, strategy.Windows("any"))
	assert.Equal(t, 1., worth(strategy.InterpretTimeout(answer)))
	assert.Equal(t, -1., worth(strategy.InterpretIgnore(answer)))
	assert.Equal(t, 0., worth(strategy.InterpretIgnore(learning.Answer{HeuristicID: "h",
		Consecutive: 2})))
	assert.Equal(t, 0.8, worth(strategy.InterpretJudgement(thumb("h", "e", true))))
	assert.Equal(t, -0.8, worth(strategy.InterpretJudgement(thumb("h", "e", false))))
	for _, keyword := range []string{"undo", "revert", "cancel", "rollback", "nevermind",
		"never mind"} {
		signals, err := strategy.InterpretUndo("x"+strings.ToUpper(keyword)+"x",
			[]learning.Answer{answer})
		require.NoError(t, err)
		assert.Equal(t, -1., worth(signals[0], nil))
	}
	assert.False(t, strategy.IsUndo("stop"))
	for i, want := range []float64{-0.4, -0.2, 0.05, 0.2,
		0.4} {
		j := learning.Judgement{HeuristicID: "h", EventID: "e", Scale: learning.DevScale,
			Score: i + 1}
		assert.Equal(t, want, worth(strategy.InterpretJudgement(j)))
	}

	f := newFixtureDefault(t, cfg, "h", "yes")
	f.put(learning.Heuristic{ID: "new"})
	assert.InDelta(t, 0.3, f.confidence("new"), 1e-12)
	for i := range 50 { // without a cap, and beside the complaint
		f.fire("h", fmt.Sprint(i), "")
		f.say(thumb("h", fmt.Sprint(i), false))
	}
	f.answerOfModel("of the model")
	f.clock.Advance(31 * time.Second)
	f.sweep()
	assert.InDelta(t, (1+50.)/(2+50+50*0.8), f.confidence("h"), 1e-9)
	assert.Equal(t, 0.5, f.confidence("yes"), "agreement counts nothing")
	f.apply("1", "h", 1e6)
	assert.Greater(t, f.confidence("h"), 0.99, "no bounds")
}
