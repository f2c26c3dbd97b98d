package main

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/heedhq/heed/internal/dump"
)

// rows yields all rows of the store as a dump has them, as they are at one moment.
func (s *opened) rows(ctx context.Context) iter.Seq2[dump.Row, error] {
	return func(yield func(dump.Row, error) bool) {
		lines, to := io.Pipe()
		defer lines.Close()
		go func() { to.CloseWithError(s.store.Dump(ctx, to)) }()
		reader, err := dump.NewReader(lines)
		if err != nil {
			yield(dump.Row{}, err)
			return
		}
		for {
			r, err := reader.Next()
			if errors.Is(err, io.EOF) || !yield(r, err) || err != nil {
				return
			}
		}
	}
}
