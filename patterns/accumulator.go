package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// An ErrorEntry is an error that a task ran into. It is a plain value.
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
	// RecordedAt is when it was recorded, which orders the errors of a task.
	RecordedAt time.Time `json:"recorded_at"`
}

func (e *ErrorEntry) validate() error {
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
	Store store.Store
	Now   func() time.Time // nil means time.Now
	NewID func() string    // makes the ids of errors. nil means random UUIDs
}

// An Accumulator keeps the errors that tasks run into: for the prompt of the next attempt, and for the score of the
// outcome. Make one with [NewAccumulator]. Accumulators of several processes may share a store, which keeps the newest
// 100,000 errors unless it is configured otherwise. It is safe for concurrent use by multiple goroutines.
type Accumulator struct{ cfg AccumulatorConfig }

var errorKind = records.Kind[ErrorEntry]{
	Kind: store.Kind{Name: "patterns.error", Limits: store.Limits{Most: mostKept}},
	Place: func(e ErrorEntry) (string, time.Time, []string) {
		return e.ID, e.RecordedAt, []string{store.Key("task", e.Task)}
	},
}

// NewAccumulator returns an accumulator, or all faults of its configuration, joined: each is a [*heed.ConfigError].
func NewAccumulator(ctx context.Context, cfg AccumulatorConfig) (*Accumulator, error) {
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
	if err := cfg.Store.Declare(ctx, errorKind.Kind); err != nil {
		return nil, fmt.Errorf("patterns: %w", err)
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

// Record keeps an error, and returns it as it is kept: one whose id is known stays as it was.
func (a *Accumulator) Record(ctx context.Context, report Report) (ErrorEntry, error) {
	e, err := a.entry(&report)
	if err == nil {
		e, err = a.keep(ctx, e)
	}
	if err != nil {
		return ErrorEntry{}, fmt.Errorf("patterns: record error: %w", err)
	}
	return e, nil
}

func (a *Accumulator) keep(ctx context.Context, e ErrorEntry) (ErrorEntry, error) {
	receipts, err := a.cfg.Store.Commit(ctx, store.Batch{Records: []store.Record{errorKind.Record(e, store.Once)}})
	if err != nil || len(receipts[0].Left) == 0 {
		return e, err
	}
	kept, err := errorKind.Get(ctx, a.cfg.Store, e.ID)
	if errors.Is(err, heed.ErrNotFound) {
		return e, nil // it was dropped meanwhile
	}
	return kept.Value, err
}

func (a *Accumulator) entry(report *Report) (ErrorEntry, error) {
	now := a.cfg.Now()
	if report.At.IsZero() {
		report.At = now
	}
	e := ErrorEntry{
		ID: cmp.Or(report.ID, a.cfg.NewID()), Task: report.Task, Type: report.Type, Message: report.Message,
		Context: tame(report.Context, MaxDetail), Tool: report.Tool, Stack: tame(report.Stack, MaxDetail), At: stored(report.At),
		RecordedAt: stored(now),
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
	return e, firstError(e.validate(), checkTime("At", e.At, now))
}

// Resolve marks an error as resolved, so that it is no longer in the prompt. One that is not known is
// [heed.ErrNotFound].
func (a *Accumulator) Resolve(ctx context.Context, id string) error {
	err := checkIDs(field{"ID", id})
	if err == nil {
		err = records.Retry(ctx, func() error {
			kept, err := errorKind.Get(ctx, a.cfg.Store, id)
			if err != nil || kept.Value.Resolved {
				return err
			}
			kept.Value.Resolved = true
			_, err = a.cfg.Store.Commit(ctx, store.Batch{Records: []store.Record{errorKind.Record(kept.Value, kept.Revision)}})
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("patterns: resolve error: %w", err)
	}
	return nil
}

// Forget drops the errors of a task that is over, or whose next attempt is to be scored by itself.
func (a *Accumulator) Forget(ctx context.Context, task string) error {
	err := checkIDs(field{"Task", task})
	if err == nil {
		err = records.Retry(ctx, func() error {
			var b store.Batch
			for kept, err := range a.newest(ctx, task, 0) {
				if err != nil {
					return err
				}
				b.Records = append(b.Records, errorKind.Removal(kept.ID, kept.Revision))
			}
			if len(b.Records) == 0 {
				return nil
			}
			_, err := a.cfg.Store.Commit(ctx, b)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("patterns: forget errors: %w", err)
	}
	return nil
}

// Errors yields the errors of a task that are still kept, or of all tasks where it is empty, the first recorded first. The
// loop may call the accumulator and may end early. After an error it ends.
func (a *Accumulator) Errors(ctx context.Context, task string) iter.Seq2[ErrorEntry, error] {
	q := store.Query{Oldest: true}
	if task != "" {
		q.Keys = []string{store.Key("task", task)}
	}
	return values("errors", errorKind.Find(ctx, a.cfg.Store, q), func(e ErrorEntry) ErrorEntry { return e })
}

// newest yields the errors of a task that were recorded last, at most limit of them; 0: all.
func (a *Accumulator) newest(ctx context.Context, task string, limit int) iter.Seq2[records.Kept[ErrorEntry], error] {
	return errorKind.Find(ctx, a.cfg.Store, store.Query{Keys: []string{store.Key("task", task)}, Limit: limit})
}

// MaxErrors is how many errors of a task are counted and written into prompts: those recorded last.
const MaxErrors = 1000

// ErrorStats count the errors of a task.
type ErrorStats struct {
	Total      int // resolved ones too
	Unresolved int
	ByType     map[ErrorType]int // of all; only types that there are
}

// Stats counts the errors of a task, as far as the store still keeps them: at most [MaxErrors].
func (a *Accumulator) Stats(ctx context.Context, task string) (ErrorStats, error) {
	stats := ErrorStats{ByType: make(map[ErrorType]int)}
	for kept, err := range a.newest(ctx, task, MaxErrors) {
		if err != nil {
			return ErrorStats{}, fmt.Errorf("patterns: error stats: %w", err)
		}
		e := &kept.Value
		stats.Total++
		stats.ByType[e.Type]++
		if !e.Resolved {
			stats.Unresolved++
		}
	}
	return stats, nil
}
