package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed/internal/faults"
)

// An ErrorEntry is an error that a task ran into. It is a plain value; once handed to a store it is immutable.
type ErrorEntry struct {
	ID       string    `json:"id"` // counts once
	Task     string    `json:"task"`
	Type     ErrorType `json:"type"`
	Message  string    `json:"message"`
	Context  string    `json:"context,omitempty"` // what was being done
	Tool     string    `json:"tool,omitempty"`
	Stack    string    `json:"stack,omitempty"`
	At       time.Time `json:"at"`
	Resolved bool      `json:"resolved"`
}

// Validate reports the first fault as a [*heed.InputError].
func (e *ErrorEntry) Validate() error {
	if err := checkIDs(field{"ID", e.ID}, field{"Task", e.Task}); err != nil {
		return err
	}
	if !e.Type.Valid() {
		return inputError("Type", "must be validation, timeout, conflict, tool_failure or unknown")
	}
	if e.At.Unix() < 0 || e.At.Year() > 9999 {
		return inputError("At", "must be in the years 1970 to 9999")
	}
	for _, f := range []field{{"Message", e.Message}, {"Context", e.Context}, {"Tool", e.Tool}, {"Stack", e.Stack}} {
		if err := checkText(f.name, f.value, maxErrorText); err != nil {
			return err
		}
	}
	return nil
}

const maxErrorText = 4*MaxDetail + len("…")

// AccumulatorConfig configures an [Accumulator]. Store must be set.
type AccumulatorConfig struct {
	Store ErrorStore
	Now   func() time.Time // nil means time.Now
	NewID func() string    // makes the ids of errors. nil means random UUIDs
}

// An Accumulator keeps the errors that tasks run into: for the prompt of the next attempt, and for the score of the
// outcome. Make one with [NewAccumulator]. It is safe for concurrent use by multiple goroutines.
type Accumulator struct{ cfg AccumulatorConfig }

// NewAccumulator returns an accumulator, or all faults of its configuration, joined: each is a [*heed.ConfigError].
func NewAccumulator(cfg AccumulatorConfig) (*Accumulator, error) {
	var found faults.List
	found.Check(cfg.Store != nil, "Store", nil, "must be set")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("patterns: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // the default clock of a host that gives none
	}
	if cfg.NewID == nil {
		cfg.NewID = uuid.NewString
	}
	return &Accumulator{cfg}, nil
}

// A Report is an error that is to be kept. Of long texts, [MaxDetail] runes are.
type Report struct {
	// ID names the error; reported again under it, it counts once. "" means a new one.
	ID   string
	Task string
	// Err is the error itself, if there is one: Type, Message and Tool follow from it where they are empty.
	Err     error
	Type    ErrorType
	Message string
	Context string // what was being done
	Tool    string
	Stack   string
	At      time.Time // the zero time means now
}

// Record keeps an error, and returns it as it is kept.
func (a *Accumulator) Record(ctx context.Context, report Report) (ErrorEntry, error) {
	e, err := a.entry(&report)
	if err == nil {
		err = a.cfg.Store.Add(ctx, e)
	}
	if err != nil {
		return ErrorEntry{}, fmt.Errorf("patterns: record error: %w", err)
	}
	return e, nil
}

func (a *Accumulator) entry(report *Report) (ErrorEntry, error) {
	now := a.cfg.Now()
	if report.At.IsZero() {
		report.At = now
	}
	e := ErrorEntry{
		ID: cmp.Or(report.ID, a.cfg.NewID()), Task: report.Task, Type: report.Type, Message: report.Message,
		Context: tame(report.Context, MaxDetail), Tool: report.Tool, Stack: tame(report.Stack, MaxDetail), At: stored(report.At),
	}
	if report.Err != nil {
		e.Type = cmp.Or(e.Type, Classify(report.Err))
		e.Message = cmp.Or(e.Message, report.Err.Error())
		if tool := (*ToolError)(nil); errors.As(report.Err, &tool) {
			e.Tool = cmp.Or(e.Tool, tool.Tool)
		}
	}
	e.Type = cmp.Or(e.Type, Unclassified)
	e.Message, e.Tool = tame(e.Message, MaxDetail), tame(e.Tool, MaxDetail)
	if e.Message == "" {
		return e, inputError("Message", "or Err must be set")
	}
	return e, firstError(e.Validate(), checkTime("At", e.At, now))
}

// Resolve marks an error as resolved, so that it is no longer in the prompt. One that is not known is
// [heed.ErrNotFound].
func (a *Accumulator) Resolve(ctx context.Context, id string) error {
	if err := a.cfg.Store.Resolve(ctx, id); err != nil {
		return fmt.Errorf("patterns: resolve error: %w", err)
	}
	return nil
}

// Forget drops the errors of a task that is over, or whose next attempt is to be scored by itself.
func (a *Accumulator) Forget(ctx context.Context, task string) error {
	if err := a.cfg.Store.Forget(ctx, task); err != nil {
		return fmt.Errorf("patterns: forget errors: %w", err)
	}
	return nil
}

// ErrorStats count the errors of a task.
type ErrorStats struct {
	Total      int // resolved ones too
	Unresolved int
	ByType     map[ErrorType]int // of all; only types that there are
}

// Stats counts the errors of a task, as far as the store still keeps them.
func (a *Accumulator) Stats(ctx context.Context, task string) (ErrorStats, error) {
	stats := ErrorStats{ByType: make(map[ErrorType]int)}
	for e, err := range a.cfg.Store.Errors(ctx, task) {
		if err != nil {
			return ErrorStats{}, fmt.Errorf("patterns: error stats: %w", err)
		}
		stats.Total++
		stats.ByType[e.Type]++
		if !e.Resolved {
			stats.Unresolved++
		}
	}
	return stats, nil
}
