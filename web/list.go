package web

import (
	"context"
	"net/http"
	"strconv"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
)

const perPage = 25

// An address is made by this package. Texts of others are only in its query, encoded.
type address string

// A listing is one page of a list, with the addresses of its neighbours.
type listing[T any] struct {
	Rows            []T
	From, To, Total int // of the rows, from 1
	Pages           int
	Prev, Next      address // "" without one
	Search          string
}

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
func list[T any](
	r *http.Request, read func(context.Context, view.Page) (view.List[T], error),
) (l listing[T], err error) {
	p, err := partOf(r)
	if err != nil {
		return l, err
	}
	found, err := read(r.Context(), p)
	l = listing[T]{
		Rows: found.Items, From: found.From, To: found.From + len(found.Items) - 1,
		Total: found.Total, Pages: max(1, (found.Total+perPage-1)/perPage),
		Prev: turn(r, p.Number-1), Search: p.Search,
	}
	if p.Number < l.Pages {
		l.Next = turn(r, p.Number+1)
	}
	return l, err
}

// turn returns the query of another page of the same list.
func turn(r *http.Request, page int) address {
	if page < 1 {
		return ""
	}
	query := r.URL.Query()
	query.Set("page", strconv.Itoa(page))
	return address("?" + query.Encode())
}

// byID reads what a request names. An empty id is not found.
func byID[T any](
	r *http.Request, read func(context.Context, string) (T, error),
) (one T, err error) {
	id := r.URL.Query().Get("id")
	if id == "" {
		return one, heed.ErrNotFound
	}
	return read(r.Context(), id)
}
