package learning_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// A deed is a call of a method, with what has to be there before it.
type deed struct {
	method  string
	prepare func(f *fixture)
	call    func(f *fixture) error
	done    error // of the call again, where the one that failed has had its effect
}

func ignoreTwice(f *fixture) {
	for i := range 2 {
		f.fire("h", fmt.Sprint("ignored", i), "s")
		f.event("s", "next")
	}
}

func silence(f *fixture) {
	f.fire("h", "e", "s")
	f.clock.Advance(31 * time.Second)
	f.sweep()
}

var pinned = learning.Pin{HeuristicID: "h", Constraints: at(0.2), Actor: "ops", Reason: "r"}

// deeds are calls of every method, and of the functions that make modules.
var deeds = []deed{
	{method: "Put", call: func(f *fixture) error {
		_,
			err := f.Put(ctx, learning.Heuristic{ID: "new"})
		return err
	}},
	{method: "Restart", prepare: func(f *fixture) { f.wanted = f.standing("h").Heuristic },
		call: func(f *fixture) error {
			h := f.wanted
			h.Action = "new"
			_, err := f.Restart(ctx, h, "ann", "it is new")
			return err
		}},
	{method: "Heuristics", call: func(f *fixture) (err error) {
		for _, err = range f.Heuristics(ctx) {
		}
		return err
	}},
	{method: "Delete", prepare: func(f *fixture) {
		ignoreTwice(f)
		require.NoError(f,
			f.Pin(ctx, pinned))
	},
		call: func(f *fixture) error { return f.Delete(ctx, "h") }, done: heed.ErrNotFound},
	{method: "Pin", call: func(f *fixture) error { return f.Pin(ctx, pinned) }},
	{method: "Pin", prepare: func(f *fixture) { require.NoError(f, f.Pin(ctx, pinned)) },
		call: func(f *fixture) error {
			return f.Pin(ctx, learning.Pin{HeuristicID: "h", Actor: "ops", Reason: "r"})
		}, done: heed.ErrNotFound},
	{method: "Fire", call: func(f *fixture) error {
		return f.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Stream: "s", Person: "ann",
			Session: "room"})
	}},
	{method: "Fire", call: func(f *fixture) error {
		return f.Fire(ctx,
			learning.Fire{EventID: "of the model", Session: "room"})
	}},
	{method: "Hear", prepare: func(f *fixture) { f.fire("oven", "e", "s"); f.fire("h", "f", "t") },
		call: func(f *fixture) error {
			_, err := f.Hear(ctx, learning.Message{Stream: "t", Text: "it is off", Session: "room"})
			return err
		}},
	{method: "Hear", prepare: func(f *fixture) { f.fire("h", "e", "s"); f.fire("oven", "f", "t") },
		call: func(f *fixture) error {
			_, err := f.Hear(ctx, learning.Message{ID: "m", Text: "undo", Session: "room"})
			return err
		}},
	{method: "Hear", prepare: silence,
		call: func(f *fixture) error {
			_, err := f.Hear(ctx, learning.Message{ID: "m", Text: "undo", Session: "room"})
			return err
		}},
	{method: "Hear", prepare: func(f *fixture) {
		ignoreTwice(f)
		f.fire("h", "e", "s")
		f.fire("oven",
			"f", "s")
	},
		call: func(f *fixture) error {
			_, err := f.Hear(ctx, learning.Message{Stream: "s", Text: "next", Session: "room"})
			return err
		}},
	{method: "Judge", prepare: func(f *fixture) { ignoreTwice(f); f.fire("h", "e", "s") },
		call: func(f *fixture) error { _, err := f.Judge(ctx, thumb("h", "e", true)); return err }},
	{method: "Judge", prepare: func(f *fixture) { f.say(thumb("h", "e", true)) },
		call: func(f *fixture) error { _, err := f.Judge(ctx, thumb("h", "e", false)); return err }},
	{method: "Judge", prepare: silence,
		call: func(f *fixture) error { _, err := f.Judge(ctx, thumb("h", "e", false)); return err }},
	{method: "Judge", prepare: func(f *fixture) {
		f.put(learning.Heuristic{ID: "compared"})
		require.NoError(f, f.Fire(ctx, learning.Fire{EventID: "e",
			Compared: []answer.Comparison{{HeuristicID: "compared", Agrees: true},
				{HeuristicID: "h"}}}))
		f.say(thumb("", "e", true))
		f.clock.Advance(time.Second)
	}, call: func(f *fixture) error {
		j := thumb("", "e", false)
		j.At = start.Add(time.Second)
		_, err := f.Judge(ctx, j)
		return err
	}},
	{method: "Undo", prepare: func(f *fixture) { silence(f); f.fire("oven", "e", "s") },
		call: func(f *fixture) error {
			_, err := f.Undo(ctx,
				learning.Undo{EventID: "e", Person: "bob"})
			return err
		}},
	{method: "Standings", call: func(f *fixture) error {
		_,
			err := f.Standings(ctx, "h", "oven", "none")
		return err
	}},
	{method: "Apply", call: func(f *fixture) error {
		_, err := f.Apply(ctx, learning.Signal{HeuristicID: "h", EventID: "e",
			Channel: "host", Worth: 1},
			learning.Origin{ID: "1"})
		return err
	}},
	{method: "Timeouts", prepare: func(f *fixture) {
		f.fire("h", "e", "s")
		f.fire("oven", "f",
			"s")
		f.clock.Advance(time.Minute)
	},
		call: func(f *fixture) error { _, err := f.Timeouts(ctx, time.Time{}); return err }},
	{method: "Sweep", prepare: func(f *fixture) { silence(f); f.clock.Advance(time.Hour) },
		call: func(f *fixture) error { return f.Sweep(ctx, time.Time{}) }},
	{method: "Sweep", prepare: func(f *fixture) { f.fire("h", "e", "s"); f.clock.Advance(time.Hour) },
		call: func(f *fixture) error { return f.Sweep(ctx, time.Time{}) }},
	{method: "Standing", call: func(f *fixture) error { _, err := f.Standing(ctx, "h"); return err }},
	{method: "Explain", call: func(f *fixture) error { _, err := f.Explain(ctx, "h"); return err }},
	{method: "FireIn", call: func(f *fixture) error {
		return f.step1("e", func(tx *store.Tx, a *answer.Answer) error {
			return f.FireIn(tx, a, learning.Fire{HeuristicID: "h", Session: "room"})
		})
	}},
	{method: "FireIn", prepare: func(f *fixture) { f.say(thumb("h", "e", true)) },
		call: func(f *fixture) error {
			return f.step1("e", func(tx *store.Tx, a *answer.Answer) error {
				return f.FireIn(tx, a, learning.Fire{HeuristicID: "h", Session: "room"})
			})
		}},
	{method: "JudgeIn", prepare: func(f *fixture) { silence(f); f.say(thumb("h", "e", true)) },
		call: func(f *fixture) error {
			return f.step1("e", func(tx *store.Tx, a *answer.Answer) error {
				_, err := f.JudgeIn(tx, a, answer.Statement{By: "ann", Of: "h", Value: -1,
					At: start.Add(time.Second)})
				return err
			})
		}},
	{method: "UndoIn", prepare: silence, call: func(f *fixture) error {
		return f.step1("e", func(tx *store.Tx, a *answer.Answer) error {
			_, err := f.UndoIn(tx, a, learning.Undo{})
			return err
		})
	}},
	{method: "TimeoutIn", prepare: func(f *fixture) {
		f.fire("h", "e",
			"s")
		f.clock.Advance(time.Minute)
	},
		call: func(f *fixture) error {
			return f.step1("e", func(tx *store.Tx, a *answer.Answer) error {
				_, err := f.Steps().TimeoutIn(tx, a, f.clock.Now())
				return err
			})
		}},
	{method: "HeuristicsIn", call: func(f *fixture) error {
		_, err := f.Steps().HeuristicsIn(store.Reading(ctx, f.store))
		return err
	}},
	{method: "ConfidencesIn", call: func(f *fixture) error {
		_, err := f.Steps().ConfidencesIn(store.Reading(ctx, f.store), "h")
		return err
	}},
	{method: "New", call: func(f *fixture) error {
		cfg := f.Config()
		cfg.Initial = 0.6
		_, err := learning.New(ctx, cfg)
		return err
	}},
	{method: "Open", call: func(f *fixture) error {
		_,
			err := learning.Open(ctx, f.Config())
		return err
	}},
	{method: "Rebuild", prepare: silence, call: func(f *fixture) error {
		cfg := f.Config()
		cfg.HalfLife = time.Hour
		_, err := learning.Rebuild(ctx, cfg, "ops", "r")
		return err
	}},
}

