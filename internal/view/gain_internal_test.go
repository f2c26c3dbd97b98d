package view

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/loop"
)

// Answers without learning may also succeed more often. Then they cost no success.
func TestThePriceInWords(t *testing.T) {
	g := Gain{Verdict: loop.Undecided, Gain: loop.Gain{Low: -0.84, High: 0.8}}
	g.Learned = loop.Measured{Outcomes: 50, Answers: 50, Success: 0.9}
	for success, want := range map[float64]string{
		0.5: "The 10 answers without learning cost about 4.0 successes and 0 calls.",
		1:   "The 10 answers without learning cost no success (they had about 1.0 more), and 0 calls.",
	} {
		g.Control = loop.Measured{Outcomes: 10, Answers: 10, Success: success}
		words := strings.Join(g.compared(), " ")
		assert.Contains(t, words, "It is not clear yet whether learning helps: the success of "+
			"answers is 90 %")
		assert.Contains(t, words, "the 90 % interval, valid at every look, is -84.0 to +80.0.")
		assert.Contains(t, words, want)
	}
	g.Control = loop.Measured{Outcomes: 1, Answers: 1, Success: 0.5, Calls: 1}
	assert.Contains(t, strings.Join(g.compared(), " "),
		"The 1 answer without learning cost about 0.4 successes and 1 call.")
}

// Without a comparison, the success of the last seven days is shown next to the one before, where
// each has an outcome, and else the one of all.
func TestTheCourseInWords(t *testing.T) {
	now := time.Date(2026, 3, 20, 9, 0, 0, 0, time.UTC)
	good := loop.Measured{Answers: 1, Outcomes: 1, Success: 1}
	for _, test := range []struct {
		late, before loop.Measured
		want         string
	}{
		{loop.Measured{Outcomes: 1}, good,
			"The success of answers was 0 % on average in the last seven days, and 100 % before."},
		{loop.Measured{}, good, "The success of answers was 100 % on average."},
		{good, loop.Measured{}, "The success of answers was 100 % on average."},
		{loop.Measured{}, loop.Measured{}, "No outcome is known yet. Imported answers are left out."},
	} {
		g := Gain{Gain: loop.Gain{Days: []loop.GainPart{
			{Name: "2026-03-13", Alone: test.before}, {Name: "2026-03-14", Alone: test.late},
		}}}
		words := g.course(now)
		assert.Equal(t, test.want, words[0])
		assert.Equal(t, test.late.Outcomes+test.before.Outcomes > 0,
			strings.HasPrefix(words[1], "This does not show"), "without outcomes there is no cause")
	}
}
