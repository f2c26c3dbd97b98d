package patterns_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

func (w *world) pattern(id patterns.PatternID) patterns.Pattern {
	w.t.Helper()
	return w.standing(id).Pattern
}

func (w *world) transitions(id patterns.PatternID) (all []patterns.Transition) {
	w.t.Helper()
	for one, err := range w.Transitions(ctx, patterns.HistoryQuery{About: string(id)}) {
		require.NoError(w.t, err)
		all = append(all, one)
	}
	return all
}

func TestInversion(t *testing.T) {
	for _, test := range []struct {
		name                string
		successes, failures int
		inverts             bool
		reason              string
	}{
		{"nothing", 0, 0, false, ""},
		{"two failures", 0, 2, false, ""},
		{"one of each", 1, 1, false, ""},
		{"two of three", 1, 2, true, "Failed 2/3 times (67% failure rate)"},
		{"all of three", 0, 3, true, "Failed 3/3 times (100% failure rate)"},
		{"exactly 60 %", 2, 3, true, "Failed 3/5 times (60% failure rate)"},
		{"exactly 60 % of ten", 4, 6, true,
			"Failed 6/10 times (60% failure rate)"},
		{"exactly 60 % of a hundred", 40, 60, true,
			"Failed 60/100 times (60% failure rate)"},
		{"57 %", 3, 4, false, ""},
		{"five of seven", 2, 5, true, "Failed 5/7 times (71% failure rate)"},
		{"62.5 % is 63", 3, 5, true, "Failed 5/8 times (63% failure rate)"},
		{"seven of ten", 3, 7, true, "Failed 7/10 times (70% failure rate)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			both(t, func(t *testing.T, cfg patterns.Config) {
				w := newWorld(t, cfg)
				_, err := w.Define(ctx, patterns.Pattern{ID: "pattern-123", Content: "Split by file type",
					Tags: []string{"go"}})
				require.NoError(t, err)
				w.feedPattern("pattern-123", patterns.Helpful, test.successes, 0)
				w.feedPattern("pattern-123", patterns.Harmful, test.failures, 0)
				p := w.pattern("pattern-123")
				assert.Equal(t, test.inverts, p.State == patterns.Inverted)
				if !test.inverts {
					_, err := w.Standing(ctx, "anti-pattern-123")
					assert.ErrorIs(t, err, heed.ErrNotFound)
					return
				}
				anti := w.pattern("anti-pattern-123")
				assert.Equal(t, "AVOID: Split by file type. "+test.reason, anti.Content)
				assert.Equal(t, test.reason, anti.Reason)
				assert.True(t, anti.Anti)
				assert.Equal(t, []string{"go"}, anti.Tags)
				assert.Equal(t, [2]patterns.PatternID{"anti-pattern-123", "pattern-123"},
					[2]patterns.PatternID{p.Twin, anti.Twin})
				assert.Equal(t, w.standing("pattern-123").Counts, w.standing("anti-pattern-123").Counts,
					"they have one record")
			})
		})
	}
}

func TestAPatternListedWithItsAntiPatternCountsOnce(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	_, err := w.Define(ctx, patterns.Pattern{ID: "p", Content: "Split by file type"})
	require.NoError(t, err)
	w.feedPattern("p", patterns.Harmful, 4, 0)
	all, err := w.Standings(ctx, patterns.PatternQuery{})
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, s := range all {
		alone := w.standing(s.Pattern.ID)
		assert.Equal(t, patterns.Observations{Failures: 4}, s.Counts)
		assert.Equal(t, alone.Counts, s.Counts)
		assert.InDelta(t, alone.Harmful, s.Harmful, 0)
	}
}

func TestWhatForbidsIsStripped(t *testing.T) {
	for content, want := range map[string]string{
		"x":                       "AVOID: x. ",
		"AVOID: NEVER: x":         "AVOID: x. ",
		"never:do not: Avoid:  x": "AVOID: x. ",
		"x.":                      "AVOID: x. ",
		"DO NOT: trust v1.2...":   "AVOID: trust v1.2. ",
		"avoid global state":      "AVOID: avoid global state. ",
	} {
		w := newWorld(t, patterns.Config{})
		_, err := w.Define(ctx, patterns.Pattern{ID: "p", Content: content})
		require.NoError(t, err)
		w.feedPattern("p", patterns.Harmful, 3, 0)
		assert.Equal(t, want+"Failed 3/3 times (100% failure rate)", w.pattern("anti-p").Content)
	}
	w := newWorld(t, patterns.Config{})
	long := string(make([]rune, 0))
	for range 4096 / 2 {
		long += "é"
	}
	_, err := w.Define(ctx, patterns.Pattern{ID: "long", Content: long})
	require.NoError(t, err)
	w.feedPattern("long", patterns.Harmful, 3, 0)
	assert.LessOrEqual(t, len(w.pattern("anti-long").Content), 4096)
}

