package openaicompat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
)

// A Client asks one model at one endpoint. Make one with [New]. It is safe for concurrent use by
// multiple goroutines.
type Client struct {
	config func() *Config // a function, because fmt would print a field
	// endpoint and embeddings are the two addresses, and http is the host's client without redirects,
	// because a redirect would send the key to another server.
	endpoint   string
	embeddings string
	http       *http.Client
}

// New returns a client. It does not connect yet. It returns all faults of the configuration,
// joined. Each is a [*heed.ConfigError].
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	base, _ := url.Parse(cfg.BaseURL) // validate has parsed it
	c := &Client{config: func() *Config { return &cfg },
		endpoint:   base.JoinPath("chat", "completions").String(),
		embeddings: base.JoinPath("embeddings").String()}
	client := *cfg.HTTPClient
	client.CheckRedirect = func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}
	c.http = &client
	return c, nil
}

// Generate implements [decision.LLM]. It asks the model, repeats that if it may help, and returns
// the answer.
//
// A request that can't be sent gives a [*heed.InputError]. A failure of the endpoint gives a
// [*StatusError], and an unusable answer an [*AnswerError]. If the context ends, or Config.Timeout,
// the error wraps the context's error. Any other error is a connection that failed. No error's text
// has the key, the prompt, or more of a body than a code.
//
// With an AnswerError come the model and the tokens that were used. An answer that was cut off, by
// its finish_reason "length", is an answer with Cut set.
func (c *Client) Generate(
	ctx context.Context, r decision.LLMRequest,
) (decision.LLMResponse, error) {
	body, err := c.config().request(r, false)
	if err != nil {
		return decision.LLMResponse{}, err
	}
	return c.repeat(ctx, asking{c.endpoint, body, "application/json", c.config().answer})
}

// An asking is what is sent, and what reads the answer of a response.
type asking struct {
	// url and body make the request, and accept is its Accept header. read reads the response, if its
	// status is a success.
	url    string
	body   []byte
	accept string
	read   func(*http.Response) (decision.LLMResponse, error)
}

// repeat asks, and asks again where that may help. All attempts and the waits between them are
// within Config.Timeout. The error names the last failure of the endpoint too if the time ended
// after it, because "deadline exceeded" alone would hide why the time was used up. An answer that
// can't be used is returned with its error, so that its tokens are counted.
func (c *Client) repeat(ctx context.Context, a asking) (decision.LLMResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config().Timeout)
	defer cancel()
	var last error // of the attempt before
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return decision.LLMResponse{}, ended(err, last)
		}
		answer, err := c.attempt(ctx, a)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil && !isAnswer(err) {
			return answer, ended(ctx.Err(), last)
		}
		last = fmt.Errorf("openaicompat: %w", err)
		if attempt == c.config().tuning.MaxAttempts || !retryable(err) || !c.wait(ctx, attempt, err) {
			return answer, last
		}
	}
}

// ended is the error of a context that ended, after the last error before.
func ended(err, last error) error {
	if last == nil {
		return fmt.Errorf("openaicompat: %w", err)
	}
	return fmt.Errorf("%w; then %w", last, err)
}

// attempt asks once. Each attempt makes a new request, because the reader of a body can be used
// only once.
func (c *Client) attempt(ctx context.Context, a asking) (decision.LLMResponse, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(a.body))
	if err != nil {
		return decision.LLMResponse{}, errors.New("the request can't be made")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", a.accept)
	c.config().authorize(req)
	res, err := c.http.Do(req)
	if err != nil {
		return decision.LLMResponse{}, c.config().APIKey.connectionError(err)
	}
	defer res.Body.Close() //nolint:errcheck // what was read is what counts
	if res.StatusCode/100 != 2 {
		return decision.LLMResponse{}, c.config().statusError(res)
	}
	return a.read(res)
}

// read reads a body of at most max bytes, and reports whether there is more.
func read(body io.Reader, max int) (b []byte, more bool, err error) {
	b, err = io.ReadAll(io.LimitReader(body, int64(max)+1))
	if len(b) > max {
		return b[:max], true, nil
	}
	return b, false, err
}

