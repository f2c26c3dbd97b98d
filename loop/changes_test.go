package loop_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// audit returns what the agent has recorded of its own, the oldest first.
func (w *world) audit() (all []string) {
	w.t.Helper()
	for e, err := range store.AuditEntries(ctx, w.store, store.Query{}) {
		require.NoError(w.t, err)
		if !strings.HasPrefix(e.Action, "loop.") {
			continue
		}
		assert.Empty(w.t, e.Actor)
		before, is := e.Details["before"]
		assert.Equal(w.t, before != "", is)
		all = append(all, fmt.Sprintf("%s %s %s<%s", e.Action, e.Subject, e.Details["arm"],
			e.Details["before"]))
	}
	slices.Reverse(all)
	return all
}

// A sweep records which arm leads once that is clear, and when another one takes over. An agent of
// another process does not record it again.
func TestASweepRecordsWhichArmTakesOver(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "long"}, {ID: "short"}}})
	judge := func(good string, n int) {
		for i := range n {
			person := fmt.Sprint("p", i)
			a := w.answer(loop.Event{Text: "The mail is late", Domain: "mail", Person: person})
			thumb := loop.Reaction{Person: person, Value: -1}
			if a.Plan.Arm.ID == good {
				thumb.Value = 1
			}
			require.NoError(t, w.React(ctx, a.ID, thumb))
			w.clock.Advance(time.Minute)
		}
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		require.NoError(t, w.again().Sweep(ctx, time.Time{}))
	}
	judge("long", 2)
	assert.Empty(t, w.audit(), "nothing is clear yet")
	judge("long", 30)
	judge("long", 10)
	assert.Equal(t, []string{"loop.leads mail/ long<"}, w.audit())
	judge("short", 150)
	assert.Contains(t, w.audit(), "loop.leads mail/ short<long")
}

// A sweep records when a heuristic begins to answer by itself, and when it stops.
func TestASweepRecordsWhichHeuristicsAnswer(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	judge := func(value float64, n int) {
		for i := range n {
			a := w.answer(loop.Event{Text: full, Person: fmt.Sprint("p", i)})
			thumb := loop.Reaction{Person: fmt.Sprint("p", i), Value: value}
			require.NoError(t, w.React(ctx, a.ID, thumb))
		}
		require.NoError(t, w.Sweep(ctx, time.Time{}))
	}
	judge(1, 1)
	assert.Equal(t, []string{"loop.answers rotate <"}, w.audit())
	judge(1, 1)
	judge(-1, 4)
	assert.Equal(t, []string{"loop.answers rotate <", "loop.stops rotate <"}, w.audit())
	require.Less(t, w.confidence("rotate"), 0.7)
}

// What a sweep could not record, because one of its calls failed, the next one records.
func TestASweepThatFailedLosesNoChange(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at, failed := 1, true; failed; at++ {
			sea := &storetest.Failing{Store: new(memstore.Store)}
			w := newWorld(t, loop.Config{Store: sea, Lessons: loop.Lessons{
				Heuristics: []learning.Heuristic{trusted(rotating)},
			}})
			a := w.answer(loop.Event{Text: full, Person: "ann"})
			require.NoError(t, w.React(ctx, a.ID, loop.Reaction{Person: "ann", Value: 1}))
			sea.Fail(at, after)
			_ = w.Sweep(ctx, time.Time{})
			failed = sea.Failed()
			sea.Fail(0, false)
			require.NoError(t, w.Sweep(ctx, time.Time{}))
			assert.Contains(t, w.audit(), "loop.answers rotate <", at)
		}
	}
}

// A damagedLog has an audit log that can't be read, on a disk that is full.
type damagedLog struct{ fullDisk }

func (l *damagedLog) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if l.full && q.Kind == store.Audit.Name {
			yield(store.Record{}, heed.ErrDamaged)
			return
		}
		l.Store.Find(ctx, q)(yield)
	}
}

