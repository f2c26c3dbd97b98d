package scores

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// A LangSmith reads the feedback of a workspace in LangSmith, and sends what became of answers
// there. It is safe for concurrent use by multiple goroutines and processes. It is a
// [heed.Sweeper], whose sweep polls.
//
// It uses GET, POST and PATCH of /api/v1/feedback.
type LangSmith struct{ service }

// NewLangSmith returns a LangSmith; or all faults of its configuration, joined, each a
// [*heed.ConfigError].
func NewLangSmith(cfg ServiceConfig) (*LangSmith, error) {
	s, err := newService("langsmith", "https://api.smith.langchain.com", cfg, langSmithNames)
	if err != nil {
		return nil, fmt.Errorf("scores: langsmith: %w", err)
	}
	s.auth = func(h http.Header) { h.Set("X-Api-Key", cfg.Key) }
	return &LangSmith{s}, nil
}

// A langSmithFeedback is a feedback as the API gives it.
type langSmithFeedback struct {
	ID         string          `json:"id"`
	Key        string          `json:"key"`
	CreatedAt  utc             `json:"created_at"`
	ModifiedAt utc             `json:"modified_at"`
	RunID      string          `json:"run_id"`
	TraceID    string          `json:"trace_id"`
	Score      json.RawMessage `json:"score"`
	Value      json.RawMessage `json:"value"`
	Comment    string          `json:"comment"`
	Correction json.RawMessage `json:"correction"`
	Source     struct {
		UserID   string         `json:"user_id"`
		Metadata map[string]any `json:"metadata"`
	} `json:"feedback_source"`
}

// langSmithNames are the fields of a feedback, by the fields of a grade.
var langSmithNames = map[string]string{
	"ID": "id", "Answer": "run_id", "Value": "score", "Label": "value", "Correction": "correction",
	"Comment": "comment", "Reviewer": "feedback_source.user_id",
	"At": "modified_at",
}

// utc is a time that may lack its zone, and is of UTC then.
type utc struct{ time.Time }

// UnmarshalJSON reads a time of RFC 3339, with a zone or without.
func (u *utc) UnmarshalJSON(text []byte) error {
	var value string
	if err := json.Unmarshal(text, &value); err != nil || value == "" {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04:05.999999999", value)
	}
	u.Time = at
	return err
}

func (f *langSmithFeedback) origin() Anchor {
	o := Anchor{Trace: cmp.Or(f.TraceID, f.RunID), Metadata: f.Source.Metadata}
	if f.RunID != o.Trace {
		o.Part = f.RunID
	}
	return o
}

// grade returns the feedback as a grade of an answer.
func (f *langSmithFeedback) grade(answer string) Grade {
	r := Grade{
		ID: f.ID, Answer: answer, Name: f.Key, Value: number(f.Score), Correction: words(f.Correction),
		Comment:  f.Comment,
		Reviewer: f.Source.UserID, At: f.ModifiedAt.Time,
	}
	if r.At.IsZero() {
		r.At = f.CreatedAt.Time
	}
	var label string
	if json.Unmarshal(f.Value, &label) == nil {
		r.Label = label
	} else if r.Value == nil {
		r.Value = number(f.Value)
	}
	return r
}

// badJSON returns an error of package json as one that names the field.
func badJSON(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return &heed.InputError{Field: cmp.Or(wrong.Field, "body"),
			Reason: "must not be a JSON " + wrong.Value}
	}
	return &heed.InputError{Field: "body", Reason: "must be JSON: " + err.Error()}
}

// Poll reads the feedback that is new since the last poll of any process, and takes it. If it
// fails, no feedback is missed, because the next poll reads the same again. A feedback that is
// changed after the Overlap is not seen, unless a webhook reports it: see [LangSmith.Handler].
func (l *LangSmith) Poll(ctx context.Context) (p Polled, err error) {
	from, err := l.from(ctx)
	if err != nil {
		return p, err
	}
	latest, err := l.feedback(ctx, &p, url.Values{
		"min_created_at": {from.UTC().Format(time.RFC3339Nano)}})
	if err == nil {
		err = l.read(ctx, latest)
	}
	return p, err
}

// feedback takes all feedback that a query selects, and returns the latest time at which one was
// made.
func (l *LangSmith) feedback(ctx context.Context, p *Polled, query url.Values) (latest time.Time,
	err error) {
	query.Set("limit", strconv.Itoa(pageSize))
	for offset := 0; ; offset += pageSize {
		query.Set("offset", strconv.Itoa(offset))
		var page []json.RawMessage
		if _, err := l.call(ctx, http.MethodGet, "/api/v1/feedback", query, nil, &page); err != nil {
			return latest, err
		}
		for i, raw := range page {
			var f langSmithFeedback
			var g Grade
			err := json.Unmarshal(raw, &f)
			if err != nil {
				err = badJSON(err)
			} else {
				g = f.grade(l.Answer(f.origin()))
			}
			if err := l.take(ctx, p, fmt.Sprintf("[%d]", offset+i), g, err); err != nil {
				return latest, err
			}
			if f.CreatedAt.After(latest) {
				latest = f.CreatedAt.Time
			}
		}
		if len(page) < pageSize {
			return latest, nil
		}
	}
}

