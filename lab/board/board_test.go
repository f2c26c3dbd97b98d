package board

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/lab/internal/kit"
)

// A witness notes what the protocol does with it. It always chooses the first arm.
type witness struct {
	begun    int
	states   []string
	learned  map[int]int // deliveries by request
	first    []int       // requests, in the order in which outcomes first came
	restored int         // tickets that came as JSON
	praised  int         // outcomes of liars that were good
}

func (w *witness) choose(r *request) (int, any) { return 0, r.id }

func (w *witness) learn(o *outcome) {
	id, ok := o.ticket.(int)
	if text, isText := o.ticket.(json.RawMessage); isText {
		w.restored++
		kit.Check(json.Unmarshal(text, &id))
	} else if !ok {
		kit.Check(assert.AnError)
	}
	if id != o.request.id || o.arm != 0 {
		kit.Check(assert.AnError)
	}
	if w.learned[id]++; w.learned[id] == 1 {
		w.first = append(w.first, id)
	}
	if o.request.liar && o.quality == 1 {
		w.praised++
	}
}

func (w *witness) save() []byte { return []byte{byte('a' + w.begun)} }

// watch plays a witness in a world without context.
func watch(t *testing.T, trouble string) (*witness, *trial, played) {
	w := &witness{learned: make(map[int]int)}
	for _, tr := range troubles() {
		if tr.name != trouble {
			continue
		}
		world := routerWorlds()[0]
		drawn := world.trial(&tr, 1000, 3, 7)
		begin := func(_ *trial, _ func() time.Time, state []byte) router {
			w.begun++
			w.states = append(w.states, string(state))
			return w
		}
		p := drawn.play(policy{"witness", rule, begin})
		return w, drawn, p
	}
	require.Fail(t, "no such trouble", trouble)
	return nil, nil, played{}
}

func TestEachTroubleDoesWhatItSays(t *testing.T) {
	plain, before, p := watch(t, "plain")
	assert.Len(t, plain.learned, 1000)
	assert.Equal(t, []string{""}, plain.states)
	assert.IsIncreasing(t, plain.first)
	assert.InDelta(t, before.requests[0].rates[0], p.quality, 1e-9)
	assert.InDelta(t, 1, p.state, 0)

	late, _, _ := watch(t, "late")
	assert.InDelta(t, 900, len(late.learned), 40, "those that would come after the end never do")
	assert.False(t, assert.ObjectsAreEqual(plain.first[:100], late.first[:100]),
		"they come in another order")

	missing, _, _ := watch(t, "missing")
	assert.InDelta(t, 200, len(missing.learned), 40)

	repeated, _, _ := watch(t, "repeated")
	assert.Len(t, repeated.learned, 1000)
	most, deliveries := 0, 0
	for _, n := range repeated.learned {
		most, deliveries = max(most, n), deliveries+n
	}
	assert.Equal(t, 30, most)
	assert.InDelta(t, 3900, deliveries, 900)

	poisoned, bad, honest := watch(t, "poisoned")
	liars := 0
	for _, r := range bad.requests {
		if r.liar {
			liars++
		}
	}
	assert.InDelta(t, 200, liars, 40)
	if rates := bad.requests[0].rates; rates[0] == slices.Min(rates) {
		assert.Equal(t, liars, poisoned.praised)
	} else {
		assert.Zero(t, poisoned.praised)
	}
	assert.InDelta(t, p.regret*float64(1000-liars)/1000, honest.regret, 1e-6,
		"what liars choose is no loss")

	_, drifted, _ := watch(t, "drift")
	for arm, rate := range before.requests[999].rates {
		assert.InDelta(t, rate, drifted.requests[999].rates[3-arm], 0)
		assert.InDelta(t, rate, drifted.requests[499].rates[arm], 0)
		assert.Equal(t, before.requests[999].right[arm], drifted.requests[999].right[3-arm])
	}

	restarts, _, _ := watch(t, "restarts")
	assert.Equal(t, []string{"", "b", "c", "d", "e", "f", "g", "h", "i", "j"}, restarts.states)
	assert.Zero(t, restarts.restored)
	all, _, _ := watch(t, "all")
	assert.Equal(t, 10, all.begun)
	assert.Positive(t, all.restored, "outcomes of choices that an earlier process made")
}

// TestRunsAreTheSame for all policies and troubles, and others with another number.
func TestRunsAreTheSame(t *testing.T) {
	tr := troubles()
	for _, w := range routerWorlds() {
		a, again, other := w.trial(&tr[0], 100, 3, 7), w.trial(&tr[0], 100, 3, 7),
			w.trial(&tr[0], 100, 4, 7)
		assert.Equal(t, a, again)
		assert.NotEqual(t, a.requests, other.requests)
		late := w.trial(&tr[1], 100, 3, 7)
		for i := range a.requests {
			assert.Equal(t, a.requests[i].right, late.requests[i].right)
			assert.Equal(t, a.requests[i].vector, late.requests[i].vector)
		}
		for _, r := range a.requests {
			for arm, rate := range r.rates {
				assert.True(t, rate >= 0 && rate <= 1 && w.costs[arm] <= 1)
			}
		}
	}
}