// An inverted pattern stays inverted and goes on collecting evidence.
func TestInvertedOnce(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.record(good("p"))
	w.record(good("p"))
	for range 2 {
		assert.Empty(t, w.record(bad("p")).Inversions)
	}
	recorded := w.record(bad("p"))
	require.Len(t, recorded.Inversions, 1)
	one := recorded.Inversions[0]
	assert.Equal(t, "Failed 3/5 times (60% failure rate)", one.Reason)
	assert.Equal(t, patterns.PatternID("p"), one.Twin)
	assert.Equal(t, "AVOID: p. Failed 3/5 times (60% failure rate)", one.Content)
	require.Len(t, recorded.Transitions, 1)
	assert.Equal(t, patterns.Inverted, recorded.Transitions[0].To)
	assert.Equal(t, one.Reason, recorded.Transitions[0].Cause)

	assert.Empty(t, w.record(good("p")).Inversions)
	assert.Empty(t, w.record(bad("anti-p")).Inversions, "the anti-pattern's name credits the pattern")
	assert.Equal(t, patterns.Observations{Successes: 3, Failures: 4}, w.standing("p").Counts)
	assert.Equal(t, "AVOID: p. Failed 4/7 times (57% failure rate)", w.pattern("anti-p").Content)
	assert.Equal(t, patterns.Inverted, w.standing("p").State)
	assert.Zero(t, w.standing("p").Multiplier)
}

func TestRehabilitation(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.feedPattern("p", patterns.Harmful, 3, 0)
	require.Equal(t, patterns.Inverted, w.standing("p").State)
	w.feedPattern("p", patterns.Helpful, 6, 0)
	assert.Equal(t, patterns.Inverted, w.standing("p").State, "a third of it is harmful still")
	w.feedPattern("p", patterns.Helpful, 1, 0)
	assert.Equal(t, patterns.Established, w.standing("p").State)
	last := w.transitions("p")[0]
	assert.Equal(t, patterns.Inverted, last.From)
	assert.Equal(t, "rehabilitated by 7 successes since it was inverted: 7 helpful, 3 harmful, a "+
		"harmful share of 30%", last.Cause)
	_, err := w.Standing(ctx, "anti-p")
	assert.ErrorIs(t, err, heed.ErrNotFound)
	plan, err := w.Plan(ctx, "")
	require.NoError(t, err)
	assert.Empty(t, plan.AntiPatterns)

	// Failures from before no longer count towards an inversion. New ones do.
	w.feedPattern("p", patterns.Harmful, 2, 0)
	assert.Equal(t, patterns.Deprecated, w.standing("p").State)
	w.feedPattern("p", patterns.Harmful, 1, 0)
	assert.Equal(t, patterns.Inverted, w.standing("p").State)
	assert.Equal(t, "AVOID: p. Failed 3/3 times (100% failure rate)", w.pattern("anti-p").Content)

	old := newWorld(t, patterns.Config{})
	old.feedPattern("p", patterns.Harmful, 3, 0)
	old.clock.Advance(360 * day)
	old.feedPattern("p", patterns.Helpful, 2, 0)
	assert.Equal(t, patterns.Inverted, old.standing("p").State, "two successes are too few")
	old.feedPattern("p", patterns.Helpful, 1, 0)
	assert.Equal(t, patterns.Established, old.standing("p").State, "old failures have faded")

	literal := newWorld(t, patterns.SpecConfig())
	literal.feedPattern("p", patterns.Harmful, 3, 0)
	literal.feedPattern("p", patterns.Helpful, 6, 0)
	assert.Equal(t, patterns.Inverted, literal.standing("p").State)
	assert.Contains(t, literal.standing("p").String(),
		"rehabilitated needs a harmful share: at most 30%, has 33.33%: missed\n")
	literal.feedPattern("p", patterns.Helpful, 1, 0)
	assert.Equal(t, patterns.Established, literal.standing("p").State,
		"the design says nothing of a way back; here it is the same")
	_, err = literal.Standing(ctx, "anti-p")
	assert.ErrorIs(t, err, heed.ErrNotFound)
}