// noDeeds are the methods that ask nothing of the store.
var noDeeds = []string{"Answers", "Config", "Due", "FailuresIn", "Hearing", "HeuristicsWants",
	"Steps", "Wants"}

// TestFaults makes each call to the store fail, before its effect and after it. The method must
// then return an error, unless the call was a commit that took effect. The store must hold the
// state before the call or the state after it. Calling the method again must lose nothing and count
// nothing twice.
func TestFaults(t *testing.T) {
	var named []string
	for i, d := range deeds {
		named = append(named, d.method)
		t.Run(fmt.Sprint(d.method, " ", i), func(t *testing.T) {
			t.Parallel()
			good := d.stage(t)
			before := good.meaning()
			require.NoError(t, d.call(good))
			after := good.meaning()
			calls := 0
			storetest.FailEach(func(at int, late bool) bool {
				f := d.stage(t)
				st := &storetest.Failing{Store: f.store.Store}
				f.store.Store = st
				st.Fail(at, late)
				err := d.call(f)
				failed := st.Failed()
				st.Fail(0, false)
				if !failed {
					assert.NoError(t, err)
					return false
				}
				calls++
				where := fmt.Sprintf("call %d, after its effect: %v", at, late)
				now := f.meaning()
				if late && err == nil { // a commit, whose result the caller gets
					assert.Equal(t, after, now, where)
					assert.Equal(t, good.duplicates.Load(), f.duplicates.Load(), where)
				} else {
					assert.ErrorIs(t, err, storetest.ErrFailed, where)
				}
				if now != after && d.method != "Rebuild" { // a job, which the next call finishes
					assert.Equal(t, before, now, where)
				}
				switch err := d.call(f); {
				case err != nil && now == after && d.done != nil:
					assert.ErrorIs(t, err, d.done, where)
				default:
					assert.NoError(t, err, where)
				}
				assert.Equal(t, after, f.meaning(), where)
				return true
			})
			assert.Positive(t, calls)
		})
	}
	module := reflect.TypeOf((*learning.Module)(nil).Steps())
	for i := range module.NumMethod() {
		name := module.Method(i).Name
		assert.NotEqual(t, slices.Contains(noDeeds, name), slices.Contains(named, name),
			"%s is among the deeds, or asks nothing of the store", name)
	}
}

