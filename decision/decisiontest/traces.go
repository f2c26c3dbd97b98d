package decisiontest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/conformance"
)

// NewTraces returns a fresh, empty store that takes its time from now, keeps traces for at least an hour, and has room for
// at least 100 traces of 1 KiB with 100 verdicts each.
type NewTraces func(now func() time.Time) (decision.TraceStore, error)

// RunTraces runs the suite for stores of traces, a subtest a rule, each with a store of its own.
func RunTraces(t *testing.T, newTraces NewTraces) { conformance.Run(t, traceRules, newTraces) }

// CheckTraces runs that suite outside a test and returns all failures, joined: each begins with the name of its rule.
func CheckTraces(newTraces NewTraces) error { return conformance.Check(traceRules, newTraces) }

var traceRules = []conformance.Rule[NewTraces]{
	{Name: "a trace is read back as it was put", Check: traceReadBack},
	{Name: "a trace is put once", Check: tracePutOnce},
	{Name: "a trace without an id is refused", Check: traceWithoutID},
	{Name: "what is not there is ErrNotFound", Check: traceNotFound},
	{Name: "what is deleted is gone, with its verdicts", Check: traceDeleted},
	{Name: "traces are kept apart", Check: tracesApart},
	{Name: "a context that is done changes nothing", Check: traceDone},
	{Name: "the latest verdict holds, in any order", Check: verdictLatest},
	{Name: "of two verdicts at one time the later to come holds", Check: verdictSameTime},
	{Name: "the same verdict again changes nothing", Check: verdictAgain},
	{Name: "verdicts of others stand beside", Check: verdictsApart},
	{Name: "concurrent verdicts replace each other one by one", Check: verdictsConcurrent},
}

var (
	ctx   = context.Background()
	start = time.Date(2026, 5, 4, 3, 2, 1, 123456000, time.UTC)
)

func openTraces(t tb, newTraces NewTraces) decision.TraceStore {
	t.Helper()
	store, err := newTraces(func() time.Time { return start })
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	return store
}

func trace(id string) decision.Trace {
	return decision.Trace{
		ResponseID: id, EventID: "event", Source: "kitchen", Domain: "home", Path: decision.Heuristic,
		Text: "the oven is on", Response: "turn it off", MatchedID: "h1", CreditID: "h2",
		Success: 0.7, Confidence: 0.6, Variant: "a", At: start,
	}
}

func put(t tb, store decision.TraceStore, traces ...decision.Trace) {
	t.Helper()
	for _, trace := range traces {
		if err := store.Put(ctx, trace); err != nil {
			t.Fatalf("put: %v", err)
		}
	}
}

func wantErr(t tb, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error is %v, want %v", what, got, want)
	}
}

