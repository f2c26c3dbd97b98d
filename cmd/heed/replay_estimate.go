package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/cmd/heed/internal/past"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/offpolicy"
)

// replayLevel is the level of the intervals.
const replayLevel = 0.9

// asHeed is the name of heed's own policy.
const asHeed = "heed"

// play has heed choose in a table that knows what each arm would have earned, and compares it with each arm and with the best of every request.
func (r *replayReport) play(ctx context.Context, table *past.File, now time.Time) error {
	r.Judged = len(table.Requests)
	n := float64(r.Judged)
	costs := anyCost(table)
	sums := make(map[string][2]float64)
	add := func(policy string, t past.Try, share float64) {
		s := sums[policy]
		sums[policy] = [2]float64{s[0] + share*t.Reward/n, s[1] + share*t.Cost/n}
	}
	for _, q := range table.Requests {
		best := q.Tries[0]
		for _, t := range q.Tries {
			add("always "+t.Arm, t, 1)
			if t.Reward > best.Reward || t.Reward == best.Reward && t.Cost < best.Cost {
				best = t
			}
		}
		add("the best of each request", best, 1)
	}
	runs := 5
	if len(table.Requests) > 10_000 {
		runs = 1
	}
	for run := range runs {
		order := rand.New(rand.NewPCG(uint64(run), 1)).Perm(len(table.Requests))
		st, err := newStudent(ctx, strategy.Config{Unrecorded: true}, table.Arms, now)
		if err != nil {
			return err
		}
		for _, i := range order {
			q := table.Requests[i]
			c, err := st.Select(ctx, queryOf(q))
			if err != nil {
				return err
			}
			at := slices.IndexFunc(q.Tries, func(t past.Try) bool { return t.Arm == string(c.Arm) })
			t := q.Tries[at]
			if _, err := st.Observe(ctx, strategy.Outcome{Choice: c, Value: 2*t.Reward - 1, Confidence: 1}); err != nil {
				return err
			}
			add(asHeed, t, 1/float64(runs))
		}
	}
	names := []string{asHeed}
	for _, arm := range table.Arms {
		names = append(names, "always "+arm)
	}
	for _, policyName := range append(names, "the best of each request") {
		p := policy{Policy: policyName, Reward: replayed{Mean: sums[policyName][0]}}
		if costs {
			p.Cost = &replayed{Mean: sums[policyName][1]}
		}
		r.Policies = append(r.Policies, p)
	}
	return nil
}

func anyCost(table *past.File) bool {
	return slices.ContainsFunc(table.Requests, func(q past.Request) bool {
		return slices.ContainsFunc(q.Tries, func(t past.Try) bool { return t.Cost > 0 })
	})
}

// weigh estimates from a log what other policies would have earned in its second half. heed learns from the first half, and then uses the arm with the
// greatest mean.
func (r *replayReport) weigh(ctx context.Context, table *past.File, now time.Time) error {
	log := r.logged(table)
	costs := anyCost(table)
	if len(log) < 4 { // nothing to estimate from
		r.Policies, r.Judged = append(r.Policies, asItWas(log, costs)), len(log)
		return nil
	}
	st, err := newStudent(ctx, strategy.Config{Unrecorded: true}, table.Arms, now)
	if err != nil {
		return err
	}
	first, second := log[:len(log)/2], log[len(log)/2:]
	r.Judged = len(second)
	for _, q := range first {
		if err := st.learn(ctx, q, q.Tries...); err != nil {
			return err
		}
	}
	leading := make(map[[3]string]string)
	lead := func(q past.Request) (string, error) {
		if arm, ok := leading[cellOf(q)]; ok {
			return arm, nil
		}
		beliefs, err := st.Beliefs(ctx, queryOf(q))
		if err != nil {
			return "", err
		}
		best := 0
		for i := range beliefs {
			if beliefs[i].Mean() > beliefs[best].Mean() {
				best = i
			}
		}
		leading[cellOf(q)] = table.Arms[best]
		return table.Arms[best], nil
	}
	p, err := estimated(asHeed, second, costs, lead)
	if err != nil {
		return err
	}
	r.Policies = append(r.Policies, asItWas(second, costs), p)
	for _, arm := range table.Arms {
		p, err := estimated("always "+arm, second, costs, func(past.Request) (string, error) { return arm, nil })
		if err != nil {
			return err
		}
		r.Policies = append(r.Policies, p)
	}
	return nil
}

// logged returns the requests that can be weighed, each with its propensity: as it was told, or if none was, as often as the arm was chosen for the
// item.
func (r *replayReport) logged(table *past.File) (log []past.Request) {
	type choice struct {
		place [3]string
		arm   string
	}
	all, of := make(map[[3]string]float64), make(map[choice]float64)
	for _, q := range table.Requests {
		all[cellOf(q)]++
		of[choice{cellOf(q), q.Tries[0].Arm}]++
	}
	for _, q := range table.Requests {
		t := q.Tries[0]
		if r.Propensities == "counted" {
			t.Propensity = of[choice{cellOf(q), t.Arm}] / all[cellOf(q)]
		}
		if q.Tries = []past.Try{t}; t.Propensity > 0 {
			log = append(log, q)
		}
	}
	r.LeftOut = len(table.Requests) - len(log)
	return log
}

