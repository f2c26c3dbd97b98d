// Package view reads what the pages, the HTTP API, the command and MCP show of an agent. They only
// render what it returns, so that all of them show the same numbers.
package view

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// A Source holds the parts of an agent that are shown. A nil part is not there. Store and Now must
// be set. Methods return what they can read, with an error in which [DamagedIn] finds the rest.
type Source struct {
	Store    store.Store
	Agent    *loop.Agent // nil if the agent runs in another process
	Name     string      // of the agent
	Strategy *strategy.Learner
	Learning *learning.Module
	Patterns *patterns.Recorder
	Feedback *feedback.Service
	Now      func() time.Time
}

// Of returns the parts of an agent.
func Of(a *loop.Agent, now func() time.Time) *Source {
	return &Source{
		Store: a.Store(), Agent: a, Name: a.Name(), Strategy: a.Strategy(), Learning: a.Learning(),
		Patterns: a.Patterns(), Feedback: a.Feedback(), Now: now}
}

// A Page selects a part of a list. Each query of a list has one.
type Page struct {
	// Limit is how many elements the part has at most. 0: all but answers and changes; 50 in the API.
	Limit int `json:"limit,omitempty"`
	// After is the Next of the part before; empty: the first part.
	After  string `json:"after,omitempty"`
	Search string `json:"-"` // words that an element's texts must all have; case does not matter
	byName bool   // in the order of names, in which no element overtakes another between two parts
}

const usuallyListed, mostListed = 50, 200

// Turn selects another part of the list of a query.
func (p *Page) Turn(to Page) { *p = to }

// Fill sets what a query selects to the parameters of a URL that it has a field for, and reports
// whether it has one for any.
func Fill(query any, given url.Values) (any bool) {
	v := reflect.ValueOf(query).Elem()
	for _, f := range FieldsOf(v.Type()) {
		text, to := given.Get(f.Name), v.FieldByIndex(f.index)
		switch {
		case text == "" || f.Name == "after":
			continue
		case to.Kind() == reflect.String:
			to.SetString(text)
		case to.Kind() == reflect.Bool:
			to.SetBool(true)
		}
		any = true
	}
	return any
}

// oneOf refuses a text that a field of a query can't have. "" is no text, and the case of letters
// does not matter.
func oneOf[T ~string](field string, is T, all ...T) error {
	var names []string
	for _, one := range all {
		names = append(names, strings.ToLower(string(one)))
	}
	if is == "" || slices.Contains(names, strings.ToLower(string(is))) {
		return nil
	}
	must := "must be "
	if len(names) > 1 {
		must += "one of "
	}
	return &heed.InputError{Field: field, Reason: must + strings.Join(names, ", ")}
}

// aTime refuses a text of a query that is no time.
func aTime(field, text string) error {
	_, err := Moment(text, 0)
	if ago, wrong := time.ParseDuration(text); err == nil || wrong == nil && ago >= 0 {
		return nil
	}
	return &heed.InputError{Field: field, Reason: err.Error() + ", or how long ago, such as 24h"}
}

// moment reads a time of a valid query: one of [Moment], or how long ago something was.
func (s *Source) moment(text string, later time.Duration) time.Time {
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return s.Now().Add(-ago)
	}
	at, _ := Moment(text, later) // "0" is no time
	return at
}

// span reads the times of a valid query. A day at the end is included.
func (s *Source) span(since, until string) (from, to time.Time, err error) {
	from, to = s.moment(since, 0), s.moment(until, 24*time.Hour)
	if !to.IsZero() && !from.Before(to) {
		err = &heed.InputError{Field: "until", Reason: "must be later than since"}
	}
	return from, to, err
}

// Moment reads a time. A day is its beginning, and later by a span. "" is the zero time.
func Moment(text string, later time.Duration) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.DateOnly, text); err == nil {
		return at.Add(later), nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		err = errors.New("must be a day such as 2026-01-31, or a time such as 2026-01-31T15:04:05Z")
	}
	return at, err
}

// A Paged is a query with a [Page].
type Paged[Query any] interface {
	*Query
	Turn(to Page)
	bound() error
}

// bound sets the limit that programs have without another one, and refuses a greater one. Programs
// read lists by name, because they read all parts.
func (p *Page) bound() error {
	p.byName = true
	if p.Limit = cmp.Or(p.Limit, usuallyListed); p.Limit < 1 || p.Limit > mostListed {
		return badField("limit", fmt.Sprintf("must be 1 to %d", mostListed))
	}
	return nil
}

// A List is a part of a list.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // selects the next part by Page.After; empty at the end
	Total int    `json:"-"`              // how many elements there are in all parts, if it is known
	// Damaged names records that can't be read. Items lacks them.
	Damaged Names `json:"damaged,omitempty"`
}

