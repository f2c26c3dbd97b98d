package money

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// Config configures a [Frugal]. Learner must be set.
type Config struct {
	// Learner has the arms. It learns quality alone: its Reward takes off no cost.
	Learner *strategy.Learner
	// Quality is the share of the best arm's mean reward that is good enough, in (0, 1]. 0 means
	// 0.95. Lower it to save more.
	Quality float64
	// Costs are what a choice of each arm costs. An arm that is not among them has the mean cost of
	// its last outcomes in the category and context, or else of its last outcomes anywhere, among
	// the latest 2,000 choices. While the cost of an arm is unknown, the latest 400 renew the costs
	// of the others, and earlier ones are searched for it. Until it is found, it counts as the
	// dearest cost that is known. Then the learner must keep records, and [New] reads them all. Set
	// them if costs are known before the first outcome.
	Costs map[strategy.ArmID]float64
	// Explore is the share of choices, in (0, ½], that goes to the arms that are cheaper than the one
	// that is chosen most, or whose cost is not known, each as often. Without it, a cheap arm whose
	// first outcomes were bad is hardly chosen again. 0 means 0.02. Raise it to find good cheap arms
	// sooner, at some cost in quality.
	Explore float64
}

// A Frugal chooses the cheapest arm that is good enough for a category, context and item. It draws
// the quality of each arm from the learner's beliefs, like Thompson sampling, and takes the
// cheapest of those with enough of the best draw. Make one with [New].
//
// It is safe for concurrent use by multiple goroutines.
type Frugal struct {
	cfg     Config
	learner strategy.Config // the settings of cfg.Learner, with its defaults

	// costs are what each arm's outcomes cost, by the scope of a category and context. A tally is
	// never changed once it is there.
	costs *text.Memo[[]tally]

	mu     sync.Mutex // of what follows
	read   time.Time  // when costs were read
	asked  int        // how often they were asked for since then
	looked int        // how many records were read then, at most recent
	// until is before what time the next reading looks for a cost that is unknown. The zero time
	// means that it reads the newest records alone.
	until time.Time
}

// anywhere is the scope of all outcomes. An arm without outcomes in a category and context has its
// cost elsewhere.
const anywhere = ""

// A tally is the sum of costs of outcomes.
type tally struct{ sum, n float64 }

// An expense is what an arm is taken to cost. An unknown cost is a guess: see expenses.
type expense struct {
	cost    float64
	unknown bool // no outcome reported it
}

