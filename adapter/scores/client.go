package scores

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/store"
)

// An Anchor is what a score is attached to, in the words of its service.
type Anchor struct {
	Trace    string // the trace, or the root run
	Part     string // the observation or run within the trace; "" for a score of the whole trace
	Session  string
	Metadata map[string]any // of the score. It must not be changed
}

// Polled reports what a poll brought.
type Polled struct {
	Learned, Repeated, Unknown, Ignored int
	// Faults are of scores that could not be taken, each a [*heed.InputError] that names the field as
	// "score-1.value". There are at most 100.
	Faults []error
}

// add counts a grade. names are what its service calls the fields of a grade. It returns an error
// that is no fault of the grade's.
func (p *Polled) add(id string, taken Taken, err error, names map[string]string) error {
	var input *heed.InputError
	switch {
	case errors.As(err, &input):
		if len(p.Faults) < 100 {
			field := input.Field[strings.LastIndexByte(input.Field, '.')+1:]
			p.Faults = append(p.Faults, &heed.InputError{Field: id + "." + cmp.Or(names[field], field),
				Reason: input.Reason})
		}
		return nil
	case err != nil:
		return err
	}
	*[]*int{&p.Ignored, &p.Unknown, &p.Repeated, &p.Learned}[taken]++
	return nil
}

// ServiceConfig configures a [Langfuse] or a [LangSmith].
type ServiceConfig struct {
	Taker *Taker // must be set
	// BaseURL is the address before "/api". "" means the address of the service in the cloud.
	BaseURL string
	// Key is the secret key of Langfuse, or the API key of LangSmith. It must be set.
	Key       string
	PublicKey string // of a project in Langfuse, which needs it
	// Answer returns the id of the answer that a score is about, or "". nil means that the trace, or
	// the root run, has the id of the answer.
	Answer func(Anchor) string
	// Trace is the reverse of Answer, for Send. nil means the id of the answer.
	Trace func(answer string) string
	// Name is what a score is called that Send sends. "" means "heed". It must not be among the
	// Meanings of the Taker.
	Name string
	// Since is from when on the first poll reads. The zero time means a day ago. Set it to read older
	// scores at the first start.
	Since time.Time
	// Overlap is how far back each poll reads again, for scores that arrived late or were changed. 0
	// means an hour. Raise it if scores arrive or change later.
	Overlap time.Duration
	// HTTPClient sends the requests. nil means a client with a timeout of 30 s. Redirects are not
	// followed.
	HTTPClient *http.Client
}

// A service is the part that all services share.
type service struct {
	ServiceConfig

	name  string            // as errors and cursors have it
	names map[string]string // the fields of a score, by the fields of a grade
	auth  func(http.Header)
	http  http.Client
}

const (
	maxAnswer = 16 << 20 // bytes of an answer of a service
	pageSize  = 100      // scores in a page, which is the most that the services give
	atLeast   = 16       // bytes of a secret
)

// newService sets the defaults, and returns all faults.
func newService(
	name, address string, cfg ServiceConfig, names map[string]string,
) (s service, err error) {
	var found valid.Faults
	cfg.BaseURL = strings.TrimRight(cmp.Or(cfg.BaseURL, address), "/")
	at, err := url.Parse(cfg.BaseURL)
	web := err == nil && (at.Scheme == "https" || at.Scheme == "http") && at.Host != ""
	found.Check(cfg.Taker != nil, "Taker", nil, "must be set")
	found.Check(web && at.User == nil && at.RawQuery == "" && at.Fragment == "", "BaseURL", nil,
		"must be an address of http or https, without a user and a query")
	found.Check(cfg.Key != "", "Key", nil, "must be set")
	found.Check(cfg.Overlap >= 0, "Overlap", cfg.Overlap, "must not be negative")
	cfg.Overlap, cfg.Name = cmp.Or(cfg.Overlap, time.Hour), cmp.Or(cfg.Name, "heed")
	if cfg.Taker != nil {
		_, ours := cfg.Taker.cfg.Meanings[cfg.Name]
		found.Check(!ours, "Name", cfg.Name,
			"must not be among the Meanings, because what heed sends would come back")
	}
	if cfg.Answer == nil {
		cfg.Answer = func(o Anchor) string { return o.Trace }
	}
	if cfg.Trace == nil {
		cfg.Trace = func(answer string) string { return answer }
	}
	s = service{
		name: name, ServiceConfig: cfg, names: names, http: http.Client{Timeout: 30 * time.Second},
	}
	if cfg.HTTPClient != nil {
		s.http = *cfg.HTTPClient
	}
	// the key is for this host alone
	s.http.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return s, found.Err()
}

