package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
)

const perPage = 25

// An address is made by this package. Texts of others are only in its query, encoded.
type address string

// A listing is one page of a list, with the addresses of its neighbours.
type listing[T any] struct {
	Rows        []T
	From, Total int // From counts from 1
	Pages       int
	Prev, Next  address // "" there is none
	Search      string
}

// To is the number of the last row.
func (l listing[T]) To() int { return l.From + len(l.Rows) - 1 }

// partOf returns which part of a list a request asks for.
func partOf(r *http.Request) (p view.Page, err error) {
	p = view.Page{Number: 1, Limit: perPage, Search: r.URL.Query().Get("q")}
	if text := r.URL.Query().Get("page"); text != "" {
		p.Number, err = strconv.Atoi(text)
		if err != nil || p.Number < 1 || p.Number > 1_000_000 {
			err = &heed.InputError{Field: "page", Reason: "must be a whole number from 1 on"}
		}
	}
	return p, err
}

// list returns the page of a list that a request asks for. A page beyond the end is not found.
func list[N, T any](
	r *http.Request, read func(view.Page) (view.List[N], error), row func(N) T,
) (listing[T], error) {
	p, err := partOf(r)
	if err != nil {
		return listing[T]{}, err
	}
	found, err := read(p)
	if err != nil {
		return listing[T]{}, err
	}
	l := listing[T]{
		From: found.From, Total: found.Total, Pages: max(1, (found.Total+perPage-1)/perPage),
		Prev: turn(r, p.Number-1), Search: p.Search,
	}
	for _, one := range found.Items {
		l.Rows = append(l.Rows, row(one))
	}
	if p.Number < l.Pages {
		l.Next = turn(r, p.Number+1)
	}
	return l, nil
}

// cut is [list] for a list that was read as a whole.
func cut[T any](r *http.Request, all []T, texts func(T) []string) (listing[T], error) {
	return list(r, func(p view.Page) (view.List[T], error) { return view.Cut(p, all, texts) }, same)
}

// same returns a row as it is.
func same[T any](one T) T { return one }

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

// byID reads what a request names. An empty id names nothing.
func byID[T any](
	ctx context.Context, r *http.Request, read func(context.Context, string) (T, error),
) (one T, err error) {
	id := r.URL.Query().Get("id")
	if id == "" {
		return one, heed.ErrNotFound
	}
	return read(ctx, id)
}
