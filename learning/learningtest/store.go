package learningtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/learning"
)

// NewStore returns a fresh, empty store.
type NewStore func() (learning.Store, error)

// RunStore runs the suite for stores, a subtest a rule, each with a store of its own.
func RunStore(t *testing.T, newStore NewStore) { conformance.Run(t, storeRules, newStore) }

// CheckStore runs the suite outside a test and returns all failures, joined: each begins with the name of its rule.
func CheckStore(newStore NewStore) error { return conformance.Check(storeRules, newStore) }

type tb = conformance.TB

var storeRules = []conformance.Rule[NewStore]{
	{Name: "what is put is got", Check: putGet},
	{Name: "what is unknown is ErrNotFound", Check: unknown},
	{Name: "a revision is put once", Check: revisions},
	{Name: "of concurrent changes one wins", Check: concurrentPuts},
	{Name: "what is not valid is refused", Check: invalidHeuristics},
	{Name: "what is deleted is gone", Check: deletes},
	{Name: "all are listed by id", Check: lists},
	{Name: "a loop may call the store and end early", Check: loops},
	{Name: "a context that is done changes nothing", Check: doneContext},
}

var ctx = context.Background()

func open(t tb, newStore NewStore) learning.Store {
	t.Helper()
	s, err := newStore()
	if err != nil {
		t.Fatalf("the store can't be made: %v", err)
	}
	return s
}

func full() learning.Heuristic {
	return learning.Heuristic{
		ID: "heuristic/1 — ✓", Domain: "home", Pack: "kitchen", Condition: "the oven is on\nand nobody is in", Initial: 0.45,
		Constraints: learning.Constraints{Lock: learning.Unlocked, Range: learning.Range{Floor: 0.2, Ceiling: 0.9}, FeedbackWeight: 0.5},
		CreatedAt:   time.Date(2026, 3, 14, 15, 9, 26, 535897932, time.FixedZone("", 3600)),
	}
}

func put(t tb, s learning.Store, h learning.Heuristic) learning.Heuristic {
	t.Helper()
	stored, err := s.Put(ctx, h)
	if err != nil {
		t.Fatalf("Put of %+v: %v", h, err)
	}
	return stored
}

func get(t tb, s learning.Store, id string) learning.Heuristic {
	t.Helper()
	h, err := s.Get(ctx, id)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return h
}

// same compares heuristics, times to the microsecond.
func same(a, b learning.Heuristic) bool {
	if evidence.InstantOf(a.CreatedAt) != evidence.InstantOf(b.CreatedAt) {
		return false
	}
	a.CreatedAt, b.CreatedAt = time.Time{}, time.Time{}
	return a == b
}

func putGet(t tb, newStore NewStore) {
	s := open(t, newStore)
	for _, h := range []learning.Heuristic{full(), {ID: "bare"}, {ID: strings.Repeat("é", evidence.MaxText/2)}} {
		stored := put(t, s, h)
		if stored.Revision == 0 {
			t.Errorf("Put returned the revision 0, which is that of what is new")
		}
		want := h
		want.Revision = stored.Revision
		if got := get(t, s, h.ID); !same(got, want) || !same(stored, want) {
			t.Errorf("put %+v, was given back %+v, and got %+v", want, stored, got)
		}
		if at := get(t, s, h.ID).CreatedAt; at.Location() != time.UTC {
			t.Errorf("a time came back in %v, and not in UTC", at.Location())
		}
	}
}

func unknown(t tb, newStore NewStore) {
	s := open(t, newStore)
	put(t, s, full())
	for _, id := range []string{"", "other", "HEURISTIC/1 — ✓", "heuristic/1 — ✓ "} {
		if _, err := s.Get(ctx, id); !errors.Is(err, heed.ErrNotFound) {
			t.Errorf("Get of %q: %v, and not ErrNotFound", id, err)
		}
		if err := s.Delete(ctx, id); !errors.Is(err, heed.ErrNotFound) {
			t.Errorf("Delete of %q: %v, and not ErrNotFound", id, err)
		}
	}
}

func conflicts(t tb, s learning.Store, what string, h learning.Heuristic) {
	t.Helper()
	if _, err := s.Put(ctx, h); !errors.Is(err, heed.ErrConflict) {
		t.Errorf("%s: %v, and not ErrConflict", what, err)
	}
}

func revisions(t tb, newStore NewStore) {
	s := open(t, newStore)
	h := full()
	h.Revision = 1
	conflicts(t, s, "a change of what is not there", h)
	first := put(t, s, full())
	conflicts(t, s, "a second one of revision 0", full())
	changed := first
	changed.Pack = "garden"
	second := put(t, s, changed)
	if second.Revision == first.Revision {
		t.Errorf("a change left the revision at %d", second.Revision)
	}
	conflicts(t, s, "a change of what was changed since", first)
	if got := get(t, s, first.ID); !same(got, second) {
		t.Errorf("after a conflict there is %+v, and was %+v", got, second)
	}
}

