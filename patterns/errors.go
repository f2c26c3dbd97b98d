package patterns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// The types of errors: see [Classify].
const (
	validation   = "validation"
	timeout      = "timeout"
	conflict     = "conflict"
	toolFailure  = "tool_failure"
	unclassified = "unknown"
)

// errorTypes are all types, for validation and for the room that their headings take in a prompt.
var errorTypes = []string{validation, timeout, conflict, toolFailure, unclassified}

// Classify returns the type of an error that a task ran into, by what it wraps and never by its
// text. The first that holds counts:
//
//   - what the error's own method ErrorType() string returns, if it is one of these types;
//   - "timeout": a deadline of a context, a file or the network;
//   - "conflict": somebody else had a file, a reservation or a revision: [heed.ErrConflict], or a
//     file that exists already;
//   - "validation": input or output was not valid: [*heed.InputError], [*heed.ConfigError], or an
//     error of encoding/json or strconv;
//   - "tool_failure": a tool could not be run, or failed: an error of os/exec;
//   - "unknown": any other error, a cancelled context too.
func Classify(err error) string {
	var own interface{ ErrorType() string }
	var late interface{ Timeout() bool }
	switch {
	case errors.As(err, &own) && slices.Contains(errorTypes, own.ErrorType()):
		return own.ErrorType()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &late) && late.Timeout():
		return timeout
	case errors.Is(err, heed.ErrConflict), errors.Is(err, fs.ErrExist):
		return conflict
	case is[*heed.InputError](err), is[*heed.ConfigError](err), is[*json.SyntaxError](err),
		is[*json.UnmarshalTypeError](err), is[*strconv.NumError](err):
		return validation
	case is[*exec.Error](err), is[*exec.ExitError](err):
		return toolFailure
	default:
		return unclassified
	}
}

