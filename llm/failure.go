// Package llm names the ways in which a language model fails, so that heed can distinguish a model
// that is unavailable from an arm that answers badly.
//
// The models of the adapters return errors with a [Failure]. A client of your own wraps its errors:
// fmt.Errorf("%w: %w", llm.RateLimited, err), or an [Error] if the provider asked to wait.
// [FailureOf] also recognises what net and context return, and errors with a status of HTTP, for
// example the errors of common SDKs.
package llm

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"syscall"
	"time"
)

// A Failure is a way in which a model fails. It is an error, so errors.Is(err, llm.RateLimited)
// reports whether err is of this kind.
type Failure string

// The kinds of failure. The first four are about the availability of the model: package loop does
// not count them for the arm that was chosen.
const (
	// Unreachable means that the connection was refused or broke off, or that the endpoint does not
	// serve this client: status 3xx, 401, 402, 403, 404 and 407.
	Unreachable Failure = "unreachable"
	RateLimited Failure = "rate_limited" // too many requests: status 429
	ServerError Failure = "server_error" // the endpoint failed: status 5xx
	TimedOut    Failure = "timed_out"    // it took longer than its time; status 408
	// Cancelled means that the caller gave up, so the state of the model is unknown.
	Cancelled Failure = "cancelled"
	// Unusable means that the model answered, and that the answer cannot be used: it refused, was
	// cut off before the first word, or was malformed.
	Unusable Failure = "unusable"
	// Unrecognised is every other error. It may be a fault of the host's code or configuration.
	Unrecognised Failure = ""
)

// Error returns what happened in words. It does not name the model, which the caller knows.
func (k Failure) Error() string {
	switch k {
	case Unreachable:
		return "the model cannot be reached"
	case RateLimited:
		return "the model limits the rate of requests"
	case ServerError:
		return "the model's server failed"
	case TimedOut:
		return "the model gave no answer in its time"
	case Cancelled:
		return "the call of the model was cancelled"
	case Unusable:
		return "the model's answer cannot be used"
	case Unrecognised:
	}
	return "the model failed in an unknown way"
}

// An Error is a failure of a model.
type Error struct {
	Failure Failure
	// RetryAfter is how long the provider asked to wait. 0 means that it did not ask.
	RetryAfter time.Duration
	Err        error // the cause; may be nil
}

// Error returns the text of the cause. Without a cause, it describes the kind.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Failure.Error()
	}
	return e.Err.Error()
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Failure}
	}
	return []error{e.Failure, e.Err}
}

// FailureOf returns the kind of an error. If there is neither an [Error] nor a Failure in the
// error, it looks for an HTTP status, for the end of a context, and for an error of package net. An
// HTTP status is the result of a method StatusCode or HTTPStatusCode, or a field of one of these
// names or of the name Code. nil is Unrecognised.
func FailureOf(err error) Failure {
	var kind Failure
	var network net.Error
	var operation *net.OpError
	switch {
	case err == nil:
		return Unrecognised
	case errors.As(err, &kind):
		return kind
	case statusOf(err) != 0:
		return failureOfStatus(statusOf(err))
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return TimedOut
	case network != nil, errors.As(err, &operation), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNREFUSED),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, net.ErrClosed):
		return Unreachable
	default:
		return Unrecognised
	}
}

// RetryAfter returns how long the provider asked to wait, or 0.
func RetryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return max(e.RetryAfter, 0)
	}
	return 0
}

// FromStatus returns the error of a response with an HTTP status that is no success.
func FromStatus(status int, retryAfter time.Duration, cause error) *Error {
	return &Error{Failure: failureOfStatus(status), RetryAfter: retryAfter, Err: cause}
}

// failureOfStatus returns what a status means. A status of 4xx that is not about this client, for
// example 400, is a fault of the request, and so of the host's code.
func failureOfStatus(status int) Failure {
	switch status { // by numbers: net/http adds two megabytes to a host
	case 429:
		return RateLimited
	case 408:
		return TimedOut
	case 401, 402, 403, 404, 407:
		return Unreachable
	}
	switch status / 100 {
	case 3:
		return Unreachable
	case 5:
		return ServerError
	}
	return Unrecognised
}

// statusOf returns the HTTP status of the first error in a tree that has one, or 0.
func statusOf(err error) (status int) {
	switch e := err.(type) { //nolint:errorlint // this walks the tree itself
	case nil:
		return 0
	case interface{ HTTPStatusCode() int }:
		status = e.HTTPStatusCode()
	case interface{ StatusCode() int }:
		status = e.StatusCode()
	default:
		status = statusField(err)
	}
	if status >= 300 && status <= 599 {
		return status
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return statusOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if status = statusOf(err); status != 0 {
				return status
			}
		}
	}
	return 0
}

// statusField returns the number in a field for an HTTP status, or 0. The errors of most SDKs have
// one, and no method in common.
func statusField(err error) int {
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return 0
	}
	for _, name := range []string{"StatusCode", "HTTPStatusCode", "Code"} {
		if f := v.FieldByName(name); f.IsValid() && f.CanInt() {
			return int(f.Int())
		}
	}
	return 0
}
