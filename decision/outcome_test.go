package decision_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// Requests that nothing tells apart would all meet one variant.
func TestARequestWithoutAKeyIsRefused(t *testing.T) {
	var fault *heed.InputError
	_, err := experiment(t, decision.ExperimentConfig{}).Decide(ctx, decision.Request{Text: "hot"})
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "EventID", fault.Field)

	bySource := experiment(t, decision.ExperimentConfig{Key: func(r decision.Request) string { return r.Source }})
	_, err = bySource.Decide(ctx, decision.Request{EventID: "e"})
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Key", fault.Field)
	seen := make(map[string]bool)
	for i := range 40 {
		res, err := bySource.Decide(ctx, decision.Request{Source: fmt.Sprint(i)})
		require.NoError(t, err)
		seen[res.Variant] = true
	}
	assert.Len(t, seen, 2, "a key of the host's needs no EventID")

	_, err = experiment(t, decision.ExperimentConfig{Shadow: true}).Decide(ctx, decision.Request{})
	require.NoError(t, err, "in shadow there is nothing to split")
}

// The report agrees with a plain list of outcomes, in any order and with any number of replacements. The store keeps the history of
// one observation only.
func TestOutcomesReplaceEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st, err := memstore.New(memstore.Config{Now: (&clock{}).Now, HistoryPerCell: 1})
		require.NoError(t, err)
		e, err := decision.NewExperiment(ctx, decision.ExperimentConfig{Store: st, Now: (&clock{}).Now, Variants: []decision.Variant{
			{Name: "a", Strategy: says("a", decision.Heuristic)}, {Name: "b", Strategy: says("b", decision.Model)},
		}})
		require.NoError(t, err)
		seen, gone := make(map[string]decision.ExperimentOutcome), make(map[string]bool)
		for range rapid.IntRange(0, 30).Draw(t, "outcomes") {
			id := rapid.StringMatching("[a-h]")
			o := decision.ExperimentOutcome{
				Variant: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "variant"), ID: id.Draw(t, "id"),
				Reward: float64(rapid.IntRange(0, 4).Draw(t, "reward")) / 4, Source: rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "source"),
			}
			if rapid.Bool().Draw(t, "replaces") {
				if o.Replaces = id.Draw(t, "replaced"); o.Replaces == o.ID {
					o.Replaces = ""
				}
			}
			require.NoError(t, e.Observe(ctx, o))
			if _, known := seen[o.ID]; known || gone[o.ID] {
				continue
			}
			seen[o.ID] = o
			if o.Replaces != "" {
				gone[o.Replaces] = true
			}
		}
		want := map[string][2]float64{}
		for id, o := range seen {
			if !gone[id] {
				want[o.Variant] = [2]float64{want[o.Variant][0] + 1, want[o.Variant][1] + o.Reward}
			}
		}
		r, err := e.Report(ctx)
		require.NoError(t, err)
		for _, v := range r.Variants {
			require.InDelta(t, want[v.Name][0], v.Outcomes, 1e-9)
			require.InDelta(t, (1+want[v.Name][1])/(2+want[v.Name][0]), v.Success.Mean(), 1e-9)
		}
	})
}

// A person who is forgotten is in no sum, neither with what counted nor with what was replaced.
func TestOutcomesOfAForgottenPerson(t *testing.T) {
	c := &clock{}
	st := newStore(c.Now)
	e := experiment(t, decision.ExperimentConfig{Store: st, Now: c.Now})
	for _, o := range []decision.ExperimentOutcome{
		{ID: "1", Reward: 1, Source: "ann"}, {ID: "2", Reward: 0, Source: "ann", Replaces: "1"}, {ID: "3", Reward: 1, Source: "bob"},
	} {
		o.Variant = "a"
		require.NoError(t, e.Observe(ctx, o))
	}
	_, err := st.Commit(ctx, store.Batch{Forget: []string{"ann"}})
	require.NoError(t, err)
	v := report(t, e).Variants[0]
	assert.Equal(t, 1., v.Outcomes)
	assert.InDelta(t, 2./3, v.Success.Mean(), 1e-9)
	for r, err := range st.Find(ctx, store.Query{Kind: "decision.outcome"}) {
		require.NoError(t, err)
		body, err := r.Body.JSON()
		require.NoError(t, err)
		assert.NotContains(t, string(body), "ann")
	}
	c.Advance(time.Hour)
	require.NoError(t, e.Observe(ctx, decision.ExperimentOutcome{Variant: "a", ID: "4", Reward: 0, Source: "bob", Replaces: "3"}))
	assert.InDelta(t, 1./3, report(t, e).Variants[0].Success.Mean(), 1e-9)
}

