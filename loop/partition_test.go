package loop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy/partition"
)

var twoArms = []loop.Arm{{ID: "brief"}, {ID: "thorough"}}

func TestTheItemIsTheCellOfTheText(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: twoArms,
		Choosing: loop.Choosing{ByText: true}})
	item := func(e loop.Event) string { return w.answer(e).Plan.Choice.Item }
	see := func(w *world) {
		for _, text := range kinds(50) {
			w.answer(loop.Event{Text: text})
		}
		require.NoError(t, w.Sweep(ctx, time.Time{}))
	}
	assert.Empty(t, item(loop.Event{Text: "first"}), "there are no cells yet")
	see(w)
	assert.True(t, strings.HasPrefix(item(loop.Event{Text: kinds(1)[0]}), "partition:"))
	assert.Equal(t, "customer 7", item(loop.Event{Text: "second", Item: "customer 7"}),
		"an item of the host's goes first")
	before := item(loop.Event{Text: kinds(1)[0]})
	again, err := w.again().Answer(ctx, loop.Event{Text: kinds(1)[0]})
	require.NoError(t, err)
	assert.Equal(t, before, again.Plan.Choice.Item, "it is kept in the store")

	named := newWorld(t, loop.Config{Name: "desk", Arms: twoArms,
		Choosing: loop.Choosing{ByText: true}})
	see(named)
	assert.True(t, strings.HasPrefix(named.answer(loop.Event{Text: "x"}).Plan.Choice.Item,
		"desk.partition:"))

	notes := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "list", ForNotes: true}},
		Choosing: loop.Choosing{ByText: true}})
	see(notes)
	_, err = notes.Teach(ctx, loop.Lessons{Notes: []loop.Note{{ID: "logs", Text: full}}})
	require.NoError(t, err)
	assert.Equal(t, "logs", notes.answer(loop.Event{Text: full}).Plan.Choice.Item,
		"arms about notes go by the note")
}

// kinds are texts of three kinds.
func kinds(n int) (texts []string) {
	for i := range n {
		texts = append(texts, []string{
			fmt.Sprintf("What is the phone number of customer %d?", i),
			fmt.Sprintf("func f%d() { return x[%d]; }", i, i),
			fmt.Sprintf("Bitte schreiben Sie dem Kunden eine freundliche Antwort auf seine Beschwerde "+
				"Nummer %d, in der wir uns entschuldigen.", i),
		}[i%3])
	}
	return texts
}

// The time of the budget is the bubble's, because a busy machine may take longer than 50 ms.
func TestTheEmbedderOfThePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		var late atomic.Bool
		var fails error
		embed := heed.Embedder(func(ctx context.Context, texts []string) ([][]float32, error) {
			asked.Add(int64(len(texts)))
			if late.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			vectors, err := partition.Form(ctx, texts)
			return vectors, errors.Join(err, fails)
		})
		w := newWorld(t, loop.Config{Arms: twoArms,
			Tuning:   loop.Tuning{Similarity: embed},
			Choosing: loop.Choosing{ByText: true},
			Budget:   loop.Budget{Time: 50 * time.Millisecond}})
		w.answer(loop.Event{Text: "the disk"})
		assert.Equal(t, int64(1), asked.Load(), "it is that of the similarity")

		late.Store(true)
		answer := w.answer(loop.Event{Text: "another disk"})
		assert.NotEmpty(t, answer.Text, "the model answers all the same")
		assert.Contains(t, answer.Plan.LeftOut, loop.LeftOut{What: "item", Why: "time"})

		late.Store(false)
		fails = errors.New("no embeddings today")
		_, err := w.Answer(ctx, loop.Event{Text: "a third disk"})
		assert.ErrorIs(t, err, fails)
	})
}

// A frozen agent learns no cells.
func TestAFrozenAgentLeavesItsCells(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: twoArms,
		Choosing: loop.Choosing{ByText: true}})
	require.NoError(t, w.Freeze(ctx, true))
	for _, text := range kinds(50) {
		w.answer(loop.Event{Text: text})
	}
	item := func() string { return w.answer(loop.Event{Text: kinds(1)[0]}).Plan.Choice.Item }
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Empty(t, item())
	require.NoError(t, w.Freeze(ctx, false))
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.NotEmpty(t, item())
}

// The arm of a past answer is credited for the cell of the text, as the arm of an own answer is.
func TestAPastAnswerIsInTheCellOfItsText(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: twoArms, Choosing: loop.Choosing{ByText: true}})
	for _, text := range kinds(50) {
		w.answer(loop.Event{Text: text})
	}
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	text := kinds(1)[0]
	want := w.answer(loop.Event{Text: text}).Plan.Choice.Item
	_, err := w.Import(ctx, each([]loop.Past{{
		Event: loop.Event{ID: "past", Text: text}, Text: "So.", Arm: "brief",
	}}), "", "")
	require.NoError(t, err)
	account, err := w.Explain(ctx, "past")
	require.NoError(t, err)
	assert.Equal(t, want, account.Choice.Item)
	assert.NotEmpty(t, want)
}
