package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

// Only the beginning of a long text is compared with others, so that the time it takes is bounded.
func TestALongTextIsComparedByItsBeginning(t *testing.T) {
	var longest atomic.Int64
	letters := measuring(func(one string) { longest.Store(max(longest.Load(), int64(len(one)))) })
	w := newWorld(t, loop.Config{Tuning: loop.Tuning{
		Similarity: letters}, Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
		Notes:      []loop.Note{{ID: "n", Text: "A note."}},
	}})
	text := strings.Repeat("The disk ist voll. É", 30_000) // 600 kB
	answer := w.answer(loop.Event{Text: text, Task: "t"})
	assert.Equal(t, text, answer.Plan.Event.Text)
	assert.LessOrEqual(t, longest.Load(), int64(8<<10))
	assert.NotZero(t, longest.Load())
}

// An event without a text gets the answer that it had, and no new one.
func TestARepetitionNeedsNoText(t *testing.T) {
	w := newWorld(t, loop.Config{})
	given := w.answer(loop.Event{ID: "e", Text: "Why?"})
	again := w.answer(loop.Event{ID: "e"})
	assert.Equal(t, given.Text, again.Text)
	for _, id := range []string{"", "other"} {
		var input *heed.InputError
		require.ErrorAs(t, second(w.Answer(ctx, loop.Event{ID: id, Text: " \n"})), &input)
		assert.Equal(t, "Text", input.Field)
	}
}

// A text that is too long is listed as left out, also if nothing is left of it.
func TestATextThatIsTooLongIsListed(t *testing.T) {
	w := newWorld(t, loop.Config{})
	for text, cut := range map[string]bool{
		strings.Repeat("ä", 32_000):               false,
		strings.Repeat("ä", 32_001):               true,
		strings.Repeat("\n", 70_000) + "And now?": true,
		strings.Repeat(" ", 70_000) + "And now?":  true,
	} {
		p, err := w.Prepare(ctx, loop.Event{Text: text})
		require.NoError(t, err)
		left := slices.Contains(p.LeftOut, loop.LeftOut{What: "event", Why: "characters"})
		assert.Equal(t, cut, left, "%.20q", text)
	}
}

// BenchmarkAVeryLongText answers a text of megabytes, and one that the model gets whole.
func BenchmarkAVeryLongText(b *testing.B) {
	for _, n := range []int{6000, 400_000} {
		b.Run(fmt.Sprint("characters=", 10*n), func(b *testing.B) {
			agent, err := loop.New(ctx, loop.Config{
				Store: &memstore.Store{}, Model: &mouth{says: "So."},
			})
			require.NoError(b, err)
			text := strings.Repeat("ein Wört [", n)
			for b.Loop() {
				_, err := agent.Answer(ctx, loop.Event{Text: text, Session: "s"})
				require.NoError(b, err)
			}
		})
	}
}

// measuring is a similarity that tells of the texts.
type measuring func(one string)

func (m measuring) Similar(_ context.Context, one string, others []string) ([]float64, error) {
	m(one)
	return make([]float64, len(others)), nil
}

// A slow store gives each caller the time to be overtaken.
type slow struct{ store.Store }

func (s slow) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	time.Sleep(time.Millisecond)
	return s.Store.Commit(ctx, batches...)
}

