package patterns_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

func TestPromotionSticks(t *testing.T) {
	both(t, func(t *testing.T, cfg patterns.Config) {
		w := newWorld(t, cfg)
		w.record(good("p"))
		moved, err := w.Promote(ctx, "p", by)
		require.NoError(t, err)
		assert.Equal(t, patterns.Transition{
			ID: moved.ID, Pattern: "p", From: patterns.Candidate, To: patterns.Proven, At: start,
			Actor: "ada", Cause: "seen it work",
		}, moved)
		assert.Equal(t, []patterns.Transition{moved}, w.transitions("p"))
		again, err := w.Promote(ctx, "p", by)
		require.NoError(t, err)
		assert.Zero(t, again, "nothing changes twice")

		w.record(good("p"))
		w.clock.Advance(1000 * day)
		w.feedPattern("p", patterns.Harmful, 9, 0)
		s := w.standing("p")
		assert.Equal(t, patterns.Proven, s.State, "neither evidence nor time ends it")
		assert.Equal(t, 1.5, s.Multiplier)

		moved, err = w.Reset(ctx, patterns.Reset{Pattern: "p", By: by, KeepEvidence: true})
		require.NoError(t, err)
		assert.Equal(t, [2]string{patterns.Proven, patterns.Inverted},
			[2]string{moved.From, moved.To})
		assert.Contains(t, moved.Cause, "seen it work; Failed 9/11 times")
	})
}

func TestDeprecationSticks(t *testing.T) {
	for _, helpful := range []int{0, 3, 5} { // a candidate, an established one, a proven one
		w := newWorld(t, patterns.Config{})
		_, err := w.Define(ctx, patterns.Pattern{ID: "p", Content: "p"})
		require.NoError(t, err)
		w.feedPattern("p", patterns.Helpful, helpful, 0)
		before := w.standing("p").State
		moved, err := w.Deprecate(ctx, "p", patterns.By{Actor: "bob",
			Reason: "Causes file conflicts in 80% of cases"})
		require.NoError(t, err)
		assert.Equal(t, before, moved.From)
		assert.Equal(t, "Causes file conflicts in 80% of cases", moved.Cause)
		w.feedPattern("p", patterns.Helpful, 20, 0)
		assert.Equal(t, patterns.Deprecated, w.standing("p").State)
		assert.Zero(t, w.standing("p").Multiplier)

		_, err = w.Promote(ctx, "p", by)
		require.ErrorIs(t, err, heed.ErrConflict)
		assert.EqualError(t, err,
			"patterns: promote: conflict: the pattern is deprecated: reset it first")

		_, err = w.Reset(ctx, patterns.Reset{Pattern: "p", By: by})
		require.NoError(t, err)
		assert.Equal(t, patterns.Candidate, w.standing("p").State)
		assert.Zero(t, w.standing("p").Counts, "its evidence is forgotten")
		_, err = w.Promote(ctx, "p", by)
		assert.NoError(t, err)
	}
}

func TestDeprecatedByEvidenceIsNotPromoted(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.feedPattern("deprecated", patterns.Helpful, 2, 0)
	w.feedPattern("deprecated", patterns.Harmful, 1, 0)
	w.feedPattern("inverted", patterns.Harmful, 3, 0)
	for _, id := range []patterns.PatternID{"deprecated", "inverted"} {
		_, err := w.Promote(ctx, id, by)
		assert.ErrorIs(t, err, heed.ErrConflict)
	}
	_, err := w.Deprecate(ctx, "inverted", by)
	require.NoError(t, err)
	assert.Equal(t, patterns.Deprecated, w.standing("inverted").State)
	anti := w.pattern("anti-inverted")
	assert.Equal(t, "Failed 3/3 times (100% failure rate)", anti.Reason, "the warning stays")
}