// An entry that is damaged takes nothing from the next sweep of what else failed.
func TestASweepWithDamage(t *testing.T) {
	sea := &storetest.Failing{Store: new(memstore.Store)}
	disk := &damagedLog{fullDisk{Store: sea}}
	w := newWorld(t, loop.Config{Store: disk, Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	sea.SetAway(true)
	require.Error(t, w.React(ctx, "none", loop.Reaction{Value: -1}))
	w.clock.Advance(time.Minute)
	sea.SetAway(false)
	a := w.answer(loop.Event{Text: full, Person: "ann"})
	require.NoError(t, w.React(ctx, a.ID, loop.Reaction{Person: "ann", Value: 1}))
	disk.full = true
	err := w.Sweep(ctx, time.Time{})
	require.ErrorIs(t, err, heed.ErrDamaged)
	require.ErrorIs(t, err, heed.ErrUnavailable)
	disk.full = false
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Contains(t, w.audit(), "loop.outage store <")
}

// spoil writes a record that can't be decoded in the place of another.
func (w *world) spoil(ref store.Ref) {
	w.t.Helper()
	for r, err := range w.store.Find(ctx, store.Query{Kind: ref.Kind}) {
		require.NoError(w.t, err)
		if r.ID == ref.ID || ref.ID == "" {
			r.Body = store.Raw([]byte("[7]"))
			_, err = w.store.Commit(ctx, store.Batch{Records: []store.Record{r}})
			require.NoError(w.t, err)
			return
		}
	}
	w.t.Fatal("there is no ", ref)
}

// A damaged heuristic does not keep what became of others out of the audit log.
func TestASweepRecordsBehindADamagedHeuristic(t *testing.T) {
	mail := trusted(learning.Heuristic{ID: "a", Condition: "The mail is late", Action: "Wait."})
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating), mail},
	}})
	for _, text := range []string{full, mail.Condition} {
		a := w.answer(loop.Event{Text: text, Person: "ann"})
		require.NoError(t, w.React(ctx, a.ID, loop.Reaction{Person: "ann", Value: 1}))
	}
	require.Greater(t, w.confidence("a"), 0.8, "it has answered")
	w.spoil(store.Ref{Kind: "learning.heuristic", ID: "a"})
	require.ErrorIs(t, w.Sweep(ctx, time.Time{}), heed.ErrDamaged)
	assert.Equal(t, []string{"loop.answers rotate <"}, w.audit())
}

// A sweep records an outage of the store, once it is over.
func TestASweepRecordsOutages(t *testing.T) {
	w := newIsland(t, loop.Config{})
	w.answer(loop.Event{Text: "The mail is late"})
	w.sea.SetAway(true)
	require.Error(t, w.React(ctx, "none", loop.Reaction{Value: -1}))
	require.Error(t, w.Sweep(ctx, time.Time{}))
	w.clock.Advance(time.Minute)
	w.sea.SetAway(false)
	for range 3 {
		require.NoError(t, w.Sweep(ctx, time.Time{}))
	}
	assert.Equal(t, []string{"loop.outage store <", "loop.recovery store <"}, w.audit())
}

// An import records the outages before it as a sweep does, and reports if it can't.
func TestAnOutageThatCannotBeRecorded(t *testing.T) {
	w := newIsland(t, loop.Config{})
	for at := 1; ; at++ {
		w.sea.SetAway(true)
		require.Error(t, w.React(ctx, "none", loop.Reaction{Value: -1}))
		w.clock.Advance(time.Minute)
		w.sea.SetAway(false)
		w.answer(loop.Event{Text: "The mail is late"}) // which ends the outage
		w.sea.Fail(at, false)
		_, err := w.Import(ctx, each([]loop.Past{{
			Event: loop.Event{ID: fmt.Sprint("past ", at), Text: "Why?", At: start}, Text: "So.",
			Reactions: []loop.Reaction{{Person: "ann", Value: 1}},
		}}), "", "")
		failed := w.sea.Failed()
		w.sea.Fail(0, false)
		if !failed {
			require.NoError(t, err)
			break
		}
		require.ErrorIs(t, err, storetest.ErrFailed, "call %d", at)
	}
	assert.Contains(t, w.audit(), "loop.outage store <")
}

