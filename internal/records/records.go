// Package records repeats calls that were too slow for another writer.
package records

import (
	"context"
	"errors"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
)

// Damaged returns the damaged records of several kinds.
func Damaged(ctx context.Context, st store.Store, kinds ...interface {
	Damaged(context.Context, store.Store) ([]store.Ref, error)
}) (refs []store.Ref, err error) {
	for _, k := range kinds {
		found, err := k.Damaged(ctx, st)
		if err != nil {
			return nil, err
		}
		refs = append(refs, found...)
	}
	return refs, nil
}

// Tries is how often [Retry] calls.
const Tries = 10

// Retry calls do again after a [heed.ErrConflict], at most [Tries] times.
func Retry(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if err == nil || try == Tries || !raced(err) || ctx.Err() != nil {
			return err
		}
	}
}

func raced(err error) bool {
	return errors.Is(err, heed.ErrConflict) && !errors.As(err, new(*heed.SettingsError))
}
