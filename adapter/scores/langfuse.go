package scores

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// A Langfuse reads the scores of a project in Langfuse, and sends what became of answers there. It
// is safe for concurrent use by multiple goroutines and processes. It is a [heed.Sweeper], whose
// sweep polls.
//
// It uses GET /api/public/v3/scores, of Langfuse 3.179.0 and later, and POST /api/public/scores.
// Langfuse has no webhook for scores.
type Langfuse struct{ service }

// NewLangfuse returns a Langfuse; or all faults of its configuration, joined, each a
// [*heed.ConfigError].
func NewLangfuse(cfg ServiceConfig) (*Langfuse, error) {
	s, err := newService("langfuse", "https://cloud.langfuse.com", cfg, langfuseNames)
	var found valid.Faults
	found.Join(err)
	found.Check(cfg.PublicKey != "", "PublicKey", nil, "must be set")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("scores: langfuse: %w", err)
	}
	s.auth = func(h http.Header) {
		request := http.Request{Header: h}
		request.SetBasicAuth(cfg.PublicKey, cfg.Key)
	}
	return &Langfuse{s}, nil
}

// A langfuseScore is a score as Scores API v3 has it.
type langfuseScore struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Value     json.RawMessage `json:"value"`
	DataType  string          `json:"dataType"`
	Timestamp time.Time       `json:"timestamp"`
	UpdatedAt time.Time       `json:"updatedAt"`
	Comment   string          `json:"comment"`
	Metadata  map[string]any  `json:"metadata"`
	Author    string          `json:"authorUserId"`
	Subject   struct {
		Kind    string `json:"kind"`
		ID      string `json:"id"`
		TraceID string `json:"traceId"`
	} `json:"subject"`
}

// langfuseNames are the fields of a score, by the fields of a grade.
var langfuseNames = map[string]string{
	"ID": "id", "Answer": "subject", "Value": "value", "Label": "value", "Correction": "value",
	"Comment": "comment", "Reviewer": "authorUserId", "At": "updatedAt",
}

// origin returns what the score is attached to.
func (s *langfuseScore) origin() Anchor {
	o := Anchor{Metadata: s.Metadata}
	switch s.Subject.Kind {
	case "trace":
		o.Trace = s.Subject.ID
	case "observation":
		o.Trace, o.Part = s.Subject.TraceID, s.Subject.ID
	case "session":
		o.Session = s.Subject.ID
	}
	return o
}

// grade returns the score as a grade of an answer.
func (s *langfuseScore) grade(answer string) (Grade, error) {
	r := Grade{ID: s.ID, Answer: answer, Name: s.Name, Comment: s.Comment, Reviewer: s.Author,
		At: s.UpdatedAt}
	switch s.DataType {
	case "NUMERIC", "BOOLEAN":
		if r.Value = number(s.Value); r.Value == nil {
			return r, &heed.InputError{Field: "value",
				Reason: "must be a number or a truth value, as dataType is " + s.DataType}
		}
	case "CATEGORICAL", "CORRECTION":
		var text string
		if json.Unmarshal(s.Value, &text) != nil {
			return r, &heed.InputError{Field: "value",
				Reason: "must be a string, as dataType is " + s.DataType}
		}
		if s.DataType == "CORRECTION" {
			r.Correction = text
		} else {
			r.Label = text
		}
	case "TEXT": // a text is not a number
	default:
		return r, &heed.InputError{Field: "dataType",
			Reason: fmt.Sprintf("%q is not known", s.DataType)}
	}
	return r, nil
}

// Poll reads the scores that are new since the last poll of any process, and takes them. If it
// fails, no score is missed, because the next poll reads the same again. A score that is changed
// after the Overlap is not seen.
func (l *Langfuse) Poll(ctx context.Context) (p Polled, err error) {
	from, err := l.from(ctx)
	if err != nil {
		return p, err
	}
	query := url.Values{
		"fields": {"details,subject,annotation"}, "limit": {strconv.Itoa(pageSize)},
		"fromTimestamp": {from.UTC().Format(time.RFC3339Nano)},
	}
	var latest time.Time
	for {
		var page struct {
			Data []json.RawMessage `json:"data"`
			Meta struct {
				Cursor string `json:"cursor"`
			} `json:"meta"`
		}
		if _, err := l.call(ctx, http.MethodGet, "/api/public/v3/scores", query, nil,
			&page); err != nil {
			return p, err
		}
		for i, raw := range page.Data {
			at, err := l.take(ctx, &p, i, raw)
			if err != nil {
				return p, err
			}
			if at.After(latest) {
				latest = at
			}
		}
		next := page.Meta.Cursor
		if next == "" {
			return p, l.read(ctx, latest)
		}
		if next == query.Get("cursor") {
			return p, fmt.Errorf("langfuse: meta.cursor: the same page comes again")
		}
		query.Set("cursor", next)
	}
}

// take takes a score, and returns its time.
func (l *Langfuse) take(ctx context.Context, p *Polled, i int, raw json.RawMessage) (time.Time,
	error) {
	var s langfuseScore
	var g Grade
	err := json.Unmarshal(raw, &s)
	if err != nil {
		s, err = langfuseScore{}, badJSON(err)
	} else {
		g, err = s.grade(l.Answer(s.origin()))
	}
	return s.Timestamp, l.service.take(ctx, p, fmt.Sprintf("data[%d]", i), g, err)
}

// Sweep polls, for [heed.Run]. It returns the faults of scores as well.
func (l *Langfuse) Sweep(ctx context.Context, _ time.Time) error { return swept(l.Poll(ctx)) }

// Send sends what became of an answer as a score of its trace, between -1 and 1. A later Send of
// the same answer replaces the score. If heed has no statement about the answer, Send does not send
// a score.
func (l *Langfuse) Send(ctx context.Context, a loop.Account) error {
	if !a.Known {
		return nil
	}
	worth, comment := sent(&a)
	_, err := l.call(ctx, http.MethodPost, "/api/public/scores", nil, map[string]any{
		"id": "heed-" + store.IDOf("scores", l.Name, a.ID), "traceId": l.Trace(a.ID),
		"name": l.Name, "value": worth, "dataType": "NUMERIC", "comment": comment,
	}, nil)
	return err
}
