package view

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// What holds a confidence is named by the strongest reason.
func TestWhatHoldsAConfidence(t *testing.T) {
	at := Held{Floor: 0.8, Ceiling: 0.8}
	locked := Held{Floor: 0.8, Ceiling: 0.8, Locked: true}
	for _, tt := range []struct {
		h    Heuristic
		want string
	}{
		{Heuristic{}, ""},
		{Heuristic{Held: locked, Limits: []string{"floor"}}, "at 0.800, locked"},
		{Heuristic{Held: at, Limits: []string{"floor"}}, "at 0.800"},
		{Heuristic{Held: Held{Locked: true}, Limits: []string{"floor"}}, "locked"},
		{Heuristic{Limits: []string{"ceiling", "floor"}}, "by its floor"},
		{Heuristic{Limits: []string{"people", "ceiling"}}, "by its ceiling"},
		{Heuristic{Limits: []string{"people", "disagreement"}}, "by disagreement"},
		{Heuristic{Limits: []string{"cap", "people"}}, "by limits on people"},
		{Heuristic{Limits: []string{"cap"}}, "by caps"},
		{Heuristic{Confidence: 0.1, Low: 0.2, High: 0.3}, "by caps"},
		{Heuristic{Confidence: 0.4, Low: 0.2, High: 0.3}, "by caps"},
		{Heuristic{Confidence: 0.2, Low: 0.2, High: 0.3}, ""},
		{Heuristic{Confidence: 0.3, Low: 0.2, High: 0.3}, ""},
	} {
		assert.Equal(t, tt.want, tt.h.By(), "%+v", tt.h)
	}
}

func TestHowSomethingIsKnown(t *testing.T) {
	for _, tt := range []struct {
		s    learning.Share
		want string
	}{
		{learning.Share{}, "seen"}, {learning.Share{Said: true}, "said"},
		{learning.Share{Channel: DisagreementChannel, Source: "ann"}, "the model said something else"},
		{learning.Share{Channel: "user_explicit", Source: "ann", Kind: "person"}, "ann said it"},
	} {
		assert.Equal(t, tt.want, KnownBy(tt.s))
	}
	assert.Equal(t, "a user said it", Known("user_explicit"))
	o := evidence.Observation{Channel: "agreement"}
	assert.Equal(t, "agreement", ChannelOf(&o))
	o.Cell.Name = "disagreed"
	assert.Equal(t, DisagreementChannel, ChannelOf(&o))
}

// The range of a rate is made of what counts. Disagreement takes back what agreement gave, and no
// more; and the bounds of the confidence hold for it.
func TestTheRangeOfARate(t *testing.T) {
	e := learning.Explanation{Prior: evidence.Beta{Alpha: 3, Beta: 2}, Shares: []learning.Share{
		{Channel: "user_explicit", CountsFor: 4, CountsAgainst: 1, For: 9, Against: 9},
		{Channel: learning.ChannelAgreement, CountsFor: 2, CountsAgainst: 0.5},
		{Channel: DisagreementChannel, CountsFor: 100, CountsAgainst: 1.5},
	}}
	e.Constraints.Ceiling = 1
	wantLow, wantHigh := evidence.Beta{Alpha: 9, Beta: 5}.Interval(0.9)
	low, high := interval(&e)
	assert.Equal(t, []float64{wantLow, wantHigh}, []float64{low, high})
	e.Shares[2].CountsAgainst = 7
	wantLow, wantHigh = evidence.Beta{Alpha: 9, Beta: 5.5}.Interval(0.9)
	low, high = interval(&e)
	assert.Equal(t, []float64{wantLow, wantHigh}, []float64{low, high})
	e.Constraints.Floor, e.Constraints.Ceiling = 0.5, 0.6
	low, high = interval(&e)
	assert.Equal(t, []float64{0.5, 0.6}, []float64{low, high})
}

// A belief that is no Beta distribution gets the one with its mean and its interval. A mean of 0
// or 1 and an interval without a width have one, too.
func TestBeliefsAreLikeBeta(t *testing.T) {
	plain := strategy.ArmReport{Mean: 0.3}
	plain.Belief.Level = evidence.Beta{Alpha: 2, Beta: 5}
	assert.Equal(t, plain.Belief.Level, likeBeta(plain))
	for _, tt := range []struct{ mean, low, high, alpha, beta float64 }{
		{0.5, 0.5 - 1.6449/8, 0.5 + 1.6449/8, 7.5, 7.5}, // a deviation of 1/8: 0.25*64-1 = 15
		{0.25, 0.25 - 1.6449/8, 0.25 + 1.6449/8, 0.25 * 11, 0.75 * 11},
		{0.5, 0, 1, 0.5 * (0.25*3.2898*3.2898 - 1), 0.5 * (0.25*3.2898*3.2898 - 1)},
		{0, 0, 1, 1e-9, 1e-3 * (1 - 1e-6)},
		{1, 0, 1, 1e-3 * (1 - 1e-6), 1e-9},
		{0.5, 0.5, 0.5, 0.5 * (0.25e12 - 1), 0.5 * (0.25e12 - 1)},
	} {
		r := strategy.ArmReport{Mean: tt.mean, Low: tt.low, High: tt.high}
		r.Belief.Strength = 1
		got := likeBeta(r)
		assert.InEpsilon(t, tt.alpha, got.Alpha, 1e-6, "%+v", tt)
		assert.InEpsilon(t, tt.beta, got.Beta, 1e-6, "%+v", tt)
	}
}

