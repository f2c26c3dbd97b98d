package patterns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"

	"github.com/heedhq/heed"
)

// An ErrorType says what sort of error a task ran into.
type ErrorType string

// The types of errors.
const (
	Validation   ErrorType = "validation"   // input or output that is not as it has to be
	Timeout      ErrorType = "timeout"      // it took too long
	Conflict     ErrorType = "conflict"     // someone else had it: a file, a reservation, a revision
	ToolFailure  ErrorType = "tool_failure" // a tool could not be run, or failed
	Unclassified ErrorType = "unknown"
)

// Valid reports whether the type is one of those above.
func (t ErrorType) Valid() bool {
	switch t {
	case Validation, Timeout, Conflict, ToolFailure, Unclassified:
		return true
	default:
		return false
	}
}

// A ToolError says that a tool failed. Wrap in it what a tool returned, and it is classified and named.
type ToolError struct {
	Tool string
	Err  error // may be nil
}

func (e *ToolError) Error() string { return fmt.Sprint(e.Tool, ": ", cmp.Or(e.Err, errFailed)) }

var errFailed = errors.New("failed")

// Unwrap returns the tool's own error.
func (e *ToolError) Unwrap() error { return e.Err }

// Classify tells the type of an error from what it wraps, and never from its text. In this order: an error's own method
// ErrorType() ErrorType; deadlines, of contexts, files and the network; [heed.ErrConflict] and files that exist already;
// [*heed.InputError], [*heed.ConfigError] and the errors of encoding/json and strconv; a [*ToolError] and the errors of os/exec. All
// else, a cancelled context too, is [Unclassified].
func Classify(err error) ErrorType {
	var own interface{ ErrorType() ErrorType }
	var slow interface{ Timeout() bool }
	switch {
	case errors.As(err, &own) && own.ErrorType().Valid():
		return own.ErrorType()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return Timeout
	case errors.Is(err, heed.ErrConflict), errors.Is(err, fs.ErrExist):
		return Conflict
	case is[*heed.InputError](err), is[*heed.ConfigError](err), is[*json.SyntaxError](err), is[*json.UnmarshalTypeError](err), is[*strconv.NumError](err):
		return Validation
	case is[*ToolError](err), is[*exec.Error](err), is[*exec.ExitError](err):
		return ToolFailure
	default:
		return Unclassified
	}
}

func is[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}
