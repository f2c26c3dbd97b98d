package view

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// The sorts of faults of operations. Each has a heading in web/README.md.
const (
	Malformed   = "malformed"
	BadField    = "bad-field"
	Unknown     = "unknown"
	Conflicting = "conflict"
	Refused     = "refused"
	Forgotten   = "forgotten"
	ModelFailed = "model-failed"
	MissingPart = "not-configured"
	OutOfTime   = "out-of-time"
	Failure     = "failure"
)

// A Fault is the reason, for the caller, why an operation failed.
type Fault struct {
	Sort, Detail string
	Field        string // that is wrong, by its name in the input; "" if no field is
	// After is when to try again; 0: at any time.
	After time.Duration
	Cause error // of a failure inside, for the observer alone
}

func (f *Fault) Error() string { return f.Detail }

func badField(name, reason string) error {
	return &Fault{
		Sort: BadField, Detail: strings.TrimPrefix(name+" ", " ") + reason + ".", Field: name}
}

// soonest is after what time a request that no model had a place for is sent again.
const soonest = time.Second

// FaultOf makes a fault of an error of an operation with an input.
func FaultOf(err error, in reflect.Type) *Fault {
	var known *Fault
	var input *heed.InputError
	var refused *feedback.RefusedError
	var missing *heed.ConfigError
	of := func(sort, detail string) *Fault { return &Fault{Sort: sort, Detail: detail} }
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &input):
		return FaultOf(badField(nameIn(in, input.Field), input.Reason), in)
	case errors.As(err, &refused):
		return of(Refused, "Refused: "+refused.Reason+".")
	case errors.As(err, &missing):
		return of(MissingPart, missing.Field+" "+missing.Reason+".")
	case errors.Is(err, loop.ErrNoModel), errors.Is(err, decision.ErrBusy):
		f := of(ModelFailed, "No model could be asked: send the request again later.")
		f.After = max(llm.RetryAfter(err), soonest)
		return f
	case errors.Is(err, store.ErrLeft):
		return of(Unknown, "The organisation has left, with all that it had.")
	case errors.Is(err, evidence.ErrForgotten):
		return of(Forgotten, "What the arm was told before goes on counting. All else counts.")
	case errors.Is(err, heed.ErrNotFound):
		return of(Unknown, noneOf(in)+" is known, or no longer.")
	// Settings that differ from the stored ones are a conflict that another try does not solve.
	case errors.Is(err, heed.ErrConflict) && !errors.As(err, new(*heed.SettingsError)):
		return of(Conflicting, "Others changed it at the same time. Look at it, and try again.")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return of(OutOfTime, "The server has not finished in time. Try again.")
	}
	return &Fault{Sort: Failure, Detail: "Something failed here. Try again later.", Cause: err}
}

// noneOf names what the id in an input is of, and what pages look up, as unknown.
func noneOf(in reflect.Type) string {
	for _, f := range FieldsOf(in) {
		if f.Name == "answer" || f.Name == "choice" {
			return "No " + f.Name + " of this id"
		}
	}
	return "Nothing of this name"
}

// nameIn returns what an input calls a field that heed found a fault in.
func nameIn(in reflect.Type, name string) string {
	head, rest, _ := strings.Cut(name, ".")
	head, index, _ := strings.Cut(head, "[")
	if index != "" {
		index = "[" + index
	}
	for _, f := range FieldsOf(in) {
		if !slices.Contains(f.in, head) {
			continue
		}
		of := f.Of
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if rest != "" && of.Kind() == reflect.Struct {
			return f.Name + index + "." + nameIn(of, rest)
		}
		return f.Name + index
	}
	if rest != "" { // a part of heed's that the input does not have
		return nameIn(in, rest)
	}
	return strings.ToLower(name)
}

// The parts that operations and pages need.
const (
	agent      = "agent"
	arms       = "arms"
	heuristics = "heuristics"
	rules      = "rules"
	ways       = "ways of working"
)

// nextFor explains how a server comes by a part.
var nextFor = map[string]string{
	agent: "Start heed serve with --run, or set Agent in Go's web.Config.",
	arms: "Start heed serve with --run and --lessons FILE, where FILE has \"arms\", or set Arms " +
		"in Go's loop.Config. Beside an application, arms are there once it has chosen one.",
	heuristics: "The application has to be an agent that learns heuristics.",
	rules:      "The application has to be an agent that takes corrections.",
	ways:       "The application has to be an agent that learns ways of working.",
}

// Lacks returns the fault that an agent or a server is without a part, and how it comes by it.
func Lacks(part string) *Fault {
	return &Fault{Sort: MissingPart, Detail: "The server has no " + part + ". " + nextFor[part]}
}

// Has reports whether a part is there. "" always is.
func (s *Source) Has(part string) bool {
	return map[string]bool{
		"": true, agent: s.Agent != nil, arms: s.Strategy != nil, heuristics: s.Learning != nil,
		rules: s.Feedback != nil, ways: s.Patterns != nil,
	}[part]
}
