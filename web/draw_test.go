package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/strategy"
)

// TestColumns has each choice in one column, and each column full.
func TestColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arms := make([]view.Arm, rapid.IntRange(1, 10).Draw(t, "arms"))
		for i := range arms {
			arms[i].Arm = strategy.ArmID(fmt.Sprint("arm", i))
		}
		choices := make([]strategy.ChoiceRecord, rapid.IntRange(0, 300).Draw(t, "choices"))
		for i := range choices {
			choices[i].Choice.Arm = arms[rapid.IntRange(0, len(arms)-1).Draw(t, "arm")].Arm
		}
		of := 0
		for _, c := range columns(choices, arms) {
			of += c.Of
			var share, height float64
			for _, p := range c.Parts {
				share, height = share+p.Share, height+p.Height
			}
			if share < 0.999 || share > 1.001 || height < chartHeight-1 || height > chartHeight+1 ||
				c.Of < 5 {
				t.Fatalf("column of %d: shares %v, height %v", c.Of, share, height)
			}
		}
		if of != len(choices) && len(choices) >= 5 {
			t.Fatalf("%d choices of %d are drawn", of, len(choices))
		}
	})
}

// TestDifferences gives back both texts, and leaves the words around a change as they are.
func TestDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([ab ]|c\n){0,30}`)
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		var was, is strings.Builder
		for _, p := range differences(before, after) {
			if !p.In {
				was.WriteString(p.Text)
			}
			if !p.Out {
				is.WriteString(p.Text)
			}
		}
		if was.String() != before || is.String() != after {
			t.Fatalf("%q and %q", was.String(), is.String())
		}
	})
	assert.Equal(t, []stretch{
		{Text: "Say "}, {Text: "the time ", Out: true}, {Text: "when ", In: true}, {Text: "to all."},
	}, differences("Say the time to all.", "Say when to all."))
}

func TestSay(t *testing.T) {
	for text, want := range map[string]string{
		"plain text, ä 日本 😀": "plain text, ä 日本 😀", "a\u202eb": "a[U+202E]b",
		"zero\u200bwidth": "zero[U+200B]width", "a\x00b": "a[U+0000]b",
		"\ufeffx": "[U+FEFF]x", "two\nlines\t": "two\nlines\t", "\u3164": "[U+3164]",
		"bad\xffbyte": "bad[U+FFFD]byte", "\u2066x": "[U+2066]x", "": "", "\U000e0041": "[U+E0041]",
	} {
		assert.Equal(t, want, say(text))
	}
}

// Disagreement has the channel of agreement, and other words all the same.
func TestSeenBy(t *testing.T) {
	o := evidence.Observation{Channel: learning.ChannelAgreement}
	assert.Equal(t, "the model said the same", seenBy(o))
	o.Cell.Name = "disagreed"
	assert.Equal(t, known(view.DisagreementChannel), seenBy(o))
	assert.Equal(t, "thumb", known("thumb"))
	assert.Equal(t, "nobody said anything, thumb", text.ChannelsWords("implicit_timeout, thumb"))
}

// An arm leads where it is the best with a probability of a half or more.
func TestClear(t *testing.T) {
	assert.False(t, view.Segment{Best: 0.39}.Clear())
	assert.True(t, view.Segment{Best: 0.5}.Clear())
	assert.Equal(t, "without a category", segmentName("", ""))
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
		assert.Equal(t, want, deed(action), action)
	}
}

// TestRefusal has no constant in what a person reads.
func TestRefusal(t *testing.T) {
	_, text := refusal(&feedback.RefusedError{Reason: "the proposal is SUPERSEDED",
		State: "SUPERSEDED"})
	assert.Contains(t, text, "he proposal is superseded. It was edited")
}
