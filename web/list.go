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
	Query       any  // what is selected
	Any         bool // the request selects something
}

// list returns the part of what a query and the parameters of a request select.
func list[P view.Paged[Query], Query, T any](
	r *http.Request, q Query, read func(context.Context, Query) (view.List[T], error),
) (l listing[T], err error) {
	given := r.URL.Query()
	l.Any = view.Fill(&q, given)
	l.Query, l.Search = q, given.Get("q")
	after := given.Get("after")
	P(&q).Turn(view.Page{Limit: perPage, After: after, Search: l.Search})
	found, err := read(r.Context(), q)
	l.Rows, l.Total = found.Items, found.Total
	if found.Next != "" {
		given.Set("after", found.Next)
		l.Next = address("?" + given.Encode())
	}
	if given.Del("after"); after != "" {
		l.First = address("?" + given.Encode())
	}
	return l, err
}

// listOf returns the reader of a page that is a list.
func listOf[P view.Paged[Query], Query, T any](
	q Query, read func(*view.Source, context.Context, Query) (view.List[T], error),
) reader {
	return func(r *http.Request, v *view.Source) (any, error) {
		return list[P](r, q, func(ctx context.Context, q Query) (view.List[T], error) {
			return read(v, ctx, q)
		})
	}
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
