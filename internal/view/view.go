// Package view reads what the pages, the HTTP API, the command and MCP show of an agent. They only
// render what it returns, so that all of them show the same numbers.
package view

import (
	"cmp"
	"encoding/base64"
	"slices"
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
// be set.
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
		Patterns: a.Patterns(), Feedback: a.Feedback(), Now: now,
	}
}

// A Page selects a part of a list.
type Page struct {
	Search string // words that an element's texts must all have; case does not matter
	Limit  int    // how many elements the part has at most; 0: all
	// Number is the number of the part, from 1. 0 selects by After, in the order of the keys.
	Number int
	After  string // the Next of the part before; empty: the first part
}

// A List is a part of a list.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // selects the next part by Page.After; empty at the end
	From  int    `json:"-"`              // the number of the first element, from 1
	Total int    `json:"-"`              // how many elements there are in all parts
}

// none is the empty list of a part that the agent does not have.
func none[T any]() List[T] { return List[T]{Items: []T{}} }

// listed returns the part of a list that a page selects. The list may be of names alone, of which
// read reads those in the part.
func listed[N, T any](
	p Page, all []N, keyOf func(N) string, texts func(N) []string, read func([]N) ([]T, error),
) (l List[T], err error) {
	all = search(p.Search, all, texts)
	l.Total = len(all)
	begin, end := 0, len(all)
	if p.Number > 0 {
		if begin = (p.Number - 1) * p.Limit; p.Number > 1 && begin >= len(all) {
			return l, heed.ErrNotFound
		}
	} else {
		slices.SortFunc(all, func(a, b N) int { return cmp.Compare(keyOf(a), keyOf(b)) })
		after, err := base64.RawURLEncoding.DecodeString(p.After)
		if err != nil {
			return l, &heed.InputError{Field: "After", Reason: "must be the next of the page before"}
		}
		if p.After != "" {
			begin = upTo(all, func(one N) bool { return keyOf(one) <= string(after) })
		}
	}
	if p.Limit > 0 {
		end = min(end, begin+p.Limit)
	}
	if l.Items, err = read(all[begin:end]); err != nil {
		return l, err
	}
	if l.Items == nil {
		l.Items = []T{} // null in JSON otherwise
	}
	if l.From = begin + 1; end < len(all) {
		l.Next = base64.RawURLEncoding.EncodeToString([]byte(keyOf(all[end-1])))
	}
	return l, nil
}

// upTo returns how many elements at the beginning satisfy a condition.
func upTo[T any](all []T, holds func(T) bool) int {
	n := slices.IndexFunc(all, func(one T) bool { return !holds(one) })
	if n < 0 {
		return len(all)
	}
	return n
}

// search returns the elements that have all words in their texts.
func search[T any](words string, all []T, texts func(T) []string) (found []T) {
	wanted := strings.Fields(strings.ToLower(words))
	if len(wanted) == 0 {
		return slices.Clone(all)
	}
	for _, one := range all {
		text := strings.ToLower(strings.Join(texts(one), "\n"))
		lacks := func(word string) bool { return !strings.Contains(text, word) }
		if !slices.ContainsFunc(wanted, lacks) {
			found = append(found, one)
		}
	}
	return found
}

// each returns a function that converts each element of a part.
func each[N, T any](convert func(*N) T) func([]N) ([]T, error) {
	return func(part []N) (all []T, _ error) {
		for i := range part {
			all = append(all, convert(&part[i]))
		}
		return all, nil
	}
}

// arrayOf returns a list that JSON has as an array even if it is empty.
func arrayOf[T any](all []T) []T { return append([]T{}, all...) }

// Cut returns the part of a list that a page selects by its number, in the list's order.
func Cut[T any](p Page, all []T, texts func(T) []string) (List[T], error) {
	p.Number = max(p.Number, 1)
	key := func(T) string { return "" }
	return listed(p, all, key, texts, func(part []T) ([]T, error) { return part, nil })
}
