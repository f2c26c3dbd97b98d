package view

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
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

// An edit lists the fields that differ, and no other.
func TestEditsAreWhatDiffers(t *testing.T) {
	was := feedback.Draft{Text: "Be brief", Agents: []string{"a"}, Place: "style"}
	is := was
	is.Text, is.Place = "Be kind", ""
	assert.Equal(t, []Edit{{"text", "Be brief", "Be kind"}, {"place", "style", "none"}},
		Edits(&was, &is, strings.Clone))
	assert.Empty(t, Edits(&was, &was, strings.Clone))
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
		assert.Equal(t, tt.want, joins(tt.c, tt.other), "%+v %+v", tt.c, tt.other)
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
	names, err := (&Source{}).SegmentNames(t.Context())
	require.NoError(t, err)
	assert.Empty(t, names)
}

// Choices are counted by their stages, and as events where they or their results are recent.
func TestCountsOfChoices(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	since := now.Add(-24 * time.Hour)
	c := Status{Choices: map[string]int{}}
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
		c.count(&record, now)
	}
	assert.Equal(t, map[string]int{
		"latest": 5, "pending": 2, "observed": 2, "expired": 1, "events_24h": 4,
	}, c.Choices)
}

// All fields of a draft are shown, in their order, and those with their defaults are empty.
func TestTheFieldsOfADraft(t *testing.T) {
	show := func(text string) string { return "«" + text + "»" }
	assert.Equal(t, []Part{
		{"text", "«Be brief.»"}, {"agents", "all"}, {"action", ""}, {"type", ""}, {"place", ""},
		{"supersedes", ""}, {"check", ""},
	}, Parts(&feedback.Draft{
		Text: "Be brief.", Type: "GUIDELINE", Action: "CREATE_RULE",
	}, show))
	assert.Equal(t, []Part{
		{"text", "«Be brief.»"}, {"agents", "«a, b»"}, {"action", "update_skill"},
		{"type", "constraint"}, {"place", "«top»"}, {"supersedes", "«r1, r2»"},
		{"check", "answers must match «x»"},
	}, Parts(&feedback.Draft{
		Text: "Be brief.", Type: "CONSTRAINT", Action: "UPDATE_SKILL", Place: "top",
		Agents: []string{"a", "b"}, Supersedes: []string{"r1", "r2"},
		Check: feedback.Check{Require: "x"},
	}, show))
}

// A change is of the kind of its action, unless it is about a segment or a rule, and names the
// segment and the domain that it is about.
func TestWhatAChangeIsAbout(t *testing.T) {
	type details = map[string]string
	of := details{"category": "cat", "context": "chat"}
	for _, tt := range []struct {
		action, subject                 string
		details                         details
		kind, category, context, domain string
		segment                         bool
	}{
		{action: "feedback.approve", details: of, kind: "rule"},
		{action: "x.pin", details: details{"domain": "tls"}, kind: "heuristic", domain: "tls"},
		{"x.pin", "", of, "arm", "cat", "chat", "cat", true},
		{"x.leads", "a/b", nil, "arm", "a", "b", "a", true},
		{action: "x.leads", subject: "none", kind: "arm", category: "none"},
		{action: "x.retract", details: of, kind: "statement"},
		{action: "x.unpin.refused", kind: "heuristic"},
		{action: "outage", kind: "incident"},
		{action: "patterns.archive", kind: "way"},
	} {
		c := changeOf(&store.AuditEntry{Action: tt.action, Subject: tt.subject, Details: tt.details})
		category, segment, ok := c.Segment()
		assert.Equal(t, []any{tt.kind, tt.category, tt.context, tt.segment, tt.domain},
			[]any{c.Kind, category, segment, ok, c.domain()}, tt.action)
	}
}

// Statements are listed if they are asked for, by their kind or their action.
func TestWhichChangesAreSelected(t *testing.T) {
	said := Changed{Kind: "statement", AuditEntry: store.AuditEntry{Action: "x.revise"}}
	pin := Changed{Kind: "heuristic", AuditEntry: store.AuditEntry{
		Action: "x.pin", Details: map[string]string{"domain": "tls"},
	}}
	for q, want := range map[ChangeQuery][2]bool{
		{}: {false, true}, {Kind: "statement"}: {true, false}, {Action: "x."}: {true, true},
		{Action: "y."}: {false, false}, {Domain: "tls"}: {false, true},
		{Kind: "heuristic"}:                 {false, true},
		{Kind: "heuristic", Domain: "desk"}: {false, false},
	} {
		assert.Equal(t, want, [2]bool{q.selects(&said), q.selects(&pin)}, "%+v", q)
	}
}

// A correction that was contradicted without a dispute has no rival.
func TestNoRivalWithoutADispute(t *testing.T) {
	service, err := feedback.New(t.Context(), feedback.Config{Store: &memstore.Store{}})
	require.NoError(t, err)
	_, err = service.Record(t.Context(), feedback.Feedback{
		ID: "real", Gate: "g", Agent: "a", Decision: feedback.Approved, Reviewer: "ann",
		At: time.Unix(1e9, 0),
	})
	require.NoError(t, err)
	s := &Source{Feedback: service}
	c := &feedback.Feedback{ID: "1"}
	c.Contradicts = []string{"real"}
	for _, dispute := range []string{"", "it says the opposite"} {
		c.Dispute = dispute
		rival, err := s.Rival(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, dispute != "", rival != nil)
	}
}

