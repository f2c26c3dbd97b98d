package store

import (
	"time"

	"github.com/heedhq/heed/internal/text"
)

// Pseudonyms is the kind of the one record that holds the key of a store's pseudonyms. The first
// [Job] that forgets somebody writes it. A commit may write it [Once] and change it never. It is
// never dropped, and a dump of the store contains it.
var Pseudonyms = View[text.PseudonymKey]{
	Kind: Kind{Name: "heed.pseudonyms"},
	Place: func(k text.PseudonymKey) (string, time.Time, []string) {
		return pseudonymKeyID, k.Since, nil
	},
}

const pseudonymKeyID = "key"

var errPseudonyms = invalid("Kind", "has one record, which is written once")
