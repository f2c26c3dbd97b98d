package stores

import "github.com/heedhq/heed/store"

// Sign returns which of a tally's three counts an observation of this reward is of: 0 is positive,
// 1 negative and 2 neutral.
func Sign(reward float64) int {
	switch {
	case reward > 0.5:
		return 0
	case reward < 0.5:
		return 1
	default:
		return 2
	}
}

// TakesMuch reports whether a batch does more than to take single ids back.
func TakesMuch(b *store.Batch) bool {
	return len(b.Reset)+len(b.Rebuild)+len(b.Restart)+len(b.Expunge) > 0
}