// stage makes a module, with what a deed needs.
func (d *deed) stage(t *testing.T) *fixture {
	var duplicates atomic.Int64
	f := newFixture(t, learning.Config{
		Strategy: windows(60, 30).Strategy, Expectations: []learning.Expectation{{Trigger: "oven",
			Outcome: "off"}},
		Observer: func(_ context.Context, n heed.Notice) {
			if _, is := n.(heed.Duplicate); is {
				duplicates.Add(1)
			}
		},
	}, "h")
	f.duplicates = &duplicates
	f.put(learning.Heuristic{ID: "oven", Condition: "the oven is on"})
	if d.prepare != nil {
		d.prepare(f)
	}
	return f
}

// meaning is all that a store has of a module, without what numbers it.
func (f *fixture) meaning() string {
	f.Helper()
	var b strings.Builder
	for h, err := range f.Heuristics(ctx) {
		require.NoError(f, err)
		e, err := f.Explain(ctx, h.ID)
		require.NoError(f, err)
		s := e.Standing
		fmt.Fprintf(&b, "%s: %.6f, %d fires, %d right, %d wrong, pin %v by %s\n",
			h.ID, s.Confidence, s.Fires, s.Successes, s.Failures, s.Pin.Constraints,
			s.Pin.Actor)
		for _, o := range e.History {
			fmt.Fprintf(&b, "  %s %s %v %v\n", o.Channel, o.Source, o.Reward, o.Weight)
		}
	}
	states, err := learning.States(ctx, f.Module)
	require.NoError(f, err)
	slices.Sort(states)
	fmt.Fprintln(&b, strings.Join(states, "\n"))
	for _, e := range f.audit() {
		fmt.Fprintf(&b, "audit: %s %s %s %v\n", e.Action, e.Actor, e.Subject, e.Details)
	}
	for r, err := range f.store.Find(ctx, store.Query{Kind: "heed.settings"}) {
		require.NoError(f, err)
		text, err := r.Body.JSON()
		require.NoError(f, err)
		fmt.Fprintf(&b, "settings: %s\n", text)
	}
	return b.String()
}

