package kit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

// parallel returns the error by which Parallel ends.
func parallel(ctx context.Context, n int, work func(i int)) (err error) {
	defer kit.Catch(&err)
	kit.Parallel(ctx, n, work)
	return nil
}

func TestParallel(t *testing.T) {
	var calls [100]atomic.Int64
	last := 0
	kit.Progress = func(done, of int) {
		assert.Equal(t, [2]int{last + 1, 100}, [2]int{done, of})
		last = done
	}
	err := parallel(t.Context(), 100, func(i int) { calls[i].Add(1) })
	kit.Progress = func(int, int) {}
	require.NoError(t, err)
	for i := range calls {
		assert.EqualValues(t, 1, calls[i].Load())
	}
	assert.Equal(t, 100, last)

	boom := errors.New("boom")
	var begun atomic.Int64
	require.ErrorIs(t, parallel(t.Context(), 1e6, func(int) { begun.Add(1); kit.Check(boom) }), boom)
	assert.Less(t, begun.Load(), int64(1000), "after an error no call begins")
	assert.PanicsWithValue(t, "ouch", func() {
		var err error
		defer kit.Catch(&err)
		panic("ouch")
	})

	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, parallel(over, 1, nil), context.Canceled)
}

func TestMean(t *testing.T) {
	e := kit.Mean([]float64{1, 2, 3})
	assert.InDelta(t, 2, e.Mean, 1e-12)
	assert.InDelta(t, 1.1316, e.Half, 1e-4) // 1.96·1/√3
	assert.Equal(t, "2.00 ±1.13", e.String())
	assert.Equal(t, kit.Estimate{Mean: 7}, kit.Mean([]float64{7}))
}