func traceReadBack(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	hashed := decision.Trace{ResponseID: "žluť 🐎 'x\" \n %", Path: decision.Model, Hashed: true, Text: strings.Repeat("ä", 500), At: start}
	for _, want := range []decision.Trace{trace("r"), hashed, {ResponseID: "bare"}} {
		put(t, store, want)
		got, err := store.Get(ctx, want.ResponseID)
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		if !got.At.Equal(want.At) {
			t.Errorf("its time is %v, want %v", got.At, want.At)
		}
		got.At = want.At
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func tracePutOnce(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	put(t, store, trace("r"))
	other := trace("r")
	other.Text = "something else"
	wantErr(t, "put again", store.Put(ctx, other), heed.ErrConflict)
	if got, err := store.Get(ctx, "r"); err != nil || got.Text != "the oven is on" {
		t.Errorf("got %q, %v: the first is to stay", got.Text, err)
	}
}

func traceWithoutID(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	var fault *heed.InputError
	if err := store.Put(ctx, trace("")); !errors.As(err, &fault) {
		t.Errorf("error is %v, want a *heed.InputError", err)
	}
}

func traceNotFound(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	put(t, store, trace("r"))
	_, err := store.Get(ctx, "R")
	wantErr(t, "get", err, heed.ErrNotFound)
	wantErr(t, "delete", store.Delete(ctx, "r "), heed.ErrNotFound)
	_, _, err = store.React(ctx, "", decision.Verdict{At: start})
	wantErr(t, "react", err, heed.ErrNotFound)
}

func traceDeleted(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	put(t, store, trace("r"))
	react(t, store, "r", decision.Verdict{Value: 1, At: start})
	if err := store.Delete(ctx, "r"); err != nil {
		t.Fatalf("delete: %v", err)
	}
	_, err := store.Get(ctx, "r")
	wantErr(t, "get", err, heed.ErrNotFound)
	put(t, store, trace("r"))
	if s := react(t, store, "r", decision.Verdict{Value: -1, At: start}); s.Before != (decision.Verdict{}) {
		t.Errorf("a verdict outlived its trace: %+v", s.Before)
	}
}

func tracesApart(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	for i := range 100 {
		tr := trace(fmt.Sprint("r", i))
		tr.Text = fmt.Sprint(i, strings.Repeat("x", 800))
		put(t, store, tr)
	}
	for i := range 100 {
		got, err := store.Get(ctx, fmt.Sprint("r", i))
		if err != nil || !strings.HasPrefix(got.Text, fmt.Sprint(i, "x")) {
			t.Errorf("trace %d: %.10q, %v", i, got.Text, err)
		}
	}
}

func traceDone(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	put(t, store, trace("r"))
	done, cancel := context.WithCancel(ctx)
	cancel()
	wantErr(t, "put", store.Put(done, trace("new")), context.Canceled)
	_, err := store.Get(done, "r")
	wantErr(t, "get", err, context.Canceled)
	wantErr(t, "delete", store.Delete(done, "r"), context.Canceled)
	_, _, err = store.React(done, "r", decision.Verdict{Value: 1, At: start})
	wantErr(t, "react", err, context.Canceled)
	if _, err := store.Get(ctx, "new"); err == nil {
		t.Errorf("put has had an effect")
	}
	if s := react(t, store, "r", decision.Verdict{Value: -1, At: start}); s.Before != (decision.Verdict{}) {
		t.Errorf("react has had an effect")
	}
}

func react(t tb, store decision.TraceStore, id string, v decision.Verdict) decision.Standing {
	t.Helper()
	tr, s, err := store.React(ctx, id, v)
	if err != nil {
		t.Fatalf("react: %v", err)
	}
	if tr.ResponseID != id {
		t.Errorf("react returned the trace of %q, want that of %q", tr.ResponseID, id)
	}
	s.Now.At, s.Before.At = s.Now.At.UTC(), s.Before.At.UTC()
	return s
}

func wantStanding(t tb, got decision.Standing, now, before decision.Verdict) {
	t.Helper()
	same := func(a, b decision.Verdict) bool {
		at := a.At.Equal(b.At)
		a.At, b.At = time.Time{}, time.Time{}
		return at && a == b
	}
	if !same(got.Now, now) || !same(got.Before, before) {
		t.Errorf("got %+v, want %+v before %+v", got, now, before)
	}
}

// said is a verdict of Ann's, so many minutes after the start.
func said(value float64, minutes int) decision.Verdict {
	return decision.Verdict{Person: "Ann", Source: "user_explicit", Value: value, At: start.Add(time.Duration(minutes) * time.Minute)}
}

func verdictLatest(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	put(t, store, trace("r"))
	wantStanding(t, react(t, store, "r", said(1, 1)), said(1, 1), decision.Verdict{})
	wantStanding(t, react(t, store, "r", said(-1, 3)), said(-1, 3), said(1, 1))
	wantStanding(t, react(t, store, "r", said(0.5, 2)), said(-1, 3), said(1, 1))
	wantStanding(t, react(t, store, "r", said(-1, 4)), said(-1, 4), said(-1, 3))
}

func verdictSameTime(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	put(t, store, trace("r"))
	react(t, store, "r", said(1, 1))
	wantStanding(t, react(t, store, "r", said(-1, 1)), said(-1, 1), said(1, 1))
}

func verdictAgain(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	put(t, store, trace("r"))
	react(t, store, "r", said(1, 1))
	react(t, store, "r", said(-1, 2))
	for range 3 {
		wantStanding(t, react(t, store, "r", said(-1, 2)), said(-1, 2), said(1, 1))
	}
}

func verdictsApart(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	put(t, store, trace("r"), trace("other"))
	react(t, store, "r", said(1, 1))
	for _, v := range []decision.Verdict{
		{Person: "Bob", Source: "user_explicit"}, {Person: "Ann", Source: "dev"}, {Person: "Ann", Source: "user_explicit", Target: "rule"},
		{Person: "Annuser", Source: "_explicit"}, {},
	} {
		v.Value, v.At = -1, start
		wantStanding(t, react(t, store, "r", v), v, decision.Verdict{})
	}
	wantStanding(t, react(t, store, "other", said(-1, 0)), said(-1, 0), decision.Verdict{})
	wantStanding(t, react(t, store, "r", said(1, 2)), said(1, 2), said(1, 1))
}

func verdictsConcurrent(t tb, newTraces NewTraces) {
	store := openTraces(t, newTraces)
	put(t, store, trace("r"))
	const n = 64
	replaced := make([]decision.Standing, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			_, s, err := store.React(ctx, "r", said(1-float64(i)/n, 1))
			if err != nil {
				t.Errorf("react: %v", err)
			}
			replaced[i] = s
		})
	}
	all.Wait()
	seen := make(map[float64]int)
	for _, s := range replaced {
		seen[s.Before.Value]++
	}
	for value, times := range seen {
		if times != 1 {
			t.Errorf("the verdict %v was replaced %d times", value, times)
		}
	}
}
