package mcp

import (
	"errors"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
)

// A fieldError says what is wrong with an argument of a tool.
type fieldError struct{ field, reason string }

func (e *fieldError) Error() string { return e.field + ": " + e.reason }

func fault(field, reason string) error { return &fieldError{field, reason} }

// names are the arguments that stand for fields of heed's with other names.
var names = map[string]string{
	"Summary": "text", "correction_summary": "text", "reviewer_comment": "comment", "Reviewer": "person", "reviewer_id": "person", "Actor": "person",
	"Duration": "duration_ms", "Latency": "latency_ms", "Session": "conversation",
}

// told returns an error in the words of the tools, for the client's model.
func told(err error) error {
	var input *heed.InputError
	var refused *feedback.RefusedError
	var lacks *heed.ConfigError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &input):
		return fault(argument(input.Field), input.Reason)
	case errors.Is(err, loop.ErrNoAnswer):
		return fault("id", "no answer has it, or none any more")
	case errors.As(err, &refused):
		return errors.New("refused: " + refused.Reason)
	case errors.As(err, &lacks):
		return errors.New("this agent does not do that: its " + lacks.Field + " " + lacks.Reason)
	case errors.Is(err, evidence.ErrForgotten):
		return errors.New("the arm keeps the outcome that it was told before, as the history has ended there; all else counts")
	}
	return err
}

// argument returns what the tools call a field.
func argument(field string) string {
	if at := strings.LastIndexByte(field, '.'); at >= 0 {
		field = field[at+1:]
	}
	field, _, _ = strings.Cut(field, "[")
	if name := names[field]; name != "" {
		return name
	}
	return strings.ToLower(field)
}
