package decision_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// A world is a store that can fail, with an answer of a heuristic and one of the model.
type world struct {
	c  *clock
	st *storetest.Failing
	n  int // of answers
}

const counted = "host.counted" // what a host counts in the same step

func newWorld(t *testing.T) *world {
	c := &clock{}
	c.Advance(time.Hour)
	w := &world{c: c, st: &storetest.Failing{Store: newStore(c.Now)}}
	_, err := w.strategy(t).Decide(ctx, decision.Request{EventID: "e1", Source: "ann",
		Candidates: candidates(0.9)})
	require.NoError(t, err)
	_, err = w.strategy(t).Decide(ctx, decision.Request{EventID: "e2"})
	require.NoError(t, err)
	return w
}

func (w *world) config() decision.Config {
	return decision.Config{
		LLM: &llmtest.Model{Answers: llmtest.Say("Do it.")}, Prediction: true,
		Store: w.st, Now: w.c.Now, Seed: rand.NewPCG(1, 2),
		NewID: func() string { w.n++; return fmt.Sprint("r", w.n) },
	}
}

func (w *world) strategy(t testing.TB) *decision.Decider {
	h, err := decision.New(ctx, w.config())
	require.NoError(t, err)
	return h
}

// fires is how a host stores an answer: together with what it waits for.
func (w *world) fires(h *decision.Decider, r decision.Request) (res decision.Result, err error) {
	res, _ = h.Trusted(r)
	return res, store.Do(ctx, w.st, func(tx *store.Tx) error {
		tx.Observe(evidence.Observation{
			ID: "fire", Cell: evidence.Cell{Kind: counted, Item: res.CreditID}, Reward: 1, Weight: 1,
			At: start,
		})
		return h.TraceIn(tx, r, &res)
	})
}

