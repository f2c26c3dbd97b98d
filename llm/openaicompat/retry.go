package openaicompat

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// retryable reports whether asking again may help.
func retryable(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		return !isAnswer(err)
	}
	switch status.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// isAnswer reports whether the error is the endpoint's answer, and not a connection's that failed.
func isAnswer(err error) bool {
	var status *StatusError
	var answer *AnswerError
	return errors.As(err, &status) || errors.As(err, &answer)
}

// wait waits before another attempt. It reports false, at once, where the context would be done by then.
func (c *Client) wait(ctx context.Context, attempt int, err error) bool {
	backoff := c.config().Backoff << min(attempt-1, maxDoublings)
	jitter := rand.New(rand.NewPCG(c.seed, c.retries.Add(1))).Float64()
	d := time.Duration(float64(backoff) * (1 + jitter) / 2)
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

// maxRetryAfter is more than any call lasts.
const maxRetryAfter = 365 * 24 * time.Hour

// retryAfter reads how long an endpoint asks to wait: a number of seconds, or a date, which is compared with the date that
// the endpoint says it has, as our clocks may differ (RFC 9110, section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
