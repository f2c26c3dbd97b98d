package patterns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/store"
)

// Strikes are the failures that a task has had on end: since its last success, or since someone looked into it.
// It is a plain value, to be taken as immutable.
type Strikes struct {
	Task  string
	Count int // at most Config.Strikes
	// First and Last are when the first and the last of them happened, as far as the task's last 100 outcomes tell. Zero:
	// there are none.
	First, Last time.Time
	// Failures are the last of them, at most [MaxExamples], the oldest first.
	Failures []Outcome

	limit int
}

// Out reports whether the task is struck out: another attempt of the same kind is not worth it.
func (s *Strikes) Out() bool { return s.limit > 0 && s.Count >= s.limit }

// Strikes returns the failures on end of a task, from the outcomes that the store still keeps.
func (r *Recorder) Strikes(ctx context.Context, task string) (Strikes, error) {
	if err := checkIDs(field{"Task", task}); err != nil {
		return Strikes{}, fmt.Errorf("patterns: strikes: %w", err)
	}
	recent, err := r.recent(ctx, task)
	if err != nil {
		return Strikes{}, fmt.Errorf("patterns: strikes: %w", err)
	}
	return r.strikes(task, recent), nil
}

// strikesRead is how many outcomes of a task are looked at, those recorded last.
const strikesRead = 100

// recent returns them, the last first.
func (r *Recorder) recent(ctx context.Context, task string) ([]Entry, error) {
	return collect(r.Entries(ctx, EntryQuery{Task: task, Limit: strikesRead}))
}

// strikes counts the failures on end among the last outcomes of a task.
func (r *Recorder) strikes(task string, entries []Entry) Strikes {
	s := Strikes{Task: task, limit: r.cfg.Strikes}
	entries = entries[:min(len(entries), strikesRead)]
	// By when they happened, and of one moment by when they were recorded.
	slices.SortStableFunc(entries, func(a, b Entry) int { return b.Outcome.At.Compare(a.Outcome.At) })
	for i := range entries {
		o := &entries[i].Outcome
		if entries[i].Review != nil || o.Success {
			break
		}
		s.Count = min(s.Count+1, s.limit)
		s.First = o.At
		if len(s.Failures) < MaxExamples {
			s.Failures = append(s.Failures, *o)
		}
	}
	if len(s.Failures) > 0 {
		s.Last = s.Failures[0].At
	}
	slices.Reverse(s.Failures)
	return s
}

// ClearStrikes ends the strikes of a task: someone looked into it. Where there are none, it changes nothing.
func (r *Recorder) ClearStrikes(ctx context.Context, task string, d Decision) error {
	err := firstError(checkIDs(field{"Task", task}), d.validate())
	if err == nil {
		err = r.clearStrikes(ctx, task, d)
	}
	if err != nil {
		return fmt.Errorf("patterns: clear strikes: %w", err)
	}
	return nil
}

func (r *Recorder) clearStrikes(ctx context.Context, task string, by Decision) error {
	recent, err := r.recent(ctx, task)
	if err != nil {
		return err
	}
	if s := r.strikes(task, recent); s.Count == 0 {
		return nil
	}
	now := stored(r.cfg.Now())
	id := r.cfg.Name + ":review:" + r.cfg.NewID()
	review := Entry{Outcome: Outcome{ID: id, Task: task, At: now}, Review: &by, RecordedAt: now}
	_, err = r.cfg.Store.Commit(ctx, store.Batch{Records: []store.Record{
		r.kinds.entries.Record(review, store.Once), r.audit(id, now, by, "clear_strikes", task, nil),
	}})
	return err
}

// Prompt returns what asks for a review of a task that is struck out, and nothing for one that is not.
func (s *Strikes) Prompt() string {
	if !s.Out() {
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
