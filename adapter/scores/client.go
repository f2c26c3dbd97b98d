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
	Metadata map[string]any // of the score. Nobody may change it
}

// Polled says what a poll has brought.
type Polled struct {
	Learned, Repeated, Unknown, Ignored int
	// Faults are of scores that could not be taken, each a [*heed.InputError] that names the field as "score-1.value". There are at most 100.
	Faults []error
}

// add counts a grade. names are what its service calls the fields of a grade. It returns an error that is no fault of the grade's.
func (p *Polled) add(id string, taken Taken, err error, names map[string]string) error {
	var input *heed.InputError
	switch {
	case errors.As(err, &input):
		if len(p.Faults) < 100 {
			field := input.Field[strings.LastIndexByte(input.Field, '.')+1:]
			p.Faults = append(p.Faults, &heed.InputError{Field: id + "." + cmp.Or(names[field], field), Reason: input.Reason})
		}
		return nil
	case err != nil:
		return err
	}
	*[]*int{&p.Ignored, &p.Unknown, &p.Repeated, &p.Learned}[taken]++
	return nil
}

// A service is the part that all services share.
type service struct {
	name    string // as errors and cursors have it
	taker   *Taker
	base    string
	auth    func(http.Header)
	http    *http.Client
	since   time.Time
	overlap time.Duration
}

const (
	maxAnswer = 16 << 20 // bytes of an answer of a service
	pageSize  = 100      // scores in a page, which is the most that the services give
	atLeast   = 16       // bytes of a secret
)

// newService checks what all services have in their configuration.
func newService(name string, taker *Taker, base, standard string, client *http.Client, since time.Time, overlap time.Duration, found *valid.Faults) service {
	base = cmp.Or(base, standard)
	address, err := url.Parse(base)
	web := err == nil && (address.Scheme == "https" || address.Scheme == "http") && address.Host != ""
	found.Check(taker != nil, "Taker", nil, "must be set")
	found.Check(web && address.User == nil && address.RawQuery == "" && address.Fragment == "", "BaseURL", nil,
		"must be an address of http or https, without a user and a query")
	found.Check(overlap >= 0, "Overlap", overlap, "must not be negative")
	own := http.Client{Timeout: 30 * time.Second}
	if client != nil {
		own = *client
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the key is for this host alone
	return service{
		name: name, taker: taker, base: strings.TrimRight(base, "/"), http: &own, since: since, overlap: cmp.Or(overlap, time.Hour),
	}
}

// call sends a request, and decodes the answer into into, which may be nil. The status is returned with an error too.
func (s *service) call(ctx context.Context, method, path string, query url.Values, body, into any) (status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	address := s.base + path
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

func (s *service) cursor() string { return store.IDOf(s.taker.cfg.Source, s.name, s.base) }

// from returns the time from which on scores are read.
func (s *service) from(ctx context.Context) (time.Time, error) {
	kept, err := cursors.Get(ctx, s.taker.cfg.Agent.Store(), s.cursor())
	switch {
	case err == nil:
		return kept.Value.Since.Add(-s.overlap), nil
	case !errors.Is(err, heed.ErrNotFound):
		return time.Time{}, err
	case !s.since.IsZero():
		return s.since, nil
	}
	return s.taker.cfg.Now().Add(-24 * time.Hour), nil
}

// read notes that all scores up to a time were read.
func (s *service) read(ctx context.Context, latest time.Time) error {
	if now := s.taker.cfg.Now(); latest.After(now) {
		latest = now
	}
	return store.Do(ctx, s.taker.cfg.Agent.Store(), func(tx *store.Tx) error {
		kept, err := cursors.In(tx, s.cursor())
		if err == nil && latest.After(kept.Value.Since) {
			cursors.Put(tx, cursor{kept.ID, latest.UTC()}, kept.Revision)
		}
		return err
	})
}

// swept returns what a sweep returns of a poll.
func swept(p Polled, err error) error { return errors.Join(append([]error{err}, p.Faults...)...) }

// sent is what became of an answer, as a score to send.
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

// words returns a value of JSON as words, or "": a string, the only string of an object, or the value as it is.
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