func asItWas(log []past.Request, costs bool) policy {
	p := policy{Policy: "as it was"}
	var cost float64
	for _, q := range log {
		p.Reward.Mean += q.Tries[0].Reward / float64(len(log))
		cost += q.Tries[0].Cost / float64(len(log))
	}
	if costs {
		p.Cost = &replayed{Mean: cost}
	}
	return p
}

// estimated is what a policy would have earned that takes one arm for each request.
func estimated(name string, log []past.Request, costs bool, takes func(past.Request) (string, error)) (p policy, err error) {
	rewards := make([]offpolicy.Logged, len(log))
	most := 0.
	for i, q := range log {
		t := q.Tries[0]
		arm, err := takes(q)
		if err != nil {
			return p, err
		}
		rewards[i] = offpolicy.Logged{Propensity: t.Propensity, Reward: t.Reward}
		if arm == t.Arm {
			rewards[i].Target = 1
		}
		most = max(most, t.Cost)
	}
	p.Policy = name
	if p.Reward, err = interval90(rewards, 1); err != nil || !costs {
		return p, err
	}
	for i, q := range log {
		if most > 0 {
			rewards[i].Reward = q.Tries[0].Cost / most
		} else {
			rewards[i].Reward = 0
		}
	}
	cost, err := interval90(rewards, most)
	p.Cost = &cost
	return p, err
}

func interval90(log []offpolicy.Logged, unit float64) (replayed, error) {
	e, err := offpolicy.SelfNormalized(log, replayLevel)
	low, high := e.Low*unit, e.High*unit
	return replayed{Mean: e.Value * unit, Low: &low, High: &high, Unsteady: e.Unsteady}, err
}

func (r *replayReport) print(p *printer) {
	p.line("%s, %s, %s, %s. The format is %s.", plural(uint64(r.Requests), "request", "requests"), plural(uint64(r.Outcomes), "outcome", "outcomes"),
		plural(uint64(len(r.Arms)), "arm", "arms"), plural(uint64(r.Items), "item", "items"), r.Format)
	switch r.Propensities {
	case "none":
		p.line("Every arm was tried for every request, so nothing is estimated. heed learned as it went, in a shuffled order.")
	case "counted":
		p.line("Propensities are not known. They are taken from how often each item had each arm, which is right only if the arm was chosen whatever the request was like.")
	}
	if r.Sorted {
		p.line("The requests were put in the order of their times.")
	}
	if r.Texts > 0 {
		p.line("%s without an item were divided by their form: see package strategy/partition.", plural(uint64(r.Texts), "text", "texts"))
	}
	if r.LeftOut > 0 {
		p.line("%s without a propensity left out of the estimates.", plural(uint64(r.LeftOut), "request is", "requests are"))
	}
	if r.Propensities != "none" && len(r.Policies) > 1 {
		p.line("heed learned from the first half. All rows are about the second half, of %s. Intervals are of 90 %%.",
			plural(uint64(r.Judged), "request", "requests"))
	}
	p.printf("\n")
	t := newTable("policy", ">reward", ">low", ">high", "?>cost", "&>low", "&>high")
	for _, policy := range r.Policies {
		cells := append([]string{show(policy.Policy)}, policy.Reward.cells(share)...)
		if policy.Cost == nil {
			policy.Cost = &replayed{}
			cells = append(cells, "-", "-", "-")
		} else {
			cells = append(cells, policy.Cost.cells(func(x float64) string { return fmt.Sprintf("%.4g", x) })...)
		}
		t.add(cells...)
	}
	t.print(p)
	var unsteady []string
	for _, policy := range r.Policies {
		if policy.Reward.Unsteady || policy.Cost != nil && policy.Cost.Unsteady {
			unsteady = append(unsteady, show(policy.Policy))
		}
	}
	if len(unsteady) > 0 {
		p.printf("\n")
		p.line("Parts of the log contradict each other about %s. An arm changed meanwhile, or the log is not in the order of the choices. The widest intervals say nothing.",
			strings.Join(unsteady, ", "))
	}
	if r.Wrote != "" {
		p.printf("\n")
		p.line("Wrote %s: the learner is %s, with the arms %s.", show(r.Wrote), show(r.Learner), strings.Join(texts(r.Arms, show), ", "))
	}
}

// cells returns the mean and the bounds.
func (r *replayed) cells(write func(float64) string) []string {
	if r.Low == nil {
		return []string{write(r.Mean), "-", "-"}
	}
	return []string{write(r.Mean), write(*r.Low), write(*r.High)}
}