func TestResetEndsAnInversion(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	o := bad("p")
	o.ID = "first"
	w.record(o)
	w.feedPattern("p", patterns.Harmful, 3, 0)
	moved, err := w.Reset(ctx, patterns.Reset{Pattern: "p", By: by})
	require.NoError(t, err)
	assert.Equal(t, [2]string{patterns.Inverted, patterns.Candidate},
		[2]string{moved.From, moved.To})
	_, err = w.Standing(ctx, "anti-p")
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.True(t, w.record(o).Duplicate, "what was counted before counts no more")
	assert.Zero(t, w.standing("p").Counts)
	w.feedPattern("p", patterns.Harmful, 3, 0)
	assert.Equal(t, patterns.Inverted, w.standing("p").State, "it can be inverted again")

	var audited []string
	for e, err := range store.AuditEntries(ctx, w.store, store.Query{}) {
		require.NoError(t, err)
		audited = append(audited, e.Actor+" "+e.Action+" "+e.Subject+": "+e.Reason)
	}
	assert.Equal(t, []string{"ada patterns.reset p: seen it work"}, audited)
}

// What was forgotten protects from no later inversion.
func TestResetForgetsARehabilitation(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.feedPattern("p", patterns.Harmful, 3, 0)
	w.feedPattern("p", patterns.Helpful, 20, 0)
	require.NotEqual(t, patterns.Inverted, w.standing("p").State)
	require.NotZero(t, w.pattern("p").Base)
	_, err := w.Reset(ctx, patterns.Reset{Pattern: "p", By: by})
	require.NoError(t, err)
	assert.Zero(t, w.pattern("p").Base)
	assert.Zero(t, w.pattern("p").Inverted)
	w.feedPattern("p", patterns.Harmful, 3, 0)
	assert.Equal(t, patterns.Inverted, w.standing("p").State)
}

func TestDecisionsNeedActorAndReason(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.feedPattern("bad", patterns.Harmful, 3, 0)
	for field, d := range map[string]patterns.By{
		"By.Actor": {Reason: "r"}, "By.Reason": {Actor: "a"},
	} {
		_, err := w.Promote(ctx, "bad", d)
		assertInputError(t, err, field)
		_, err = w.Deprecate(ctx, "bad", d)
		assertInputError(t, err, field)
		_, err = w.Reset(ctx, patterns.Reset{Pattern: "bad", By: d})
		assertInputError(t, err, field)
		assertInputError(t, reset(w.Reset(ctx, patterns.Reset{Criterion: "c", By: d})), field)
	}
	_, err := w.Promote(ctx, "none", by)
	assert.ErrorIs(t, err, heed.ErrNotFound)
	_, err = w.Reset(ctx, patterns.Reset{Pattern: "none", By: by})
	assert.ErrorIs(t, err, heed.ErrNotFound)
	_, err = w.Promote(ctx, "anti-bad", by)
	assertInputError(t, err, "Pattern")
	assert.EqualValues(t, 3, w.standing("bad").Counts.Failures)
}

// A pattern or a criterion.
func TestAResetIsOfOneThing(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for _, reset := range []patterns.Reset{
		{}, {Pattern: "p", Criterion: "c"},
	} {
		reset.By = by
		_, err := w.Reset(ctx, reset)
		assertInputError(t, err, "Pattern")
	}
	_, err := w.Reset(ctx, patterns.Reset{Criterion: "\xff", By: by})
	assertInputError(t, err, "Criterion")
	assert.NoError(t, reset(w.Reset(ctx, patterns.Reset{Criterion: "unknown", By: by})))
	assert.Empty(t, audited(t, w.store), "nothing was there to reset")
}

