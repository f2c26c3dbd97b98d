package feedback_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store"
)

// TestSweepKnowsWhatIsDue, whichever of two services over one store did it last.
func TestSweepKnowsWhatIsDue(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	other, err := feedback.New(ctx, feedback.Config{Store: w.store, Now: w.clock.Now})
	require.NoError(t, err)
	r := w.activate(rule("Be brief"))
	held(w)
	_, err = w.Record(ctx, w.correction("eve", "not evaluated yet"))
	require.NoError(t, err)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Len(t, w.proposals(feedback.StatePending), 1, "what has gathered is proposed")
	assert.Equal(t, feedback.EdgeCase, w.get("d3").Class, "and what was left is evaluated")
	measured := w.rule(r.ID).Effect.Measured
	assert.False(t, measured.IsZero())

	w.says("ann", "name the owner")
	w.says("ann", "name an owner")
	w.clock.advance(59 * time.Minute)
	require.NoError(t, other.Sweep(ctx, time.Time{}))
	assert.Len(t, w.proposals(feedback.StatePending), 1, "within the hour nothing is due")
	w.clock.advance(time.Minute)
	require.NoError(t, other.Sweep(ctx, time.Time{}))
	assert.Len(t, w.proposals(feedback.StatePending), 2)
	assert.Equal(t, measured, w.rule(r.ID).Effect.Measured, "rules are measured once a day")
	w.clock.advance(day)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Greater(t, w.rule(r.ID).Effect.Measured, measured)
}

// What was done an hour ago is due, to the microsecond.
func TestAPeriodEndsToTheMicrosecond(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	held(w)
	w.clock.advance(3 * time.Hour)
	at := start.Add(time.Hour)
	require.NoError(t, w.Sweep(ctx, at))
	require.Len(t, w.proposals(feedback.StatePending), 1)
	w.says("ann", "name the owner")
	w.says("ann", "name an owner")
	require.NoError(t, w.Sweep(ctx, at.Add(time.Hour-time.Microsecond)))
	assert.Len(t, w.proposals(feedback.StatePending), 1)
	require.NoError(t, w.Sweep(ctx, at.Add(time.Hour)))
	assert.Len(t, w.proposals(feedback.StatePending), 2)
}

// A caller whose clock is ahead lets nothing expire.
func TestSweepBelievesTheEarlierClock(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Be brief"))
	require.NoError(t, w.Sweep(ctx, start.Add(30*day)))
	assert.Len(t, w.proposals(feedback.StatePending), 1)
	w.clock.advance(30 * day)
	require.NoError(t, w.Sweep(ctx, start.Add(day)))
	assert.NotContains(t, w.audit(p.ID), "expire:", "nor does one that is behind")
	require.NoError(t, w.Sweep(ctx, start.Add(8*day)))
	assert.Contains(t, w.audit(p.ID), "expire:")
	closed := w.proposals(feedback.StateExpired)
	require.Len(t, closed, 1)
	assert.Equal(t, start.Add(8*day), closed[0].Decided)
}

// Processes whose clock is right repeat the sweeps of one whose clock is far ahead.
func TestAClockAheadStopsNoSweep(t *testing.T) {
	for ahead, due := range map[time.Duration]bool{30 * day: true, time.Hour: true,
		time.Second: false} {
		w := newWorld(t, feedback.Config{})
		r := w.activate(rule("Be brief"))
		other, err := feedback.New(ctx, feedback.Config{Store: w.store,
			Now: func() time.Time { return w.clock.Now().Add(ahead) }})
		require.NoError(t, err)
		require.NoError(t, other.Sweep(ctx, time.Time{}))
		early := w.rule(r.ID).Effect.Measured
		f := w.correction("eve", "not evaluated yet")
		_, err = w.Record(ctx, f)
		require.NoError(t, err)
		w.clock.advance(time.Millisecond)
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		assert.Equal(t, due, w.get(f.ID).Class != "", "the hourly work, %v ahead", ahead)
		assert.Equal(t, due, w.rule(r.ID).Effect.Measured.Before(early), "the daily work, %v ahead",
			ahead)
		_, err = w.Record(ctx, w.correction("eve", "nor this"))
		require.NoError(t, err)
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		assert.Empty(t, w.get("d2").Class, "it is not due again")
	}
}