func is[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// A TaskError is an error that a task ran into. Of each text, 2,000 runes are kept.
type TaskError struct {
	// ID names the error. An error that is recorded again under the same id counts once. "" means a
	// new one.
	ID string `json:"id"`
	// Task is the task that ran into it.
	Task string `json:"task"`
	// Err is the error itself, if there is one. It gives Type and Message if they are empty, and is
	// not kept.
	Err error `json:"-"`
	// Type is the sort of the error. "" means the result of [Classify], and "tool_failure" if that
	// is "unknown" and Tool is set.
	Type string `json:"type"`
	// Message is what the next attempt's prompt shows. It must be set, or Err.
	Message string `json:"message"`
	// Context is what was being done, Tool the tool that was used, and Stack a trace. A
	// prompt has the first 100 characters of the trace. Each may be empty.
	Context string `json:"context,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Stack   string `json:"stack,omitempty"`
	// At is when it happened. The zero time means now.
	At time.Time `json:"at"`
	// Resolved and RecordedAt are set by the recorder. Errors are in the order of RecordedAt.
	Resolved   bool      `json:"resolved"`
	RecordedAt time.Time `json:"recorded_at"`
}

// RecordError keeps an error of a task for the prompt of the next attempt and for the score of the
// outcome, and returns its id. An error whose id is known stays as it was. The newest 100,000
// errors are kept, unless the store is configured otherwise.
func (r *Recorder) RecordError(ctx context.Context, e TaskError) (id string, err error) {
	if err := r.completeError(&e); err != nil {
		return "", failed("record error", err)
	}
	err = store.Do(ctx, r.cfg.Store, func(tx *store.Tx) error {
		// Whether it is there is not read, because a failing tool should cost one write and no read.
		r.kinds.errors.Put(tx, e, store.Once)
		tx.Then(func(receipt store.Receipt, err error) {
			if err == nil && r.watch != nil && slices.Contains(receipt.Left, r.kinds.errors.Ref(e.ID)) {
				r.watch.Tell(tx.Context(), heed.Duplicate{Component: r.watch.Name(), At: e.RecordedAt,
					What: "error", ID: e.ID})
			}
		})
		return nil
	})
	if err != nil {
		return "", failed("record error", err)
	}
	return e.ID, nil
}

// completeError fills in what an error leaves open, and validates it. Texts are cut and cleaned
// before they are checked, because errors of tools are long and not always valid UTF-8, and should
// be kept nevertheless.
func (r *Recorder) completeError(e *TaskError) error {
	now := r.cfg.Now()
	fillTime(&e.At, now)
	if e.Err != nil {
		e.Type, e.Message = cmp.Or(e.Type, Classify(e.Err)), cmp.Or(e.Message, e.Err.Error())
	}
	if e.Type = cmp.Or(e.Type, unclassified); e.Type == unclassified && e.Tool != "" {
		e.Type = toolFailure
	}
	e.ID, e.Err, e.Resolved, e.RecordedAt = cmp.Or(e.ID, r.cfg.NewID()), nil, false, stored(now)
	e.Message, e.Context, e.Tool, e.Stack = tame(e.Message), tame(e.Context), tame(e.Tool),
		tame(e.Stack)
	err := cmp.Or(valid.Names(maxID, "ID", e.ID, "Task", e.Task), valid.Time("At", e.At, now))
	switch {
	case err != nil:
	case e.Message == "":
		err = valid.Input("Message", "or Err must be set")
	case !slices.Contains(errorTypes, e.Type):
		err = valid.Input("Type", "must be validation, timeout, conflict, tool_failure or unknown")
	}
	e.At = stored(e.At)
	return err
}

// ResolveError marks an error as resolved. It is then no longer in prompts. If it is not known, the
// error is [heed.ErrNotFound].
func (r *Recorder) ResolveError(ctx context.Context, id string) error {
	err := valid.Names(maxID, "ID", id)
	if err == nil {
		err = store.Do(ctx, r.cfg.Store, func(tx *store.Tx) error {
			row, err := r.kinds.errors.In(tx, id)
			switch {
			case err != nil:
				return err
			case row.Revision == 0:
				return heed.ErrNotFound
			case row.Value.Resolved:
				return nil
			}
			row.Value.Resolved = true
			r.kinds.errors.Put(tx, row.Value, row.Revision)
			return nil
		})
	}
	return failed("resolve error", err)
}

const mostErrors = 1000 // that are read of a task: those recorded last

// An ErrorReport is what went wrong with a task. It is immutable.
type ErrorReport struct {
	// Errors has the first recorded first, with those that are resolved.
	Errors []TaskError
	// Unresolved counts the errors that [Recorder.ResolveError] has not ended.
	Unresolved int
	// ByType counts them by type, with those that are resolved. It has only types that occur.
	ByType map[string]int
}

// Errors returns the errors that a query selects: of a task, or of all tasks. Since and Until are
// about when they were recorded.
func (r *Recorder) Errors(ctx context.Context, q HistoryQuery) (ErrorReport, error) {
	return r.Steps().ErrorsIn(store.Reading(ctx, r.cfg.Store), q)
}

// ErrorsWants names what ErrorsIn reads.
func (r steps) ErrorsWants(q HistoryQuery) store.Wants {
	q.Limit = cmp.Or(q.Limit, mostErrors)
	return q.wants(r.kinds.errors.Name, "task")
}

// ErrorsIn is [Recorder.Errors] in a step. A report does not have what its own step adds.
func (r steps) ErrorsIn(tx *store.Tx, q HistoryQuery) (ErrorReport, error) {
	q.Limit = cmp.Or(q.Limit, mostErrors)
	all, err := historyIn(tx, "task", &r.kinds.errors, q)
	if err != nil {
		return ErrorReport{}, failed("errors", err)
	}
	slices.Reverse(all)
	report := ErrorReport{Errors: all, ByType: make(map[string]int)}
	for i := range all {
		report.ByType[all[i].Type]++
		if !all[i].Resolved {
			report.Unresolved++
		}
	}
	return report, nil
}

// Prompt writes the errors for the prompt of the next attempt: by type, in the order in which types
// first came up. It leaves resolved errors out, unless resolved is set. If not all have room, the
// newest are written. A size of zero means 20 items and 6,000 characters. The text is empty if
// there are no errors. Prompt also returns the ids of the errors in the text, the first recorded
// first.
func (e ErrorReport) Prompt(size SectionSize, resolved bool) (text string, ids []string) {
	all := slices.Clone(e.Errors)
	if !resolved {
		all = slices.DeleteFunc(all, func(e TaskError) bool { return e.Resolved })
	}
	return errorSection(all, size.or(SectionSize{20, 6_000}))
}