// Each outage is recorded once, also one that ended, by a clock that was put back, before another.
func TestOutagesAreRecordedAfterAClockWasPutBack(t *testing.T) {
	w := newIsland(t, loop.Config{})
	w.answer(loop.Event{Text: "The mail is late"})
	for i := range 2 {
		w.sea.SetAway(true)
		require.Error(t, w.React(ctx, "none", loop.Reaction{Value: -1}))
		w.clock.Advance(time.Minute)
		w.sea.SetAway(false)
		for range 2 {
			require.NoError(t, w.Sweep(ctx, time.Time{}))
		}
		assert.Len(t, w.audit(), 2*(i+1))
		w.clock.Advance(-time.Hour)
	}
}

// An outage that a sweep can't record is recorded by the next one.
func TestASweepThatFailsRecordsOutagesLater(t *testing.T) {
	failEach(t, func(t *testing.T, at int, after bool) bool {
		w := newIsland(t, loop.Config{})
		w.answer(loop.Event{Text: "The mail is late"})
		w.sea.SetAway(true)
		require.Error(t, w.React(ctx, "none", loop.Reaction{Value: -1}))
		w.sea.SetAway(false)
		w.clock.Advance(time.Second)
		w.answer(loop.Event{Text: "The mail is late"}) // which ends the outage
		w.sea.Fail(at, after)
		err := w.Sweep(ctx, time.Time{})
		failed := w.sea.Failed()
		w.sea.Fail(0, false)
		if failed && !after {
			require.ErrorIs(t, err, storetest.ErrFailed, "call %d", at)
		}
		w.clock.Advance(time.Second)
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		assert.Subset(t, w.audit(), []string{"loop.outage store <", "loop.recovery store <"})
		return failed
	})
}

// An audit entry of something else about the same subject does not hide the latest turn.
func TestATurnIsRecordedOnceAmongOtherEntries(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	for n := range 3 {
		a := w.answer(loop.Event{Text: full, Person: "ann"})
		require.NoError(t, w.React(ctx, a.ID, loop.Reaction{Person: "ann", Value: 1}))
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		w.clock.Advance(time.Minute)
		for _, e := range []store.AuditEntry{
			{Action: "other.thing", Subject: "rotate"}, {Action: "loop.stops", Subject: "ROTATE"},
		} {
			e.ID, e.At = fmt.Sprint(e.Action, n), w.clock.Now()
			_, err := w.store.Commit(ctx, store.Batch{Records: []store.Record{e.Record()}})
			require.NoError(t, err)
		}
		turns := 0
		for e, err := range store.AuditEntries(ctx, w.store, store.Query{}) {
			require.NoError(t, err)
			if e.Action == "loop.answers" {
				turns++
			}
		}
		assert.Equal(t, 1, turns)
	}
}

// Each turn of a heuristic is compared with the latest one, and not with the first.
func TestAHeuristicAnswersAgain(t *testing.T) {
	w := newWorld(t, loop.Config{Lessons: loop.Lessons{
		Heuristics: []learning.Heuristic{trusted(rotating)},
	}})
	for person := range 5 {
		w.answer(loop.Event{ID: fmt.Sprint(person), Text: full, Person: fmt.Sprint(person)})
	}
	for _, value := range []float64{1, -1, 1, -1} {
		w.clock.Advance(time.Minute)
		for person := range 5 {
			id := fmt.Sprint(person)
			require.NoError(t, w.React(ctx, id, loop.Reaction{Person: id, Value: value}))
		}
		require.NoError(t, w.Sweep(ctx, time.Time{}))
	}
	answers, stops := "loop.answers rotate <", "loop.stops rotate <"
	assert.Equal(t, []string{answers, stops, answers, stops}, w.audit())
}