// TestWhatWasDoneMayBeAskedForAgain, by somebody who was not told of it.
func TestWhatWasDoneMayBeAskedForAgain(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Be brief"))
	assert.Equal(t, p, w.propose("Paul", rule("Be brief")))
	assert.NotEqual(t, p.ID, w.propose("olga", rule("Be brief")).ID, "somebody else's is another")
	w.says("ann", "be brief")
	assert.NotEqual(t, p.ID, w.propose("paul", rule("Be brief"), "d1").ID,
		"and so is one from other evidence")

	done := w.approve(p, "cleo", "dan")
	again, err := w.review(p, approve, "dan")
	require.NoError(t, err)
	assert.Equal(t, done, again)
	_, err = w.review(p, approve, "eve")
	assert.Equal(t, "state", feedback.Refusal(err), "who was none of them is told")
	_, err = w.review(p, reject, "dan")
	assert.Equal(t, "state", feedback.Refusal(err), "and who has changed their mind")

	other := w.propose("paul", rule("Say why"))
	no, err := w.review(other, reject, "cleo")
	require.NoError(t, err)
	again, err = w.review(other, reject, "cleo")
	require.NoError(t, err)
	assert.Equal(t, no, again)

	assert.Equal(t, []string{"propose:paul", "approve:cleo", "approve:dan", "activate:dan",
		"approve.refused:eve", "reject.refused:dan"}, w.audit(p.ID))
}

// After a failure a sweep tries again at the next call, and then after 1, 2 and 4 minutes.
func TestASweepThatFailsBacksOff(t *testing.T) {
	asked, down := 0, false
	w := newWorld(t, feedback.Config{Similarity: judge(func(_, _ string) (float64, error) {
		asked++
		if down {
			return 0, errors.New("down")
		}
		return 0, nil
	})})
	w.says("ann", "add tests")
	down = true
	_, err := w.Record(ctx, w.correction("eve", "name the owner"))
	require.NoError(t, err)
	var tried []int
	for minute := range 12 {
		before := asked
		_ = w.Sweep(ctx, time.Time{})
		if asked > before {
			tried = append(tried, minute)
		}
		w.clock.advance(time.Minute)
	}
	assert.Equal(t, []int{0, 1, 2, 4, 8}, tried)
	down = false
	w.clock.advance(time.Hour)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Equal(t, feedback.EdgeCase, w.get("d2").Class)
}

// damage spoils a record.
func (w *world) damage(kind, id string) {
	w.t.Helper()
	for r, err := range w.store.Find(ctx, store.Query{Kind: kind}) {
		require.NoError(w.t, err)
		if r.ID == id {
			r.Body = store.Raw([]byte("[7]"))
			_, err = w.store.Commit(ctx, store.Batch{Records: []store.Record{r}})
			require.NoError(w.t, err)
		}
	}
}

// A damaged record of any kind is left out of lists, and keeps nothing else from a sweep.
func TestDamageKeepsNothingElseWaiting(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	bad, kept := w.propose("ann", rule("Say why")), w.propose("ann", rule("Name the owner"))
	first := w.says("ann", "add tests")
	w.says("eve", "be brief")
	w.damage("feedback.proposal", bad.ID)
	w.damage("feedback.record", first.ID)
	_, err := w.Record(ctx, first)
	require.ErrorIs(t, err, heed.ErrDamaged)
	_, err = w.Similar(ctx, w.correction("zoe", "add tests"), 0)
	require.ErrorIs(t, err, heed.ErrDamaged)
	all, n, err := w.rules.Proposals(ctx, feedback.ProposalQuery{}, 0)
	require.ErrorIs(t, err, heed.ErrDamaged)
	require.Equal(t, 1, n)
	assert.Equal(t, kept.ID, all[0].ID)
	_, err = w.rules.Propose(ctx, feedback.Submission{Draft: rule("Be kind"), Actor: "ann",
		Reason: "x"})
	require.ErrorIs(t, err, heed.ErrDamaged, "it may be the same proposal")
	w.clock.advance(365 * 24 * time.Hour)
	require.ErrorIs(t, w.Sweep(ctx, time.Time{}), heed.ErrDamaged)
	closed, err := w.rules.Proposal(ctx, kept.ID)
	require.NoError(t, err)
	assert.Equal(t, feedback.State("EXPIRED"), closed.Status)
	assert.Greater(t, closed.Revision, kept.Revision, "it is stored")
}