// take takes a score that was read. name is its place, for errors of a score without an id.
func (s *service) take(ctx context.Context, p *Polled, name string, g Grade, err error) error {
	taken := Ignored
	if err == nil {
		taken, err = s.Taker.Take(ctx, g)
	}
	return p.add(cmp.Or(g.ID, name), taken, err, s.names)
}

// call sends a request, and decodes the answer into into, which may be nil. The status is returned
// with an error too.
func (s *service) call(ctx context.Context, method, path string, query url.Values, body,
	into any) (status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	address := s.BaseURL + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	if body == nil {
		request.Body, request.ContentLength = http.NoBody, 0
	} else {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept", "application/json")
	s.auth(request.Header)
	response, err := s.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
	case response.StatusCode < 200 || response.StatusCode > 299:
		err = fmt.Errorf("the service answers %s", response.Status)
	case len(answer) > maxAnswer:
		err = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case into != nil:
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		err = fmt.Errorf("%s: %s %s: %w", s.name, method, path, err)
	}
	return response.StatusCode, err
}

// cursor is how far a service was read.
type cursor struct {
	ID    string    `json:"id"`
	Since time.Time `json:"since"` // the time of the latest score
}

var cursors = store.View[cursor]{
	Kind:  store.Kind{Name: "scores.cursor", Limits: store.Limits{Most: 10_000}},
	Place: func(c cursor) (string, time.Time, []string) { return c.ID, c.Since, nil },
}

func (s *service) cursor() string { return store.IDOf(s.Taker.cfg.Source, s.name, s.BaseURL) }

// from returns the time from which on scores are read.
func (s *service) from(ctx context.Context) (time.Time, error) {
	kept, err := cursors.Get(ctx, s.Taker.cfg.Agent.Store(), s.cursor())
	switch {
	case err == nil:
		return kept.Value.Since.Add(-s.Overlap), nil
	case !errors.Is(err, heed.ErrNotFound):
		return time.Time{}, err
	case !s.Since.IsZero():
		return s.Since, nil
	}
	return s.Taker.cfg.Now().Add(-24 * time.Hour), nil
}

// read notes that all scores up to a time were read.
func (s *service) read(ctx context.Context, latest time.Time) error {
	if now := s.Taker.cfg.Now(); latest.After(now) {
		latest = now
	}
	return store.Do(ctx, s.Taker.cfg.Agent.Store(), func(tx *store.Tx) error {
		kept, err := cursors.In(tx, s.cursor())
		if err == nil && latest.After(kept.Value.Since) {
			cursors.Put(tx, cursor{kept.ID, latest.UTC()}, kept.Revision)
		}
		return err
	})
}

// swept returns what a sweep returns of a poll.
func swept(p Polled, err error) error { return errors.Join(append([]error{err}, p.Faults...)...) }

// sent is the score to send for an answer.
func sent(a *loop.Account) (worth float64, comment string) {
	return math.Round(a.Worth*1e6) / 1e6, "heed: " + cmp.Or(a.Channel, "several")
}

// number returns a value of JSON as a number, or nil: true is 1 and false is 0.
func number(text json.RawMessage) *float64 {
	var truth bool
	var value float64
	switch {
	case json.Unmarshal(text, &value) == nil && string(text) != "null":
		return &value
	case json.Unmarshal(text, &truth) == nil && string(text) != "null":
		if truth {
			value = 1
		}
		return &value
	}
	return nil
}

// words returns a value of JSON as words, or "": a string, the only string of an object, or the
// value as it is.
func words(text json.RawMessage) string {
	var plain string
	var object map[string]any
	switch {
	case len(text) == 0 || string(text) == "null":
		return ""
	case json.Unmarshal(text, &plain) == nil:
		return plain
	case json.Unmarshal(text, &object) == nil && len(object) == 0:
		return ""
	case len(object) == 1:
		for _, only := range object {
			if said, is := only.(string); is {
				return said
			}
		}
	}
	return string(text)
}
