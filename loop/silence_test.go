package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// Any person who judges an answer ends the silence about it, and what they state is theirs.
func TestAnyStatementEndsSilence(t *testing.T) {
	for _, judge := range []string{"", "ann", "mallory"} {
		m := newMarket(t, nil)
		a, err := m.Answer(ctx, loop.Event{Text: "Why?", Item: "i", Person: "ann"})
		require.NoError(t, err)
		if judge != "" {
			require.NoError(t, m.React(ctx, a.ID, loop.Reaction{Person: judge, Value: -1}))
		}
		m.clock.Advance(time.Hour)
		require.NoError(t, m.Sweep(ctx, time.Time{}))
		account, err := m.Explain(ctx, a.ID)
		require.NoError(t, err)
		require.Len(t, account.Statements, 1, judge)
		s := account.Statements[0]
		if judge == "" {
			assert.Positive(t, s.Value)
		} else {
			assert.Equal(t, judge, s.Source)
			assert.Negative(t, s.Value)
		}
	}
}

// If the person who asked is forgotten before the silence is counted, what they stated does not
// become approval. If it was somebody else, the asker is silent.
func TestForgettingTheAskerIsNoApproval(t *testing.T) {
	for forgotten, want := range map[string]int{"ann": 0, "mallory": 1} {
		for _, value := range []float64{-1, 1} {
			m := newMarket(t, nil)
			a, err := m.Answer(ctx, loop.Event{Text: "Why?", Item: "i", Person: "ann"})
			require.NoError(t, err)
			require.NoError(t, m.React(ctx, a.ID, loop.Reaction{Person: forgotten, Value: value}))
			require.NoError(t, store.Run(ctx, m.Store(), store.Job{Forget: []string{forgotten}}))
			m.clock.Advance(time.Hour)
			require.NoError(t, m.Sweep(ctx, time.Time{}))
			account, err := m.Explain(ctx, a.ID)
			require.NoError(t, err)
			assert.Len(t, account.Statements, want, "%s %v", forgotten, value)
			assert.Equal(t, want == 1, account.Known, "%s %v", forgotten, value)
		}
	}
}

// What a forgotten person passed over, or was silent about, does not count again when statements of
// others change.
func TestForgottenSilenceDoesNotComeBack(t *testing.T) {
	for _, passed := range []bool{true, false} {
		m := newMarket(t, nil)
		a, err := m.Answer(ctx, loop.Event{Text: "Why?", Item: "i", Person: "ann", Stream: "x"})
		require.NoError(t, err)
		if passed {
			_, err := m.Hear(ctx, learning.Message{Text: "The sky.", Person: "ann", Stream: "x"})
			require.NoError(t, err)
		}
		m.clock.Advance(time.Hour)
		require.NoError(t, m.Sweep(ctx, time.Time{}))
		require.NoError(t, store.Run(ctx, m.Store(), store.Job{Forget: []string{"ann"}}))
		for _, value := range []float64{1, 0} {
			require.NoError(t, m.React(ctx, a.ID, loop.Reaction{Person: "bob", Value: value}))
		}
		account, err := m.Explain(ctx, a.ID)
		require.NoError(t, err)
		assert.False(t, account.Known, passed)
		all := store.CellQuery{Kind: "strategy.arm", Scope: `""/`}
		for part, err := range m.Store().List(ctx, all) {
			require.NoError(t, err)
			assert.Zero(t, part.Tally.N(), passed)
		}
	}
}

// A fire of the host has no reply of a model. A sweep counts its silence, and then the answers
// after it.
func TestSilenceOfTheHostsOwnFire(t *testing.T) {
	m := newMarket(t, nil)
	_, err := m.Learning().Put(ctx, rotating)
	require.NoError(t, err)
	before := m.confidence("rotate")
	require.NoError(t, m.Learning().Fire(ctx, learning.Fire{
		HeuristicID: "rotate", EventID: "e", Person: "ann",
	}))
	m.clock.Advance(time.Minute)
	for range 2 {
		require.NoError(t, m.Sweep(ctx, time.Time{}))
	}
	assert.Greater(t, m.confidence("rotate"), before)
}

// A record that is damaged is an error of each sweep, and does not keep silence from counting for
// the answers after it.
func TestADamagedAnswerStopsNoSilence(t *testing.T) {
	m := newMarket(t, nil)
	bad, err := m.Answer(ctx, loop.Event{Text: "Why?", Item: "i", Person: "ann"})
	require.NoError(t, err)
	m.clock.Advance(time.Second)
	good, err := m.Answer(ctx, loop.Event{Text: "Why?", Item: "i", Person: "ann"})
	require.NoError(t, err)
	damage(t, m.Store(), "loop.answer", answers.ID(bad.ID))
	m.clock.Advance(time.Hour)
	for range 2 {
		require.ErrorIs(t, m.Sweep(ctx, time.Time{}), heed.ErrDamaged)
	}
	account, err := m.Explain(ctx, good.ID)
	require.NoError(t, err)
	assert.True(t, account.Known)
}

// damage replaces what a record has by what can't be decoded.
func damage(t *testing.T, st store.Store, kind, id string) {
	t.Helper()
	var s store.Snapshot
	require.NoError(t, st.Read(ctx, &s, nil, []store.Ref{{Kind: kind, ID: id}}))
	r := s.Records[0]
	require.Positive(t, r.Revision)
	r.Body = store.Raw([]byte(`5`))
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{r}})
	require.NoError(t, err)
}
