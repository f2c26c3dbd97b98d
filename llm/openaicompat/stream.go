package openaicompat

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/thoughts"
	"github.com/heedhq/heed/prompt"
)

// Stream asks as Generate does, and gives the text to piece as it comes, on the caller's goroutine.
// It returns the whole answer. Stream makes a Client a Streamer of package loop.
//
// Pieces do not contain thoughts that the endpoint returns separately. They contain thoughts in
// tags unchanged. The answer's text contains neither. An endpoint that does not stream gives its
// text as one piece. Stream asks again as Generate does, but never after a piece.
//
// The errors are the same as in Generate. A stream that breaks off is a connection that failed. An
// error after a piece comes with the text so far.
func (c *Client) Stream(ctx context.Context, r decision.LLMRequest,
	piece func(text string)) (decision.LLMResponse, error) {
	body, err := c.config().request(r, true)
	if err != nil {
		return decision.LLMResponse{}, err
	}
	shown := false
	return c.repeat(ctx, asking{c.endpoint, body, "text/event-stream, application/json",
		func(res *http.Response) (decision.LLMResponse, error) {
			media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
			if media == "application/json" { // it does not stream
				answer, err := c.config().answer(res)
				if err == nil {
					piece(answer.Text)
				}
				return answer, err
			}
			answer, err := c.config().stream(res, func(text string) { shown = true; piece(text) })
			if err != nil && shown {
				err = &begunError{err}
			}
			return answer, err
		}})
}

// A begunError is a failure after the answer began, so that the request must not be repeated.
type begunError struct{ error }

func (e *begunError) Unwrap() error { return e.error }

// A partialAnswer is an answer while it arrives. An answer that does not stream arrives at once.
type partialAnswer struct {
	// out is the answer without its text, and text and thoughts are what has come. refused and finish
	// show how it ended.
	cfg      *Config
	piece    func(string)
	out      decision.LLMResponse
	text     strings.Builder
	thoughts strings.Builder
	refused  bool
	finish   string
}

// partial returns an answer that has not begun.
func (c *Config) partial(piece func(string)) *partialAnswer {
	return &partialAnswer{cfg: c, piece: piece, out: decision.LLMResponse{Model: c.Model}}
}

