package stores

import (
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

// PseudonymKeyRef names the record of a store's key, for a caller that reads it with other records.
func PseudonymKeyRef() store.Ref { return store.Pseudonyms.Ref("key") }

// PseudonymKeyIn returns the store's key as a step sees it, or the zero key if the store has not
// forgotten anybody.
func PseudonymKeyIn(tx *store.Tx) (text.PseudonymKey, error) {
	row, err := store.Pseudonyms.In(tx, PseudonymKeyRef().ID)
	return row.Value, err
}

// PersonKeys are the keys of people in a record, each once. An empty name has no key.
func PersonKeys(names ...string) (keys []string) {
	for _, name := range names {
		if name != "" {
			keys = append(keys, store.PersonKey(name))
		}
	}
	return text.Distinct(keys)
}
