package openaicompat

import (
	"errors"
	"net/url"

	"github.com/heedhq/heed/prompt"
)

// A connectionError is a connection that failed. Its text is that of the error without the URL, which net/http puts before
// it and which may have anything in it, and without the key: what is said of a malformed response quotes it.
type connectionError struct {
	err  error
	text string
}

func (k Key) connectionError(err error) *connectionError {
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	return &connectionError{err, prompt.Line(k.redact(err.Error(), false), maxExcerpt)}
}

func (e *connectionError) Error() string { return e.text }

func (e *connectionError) Unwrap() error { return e.err }
