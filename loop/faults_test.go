package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// A workshop is an agent over a store that fails when it is told to, with two answers: "h" is a
// heuristic's, "m" the model's.
type workshop struct {
	*world
	kept  *memstore.Store
	fails *storetest.Failing
	plan  loop.Plan // of an event "p" that waits for a model's answer
}

func newWorkshop(t *testing.T) *workshop {
	c := &clock{now: start}
	kept, err := memstore.New(memstore.Config{Now: c.Now})
	require.NoError(t, err)
	w := &workshop{kept: kept, fails: &storetest.Failing{Store: kept}}
	w.world = newWorld(t, loop.Config{
		Store: w.fails, RequireStore: true, Arms: []loop.Arm{{ID: "only"}},
		Lessons: loop.Lessons{Heuristics: []learning.Heuristic{trusted(rotating)},
			Notes: []loop.Note{{ID: "n", Topic: "the mail is late", Text: "See room 3."}}},
	})
	w.clock = c
	w.cfg.Testing.Now = c.Now
	w.Agent = w.again()
	w.answer(loop.Event{ID: "h", Text: full, Session: "s", Person: "ann", Domain: "d", Stream: "x"})
	w.answer(loop.Event{ID: "m", Text: "The mail is late", Session: "t", Person: "bob", Domain: "d",
		Task: "mail"})
	w.plan, err = w.Prepare(ctx, loop.Event{ID: "p", Text: "The mail is late", Session: "u",
		Person: "cid", Domain: "d"})
	require.NoError(t, err)
	w.clock.Advance(time.Second)
	return w
}

// state returns what was learned, as text without what differs from run to run.
func (w *workshop) state() string {
	var all []string
	for _, kind := range []string{"learning.heuristic", "learning.fire", "strategy.arm",
		"patterns.pattern"} {
		for scope, err := range w.kept.Scopes(ctx, kind) {
			require.NoError(w.t, err)
			for p, err := range w.kept.List(ctx, store.CellQuery{Kind: kind, Scope: scope}) {
				require.NoError(w.t, err)
				all = append(all, fmt.Sprintf("%v %q %q %.9f %.9f %d", p.Cell, p.Channel, p.Source,
					p.Tally.Mass, p.Tally.Reward, p.Tally.N()))
			}
		}
	}
	count := make(map[string]int)
	for _, kind := range []string{"loop.answer", "loop.note", "feedback.record", "patterns.outcome",
		"patterns.error", "learning.heuristic"} {
		for r, err := range w.kept.Find(ctx, store.Query{Kind: kind, Oldest: true}) {
			require.NoError(w.t, err)
			count[kind]++
			if kind != "loop.answer" {
				continue
			}
			text, err := r.Body.JSON()
			require.NoError(w.t, err)
			var body map[string]any
			require.NoError(w.t, json.Unmarshal(text, &body))
			delete(body, "choice")
			if reply, ok := body["reply"].(map[string]any); ok {
				delete(reply, "response")
			}
			text, err = json.Marshal(body)
			require.NoError(w.t, err)
			all = append(all, string(text))
		}
	}
	return fmt.Sprint(strings.Join(all, "\n"), count)
}

// A fallible is a call of a method of an agent.
type fallible struct {
	method, how string
	call        func(w *workshop) error
}