// stream reads the answer of a response that streams. An answer is whole if the endpoint sent
// [DONE] or a finish_reason: some send only one of them. A stream that ends with neither broke off.
// A stream without any event was no stream, for example the page of a proxy.
func (c *Config) stream(res *http.Response, piece func(string)) (decision.LLMResponse, error) {
	t := c.partial(piece)
	events, done, err := 0, false, error(nil)
	for e := newEvents(res.Body, c.tuning.MaxResponse); err == nil && !done; {
		var data []byte
		if data, err = e.next(); err != nil {
			break
		}
		events++
		if done = string(bytes.TrimSpace(data)) == "[DONE]"; !done {
			err = t.take(data)
		}
	}
	whole := done || t.finish != ""
	if errors.Is(err, io.EOF) && whole {
		err = nil
	}
	switch {
	case errors.Is(err, io.EOF) && events == 0:
		return t.answer(c.noObject(res))
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	if err != nil && !isAnswer(err) {
		err = c.APIKey.connectionError(err)
	}
	return t.answer(err)
}

// take takes an event.
func (t *partialAnswer) take(data []byte) error {
	var got completion
	if json.Unmarshal(data, &got) != nil {
		return &AnswerError{Fault: "no JSON object", ContentType: "text/event-stream"}
	}
	if err := t.begin(&got, data); err != nil {
		return err
	}
	for _, c := range got.Choices.value {
		if c.Index.value != 0 { // it was not asked for
			continue
		}
		if err := t.add(&c, &c.Delta.value, data); err != nil {
			return err
		}
	}
	return nil
}

// begin takes what surrounds the choices of a completion. Usage comes with the last event, or with
// each event as a sum so far, so the greatest counts.
func (t *partialAnswer) begin(got *completion, data []byte) error {
	if got.Model.value != "" {
		t.out.Model = prompt.Line(t.cfg.APIKey.redact(got.Model.value, false), 200)
	}
	t.out.InputTokens = max(t.out.InputTokens, got.Usage.value.Prompt.value)
	t.out.OutputTokens = max(t.out.OutputTokens, got.Usage.value.Completion.value)
	if got.Error.ok {
		return t.cfg.failureInside(got.Error.value, data)
	}
	return nil
}

// add adds the message of a choice, or a piece of it. Thoughts count towards the limit as well,
// because they take memory.
func (t *partialAnswer) add(c *choice, m *message, data []byte) error {
	if c.Error.ok {
		return t.cfg.failureInside(c.Error.value, data)
	}
	t.thoughts.WriteString(cmp.Or(m.ReasoningContent.value, m.Reasoning.value))
	t.refused = t.refused || m.Refusal.value != ""
	t.finish = cmp.Or(c.FinishReason.value, t.finish)
	if text := m.Content.value; text != "" {
		t.text.WriteString(text)
		t.piece(text)
	}
	if t.text.Len()+t.thoughts.Len() > t.cfg.tuning.MaxResponse {
		return &AnswerError{Fault: "too large"}
	}
	return nil
}

// answer returns the answer as far as it came, and why it can't be used: err, if it is set. The
// text is returned with a failed connection and not with an answer that can't be used.
func (t *partialAnswer) answer(err error) (decision.LLMResponse, error) {
	text, inside := thoughts.Split(t.text.String())
	t.out.Thoughts = strings.TrimSpace(strings.TrimSpace(t.thoughts.String()) + "\n\n" + inside)
	if err == nil {
		err = finished(t.finish, t.refused, text)
		t.out.Cut = err == nil && t.finish == "length"
	}
	if fault := (*AnswerError)(nil); !errors.As(err, &fault) {
		t.out.Text = text
	}
	return t.out, err
}

// Events reads server-sent events (WHATWG HTML, section 9.2): the data of each, as one text.
type events struct {
	// max bounds the data of one event. first is set until the first line was read, which may begin
	// with a byte order mark.
	lines *bufio.Scanner
	max   int
	first bool
}

// newEvents reads lines that end with a line feed, a carriage return or both, as the standard
// permits. A carriage return at the end of what has arrived ends its line at once, and a line feed
// that comes later is skipped: to wait for it would hold back the last event.
func newEvents(body io.Reader, most int) *events {
	e := &events{lines: bufio.NewScanner(body), max: most, first: true}
	e.lines.Buffer(nil, most)
	cr := false // the line before ended with a carriage return
	e.lines.Split(func(data []byte, atEOF bool) (advance int, token []byte, err error) {
		skip := 0
		if cr && len(data) > 0 {
			cr = false
			if data[0] == '\n' {
				skip, data = 1, data[1:]
			}
		}
		switch i := bytes.IndexAny(data, "\r\n"); {
		case i >= 0:
			cr = data[i] == '\r'
			return skip + i + 1, data[:i], nil
		case atEOF && len(data) > 0:
			return skip + len(data), data, nil
		default:
			return skip, nil, nil
		}
	})
	return e
}

// errEvent reports a line or an event that is longer than a whole answer may be.
var errEvent = &AnswerError{Fault: "too large"}

// next returns the data of the next event that has some, or [io.EOF]. The last one need not be
// ended by an empty line, because some endpoints leave that out.
func (e *events) next() ([]byte, error) {
	var data []byte
	has := false
	for e.lines.Scan() {
		line := e.lines.Bytes()
		if e.first {
			line, e.first = bytes.TrimPrefix(line, []byte("\ufeff")), false
		}
		if len(line) == 0 {
			if has {
				return data, nil
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		if string(field) != "data" {
			continue // a comment, or what does not matter here
		}
		if value = bytes.TrimPrefix(value, []byte(" ")); has {
			value = append([]byte("\n"), value...)
		}
		has = true
		if data = append(data, value...); len(data) > e.max {
			return nil, errEvent
		}
	}
	switch err := e.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, errEvent
	case err != nil:
		return nil, fmt.Errorf("the stream broke off: %w", err)
	case has:
		return data, nil
	default:
		return nil, io.EOF
	}
}