// state is all that the store has, but for revisions and the numbers of answers.
func (w *world) state(t testing.TB) string {
	t.Helper()
	// as an answer whose error was about what comes after its commit has two traces
	lines := make(map[string]bool)
	kinds := []string{"heed.settings", "heed.audit"}
	for _, row := range decision.Rows() {
		kinds = append(kinds, row.Kind.Name)
	}
	inner := w.st.Store
	for _, kind := range kinds {
		for r, err := range inner.Find(ctx, store.Query{Kind: kind}) {
			require.NoError(t, err)
			body, err := r.Body.JSON()
			require.NoError(t, err)
			if kind == "decision.trace" && r.ID > "r2" {
				body = []byte(strings.ReplaceAll(string(body), r.ID, "new"))
			}
			lines[fmt.Sprint(kind, " ", r.At.UTC(), r.Keys, string(body))] = true
		}
	}
	for scope, err := range inner.Scopes(ctx, counted) {
		require.NoError(t, err)
		for part, err := range inner.List(ctx, store.CellQuery{Kind: counted, Scope: scope}) {
			require.NoError(t, err)
			lines[fmt.Sprintf("%+v", part)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(lines)), "\n")
}

// A use is a call of a method, on a service that is opened without faults.
type use struct {
	method string
	of     func(*testing.T, *world) func() error
}

// uses are calls of what makes the services, and of all methods that use the store.
var uses = []use{
	{"New", func(_ *testing.T, w *world) func() error {
		return func() error { _, err := decision.New(ctx, w.config()); return err }
	}},

	{"Decider.Decide", deciding(decision.Request{EventID: "e3", Candidates: candidates(0.9)})},
	{"Decider.Decide", deciding(decision.Request{EventID: "e3"})},
	{"Decider.TraceIn", func(t *testing.T, w *world) func() error {
		h := w.strategy(t)
		return func() error {
			res, err := w.fires(h, decision.Request{EventID: "e3", Candidates: candidates(0.9)})
			assert.Equal(t, err == nil, res.ResponseID != "")
			return err
		}
	}},
	{"Decider.Trace", func(t *testing.T, w *world) func() error {
		h := w.strategy(t)
		return func() error { return reads(t, h.Trace, "r1") }
	}},
	{"Decider.Traces", func(t *testing.T, w *world) func() error {
		h := w.strategy(t)
		return func() error { return drain(t, h.Traces(ctx)) }
	}},

	{"Decider.Feedback", func(t *testing.T, w *world) func() error {
		h := w.strategy(t)
		return func() error {
			s, _, err := h.Feedback(ctx, "r1", answer.Statement{By: "bob", Value: -1, At: start})
			assert.Equal(t, err == nil, s.Of != "", "an error is no credit")
			assert.NotErrorIs(t, err, heed.ErrNotFound)
			return err
		}
	}},

	{"Decider.Extract", func(t *testing.T, w *world) func() error {
		text := written(words(12), "warn", words(12))
		cfg := w.config()
		cfg.LLM = &llmtest.Model{Predictions: llmtest.Say(text)}
		d, err := decision.New(ctx, cfg)
		require.NoError(t, err)
		return func() error {
			x, err := d.Extract(ctx, "r2", nil)
			assert.Equal(t, err == nil, x.Condition != "", "an error is no refusal")
			return err
		}
	}},
}

// useless are the methods that do not use the store, and those that are shown under another name.
var useless = map[string]string{
	"Decider.Config": "configuration", "Decider.Tier": "arithmetic", "Decider.Trusted": "arithmetic",
	"Decider.Ask": "text", "Decider.Reply": "calls a model", "Decider.Notify": "calls the observer",
	"Experiment.Decide": "calls the variants", "Experiment.Shadow": "calls the variants",
}

func deciding(r decision.Request) func(*testing.T, *world) func() error {
	return func(t *testing.T, w *world) func() error {
		h := w.strategy(t)
		return func() error { return decides(t, h, r) }
	}
}

func decides(t *testing.T, s decision.Strategy, r decision.Request) error {
	res, err := s.Decide(ctx, r)
	assert.NotEmpty(t, res.Text, "the answer is there all the same")
	assert.Equal(t, err == nil, res.ResponseID != "", "but without an id")
	return err
}

func reads(t *testing.T, read func(context.Context, string) (decision.Trace, error),
	id string) error {
	trace, err := read(ctx, id)
	assert.Equal(t, err == nil, trace.ResponseID != "")
	assert.NotErrorIs(t, err, heed.ErrNotFound)
	return err
}

func drain[T any](t *testing.T, all func(func(T, error) bool)) error {
	n := 0
	for _, err := range all {
		if err != nil {
			return err
		}
		n++
	}
	assert.NotZero(t, n, "what can't be read is not nothing")
	return nil
}

// Each call of the store fails once, before its effect and after it. The store is then as before
// the method or as after it, the caller gets the error, and calling the method again leaves the
// same as without a fault.
func TestEveryCallMayFail(t *testing.T) {
	for i, u := range uses {
		t.Run(fmt.Sprint(i, " ", u.method), func(t *testing.T) {
			w := newWorld(t)
			undisturbed := u.of(t, w)
			before := w.state(t)
			w.st.Fail(0, false)
			require.NoError(t, undisturbed())
			require.Positive(t, w.st.Calls(), "it does not use the store")
			after := w.state(t)
			reached := 0
			storetest.FailEach(func(at int, late bool) bool {
				w := newWorld(t)
				call := u.of(t, w)
				w.st.Fail(at, late)
				err := call()
				if !w.st.Failed() {
					require.NoError(t, err)
					return false
				}
				reached++
				state := w.state(t)
				if err == nil && late && state == after {
					return true // the call had an error of its own, which the method expects
				}
				require.ErrorIs(t, err, storetest.ErrFailed, "call %d, late: %v", at, late)
				if state != before {
					require.Equal(t, after, state, "call %d, late: %v", at, late)
				}
				w.st.Fail(0, false)
				require.NoError(t, call())
				require.Equal(t, after, w.state(t), "call %d, late: %v, and again", at, late)
				return true
			})
			t.Logf("%d faults", reached)
		})
	}
}

func TestEveryMethodIsUsed(t *testing.T) {
	used := make(map[string]bool)
	for _, u := range uses {
		used[u.method] = true
	}
	for _, service := range []any{
		&decision.Decider{}, &decision.Experiment{},
	} {
		of := reflect.TypeOf(service)
		for i := range of.NumMethod() {
			name := of.Elem().Name() + "." + of.Method(i).Name
			assert.NotEqual(t, used[name], useless[name] != "",
				"%s must be used, or said to be of no use", name)
		}
	}
}

// Every field that has a name of a person is found by a key, and goes with the person.
func TestPersonsAreFound(t *testing.T) {
	names := map[string]bool{"Person": true, "Actor": true, "Reviewer": true, "User": true}
	for _, row := range decision.Rows() {
		fields := reflect.VisibleFields(reflect.TypeOf(row.Value))
		for _, f := range fields {
			person := names[f.Name] || f.Name == "Source"
			if !person {
				continue
			}
			assert.Contains(t, row.Kind.Caused, f.Name, "%s.%s", row.Kind.Name, f.Name)
			assert.Contains(t, row.Keys, store.PersonKey(f.Name), "%s.%s", row.Kind.Name, f.Name)
		}
	}
}

func TestAPersonIsForgotten(t *testing.T) {
	w := newWorld(t)
	require.Contains(t, w.state(t), "ann")
	state := w.state(t)
	err := store.Run(ctx, w.st, store.Job{Forget: []string{"Ann", "ANN"}})
	require.NoError(t, err)
	assert.Equal(t, state, w.state(t), "they are somebody else")
	err = store.Run(ctx, w.st, store.Job{Forget: []string{"ann"}})
	require.NoError(t, err)
	assert.NotContains(t, strings.ReplaceAll(w.state(t), "Channels", ""), "ann")
	trace, err := w.strategy(t).Trace(ctx, "r1")
	require.NoError(t, err)
	assert.Empty(t, trace.Source)
}

// Things of one step are stored together or not at all.
func TestAnAnswerIsCommittedWithWhatWaitsForIt(t *testing.T) {
	w := newWorld(t)
	before := w.state(t)
	h := w.strategy(t)
	r := decision.Request{EventID: "e", Candidates: candidates(0.9)}
	res, ok := h.Trusted(r)
	require.True(t, ok)
	broken := errors.New("broken")
	err := store.Do(ctx, w.st, func(tx *store.Tx) error {
		require.NoError(t, h.TraceIn(tx, r, &res))
		assert.Equal(t, "r3", res.ResponseID, "the rest of the step can refer to it")
		return broken
	})
	require.ErrorIs(t, err, broken)
	assert.Equal(t, [2]string{"action 1", ""}, [2]string{res.Text, res.ResponseID})
	assert.Equal(t, before, w.state(t))
	w.st.Fail(0, false)
	res, err = w.fires(h, r)
	require.NoError(t, err)
	assert.Equal(t, "r4", res.ResponseID)
	assert.Equal(t, []int{1, 0}, []int{w.st.Calls("Commit"), w.st.Calls("Read")})
	assert.Contains(t, w.state(t), counted)
	trace, err := h.Trace(ctx, "r4")
	require.NoError(t, err)
	assert.Equal(t, [2]string{"e", "h1"}, [2]string{trace.EventID, trace.CreditID})

	none := decision.Result{Path: decision.Fallback}
	require.NoError(t, store.Do(ctx, w.st, func(tx *store.Tx) error {
		return h.TraceIn(tx, r, &none)
	}))
	assert.Empty(t, none.ResponseID, "without an answer there is no trace")
	assert.Len(t, traces(t, h), 3)
}

// A step that has to run again stores one trace.
func TestATraceOfARepeatedStep(t *testing.T) {
	w := newWorld(t)
	h := w.strategy(t)
	r := decision.Request{EventID: "e", Candidates: candidates(0.9)}
	res, _ := h.Trusted(r)
	runs := 0
	require.NoError(t, store.Do(ctx, w.st, func(tx *store.Tx) error {
		if runs++; runs == 1 {
			tx.Expect(store.Precondition{Ref: store.Ref{Kind: "decision.trace", ID: "r1"}, Revision: 77})
		}
		return h.TraceIn(tx, r, &res)
	}))
	assert.Equal(t, 2, runs)
	all := traces(t, h)
	require.Len(t, all, 3)
	assert.Contains(t, []string{all[0].ResponseID, all[1].ResponseID, all[2].ResponseID},
		res.ResponseID)
}

// An answer that is there has its trace, though the caller's time is up.
func TestADeadlineDuringThePrediction(t *testing.T) {
	c := &clock{}
	short, cancel := context.WithCancel(ctx)
	m := decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		if r.JSON {
			cancel()
			return decision.LLMResponse{}, ctx.Err()
		}
		return decision.LLMResponse{Text: "Do it."}, nil
	})
	h := newHeuristicFirst(t, decision.Config{LLM: m, Prediction: true, Now: c.Now})
	res, err := h.Decide(short, decision.Request{})
	require.NoError(t, err)
	assert.Equal(t, "Do it.", res.Text)
	_, err = h.Trace(ctx, res.ResponseID)
	require.NoError(t, err)
}

