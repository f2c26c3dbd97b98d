package view

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/strategy"
)

func TestChecksInWords(t *testing.T) {
	quoted := func(text string) string { return "«" + text + "»" }
	for want, c := range map[string]feedback.Check{
		"":                                   {},
		"answers must not match «rm»":        {Forbid: "rm"},
		"calls of all tools must match «-n»": {Tool: "*", Require: "-n"},
		"calls of «shell» must not match «rm -rf»": {Tool: "shell", Forbid: "rm -rf"},
	} {
		assert.Equal(t, want, CheckWords(c, quoted))
	}
}

func TestDeed(t *testing.T) {
	for action, want := range map[string]string{
		"pin": "pinned", "feedback.approve": "approved",
		"feedback.modify": "edited", "feedback.reject": "rejected",
		"feedback.take-out": "took out", "feedback.propose-retirement": "proposed retirement",
		"feedback.approve.refused": "tried to approve", "learning.pin": "pinned (learning)",
		"support.strategy.reset": "reset (support.strategy)",
		"patterns.reset_task":    "reset task (patterns)",
		"support.freeze":         "froze (support)", "support.unfreeze": "unfroze (support)",
	} {
		assert.Equal(t, want, Deed(action), action)
	}
}

// A fault of heed's has the place that the field has in the input.
func TestFaultsHaveTheNamesOfTheInput(t *testing.T) {
	for field, want := range map[string]string{
		"History[1].Role": "history[1].role", "Text": "text", "Event.Session": "session",
		"Other": "other",
	} {
		f := FaultOf(&heed.InputError{Field: field, Reason: "is wrong"}, reflect.TypeFor[Event]())
		assert.Equal(t, want, f.Field)
	}
}

func TestWhichAnswersAreSelected(t *testing.T) {
	good, bad := Answer{Known: true, Worth: 0.5}, Answer{Known: true, Worth: -0.5}
	even, open := Answer{Known: true}, Answer{}
	for q, want := range map[AnswerQuery][]bool{
		{Sort: Worst}:   {false, true, false, false},
		{Outcome: Good}: {true, false, true, false},
		{Outcome: Bad}:  {false, true, false, false},
		{Outcome: Open}: {false, false, false, true},
		{}:              {true, true, true, true},
		{Person: "ann"}: {false, false, false, false},
	} {
		for i, a := range []Answer{good, bad, even, open} {
			assert.Equal(t, want[i], q.selects(&a), "%+v of %+v", q, a)
		}
	}
}

// In the order for people, the next part begins behind the element that ended the last one,
// wherever that is now, or else at its place.
func TestWhereTheNextPartBegins(t *testing.T) {
	part := func(after string, all ...string) []string {
		itself := func(s *string) string { return *s }
		l, err := listed(Page{After: after, Limit: 2}, all, nil, itself, nil, each(itself))
		require.NoError(t, err)
		return l.Items
	}
	assert.Equal(t, []string{"c", "d"}, part("1.b", "a", "b", "c", "d"))
	assert.Equal(t, []string{"c", "d"}, part("1.b", "new", "a", "b", "c", "d"))
	assert.Equal(t, []string{"c", "d"}, part("1.b", "a", "c", "d"), "it is gone")
	assert.Equal(t, []string{"b", "c"}, part("1.a", "a", "b", "c", "d"), "it is the first now")
	assert.Empty(t, part("9.z", "a"))
}

// What a segment's latest choices got is the mean of the known outcomes, on the scale from 0 to 1.
func TestTraffic(t *testing.T) {
	choice := func(arm strategy.ArmID, means ...float64) (c strategy.ChoiceRecord) {
		c.Choice.Arm = arm
		for _, mean := range means {
			c.Result, c.Mean = &strategy.Result{}, mean
		}
		return c
	}
	for name, one := range map[string]struct {
		latest []strategy.ChoiceRecord
		want   Traffic
	}{
		"no outcome": {[]strategy.ChoiceRecord{choice("a")}, Traffic{Arm: "a", Share: 1, Choices: 1}},
		"one outcome": {[]strategy.ChoiceRecord{choice("b", 1), choice("a")},
			Traffic{Arm: "b", Share: 0.5, Success: 1, Choices: 2, Known: 1}},
		"two arms": {[]strategy.ChoiceRecord{choice("a", 1), choice("b", -1), choice("b", 0),
			choice("b")},
			Traffic{Arm: "b", Share: 0.75, Success: 0.5, Choices: 4, Known: 3}},
	} {
		d := SegmentDetail{Segment: Segment{Arms: []Arm{{Arm: one.want.Arm}, {Arm: "never"}}}}
		d.count(one.latest)
		assert.Equal(t, &one.want, d.Traffic, name)
		assert.InDelta(t, one.want.Share, *d.Arms[0].Chosen, 1e-9)
		assert.Zero(t, *d.Arms[1].Chosen)
	}
}