func fallibles() []fallible {
	yes, broken := true, errors.New("broken")
	return []fallible{
		{"Answer", "heuristic", func(w *workshop) error {
			return second(w.Answer(ctx, loop.Event{ID: "e", Text: full, Session: "s", Person: "ann",
				Stream: "x"}))
		}},
		{"Answer", "model", func(w *workshop) error {
			return second(w.Answer(ctx, loop.Event{ID: "e", Text: "The mail is late", Session: "t",
				Person: "bob", Task: "mail"}))
		}},
		{"Prepare", "", func(w *workshop) error {
			return second(w.Prepare(ctx,
				loop.Event{ID: "e", Text: full, Session: "s"}))
		}},
		{"Prepare", "repeated", func(w *workshop) error {
			p, err := w.Prepare(ctx, loop.Event{ID: "m", Text: "The mail is late"})
			if err == nil && p.Text != "Look at the logs." {
				return fmt.Errorf("text: %q", p.Text)
			}
			return err
		}},
		{"Hear", "", func(w *workshop) error {
			return second(w.Hear(ctx, learning.Message{ID: "u", Text: "Undo that", Session: "t",
				Person: "bob", At: w.clock.Now()}))
		}},
		{"Answered", "", func(w *workshop) error {
			return second(w.Answered(ctx, w.plan,
				loop.Reply{Text: "Wait."}))
		}},
		{"React", "heuristic", func(w *workshop) error {
			return w.React(ctx, "h", loop.Reaction{Person: "ann", Value: -1, At: w.clock.Now()})
		}},
		{"React", "model", func(w *workshop) error {
			return w.React(ctx, "m", loop.Reaction{Person: "ann", Value: 1, At: w.clock.Now()})
		}},
		{"ReactIn", "", func(w *workshop) error {
			return store.Do(ctx, w.cfg.Store, func(tx *store.Tx) error {
				return w.ReactIn(tx, "m", loop.Reaction{
					Person: "ann", Value: 1, At: w.clock.Now(),
				})
			})
		}},
		{"OutcomeIn", "", func(w *workshop) error {
			return store.Do(ctx, w.cfg.Store, func(tx *store.Tx) error {
				return w.OutcomeIn(tx, "h", loop.Outcome{
					Success: &yes, At: w.clock.Now(),
				})
			})
		}},
		{"Undo", "heuristic", func(w *workshop) error { return w.Undo(ctx, "h", "ann") }},
		{"Undo", "model", func(w *workshop) error { return w.Undo(ctx, "m", "ann") }},
		{"Tool", "", func(w *workshop) error {
			return second(w.Tool(ctx, "m",
				loop.ToolResult{Name: "mail", Err: broken}))
		}},
		{"Tool", "before", func(w *workshop) error {
			return second(w.Tool(ctx, "m", loop.ToolResult{Name: "mail", Input: "x", Before: true}))
		}},
		{"Outcome", "heuristic", func(w *workshop) error {
			return w.Outcome(ctx, "h",
				loop.Outcome{Success: &yes, At: w.clock.Now()})
		}},
		{"Outcome", "task", func(w *workshop) error {
			return w.Outcome(ctx, "m",
				loop.Outcome{Success: &yes, At: w.clock.Now()})
		}},
		{"Attribute", "", func(w *workshop) error {
			return second(w.Attribute(ctx, "m", "", strategy.Outcome{
				Value: 0.5, Confidence: 0.8, At: w.clock.Now(),
			}))
		}},
		{"Undelivered", "", func(w *workshop) error { return w.Undelivered(ctx, "m") }},
		{"KeepPlan", "", func(w *workshop) error { return w.KeepPlan(ctx, "kim", w.plan) }},
		{"EndSession", "", func(w *workshop) error { return w.EndSession(ctx, "t") }},
		{"KeptPlan", "", func(w *workshop) error {
			_, err := w.KeptPlan(ctx, "kim", "p")
			if errors.Is(err, heed.ErrNotFound) {
				return nil
			}
			return err
		}},
		{"Freeze", "", func(w *workshop) error { return w.Freeze(ctx, true) }},
		{"Correct", "", func(w *workshop) error {
			return second(w.Correct(ctx, "m", loop.Correction{Reviewer: "ann",
				Text: "Name the ticket always."}))
		}},
		{"Find", "", func(w *workshop) error {
			if _, err := w.Find(ctx, "none"); !errors.Is(err, loop.ErrNoAnswer) {
				return err
			}
			return nil
		}},
		{"Explain", "heuristic", func(w *workshop) error { return second(w.Explain(ctx, "h")) }},
		{"Explain", "model", func(w *workshop) error { return second(w.Explain(ctx, "m")) }},
		{"Gain", "", func(w *workshop) error { return second(w.Gain(ctx)) }},
		{"Teach", "", func(w *workshop) error {
			return second(w.Teach(ctx, loop.Lessons{
				Heuristics: []learning.Heuristic{{ID: "new", Condition: "c", Action: "a"}},
				Notes:      []loop.Note{{ID: "new", Text: "t"}},
			}))
		}},
		{"Teach", "only", func(w *workshop) error {
			return second(w.Teach(ctx, loop.Lessons{Only: true}))
		}},
		{"Teach", "changed", func(w *workshop) error {
			h := trusted(rotating)
			h.Action = "Delete the logs."
			return second(w.Teach(ctx, loop.Lessons{
				Heuristics: []learning.Heuristic{h}, Notes: []loop.Note{{ID: "n", Text: "Room 4."}},
			}))
		}},
		{"Import", "all", func(w *workshop) error {
			return second(w.Import(ctx, each([]loop.Past{{
				Event: loop.Event{ID: "m", Text: "t", At: start}, Text: "x", Arm: "only",
				Reactions:   []loop.Reaction{{Person: "ann", Value: 1}},
				Outcomes:    []loop.Outcome{{Success: &yes, Source: "ci"}},
				Corrections: []loop.Correction{{Reviewer: "kim", Text: "Hurry up."}},
			}, { // of a heuristic
				Event: loop.Event{ID: "h", Text: full, At: start}, Text: rotate,
				Reactions:   []loop.Reaction{{Person: "bob", Value: 1}},
				Outcomes:    []loop.Outcome{{Success: &yes, Source: "ci"}},
				Corrections: []loop.Correction{{Reviewer: "kim", Text: "Hurry up."}},
			}}), "kim", "file"))
		}},
		{"Import", "", func(w *workshop) error {
			return second(w.Import(ctx, func(yield func(loop.Past, error) bool) {
				yield(loop.Past{
					Event: loop.Event{ID: "past", Text: "t", At: start}, Text: "x",
					Reactions: []loop.Reaction{{Person: "ann", Value: 1}},
				}, nil)
			}, "", ""))
		}},
		{"Sweep", "", func(w *workshop) error {
			w.clock.Advance(time.Minute)
			return w.Sweep(ctx, time.Time{})
		}},
	}
}