func TestTracesAreReadAndDeleted(t *testing.T) {
	w := newWorld(t)
	h := w.strategy(t)
	w.c.Advance(time.Hour)
	_, err := h.Decide(ctx, decision.Request{EventID: "e3", Candidates: candidates(0.9)})
	require.NoError(t, err)
	all := traces(t, h)
	require.Len(t, all, 3)
	assert.Equal(t, "r3", all[0].ResponseID, "the newest first")
	for range h.Traces(ctx) {
		break // ends early
	}
	_, err = h.Trace(ctx, "no such")
	require.ErrorIs(t, err, heed.ErrNotFound)
	_, _, err = h.Feedback(ctx, "no such", answer.Statement{Value: 1})
	require.ErrorIs(t, err, heed.ErrNotFound)

	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err = h.Trace(done, "r2")
	require.ErrorIs(t, err, context.Canceled)
	for _, err := range h.Traces(done) {
		require.ErrorIs(t, err, context.Canceled)
	}
	_, _, err = h.Feedback(done, "r2", answer.Statement{Value: 1})
	require.ErrorIs(t, err, context.Canceled)

	without, err := decision.New(ctx, decision.Config{})
	require.NoError(t, err)
	_, err = without.Trace(ctx, "r2")
	require.ErrorIs(t, err, heed.ErrNotFound)
	assert.Empty(t, traces(t, without))
}

