package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/heedhq/heed"
)

const perPage = 25

// An address is one that this package has made. It has texts of others only in its query, encoded.
type address string

// A listing is one page of a list, with what leads to the others.
type listing[T any] struct {
	Rows        []T
	From, Total int // From counts from 1
	Page, Pages int
	Prev, Next  address // "" there is none
	Search      string
}

// To is the number of the last row.
func (l listing[T]) To() int { return l.From + len(l.Rows) - 1 }

// number returns the page that a request asks for, from 1.
func number(r *http.Request) (int, error) {
	text := r.URL.Query().Get("page")
	if text == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0, &heed.InputError{Field: "page", Reason: "must be a whole number from 1 on"}
	}
	return n, nil
}

// cutOut returns the page of a list that a request asks for. A page beyond the end is not found.
func cutOut[T any](r *http.Request, all []T) (l listing[T], err error) {
	n, err := number(r)
	if err != nil {
		return l, err
	}
	l.Page, l.Total, l.Pages = n, len(all), max(1, (len(all)+perPage-1)/perPage)
	if n > l.Pages {
		return l, heed.ErrNotFound
	}
	begin := (n - 1) * perPage
	l.Rows, l.From = all[begin:min(begin+perPage, len(all))], begin+1
	l.Prev, l.Next = turn(r, n-1), turn(r, n+1)
	if n == l.Pages {
		l.Next = ""
	}
	l.Search = r.URL.Query().Get("q")
	return l, nil
}

// turn returns the query of another page of the same list.
func turn(r *http.Request, page int) address {
	if page < 1 {
		return ""
	}
	query := make(url.Values)
	for name, values := range r.URL.Query() {
		query[name] = values
	}
	query.Set("page", strconv.Itoa(page))
	return address("?" + query.Encode())
}

// search keeps the rows that have all words of the request's search in one of their texts. Case does not matter.
func search[T any](r *http.Request, all []T, texts func(T) []string) (found []T) {
	words := strings.Fields(strings.ToLower(r.URL.Query().Get("q")))
	for _, one := range all {
		text := strings.ToLower(strings.Join(texts(one), "\n"))
		has := true
		for _, word := range words {
			has = has && strings.Contains(text, word)
		}
		if has {
			found = append(found, one)
		}
	}
	return found
}

// byID reads what a request names. An empty id names nothing.
func byID[T any](ctx context.Context, r *http.Request, read func(context.Context, string) (T, error)) (one T, err error) {
	id := r.URL.Query().Get("id")
	if id == "" {
		return one, heed.ErrNotFound
	}
	return read(ctx, id)
}
