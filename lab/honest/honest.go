// Package honest measures whether heed knows how much it knows: whether its intervals hold, of
// rates and of what was saved, and how often a race ends with a wrong winner.
//
//	go run ./lab honest intervals | winners | money [-long] [-seed S]
//
// In its long form a study takes minutes.
package honest

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// A study plays and writes its table.
type study func(ctx context.Context, call *kit.Call, seed uint64) error

var studies = map[string]study{"intervals": intervals, "winners": winners, "money": saved}

// Run runs the study that the call names.
func Run(ctx context.Context, call *kit.Call) error {
	seed := call.Uint64("seed", 2026, "the seed of the worlds and choices")
	if err := call.ParseNames(); err != nil {
		return err
	}
	if len(call.Names) != 1 || studies[call.Names[0]] == nil {
		return call.Usage("name one study: intervals, winners or money")
	}
	return studies[call.Names[0]](ctx, call, *seed)
}

// play makes runs with a number each, on all processors.
func play[T any](ctx context.Context, runs int, run func(n uint64) (T, error)) ([]T, error) {
	all := make([]T, runs)
	return all, kit.Parallel(ctx, runs, func(int, int) {}, func(n int) (err error) {
		all[n], err = run(uint64(n))
		return err
	})
}

// newLearner returns a learner over arms 0 to n-1, with a store of its own.
func newLearner(arms int, pooling strategy.Pooling, seed uint64) (*strategy.Learner, error) {
	st, err := memstore.New(memstore.Config{NoHistory: true})
	if err != nil {
		return nil, err
	}
	cfg := strategy.Config{Store: st, Unrecorded: true, Pooling: pooling, Seed: rand.NewPCG(seed, 1)}
	for arm := range arms {
		cfg.Arms = append(cfg.Arms, strategy.Arm{ID: armID(arm)})
	}
	return strategy.New(context.Background(), cfg)
}

func armID(arm int) strategy.ArmID { return strategy.ArmID(strconv.Itoa(arm)) }

func armOf(c *strategy.Choice) int {
	arm, _ := strconv.Atoi(string(c.Arm)) // it is one of newLearner's
	return arm
}

// around draws the rates of items that lie around their segment's level with this strength.
func around(levels []float64, items int, strength float64, rng *rand.Rand) [][]float64 {
	rates := make([][]float64, items)
	for item := range rates {
		rates[item] = make([]float64, len(levels))
		for arm, level := range levels {
			s, r := evidence.Beta{Alpha: strength * level, Beta: strength * (1 - level)}.Sampler(), evidence.Rand{State: rng.Uint64()}
			rates[item][arm] = s.Draw(&r)
		}
	}
	return rates
}

// toss is a reward of 0 or 1.
func toss(rate float64, rng *rand.Rand) float64 {
	if rng.Float64() < rate {
		return 1
	}
	return 0
}
