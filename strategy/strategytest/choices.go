package strategytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/strategy"
)

// NewChoices returns a fresh, empty store of choices that takes its time from now, and keeps at least a thousand records,
// each for at least a day.
type NewChoices func(now func() time.Time) (strategy.Choices, error)

// RunChoices runs the suite of [strategy.Choices], a subtest a rule, each with a store of its own:
//
//	func TestChoices(t *testing.T) {
//		strategytest.RunChoices(t, func(now func() time.Time) (strategy.Choices, error) {
//			return mystore.OpenChoices(t.TempDir(), now)
//		})
//	}
func RunChoices(t *testing.T, newChoices NewChoices) { conformance.Run(t, choicesRules, newChoices) }

// CheckChoices runs the suite outside a test and returns all failures, joined: each begins with the name of its rule.
func CheckChoices(newChoices NewChoices) error { return conformance.Check(choicesRules, newChoices) }

var choicesRules = []conformance.Rule[NewChoices]{
	{Name: "a choice is kept as it was, and pending", Check: keptAsItWas},
	{Name: "texts may be of any kind, or empty", Check: anyText},
	{Name: "what is not known is not found", Check: notFound},
	{Name: "a choice is added once", Check: addedOnce},
	{Name: "a filter lets pass what has all that it names", Check: filtered},
	{Name: "the newest are listed first, and no more than the limit", Check: newestFirst},
	{Name: "a choice settles, and its stage before is told", Check: settles},
	{Name: "the last result is kept, in whatever order they come", Check: lastResult},
	{Name: "a choice expires once, and only while it is pending", Check: expiresOnce},
	{Name: "a session ends for one learner", Check: sessionEnds},
	{Name: "concurrent calls come to one result", Check: concurrently},
	{Name: "what goes in and out is copied", Check: choicesCopied},
	{Name: "a loop may end early and call the store", Check: choicesLoops},
	{Name: "a context that is done changes nothing", Check: choicesContext},
}

// choicesStart is the time at which the suite's clock stands.
var choicesStart = time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC)

var background = context.Background()

// A choicesFixture is a store under test.
type choicesFixture struct {
	tb
	store strategy.Choices
}

func newChoicesFixture(t tb, newChoices NewChoices) *choicesFixture {
	t.Helper()
	store, err := newChoices(func() time.Time { return choicesStart.Add(time.Hour) })
	if err != nil {
		t.Fatalf("the store can't be made: %v", err)
	}
	return &choicesFixture{t, store}
}

// made is what a choice of the suite is made of; the rest is always the same.
type made struct {
	id                                      byte
	learner, session, item, category, where string
	at                                      time.Duration
}

func idOf(id byte) strategy.ChoiceID { return strategy.ChoiceID{6: 0x40, 15: id} }

// choice returns a choice as a learner would have made it.
func (f *choicesFixture) choice(m made) (c strategy.Choice) {
	f.Helper()
	text, err := json.Marshal(map[string]any{
		"id": idOf(m.id), "arm": "arm", "learner": m.learner, "session": m.session, "item": m.item, "category": m.category,
		"context": m.where, "at": choicesStart.Add(m.at),
		"parameters": []map[string]any{{"name": "n", "value": "1"}, {"name": "m", "value": ""}},
		"draws": []map[string]any{
			{"arm": "arm", "sample": 0.1 + 0.2, "bonus": 0.1, "belief": map[string]any{"level": map[string]any{"Alpha": 1.5, "Beta": 3}, "strength": 7}},
			{"arm": "other", "sample": 0.1, "belief": map[string]any{"level": map[string]any{"Alpha": 1e-3, "Beta": 1e6}}},
		},
	})
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		f.Fatalf("a choice can't be made: %v", err)
	}
	return c
}

// add makes a choice and adds it.
func (f *choicesFixture) add(m made) strategy.Choice {
	f.Helper()
	c := f.choice(m)
	if err := f.store.Add(background, c); err != nil {
		f.Fatalf("Add: %v", err)
	}
	return c
}

