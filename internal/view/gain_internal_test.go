package view

import (
	"strings"
	"testing"

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
		assert.Contains(t, words, "It is not clear yet whether learning helps: 90 %")
		assert.Contains(t, words, "the 90 % interval, valid at every look, is -84.0 to +80.0.")
		assert.Contains(t, words, want)
	}
}
