package patterns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Strikes are the failures in a row of a task: since its last success, or since somebody looked into it. It is a plain value, and
// immutable.
type Strikes struct {
	Task  string
	Count int // at most Config.Strikes
	// Out tells that the task is struck out: another attempt of the same kind is not worth it.
	Out bool
	// First and Last are when the first and the last of them happened, by the task's last 100 outcomes. Zero: there are none.
	First, Last time.Time
	// Failures are the last of them, at most 10, the oldest first.
	Failures []Outcome
}

// Strikes returns the failures in a row of a task, from the outcomes that the store still keeps. [Recorder.Reset] ends them.
func (r *Recorder) Strikes(ctx context.Context, task string) (Strikes, error) {
	err := checkIDs(field{"Task", task})
	var recent []Entry
	if err == nil {
		recent, err = r.recent(ctx, task)
	}
	if err != nil {
		return Strikes{}, failed("strikes", err)
	}
	return r.strikes(task, recent), nil
}

// strikesRead is how many outcomes of a task are looked at: those recorded last.
const strikesRead = 100

// recent returns them, the last first.
func (r *Recorder) recent(ctx context.Context, task string) ([]Entry, error) {
	return collect(r.Entries(ctx, HistoryQuery{About: task, Limit: strikesRead}))
}

// strikes counts the failures in a row among the last outcomes of a task.
func (r *Recorder) strikes(task string, entries []Entry) Strikes {
	s := Strikes{Task: task}
	entries = entries[:min(len(entries), strikesRead)]
	// In the order in which they happened, and of one moment in which they were recorded.
	slices.SortStableFunc(entries, func(a, b Entry) int { return b.Outcome.At.Compare(a.Outcome.At) })
	for i := range entries {
		o := &entries[i].Outcome
		if entries[i].isReview() || o.Success {
			break
		}
		s.Count = min(s.Count+1, r.cfg.Strikes)
		s.First = o.At
		if len(s.Failures) < maxExamples {
			s.Failures = append(s.Failures, *o)
		}
	}
	if len(s.Failures) > 0 {
		s.Last = s.Failures[0].At
	}
	s.Out = s.Count >= r.cfg.Strikes
	slices.Reverse(s.Failures)
	return s
}

// Prompt asks for a review of a task that is struck out. It is empty for any other task.
func (s *Strikes) Prompt() string {
	if !s.Out {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## Architecture Review Required\n\nThe last attempts at this task all failed. Do not try the same again.\n\nTask: %s\n\n", line(s.Task))
	for i := range s.Failures {
		o := &s.Failures[i]
		what := strings.TrimSpace(o.FailureMode + " " + o.FailureDetail)
		if what == "" {
			what = "no reason was given"
		}
		fmt.Fprintf(&b, "%d. %s: %s\n", i+1, o.At.UTC().Format(timeLayout), line(what))
	}
	b.WriteString("\nBefore another attempt, answer:\n\n" +
		"- What do these failures have in common?\n" +
		"- Is the task cut in the right way, and are its assumptions true?\n" +
		"- Which other approach would not fail for the same reason?\n")
	return b.String()
}
