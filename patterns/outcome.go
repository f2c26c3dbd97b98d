package patterns

import (
	"fmt"
	"slices"
	"time"
)

// An Outcome says how a task went. Nobody has to have rated it: [Scoring] tells from what can be counted how good it was.
type Outcome struct {
	// ID names the outcome. What is recorded again under it counts once.
	ID string `json:"id"`
	// Task names the task, which may have several outcomes: one an attempt.
	Task string `json:"task"`
	// Description is what was asked for, by which later tasks find this one. May be empty.
	Description string `json:"description,omitempty"`
	// Strategy and Patterns are what was followed, each of which is credited once: the strategy is a pattern like the
	// others. Name what was really followed, and not what the prompt merely showed. An unknown one is added, with its id
	// for content.
	Strategy PatternID   `json:"strategy,omitempty"`
	Patterns []PatternID `json:"patterns,omitempty"`
	// Criteria are the criteria of evaluation that the outcome speaks for or against. None is credited that is not named.
	Criteria []string `json:"criteria,omitempty"`
	// Duration is how long it took, from start to completion. 0: that is not known, and the score does without it.
	Duration time.Duration `json:"duration,omitempty"`
	// Errors is how many errors there were. 0: as many as the recorder's accumulator has of the task.
	Errors int `json:"errors,omitempty"`
	// Retries is how often something had to be tried again.
	Retries int  `json:"retries,omitempty"`
	Success bool `json:"success"`
	// Files are the paths that were changed.
	Files []string `json:"files,omitempty"`
	// FailureMode says in a word how it failed, and FailureDetail at more length; of that, [MaxDetail] runes are kept.
	FailureMode   string `json:"failure_mode,omitempty"`
	FailureDetail string `json:"failure_detail,omitempty"`
	// Source is who caused the outcome: see [github.com/heedhq/heed/evidence.Observation]. May be empty.
	Source string `json:"source,omitempty"`
	// At is when it was completed, from which its evidence fades. The zero time means now.
	At time.Time `json:"at"`
}

// The limits of an outcome.
const (
	MaxDetail = 2000 // runes of a detail, of a description and of the texts of an error, of which the rest is cut off
	maxNames  = 1000 // patterns, criteria, files
)

// An Entry is what is kept of an outcome: the outcome, with the count of errors filled in, and its score. One with a Review
// is not of an outcome: it says that someone looked into the task, which ends its strikes.
// An Entry is a plain value, to be taken as immutable.
type Entry struct {
	Outcome Outcome   `json:"outcome"`
	Score   Score     `json:"score"`
	Review  *Decision `json:"review,omitempty"`
	// RecordedAt is when it was recorded, which orders entries.
	RecordedAt time.Time `json:"recorded_at"`
}

// ID returns the id of the outcome.
func (e *Entry) ID() string { return e.Outcome.ID }

// clone returns a copy that shares nothing with the entry.
func (e Entry) clone() Entry {
	c := e
	c.Outcome = e.Outcome.clone()
	if e.Review != nil {
		d := *e.Review
		c.Review = &d
	}
	return c
}

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
		if err := checkText(fmt.Sprintf("Files[%d]", i), file, MaxContent); err != nil {
			return err
		}
	}
	return firstError(
		checkText("Strategy", string(o.Strategy), MaxID), checkText("FailureMode", o.FailureMode, MaxID),
		checkText("Source", o.Source, MaxID), checkTime("At", o.At, now))
}

// credited returns the strategy and the patterns, each once.
func (o *Outcome) credited() []PatternID {
	ids := make([]PatternID, 0, len(o.Patterns)+1)
	for _, id := range append([]PatternID{o.Strategy}, o.Patterns...) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