// Corrections of one agent and of two clusters can be joined, if the class of each allows it. An
// ambiguous one can join others, and no other can join it.
func TestWhatCanBeJoined(t *testing.T) {
	type in = feedback.Feedback
	of := func(id, agent, cluster string, class feedback.Classification) *in {
		found := feedback.Evaluation{Cluster: cluster, Class: class}
		return &in{ID: id, Agent: agent, Evaluation: found}
	}
	one := of("1", "ops", "1", feedback.EdgeCase)
	for _, tt := range []struct {
		c, other *in
		want     bool
	}{
		{one, of("2", "ops", "2", feedback.EdgeCase), true},
		{one, of("2", "ops", "2", feedback.GeneralizableLow), true},
		{one, of("2", "ops", "2", feedback.GeneralizableHigh), true},
		{one, of("2", "ops", "2", feedback.Ambiguous), false},
		{one, of("1", "ops", "2", feedback.EdgeCase), false},
		{one, of("2", "ops", "", feedback.EdgeCase), false},
		{one, of("2", "ops", "1", feedback.EdgeCase), false},
		{one, of("2", "night", "2", feedback.EdgeCase), false},
		{of("1", "ops", "1", feedback.Ambiguous), of("2", "ops", "2", feedback.EdgeCase), true},
		{of("1", "ops", "", feedback.Ambiguous), of("2", "ops", "2", feedback.EdgeCase), true},
		{of("1", "ops", "1", ""), of("2", "ops", "2", feedback.EdgeCase), false},
	} {
		assert.Equal(t, tt.want, Joins(tt.c, tt.other), "%+v %+v", tt.c, tt.other)
	}
}

// What a correction, a conflict or a proposal refers to may be gone: then it is left out.
func TestWhatIsGoneIsLeftOut(t *testing.T) {
	service, err := feedback.New(t.Context(), feedback.Config{Store: &memstore.Store{}})
	require.NoError(t, err)
	s := &Source{Feedback: service}
	c := &feedback.Feedback{ID: "1"}
	c.Near, c.Contradicts = []string{"gone", "lost"}, []string{"gone"}
	c.Dispute = "it says the opposite"
	near, err := s.Near(t.Context(), c)
	require.NoError(t, err)
	assert.Empty(t, near)
	rival, err := s.Rival(t.Context(), c)
	require.NoError(t, err)
	assert.Nil(t, rival)
	for _, of := range []feedback.Conflict{{ID: "gone"}, {ID: "gone", Pending: true},
		{ID: "gone", Correction: true}} {
		against, err := s.against(t.Context(), of)
		require.NoError(t, err)
		assert.Equal(t, Against{Conflict: of}, against)
	}
	all, err := s.before(t.Context(), &feedback.Proposal{Previous: "gone"})
	require.NoError(t, err)
	assert.Empty(t, all)
	c.Dispute, c.Contradicts = "", nil
	rival, err = s.Rival(t.Context(), c)
	require.NoError(t, err)
	assert.Nil(t, rival)
}

// Each error of the parts is a fault with words for the caller.
func TestFaultsOfErrors(t *testing.T) {
	down := errors.New("down")
	for _, tt := range []struct {
		err   error
		sort  string
		after time.Duration
	}{
		{&Fault{Sort: Refused}, Refused, 0}, {badField("a", "b"), BadField, 0},
		{&feedback.RefusedError{Reason: "x"}, Refused, 0}, {&heed.ConfigError{}, MissingPart, 0},
		{loop.ErrNoModel, ModelFailed, time.Second}, {decision.ErrBusy, ModelFailed, time.Second},
		{fmt.Errorf("%w: %w", loop.ErrNoModel, &llm.Error{RetryAfter: time.Minute}), ModelFailed,
			time.Minute},
		{store.ErrLeft, Unknown, 0}, {evidence.ErrForgotten, Forgotten, 0},
		{heed.ErrNotFound, Unknown, 0}, {heed.ErrConflict, Conflicting, 0},
		{fmt.Errorf("%w: %w", heed.ErrConflict, &heed.SettingsError{}), Failure, 0},
		{context.DeadlineExceeded, OutOfTime, 0}, {context.Canceled, OutOfTime, 0}, {down, Failure, 0},
	} {
		f := FaultOf(fmt.Errorf("somewhere: %w", tt.err), reflect.TypeFor[Named]())
		assert.Equal(t, tt.sort, f.Sort, "%v", tt.err)
		assert.Equal(t, tt.after, f.After, "%v", tt.err)
		assert.Equal(t, tt.sort == Failure, f.Cause != nil, "%v", tt.err)
	}
	for _, part := range []string{agent, arms, heuristics, rules, ways} {
		assert.False(t, (&Source{}).Has(part))
		assert.Contains(t, Lacks(part).Detail, "The server has no "+part+". ")
		assert.Equal(t, MissingPart, Lacks(part).Sort)
	}
	assert.True(t, (&Source{}).Has(""))
}

// Choices are counted by their stages, and as events where they or their results are recent.
func TestCountsOfChoices(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	since := now.Add(-24 * time.Hour)
	var c choiceCounts
	for _, r := range []struct {
		stage      strategy.Stage
		at, result time.Time
	}{
		{strategy.Pending, since, time.Time{}}, {strategy.Observed, now, now},
		{strategy.Observed, since.Add(-1), since}, {strategy.Expired, now.Add(1), now.Add(1)},
		{strategy.Pending, since.Add(-1), time.Time{}},
	} {
		record := strategy.ChoiceRecord{Stage: r.stage, Choice: strategy.Choice{At: r.at}}
		if !r.result.IsZero() {
			record.Result = &strategy.Result{At: r.result}
		}
		c.count(&record, since, now)
	}
	assert.Equal(t, choiceCounts{Latest: 5, Pending: 2, Observed: 2, Expired: 1, Events: 4}, c)
}
