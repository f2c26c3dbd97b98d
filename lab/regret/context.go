package regret

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/partition"
)

// The measures of the worlds with a context.
const (
	numbers    = 24   // of a request's vector
	unlabelled = 1000 // vectors that are seen before, without outcomes
	arms       = 4
)

// A request is what an arm is chosen for.
type request struct {
	vector []float32
	topic  int
	rates  [arms]float64 // of the arms, which no policy knows
	luck   float64       // an arm earns 1 if this is below its rate, so that all policies have the same luck
}

// A setting is a world in which requests have topics, and a vector near that of their topic.
type setting struct {
	name    string
	choices int // of a run
	topics  int
	noise   float64 // how long the noise is that is added to a topic's vector, whose length is 1
	// rates returns how often each arm is right for a request: drawn anew for every run.
	rates func(rng *rand.Rand, topics int) func(r *request) [arms]float64
}

// settings returns the worlds. They were fixed before any policy was run in them.
func settings(topics int, noise float64) []setting {
	const choices = 3000
	return []setting{
		{"arms differ by topic", choices, topics, noise, byTopic(1)},
		{"for 30 % of topics", choices, topics, noise, byTopic(0.3)},
		{"linearly", choices, topics, noise, linearly},
		{"not at all", choices, topics, noise, byTopic(0)},
	}
}

// byTopic is a world in which a share of the topics have rates of their own, and the others those of all.
func byTopic(share float64) func(rng *rand.Rand, topics int) func(r *request) [arms]float64 {
	return func(rng *rand.Rand, topics int) func(r *request) [arms]float64 {
		draw := func() (rates [arms]float64) {
			for arm := range rates {
				rates[arm] = 0.1 + 0.8*rng.Float64()
			}
			return rates
		}
		common, own := draw(), make([][arms]float64, topics)
		for topic := range own {
			if own[topic] = common; rng.Float64() < share {
				own[topic] = draw()
			}
		}
		return func(r *request) [arms]float64 { return own[r.topic] }
	}
}

// linearly is a world in which an arm's rate grows along a direction of its own.
func linearly(rng *rand.Rand, _ int) func(r *request) [arms]float64 {
	var directions [arms][]float32
	for arm := range directions {
		directions[arm] = direction(rng)
	}
	return func(r *request) (rates [arms]float64) {
		for arm := range rates {
			along := 0.
			for i, x := range r.vector {
				along += float64(x) * float64(directions[arm][i])
			}
			rates[arm] = min(max(0.5+1.1*along, 0.02), 0.98)
		}
		return rates
	}
}

// direction draws a unit vector.
func direction(rng *rand.Rand) []float32 {
	v := make([]float64, numbers)
	squares := 0.
	for i := range v {
		v[i] = rng.NormFloat64()
		squares += v[i] * v[i]
	}
	unit := make([]float32, numbers)
	for i := range v {
		unit[i] = float32(v[i] / math.Sqrt(squares))
	}
	return unit
}

// near draws a unit vector around a topic's.
func near(topic []float32, noise float64, rng *rand.Rand) []float32 {
	away := direction(rng)
	v, squares := make([]float32, numbers), 0.
	for i := range v {
		v[i] = topic[i] + float32(noise)*away[i]
		squares += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(squares))
	}
	return v
}

// A trial is one run of a world: what is seen before, and the requests in their order.
type trial struct {
	before   [][]float32
	requests []request
	seed     uint64
}

func (s setting) trial(run int, seed uint64) trial {
	rng := rand.New(rand.NewPCG(seed, uint64(run)))
	topics := make([][]float32, s.topics)
	for i := range topics {
		topics[i] = direction(rng)
	}
	rates := s.rates(rng, s.topics)
	t := trial{seed: rng.Uint64()}
	for range unlabelled {
		t.before = append(t.before, near(topics[rng.IntN(len(topics))], s.noise, rng))
	}
	for range s.choices {
		r := request{topic: rng.IntN(len(topics))}
		r.vector, r.luck = near(topics[r.topic], s.noise, rng), rng.Float64()
		r.rates = rates(&r)
		t.requests = append(t.requests, r)
	}
	return t
}

// A chooser chooses an arm for a request, and returns a function that takes the reward.
type chooser func(r *request) (arm int, learn func(reward float64) error, err error)

// A contextual is a policy that may look at a request.
type contextual struct {
	name  string
	begin func(t *trial) (chooser, error)
}

// play lets a policy choose for all requests of a trial, and returns its regret to the best arm of each.
func (t *trial) play(p contextual) (regret float64, err error) {
	choose, err := p.begin(t)
	if err != nil {
		return 0, err
	}
	for i := range t.requests {
		r := &t.requests[i]
		arm, learn, err := choose(r)
		if err != nil {
			return 0, err
		}
		best := 0.
		for _, rate := range r.rates {
			best = max(best, rate)
		}
		regret += best - r.rates[arm]
		reward := 0.
		if r.luck < r.rates[arm] {
			reward = 1
		}
		if err := learn(reward); err != nil {
			return 0, err
		}
	}
	return regret, nil
}

