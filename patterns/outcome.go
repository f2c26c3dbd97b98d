package patterns

import (
	"fmt"
	"slices"
	"time"
)

// An Outcome says how a task went. Nobody needs to have rated it, as [Scoring] works with what can be counted.
type Outcome struct {
	// ID names the outcome. An outcome that is recorded again under the same id counts once.
	ID string `json:"id"`
	// Task names the task. It may have several outcomes, one for each attempt.
	Task string `json:"task"`
	// Description is the text of the task, which finds this one for later tasks. May be empty.
	Description string `json:"description,omitempty"`
	// Strategy and Patterns were followed. Each is credited once; the strategy is a pattern like the others. Do not name a
	// pattern that the prompt merely showed. One that is not known is added: with the name of its approach for content, else
	// with its id.
	Strategy PatternID   `json:"strategy,omitempty"`
	Patterns []PatternID `json:"patterns,omitempty"`
	// Criteria are the criteria of evaluation that the outcome speaks for or against. No other criterion is credited.
	Criteria []string `json:"criteria,omitempty"`
	// Duration is the time from start to completion. 0: not known, and the score does without it.
	Duration time.Duration `json:"duration,omitempty"`
	// Errors is how many errors there were. 0: as many as [Recorder.RecordError] has kept of the task.
	Errors int `json:"errors,omitempty"`
	// Retries is how often something had to be tried again.
	Retries int  `json:"retries,omitempty"`
	Success bool `json:"success"`
	// Files are the paths that were changed.
	Files []string `json:"files,omitempty"`
	// FailureMode says in a word how it failed, and FailureDetail at more length. 2,000 runes of it are kept.
	FailureMode   string `json:"failure_mode,omitempty"`
	FailureDetail string `json:"failure_detail,omitempty"`
	// Source is who caused the outcome: see [github.com/heedhq/heed/evidence.Observation]. May be empty.
	Source string `json:"source,omitempty"`
	// At is when it was completed. Its evidence fades from then. The zero time means now.
	At time.Time `json:"at"`
}

const maxNames = 1000 // patterns, criteria, files of an outcome

// An Entry is what the store keeps of an outcome: the outcome with the count of errors filled in, and its score. An Entry with
// a Review is of no outcome. It says that somebody looked into the task, which ends its strikes.
type Entry struct {
	Outcome Outcome `json:"outcome"`
	Score   Score   `json:"score"`
	Review  By      `json:"review,omitzero"`
	// RecordedAt is when it was recorded. Entries are in this order.
	RecordedAt time.Time `json:"recorded_at"`
}

// clone returns a copy that shares nothing with the entry.
func (e Entry) clone() Entry {
	e.Outcome = e.Outcome.clone()
	return e
}

func (e *Entry) isReview() bool { return e.Review != By{} }

func (o *Outcome) clone() Outcome {
	c := *o
	c.Patterns, c.Criteria, c.Files = slices.Clone(o.Patterns), slices.Clone(o.Criteria), slices.Clone(o.Files)
	return c
}

func (o *Outcome) validate(now time.Time) error {
	if err := checkIDs(field{"ID", o.ID}, field{"Task", o.Task}); err != nil {
		return err
	}
	switch {
	case o.Duration < 0:
		return inputError("Duration", "must not be negative")
	case o.Errors < 0:
		return inputError("Errors", "must not be negative")
	case o.Retries < 0:
		return inputError("Retries", "must not be negative")
	}
	for _, list := range []struct {
		name string
		n    int
	}{{"Patterns", len(o.Patterns)}, {"Criteria", len(o.Criteria)}, {"Files", len(o.Files)}} {
		if list.n > maxNames {
			return inputError(list.name, fmt.Sprintf("are %d, may be %d", list.n, maxNames))
		}
	}
	for i, id := range o.Patterns {
		if err := checkIDs(field{fmt.Sprintf("Patterns[%d]", i), string(id)}); err != nil {
			return err
		}
	}
	for i, name := range o.Criteria {
		if err := checkIDs(field{fmt.Sprintf("Criteria[%d]", i), name}); err != nil {
			return err
		}
	}
	for i, file := range o.Files {
		if err := checkText(fmt.Sprintf("Files[%d]", i), file, maxContent); err != nil {
			return err
		}
	}
	return firstError(
		checkText("Strategy", string(o.Strategy), maxID), checkText("FailureMode", o.FailureMode, maxID),
		checkText("Source", o.Source, maxID), checkTime("At", o.At, now))
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
