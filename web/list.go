package web

import (
	"context"
	"net/http"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/view"
)

const perPage = 25

// An address is made by this package. Texts of others are only in its query, encoded.
type address string

// A listing is a part of a list, with the addresses of the first part and of the next one.
type listing[T any] struct {
	Rows        []T
	Total       int     // of all parts, or 0 if it is not known
	First, Next address // "" in the first part, and in the last one
	Search      string
}

// list returns the part of what a query selects that a request asks for.
func list[P view.Paged[Query], Query, T any](
	r *http.Request, q Query, read func(context.Context, Query) (view.List[T], error),
) (l listing[T], err error) {
	given := r.URL.Query()
	p := view.Page{Limit: perPage, After: given.Get("after"), Search: given.Get("q")}
	P(&q).Turn(p)
	found, err := read(r.Context(), q)
	l = listing[T]{Rows: found.Items, Total: found.Total, Search: p.Search}
	if found.Next != "" {
		given.Set("after", found.Next)
		l.Next = address("?" + given.Encode())
	}
	if given.Del("after"); p.After != "" {
		l.First = address("?" + given.Encode())
	}
	return l, err
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
