package llm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/llm"
)

func ExampleFailureOf() {
	err := fmt.Errorf("the support model: %w", &llm.Error{
		Failure: llm.RateLimited, RetryAfter: 20 * time.Second, Err: errors.New("quota"),
	})
	fmt.Println(errors.Is(err, llm.RateLimited), llm.RetryAfter(err), err)

	slow := fmt.Errorf("%w: no first byte", llm.TimedOut) // from a client of your own
	fmt.Println(llm.FailureOf(slow) == llm.TimedOut)
	// Output:
	// true 20s the support model: quota
	// true
}

// The errors of SDKs, each as one of them declares it.
type (
	withField  struct{ StatusCode int }
	withHTTP   struct{ HTTPStatusCode int }
	withCode   struct{ Code int }
	withName   struct{ Code string }
	withMethod struct{ code int }
)

func (withField) Error() string      { return "it failed" }
func (*withHTTP) Error() string      { return "it failed" }
func (withCode) Error() string       { return "it failed" }
func (withName) Error() string       { return "it failed" }
func (withMethod) Error() string     { return "it failed" }
func (e withMethod) StatusCode() int { return e.code }
func wrapped(err error) error        { return fmt.Errorf("the model: %w", err) }
func kindOf(err error) (of, as string) {
	return string(llm.FailureOf(err)), string(llm.FailureOf(wrapped(err)))
}

func TestFailureOf(t *testing.T) {
	var missing *withHTTP
	for name, test := range map[string]struct {
		err  error
		want llm.Failure
	}{
		"nil":                 {nil, llm.Unrecognised},
		"a kind":              {llm.Unusable, llm.Unusable},
		"an Error":            {&llm.Error{Failure: llm.ServerError}, llm.ServerError},
		"an Error first":      {&llm.Error{Failure: llm.Unusable, Err: withField{429}}, llm.Unusable},
		"joined":              {errors.Join(errors.New("x"), withField{429}), llm.RateLimited},
		"429":                 {withField{429}, llm.RateLimited},
		"500":                 {&withHTTP{500}, llm.ServerError},
		"529":                 {withCode{529}, llm.ServerError},
		"408":                 {withMethod{408}, llm.TimedOut},
		"401":                 {withField{401}, llm.Unreachable},
		"404":                 {withField{404}, llm.Unreachable},
		"301":                 {withField{301}, llm.Unreachable},
		"400":                 {withField{400}, llm.Unrecognised},
		"200":                 {withField{200}, llm.Unrecognised},
		"a code of gRPC":      {withCode{14}, llm.Unrecognised},
		"a code in words":     {withName{"429"}, llm.Unrecognised},
		"a nil pointer":       {missing, llm.Unrecognised},
		"the caller":          {context.Canceled, llm.Cancelled},
		"a deadline":          {context.DeadlineExceeded, llm.TimedOut},
		"half a body":         {io.ErrUnexpectedEOF, llm.Unreachable},
		"a closed connection": {io.EOF, llm.Unreachable},
		"no such host":        {&net.DNSError{IsNotFound: true}, llm.Unreachable},
		"a slow name":         {&net.DNSError{IsTimeout: true}, llm.TimedOut},
		"a connection":        {&net.OpError{Op: "dial", Err: errors.New("refused")}, llm.Unreachable},
		"a fault of the host": {errors.New("nil map"), llm.Unrecognised},
	} {
		t.Run(name, func(t *testing.T) {
			of, as := kindOf(test.err)
			assert.Equal(t, string(test.want), of)
			if test.err != nil {
				assert.Equal(t, string(test.want), as, "wrapped")
			}
		})
	}
}

func TestFailureOfWhatAnHTTPClientReturns(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler) // this is how a handler closes it
	}))
	_, err := http.Get(server.URL) //nolint:noctx,bodyclose // it has none
	require.Error(t, err)
	assert.Equal(t, llm.Unreachable, llm.FailureOf(err), err)
	server.Close()
	_, err = http.Get(server.URL) //nolint:noctx,bodyclose // it has none
	require.Error(t, err)
	assert.Equal(t, llm.Unreachable, llm.FailureOf(err), err)
}

func TestErrorSaysWhatFailed(t *testing.T) {
	cause := errors.New("overloaded")
	err := llm.FromStatus(http.StatusServiceUnavailable, time.Minute, cause)
	assert.EqualError(t, err, "overloaded")
	assert.ErrorIs(t, err, cause)
	assert.ErrorIs(t, err, llm.ServerError)
	assert.NotErrorIs(t, err, llm.RateLimited)
	assert.Equal(t, time.Minute, llm.RetryAfter(wrapped(err)))
	assert.Zero(t, llm.RetryAfter(cause))
	assert.Zero(t, llm.RetryAfter(&llm.Error{RetryAfter: -1}))
	texts := make(map[string]bool)
	for _, kind := range []llm.Failure{
		llm.Unreachable, llm.RateLimited, llm.ServerError, llm.TimedOut, llm.Cancelled, llm.Unusable,
		llm.Unrecognised,
	} {
		texts[(&llm.Error{Failure: kind}).Error()] = true
	}
	assert.Len(t, texts, 7, "each kind has its own text")
}
