//go:build !race

package past

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/loop"
)

// A life is a simulated log: by category, how often each arm is good and is chosen.
type life struct {
	good, chosen map[string][]float64
}

var lives = map[string]life{
	"equal shares": {
		map[string][]float64{"": {0.5, 0.7, 0.3}}, map[string][]float64{"": {1. / 3, 1. / 3, 1. / 3}}},
	"a favourite that is not the best": {
		map[string][]float64{"": {0.6, 0.7, 0.65}}, map[string][]float64{"": {0.8, 0.1, 0.1}}},
	"another best in each category": {
		map[string][]float64{"a": {0.8, 0.4}, "b": {0.3, 0.6}},
		map[string][]float64{"a": {0.3, 0.7}, "b": {0.6, 0.4}}},
}

// rows draws a log.
func (l *life) rows(rng *rand.Rand, n int) (rows []Row) {
	categories := []string{""}
	if len(l.good) > 1 {
		categories = []string{"a", "b"}
	}
	for i := range n {
		category := categories[rng.IntN(len(categories))]
		arm, u := 0, rng.Float64()
		for u -= l.chosen[category][0]; u > 0 && arm < len(l.chosen[category])-1; {
			arm++
			u -= l.chosen[category][arm]
		}
		reward := -1.
		if rng.Float64() < l.good[category][arm] {
			reward = 1
		}
		rows = append(rows, Row{At: fmt.Sprint("line ", i+2), Past: loop.Past{
			Event: loop.Event{Domain: category, Person: fmt.Sprint("p", rng.IntN(8))},
			Arm:   fmt.Sprint(arm), Propensity: l.chosen[category][arm],
			Outcomes: []loop.Outcome{{Reward: &reward, Source: "ci"}},
		}})
	}
	return rows
}

// TestTheIntervalsHold backtests simulated logs. Of the 90 % intervals of heed's worth, of its gain
// and of each arm, 88 to 93 of 100 hold what is true, with HEED_LONG; a short run may differ from
// that by what its size lets expect.
func TestTheIntervalsHold(t *testing.T) {
	t.Parallel()
	times, n, slack := 10, 300, 0.1
	if os.Getenv("HEED_LONG") != "" {
		times, n, slack = 200, 500, 0
	}
	var held, all float64
	for name, l := range lives {
		by, of := map[string]float64{}, map[string]float64{}
		for seed := range times {
			for what, ok := range l.backtest(t, uint64(seed), n) { //nolint:gosec // small
				if of[what]++; ok {
					by[what]++
				}
			}
		}
		for what, k := range of {
			held, all = held+by[what], all+k
			t.Logf("%s, %s: %.3f of %.0f", name, what, by[what]/k, k)
		}
	}
	t.Logf("all: %.3f of %.0f", held/all, all)
	assert.GreaterOrEqual(t, held/all, 0.88-slack)
	assert.LessOrEqual(t, held/all, 0.93+slack)
}

// backtest reports which intervals of one log hold.
func (l *life) backtest(t *testing.T, seed uint64, n int) map[string]bool {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(seed, 7))
	arms := []string{"0", "1", "2"}
	for category := range l.good {
		arms = arms[:len(l.good[category])]
	}
	test, err := open(ctx, seed, arms)
	require.NoError(t, err)
	var heed, log float64
	always := make(map[string]float64)
	for i, row := range l.rows(rng, n) {
		x, ok := worthOf(&row)
		require.True(t, ok)
		require.NoError(t, test.step(ctx, &row, x, i+1))
		good := l.good[row.Event.Domain]
		for a, arm := range arms {
			heed += test.p[arm] * good[a] / float64(n)
			log += l.chosen[row.Event.Domain][a] * good[a] / float64(n)
			always[arm] += good[a] / float64(n)
		}
	}
	b := Backtest{Rows: n, Method: OffPolicy}
	test.report(&b)
	in := func(w Worth, x float64) bool { return w.Low <= x && x <= w.High }
	held := make(map[string]bool)
	said := func(of string, w Worth, truth float64) {
		if w.Unknown == "" {
			held[of] = in(w, truth)
		}
	}
	said("heed", b.Heed, heed)
	said("gain", b.Gain, heed-log)
	for arm, w := range b.Arms {
		said("always "+arm, w, always[arm])
	}
	return held
}