// untried are the methods that touch no store, or do so through others.
var untried = []string{"Decision", "Feedback", "Learning", "Name", "Partition",
	"Patterns", "Run", "Store", "Strategy", "Taught", "Tenant"}

// Every store call of every method fails, before its effect or after it. The method then says so,
// unless the call was a commit that took effect, and once it is called again, all is as if nothing
// had failed.
func TestTheNthStoreCallFails(t *testing.T) {
	tried := make(map[string]bool)
	for _, f := range fallibles() {
		tried[f.method] = true
		t.Run(f.method+" "+f.how, func(t *testing.T) {
			t.Parallel()
			whole := newWorkshop(t)
			require.NoError(t, f.call(whole))
			want := whole.state()
			failEach(t, func(t *testing.T, at int, after bool) bool {
				w := newWorkshop(t)
				w.fails.Fail(at, after)
				err := f.call(w)
				failed := w.fails.Failed()
				w.fails.Fail(0, false)
				if failed && after && err == nil { // a commit, whose result the caller gets
					require.Equal(t, want, w.state(), "call %d", at)
				} else if failed {
					require.ErrorIs(t, err, storetest.ErrFailed, "call %d, after %v", at, after)
				}
				for range 2 {
					require.NoError(t, f.call(w), "call %d, after %v", at, after)
				}
				if f.method != "Sweep" { // the sweep's own clock moves
					require.Equal(t, want, w.state(), "call %d, after %v", at, after)
				}
				return failed
			})
		})
	}
	methods := reflect.TypeFor[*loop.Agent]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		assert.NotEqual(t, tried[name], slices.Contains(untried, name),
			"%s is to be tried, or to be among the untried", name)
	}
}

