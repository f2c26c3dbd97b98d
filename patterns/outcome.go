package patterns

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// An Outcome records how a task went. No person needs to rate it, because [Outcome.Score] works
// with what can be counted.
type Outcome struct {
	// ID names the outcome. An outcome that is recorded again under the same id counts once.
	ID string `json:"id"`
	// Task names the task. It may have several outcomes, one for each attempt.
	Task string `json:"task"`
	// Description is the text of the task, which finds this one for later tasks. May be empty.
	Description string `json:"description,omitempty"`
	// Strategy and Patterns were followed. Each is credited once; the strategy is a pattern like the
	// others. Do not name a pattern that the prompt merely showed. One that is not known is added:
	// with the name of its approach for content, else with its id.
	Strategy PatternID   `json:"strategy,omitempty"`
	Patterns []PatternID `json:"patterns,omitempty"`
	// Criteria are the criteria of evaluation that the outcome speaks for or against. No other
	// criterion is credited.
	Criteria []string `json:"criteria,omitempty"`
	// Duration is the time from start to completion. 0: not known, and the score does without it.
	Duration time.Duration `json:"duration,omitempty"`
	// Errors is how many errors there were. 0: as many as [Recorder.RecordError] kept of the task.
	Errors int `json:"errors,omitempty"`
	// Retries is how often something had to be tried again.
	Retries int `json:"retries,omitempty"`
	// Success reports that the task did what it was for. It weighs two fifths of the score.
	Success bool `json:"success"`
	// Files are the paths that were changed.
	Files []string `json:"files,omitempty"`
	// FailureMode names in a word how it failed, and FailureDetail describes it at more length. 2,000
	// runes of it are kept.
	FailureMode   string `json:"failure_mode,omitempty"`
	FailureDetail string `json:"failure_detail,omitempty"`
	// Source is who caused the outcome: see [github.com/heedhq/heed/evidence.Observation]. May be
	// empty.
	Source string `json:"source,omitempty"`
	// At is when it was completed. Its evidence fades from then. The zero time means now.
	At time.Time `json:"at"`
}

const maxNames = 1000 // patterns, criteria, files of an outcome

// An Entry is what the store keeps of an outcome: the outcome with the count of errors filled in,
// and its score. An Entry with a Review has no outcome. It records that somebody looked into the
// task, which ends its strikes.
type Entry struct {
	// Outcome is what was recorded, and Score what it was worth then.
	Outcome Outcome `json:"outcome"`
	Score   Score   `json:"score"`
	// Review is who looked into the task, and is empty for an outcome.
	Review By `json:"review,omitzero"`
	// RecordedAt is when it was recorded. Entries are in this order.
	RecordedAt time.Time `json:"recorded_at"`
}

// clone returns an independent copy of the entry.
func (e Entry) clone() Entry {
	e.Outcome = e.Outcome.clone()
	return e
}

// isReview reports whether it has no outcome, because somebody looked into the task.
func (e *Entry) isReview() bool { return e.Review != By{} }

// clone returns an independent copy, because what a store returns is shared.
func (o *Outcome) clone() Outcome {
	c := *o
	c.Patterns, c.Criteria, c.Files = slices.Clone(o.Patterns), slices.Clone(o.Criteria),
		slices.Clone(o.Files)
	return c
}

// validate reports the first fault of an outcome. It is called before the step, so an outcome that
// is refused costs no read.
func (o *Outcome) validate(now time.Time) error {
	for i, n := range [...]int{int(o.Duration), o.Errors, o.Retries} {
		if n < 0 {
			return valid.Input([...]string{"Duration", "Errors", "Retries"}[i], "must not be negative")
		}
	}
	return cmp.Or(valid.Names(maxID, "ID", o.ID, "Task", o.Task),
		valid.List("Patterns", o.Patterns, maxNames, maxID),
		valid.List("Criteria", o.Criteria, maxNames, maxID),
		valid.List("Files", o.Files, maxNames, maxContent),
		valid.Texts(maxID, "Strategy", string(o.Strategy), "FailureMode", o.FailureMode),
		evidence.CheckText("Source", o.Source), valid.Time("At", o.At, now))
}

// credited returns the strategy and the patterns, each of them once.
func (o *Outcome) credited() []PatternID {
	ids := make([]PatternID, 0, len(o.Patterns)+1)
	for _, id := range append([]PatternID{o.Strategy}, o.Patterns...) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Strikes are the failures in a row of a task: since its last success, or since somebody looked
// into it. It is a plain value, and immutable.
type Strikes struct {
	// Task is the task that keeps failing.
	Task string
	// Count is how many failures there are in a row, at most 3.
	Count int
	// Out reports that the task is struck out after three: another attempt of the same kind is not
	// worth it, so ask a person or another agent.
	Out bool
	// Failures are the last of them, at most 10, the oldest first, for the person who looks into it.
	Failures []Outcome
}

// Strikes returns the failures in a row of a task, from the outcomes that the store still keeps.
// [Recorder.Reset] ends them.
func (r *Recorder) Strikes(ctx context.Context, task string) (Strikes, error) {
	err := valid.Names(maxID, "Task", task)
	var recent []Entry
	if err == nil {
		recent, err = r.recent(store.Reading(ctx, r.cfg.Store), task)
	}
	if err != nil {
		return Strikes{}, failed("strikes", err)
	}
	return r.strikes(task, recent), nil
}

const strikesRead = 100 // outcomes of a task: those recorded last

// attempts selects them.
func attempts(task string) HistoryQuery { return HistoryQuery{About: task, Limit: strikesRead} }

// recent returns them, the last first.
func (r *Recorder) recent(tx *store.Tx, task string) ([]Entry, error) {
	return historyIn(tx, "task", &r.kinds.entries, attempts(task))
}

// strikes counts the failures in a row among the last outcomes of a task. Attempts may be recorded
// in another order than they happened, so they are sorted by their own time.
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
		s.Count = min(s.Count+1, strikesOut)
		if len(s.Failures) < maxExamples {
			s.Failures = append(s.Failures, o.clone())
		}
	}
	s.Out = s.Count >= strikesOut
	slices.Reverse(s.Failures)
	return s
}
