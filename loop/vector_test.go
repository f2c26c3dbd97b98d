//go:build !race

// One thing at a time is done here, and the race detector makes it five times slower.

package loop_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/loop"
)

// Events differ by their vectors alone. An agent that gets them learns which arm is right for which
// event, also after a restart, and one without them can't.
func TestAVectorDecides(t *testing.T) {
	vectors := [][]float32{{1, -1}, {1, 1}} // a constant, and what the best arm depends on
	right := func(given bool) (good int) {
		w := newWorld(t, loop.Config{Arms: twoArms})
		for n := range 300 {
			e, wanted := loop.Event{Text: "What now?"}, twoArms[n%2].ID
			if given {
				e.Vector = vectors[n%2]
			}
			answer := w.answer(e)
			value := -1.
			if answer.Plan.Arm.ID == wanted {
				value = 1
				if n >= 200 {
					good++
				}
			}
			require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: value}))
			w.clock.Advance(time.Minute)
		}
		again := w.again() // another process derives the same from the records
		for n := range 20 {
			e := loop.Event{Text: "And now?"}
			if given {
				e.Vector = vectors[n%2]
			}
			answer, err := again.Answer(ctx, e)
			require.NoError(t, err)
			if answer.Plan.Arm.ID == twoArms[n%2].ID {
				good++
			}
		}
		return good
	}
	assert.Greater(t, right(true), 105, "of 120")
	assert.Less(t, right(false), 85, "of 120")
}

func TestAVectorMustBeFinite(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: twoArms})
	for _, x := range []float64{math.NaN(), math.Inf(1)} {
		_, err := w.Answer(ctx, loop.Event{
			ID: fmt.Sprint(x), Text: "Why?", Vector: []float32{1, float32(x)},
		})
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, "Vector", fault.Field)
		_, err = w.Explain(ctx, fmt.Sprint(x))
		assert.ErrorIs(t, err, loop.ErrNoAnswer)
	}
}

// Short questions want one arm, and code another. With a field of the configuration the agent finds
// that out, although it does not know the two kinds. Without the field, it can't.
func TestAnArmIsChosenByTheText(t *testing.T) {
	right := func(byText bool) (right int) {
		w := newWorld(t, loop.Config{Arms: twoArms,
			Choosing: loop.Choosing{ByText: byText, ArmsIgnoreSilence: true}})
		for i := range 300 {
			text, wanted := fmt.Sprintf("What is the phone number of customer %d?", i%7), "brief"
			if i%2 == 1 {
				text, wanted = fmt.Sprintf(
					"func f%d(x []int) {\n\tfor i := range x {\n\t\tx[i] = y[i];\n\t}\n}\n", i%7), "thorough"
			}
			answer := w.answer(loop.Event{Text: text})
			value := -1.
			if answer.Plan.Arm.ID == wanted {
				value = 1
				if i >= 200 {
					right++
				}
			}
			require.NoError(t, w.React(ctx, answer.ID, loop.Reaction{Person: "ann", Value: value}))
			w.clock.Advance(time.Minute)
			if i%20 == 0 {
				require.NoError(t, w.Sweep(ctx, time.Time{}))
			}
		}
		return right
	}
	assert.Greater(t, right(true), 85)
	assert.Less(t, right(false), 70)
}