// A caller who leaves while the model works gets the context's error, also in the middle of a
// stream.
func TestACallerWhoLeaves(t *testing.T) {
	for name, receive := range map[string]bool{"before a word": false, "in a stream": true} {
		ctx, cancel := context.WithCancel(ctx)
		agent, err := loop.New(ctx, loop.Config{Model: leaving{cancel}})
		require.NoError(t, err)
		e := loop.Event{ID: "e", Text: full}
		if receive {
			e.OnChunk = func(context.Context, string, bool) { cancel() }
		}
		given, err := agent.Answer(ctx, e)
		require.ErrorIs(t, err, context.Canceled, name)
		assert.Empty(t, given.Text)
		assert.NotEmpty(t, given.Result.Reason)
		_, err = agent.Explain(context.WithoutCancel(ctx), "e")
		assert.ErrorIs(t, err, loop.ErrNoAnswer, name)
	}
}

// A leaving is a model whose caller leaves while it works.
type leaving struct{ leave context.CancelFunc }

func (m leaving) Generate(
	ctx context.Context, _ decision.LLMRequest,
) (decision.LLMResponse, error) {
	m.leave()
	return decision.LLMResponse{}, ctx.Err()
}

func (m leaving) Stream(
	ctx context.Context, _ decision.LLMRequest, piece func(string),
) (decision.LLMResponse, error) {
	piece("Look at ")
	return decision.LLMResponse{}, ctx.Err()
}

// A context that has ended is an error of every method, and nothing was counted.
func TestAContextThatHasEnded(t *testing.T) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	yes := true
	w := newWorkshop(t)
	before := w.state()
	for name, err := range map[string]error{
		"Answer":   second(w.Answer(ended, loop.Event{ID: "e", Text: full})),
		"Prepare":  second(w.Prepare(ended, loop.Event{ID: "e", Text: full})),
		"Answered": second(w.Answered(ended, w.plan, loop.Reply{Text: "x"})),
		"React":    w.React(ended, "h", loop.Reaction{Value: 1}),
		"Undo":     w.Undo(ended, "h", ""),
		"Hear":     second(w.Hear(ended, learning.Message{Session: "s", Text: "undo"})),
		"Tool":     second(w.Tool(ended, "h", loop.ToolResult{Err: errors.New("x")})),
		"Outcome":  w.Outcome(ended, "h", loop.Outcome{Success: &yes}),
		"Correct":  second(w.Correct(ended, "h", loop.Correction{Reviewer: "ann"})),
		"Explain":  second(w.Explain(ended, "h")),
		"Teach":    second(w.Teach(ended, loop.Lessons{Notes: []loop.Note{{ID: "x", Text: "x"}}})),
		"Sweep":    w.Sweep(ended, time.Time{}),
	} {
		assert.ErrorIs(t, err, context.Canceled, name)
	}
	assert.Equal(t, before, w.state())
}