func TestManySpeakOfOneAnswerAtOnce(t *testing.T) {
	w := newWorld(t, loop.Config{
		Store: slow{new(memstore.Store)}, Arms: []loop.Arm{{ID: "only"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	})
	yes := true
	for name, addStatement := range map[string]func(id string, i int) error{
		"undo": func(id string, i int) error { return w.Undo(ctx, id, fmt.Sprint(i)) },
		"outcome": func(id string, i int) error {
			return w.Outcome(ctx, id, loop.Outcome{Success: &yes, Source: fmt.Sprint(i)})
		},
		"react": func(id string, i int) error {
			return w.React(ctx, id,
				loop.Reaction{Person: fmt.Sprint(i), Value: 1})
		},
	} {
		for _, text := range []string{full, "Why?"} {
			id := w.answer(loop.Event{Text: text}).ID
			var all sync.WaitGroup
			for i := range 64 {
				all.Go(func() { assert.NoError(t, addStatement(id, i), name) })
			}
			all.Wait()
		}
	}
}

// No record of the store has the text that must not be kept.
func TestRedactHoldsForAllThatIsStored(t *testing.T) {
	const secret, failure = "hunter2", "password hunter2 refused"
	redact := func(text string) string { return strings.ReplaceAll(text, secret, "***") }
	w := newWorld(t, loop.Config{Redact: redact, Tuning: loop.Tuning{Extract: []string{"*"}}})
	w.model.says = "I split the work by feature, with hunter2."
	answer := w.answer(loop.Event{ID: "e", Text: "Log in with hunter2.", Task: "t",
		Person: "ann"})
	assert.Contains(t, answer.Text, secret, "the person sees it")
	no := false
	_, err := w.Tool(ctx, "e", loop.ToolResult{Name: "shell", Err: errors.New(failure)})
	require.NoError(t, err)
	require.NoError(t, w.Outcome(ctx, "e", loop.Outcome{Success: &no, Failure: "no hunter2"}))
	_, err = w.Correct(ctx, "e", loop.Correction{Reviewer: "kim",
		Text: "Never say hunter2 to anybody.", Comment: "hunter2!"})
	require.NoError(t, err)
	require.NoError(t, w.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1}))
	account, err := w.Explain(ctx, "e")
	require.NoError(t, err)
	assert.Equal(t, "I split the work by feature, with ***.", account.Text)
	again := w.answer(loop.Event{ID: "e", Text: "Log in with hunter2.", Task: "t", Person: "ann"})
	assert.Equal(t, account.Text, again.Text)
	var dump strings.Builder
	require.NoError(t, w.store.(*memstore.Store).Dump(ctx, &dump))
	assert.Contains(t, dump.String(), "password *** refused")
	assert.NotContains(t, dump.String(), secret)
}

// Nothing is left of a text that is redacted as a whole, nor is the original kept in its place.
func TestRedactToNothing(t *testing.T) {
	w := newWorld(t, loop.Config{Redact: func(string) string { return "" }})
	w.answer(loop.Event{ID: "e", Text: "hunter2", Task: "t"})
	_, err := w.Tool(ctx, "e", loop.ToolResult{Name: "shell", Err: errors.New("hunter2")})
	require.NoError(t, err)
	var dump strings.Builder
	require.NoError(t, w.store.(*memstore.Store).Dump(ctx, &dump))
	assert.NotContains(t, dump.String(), "hunter2")
}

// A dying store fails each commit after the n-th.
type dying struct {
	store.Store
	left atomic.Int64
}

func (d *dying) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if d.left.Add(-1) < 0 {
		return nil, errors.New("the process is gone")
	}
	return d.Store.Commit(ctx, batches...)
}

// Somebody praised the answer, or said nothing for a while, and then takes it back in words.
// Wherever the process ends, the arm learns both or none.
func TestAnUndoInWordsIsNotLostForTheArm(t *testing.T) {
	for n := range int64(8) {
		commits, praised := n/2, n%2 == 0
		t.Run(fmt.Sprint(commits, praised), func(t *testing.T) {
			c := &clock{now: start}
			kept, err := memstore.New(memstore.Config{Now: c.Now})
			require.NoError(t, err)
			dies := &dying{Store: kept}
			dies.left.Store(1 << 40)
			w := newWorld(t, loop.Config{Store: dies, Arms: []loop.Arm{{ID: "only"}}})
			w.clock, w.cfg.Testing.Now = c, c.Now
			w.Agent = w.again()
			id := w.answer(loop.Event{Text: "Why?", Session: "s", Person: "ann"}).ID
			if praised {
				require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "bob", Value: 1}))
			}
			w.clock.Advance(time.Minute)
			require.NoError(t, w.Sweep(ctx, time.Time{})) // silence is heard
			undo := learning.Message{ID: "m", Session: "s", Person: "ann", Text: "Undo that."}
			dies.left.Store(commits)
			_, _ = w.Hear(ctx, undo)
			dies.left.Store(1 << 40)
			agent := w.again()
			if _, err := agent.Hear(ctx, undo); err != nil { // the queue delivers it again
				t.Fatal(err)
			}
			require.NoError(t, agent.Sweep(ctx, time.Time{}))
			d := distribution(t, agent.Strategy(), "")
			assert.Less(t, d.Arms[0].Mean, 0.5, "the undo goes before the praise and the silence")
			assert.EqualValues(t, 1, d.Outcomes)
		})
	}
}