// retryable reports whether asking again may help: after a connection that failed, and after a
// status that endpoints use for a moment of trouble. An answer that can't be used would come again,
// and a stream that began has been shown in part.
func retryable(err error) bool {
	if errors.As(err, new(*begunError)) {
		return false
	}
	var status *StatusError
	if !errors.As(err, &status) {
		return !isAnswer(err)
	}
	return slices.Contains([]int{408, 429, 500, 502, 503, 504}, status.Status)
}

// isAnswer reports whether the endpoint itself answered with the error.
func isAnswer(err error) bool {
	var status *StatusError
	var answer *AnswerError
	return errors.As(err, &status) || errors.As(err, &answer)
}

// wait waits before another attempt: for a random part of the backoff, so that many clients do not
// come back together, or for as long as the endpoint asks. It returns false at once if the context
// would end before, because the failure that is known is worth more than a deadline.
func (c *Client) wait(ctx context.Context, attempt int, err error) bool {
	backoff := c.config().tuning.Backoff << min(attempt-1, 4)
	d := time.Duration(float64(backoff) * (1 + rand.Float64()) / 2) //nolint:forbidigo // so that clients do not come back together
	var status *StatusError
	if errors.As(err, &status) {
		d = max(d, status.RetryAfter)
	}
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	end, _ := ctx.Deadline() // there is one: see Generate
	if at, _ := over.Deadline(); !at.Before(end) {
		return false
	}
	<-over.Done()
	return true
}

const maxRetryAfter = 365 * 24 * time.Hour // more than any call lasts

// retryAfter reads how long an endpoint asks to wait: a number of seconds, or a date, which is
// compared with the endpoint's own date, because clocks may differ (RFC 9110, section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	at, err := http.ParseTime(text)
	now, err2 := http.ParseTime(h.Get("Date"))
	if err != nil || err2 != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// A request is the body of a request for an answer. OpenAI's API defines the names.
type request struct {
	// Of the two limits on tokens one is set: newer models of OpenAI refuse the first name, and other
	// servers do not know the second.
	Model               string     `json:"model,omitempty"`
	Messages            []prompted `json:"messages"`
	MaxTokens           int        `json:"max_tokens,omitempty"`
	MaxCompletionTokens int        `json:"max_completion_tokens,omitempty"`
	Temperature         *float64   `json:"temperature,omitempty"`
	ResponseFormat      any        `json:"response_format,omitempty"`
	Stream              bool       `json:"stream,omitempty"`
	StreamOptions       any        `json:"stream_options,omitempty"`
}

// A prompted message is the system prompt or the user's.
type prompted struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

var (
	// These are the values of ResponseFormat and of StreamOptions.
	jsonObject = json.RawMessage(`{"type":"json_object"}`)
	jsonSchema = json.RawMessage(
		`{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}}`)
	streamUsage = json.RawMessage(`{"include_usage":true}`)
)

// request returns the body to send, or an [*heed.InputError]. It leaves out every field that the
// endpoint need not know, because servers differ in which fields they refuse.
func (c *Config) request(r decision.LLMRequest, stream bool) ([]byte, error) {
	if r.MaxTokens < 1 {
		return nil, &heed.InputError{Field: "MaxTokens",
			Reason: fmt.Sprintf("is %d, must be at least 1", r.MaxTokens)}
	}
	if t := r.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		return nil, &heed.InputError{Field: "Temperature",
			Reason: fmt.Sprintf("is %v, must be in [0, 2]", *t)}
	}
	body := request{Model: c.Model, Temperature: r.Temperature, Stream: stream}
	if stream {
		body.StreamOptions = streamUsage
	}
	if r.System != "" {
		body.Messages = append(body.Messages, prompted{"system", r.System})
	}
	body.Messages = append(body.Messages, prompted{"user", r.Prompt})
	if c.MaxCompletionTokens {
		body.MaxCompletionTokens = r.MaxTokens
	} else {
		body.MaxTokens = r.MaxTokens
	}
	if r.JSON && c.JSON == "json_object" {
		body.ResponseFormat = jsonObject
	} else if r.JSON && c.JSON == "json_schema" {
		body.ResponseFormat = jsonSchema
	}
	b, err := json.Marshal(body)
	if len(b) > 1<<20 {
		return nil, &heed.InputError{Field: "Prompt",
			Reason: fmt.Sprintf("makes a request of %d bytes, may be 1 MiB", len(b))}
	}
	return b, err
}
