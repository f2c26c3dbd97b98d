package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
)

func newRecorder(cfg patterns.Config) *patterns.Recorder {
	cfg.Store = &memstore.Store{}
	recorder, err := patterns.New(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	return recorder
}

// Tasks fail that were split by file type. The next plan is told so.
func Example() {
	ctx := context.Background()
	recorder, err := patterns.New(ctx, patterns.Config{Store: &memstore.Store{}})
	if err != nil {
		panic(err)
	}
	for i := range 3 {
		// in a host: what the planner wrote
		followed, err := recorder.Extract(ctx, "We'll split by file type")
		if err != nil {
			panic(err)
		}
		recorded, err := recorder.Record(ctx, patterns.Outcome{
			ID: fmt.Sprint("run-", i), Task: fmt.Sprint("task-", i), Patterns: followed,
			Duration: 40 * time.Minute, Errors: 3, Retries: 2, Success: false,
		})
		if err != nil {
			panic(err)
		}
		fmt.Println(recorded.Score.Reason)
	}
	plan, err := recorder.Plan(ctx, "Add OAuth")
	if err != nil {
		panic(err)
	}
	text, _, _ := plan.Prompt()
	fmt.Print(text)
	// Output:
	// harmful at 14: failure, slow (40m0s), 3 errors (many), 2 retries (many)
	// harmful at 14: failure, slow (40m0s), 3 errors (many), 2 retries (many)
	// harmful at 14: failure, slow (40m0s), 3 errors (many), 2 retries (many)
	// ## Anti-Patterns to Avoid
	//
	// Based on past failures, avoid these decomposition strategies:
	//
	// - AVOID: Split by file type. Failed 3/3 times (100% failure rate)
}

// Errors of a task are kept as they come up. They are in the prompt of the next attempt, and lower
// its score.
func ExampleRecorder_RecordError() {
	ctx := context.Background()
	recorder := newRecorder(patterns.Config{
		// leave it out for the time
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	_, err := recorder.RecordError(ctx, patterns.TaskError{
		Task: "task-1", Context: "after adding the OAuth types", Tool: "go vet",
		Err: errors.New("undefined: Token"),
	})
	if err != nil {
		panic(err)
	}
	known, err := recorder.Errors(ctx, patterns.HistoryQuery{About: "task-1"})
	if err != nil {
		panic(err)
	}
	text, _ := known.Prompt(patterns.SectionSize{}, false)
	fmt.Print(text)

	recorded, err := recorder.Record(ctx, patterns.Outcome{ID: "run-1", Task: "task-1",
		Duration: time.Minute, Success: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(recorded.Score.Reason)
	// Output:
	// ## Previous Errors
	//
	// The following errors were encountered during execution:
	//
	// ### tool_failure (1 error)
	//
	// - **undefined: Token**
	//   - Context: after adding the OAuth types
	//   - Tool: go vet
	//   - Time: 2026-01-02 03:04:05 UTC
	//
	// **Action Required**: Address these errors before proceeding. Consider:
	//
	// - What caused each error?
	// - How can you prevent similar errors?
	// - Are there patterns across error types?
	// helpful at 92: success, fast (1m0s), 1 error, no retries
}

func ExampleClassify() {
	err := exec.Command("no-such-linter").Run()
	fmt.Println(patterns.Classify(fmt.Errorf("lint: %w", err)))
	fmt.Println(patterns.Classify(context.DeadlineExceeded))
	// Output:
	// tool_failure
	// timeout
}

// Why is it not proven yet?
func ExampleRecorder_Standing() {
	ctx := context.Background()
	recorder := newRecorder(patterns.Config{})
	for i := range 4 {
		_, err := recorder.Record(ctx, patterns.Outcome{
			ID: fmt.Sprint(i), Task: fmt.Sprint("task-", i),
			Patterns: []patterns.PatternID{"types-first"}, Success: true,
		})
		if err != nil {
			panic(err)
		}
	}
	why, err := recorder.Standing(ctx, "types-first")
	if err != nil {
		panic(err)
	}
	for _, condition := range why.Conditions {
		if condition.State == "proven" && !condition.Met {
			fmt.Println(condition)
		}
	}
	// Output: proven needs helpful observations: at least 5, has 4: missed
}

// A host brings a strategy of its own.
func ExampleRecorder_Extract() {
	recorder := newRecorder(patterns.Config{Approaches: append(patterns.Approaches(),
		patterns.Approach{Name: "Feature flags", Phrases: []string{"behind flag|flags|toggle*"}})})
	fmt.Println(recorder.Extract(context.Background(),
		"One file per subtask, all behind a flag. Don't parallelize everything."))
	// Output: [pattern-one-file-per-subtask pattern-feature-flags] <nil>
}

// A person's decision stays.
func ExampleRecorder_Promote() {
	ctx := context.Background()
	recorder := newRecorder(patterns.Config{})
	if _, err := recorder.Define(ctx, patterns.Pattern{ID: "types-first",
		Content: "Handle shared types first"}); err != nil {
		panic(err)
	}
	who := patterns.By{Actor: "ada", Reason: "it has worked in three other projects"}
	moved, err := recorder.Promote(ctx, "types-first", who)
	if err != nil {
		panic(err)
	}
	fmt.Println(moved.From, "to", moved.To)
	moved, err = recorder.Reset(ctx, patterns.Reset{Pattern: "types-first", By: who,
		KeepEvidence: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(moved.From, "to", moved.To)
	// Output:
	// candidate to proven
	// proven to candidate
}

// The strategy with the better record wins over the one that suits better.
func ExampleRecorder_Rank() {
	ctx := context.Background()
	recorder := newRecorder(patterns.Config{})
	for i := range 5 {
		_, err := recorder.Record(ctx, patterns.Outcome{ID: fmt.Sprint(i), Task: "t",
			Strategy: "by-feature", Success: true})
		if err != nil {
			panic(err)
		}
	}
	ranked, _, err := recorder.Rank(ctx, map[patterns.PatternID]float64{"by-file": 0.9,
		"by-feature": 0.5})
	if err != nil {
		panic(err)
	}
	for _, r := range ranked {
		fmt.Printf("%s is %s: × %.1f = %.2f\n", r.Pattern.ID, r.State, r.Multiplier, r.Score)
	}
	// Output:
	// by-feature is proven: × 1.5 = 0.75
	// by-file is candidate: × 0.5 = 0.45
}