// A second plan for a message that took an answer back knows it: Prepare failed, or another process
// prepares it.
func TestASecondPlanKnowsWhatWasTakenBack(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	first := w.answer(loop.Event{Text: "Why?", Session: "s", Person: "ann"}).ID
	w.clock.Advance(time.Second)
	undo := loop.Event{ID: "m", Text: "Undo that.", Session: "s", Person: "ann"}
	plan, err := w.Prepare(ctx, undo)
	require.NoError(t, err)
	assert.Equal(t, []string{first}, plan.Undone)
	other := w.again()
	plan, err = other.Prepare(ctx, undo)
	require.NoError(t, err)
	assert.Equal(t, []string{first}, plan.Undone)
	_, err = other.Answered(ctx, plan, loop.Reply{Text: "It is undone."})
	require.NoError(t, err)
	w.clock.Advance(time.Hour)
	require.NoError(t, other.Sweep(ctx, time.Time{}))
	account, err := other.Explain(ctx, "m")
	require.NoError(t, err)
	assert.False(t, account.Known, "it earns nothing")
}

// An id or a task that reactions, an undo or an outcome would refuse later is refused at once. The
// longest ones go all the way.
func TestNamesAreRefusedAtOnce(t *testing.T) {
	yes := true
	longest := loop.Event{ID: strings.Repeat("i", 900), Text: "Why?", Task: strings.Repeat("t", 512),
		Domain: "d", Item: "i", Person: "ann"}
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "only"}}})
	id := w.answer(longest).ID
	require.NoError(t, w.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
	require.NoError(t, w.Outcome(ctx, id, loop.Outcome{Success: &yes}))
	require.NoError(t, w.Undo(ctx, id, "ann"))
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Len(t, w.outcomes(), 1)
	id = w.answer(loop.Event{ID: strings.Repeat("€", 300), Text: "Why?"}).ID // its id is its task
	require.NoError(t, second(w.Tool(ctx, id, loop.ToolResult{Name: "sh", Err: errors.New("no")})))
	failed, err := w.Patterns().Errors(ctx, patterns.HistoryQuery{})
	require.NoError(t, err)
	assert.Len(t, failed.Errors, 1)
	for field, e := range map[string]loop.Event{
		"ID": {ID: longest.ID + "i", Text: "Why?"}, "Task": {Text: "Why?", Task: longest.Task + "t"},
	} {
		_, err := w.Answer(ctx, e)
		assertField(t, field, err)
	}
	named := newWorld(t, loop.Config{Name: strings.Repeat("n", 240), Arms: []loop.Arm{{ID: "only"}}})
	_, err = named.Answer(ctx, longest)
	assertField(t, "ID", err)
	longest.ID = longest.ID[:700]
	id = named.answer(longest).ID
	require.NoError(t, named.React(ctx, id, loop.Reaction{Person: "ann", Value: 1}))
	require.NoError(t, named.Undo(ctx, id, "ann"))
}

// The message about an id that is too long names the limit of ids, because other names may be
// longer.
func TestTheLimitOfAnID(t *testing.T) {
	w := newWorld(t, loop.Config{})
	for _, n := range []int{901, 5 << 20} {
		_, err := w.Answer(ctx, loop.Event{ID: strings.Repeat("i", n), Text: "Why?"})
		assert.EqualError(t, err, fmt.Sprintf("loop: answer: ID: is %d bytes long, may be 900", n))
	}
}