// Names are names of records. There may be thousands, so [Names.Some] returns the ones to show.
type Names []string

// Some returns the first ten, and how many more there are.
func (all Names) Some() []string {
	if n := len(all); n > 10 {
		return append(slices.Clone(all[:10]), fmt.Sprintf("and %d more", n-10))
	}
	return all
}

// Err returns a [heed.ErrDamaged] with the names, or nil without any.
func (all Names) Err() error {
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%s left out: %s: %w", Plural(len(all), "record is", "records are"),
		strings.Join(all.Some(), ", "), heed.ErrDamaged)
}

// DamagedIn returns the names of damaged records in an error, and what it has of other errors.
func DamagedIn(err error) (names Names, other error) {
	if !errors.Is(err, heed.ErrDamaged) {
		return nil, err
	}
	switch e := err.(type) { //nolint:errorlint // each error of the tree is looked at
	case interface{ Damaged() store.Ref }:
		return Names{nameOf(e.Damaged())}, nil
	case interface{ Unwrap() error }:
		if of := e.Unwrap(); of != heed.ErrDamaged { //nolint:errorlint // it is the last
			return DamagedIn(of)
		}
	case interface{ Unwrap() []error }:
		if all := e.Unwrap(); !slices.Contains(all, heed.ErrDamaged) {
			for _, of := range all {
				more, failure := DamagedIn(of)
				names, other = append(names, more...), cmp.Or(other, failure)
			}
			return slices.Compact(slices.Sorted(slices.Values(names))), other
		}
	}
	return Names{err.Error()}, nil // it is about something else than a record
}

// MarshalJSON implements [json.Marshaler]. JSON has the names that Some returns.
func (all Names) MarshalJSON() ([]byte, error) { return json.Marshal(all.Some()) }

// listed returns the part of a list that a page selects. The list may be of names alone, and read
// reads those in the part. An element that read does not find was deleted since, and is left out.
// So are damaged ones, by unread or read, which are named. A part's place is the number and the
// name of the last element before it. If that is gone, the part begins where it was. By name, it
// begins after the name.
func listed[N, T any](
	p Page, all []N, unread error, nameOf func(*N) string, texts func(*N) []string,
	read func(*N) (T, error),
) (l List[T], err error) {
	if l.Damaged, err = DamagedIn(unread); err != nil {
		return l, err
	}
	l.Items = []T{} // null in JSON otherwise
	all = search(p.Search, all, texts)
	if p.byName {
		all = slices.SortedFunc(slices.Values(all), func(a, b N) int {
			return strings.Compare(nameOf(&a), nameOf(&b))
		})
	}
	begin, end := 0, len(all)
	if l.Total = len(all); p.After != "" {
		number, name, ok := strings.Cut(p.After, ".")
		before, err := strconv.ParseUint(number, 10, 31)
		if err != nil || !ok {
			return l, &heed.InputError{Field: "After", Reason: "must be the next of the page before"}
		}
		begin = min(int(before), len(all))
		i := slices.IndexFunc(all, func(one N) bool { return nameOf(&one) == name })
		switch {
		case p.byName:
			begin, _ = slices.BinarySearchFunc(all, name+"\x00", func(one N, next string) int {
				return strings.Compare(nameOf(&one), next)
			})
		case i >= 0:
			begin = i + 1
		}
	}
	if p.Limit > 0 && begin+p.Limit < len(all) {
		end = begin + p.Limit
		l.Next = fmt.Sprint(end-1, ".", nameOf(&all[end-1]))
	}
	for i := begin; i < end; i++ {
		one, err := read(&all[i])
		damaged, failure := DamagedIn(err)
		switch {
		case errors.Is(failure, heed.ErrNotFound):
		case failure != nil:
			return l, failure
		case err == nil:
			l.Items = append(l.Items, one)
		}
		l.Damaged = append(l.Damaged, damaged...)
	}
	return l, nil
}

// search returns the elements that have all words in their texts.
func search[T any](words string, all []T, texts func(*T) []string) []T {
	wanted := strings.Fields(strings.ToLower(words))
	if len(wanted) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool {
		text := strings.ToLower(strings.Join(texts(&one), "\n"))
		lacks := func(word string) bool { return !strings.Contains(text, word) }
		return slices.ContainsFunc(wanted, lacks)
	})
}

// each returns a function that converts an element of a list.
func each[N, T any](convert func(*N) T) func(*N) (T, error) {
	return func(one *N) (T, error) { return convert(one), nil }
}

// arrayOf returns a list that JSON has as an array even if it is empty.
func arrayOf[T any](all []T) []T { return append([]T{}, all...) }

// Plural writes a number of things.
func Plural(n any, one, many string) string {
	if text := fmt.Sprint(n); text != "1" {
		return text + " " + many
	}
	return "1 " + one
}
