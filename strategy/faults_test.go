//go:build !race

package strategy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

// A workshop is a learner over a store that fails when it is told to, with a life behind it.
type workshop struct {
	t     *testing.T
	clock *clock
	kept  *memstore.Store
	store *storetest.Failing
	cfg   strategy.Config
	*strategy.Learner

	other   *strategy.Learner // of another process, which has loaded nothing
	fresh   strategy.Choice   // without an outcome
	judged  strategy.Choice   // with two, "" and "other"
	expired strategy.Choice   // whose silence was counted
	stream  *streamtest.Stream
}

func newWorkshop(t *testing.T, cfg strategy.Config) *workshop {
	w := &workshop{t: t, clock: &clock{}, stream: &streamtest.Stream{}}
	w.kept = newStore(t, w.clock.Now)
	w.store = &storetest.Failing{Store: w.kept}
	ids := byte(0)
	cfg.Now, cfg.Store, cfg.Seed, cfg.Topic = w.clock.Now, w.store, rand.NewPCG(1, 2), "heed.strategy"
	cfg.NewID = func() strategy.ChoiceID { ids++; return strategy.ChoiceID{15: ids} }
	cfg.Arms = []strategy.Arm{{ID: "a", Parameters: []strategy.Parameter{{Name: "n",
		Values: []string{"1", "2"}}}}, {ID: "b"}}
	cfg.Silence = strategy.Silence{After: time.Hour, Confidence: 0.5}
	w.cfg, w.Learner = cfg, newLearner(t, cfg)

	for n, item := range []string{"other", "i", "other", "i"} {
		try(t, w.Learner, strategy.Query{Session: fmt.Sprint("past", n), Item: item, Category: "c"},
			"a", 1)
		w.clock.Advance(time.Minute)
	}
	w.judged = choose(t, w.Learner, w.query("judged", "i"))
	for _, id := range []string{"", "other"} {
		_, err := w.Observe(ctx, strategy.Outcome{Choice: w.judged, ID: id, Value: 1, Confidence: 1,
			Source: "bob"})
		require.NoError(t, err)
	}
	w.expired = choose(t, w.Learner, w.query("gone", "i"))
	w.clock.Advance(2 * time.Hour)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	for n := range 3 { // the next sweep expires the first two
		choose(t, w.Learner, w.query(fmt.Sprint("waits", n), "i"))
		w.clock.Advance(45 * time.Minute)
	}
	w.fresh = choose(t, w.Learner, w.query("now", "i"))
	w.other = w.again()
	return w
}

func (w *workshop) query(session, item string) strategy.Query {
	return strategy.Query{Session: session, Item: item, Category: "c", Arms: []strategy.ArmID{"a"}}
}

// again returns a learner that another process would make.
func (w *workshop) again() *strategy.Learner { return newLearner(w.t, w.cfg) }

func (w *workshop) observe(c strategy.Choice) (string, error) {
	d, err := w.Observe(ctx, strategy.Outcome{Choice: c, Value: -1, Confidence: 1, Source: "ann"})
	return string(d), err
}

func (w *workshop) revise(c strategy.Choice, confidence float64) (string, error) {
	d, err := revise(w, "other", strategy.Outcome{Choice: c, ID: "again", Value: -1,
		Confidence: confidence, Source: "ann"})
	return string(d), err
}

func (w *workshop) notify(session string) (string, error) {
	c, err := w.Record(ctx, w.query(session, "i"), "b", 0.5)
	return fmt.Sprint(c.Session, c.Item, c.Arm, c.Propensity()), err
}

func (w *workshop) selectIn(session, key string) (text string, err error) {
	err = store.Do(ctx, w.store, func(tx *store.Tx) error {
		q := w.query(session, "i")
		q.Key = key
		tx.Want(w.Wants(q))
		c, err := w.SelectIn(tx, q)
		text = fmt.Sprint(c.Session, c.Item, c.Arm)
		return err
	})
	return text, err
}