func replayed(rows []Row) func() iter.Seq2[Row, error] {
	return func() iter.Seq2[Row, error] {
		return func(yield func(Row, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// A log of all arms is replayed: heed finds the best arm, and is worth nearly as much.
func TestAReplay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []Row
	for i := range 600 {
		row := Row{At: fmt.Sprint("line ", i+2), Values: map[string]float64{"bad": -1, "good": 1}}
		for arm, rate := range map[string]float64{"bad": 0.3, "good": 0.8} {
			if row.Values[arm] = -1; rng.Float64() < rate {
				row.Values[arm] = 1
			}
		}
		rows = append(rows, row)
	}
	b, err := Test(context.Background(), 1, replayed(rows))
	require.NoError(t, err)
	assert.Equal(t, Replay, b.Method)
	assert.Equal(t, "good", b.Best)
	assert.InDelta(t, 0.78, b.Heed.Mean, 0.05)
	assert.True(t, b.Gain.High <= 0 && b.Gain.Low > -0.1, "%+v", b.Gain)
	assert.Greater(t, b.Share["good"].Heed, 0.9)
	assert.InDelta(t, 1, b.Share["good"].Heed+b.Share["bad"].Heed, 1e-9)
	assert.InDelta(t, 0.8, b.Arms["good"].Mean, 0.05)
	assert.InDelta(t, 0.3, b.Arms["bad"].Mean, 0.05)
	assert.InDelta(t, b.Heed.Mean-b.Arms["good"].Mean, b.Gain.Mean, 1e-9)
	assert.Zero(t, b.Log)
	again, err := Test(context.Background(), 1, replayed(rows))
	require.NoError(t, err)
	assert.Equal(t, b, again)
}

// What a log does not show is not guessed: the reason is given.
func TestNothingCanBeSaid(t *testing.T) {
	l := lives["equal shares"]
	change := func(f func(i int, r *Row)) []Row {
		rows := l.rows(rand.New(rand.NewPCG(3, 4)), 200)
		for i := range rows {
			f(i, &rows[i])
		}
		return rows
	}
	for want, rows := range map[string][]Row{
		"propensity":         change(func(_ int, r *Row) { r.Propensity = 0 }),
		"which arm answered": change(func(_ int, r *Row) { r.Outcomes = nil }),
		"one arm alone":      change(func(_ int, r *Row) { r.Arm = "0" }),
		"20 rows":            change(func(int, *Row) {})[:20],
		"":                   change(func(i int, r *Row) { r.Arm = fmt.Sprint(i % 100) }),
		"101 arms":           change(func(i int, r *Row) { r.Arm = fmt.Sprint(i % 101) }),
		"lack what one of": change(func(i int, r *Row) {
			*r = Row{Values: map[string]float64{"a": 1}}
			if i%2 == 0 {
				r.Values["b"] = 1
			}
		}),
	} {
		b, err := Test(context.Background(), 1, replayed(rows))
		require.NoError(t, err)
		assert.Contains(t, b.Unknown, want)
		assert.Equal(t, want == "", b.Unknown == "")
		assert.Equal(t, want == "", b.Method != "")
	}
	for n, known := range map[int]bool{99: false, 100: true} {
		b, err := Test(context.Background(), 1, replayed(change(func(int, *Row) {})[:n]))
		require.NoError(t, err)
		assert.Equal(t, known, b.Unknown == "", b.Unknown)
	}
	rare := change(func(i int, r *Row) {
		if r.Propensity = 0.001; i%2 == 0 {
			r.Propensity = 0.999
		}
	})
	b, err := Test(context.Background(), 1, replayed(rare))
	require.NoError(t, err)
	assert.Contains(t, b.Heed.Unknown, "worth only", "%+v", b.Heed)
	assert.Equal(t, [2]float64{0, 1}, [2]float64{b.Heed.Low, b.Heed.High})
}

// Rows that the method does not use are counted, and change nothing else.
func TestRowsThatAreLeft(t *testing.T) {
	ctx, l := context.Background(), lives["equal shares"]
	drawn := l.rows(rand.New(rand.NewPCG(5, 6)), 120)
	reward := 1.
	known := Row{Past: loop.Past{Arm: "0", Outcomes: []loop.Outcome{{Reward: &reward}}}}
	var whole []Row
	for i := range 130 {
		whole = append(whole, Row{Values: map[string]float64{"0": float64(i%3 - 1), "1": 0.5}})
	}
	for name, test := range map[string]struct{ rows, left []Row }{
		OffPolicy: {drawn, slices.Concat(whole[:20], []Row{known, {}, {Past: loop.Past{Arm: "0"}},
			{Past: loop.Past{Outcomes: known.Outcomes, Propensity: 1}}})},
		Replay: {whole, append(drawn[:20:20], known, Row{})},
	} {
		want, err := Test(ctx, 1, replayed(test.rows))
		require.NoError(t, err)
		require.Equal(t, want.Method, name, want.Unknown)
		assert.Len(t, test.rows, want.Rows)
		assert.Zero(t, want.Left)
		got, err := Test(ctx, 1, replayed(slices.Concat(test.rows, test.left)))
		require.NoError(t, err)
		assert.Equal(t, len(test.left), got.Left, name)
		got.Left = 0
		assert.Equal(t, want, got, name)
	}
}

// The log is worth the mean of its rewards, and the gain is what heed is worth above that. The
// shares are of all rows.
func TestWhatALogIsWorth(t *testing.T) {
	l := lives["a favourite that is not the best"]
	rows := l.rows(rand.New(rand.NewPCG(7, 8)), 400)
	sum, logged := 0., map[string]float64{}
	for _, row := range rows {
		sum += (*row.Outcomes[0].Reward + 1) / 2
		logged[row.Arm]++
	}
	b, err := Test(context.Background(), 1, replayed(rows))
	require.NoError(t, err)
	assert.Equal(t, OffPolicy, b.Method)
	assert.Empty(t, b.Best)
	assert.InDelta(t, sum/400, b.Log.Mean, 1e-9)
	assert.InDelta(t, b.Heed.Mean-b.Log.Mean, b.Gain.Mean, 1e-9)
	whole := 0.
	for arm, share := range b.Share {
		assert.InDelta(t, logged[arm]/400, share.Log, 1e-9)
		whole += share.Heed
	}
	assert.InDelta(t, 1, whole, 1e-9)
	assert.Len(t, b.Arms, 3)
	again, err := Test(context.Background(), 1, replayed(rows))
	require.NoError(t, err)
	assert.Equal(t, b, again)
}

// A row that the learner refuses ends the test, and is named.
func TestARowThatIsRefused(t *testing.T) {
	l := lives["equal shares"]
	rows := l.rows(rand.New(rand.NewPCG(5, 6)), 120)
	rows[6].Event.Domain = strings.Repeat("x", 2000)
	_, err := Test(context.Background(), 1, replayed(rows))
	require.ErrorContains(t, err, "line 8: ")
}

// A mean and its interval follow the textbook's formula. The interval has all values if there are
// too few rows, if their weights are worth too few rows, or if one row has a tenth of the weight.
func TestMeans(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for range 200 {
		n := 1 + rng.IntN(300)
		var m mean
		var xs, weights []float64
		for range n {
			x, w := rng.Float64(), rng.ExpFloat64()
			if rng.IntN(10) == 0 {
				w = 0
			}
			m.add(x, w)
			xs, weights = append(xs, x), append(weights, w)
		}
		sum, squares, all, most := 0., 0., 0., 0.
		for i, x := range xs {
			sum, all = sum+x/float64(n), all+weights[i]
			most = max(most, weights[i]*weights[i])
			squares += weights[i] * weights[i]
		}
		variance := 0.
		for _, x := range xs {
			variance += (x - sum) * (x - sum) / float64(n-1)
		}
		got := m.worth(0, 1)
		assert.InDelta(t, sum, got.Mean, 1e-9)
		known := n >= 100 && all*all >= 50*squares && most <= squares/10
		assert.Equal(t, known, got.Unknown == "", n)
		if known {
			half := 1.6448536269514722 * math.Sqrt(variance/float64(n))
			assert.InDelta(t, sum-half, got.Low, 1e-9)
			assert.InDelta(t, sum+half, got.High, 1e-9)
		} else {
			assert.Equal(t, [2]float64{0, 1}, [2]float64{got.Low, got.High})
		}
	}
	var m mean
	for range 100 {
		m.add(0.5, 0)
	}
	assert.Contains(t, m.worth(0, 1).Unknown, "no such choice")
	m = mean{}
	for i := range 100 {
		m.add(float64(i%2*10-4), 1) // -4 or 6
	}
	within := m.worth(0, 0.25)
	assert.Equal(t, [2]float64{0.25, 0.25}, [2]float64{within.Mean, within.High})
	within = m.worth(1.5, 9)
	assert.Equal(t, [2]float64{1.5, 1.5}, [2]float64{within.Mean, within.Low})
}

// An answer is worth what people and instruments made of it, in [0, 1].
func TestWhatAnAnswerIsWorth(t *testing.T) {
	for value, want := range map[float64]float64{1: 1, 0.5: 0.75, -1: 0} {
		for _, row := range []loop.Past{
			{Reactions: []loop.Reaction{{Person: "ann", Value: value}}},
			{Outcomes: []loop.Outcome{{Source: "ci", Reward: &value}}},
		} {
			x, ok := worthOf(&Row{Past: row})
			assert.True(t, ok)
			assert.InDelta(t, want, x, 1e-12)
		}
	}
	_, ok := worthOf(&Row{})
	assert.False(t, ok)
}