// takesAway counts the batches that take evidence away.
type takesAway struct {
	store.Store
	n int
}

func (s *takesAway) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	for i := range batches {
		if batches[i].TakesAway() {
			s.n++
		}
	}
	return s.Store.Commit(ctx, batches...)
}

// An outcome and the reaction that it comes from can both replace what was before, in one commit.
func TestAnOutcomeTakesNoEvidenceAway(t *testing.T) {
	st := newStore((&clock{}).Now)
	e := experiment(t, decision.ExperimentConfig{Store: st})
	observe(t, e, "a", "1", 1)
	observe(t, e, "b", "other", 1)
	require.NoError(t, e.Observe(ctx, decision.ExperimentOutcome{
		Variant: "a", ID: "2", Replaces: "1",
	}))
	batches := &takesAway{Store: st}
	again := experiment(t, decision.ExperimentConfig{Store: batches})
	require.NoError(t, again.Observe(ctx, decision.ExperimentOutcome{Variant: "a", ID: "3", Replaces: "2", Reward: 1}))
	assert.Zero(t, batches.n)
	assert.InDelta(t, 2./3, report(t, again).Variants[0].Success.Mean(), 1e-9)
}

// Outcomes are part of a host's step, and the observer is notified after the commit.
func TestObserveIn(t *testing.T) {
	var l listener
	st := newStore((&clock{}).Now)
	e := experiment(t, decision.ExperimentConfig{Store: st, Observer: l.observe})
	in := func(o decision.ExperimentOutcome, end error) error {
		return store.Do(ctx, st, func(tx *store.Tx) error {
			if err := e.ObserveIn(tx, o); err != nil {
				return err
			}
			assert.Empty(t, l.take())
			return end
		})
	}
	broken := errors.New("broken")
	require.ErrorIs(t, in(decision.ExperimentOutcome{Variant: "a", ID: "1", Reward: 1}, broken),
		broken)
	assert.Empty(t, l.take())
	assert.Zero(t, report(t, e).Variants[0].Outcomes)
	for _, o := range []decision.ExperimentOutcome{
		{ID: "2", Replaces: "1", Reward: 1}, {ID: "1"}, {ID: "2", Replaces: "1", Reward: 1},
		{ID: "3", Replaces: "2", Reward: 1},
	} {
		o.Variant = "a"
		require.NoError(t, in(o, nil))
		assert.Len(t, l.take(), 1)
	}
	v := report(t, e).Variants[0]
	assert.Equal(t, 1., v.Outcomes, "what was replaced before it came counts nothing")
	assert.InDelta(t, 2./3, v.Success.Mean(), 1e-9)
	require.ErrorAs(t, in(decision.ExperimentOutcome{Variant: "c", ID: "1"}, nil),
		new(*heed.InputError))
}

// An outcome whose record has been dropped is still taken back, as long as the store keeps its
// history.
func TestObserveInTakesAnOutcomeWithoutARecordBack(t *testing.T) {
	limits := map[string]store.Limits{"decision.outcome": {Most: 1}}
	st, err := memstore.New(memstore.Config{Now: (&clock{}).Now, Limits: limits})
	require.NoError(t, err)
	e := experiment(t, decision.ExperimentConfig{Store: st})
	observe(t, e, "a", "1", 1)
	observe(t, e, "a", "2", 1) // takes the place of the record
	require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
		return e.ObserveIn(tx, decision.ExperimentOutcome{Variant: "a", ID: "3", Replaces: "1"})
	}))
	v := report(t, e).Variants[0]
	assert.Equal(t, 2., v.Outcomes)
	assert.InDelta(t, 0.5, v.Success.Mean(), 1e-9)
}