// Evidence on an anti-pattern is evidence on its pattern, whether that is inverted or not, if it is
// known.
func TestEvidenceOnAnAntiPattern(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for range 5 {
		o := good("anti-globals")
		o.Criteria = []string{"c"}
		w.record(o)
	}
	assert.EqualValues(t, 5, w.criterion("c").HelpfulCount, "all else of the outcome counts")
	_, err := w.Rate(ctx, patterns.Rating{ID: "x", Pattern: "anti-globals", Class: patterns.Helpful,
		Strength: 1})
	require.ErrorIs(t, err, heed.ErrNotFound)
	none, err := w.Standings(ctx, patterns.PatternQuery{})
	require.NoError(t, err)
	assert.Empty(t, none, "the host named no pattern that plans could recommend")
	w.record(good("anti-globals", "globals"))
	w.record(good("globals", "anti-globals"))
	assert.EqualValues(t, 2, w.standing("globals").Counts.Successes, "named twice, it counts once")
	_, err = w.Standing(ctx, "anti-globals")
	require.ErrorIs(t, err, heed.ErrNotFound)

	w.feedPattern("p", patterns.Harmful, 3, 0)
	w.feedPattern("p", patterns.Helpful, 7, 0)
	require.Equal(t, patterns.Established, w.standing("p").State)
	w.record(good("anti-p"))
	assert.EqualValues(t, 8, w.standing("p").Counts.Successes, "its warning is gone")
	_, err = w.Standing(ctx, "anti-p")
	assert.ErrorIs(t, err, heed.ErrNotFound)
}

// An id that no pattern may have is the fault of its field.
func TestEvidenceOnAnImpossibleID(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for _, id := range []patterns.PatternID{
		"anti-", "anti-anti-p", patterns.PatternID(strings.Repeat("x", 508)),
	} {
		for field, o := range map[string]patterns.Outcome{
			"Strategy":    {Strategy: id, Patterns: []patterns.PatternID{"p"}},
			"Patterns[1]": {Strategy: "p", Patterns: []patterns.PatternID{"anti-p", id}},
		} {
			o.ID, o.Task = "x", "t"
			_, err := w.Record(ctx, o)
			assertInputError(t, err, field)
			err = store.Do(ctx, w.store, func(tx *store.Tx) error {
				_, err := w.RecordIn(tx, o)
				return err
			})
			assertInputError(t, err, field)
		}
		_, err := w.Rate(ctx, patterns.Rating{ID: "x", Pattern: id, Class: patterns.Helpful,
			Strength: 1})
		assertInputError(t, err, "Pattern")
	}
	_, err := w.entry("x")
	assert.ErrorIs(t, err, heed.ErrNotFound)
}

// A record under the id of an anti-pattern is no pattern, however it is read.
func TestNoRecordIsAnAntiPattern(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	body := `{"id": "anti-q", "anti": true, "content": "AVOID: q", "state": "inverted"}`
	_, err := w.store.Commit(ctx, store.Batch{Records: []store.Record{
		{Ref: store.Ref{Kind: "patterns.pattern", ID: "anti-q"}, At: start,
			Keys: []string{"planned"}, Body: store.Raw([]byte(body))},
	}})
	require.NoError(t, err)
	agree := func(want string) {
		all, err := w.Standings(ctx, patterns.PatternQuery{Anti: true})
		require.NoError(t, err)
		plan, err := w.Plan(ctx, "task")
		require.NoError(t, err)
		one, err := w.Standing(ctx, "anti-q")
		if want == "" {
			require.ErrorIs(t, err, heed.ErrNotFound)
			assert.Empty(t, all)
			assert.Empty(t, plan.AntiPatterns)
			return
		}
		require.NoError(t, err)
		assert.Equal(t, want, one.Pattern.Content)
		assert.Equal(t, []patterns.Standing{one}, all)
		assert.Equal(t, all, plan.AntiPatterns)
	}
	agree("")
	w.feedPattern("q", patterns.Harmful, 3, 0)
	agree("AVOID: q. Failed 3/3 times (100% failure rate)")
}

