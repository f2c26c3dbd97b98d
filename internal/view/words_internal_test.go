package view

import (
	"reflect"
	"testing"

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
		"feedback.approve": "approved", "feedback.modify": "edited", "feedback.reject": "rejected",
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
		l, err := listed(Page{After: after, Limit: 2}, all, func(s *string) string { return *s }, nil,
			each(func(s *string) string { return *s }))
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
