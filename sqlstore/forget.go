package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/strategy"
)

var (
	resultsOf  = both(`SELECT id, result FROM heed_choices WHERE result_by <> '' AND result_by = $1 LIMIT 500`)
	keepResult = both(`UPDATE heed_choices SET result = $1, result_by = '' WHERE id = $2 AND result = $3`)
)

// Forget takes a person out of what was learned: all evidence of the source of that name, as [evidence.Batch].Expunge does,
// and the source of the results of choices. What stays is the ids of observations, under which nothing counts again, and the
// audit log, which tells who did what. It returns [evidence.ErrForgotten], and changes nothing, where evidence of the person
// is in sums that the history no longer explains: the cells have to be reset then, or be kept by origin from the start.
//
// Reads of stores that cache see it within their EvidenceConfig.Stale.
func (db *DB) Forget(ctx context.Context, person string) error {
	store := &Evidence{db: db, cfg: EvidenceConfig{}.withDefaults()}
	c, err := store.begin(ctx, &evidence.Batch{Expunge: []string{person}})
	if err != nil {
		return err
	}
	err = db.write(ctx, lockAlone, func(t *tx) error {
		if _, err := c.run(t, true); err != nil {
			return err
		}
		return t.forgetResults(person)
	})
	if err != nil {
		return fmt.Errorf("sqlstore: forget: %w", err)
	}
	return nil
}

// forgetResults takes a person's name out of results. One that was replaced meanwhile is looked at again.
func (t *tx) forgetResults(person string) error {
	for {
		results := make(map[string]string)
		err := t.each(resultsOf, []any{person}, func(scan func(...any) error) error {
			var id, text string
			err := scan(&id, &text)
			results[id] = text
			return err
		})
		if err != nil || len(results) == 0 {
			return err
		}
		for id, before := range results {
			var r strategy.Result
			if err := json.Unmarshal([]byte(before), &r); err != nil {
				return err
			}
			r.Source = ""
			after, err := json.Marshal(r)
			if err != nil {
				return err
			}
			if _, err := t.exec(keepResult, string(after), id, before); err != nil {
				return err
			}
		}
	}
}
