package patterns

import (
	"cmp"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
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
	// with the name of its approach for content, else with its id. An anti-pattern counts as its
	// pattern, and is left out if that is not known.
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
// and its score.
type Entry struct {
	// Outcome is what was recorded, and Score what it was worth then.
	Outcome Outcome `json:"outcome"`
	Score   Score   `json:"score"`
	// RecordedAt is when it was recorded. Entries are in this order.
	RecordedAt time.Time `json:"recorded_at"`
}

// clone returns an independent copy of the entry.
func (e Entry) clone() Entry {
	e.Outcome = e.Outcome.clone()
	return e
}

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
	return cmp.Or(valid.Names(maxID, "ID", o.ID, "Task", o.Task), checkIDs(o.Patterns),
		valid.List("Criteria", o.Criteria, maxNames, maxID),
		valid.List("Files", o.Files, maxNames, maxContent),
		valid.Texts(maxID, "Strategy", string(o.Strategy), "FailureMode", o.FailureMode),
		evidence.CheckText("Source", o.Source), valid.Time("At", o.At, now),
		checkID("Strategy", rootOf(o.Strategy)))
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