// What gain is in words, without outcomes of both sides, and with calls, cost and time saved.
func TestGainInWords(t *testing.T) {
	g := Gain{Verdict: loop.Helps}
	assert.Equal(t, []string{"Learning helps: no outcome of both sides is known."}, g.compared())
	g.Learned = loop.Measured{Outcomes: 10, Answers: 20, Success: 0.8, Calls: 1, Cost: 2, Seconds: 3}
	assert.Len(t, g.compared(), 1)
	g.Control = loop.Measured{Outcomes: 1, Answers: 5, Success: 0.6, Calls: 3, Cost: 4, Seconds: 5}
	g.Since, g.Low, g.High = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), 0.1, 0.3
	assert.Equal(t, []string{
		"Learning helps: the success of answers is 80 % on average with it, and 60 % without " +
			"(outcomes: 1). The difference is +20.0 points; the 90 % interval, valid at every look, is " +
			"+10.0 to +30.0.",
		"Since 2026-03-02 it saved 40 calls of the model, 40.00 of cost, and 40s of waiting.",
		"The 5 answers without learning cost about 0.2 successes and 10 calls.",
	}, g.compared())
	g.Learned.Cost, g.Learned.Seconds, g.Verdict = g.Control.Cost, g.Control.Seconds, loop.Harms
	assert.Contains(t, g.compared()[0], "Learning harms: ")
	assert.Equal(t, "Since 2026-03-02 it saved 40 calls of the model.", g.compared()[1])
}

// Means are weighed by what they are means of.
func TestMeansAreMerged(t *testing.T) {
	m := loop.Measured{Outcomes: 1, Answers: 2, Success: 1, Calls: 1, Cost: 2, Seconds: 3}
	merge(&m, &loop.Measured{Outcomes: 3, Answers: 6, Success: 0.2, Calls: 5, Cost: 6, Seconds: 7})
	assert.InDeltaSlice(t, []float64{4, 8, 0.4, 4, 5, 6},
		[]float64{m.Outcomes, m.Answers, m.Success, m.Calls, m.Cost, m.Seconds}, 1e-9)
	var none loop.Measured
	merge(&none, &loop.Measured{})
	assert.Zero(t, none)
}

// The latest weeks and days of a course, each with all its sides.
func TestTheCourse(t *testing.T) {
	m := func(n float64) loop.Measured { return loop.Measured{Answers: n} }
	day := func(name string, n float64) loop.GainPart {
		return loop.GainPart{Name: name, Learned: m(n), Control: m(n + 1), Alone: m(n + 2)}
	}
	g := Gain{Gain: loop.Gain{Days: []loop.GainPart{
		day("2026-03-01", 1), day("2026-03-02", 2), day("2026-03-08", 3), day("2026-03-09", 4),
	}}}
	assert.Equal(t, g.Days[2:], g.Course(ByDay, 2))
	assert.Equal(t, g.Days, g.Course(ByDay, 9))
	week := loop.GainPart{Name: "2026-03-02", Learned: m(5), Control: m(7), Alone: m(9)}
	assert.Equal(t, []loop.GainPart{day("2026-02-23", 1), week, day("2026-03-09", 4)},
		g.Course(ByWeek, 3))
}

// What does not show a cause comes with the advice that fits: to compare, or to wait.
func TestTheAdviceOfACourse(t *testing.T) {
	g := Gain{}
	now := time.Date(2026, 3, 20, 9, 0, 0, 0, time.UTC)
	assert.Contains(t, g.course(now)[1], "Set Control of loop.Config to 0.05")
	g.Learned.Answers = 1
	assert.Contains(t, g.course(now)[1], "So far chance has not selected any session")
}

// How many items have specialized is estimated from those that were sampled.
func TestSpecializedOfASample(t *testing.T) {
	seven := strategy.Distribution{Items: 1000, Specialized: make([]string, 7)}
	assert.Equal(t, 7, segmentOf(&seven).Specialized)
	for sampled, want := range map[int]int{100: 70, 1: 7000} {
		seven.Sampled = sampled
		assert.Equal(t, want, segmentOf(&seven).Specialized)
	}
}

// Without an outcome on both sides, nothing can be compared. One on each is enough.
func TestGainNeedsOutcomes(t *testing.T) {
	for _, tt := range []struct {
		learned, control float64
		known            bool
	}{{0, 5, false}, {5, 0, false}, {1, 1, true}, {1, 5, true}, {5, 1, true}} {
		g := Gain{}
		g.Learned.Outcomes, g.Control.Outcomes = tt.learned, tt.control
		assert.Equal(t, !tt.known, len(g.compared()) == 1, tt)
	}
}
