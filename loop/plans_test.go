package loop_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// Whether the process that prepared a plan finishes it or another one, what is learned and kept is
// the same. A plan is for its caller, for an hour, and without what Redact takes out.
func TestAnotherProcessFinishesAPlan(t *testing.T) {
	prepared := func() (*workshop, *loop.Agent, loop.Plan) {
		w := newWorkshop(t)
		w.cfg.Redact = func(text string) string { return strings.ReplaceAll(text, "47x11", "[pin]") }
		first, other := w.again(), w.again()
		p, err := first.Prepare(ctx, loop.Event{ID: "q", Text: "The mail is late, pin 47x11",
			Session: "u", Person: "cid", Domain: "d", Task: "mail",
			History: []loop.Turn{{Role: "user", Text: "47x11"}}})
		require.NoError(t, err)
		require.NotEmpty(t, p.Notes)
		require.NotNil(t, p.Choice)
		require.NoError(t, first.KeepPlan(ctx, "kim", p))
		return w, other, p
	}
	reload := func(w *workshop) string { // all that the store has is JSON now, as in a database
		var all bytes.Buffer
		require.NoError(t, w.kept.Dump(ctx, &all))
		text := all.String()
		var err error
		w.kept, err = memstore.New(memstore.Config{Now: w.clock.Now})
		require.NoError(t, err)
		require.NoError(t, w.kept.Load(ctx, &all))
		w.fails.Store = w.kept
		return text
	}
	finish := func(w *workshop, a *loop.Agent, p loop.Plan) string {
		answer, err := a.Answered(ctx, p, loop.Reply{Text: "Wait.", Latency: time.Second})
		require.NoError(t, err)
		assert.Equal(t, "Wait.", answer.Text)
		require.NoError(t, a.React(ctx, "q", loop.Reaction{Person: "cid", Value: 1}))
		return w.state()
	}
	w, _, p := prepared()
	want := finish(w, w.again(), p)

	w, other, p := prepared()
	text := reload(w)
	assert.NotContains(t, text, "47x11")
	assert.Contains(t, text, "[pin]")
	kept, err := other.KeptPlan(ctx, "kim", "q")
	require.NoError(t, err)
	assert.Equal(t, p.Arm.ID, kept.Arm.ID)
	assert.Equal(t, p.Choice.ID, kept.Choice.ID)
	assert.Equal(t, want, finish(w, other, kept))
	assert.Equal(t, want, finish(w, other, kept), "the answer came again")

	for _, of := range [][2]string{{"lee", "q"}, {"kim", "none"}, {"", "q"}} {
		_, err := other.KeptPlan(ctx, of[0], of[1])
		assert.ErrorIs(t, err, heed.ErrNotFound, of)
	}
	w.clock.Advance(time.Hour)
	_, err = other.KeptPlan(ctx, "kim", "q")
	assert.ErrorIs(t, err, heed.ErrNotFound)

	w, other, _ = prepared()
	require.NoError(t, store.Run(ctx, w.kept, store.Job{Forget: []string{"cid"}}))
	_, err = other.KeptPlan(ctx, "kim", "q")
	assert.ErrorIs(t, err, heed.ErrNotFound, "the person was forgotten")
}