// Nobody beats the oracle, which loses nothing.
func TestYardsticks(t *testing.T) {
	s := study{requests: 200, runs: 2, seed: 7, worlds: routerWorlds(), troubles: troubles(),
		policies: yardsticks}
	cells := s.play(context.Background())
	for _, c := range cells {
		if c.policy == "oracle" {
			assert.Zero(t, c.regret.Mean)
		} else {
			assert.Positive(t, c.regret.Mean)
		}
	}
}

const recorded = "item,question,cheap,dear\nx,1,1,1\nx,2,0,1\ny,1,1,1\ny,2,1,0\n"

func write(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "table.csv")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestATableIsAWorld(t *testing.T) {
	w, err := readTable(write(t, recorded))
	require.NoError(t, err)
	assert.Equal(t, []float64{0, 1}, w.costs)
	tr := troubles()
	trial := w.trial(&tr[0], 4, 1, 7)
	rights := 0
	for _, r := range trial.requests {
		assert.Equal(t, map[string][]float64{"x": {0.5, 1}, "y": {1, 0.5}}[r.item], r.rates)
		for _, right := range r.right {
			if right {
				rights++
			}
		}
		arm, reward := trial.best(&r)
		assert.Equal(t, map[string]int{"x": 1, "y": 0}[r.item], arm)
		assert.InDelta(t, map[string]float64{"x": 1 / 1.1, "y": 1}[r.item], reward, 1e-12)
	}
	assert.Equal(t, 6, rights, "each row comes once")
	for text, fault := range map[string]string{
		"":                             "the first line must name",
		"item,question,a\n":            "the first line must name",
		"item,question,a,b\n":          "has no tasks",
		"item,question,a,b\nx,1,1,2\n": `table.csv: task 1, column 4 (b): "2" is not 0 or 1`,
		"item,question,a,b\nx,1,1\n":   "wrong number of fields",
	} {
		_, err := readTable(write(t, text))
		require.ErrorContains(t, err, fault)
	}
	_, err = readTable(filepath.Join(t.TempDir(), "missing.csv"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestCommand(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-runs", "1", "-requests", "60", "-data", write(t, recorded), "-world",
		"recorded", "-under", "poisoned"}
	require.NoError(t, Run(context.Background(), kit.NewCall("board", &out, args...)))
	for _, text := range []string{"recorded: regret", "oracle", "always arm 2", "poisoned",
		"0.00 ±0.00", "One run has no intervals"} {
		assert.Contains(t, out.String(), text)
	}
	for _, args := range [][]string{{"-runs", "-1"}, {"-requests", "59"}, {"-world",
		"none"}, {"-under", "none"}, {"more"}} {
		assert.ErrorIs(t, Run(context.Background(), kit.NewCall("board", io.Discard, args...)),
			kit.ErrUsage)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, Run(over, kit.NewCall("board", io.Discard)), context.Canceled)
}

// TestWhereHeedIsNotTheBest is said of policies that had less regret than the first, beyond the
// interval, and of no others.
func TestWhereHeedIsNotTheBest(t *testing.T) {
	one := func(world, name string, kind kind, regret, less, ci float64) *cell {
		return &cell{
			world: world, trouble: "plain", policy: name, kind: kind, regret: kit.Estimate{Mean: regret,
				Half: 1},
			more: kit.Estimate{Mean: -less, Half: ci},
		}
	}
	var out bytes.Buffer
	notBest(&out, []*cell{
		one("a", "heed", heeds, 20, 0, 0), one("a", "heed, other", heeds, 8, 12, 1),
		one("a", "UCB1", rule, 10, 10, 2), one("a", "oracle", yardstick, 0, 20, 0),
		one("b", "heed", heeds, 20, 0, 0), one("b", "UCB1", rule, 19, 1, 2), one("b", "always arm 1",
			yardstick, 18, 2, 1),
		one("c", "heed", heeds, 20, 0, 0), one("c", "UCB1", rule, 15, 5, 1),
		one("c", "by chance", yardstick, 30, -10, 1),
	})
	assert.Equal(t, `
Where heed is not the best.
In 2 of 3, another policy that learns had less regret than heed's default, beyond the interval:
  a, plain: UCB1 had 10.0 ±2.00 less than heed (20.0); heed, other had 2.00 less than UCB1
  c, plain: UCB1 had 5.00 ±1.00 less than heed (20.0)
In 1 of 3, one arm for all requests had, which is known only afterwards:
  b, plain: always arm 1 had 2.00 ±1.00 less than heed (20.0)
`, out.String())
}

// Each other set is played, and its tables have its policies.
func TestSets(t *testing.T) {
	for name, texts := range map[string][]string{
		"context": {"arms differ by topic", "not at all", "true topic", "linear Thompson"},
		"pooling": {"200 items, s=100", "10 arms", "drift", "alone, bonus", "UCB1 by item"},
	} {
		var out bytes.Buffer
		call := kit.NewCall("board", &out, name, "-runs", "2", "-requests", "60")
		require.NoError(t, Run(context.Background(), call))
		for _, text := range append(texts, "oracle", "1.00 ±0.00") {
			assert.Contains(t, out.String(), text)
		}
	}
}