// Traces go when their time is over.
func TestTracesHaveATimeToLive(t *testing.T) {
	w := newWorld(t)
	h := w.strategy(t)
	s := answer.Statement{By: "bob", Value: 1}
	w.c.Advance(23 * time.Hour)
	require.NoError(t, w.st.Sweep(ctx, time.Time{}))
	_, _, err := h.Feedback(ctx, "r1", s)
	require.NoError(t, err)
	w.c.Advance(2 * time.Hour)
	require.NoError(t, w.st.Sweep(ctx, time.Time{}))
	assert.Empty(t, traces(t, h))
	_, _, err = h.Feedback(ctx, "r1", s)
	require.ErrorIs(t, err, heed.ErrNotFound)
}

// An answer has an id of its own: a trace is not written over.
func TestATraceIsPutOnce(t *testing.T) {
	h := newHeuristicFirst(t, decision.Config{NewID: func() string { return "same" }})
	_, err := h.Decide(ctx, decision.Request{EventID: "first", Candidates: candidates(0.9)})
	require.NoError(t, err)
	_, err = h.Decide(ctx, decision.Request{EventID: "second", Candidates: candidates(0.9)})
	require.ErrorIs(t, err, heed.ErrConflict)
	trace, err := h.Trace(ctx, "same")
	require.NoError(t, err)
	assert.Equal(t, "first", trace.EventID)
	nameless := newHeuristicFirst(t, decision.Config{NewID: func() string { return "" }})
	_, err = nameless.Decide(ctx, decision.Request{Candidates: candidates(0.9)})
	require.ErrorAs(t, err, new(*heed.InputError))
}

// Reads of JSON give what was written: a database keeps that.
func TestRowsSurviveJSON(t *testing.T) {
	for _, row := range decision.Rows() {
		text, err := json.Marshal(row.Value)
		require.NoError(t, err)
		into := reflect.New(reflect.TypeOf(row.Value))
		require.NoError(t, json.Unmarshal(text, into.Interface()))
		assert.Equal(t, row.Value, into.Elem().Interface())
	}
}

// A record that can't be read is an error, and not one that is not there.
func TestDamagedRecords(t *testing.T) {
	w := newWorld(t)
	for r, err := range w.st.Find(ctx, store.Query{Kind: "decision.trace"}) {
		require.NoError(t, err)
		r.Body = store.Raw([]byte(`"x"`))
		_, err = w.st.Commit(ctx, store.Batch{Records: []store.Record{r}})
		require.NoError(t, err)
	}
	h := w.strategy(t)
	_, _, err := h.Feedback(ctx, "r1", answer.Statement{By: "ann", Value: -1})
	assert.ErrorContains(t, err, "damaged")
	_, err = h.Trace(ctx, "r1")
	assert.ErrorContains(t, err, "damaged")
}

// A trace counts the texts of the conversation only where a model received them.
func TestTurnsOfATrace(t *testing.T) {
	h := newHeuristicFirst(t, decision.Config{LLM: model("Do it."), Store: &memstore.Store{}})
	for id, want := range map[string]struct {
		confidence float64
		turns      int
	}{"by a heuristic": {0.9, 0}, "by the model": {0.2, 2}} {
		res, err := h.Decide(ctx, decision.Request{
			EventID: id, Candidates: candidates(want.confidence), Told: []string{"Hello.", "Hi."},
		})
		require.NoError(t, err)
		trace, err := h.Trace(ctx, res.ResponseID)
		require.NoError(t, err)
		assert.Equal(t, want.turns, trace.Turns, id)
	}
}

// The limits of settings hold at their ends.
func TestFaultsJustBeyondTheLimits(t *testing.T) {
	_, err := decision.New(ctx, decision.Config{UrgencyReduction: 1.5})
	assert.Equal(t, []string{"UrgencyReduction"}, fieldsOf(err))
	of := func(share float64) error {
		_, err := decision.NewExperiment("", nil,
			decision.Variant{Name: "a", Strategy: says("a", decision.Model), Share: share},
			decision.Variant{Name: "b", Strategy: says("b", decision.Model), Share: 1})
		return err
	}
	assert.NoError(t, of(1e6))
	assert.Equal(t, []string{"Variants[0].Share"}, fieldsOf(of(1.2e6)))
}