// New returns a Frugal, or all faults of its configuration, joined; each is a [*heed.ConfigError].
func New(ctx context.Context, cfg Config) (*Frugal, error) {
	cfg.Quality, cfg.Explore = cmp.Or(cfg.Quality, 0.95), cmp.Or(cfg.Explore, 0.02)
	var found valid.Faults
	found.Check(cfg.Learner != nil, "Learner", nil, "must be set")
	found.Check(cfg.Quality > 0 && cfg.Quality <= 1, "Quality", cfg.Quality,
		"must be in (0, 1], or 0 for the default")
	found.Check(cfg.Explore > 0 && cfg.Explore <= 0.5, "Explore", cfg.Explore,
		"must be in (0, 0.5], or 0 for the default")
	f := &Frugal{cfg: cfg, costs: text.NewMemo[[]tally](mostPlaces)}
	if cfg.Learner != nil {
		f.learner = cfg.Learner.Config()
		bonus := f.learner.Exploration.Bonus
		found.Check(bonus == 0, "Learner.Exploration", bonus,
			"must be none, because Explore takes its place")
		for id, cost := range cfg.Costs {
			is := slices.ContainsFunc(f.learner.Arms, func(a strategy.Arm) bool { return a.ID == id })
			found.Check(is && cost >= 0 && !math.IsInf(cost, 0), fmt.Sprintf("Costs[%q]", id), cost,
				"must be of an arm, and at least 0")
		}
		known := len(cfg.Costs)
		found.Check(!f.learner.Unrecorded || known == len(f.learner.Arms), "Costs", known,
			"must have every arm if the learner keeps no records")
	}
	err := found.Err()
	if err == nil {
		err = f.refresh(ctx, f.learner.Now(), time.Time{}, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("money: %w", err)
	}
	return f, nil
}

// recent is how many records a reading looks at, so that prices may change and a request does not
// wait for long. With fewer outcomes than few, what was known before is not replaced. While a cost
// is unknown, there is a reading after each soon choices, and after as many as keep the records
// that are read at soon for each choice. If it looks at older records too, newest is how many new
// ones it reads. mostPlaces bounds the scopes in memory.
const (
	recent     = 2000
	newest     = 400
	few        = 20
	soon       = 16
	mostPlaces = 1000
)

// refresh reads what arms cost from the newest records, at most limit; 0: all. An arm that is not
// among them keeps its cost. With until, most records are older than that time, and fill in what is
// unknown, because an outcome may come after thousands of other choices. It is run without the
// lock, because it may read as many records.
func (f *Frugal) refresh(ctx context.Context, now, until time.Time, limit int) error {
	tallies, looked, last := make(map[string][]tally), 0, time.Time{}
	if !until.IsZero() {
		if err := f.refresh(ctx, now, time.Time{}, newest); err != nil {
			return err
		}
		looked = newest
	}
	if len(f.cfg.Costs) < len(f.learner.Arms) {
		for r, err := range f.cfg.Learner.History(ctx,
			strategy.ChoiceFilter{Until: until, Limit: limit - looked}) {
			if err != nil {
				return err
			}
			looked, last = looked+1, r.Choice.At
			i := slices.IndexFunc(f.learner.Arms, func(a strategy.Arm) bool {
				return a.ID == r.Choice.Arm
			})
			if i < 0 || r.Result == nil {
				continue
			}
			for _, at := range []string{anywhere, answers.Scope(r.Choice.Category, r.Choice.Context)} {
				if tallies[at] == nil {
					if len(tallies) == mostPlaces {
						continue
					}
					tallies[at] = make([]tally, len(f.learner.Arms))
				}
				if t := &tallies[at][i]; t.n < recent {
					t.sum += r.Result.Cost
					t.n++
				}
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, fresh := range tallies {
		before, _ := f.costs.Get(at)
		for i, before := range before {
			if fresh[i].n < min(before.n, few) || before.n > 0 && !until.IsZero() {
				fresh[i] = before
			}
		}
		f.costs.Put(at, fresh)
	}
	f.read, f.asked, f.looked, f.until = now, 0, min(looked, recent), time.Time{}
	if looked == limit {
		f.until = last
	}
	return nil
}

// known returns what each arm costs in the place of a query. It reads the costs again as often as
// the learner reads its segments, and sooner if the cost of an arm is unknown. Frozen queries,
// which only look, do not hasten that. Several goroutines may find that the costs are due and read
// them at the same time, which is harmless.
func (f *Frugal) known(ctx context.Context, q *strategy.Query) ([]expense, error) {
	now, expenses := f.learner.Now(), f.expenses(q)
	missing := slices.ContainsFunc(expenses, func(e expense) bool { return e.unknown })
	f.mu.Lock()
	if !q.Frozen {
		f.asked++
	}
	due := now.Sub(f.read).Abs() >= f.learner.Refresh ||
		missing && f.asked >= max(soon, f.looked/soon)
	var until time.Time
	if missing {
		until = f.until
	}
	f.mu.Unlock()
	if !due {
		return expenses, nil
	}
	if err := f.refresh(ctx, now, until, recent); err != nil {
		return nil, err
	}
	return f.expenses(q), nil
}

// expenses returns the costs in memory: the configured cost, or the cost in the place of the query,
// or else the cost anywhere. An unknown cost is taken for the highest known one, so that an arm is
// not preferred because nothing is known of it.
func (f *Frugal) expenses(q *strategy.Query) []expense {
	expenses := make([]expense, len(f.learner.Arms))
	here, _ := f.costs.Get(answers.Scope(q.Category, q.Context))
	all, _ := f.costs.Get(anywhere)
	dearest := 0.
	for i, arm := range f.learner.Arms {
		cost, known := f.cfg.Costs[arm.ID]
		for _, tallies := range [][]tally{here, all} {
			if !known && tallies != nil && tallies[i].n > 0 {
				cost, known = tallies[i].sum/tallies[i].n, true
			}
		}
		expenses[i] = expense{cost, !known}
		dearest = max(dearest, cost)
	}
	for i := range expenses {
		if expenses[i].unknown {
			expenses[i].cost = dearest
		}
	}
	return expenses
}

// Select chooses an arm. The rules of [strategy.Learner.Select] hold. If beliefs or costs can't be
// read, the learner chooses by itself, and the error reports why. A query with Shares is left to
// the learner, because the host has decided then.
func (f *Frugal) Select(ctx context.Context, q strategy.Query) (strategy.Choice, error) {
	if f.learner.Disabled || len(q.Shares) > 0 {
		return f.cfg.Learner.Select(ctx, q)
	}
	err := f.share(ctx, &q, func() ([]evidence.Belief, error) {
		return f.cfg.Learner.Beliefs(ctx, q)
	})
	c, failed := f.cfg.Learner.Select(ctx, q)
	return c, errors.Join(failed, err)
}

// Wants names what [Frugal.SelectIn] reads for a query.
func (f *Frugal) Wants(q strategy.Query) store.Wants { return f.cfg.Learner.Wants(q) }

// SelectIn does what [Frugal.Select] does as a part of a step. The rules of
// [strategy.Learner.SelectIn] hold. Costs are read past the step, now and then.
func (f *Frugal) SelectIn(tx *store.Tx, q strategy.Query) (strategy.Choice, error) {
	if f.learner.Disabled || len(q.Shares) > 0 {
		return f.cfg.Learner.SelectIn(tx, q)
	}
	err := f.share(tx.Context(), &q, func() ([]evidence.Belief, error) {
		return f.cfg.Learner.BeliefsIn(tx, q)
	})
	c, failed := f.cfg.Learner.SelectIn(tx, q)
	return c, errors.Join(failed, err)
}

// share sets the shares of a query, by which the learner then draws and records the arm. So the
// propensity that it records is the probability by which the arm was really chosen.
func (f *Frugal) share(
	ctx context.Context, q *strategy.Query, read func() ([]evidence.Belief, error),
) error {
	costs, err := f.known(ctx, q)
	var beliefs []evidence.Belief
	if err == nil {
		beliefs, err = read()
	}
	if err != nil {
		return fmt.Errorf("money: %w", err)
	}
	q.Shares = f.shares(q.Arms, beliefs, costs)
	return nil
}

// draws is how many draws the shares are counted in. They are the probabilities of the choice, so
// they need not be finer.
const draws = 256

// shares returns how often each permitted arm is the cheapest that is good enough. Of equal costs
// the better draw decides. Each belief draws by its own method, also where its shapes are so small
// that all draws are 0 or 1. The draws have a fixed seed, because the shares are probabilities and
// the learner has the randomness. nil: the learner refuses the query.
func (f *Frugal) shares(
	arms []strategy.ArmID, beliefs []evidence.Belief, costs []expense,
) []float64 {
	var of []int
	for i := range f.learner.Arms {
		if len(arms) == 0 {
			of = append(of, i)
		}
	}
	for _, id := range arms {
		i := slices.IndexFunc(f.learner.Arms, func(a strategy.Arm) bool { return a.ID == id })
		if i < 0 {
			return nil
		}
		of = append(of, i)
	}
	shares, drawn := make([]float64, len(of)), make([]float64, len(of))
	rng := chance.Key{A: draws, B: uint64(len(of))}.Rand(0)
	for range draws {
		var best float64
		for n, i := range of {
			drawn[n] = winner.Draw(&beliefs[i], &rng)
			best = max(best, drawn[n])
		}
		at := -1
		for n, i := range of {
			if drawn[n] >= f.cfg.Quality*best && (at < 0 || costs[i].cost < costs[of[at]].cost ||
				costs[i].cost == costs[of[at]].cost && drawn[n] > drawn[at]) {
				at = n
			}
		}
		if at < 0 {
			return nil // a belief that can't be drawn
		}
		shares[at] += 1. / draws
	}
	f.explore(shares, func(n int) expense { return costs[of[n]] })
	return shares
}

// explore gives arms that are cheaper than the one with the greatest share, or may be, their part
// of Explore, in equal parts. The others give it in proportion to their shares. Dearer arms need no
// such trials: they are chosen whenever a cheaper one is not good enough.
func (f *Frugal) explore(shares []float64, cost func(int) expense) {
	lead, most := 0, 0.
	for n, share := range shares {
		if share > most {
			lead, most = n, share
		}
	}
	var cheaper []int
	for n := range shares {
		if n != lead && (cost(n).unknown || cost(n).cost < cost(lead).cost) {
			cheaper = append(cheaper, n)
		}
	}
	if len(cheaper) == 0 {
		return
	}
	for n := range shares {
		shares[n] *= 1 - f.cfg.Explore
	}
	for _, n := range cheaper {
		shares[n] += f.cfg.Explore / float64(len(cheaper))
	}
}
