package routing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// A replay is one run over a table: its tasks in an order of their own.
type replay struct {
	table *table
	price float64
	seed  uint64
	run   int
}

// A policy chooses an arm for each task of a stream. It calls chosen with each choice and learns what that arm earned,
// and nothing of the others.
type policy struct {
	name string
	play func(ctx context.Context, r replay, chosen func(task, arm int) (reward float64)) error
}

// policies returns heed's poolings and the policies to compare them with.
func policies(t *table) []policy {
	all := []policy{
		learning(strategy.TwoLevel{}), learning(strategy.Copy{}), learning(strategy.Alone{}),
		{"uniform", func(_ context.Context, r replay, chosen func(task, arm int) float64) error {
			rng := rand.New(rand.NewPCG(r.seed, uint64(r.run)))
			for _, task := range r.table.stream(r.seed, r.run) {
				chosen(task, rng.IntN(len(r.table.arms)))
			}
			return nil
		}},
	}
	for arm, name := range t.arms {
		all = append(all, policy{"always:" + name, func(_ context.Context, r replay, chosen func(task, arm int) float64) error {
			for _, task := range r.table.stream(r.seed, r.run) {
				chosen(task, arm)
			}
			return nil
		}})
	}
	return append(all, t.byForm()...)
}

func learning(pooling strategy.Pooling) policy {
	return policy{fmt.Sprint(pooling), func(ctx context.Context, r replay, chosen func(task, arm int) float64) error {
		_, err := r.learn(ctx, pooling, r.subject, chosen)
		return err
	}}
}

// subject is the item of a task, if nothing else is.
func (r replay) subject(task int) (string, error) {
	return r.table.items[r.table.tasks[task].item], nil
}

// learn lets heed choose an arm for every task, by its item, and learn from what it earned. It is the whole of what a host does.
func (r replay) learn(ctx context.Context, pooling strategy.Pooling, item func(task int) (string, error), chosen func(task, arm int) float64) (*strategy.Learner, error) {
	st, err := memstore.New(memstore.Config{NoHistory: true})
	if err != nil {
		return nil, err
	}
	arms, index := r.arms()
	learner, err := strategy.New(ctx, strategy.Config{
		Store:      st,
		Arms:       arms,
		Pooling:    pooling,
		Seed:       rand.NewPCG(r.seed, uint64(r.run)),
		Unrecorded: true,                      // every outcome comes at once, with its choice
		Cache:      strategy.Cache{Size: 100}, // every task is a session of its own, which is soon over
	})
	if err != nil {
		return nil, err
	}
	for i, task := range r.table.stream(r.seed, r.run) {
		name, err := item(task)
		if err != nil {
			return nil, err
		}
		choice, err := learner.Select(ctx, strategy.Query{Item: name, Category: category, Session: strconv.Itoa(i)})
		if err != nil {
			return nil, err
		}
		reward := chosen(task, index[choice.Arm])
		if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 2*reward - 1, Confidence: 1}); err != nil {
			return nil, err
		}
	}
	return learner, nil
}

func (r replay) arms() ([]strategy.Arm, map[strategy.ArmID]int) {
	arms, index := make([]strategy.Arm, len(r.table.arms)), make(map[strategy.ArmID]int)
	for i, name := range r.table.arms {
		arms[i].ID = strategy.ArmID(name)
		index[arms[i].ID] = i
	}
	return arms, index
}

const category = "questions"

// settled plays a run with heed's default pooling and returns what is then believed to be each item's best arm.
func (r replay) settled(ctx context.Context) ([]int, error) {
	learner, err := r.learn(ctx, strategy.TwoLevel{}, r.subject, func(task, arm int) float64 { return r.table.reward(task, arm, r.price) })
	if err != nil {
		return nil, err
	}
	best := make([]int, len(r.table.items))
	for i := range best {
		beliefs, err := learner.Beliefs(ctx, strategy.Query{Item: r.table.items[i], Category: category})
		if err != nil {
			return nil, err
		}
		for arm := range beliefs {
			if beliefs[arm].Mean() > beliefs[best[i]].Mean() {
				best[i] = arm
			}
		}
	}
	return best, nil
}