// Sweep polls, for [heed.Run]. It returns the faults of feedback as well.
func (l *LangSmith) Sweep(ctx context.Context, _ time.Time) error { return swept(l.Poll(ctx)) }

const (
	maxHook  = 4 << 20 // bytes of a webhook's body
	maxRuns  = 1_000   // of a webhook
	someRuns = 50      // in one request
	hookTime = 4 * time.Second
)

// Handler returns a handler for the webhook of an automation rule. The webhook names runs. The
// handler reads their feedback from LangSmith, so that a forged call can't bring any. It answers
// within the 5 s that LangSmith waits, and with 503 if LangSmith is to send the webhook again.
//
// The secret has at least 16 bytes. A call has it in the header "Authorization: Bearer <secret>",
// which the webhook's settings can add, or as "?secret=<secret>", which proxies may log.
func (l *LangSmith) Handler(secret string) (http.Handler, error) {
	if len(secret) < atLeast {
		return nil, &heed.ConfigError{Field: "secret",
			Reason: fmt.Sprintf("must have at least %d bytes", atLeast)}
	}
	want := sha256.Sum256([]byte(secret))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !is {
			bearer = r.URL.Query().Get("secret")
		}
		got := sha256.Sum256([]byte(bearer))
		switch {
		case subtle.ConstantTimeCompare(got[:], want[:]) != 1:
			http.Error(w, "the secret is missing or wrong", http.StatusUnauthorized)
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "must be a POST", http.StatusMethodNotAllowed)
		default:
			l.hook(w, r)
		}
	}), nil
}

// hook takes the feedback of the runs that a webhook names.
func (l *LangSmith) hook(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), hookTime)
	defer cancel()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHook))
	if errors.As(err, new(*http.MaxBytesError)) {
		http.Error(w, fmt.Sprintf("the body has more than %d bytes", maxHook),
			http.StatusRequestEntityTooLarge)
		return
	}
	if err == nil {
		err = ctx.Err()
	}
	var runs []string
	if err == nil {
		if runs, err = hooked(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	var p Polled
	for some := range slices.Chunk(runs, someRuns) {
		if err == nil {
			_, err = l.feedback(ctx, &p, url.Values{"run": some})
		}
	}
	if err != nil {
		http.Error(w, "the feedback could not be read: send it again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{
		"learned": p.Learned, "repeated": p.Repeated, "unknown": p.Unknown, "ignored": p.Ignored,
		"faults": len(p.Faults),
	})
}

// hooked returns the runs that a webhook names, each once.
func hooked(body []byte) (runs []string, err error) {
	var hook struct {
		Runs []struct {
			ID string `json:"id"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(body, &hook); err != nil {
		return nil, badJSON(err)
	}
	if len(hook.Runs) > maxRuns {
		return nil, &heed.InputError{Field: "runs", Reason: fmt.Sprintf("must be at most %d", maxRuns)}
	}
	for i, run := range hook.Runs {
		if run.ID == "" {
			return nil, &heed.InputError{Field: fmt.Sprintf("runs[%d].id", i), Reason: "must be set"}
		}
		runs = append(runs, run.ID)
	}
	slices.Sort(runs)
	return slices.Compact(runs), nil
}

// Send sends what became of an answer as a feedback to its run, between -1 and 1. A later Send of
// the same answer replaces the feedback. If heed has no statement about the answer, Send does not
// send a feedback.
func (l *LangSmith) Send(ctx context.Context, a loop.Account) error {
	if !a.Known {
		return nil
	}
	worth, comment := sent(&a)
	id := store.IDOf("scores", l.Name, a.ID)
	change := map[string]any{"score": worth, "comment": comment}
	patch := func() (int, error) {
		return l.call(ctx, http.MethodPatch, "/api/v1/feedback/"+id, nil, change, nil)
	}
	status, err := patch()
	if status != http.StatusNotFound {
		return err
	}
	status, err = l.call(ctx, http.MethodPost, "/api/v1/feedback", nil, map[string]any{
		"id": id, "run_id": l.Trace(a.ID), "key": l.Name, "score": worth, "comment": comment,
		"feedback_source": map[string]any{"type": "api"},
	}, nil)
	if status == http.StatusConflict { // another process was quicker
		_, err = patch()
	}
	return err
}