func TestSweep(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	_, err := w.Define(ctx, patterns.Pattern{ID: "unused", Content: "never tried"})
	require.NoError(t, err)
	w.feedPattern("proven", patterns.Helpful, 5, 0)
	w.feedPattern("inverted", patterns.Harmful, 3, 0)
	w.record(good("promoted"))
	_, err = w.Promote(ctx, "promoted", by)
	require.NoError(t, err)
	sweep := func() (all []string) {
		known := len(w.transitions(""))
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		moved := w.transitions("")
		for _, m := range slices.Backward(moved[:len(moved)-known]) {
			all = append(all, string(m.Pattern)+" "+m.From+" "+m.To+": "+m.Cause)
		}
		return all
	}
	w.clock.Advance(90 * day)
	assert.Empty(t, sweep())
	w.clock.Advance(day)
	assert.Equal(t, []string{
		"proven proven established: 5 helpful, 0 harmful, a harmful share of 0%",
	}, sweep())
	assert.Empty(t, sweep(), "once")
	plan, err := w.Plan(ctx, "")
	require.NoError(t, err)
	assert.Len(t, plan.Patterns, 1, "what is stale is in no prompt, and what was promoted stays")

	planned := func(o patterns.Outcome) int {
		w.record(o)
		plan, err := w.Plan(ctx, "")
		require.NoError(t, err)
		return len(plan.Patterns)
	}
	neutral := patterns.Outcome{Patterns: []patterns.PatternID{"proven"}, Errors: 3,
		Duration: time.Hour, Success: true}
	assert.Equal(t, 1, planned(neutral), "a neutral outcome says nothing")
	old := good("proven")
	old.At = start
	assert.Equal(t, 1, planned(old), "and what is old is stale when it comes")
	assert.Equal(t, 2, planned(good("proven")), "new evidence brings it back")

	quick := newWorld(t, patterns.Config{HalfLife: time.Hour})
	quick.feedPattern("p", patterns.Helpful, 5, 0)
	quick.clock.Advance(2 * time.Hour)
	require.NoError(t, quick.Sweep(ctx, time.Time{}))
	require.Len(t, quick.transitions("p"), 3, "what time alone has done is stored")
	assert.Equal(t, patterns.Established, quick.pattern("p").State)
}

// A damaged pattern is left out of lists, and keeps no other from a sweep.
func TestSweepPassesOverDamage(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.feedPattern("bad", patterns.Helpful, 5, 0)
	w.feedPattern("proven", patterns.Helpful, 5, 0)
	for r, err := range w.store.Find(ctx, store.Query{Kind: "patterns.pattern"}) {
		require.NoError(t, err)
		if r.ID == "bad" {
			r.Body = store.Raw([]byte("[7]"))
			_, err = w.store.Commit(ctx, store.Batch{Records: []store.Record{r}})
			require.NoError(t, err)
		}
	}
	w.clock.Advance(91 * day)
	require.ErrorIs(t, w.Sweep(ctx, time.Time{}), heed.ErrDamaged)
	assert.Equal(t, patterns.Established, w.pattern("proven").State)
	all, err := w.Standings(ctx, patterns.PatternQuery{})
	require.ErrorIs(t, err, heed.ErrDamaged)
	require.Len(t, all, 1)
	assert.Equal(t, patterns.PatternID("proven"), all[0].Pattern.ID)
}

func TestSweepKnowsWhatIsDue(t *testing.T) {
	s := newShaky(t)
	swept := func(now time.Time) (calls int) {
		s.failing.Fail(0, false)
		require.NoError(t, s.Sweep(ctx, now))
		return s.failing.Calls()
	}
	assert.Positive(t, swept(time.Time{}))
	assert.Zero(t, swept(time.Time{}), "once a day is enough")
	before := s.state()
	assert.Zero(t, swept(s.clock.Now().Add(1000*day)),
		"the time is no later than the recorder's own clock has it")
	s.clock.Advance(day)
	assert.Positive(t, swept(s.clock.Now().Add(1000*day)))
	assert.Equal(t, before, s.state())
	assert.Zero(t, swept(s.clock.Now()))
}

// The state of a pattern follows from evidence that fades from the first observation on.
func TestLateEvidenceFades(t *testing.T) {
	w := newWorld(t, patterns.SpecConfig())
	w.feedPattern("late", patterns.Helpful, 2, 0)
	w.feedPattern("new", patterns.Helpful, 2, 0)
	assert.Empty(t, w.feed(patterns.Rating{Pattern: "late", Class: patterns.Helpful},
		200).Transitions)
	assert.Len(t, w.feed(patterns.Rating{Pattern: "new", Class: patterns.Helpful}, 0).Transitions, 1)
}
