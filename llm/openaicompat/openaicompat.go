package openaicompat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/heedhq/heed/decision"
)

// A Client asks one model at one endpoint. Make one with [New].
//
// A Client is safe for concurrent use by multiple goroutines.
type Client struct {
	config   func() *Config // a function, as package fmt would show the key in an unexported field
	endpoint string
	http     *http.Client
	seed     uint64
	retries  atomic.Uint64 // waits so far
}

var _ decision.LLM = (*Client)(nil)

// New returns a client, or all faults of its configuration, joined: each is a [*heed.ConfigError]. It connects to nothing.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	base, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, err // validate has parsed it
	}
	c := &Client{config: func() *Config { return &cfg }, endpoint: base.JoinPath("chat", "completions").String()}
	client := *cfg.HTTPClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &client
	if cfg.Seed != nil {
		c.seed = cfg.Seed.Uint64()
	} else {
		c.seed = rand.Uint64() //nolint:forbidigo // the random key of a host without a seed
	}
	return c, nil
}

// Config returns the configuration with its defaults.
func (c *Client) Config() Config { return *c.config() }

// Generate implements [decision.LLM]. It asks the model, again if that may help, and returns its answer.
//
// It returns a [*heed.InputError] for a request that can't be sent, a [*StatusError] for a failure of the endpoint, an
// [*AnswerError] for a response that is no answer, and the context's error if that ended or [Config.Timeout] was over. Any
// other error is a connection that failed. No error's text has the key, the prompt, or anything of a body but a code.
//
// With an AnswerError come the model and the tokens as the endpoint tells them, as they have to be paid. If the answer was
// cut off, its text comes too.
func (c *Client) Generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	body, err := c.config().request(r)
	if err != nil {
		return decision.LLMResponse{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.config().Timeout)
	defer cancel()
	var last error // of the attempt before
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return decision.LLMResponse{}, ended(err, last)
		}
		answer, err := c.attempt(ctx, body)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil && !isAnswer(err) {
			return answer, ended(ctx.Err(), last)
		}
		last = fmt.Errorf("openaicompat: %w", err)
		if attempt == c.config().MaxAttempts || !retryable(err) || !c.wait(ctx, attempt, err) {
			return answer, last
		}
	}
}

// ended is the error of a context that is done, and what happened before.
func ended(err, last error) error {
	if last == nil {
		return fmt.Errorf("openaicompat: %w", err)
	}
	return fmt.Errorf("%w; then %w", last, err)
}

// attempt asks once.
func (c *Client) attempt(ctx context.Context, body []byte) (decision.LLMResponse, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return decision.LLMResponse{}, errors.New("the request can't be made")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	c.config().authorize(req.Header)
	res, err := c.http.Do(req)
	if err != nil {
		return decision.LLMResponse{}, c.config().APIKey.connectionError(err)
	}
	defer res.Body.Close() //nolint:errcheck // what was read is what counts
	if res.StatusCode/100 != 2 {
		return decision.LLMResponse{}, c.config().statusError(res)
	}
	return c.config().answer(res)
}

// read reads a body of at most max bytes, and reports whether there is more.
func read(body io.Reader, max int) (b []byte, more bool, err error) {
	b, err = io.ReadAll(io.LimitReader(body, int64(max)+1))
	if len(b) > max {
		return b[:max], true, nil
	}
	return b, false, err
}