// A damaged heuristic does not hide the others.
func TestADamagedHeuristic(t *testing.T) {
	f := newFixture(t, learning.Config{}, "a", "b", "c")
	for r, err := range f.store.Find(ctx, store.Query{Kind: "learning.heuristic"}) {
		require.NoError(t, err)
		if r.ID == "b" {
			r.Body = store.Raw([]byte(`[7]`))
			_, err = f.store.Commit(ctx, store.Batch{Records: []store.Record{r}})
			require.NoError(t, err)
		}
	}
	for range 2 { // an incomplete reading is not remembered
		var ids []string
		var last error
		for h, err := range f.Heuristics(ctx) {
			if last = err; err == nil {
				ids = append(ids, h.ID)
			}
		}
		assert.Equal(t, []string{"a", "c"}, ids)
		require.ErrorIs(t, last, heed.ErrDamaged)
		require.ErrorContains(t, last, `learning.heuristic "b"`)
	}
}

// A heuristic that can't be read, or its row of ignores, fails what is about it.
func TestDamageIsNoHeuristic(t *testing.T) {
	for _, kind := range []string{"learning.heuristic", "learning.streak"} {
		f := newFixture(t, learning.Config{}, "h")
		f.fire("h", "e", "s")
		f.event("s", "next")
		for r, err := range f.store.Find(ctx, store.Query{Kind: kind}) {
			require.NoError(t, err)
			r.Body = store.Raw([]byte(`[7]`))
			_, err = f.store.Commit(ctx, store.Batch{Records: []store.Record{r}})
			require.NoError(t, err)
		}
		_, err := f.Judge(ctx, thumb("h", "e", true))
		require.ErrorIs(t, err, heed.ErrDamaged, kind)
	}
}

// A message that meets an answer which can't be read fails, and ignores nothing.
func TestADamagedAnswer(t *testing.T) {
	f := newFixture(t, learning.Config{}, "h")
	f.fire("h", "e", "chat")
	var damaged []store.Record
	for r, err := range f.store.Find(ctx, store.Query{Kind: "learning.answer"}) {
		require.NoError(t, err)
		r.Body = store.Raw([]byte(`[7]`))
		damaged = append(damaged, r)
	}
	require.Len(t, damaged, 1)
	_, err := f.store.Commit(ctx, store.Batch{Records: damaged})
	require.NoError(t, err)
	_, err = f.Hear(ctx, learning.Message{Stream: "chat", Session: "room", Text: "Undo that."})
	require.ErrorIs(t, err, heed.ErrDamaged)
	_, err = f.Undo(ctx, learning.Undo{EventID: "e", Person: "ann"})
	require.ErrorIs(t, err, heed.ErrDamaged)
}