func (f *choicesFixture) get(id byte) strategy.Record {
	f.Helper()
	r, err := f.store.Get(background, idOf(id))
	if err != nil {
		f.Fatalf("Get: %v", err)
	}
	return r
}

func (f *choicesFixture) settle(id byte, r strategy.Result, want strategy.Stage) {
	f.Helper()
	before, err := f.store.Settle(background, idOf(id), r)
	if err != nil || before != want {
		f.Errorf("Settle tells that the choice was %q (error %v), and it was %q", before, err, want)
	}
}

func (f *choicesFixture) expire(id byte, want bool) {
	f.Helper()
	expired, err := f.store.Expire(background, idOf(id))
	if err != nil || expired != want {
		f.Errorf("Expire returns %v (error %v), and not %v", expired, err, want)
	}
}

func (f *choicesFixture) end(learner, session string) {
	f.Helper()
	if err := f.store.EndSession(background, learner, session); err != nil {
		f.Errorf("EndSession: %v", err)
	}
}

func (f *choicesFixture) list(filter strategy.ChoiceFilter) (records []strategy.Record) {
	f.Helper()
	for r, err := range f.store.List(background, filter) {
		if err != nil {
			f.Fatalf("List ended with %v", err)
		}
		records = append(records, r)
	}
	return records
}

// same compares a record with what it should be, as JSON, which has all of a choice that can be seen.
func (f *choicesFixture) same(got, want strategy.Record) {
	f.Helper()
	if g, w := jsonOf(got), jsonOf(want); g != w {
		f.Errorf("a record is\n%s\nand should be\n%s", g, w)
	}
}

