package patternstest

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/patterns"
)

var errorRules = []conformance.Rule[NewErrorStore]{
	{Name: "an error is read back", Check: errorReadsBack},
	{Name: "errors come in the order in which they were added", Check: errorOrder},
	{Name: "an id counts once", Check: errorOnce},
	{Name: "each error is resolved by its id", Check: errorResolved},
	{Name: "an error that is missing is ErrNotFound", Check: errorMissing},
	{Name: "a task is forgotten, and no other", Check: errorForgotten},
	{Name: "an error that is not valid is refused", Check: errorInvalid},
	{Name: "concurrent errors are not lost", Check: errorConcurrent},
	{Name: "a context that is over adds no error", Check: errorCancelled},
	{Name: "a loop over errors may end early and may call the store", Check: errorLoops},
}

func failure(id, task string) patterns.ErrorEntry {
	return patterns.ErrorEntry{
		ID: id, Task: task, Type: patterns.Timeout, Message: "Zeitüberschreitung\nof " + id, Context: "c", Tool: "t", Stack: "s", At: start,
	}
}

func add(t tb, s patterns.ErrorStore, all ...patterns.ErrorEntry) {
	t.Helper()
	for _, e := range all {
		must(t, s.Add(background, e))
	}
}

// listed writes the errors of a task as their ids, with a tick behind those that are resolved.
func listed(t tb, s patterns.ErrorStore, task string) string {
	t.Helper()
	var all []string
	for _, e := range collect(t, s.Errors(background, task)) {
		if e.Resolved {
			e.ID += "✓"
		}
		all = append(all, e.ID)
	}
	return strings.Join(all, " ")
}

func errorReadsBack(t tb, newStore NewErrorStore) {
	s := open(t, newStore)
	add(t, s, failure("e", "task"))
	want := failure("e", "task")
	want.At = stored
	expect(t, "the error", collect(t, s.Errors(background, "task")), []patterns.ErrorEntry{want})
}

func errorOrder(t tb, newStore NewErrorStore) {
	s := open(t, newStore)
	for i, id := range []string{"c", "a", "d", "b"} {
		e := failure(id, number("task", i%2))
		e.At = start.Add(-time.Duration(i) * time.Hour)
		add(t, s, e)
	}
	expect(t, "of a task", listed(t, s, "task-000"), "c d")
	expect(t, "of the other", listed(t, s, "task-001"), "a b")
	expect(t, "of all tasks", listed(t, s, ""), "c a d b")
}

func errorOnce(t tb, newStore NewErrorStore) {
	s := open(t, newStore)
	add(t, s, failure("e", "task"))
	again := failure("e", "other")
	again.Message = "again"
	must(t, s.Resolve(background, "e"))
	add(t, s, again)
	expect(t, "the task", listed(t, s, "task"), "e✓")
	expect(t, "the other task", listed(t, s, "other"), "")
}

func errorResolved(t tb, newStore NewErrorStore) {
	s := open(t, newStore)
	add(t, s, failure("a", "task"), failure("b", "task"), failure("c", "task")) // alike, and of one moment
	must(t, s.Resolve(background, "b"))
	expect(t, "after one", listed(t, s, "task"), "a b✓ c")
	must(t, s.Resolve(background, "a"))
	must(t, s.Resolve(background, "a"))
	expect(t, "after two", listed(t, s, "task"), "a✓ b✓ c")
}

func errorMissing(t tb, newStore NewErrorStore) {
	s := open(t, newStore)
	expectIs(t, "resolving", s.Resolve(background, "none"), heed.ErrNotFound)
	expect(t, "listing", listed(t, s, "none"), "")
	must(t, s.Forget(background, "none"))
}

func errorForgotten(t tb, newStore NewErrorStore) {
	s := open(t, newStore)
	add(t, s, failure("a", "task"), failure("b", "other"), failure("c", "task"))
	must(t, s.Forget(background, "task"))
	expect(t, "the task", listed(t, s, "task"), "")
	expect(t, "all", listed(t, s, ""), "b")
	expectIs(t, "resolving what is forgotten", s.Resolve(background, "a"), heed.ErrNotFound)
	add(t, s, failure("d", "task"))
	expect(t, "all", listed(t, s, ""), "b d")
}

func errorInvalid(t tb, newStore NewErrorStore) {
	s := open(t, newStore)
	for what, change := range map[string]func(*patterns.ErrorEntry){
		"no id":          func(e *patterns.ErrorEntry) { e.ID = "" },
		"no task":        func(e *patterns.ErrorEntry) { e.Task = "" },
		"no type":        func(e *patterns.ErrorEntry) { e.Type = "" },
		"another type":   func(e *patterns.ErrorEntry) { e.Type = "bad luck" },
		"a NUL":          func(e *patterns.ErrorEntry) { e.Message = "a\x00b" },
		"no UTF-8":       func(e *patterns.ErrorEntry) { e.Stack = "\xff" },
		"no time":        func(e *patterns.ErrorEntry) { e.At = time.Time{} },
		"a time of 1969": func(e *patterns.ErrorEntry) { e.At = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		e := failure("e", "task")
		change(&e)
		expectInput(t, what, s.Add(background, e))
	}
	expect(t, "what was refused", listed(t, s, ""), "")
}

func errorConcurrent(t tb, newStore NewErrorStore) {
	s := open(t, newStore)
	const workers, each = 8, 20
	failures := make(chan error, workers)
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for i := range each {
				id := fmt.Sprint(worker, "-", i)
				err := s.Add(background, failure(id, "task"))
				if err == nil && i%2 == 0 {
					err = s.Resolve(background, id)
				}
				if err != nil {
					failures <- err
					return
				}
			}
		})
	}
	wait.Wait()
	close(failures)
	for err := range failures {
		t.Errorf("a worker failed: %v", err)
	}
	all := listed(t, s, "task")
	expect(t, "the errors", len(strings.Fields(all)), workers*each)
	expect(t, "those resolved", strings.Count(all, "✓"), workers*each/2)
}

func errorCancelled(t tb, newStore NewErrorStore) {
	s := open(t, newStore)
	add(t, s, failure("a", "task"))
	expectIs(t, "adding", s.Add(done(), failure("b", "task")), context.Canceled)
	expectIs(t, "resolving", s.Resolve(done(), "a"), context.Canceled)
	expectIs(t, "forgetting", s.Forget(done(), "task"), context.Canceled)
	expect(t, "what is there", listed(t, s, ""), "a")
}

func errorLoops(t tb, newStore NewErrorStore) {
	s := open(t, newStore)
	add(t, s, failure("a", "task"), failure("b", "task"))
	loops(t, "errors", 2, func(ctx context.Context) iter.Seq2[patterns.ErrorEntry, error] { return s.Errors(ctx, "task") },
		func() error { return s.Resolve(background, "a") })
}
