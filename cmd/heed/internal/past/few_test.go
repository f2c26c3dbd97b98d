//go:build !race

package past

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/strategy"
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

// An error of the log or of the context ends a backtest with the error.
func TestABacktestFails(t *testing.T) {
	l := lives["equal shares"]
	rows := l.rows(rand.New(rand.NewPCG(3, 4)), 120)
	broken := errors.New("broken")
	for at := 1; at <= 2; at++ { // the log is read twice
		reads := 0
		_, err := Test(t.Context(), 1, func() iter.Seq2[Row, error] {
			reads++
			all := replayed(rows)()
			if reads < at {
				return all
			}
			return func(yield func(Row, error) bool) {
				if !yield(Row{}, &Fault{At: "line 1"}) {
					return
				}
				yield(Row{}, broken)
			}
		})
		require.ErrorIs(t, err, broken)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Test(done, 1, replayed(rows))
	require.ErrorIs(t, err, context.Canceled)
	assert.NotContains(t, err.Error(), "line", "it is of no row")
}

// The log's own worth is the mean of what its answers were worth.
func TestTheWorthOfTheLog(t *testing.T) {
	l := lives["equal shares"]
	rows := l.rows(rand.New(rand.NewPCG(3, 4)), 120)
	var sum float64
	for i := range rows {
		x, _ := worthOf(&rows[i])
		sum += x
	}
	b, err := Test(t.Context(), 1, replayed(rows))
	require.NoError(t, err)
	assert.Empty(t, b.Log.Unknown)
	assert.InDelta(t, sum/120, b.Log.Mean, 1e-9)
	assert.Less(t, b.Log.High-b.Log.Low, 0.2)
	for _, share := range b.Share {
		assert.InDelta(t, 1./3, share.Log, 0.15)
	}
	for arm, worth := range b.Arms {
		assert.NotContains(t, worth.Unknown, "no such choice", arm)
	}
}

// The intervals of a report end where no mean can be.
func TestTheBoundsOfAReport(t *testing.T) {
	b := Backtest{Rows: 100, Method: OffPolicy}
	test := trial{of: map[string]*armTrial{"a": {}, "b": {}},
		arms: []strategy.Arm{{ID: "a"}, {ID: "b"}}}
	for i := range 100 {
		rare := float64(i / 99)
		for _, m := range []*mean{&test.heed, &test.log, &test.of["a"].always} {
			m.add(rare, 1)
		}
		test.gain.add(1-2*rare, 1)
		test.of["a"].ahead.add(2*rare-1, 1)
		test.of["b"].always.add(rare, 1)
		test.of["b"].ahead.add(1-2*rare, 1)
	}
	test.report(&b)
	for _, w := range []Worth{b.Heed, b.Log, b.Arms["a"]} {
		assert.Equal(t, 0.01, w.Mean)
		assert.Zero(t, w.Low)
	}
	assert.Equal(t, 1., b.Gain.High)
	b.Method = Replay
	test.report(&b)
	assert.Equal(t, "a", b.Best, "the first of equals")
	assert.Equal(t, -1., b.Gain.Low)
	assert.Zero(t, b.Log, "a replay has none")
	test.of["b"].always.add(1, 1)
	test.report(&b)
	assert.Equal(t, "b", b.Best)
	assert.Equal(t, 1., b.Gain.High)
}

// The columns of CSV are separated by what makes most of them, else by a comma, which JSON has too.
func TestWhatSeparatesColumns(t *testing.T) {
	for head, want := range map[string]rune{
		"": ',', "a": ',', "a,b;c": ',', "a;b": ';', "a\tb\tc,d": '\t', "a|b\na;b;c": '|', "{": ',',
		"[": ',', "{a;b}": ',', "[a;b]": ',', "x{;y": ';', "x[;y": ';', "\xef\xbb\xbf [1;2]": ',',
	} {
		assert.Equal(t, want, commaOf([]byte(head)), head)
	}
}

// A scale from 1 on is guessed for ratings of up to five or ten, and from less where one is less.
func TestTheScaleThatIsGuessed(t *testing.T) {
	for _, tt := range []struct {
		ratings []any
		want    [2]float64
	}{
		{[]any{"up"}, [2]float64{}}, {[]any{"-1", "1"}, [2]float64{}},
		{[]any{"0", "1"}, [2]float64{0, 1}},
		{[]any{"2", "5"}, [2]float64{1, 5}}, {[]any{"0.5", "3"}, [2]float64{0, 5}},
		{[]any{"2", "6"}, [2]float64{1, 10}}, {[]any{"0", "10"}, [2]float64{0, 10}},
		{[]any{"11"}, [2]float64{0, 100}}, {[]any{"100.5"}, [2]float64{0, 101}},
		{[]any{"-3", "2"}, [2]float64{-3, 3}},
	} {
		m := Mapping{Fields: map[string]string{"value": "rating"}}
		m.scale([]*column{{path: "rating", values: tt.ratings}, {path: "other", values: []any{"-50"}}})
		assert.Equal(t, tt.want, m.Scale, tt.ratings)
	}
}
