package loop

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
)

// The index finds what comparing with every text finds.
func TestTheIndexIsTheSimilarity(t *testing.T) {
	words := rapid.StringMatching(`[a-c é漢]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		one, others := words.Draw(t, "one"), rapid.SliceOfN(words, 1, 8).Draw(t, "others")
		var x index[int]
		for i, other := range others {
			x.add(i, other, true)
		}
		want, err := heed.Trigrams{}.Similar(context.Background(), one, others)
		require.NoError(t, err)
		assert.InDeltaSlice(t, want, x.byTrigrams(one), 1e-12)
	})
}