// A model can't answer nothing. A framework may ask about more than the text, so Prepare plans.
func TestAnEventWithoutText(t *testing.T) {
	w := newWorld(t, loop.Config{})
	rule := approved(t, w.Feedback(), "Name the server.")
	for _, text := range []string{"", " \n\t"} {
		_, err := w.Answer(ctx, loop.Event{Text: text})
		assertField(t, "Text", err)
		p, err := w.Prepare(ctx, loop.Event{Text: text})
		require.NoError(t, err)
		assert.Equal(t, []string{rule}, p.Rules)
	}
	assert.Zero(t, w.model.calls())
}

// An event without a session shows how an earlier answer turned out.
func TestAnExpectedOutcomeFromNowhere(t *testing.T) {
	w := newWorld(t, loop.Config{
		Tuning: loop.Tuning{Learning: learning.Config{
			Expectations: []learning.Expectation{{Trigger: "disk", Outcome: "has room again",
				Timeout: time.Hour}}}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)}},
	})
	require.Equal(t, rotate, w.answer(loop.Event{ID: "e", Text: full}).Text)
	before := w.confidence("rotate")
	w.clock.Advance(time.Minute)
	answer := w.answer(loop.Event{Text: "db-1 has room again"})
	assert.Len(t, answer.Plan.Heard, 1)
	assert.Greater(t, w.confidence("rotate"), before)
}

// A prompt shows three notes, and as many as the host wants.
func TestAPromptShowsThreeNotes(t *testing.T) {
	for most, want := range map[int]int{0: 3, 1: 1, 5: 5} {
		var notes []loop.Note
		for n := range 8 {
			notes = append(notes, loop.Note{ID: fmt.Sprint(n), Topic: full, Text: fmt.Sprint("room ", n)})
		}
		w := newWorld(t, loop.Config{
			Budget: loop.Budget{Notes: most}, Lessons: loop.Lessons{Notes: notes},
		})
		p, err := w.Prepare(ctx, loop.Event{Text: full})
		require.NoError(t, err)
		assert.Len(t, p.Notes, want)
	}
}

// A text that could not be redacted is not stored, whichever call of Redact panics, and the caller
// gets the panic as an error.
func TestTheNthRedactPanics(t *testing.T) {
	no := false
	for name, call := range map[string]func(w *world) error{
		"Answer": func(w *world) error {
			return second(w.Answer(ctx, loop.Event{ID: "new", Text: "hunter2"}))
		},
		"Tool": func(w *world) error {
			return second(w.Tool(ctx, "e", loop.ToolResult{Name: "sh", Err: errors.New("hunter2")}))
		},
		"Outcome": func(w *world) error {
			return w.Outcome(ctx, "e", loop.Outcome{Success: &no, Failure: "hunter2"})
		},
		"Correct": func(w *world) error {
			return second(w.Correct(ctx, "e", loop.Correction{Reviewer: "kim", Text: "Say no hunter2."}))
		},
		"KeepPlan": func(w *world) error {
			p, err := w.Prepare(ctx, loop.Event{ID: "p", Text: "hunter2"})
			require.NoError(t, err)
			return w.KeepPlan(ctx, "ann", p)
		},
		"Import": func(w *world) error {
			return second(w.Import(ctx, each([]loop.Past{{
				Event: loop.Event{ID: "past", Text: "hunter2"}, Text: "hunter2",
			}}), "", ""))
		},
	} {
		for n := 1; ; n++ {
			left := -1
			w := newWorld(t, loop.Config{Redact: func(text string) string {
				if left--; left == 0 {
					panic("no")
				}
				return strings.ReplaceAll(text, "hunter2", "***")
			}})
			w.answer(loop.Event{ID: "e", Text: "Why?", Task: "t"})
			left = n
			err := call(w)
			var dump strings.Builder
			require.NoError(t, w.store.(*memstore.Store).Dump(ctx, &dump))
			assert.NotContains(t, dump.String(), "hunter2", "%s, text %d", name, n)
			if left > 0 {
				assert.NoError(t, err, name)
				assert.Greater(t, n, 1, name)
				break
			}
			assert.ErrorAs(t, err, new(*heed.PanicError), "%s, text %d", name, n)
		}
	}
}