func concurrentPuts(t tb, newStore NewStore) {
	s := open(t, newStore)
	put(t, s, learning.Heuristic{ID: "h"})
	const workers, rounds = 8, 25
	var won atomic.Int64
	var wait sync.WaitGroup
	failures := make(chan error, workers*rounds)
	for range workers {
		wait.Go(func() {
			for range rounds {
				h, err := s.Get(ctx, "h")
				if err == nil {
					h.Condition += "x"
					_, err = s.Put(ctx, h)
				}
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, heed.ErrConflict):
					failures <- err
				}
			}
		})
	}
	wait.Wait()
	close(failures)
	for err := range failures {
		t.Errorf("a concurrent change: %v", err)
	}
	if n := len(get(t, s, "h").Condition); int64(n) != won.Load() {
		t.Errorf("%d changes were taken, and %d are there", won.Load(), n)
	}
}

func invalidHeuristics(t tb, newStore NewStore) {
	s := open(t, newStore)
	for field, spoil := range map[string]func(*learning.Heuristic){
		"ID":                         func(h *learning.Heuristic) { h.ID = "" },
		"Domain":                     func(h *learning.Heuristic) { h.Domain = "a\x00b" },
		"Condition":                  func(h *learning.Heuristic) { h.Condition = "\xff" },
		"Pack":                       func(h *learning.Heuristic) { h.Pack = strings.Repeat("x", evidence.MaxText+1) },
		"Initial":                    func(h *learning.Heuristic) { h.Initial = math.NaN() },
		"Constraints.Range":          func(h *learning.Heuristic) { h.Constraints.Range = learning.Range{Floor: 0.5, Ceiling: 0.4} },
		"Constraints.FeedbackWeight": func(h *learning.Heuristic) { h.Constraints.FeedbackWeight = 0.1 },
		"Constraints.Lock":           func(h *learning.Heuristic) { h.Constraints.Lock = "half" },
	} {
		h := full()
		spoil(&h)
		var fault *heed.InputError
		if _, err := s.Put(ctx, h); !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("a fault of %s: %v", field, err)
		}
	}
	for h, err := range s.All(ctx) {
		t.Errorf("after refusals there is %+v, %v", h, err)
	}
}

func deletes(t tb, newStore NewStore) {
	s := open(t, newStore)
	h := put(t, s, full())
	if err := s.Delete(ctx, h.ID); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if _, err := s.Get(ctx, h.ID); !errors.Is(err, heed.ErrNotFound) {
		t.Errorf("Get of what was deleted: %v, and not ErrNotFound", err)
	}
	conflicts(t, s, "a change of what was deleted", h)
	put(t, s, full())
}

func lists(t tb, newStore NewStore) {
	s := open(t, newStore)
	ids := []string{"b", "a", "é", "Z", "a ", "10", "9"}
	for _, id := range ids {
		put(t, s, learning.Heuristic{ID: id, Condition: "of " + id})
	}
	slices.Sort(ids)
	var listed []string
	for h, err := range s.All(ctx) {
		if err != nil {
			t.Fatalf("All: %v", err)
		}
		if h.Condition != "of "+h.ID || h.Revision == 0 {
			t.Errorf("listed is %+v", h)
		}
		listed = append(listed, h.ID)
	}
	if !slices.Equal(listed, ids) {
		t.Errorf("listed are %q, and not %q", listed, ids)
	}
}

func loops(t tb, newStore NewStore) {
	s := open(t, newStore)
	for i := range 10 {
		put(t, s, learning.Heuristic{ID: fmt.Sprint(i)})
	}
	n := 0
	for h, err := range s.All(ctx) {
		if err != nil {
			t.Fatalf("All: %v", err)
		}
		put(t, s, h)
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("the loop ran %d times", n)
	}
}

func doneContext(t tb, newStore NewStore) {
	s := open(t, newStore)
	put(t, s, full())
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, got := s.Get(done, full().ID)
	_, stored := s.Put(done, learning.Heuristic{ID: "other"})
	for what, err := range map[string]error{"Get": got, "Put": stored, "Delete": s.Delete(done, full().ID)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that is done: %v", what, err)
		}
	}
	n := 0
	for _, err := range s.All(done) {
		if n++; !errors.Is(err, context.Canceled) {
			t.Errorf("All with a context that is done yields %v", err)
		}
	}
	if n != 1 {
		t.Errorf("All with a context that is done yields %d times", n)
	}
	if _, err := s.Get(ctx, "other"); !errors.Is(err, heed.ErrNotFound) {
		t.Errorf("Put with a context that is done has stored: %v", err)
	}
	get(t, s, full().ID)
}