// While the store is away, only the process that kept a plan has it, and only for its caller. Later
// its event is prepared again.
func TestAPlanDuringAnOutage(t *testing.T) {
	w := newWorkshop(t)
	w.cfg.RequireStore = false
	w.cfg.Redact = func(text string) string { return strings.ReplaceAll(text, "47x11", "[pin]") }
	agent, other := w.again(), w.again()
	_, err := agent.Prepare(ctx, loop.Event{ID: "before", Text: "The mail is late"})
	require.NoError(t, err)
	w.fails.SetAway(true)
	event := loop.Event{ID: "e", Text: "The mail is late, pin 47x11",
		History: []loop.Turn{{Role: "user", Text: "47x11"}}}
	p, err := agent.Prepare(ctx, event)
	require.NoError(t, err)
	require.NoError(t, agent.KeepPlan(ctx, "kim", p))
	same, err := agent.KeptPlan(ctx, "kim", "e")
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(p.Prompt, "47x11", "[pin]"), same.Prompt)
	assert.NotContains(t, fmt.Sprintf("%+v", same), "47x11")
	require.NotEmpty(t, same.Notes)
	same.Notes[0].Text = "changed"
	again, err := agent.KeptPlan(ctx, "kim", "e")
	require.NoError(t, err)
	assert.Equal(t, p.Notes, again.Notes, "each caller has a copy")
	_, err = agent.KeptPlan(ctx, "lee", "e")
	require.ErrorIs(t, err, heed.ErrUnavailable)
	_, err = other.KeptPlan(ctx, "kim", "e")
	require.ErrorIs(t, err, heed.ErrUnavailable)
	w.fails.SetAway(false)
	_, err = agent.KeptPlan(ctx, "kim", "e")
	require.ErrorIs(t, err, heed.ErrNotFound)
	w.fails.SetAway(true)
	w.clock.Advance(time.Hour)
	_, err = agent.KeptPlan(ctx, "kim", "e")
	require.ErrorIs(t, err, heed.ErrUnavailable, "its hour is over")
	w.fails.SetAway(false)
	p, err = agent.Prepare(ctx, event)
	require.NoError(t, err)
	answer, err := agent.Answered(ctx, p, loop.Reply{Text: "Wait."})
	require.NoError(t, err)
	assert.True(t, answer.Degraded.Recorded())
	require.NoError(t, agent.React(ctx, "e", loop.Reaction{Person: "cid", Value: 1}))
}

// What a process keeps for outages does not grow with the histories of the plans.
func TestKeptPlansAreSmall(t *testing.T) {
	w := newWorkshop(t)
	a := w.again()
	keep := func(i int) {
		p, err := a.Prepare(ctx, loop.Event{ID: fmt.Sprint(i), Text: "The mail is late",
			Vector:  make([]float32, 1<<15),
			History: []loop.Turn{{Role: "user", Text: strings.Repeat("x", 1<<18)}}})
		require.NoError(t, err)
		require.NoError(t, a.KeepPlan(ctx, "kim", p))
	}
	keep(0)
	before := inUse()
	for i := range 100 {
		keep(1 + i)
	}
	assert.Less(t, inUse(), before+5<<20, "of 38 MB")
	runtime.KeepAlive(a)
}

// A plan that Prepare did not make is refused, as Answered refuses it.
func TestAPlanOfNoEventIsNotKept(t *testing.T) {
	agent, _ := looptest.New(t, loop.Config{})
	err := agent.KeepPlan(ctx, "kim", loop.Plan{})
	var fault *heed.InputError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "Plan.Event.ID", fault.Field)
}

// A plan keeps its arm as it was if the agent that finds it has no such arm.
func TestAKeptPlanOfAnArmThatIsGone(t *testing.T) {
	w := newWorld(t, loop.Config{Arms: []loop.Arm{{ID: "a", System: "Be brief.", InputPrice: 3}}})
	p, err := w.Prepare(ctx, loop.Event{ID: "e", Text: "Why?"})
	require.NoError(t, err)
	require.NoError(t, w.KeepPlan(ctx, "kim", p))
	for _, arms := range [][]loop.Arm{{{ID: "b"}}, {{ID: "a", System: "Be long."}}} {
		w.cfg.Arms = arms
		found, err := w.again().KeptPlan(ctx, "kim", "e")
		require.NoError(t, err)
		want := "Be brief."
		if arms[0].ID == "a" {
			want = "Be long."
		}
		assert.Equal(t, want, found.Arm.System)
	}
	p.Result.Threshold = math.NaN()
	require.ErrorContains(t, w.KeepPlan(ctx, "kim", p), "NaN")
}