// A time of a query is a day, a moment, or how long ago. "0" is no time.
func TestTimesOfAQuery(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	s := &Source{Now: func() time.Time { return now }}
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "0": {}, "0s": {}, "2026-01-31": day.Add(time.Hour), "1ns": now.Add(-1),
		"2026-01-31T00:00:00Z": day, "24h": now.Add(-24 * time.Hour),
	} {
		require.NoError(t, aTime("since", text), text)
		assert.Equal(t, want, s.moment(text, time.Hour), text)
	}
	for _, text := range []string{"-1ns", "-24h", "yesterday", "2026-02-30", "2026-01-31 00:00"} {
		err := aTime("since", text)
		require.Error(t, err, text)
		assert.Equal(t, "since", FaultOf(err, reflect.TypeFor[ChangeQuery]()).Field, text)
	}
	for _, tt := range []struct {
		since, until string
		wrong        bool
	}{
		{"2026-01-31", "2026-01-31", false}, {"2026-02-01", "2026-01-31", true}, {"1h", "", false},
		{"2026-01-31", "2026-01-31T00:00:00Z", true}, {"1h", "2h", true}, {"2h", "1h", false},
	} {
		_, _, err := s.span(tt.since, tt.until)
		if assert.Equal(t, tt.wrong, err != nil, tt); tt.wrong {
			assert.Equal(t, "until", FaultOf(err, reflect.TypeFor[ChangeQuery]()).Field)
		}
	}
}

// What a query can't have is refused with what it can have, and nothing is read.
func TestQueriesThatAreRefused(t *testing.T) {
	require.NoError(t, oneOf("f", "A", "a", "b"))
	require.NoError(t, oneOf("f", "", "a"))
	require.ErrorContains(t, oneOf("f", "c", "a", "B"), "must be one of a, b")
	require.ErrorContains(t, oneOf("f", "c", "a"), "must be a")
	s := &Source{Now: time.Now}
	ctx := t.Context()
	_, rules := s.Rules(ctx, RuleQuery{Status: "unheard of"})
	_, proposals := s.Proposals(ctx, RuleQuery{Status: "unheard of"})
	_, changes := s.Changes(ctx, ChangeQuery{Kind: "unheard of"})
	_, late := s.Changes(ctx, ChangeQuery{Since: "1h", Until: "2h"})
	for field, errs := range map[string][]error{
		"status": {rules, proposals}, "kind": {changes}, "until": {late},
	} {
		for _, err := range errs {
			require.Error(t, err, field)
			assert.Equal(t, field, FaultOf(err, reflect.TypeFor[ChangeQuery]()).Field)
		}
	}
	together, err := s.Together(ctx, &feedback.Feedback{
		Evaluation: feedback.Evaluation{Class: feedback.EdgeCase}})
	require.NoError(t, err)
	assert.Empty(t, together, "a correction without a cluster is alone")
}

// A part of a list begins behind the last element of the part before, or where that was.
func TestWhereAPartBegins(t *testing.T) {
	names := []string{"c", "a", "b"}
	nameOf := func(name *string) string { return *name }
	read := func(after string, byName bool) ([]string, error) {
		p := Page{byName: byName}
		p.Turn(Page{After: after, byName: byName})
		l, err := listed(p, names, nil, nameOf, nil, each(func(name *string) string { return *name }))
		return l.Items, err
	}
	for after, want := range map[string][]string{
		"": names, "0.c": names[1:], "1.a": names[2:], "2.b": {}, "2147483647.x": {},
		"2.c": names[1:], "1.gone": names[1:], "0.gone": names,
	} {
		got, err := read(after, false)
		require.NoError(t, err, after)
		assert.Equal(t, want, got, after)
	}
	for after, want := range map[string][]string{
		"9.a": {"b", "c"}, "9.aa": {"b", "c"}, "0.": {"a", "b", "c"}, "0.c": {},
	} {
		got, err := read(after, true)
		require.NoError(t, err, after)
		assert.Equal(t, want, got, after)
	}
	for _, after := range []string{"2147483648.c", "-1.c", "c", "1", ".c"} {
		_, err := read(after, false)
		require.ErrorAs(t, err, new(*heed.InputError), after)
	}
}

func TestWhoseApprovalCounts(t *testing.T) {
	quorum := func(outsiders, missing int) *feedback.Proposal {
		return &feedback.Proposal{Quorum: &feedback.Quorum{Approved: []string{"ann"},
			Writers: []string{"bob"}, Reviewers: []string{"cem"}, Outsiders: outsiders, Missing: missing}}
	}
	for _, tt := range []struct {
		p          *feedback.Proposal
		name, want string
	}{
		{&feedback.Proposal{}, "ann", ""}, {&feedback.Proposal{}, "\xff", "can't be used"},
		{quorum(0, 1), "ann", "You have approved"}, {quorum(0, 1), "bob", "You proposed"},
		{quorum(0, 1), "cem", ""}, {quorum(1, 1), "dee", ""},
		{quorum(1, 1), "cem", "You gave evidence"},
	} {
		got := Yours(tt.p, tt.name)
		assert.Equal(t, tt.want == "", got == "", tt.name)
		assert.Contains(t, got, tt.want)
	}
}

func TestNamesAreClipped(t *testing.T) {
	long := strings.Repeat("n", 99) + "é"
	assert.Equal(t, long[:100], clipName(long[:100]))
	assert.Equal(t, long[:99]+"…", clipName(long))
	assert.Equal(t, strings.Repeat("n", 100)+"…", clipName(strings.Repeat("n", 101)))
}
