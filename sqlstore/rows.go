package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/heedhq/heed"
)

// rowsOf makes a JSON array of arrays, which a query takes as rows.
func rowsOf(rows [][]any) (string, error) {
	text, err := json.Marshal(rows)
	return string(text), err
}

// column makes rows of one text each. They are arrays of one element, as rows are, so that queries
// take both in one way.
func column(texts []string) (string, error) {
	rows := make([][1]string, len(texts))
	for i := range texts {
		rows[i][0] = texts[i]
	}
	text, err := json.Marshal(rows)
	return string(text), err
}

// flag returns a truth as the databases store it.
func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// yieldAll yields until the loop ends or the context is done, or an error if there is one. After an
// error there is no further element.
func yieldAll[T any](ctx context.Context, all []T, err error, yield func(T, error) bool) {
	if err != nil {
		yield(*new(T), fmt.Errorf("sqlstore: %w", err))
		return
	}
	for _, one := range all {
		if err := ctx.Err(); err != nil {
			yield(*new(T), err)
			return
		}
		if !yield(one, nil) {
			return
		}
	}
}

// pageSize is how many rows a list reads at a time. The statements that read pages have the number
// in their text: LIMIT 500.
const pageSize = 500

// damaged is the error of a row that holds something that heed has not written.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", heed.ErrDamaged, fmt.Sprintf(format, args...))
}

const maxInt64 = int64(math.MaxInt64)