// forgotten returns a world in which a pattern was inverted by one person's failures, and that
// person was forgotten. Nothing was stored since.
func forgotten(t *testing.T, others int) *world {
	w := newWorld(t, patterns.Config{})
	for i := range 3 + others {
		o := bad("p")
		if o.Source = "mallory"; i >= 3 {
			o = good("p")
			o.Source = "ann"
		}
		w.record(o)
	}
	require.Equal(t, patterns.Inverted, w.standing("p").State)
	plan, err := w.Plan(ctx, "x")
	require.NoError(t, err)
	require.Len(t, plan.AntiPatterns, 1)
	require.NoError(t, store.Run(ctx, w.store, store.Job{Forget: []string{"mallory"}}))
	return w
}

func TestAWarningEndsWithTheFailuresBehindIt(t *testing.T) {
	for others, state := range []string{
		patterns.Candidate, patterns.Candidate, patterns.Candidate, patterns.Established,
		patterns.Established,
	} {
		w := forgotten(t, others)
		unwarned := func() {
			t.Helper()
			s := w.standing("p")
			assert.Equal(t, state, s.State)
			assert.Empty(t, s.Pattern.Twin)
			_, err := w.Standing(ctx, "anti-p")
			assert.ErrorIs(t, err, heed.ErrNotFound)
			all, err := w.Standings(ctx, patterns.PatternQuery{})
			require.NoError(t, err)
			assert.Len(t, all, 1)
			plan, err := w.Plan(ctx, "x")
			require.NoError(t, err)
			assert.NotContains(t, textOf(&plan), "AVOID")
		}
		unwarned()
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		unwarned()
		assert.Contains(t, w.transitions("p")[0].Cause, "its failures were forgotten: ")
		w.feedPattern("p", patterns.Harmful, 3, 0)
		assert.Equal(t, "AVOID: p. Failed 3/3 times (100% failure rate)", w.pattern("anti-p").Content)
	}
}

func TestAPromotionEndsAnInversionThatNoLongerHolds(t *testing.T) {
	w := forgotten(t, 3)
	_, err := w.Promote(ctx, "p", by)
	require.NoError(t, err)
	assert.Equal(t, patterns.Proven, w.standing("p").State)
	_, err = w.Standing(ctx, "anti-p")
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.Equal(t, patterns.Inverted, w.transitions("p")[0].From)
}

// An inverted pattern that is deprecated by hand keeps its warning, but not without failures.
func TestADeprecatedPatternKeepsItsWarning(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	o := bad("p")
	o.Source = "mallory"
	for range 3 {
		o.ID = ""
		w.record(o)
	}
	_, err := w.Deprecate(ctx, "p", by)
	require.NoError(t, err)
	w.feedPattern("p", patterns.Helpful, 9, 0)
	assert.Equal(t, "AVOID: p. Failed 3/12 times (25% failure rate)", w.pattern("anti-p").Content)
	require.NoError(t, store.Run(ctx, w.store, store.Job{Forget: []string{"mallory"}}))
	_, err = w.Standing(ctx, "anti-p")
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.Equal(t, patterns.Deprecated, w.standing("p").State)
}

// TestLifecycle holds recorded lives to a dumb oracle that counts by itself, and to the rules that
// hold for all of them.
func TestLifecycle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, patterns.Config{})
		var successes, failures, inversions, rehabilitations int
		inverted := false
		// failures and successes at the last rehabilitation, successes since the inversion
		var base, since int
		var baseSuccesses int
		for range rapid.IntRange(1, 40).Draw(rt, "n") {
			succeeds := rapid.Bool().Draw(rt, "succeeds")
			o := bad("p")
			if succeeds {
				o = good("p")
				successes++
				since++
			} else {
				failures++
			}
			recorded := w.record(o)
			assert.LessOrEqual(rt, len(recorded.Inversions), 1)
			f, n := failures-base, successes+failures-base-baseSuccesses
			switch {
			case !inverted && n >= 3 && 10*f >= 6*n:
				inverted, since = true, 0
				inversions++
				assert.Len(rt, recorded.Inversions, 1)
			case inverted && since >= 3 && 10*failures <= 3*(successes+failures):
				inverted, base, baseSuccesses = false, failures, successes
				rehabilitations++
				fallthrough
			default:
				assert.Empty(rt, recorded.Inversions)
			}
			assert.Equal(rt, inverted, w.standing("p").State == patterns.Inverted)
		}
		assert.LessOrEqual(rt, inversions, rehabilitations+1, "once, until it is rehabilitated")
	})
}