// The error of each method shows the method, also if the store is away.
func TestErrorsShowTheirMethod(t *testing.T) {
	w := newWorkshop(t)
	yes := true
	for doing, call := range map[string]func() error{
		"answer":  func() error { return second(w.Answer(ctx, loop.Event{Text: "Why?"})) },
		"prepare": func() error { return second(w.Prepare(ctx, loop.Event{Text: "Why?"})) },
		"answered": func() error {
			return second(w.Answered(ctx, w.plan, loop.Reply{Text: "So."}))
		},
		"hear": func() error {
			return second(w.Hear(ctx, learning.Message{ID: "u", Text: "Undo that", Session: "t"}))
		},
		"react":       func() error { return w.React(ctx, "m", loop.Reaction{Value: 1}) },
		"undo":        func() error { return w.Undo(ctx, "m", "ann") },
		"outcome":     func() error { return w.Outcome(ctx, "m", loop.Outcome{Success: &yes}) },
		"undelivered": func() error { return w.Undelivered(ctx, "m") },
		"attribute": func() error {
			return second(w.Attribute(ctx, "m", "", strategy.Outcome{Value: 1, Confidence: 1}))
		},
		"correct": func() error {
			return second(w.Correct(ctx, "m", loop.Correction{Reviewer: "ann", Text: "Be brief."}))
		},
		"tool": func() error {
			return second(w.Tool(ctx, "m", loop.ToolResult{Name: "sh", Err: errors.New("no")}))
		},
		"keep plan":   func() error { return w.KeepPlan(ctx, "kim", w.plan) },
		"kept plan":   func() error { return second(w.KeptPlan(ctx, "kim", "p")) },
		"end session": func() error { return w.EndSession(ctx, "t") },
		"freeze":      func() error { return w.Freeze(ctx, true) },
		"find":        func() error { return second(w.Find(ctx, "t")) },
		"explain":     func() error { return second(w.Explain(ctx, "m")) },
		"gain":        func() error { return second(w.Gain(ctx)) },
		"sweep":       func() error { return w.Sweep(ctx, time.Time{}) },
		"teach": func() error {
			return second(w.Teach(ctx, loop.Lessons{Notes: []loop.Note{{ID: "x", Text: "t"}}}))
		},
		"tenant": func() error { return second(w.Tenant(ctx, "acme")) },
		"import": func() error {
			row := loop.Past{Event: loop.Event{Text: "t"}, Text: "x"}
			return second(w.Import(ctx, each([]loop.Past{row}), "", ""))
		},
	} {
		w.fails.SetAway(true)
		err := call()
		require.ErrorIs(t, err, storetest.ErrFailed, doing)
		assert.True(t, strings.HasPrefix(err.Error(), "loop: "+doing+": "), err.Error())
	}
}

// A sweep reports whichever call of the store fails, and loses no silence by it.
func TestASweepReportsEachFailure(t *testing.T) {
	failEach(t, func(t *testing.T, at int, after bool) bool {
		w := newWorkshop(t)
		w.clock.Advance(time.Hour)
		w.Agent = w.again()
		w.fails.Fail(at, after)
		err := w.Sweep(ctx, time.Time{})
		failed := w.fails.Failed()
		w.fails.Fail(0, false)
		if failed && !after {
			require.ErrorIs(t, err, storetest.ErrFailed, "call %d", at)
		}
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		account, err := w.Explain(ctx, "m")
		require.NoError(t, err)
		assert.True(t, account.Known, "call %d", at)
		return failed
	})
}

// An answer whose caller left while it was recorded was not delivered.
func TestACallerWhoLeavesDuringTheCommit(t *testing.T) {
	for leaves, undelivered := range map[bool]bool{false: false, true: true} {
		st := &leftBehind{Store: new(memstore.Store)}
		w := newWorld(t, loop.Config{Store: st})
		left, leave := context.WithCancel(ctx)
		if leaves {
			st.leave = leave
		}
		given, err := w.Answer(left, loop.Event{ID: "e", Text: "Why?"})
		require.NoError(t, err)
		assert.NotEmpty(t, given.Text)
		account, err := w.Explain(ctx, "e")
		require.NoError(t, err)
		assert.Equal(t, undelivered, account.Undelivered)
		leave()
	}
}

// A leftBehind is a store whose caller leaves after the commit of an answer.
type leftBehind struct {
	store.Store
	leave func()
}

func (s *leftBehind) Commit(
	ctx context.Context, batches ...store.Batch,
) ([]store.Receipt, error) {
	receipts, err := s.Store.Commit(ctx, batches...)
	for _, b := range batches {
		is := func(r store.Record) bool { return r.Kind == "loop.answer" }
		if s.leave != nil && slices.ContainsFunc(b.Records, is) {
			s.leave()
		}
	}
	return receipts, err
}
