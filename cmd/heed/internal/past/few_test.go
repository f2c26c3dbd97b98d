//go:build !race

package past

import (
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is not known has the bounds that always hold: an outcome is worth 0 to 1, and a gain -1 to
// 1. A row with a fault is left out.
func TestBoundsOfWhatIsUnknown(t *testing.T) {
	l := life{
		map[string][]float64{"": {0.5, 0.7}}, map[string][]float64{"": {0.97, 0.03}},
	}
	rows := l.rows(rand.New(rand.NewPCG(1, 2)), 110)
	read := func() iter.Seq2[Row, error] {
		return func(yield func(Row, error) bool) {
			for i, row := range rows {
				if i == 7 && !yield(Row{}, &Fault{At: "line 9", Reason: "is damaged"}) ||
					!yield(row, nil) {
					return
				}
			}
		}
	}
	b, err := Test(t.Context(), 1, read)
	require.NoError(t, err)
	assert.Equal(t, 110, b.Rows)
	unknown := func(w Worth) []float64 {
		assert.NotEmpty(t, w.Unknown)
		return []float64{w.Low, w.High}
	}
	assert.Equal(t, []float64{0, 1}, unknown(b.Heed))
	assert.Equal(t, []float64{-1, 1}, unknown(b.Gain))
	require.Len(t, b.Arms, 2)
	assert.Equal(t, []float64{0, 1}, unknown(b.Arms["1"]))
}