func (w *workshop) observeIn(c strategy.Choice) (string, error) {
	var did *strategy.Disposition
	err := store.Do(ctx, w.store, func(tx *store.Tx) (err error) {
		did, err = w.ObserveIn(tx, strategy.Outcome{Choice: c, Value: -1, Confidence: 1, Source: "ann"})
		return err
	})
	if err != nil {
		return "", err
	}
	return string(*did), nil
}

// judgeIn has several people judge an answer, the last one in this step.
func (w *workshop) judgeIn(people int) (string, error) {
	var stands *error
	answered := answers.View("strategy.answer")
	err := store.Do(ctx, w.store, func(tx *store.Tx) error {
		row, err := answered.In(tx, answers.ID("e"))
		if err != nil {
			return err
		}
		a := row.Value
		if row.Revision == 0 {
			a = answer.Answer{
				ID: "e", At: w.fresh.At, Choice: w.fresh.Record(), Reply: &answer.Reply{Path: "llm"},
			}
		}
		answers.Say(&a,
			answer.Statement{By: fmt.Sprint("person ", people), Value: 1, At: w.clock.Now()})
		if stands, err = w.CreditIn(tx, &a); err == nil {
			answered.Put(tx, a, row.Revision)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprint(*stands), nil
}

func (w *workshop) consumer(attempts int) *attribution.Consumer {
	c, err := attribution.New(attribution.Config{
		Learner: w.Learner, Stream: w.stream, DeadLetters: &streamtest.Stream{}, Attempts: attempts,
	})
	require.NoError(w.t, err)
	return c
}

// event tells of two items of a session, and that it has ended.
func (w *workshop) event() stream.Event {
	e, err := attribution.Report{
		Session: "now", Ended: true, Source: "ann", Items: []attribution.Worth{
			{Item: "i", Activated: true, Value: -1},
			{Item: "i", Session: "gone", Activated: true, Value: 1}, {Item: "unknown", Activated: true},
		},
	}.Event("e", w.clock.Now())
	require.NoError(w.t, err)
	return e
}

// state returns the content of the store as text, without the values that differ from run to run.
func (w *workshop) state() string {
	var all []string
	for _, kind := range []string{"arm", "given", "sessions", "parameter"} {
		for scope, err := range w.kept.Scopes(ctx, "strategy."+kind) {
			require.NoError(w.t, err)
			for p, err := range w.kept.List(ctx, store.CellQuery{Kind: "strategy." + kind,
				Scope: scope}) {
				require.NoError(w.t, err)
				all = append(all, fmt.Sprintf("%v %q %q %.9f %.9f %d", p.Cell, p.Channel, p.Source,
					p.Tally.Mass, p.Tally.Reward, p.Tally.N()))
			}
		}
	}
	for _, kind := range []string{
		"strategy.answer", "strategy.session", "heed.audit", "stream.outbox",
	} {
		for r, err := range w.kept.Find(ctx, store.Query{Kind: kind, Oldest: true}) {
			require.NoError(w.t, err)
			text, err := r.Body.JSON()
			require.NoError(w.t, err)
			if kind == "stream.outbox" {
				e, err := store.Decode[stream.Event](r.Body)
				require.NoError(w.t, err)
				text = e.Payload
			}
			all = append(all, fmt.Sprint(r.Kind, " ", r.ID, " ", r.At, r.Keys, string(text)))
		}
	}
	// copies that an item takes later than at first
	slices.SortStableFunc(all, func(a, b string) int {
		return cmp.Compare(strings.Index(a, "stream.outbox specialized"),
			strings.Index(b, "stream.outbox specialized"))
	})
	return masked(strings.Join(all, "\n"))
}

// masked replaces what differs between runs: the ids of resets, how often a session has ended,
// which ids of choices were used (attempts that fail use some up), and the digits of a number
// beyond the ninth, as sums depend in them on the order in which they were added up.
func masked(text string) string {
	seen := make(map[string]int)
	var b strings.Builder
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "reset:"); ok {
			b.WriteString("reset")
			text = rest[span(rest, "0123456789abcdef-"):]
			continue
		}
		if rest, ok := strings.CutPrefix(text, `"epoch":`); ok && rest[0] != '0' {
			b.WriteString("epoch")
			text = rest[span(rest, "0123456789"):]
			continue
		}
		if rest, ok := strings.CutPrefix(text, "00000000-0000-0000-0000-"); ok {
			id := rest[:12]
			if _, ok := seen[id]; !ok {
				seen[id] = len(seen)
			}
			fmt.Fprint(&b, "choice ", seen[id])
			text = rest[12:]
			continue
		}
		n := 1
		if text[0] == '.' {
			n += span(text[1:], "0123456789")
		}
		b.WriteString(text[:min(n, 10)])
		text = text[n:]
	}
	return b.String()
}

// span is how many of a text's first bytes are among those of a set.
func span(text, set string) int {
	return len(text) - len(strings.TrimLeft(text, set))
}

// A fallible is a call of a method of a learner or a consumer.
type fallible struct {
	method string
	call   func(w *workshop) (string, error)
	// twice says that a call which was made again may leave more: the reason.
	twice string
}

func asText(value any, err error) (string, error) {
	text, failure := json.Marshal(value)
	return string(text), errors.Join(err, failure)
}

func collected[T any](seq iter.Seq2[T, error]) (string, error) {
	var all []T
	for one, err := range seq {
		if err != nil {
			return "", err
		}
		all = append(all, one)
	}
	return asText(all, nil)
}

func chosen(c strategy.Choice, err error) (string, error) {
	return fmt.Sprint(c.Session, c.Item, drawn(c)), err
}

var itemI = strategy.Query{Item: "i", Category: "c"}

var fallibles = []fallible{
	{method: "Select", call: func(w *workshop) (string,
		error) {
		return chosen(w.Select(ctx, w.query("new", "i")))
	}},
	{method: "Select", call: func(w *workshop) (string,
		error) {
		return chosen(w.other.Select(ctx, w.query("new", "i")))
	}},
	{method: "Select", call: func(w *workshop) (string,
		error) {
		return chosen(w.other.Select(ctx, w.query("now", "i")))
	}},
	{method: "Select", call: func(w *workshop) (string, error) { // an arm that is no longer permitted
		return chosen(w.Select(ctx, strategy.Query{Session: "now", Item: "i", Category: "c",
			Arms: []strategy.ArmID{"b"}}))
	}},
	{method: "Observe", call: func(w *workshop) (string, error) { return w.observe(w.fresh) }},
	{method: "Observe", call: func(w *workshop) (string,
		error) {
		return w.observe(throughJSON(w.t, w.fresh))
	}},
	{method: "Observe", call: func(w *workshop) (string, error) { return w.observe(w.expired) }},
	{method: "Observe", call: func(w *workshop) (string,
		error) {
		return w.observe(throughJSON(w.t, w.expired))
	}},
	// two outcomes, and the end of the session of one
	{method: "ObserveAll", call: func(w *workshop) (string, error) {
		d, err := w.ObserveAll(ctx, []strategy.Outcome{
			{Choice: w.fresh, Value: -1, Confidence: 1, Source: "ann"},
			{Choice: w.expired, Value: 1, Confidence: 1},
		}, "all", "now")
		return fmt.Sprint(d), err
	}},
	{method: "Retract", call: func(w *workshop) (string, error) {
		return "",
			w.Retract(ctx, w.judged, []string{""}, "ann", "r")
	}},
	{method: "Retract", call: func(w *workshop) (string, error) {
		return "", w.Retract(ctx, throughJSON(w.t, w.judged), []string{"other"}, "", "")
	}},
	{method: "Revise", call: func(w *workshop) (string, error) { return w.revise(w.judged, 1) }},
	{method: "Revise", call: func(w *workshop) (string,
		error) {
		return w.revise(throughJSON(w.t, w.judged), 1)
	}},
	// which is dropped
	{method: "Revise", call: func(w *workshop) (string, error) { return w.revise(w.judged, 0.1) }},
	{method: "Record", call: func(w *workshop) (string, error) { return w.notify("new") }},
	// in the place of another arm
	{method: "Record", call: func(w *workshop) (string, error) { return w.notify("now") }},
	{method: "SelectIn", call: func(w *workshop) (string, error) { return w.selectIn("new", "") }},
	{
		method: "SelectIn", twice: "each choice without a session is an event",
		call: func(w *workshop) (string, error) { return w.selectIn("", "e") },
	},
	{method: "BeliefsIn", call: func(w *workshop) (string, error) {
		return asText(w.other.BeliefsIn(store.Reading(ctx, w.store), itemI))
	}},
	{method: "ObserveIn", call: func(w *workshop) (string, error) { return w.observeIn(w.fresh) }},
	{method: "ObserveIn", call: func(w *workshop) (string, error) { return w.observeIn(w.expired) }},
	{method: "CreditIn", call: func(w *workshop) (string, error) { return w.judgeIn(1) }},
	{method: "CreditIn", call: func(w *workshop) (string, error) {
		// Three reactions, two of which change shares.
		for n := range 3 {
			if text, err := w.judgeIn(n + 1); err != nil {
				return text, err
			}
		}
		return "<nil>", nil
	}},
	{method: "EndSession", call: func(w *workshop) (string, error) {
		return "",
			w.EndSession(ctx, "now")
	}},
	{method: "Refresh", call: func(w *workshop) (string, error) { return "", w.Refresh(ctx) }},
	{method: "Beliefs", call: func(w *workshop) (string,
		error) {
		return asText(w.other.Beliefs(ctx, itemI))
	}},
	{
		method: "Reset", twice: "each reset is an entry in the audit, and an event",
		call: func(w *workshop) (string, error) {
			return "", w.Reset(ctx, strategy.Reset{Category: "c", Item: "i", Actor: "ann", Reason: "r"})
		},
	},
	{
		method: "Reset", twice: "each reset is an entry in the audit, and an event",
		call: func(w *workshop) (string, error) {
			return "", w.Reset(ctx, strategy.Reset{Category: "c", Actor: "ann", Reason: "r"})
		},
	},
	{method: "Sweep", call: func(w *workshop) (string, error) {
		return "",
			w.Sweep(ctx, time.Time{})
	}},
	{method: "Distributions", call: func(w *workshop) (string,
		error) {
		return collected(w.Distributions(ctx))
	}},
	{method: "Distributions", call: func(w *workshop) (string, error) {
		return asText(itemReport(w.Learner, itemI))
	}},
	{method: "History", call: func(w *workshop) (string,
		error) {
		return collected(w.History(ctx, strategy.ChoiceFilter{}))
	}},
	{method: "Find", call: func(w *workshop) (string,
		error) {
		return asText(w.Find(ctx, "now", "i", w.clock.Now()))
	}},
	{method: "FindSession", call: func(w *workshop) (string,
		error) {
		return asText(w.FindSession(ctx, "judged", w.clock.Now()))
	}},
	{method: "Find", call: func(w *workshop) (string, error) { // and that there is none
		r, err := w.Find(ctx, "now", "unknown", w.clock.Now())
		if errors.Is(err, storetest.ErrFailed) {
			return "", err
		}
		return asText(r, nil)
	}},
	{method: "History", call: func(w *workshop) (string, error) {
		return asText(outcomes(w.Learner, itemI, 0))
	}},
	{method: "Handle", call: func(w *workshop) (string, error) {
		return "",
			w.consumer(1).Handle(ctx, w.event())
	}},
	{method: "Run", call: func(w *workshop) (string, error) {
		w.stream = &streamtest.Stream{}
		require.NoError(w.t, w.stream.Publish(ctx, w.event()))
		w.stream.Close()
		return "", w.consumer(3).Run(ctx) // which tries again by itself
	}},
}

// TestTheStoreFailsInEveryCall lets each call of the store that a method makes fail, before its
// effect and after it. The store is then as it was after some commit of the call, the first or the
// last among them; the memory agrees with the store; the same call made again leaves what it leaves
// without a failure; and what comes without an error is the true answer.
func TestTheStoreFailsInEveryCall(t *testing.T) {
	for name, cfg := range map[string]strategy.Config{
		"copy":    {Pooling: strategy.Copy{Sessions: 3}},
		"changes": strategy.Eager(strategy.Config{Pooling: strategy.Alone{}}, 0.5, 1),
	} {
		for n, f := range fallibles {
			if (name == "changes") != (n%3 == 0) && long(0, 1) == 0 {
				continue // the long form has all of them under both
			}
			t.Run(fmt.Sprint(name, " ", f.method, " ", n), func(t *testing.T) {
				t.Parallel()
				failEveryCall(t, cfg, f)
			})
		}
	}
}

func failEveryCall(t *testing.T, cfg strategy.Config, f fallible) {
	w := newWorkshop(t, cfg)
	states := []string{w.state()} // at first, and after each commit
	recording := &fragile{Store: w.kept, before: func(context.Context, store.Batch) error {
		states = append(states, w.state())
		return nil
	}}
	w.store.Store = recording
	want, err := f.call(w)
	require.NoError(t, err)
	after := w.state()
	states = append(states, after)

	last := ""
	if f.twice == "" {
		last = settled(t, cfg, f)
	}
	storetest.FailEach(func(at int, late bool) bool {
		w := newWorkshop(t, cfg)
		w.store.Fail(at, late)
		got, err := f.call(w)
		failed := w.store.Failed()
		w.store.Fail(0, false)
		where := fmt.Sprintf("call %d, after its effect: %v", at, late)
		require.Contains(t, states, w.state(), where)
		if err == nil {
			require.Equal(t, want, got, where)
		} else {
			require.ErrorIs(t, err, storetest.ErrFailed, where)
		}
		require.InDeltaSlice(t, means(t, w.again(), itemI), means(t, w.Learner, itemI), 1e-9, where)
		require.InDeltaSlice(t, means(t, w.again(), strategy.Query{Item: "new", Category: "c"}),
			means(t, w.Learner, strategy.Query{Item: "new", Category: "c"}), 1e-9, where)
		if f.twice == "" {
			_, err = f.call(w)
			require.NoError(t, err, where)
			settle(t, w)
			require.Equal(t, last, w.state(), where)
		}
		return failed
	})
}

// settle has what an outcome gives rise to made good by the next outcome.
func settle(t *testing.T, w *workshop) {
	try(t, w.Learner, w.query("next", "i"), "a", 1)
}

// settled is the state after a call without a failure and the next outcome.
func settled(t *testing.T, cfg strategy.Config, f fallible) string {
	w := newWorkshop(t, cfg)
	_, err := f.call(w)
	require.NoError(t, err)
	settle(t, w)
	return w.state()
}

// The sweep of faults covers each method of a learner and of a consumer that calls the store.
func TestEveryMethodIsMadeToFail(t *testing.T) {
	exempt := map[string]string{
		"Config":      "calls no store",
		"Counts":      "calls no store",
		"Remembered":  "is of the tests",
		"Wants":       "calls no store",
		"CreditWants": "calls no store",
	}
	tested := make(map[string]bool)
	for _, f := range fallibles {
		tested[f.method] = true
	}
	for _, of := range []reflect.Type{reflect.TypeFor[*strategy.Learner](),
		reflect.TypeFor[*attribution.Consumer]()} {
		for i := range of.NumMethod() {
			name := of.Method(i).Name
			assert.NotEqual(t, tested[name], exempt[name] != "", "%v.%s", of, name)
			delete(tested, name)
		}
	}
	assert.Empty(t, tested)
}