// contextuals returns the policies: those whose figures docs/context.md has, or those among which the defaults were chosen.
func contextuals(all bool) []contextual {
	policies := []contextual{
		byItem("no context", strategy.TwoLevel{}, func(*trial) (func(*request) (string, error), error) {
			return func(*request) (string, error) { return "", nil }, nil
		}),
		byItem("true topic", strategy.TwoLevel{}, func(*trial) (func(*request) (string, error), error) {
			return func(r *request) (string, error) { return strconv.Itoa(r.topic), nil }, nil
		}),
		byItem("clusters", strategy.TwoLevel{}, clusters(0)),
		byItem("clusters, online", strategy.TwoLevel{}, online),
		linear(0.25),
	}
	if !all {
		return policies
	}
	for _, k := range []int{8, 15, 30, 45, 60, 100} {
		policies = append(policies, byItem(fmt.Sprint(k, " clusters"), strategy.TwoLevel{}, clusters(k)))
	}
	return append(policies, byItem("clusters, alone", strategy.Alone{}, clusters(0)), byItem("clusters, copy", strategy.Copy{}, clusters(0)), linear(0.1), linear(0.5))
}

// byItem is heed, with an item for each request.
func byItem(name string, pooling strategy.Pooling, items func(t *trial) (func(r *request) (string, error), error)) contextual {
	return contextual{name, func(t *trial) (chooser, error) {
		ctx := context.Background()
		item, err := items(t)
		if err != nil {
			return nil, err
		}
		st, err := memstore.New(memstore.Config{NoHistory: true})
		if err != nil {
			return nil, err
		}
		cfg := strategy.Config{Store: st, Pooling: pooling, Unrecorded: true, Cache: strategy.Cache{Size: 100}, Seed: rand.NewPCG(t.seed, 1)}
		index := make(map[strategy.ArmID]int)
		for arm := range arms {
			cfg.Arms = append(cfg.Arms, strategy.Arm{ID: strategy.ArmID(strconv.Itoa(arm))})
			index[cfg.Arms[arm].ID] = arm
		}
		learner, err := strategy.New(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return func(r *request) (int, func(float64) error, error) {
			name, err := item(r)
			if err != nil {
				return 0, nil, err
			}
			choice, err := learner.Select(ctx, strategy.Query{Item: name})
			return index[choice.Arm], func(reward float64) error {
				_, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 2*reward - 1, Confidence: 1})
				return err
			}, err
		}, nil
	}}
}

// clusters makes a partition of the vectors that were seen before, and leaves it as it is. 0 means the default number.
func clusters(k int) func(t *trial) (func(r *request) (string, error), error) {
	return func(t *trial) (func(r *request) (string, error), error) {
		ctx := context.Background()
		part, err := partition.New(ctx, partition.Config{Clusters: k, Frozen: true, Seed: rand.NewPCG(t.seed, 2)})
		if err == nil {
			err = part.FitVectors(ctx, t.before)
		}
		return func(r *request) (string, error) { return part.Of(r.vector) }, err
	}
}

// online begins without a partition, and sweeps after every hundred requests.
func online(t *trial) (func(r *request) (string, error), error) {
	ctx := context.Background()
	part, err := partition.New(ctx, partition.Config{Seed: rand.NewPCG(t.seed, 2)})
	n := 0
	return func(r *request) (string, error) {
		if n++; n%100 == 0 {
			if err := part.Sweep(ctx, time.Time{}); err != nil {
				return "", err
			}
		}
		return part.Of(r.vector)
	}, err
}

// A contextResult is what the policies came to in one world.
type contextResult struct {
	World    string
	Runs     int
	Policies []against
}

// against is a policy's regret, and its ratio to the regret of the first policy in the same runs.
type against struct {
	regret
	Ratio     float64
	RatioCI95 float64 // half the width of its 95 % confidence interval
}

// studyContext lets every policy play in the same runs of every world.
func studyContext(ctx context.Context, worlds []setting, policies []contextual, runs int, seed uint64, progress func(done, of int)) ([]contextResult, error) {
	each := make([][][]float64, len(worlds)) // regret by world, policy and run
	for i := range each {
		each[i] = make([][]float64, len(policies))
		for j := range each[i] {
			each[i][j] = make([]float64, runs)
		}
	}
	err := kit.Parallel(ctx, len(worlds)*runs, progress, func(job int) error {
		i, run := job/runs, job%runs
		t := worlds[i].trial(run, seed)
		for j, p := range policies {
			if err := ctx.Err(); err != nil {
				return err
			}
			var err error
			if each[i][j][run], err = t.play(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	results := make([]contextResult, len(worlds))
	for i, w := range worlds {
		results[i] = contextResult{World: w.name, Runs: runs}
		for j, p := range policies {
			results[i].Policies = append(results[i].Policies, compare(p.name, each[i][j], each[i][0]))
		}
	}
	return results, nil
}

// compare returns the ratio of two means, with the interval of the delta method for pairs.
func compare(name string, own, first []float64) (a against) {
	a.Name = name
	a.Mean, a.CI95 = kit.Mean(own)
	base, _ := kit.Mean(first)
	a.Ratio = a.Mean / base
	rest := make([]float64, len(own))
	for i := range own {
		rest[i] = (own[i] - a.Ratio*first[i]) / base
	}
	_, a.RatioCI95 = kit.Mean(rest)
	return a
}

func reportContext(w io.Writer, results []contextResult) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "regret, and its ratio\t")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t\t", r.World)
	}
	fmt.Fprintln(table)
	for i, p := range results[0].Policies {
		fmt.Fprintf(table, "%s\t", p.Name)
		for _, r := range results {
			fmt.Fprintf(table, "%s ±%s\t%.2f ±%.2f\t", number(r.Policies[i].Mean), number(r.Policies[i].CI95), r.Policies[i].Ratio, r.Policies[i].RatioCI95)
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintf(table, "%d runs\t\n", results[0].Runs)
	return table.Flush()
}