func jsonOf(r strategy.Record) string {
	text, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func ids(records []strategy.Record) (all []byte) {
	for _, r := range records {
		all = append(all, r.Choice.ID[15])
	}
	return all
}

func resultAt(id string, at time.Duration) strategy.Result {
	return strategy.Result{
		ID: id, Value: -0.1, Confidence: 0.7, Channel: "attribution", Source: "ann", At: choicesStart.Add(at),
	}
}

func keptAsItWas(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	c := f.add(made{id: 1, learner: "learner", session: "session", item: "item", category: "category", where: "context", at: 1234 * time.Microsecond})
	want := strategy.Record{Choice: c, Stage: strategy.Pending}
	got := f.get(1)
	f.same(got, want)
	if !got.Choice.At.Equal(c.At) || got.Choice.Learner() != "learner" {
		t.Errorf("it is of %v by %q, and was of %v by %q", got.Choice.At, got.Choice.Learner(), c.At, "learner")
	}
	for _, r := range f.list(strategy.ChoiceFilter{}) {
		f.same(r, want)
	}
	result := resultAt("result", time.Second)
	f.settle(1, result, strategy.Pending)
	f.end("learner", "session")
	f.same(f.get(1), strategy.Record{Choice: c, Stage: strategy.Observed, Result: &result, Ended: true})
}

func anyText(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	texts := []string{"", " ", "'", `"`, `\`, "%", "_", "a/b", "; --", "\n\t", "Ünïcødé", "日本語", "🦉", "a", "A", strings.Repeat("x", 1024)}
	for i, text := range texts {
		c := f.add(made{id: byte(i), learner: "learner" + text, session: text, item: text, category: text, where: text, at: time.Duration(i) * time.Microsecond})
		f.same(f.get(byte(i)), strategy.Record{Choice: c, Stage: strategy.Pending})
		result := strategy.Result{ID: text, Channel: text, Source: text, At: choicesStart}
		f.settle(byte(i), result, strategy.Pending)
		f.same(f.get(byte(i)), strategy.Record{Choice: c, Stage: strategy.Observed, Result: &result})
	}
	for i, text := range texts[1:] {
		for _, filter := range []strategy.ChoiceFilter{
			{Session: text}, {Item: text}, {Category: text}, {Context: text}, {Learner: "learner" + text},
			{Learner: "learner" + text, Session: text, Item: text},
		} {
			if got := ids(f.list(filter)); !slices.Equal(got, []byte{byte(i + 1)}) {
				t.Errorf("%+q lets %v pass", filter, got)
			}
		}
	}
}

func notFound(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	for range 2 {
		if r, err := f.store.Get(background, idOf(9)); !errors.Is(err, heed.ErrNotFound) {
			t.Errorf("Get returns %+v, %v", r, err)
		}
		if before, err := f.store.Settle(background, idOf(9), resultAt("", 0)); !errors.Is(err, heed.ErrNotFound) || before != "" {
			t.Errorf("Settle returns %q, %v", before, err)
		}
		if expired, err := f.store.Expire(background, idOf(9)); !errors.Is(err, heed.ErrNotFound) || expired {
			t.Errorf("Expire returns %v, %v", expired, err)
		}
		f.end("nobody", "nowhere")
		if got := f.list(strategy.ChoiceFilter{Learner: "nobody"}); len(got) > 0 {
			t.Errorf("%v are listed", got)
		}
		f.add(made{id: 1, learner: "l"}) // which is another
	}
}

func addedOnce(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	c := f.add(made{id: 1, learner: "l", session: "s", item: "i"})
	f.add(made{id: 1, learner: "l", session: "another", item: "another"})
	f.same(f.get(1), strategy.Record{Choice: c, Stage: strategy.Pending})
	result := resultAt("", 0)
	f.settle(1, result, strategy.Pending)
	f.end("l", "s")
	f.add(made{id: 1, learner: "l", session: "s", item: "i"})
	want := strategy.Record{Choice: c, Stage: strategy.Observed, Result: &result, Ended: true}
	f.same(f.get(1), want)
	if got := f.list(strategy.ChoiceFilter{}); len(got) != 1 {
		t.Errorf("%d are listed after one was added three times", len(got))
	}
	for _, filter := range []strategy.ChoiceFilter{{Session: "another"}, {Item: "another"}} {
		if got := f.list(filter); len(got) > 0 {
			t.Errorf("%+v lets pass what was never kept: %v", filter, got)
		}
	}
}

// filtered asks for each property alone, and for random sets of them, of records that differ in all.
func filtered(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	rng := rand.New(rand.NewPCG(1, 2))
	one := func(what string) string { return fmt.Sprint(what, rng.IntN(3)) }
	var records []strategy.Record
	for i := range 80 {
		c := f.add(made{
			id: byte(i), learner: one("l"), session: one("s"), item: one("i"), category: one("c"), where: one("x"),
			at: time.Duration(rng.IntN(20)) * time.Second,
		})
		switch rng.IntN(3) {
		case 0:
			f.settle(byte(i), resultAt("", 0), strategy.Pending)
		case 1:
			f.expire(byte(i), true)
		}
		records = append(records, strategy.Record{Choice: c, Stage: f.get(byte(i)).Stage})
	}
	slices.SortFunc(records, strategy.Record.Compare)
	set := []func(*strategy.ChoiceFilter){
		func(q *strategy.ChoiceFilter) { q.Learner = one("l") },
		func(q *strategy.ChoiceFilter) { q.Session = one("s") },
		func(q *strategy.ChoiceFilter) { q.Item = one("i") },
		func(q *strategy.ChoiceFilter) { q.Category = one("c") },
		func(q *strategy.ChoiceFilter) { q.Context = one("x") },
		func(q *strategy.ChoiceFilter) {
			q.Stage = []strategy.Stage{strategy.Pending, strategy.Observed, strategy.Expired}[rng.IntN(3)]
		},
		func(q *strategy.ChoiceFilter) { q.Since = choicesStart.Add(time.Duration(rng.IntN(20)) * time.Second) },
		func(q *strategy.ChoiceFilter) { q.Until = choicesStart.Add(time.Duration(rng.IntN(20)) * time.Second) },
		func(q *strategy.ChoiceFilter) { q.Limit = 1 + rng.IntN(30) },
	}
	for round := range 80 {
		var q strategy.ChoiceFilter
		for i := range set {
			if i == round%10 || round >= 30 && rng.IntN(3) == 0 {
				set[i](&q)
			}
		}
		var want []byte
		for _, r := range records {
			if q.Passes(r) && (q.Limit == 0 || len(want) < q.Limit) {
				want = append(want, r.Choice.ID[15])
			}
		}
		if got := ids(f.list(q)); !slices.Equal(got, want) {
			t.Fatalf("%+v lets %v pass, and should %v", q, got, want)
		}
	}
}

func newestFirst(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	// The time is by the choice's own clock, and not that of its coming; of one moment the id decides.
	for _, m := range []made{{id: 3, at: 2}, {id: 1, at: 3}, {id: 7, at: 1}, {id: 8, at: 2}, {id: 5, at: 2}, {id: 9, at: 0}, {id: 2, at: 4}} {
		m.learner, m.session, m.item, m.at = "l", "s", "i", m.at*time.Microsecond
		f.add(m)
	}
	want := []byte{2, 1, 8, 5, 3, 7, 9}
	for _, q := range []strategy.ChoiceFilter{{}, {Learner: "l"}, {Learner: "l", Session: "s"}, {Item: "i"}, {Learner: "l", Session: "s", Item: "i"}} {
		for limit := range 9 {
			q.Limit = limit
			most := len(want)
			if limit > 0 {
				most = min(limit, most)
			}
			if got := ids(f.list(q)); !slices.Equal(got, want[:most]) {
				t.Errorf("%+v lists %v, and should %v", q, got, want[:most])
			}
		}
	}
	q := strategy.ChoiceFilter{Since: choicesStart.Add(2 * time.Microsecond), Until: choicesStart.Add(4 * time.Microsecond)}
	if got := ids(f.list(q)); !slices.Equal(got, []byte{1, 8, 5, 3}) {
		t.Errorf("from the second microsecond until before the fourth %v are listed", got)
	}
}

func settles(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	result := resultAt("r", 0)
	for id, expired := range []bool{false, true} {
		c := f.add(made{id: byte(id), learner: "l"})
		f.add(made{id: byte(10 + id), learner: "l"})
		before := strategy.Pending
		if expired {
			f.expire(byte(id), true)
			before = strategy.Expired
		}
		for range 3 {
			f.settle(byte(id), result, before)
			f.same(f.get(byte(id)), strategy.Record{Choice: c, Stage: strategy.Observed, Result: &result})
			before = strategy.Observed
		}
		if got := f.get(byte(10 + id)); got.Stage != strategy.Pending || got.Result != nil {
			t.Errorf("another choice has become %q with %v", got.Stage, got.Result)
		}
	}
}

// lastResult settles a choice by the same results in every order.
func lastResult(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	results := []strategy.Result{resultAt("z", 0), resultAt("a", time.Microsecond), resultAt("b", time.Microsecond), resultAt("", time.Microsecond)}
	want := results[2] // of one moment the greater id
	id := byte(0)
	permute(results, func(order []strategy.Result) {
		c := f.add(made{id: id, learner: "l"})
		before := strategy.Pending
		for _, r := range order {
			f.settle(id, r, before)
			before = strategy.Observed
		}
		f.same(f.get(id), strategy.Record{Choice: c, Stage: strategy.Observed, Result: &want})
		id++
	})
}

// permute calls a function with each order of some values.
func permute[T any](values []T, do func([]T)) {
	var from func(n int)
	from = func(n int) {
		if n == len(values) {
			do(values)
			return
		}
		for i := n; i < len(values); i++ {
			values[n], values[i] = values[i], values[n]
			from(n + 1)
			values[n], values[i] = values[i], values[n]
		}
	}
	values = slices.Clone(values)
	from(0)
}

func expiresOnce(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	c := f.add(made{id: 1, learner: "l"})
	f.expire(1, true)
	f.expire(1, false)
	f.same(f.get(1), strategy.Record{Choice: c, Stage: strategy.Expired})
	result := resultAt("late", 0)
	f.settle(1, result, strategy.Expired)
	f.expire(1, false)
	f.same(f.get(1), strategy.Record{Choice: c, Stage: strategy.Observed, Result: &result})
	for stage, want := range map[strategy.Stage]int{strategy.Pending: 0, strategy.Observed: 1, strategy.Expired: 0} {
		if got := f.list(strategy.ChoiceFilter{Stage: stage}); len(got) != want {
			t.Errorf("%d records are %s, and should be %d", len(got), stage, want)
		}
	}
}

func sessionEnds(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	all := []made{
		{id: 0, learner: "l", session: "s"}, {id: 1, learner: "l", session: "s", item: "i", at: time.Second}, {id: 2, learner: "l", session: "t"},
		{id: 3, learner: "m", session: "s"}, {id: 4, learner: "l"}, {id: 5, learner: "ls"},
	}
	for _, m := range all {
		f.add(m)
	}
	f.expire(1, true)
	f.end("l", "s")
	f.end("l", "s")
	f.add(made{id: 6, learner: "l", session: "s"}) // which begins anew
	for id, want := range []bool{true, true, false, false, false, false, false} {
		got := f.get(byte(id))
		if got.Ended != want {
			t.Errorf("choice %d has ended: %v, after session s of learner l was", id, got.Ended)
		}
		if wasExpired := id == 1; wasExpired != (got.Stage == strategy.Expired) {
			t.Errorf("choice %d is %s", id, got.Stage)
		}
	}
	for _, r := range f.list(strategy.ChoiceFilter{Learner: "l", Session: "s"}) {
		if want := r.Choice.ID[15] != 6; r.Ended != want {
			t.Errorf("choice %d is listed as ended: %v", r.Choice.ID[15], r.Ended)
		}
	}
	f.settle(0, resultAt("", 0), strategy.Pending)
	if r := f.get(0); !r.Ended || r.Stage != strategy.Observed {
		t.Errorf("settled after the end of its session, a choice is %q, ended: %v", r.Stage, r.Ended)
	}
}

// concurrently lets many callers add, settle and expire the same choice at the same time; of every second one all expire
// it, and it is settled afterwards.
func concurrently(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	const callers, choices = 8, 20
	last := resultAt(fmt.Sprint(callers-2), 0)
	for i := range byte(choices) {
		var mu sync.Mutex
		var failures []error
		var expired, first, afterExpiry int
		settle := func(caller int) {
			before, err := f.store.Settle(background, idOf(i), resultAt(fmt.Sprint(caller), 0))
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, err)
			if before != strategy.Observed {
				first++
			}
			if before == strategy.Expired {
				afterExpiry++
			}
		}
		begin := make(chan struct{})
		var done sync.WaitGroup
		for caller := range callers {
			done.Go(func() {
				<-begin
				err := f.store.Add(background, f.choice(made{id: i, learner: "l", item: "i"}))
				for _, err := range f.store.List(background, strategy.ChoiceFilter{Item: "i", Limit: 3}) {
					mu.Lock()
					failures = append(failures, err)
					mu.Unlock()
				}
				mu.Lock()
				failures = append(failures, err)
				mu.Unlock()
				if i%2 == 0 && caller%2 == 0 {
					settle(caller)
					return
				}
				did, err := f.store.Expire(background, idOf(i))
				mu.Lock()
				defer mu.Unlock()
				if failures = append(failures, err); did {
					expired++
				}
			})
		}
		close(begin)
		done.Wait()
		if i%2 == 1 {
			settle(callers - 2)
		}
		if err := errors.Join(failures...); err != nil {
			t.Fatalf("%v", err)
		}
		if r := f.get(i); r.Result == nil || jsonOf(strategy.Record{Result: r.Result}) != jsonOf(strategy.Record{Result: &last}) || r.Stage != strategy.Observed {
			t.Errorf("a choice is %q with %+v, and should be observed with %+v", r.Stage, r.Result, last)
		}
		if first != 1 || expired != afterExpiry {
			t.Errorf("a choice was first settled %d times, expired %d times and was settled after that %d times", first, expired, afterExpiry)
		}
	}
	if got := f.list(strategy.ChoiceFilter{}); len(got) != choices {
		t.Errorf("%d choices are listed of %d that were added by %d callers each", len(got), choices, callers)
	}
}

func choicesCopied(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	f.add(made{id: 1, learner: "l", item: "i"})
	f.settle(1, resultAt("r", 0), strategy.Pending)
	want := jsonOf(f.get(1))
	spoil := func(r strategy.Record) {
		if r.Result == nil {
			t.Fatalf("an observed choice has no result")
		}
		r.Result.Value, r.Result.ID = 1, "spoilt"
	}
	spoil(f.get(1))
	for _, r := range f.list(strategy.ChoiceFilter{}) {
		spoil(r)
	}
	for _, r := range f.list(strategy.ChoiceFilter{Item: "i"}) {
		spoil(r)
	}
	if got := jsonOf(f.get(1)); got != want {
		t.Errorf("a caller changed what the store holds from\n%s\nto\n%s", want, got)
	}
}

func choicesLoops(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	for id := range byte(10) {
		f.add(made{id: id, learner: "l", session: "s", item: "i", at: time.Duration(id) * time.Second})
	}
	for _, q := range []strategy.ChoiceFilter{{}, {Stage: strategy.Pending}, {Item: "i"}, {Learner: "l", Session: "s"}} {
		seen := 0
		for range f.store.List(background, q) {
			if seen++; seen == 3 {
				break
			}
		}
		if seen != 3 {
			t.Errorf("a loop over 10 was left after %d, and not 3", seen)
		}
		seen = 0
		list := f.store.List(background, q)
		for r, err := range list {
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			seen++
			id := r.Choice.ID[15]
			f.get(id)
			if _, err := f.store.Settle(background, r.Choice.ID, resultAt("", 0)); err != nil {
				t.Fatalf("Settle in a loop: %v", err)
			}
			f.add(made{id: id + 100, learner: "m", at: -time.Hour})
		}
		if seen < 10 && q.Stage == "" {
			t.Errorf("a loop over 10 saw %d", seen)
		}
		if again := drain(list); again < 10 && q.Stage == "" {
			t.Errorf("begun again, the loop saw %d", again)
		}
	}
	if got := f.list(strategy.ChoiceFilter{Stage: strategy.Observed, Learner: "l"}); len(got) != 10 {
		t.Errorf("%d of 10 that were settled in a loop are observed", len(got))
	}
}

func drain(list iter.Seq2[strategy.Record, error]) (n int) {
	for range list {
		n++
	}
	return n
}

func choicesContext(t tb, newChoices NewChoices) {
	f := newChoicesFixture(t, newChoices)
	f.add(made{id: 1, learner: "l", session: "s"})
	want := jsonOf(f.get(1))
	cause := errors.New("the suite's cause")
	for _, cancelled := range []bool{true, false} {
		ctx, cancel := context.WithDeadline(background, choicesStart.Add(-time.Hour)) // long over
		reason := context.DeadlineExceeded
		if cancelled {
			cancel()
			var stop context.CancelCauseFunc
			ctx, stop = context.WithCancelCause(background)
			stop(cause)
			reason = context.Canceled
		}
		check := func(what string, err error) {
			if !errors.Is(err, reason) && !(cancelled && errors.Is(err, cause)) {
				t.Errorf("%s with a context that is done returns %v", what, err)
			}
		}
		check("Add", f.store.Add(ctx, f.choice(made{id: 2, learner: "l"})))
		_, err := f.store.Get(ctx, idOf(1))
		check("Get", err)
		_, err = f.store.Settle(ctx, idOf(1), resultAt("", 0))
		check("Settle", err)
		_, err = f.store.Expire(ctx, idOf(1))
		check("Expire", err)
		check("EndSession", f.store.EndSession(ctx, "l", "s"))
		n := 0
		for _, err := range f.store.List(ctx, strategy.ChoiceFilter{}) {
			check("List", err)
			n++
		}
		if n != 1 {
			t.Errorf("List with a context that is done yields %d times, and not its error alone", n)
		}
		cancel()
	}
	if got := jsonOf(f.get(1)); got != want {
		t.Errorf("with a context that is done\n%s\nwas changed to\n%s", want, got)
	}
	if got := f.list(strategy.ChoiceFilter{}); len(got) != 1 {
		t.Errorf("%d are listed, and not the one that was added in time", len(got))
	}
}
