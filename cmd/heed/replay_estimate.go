package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/cmd/heed/internal/past"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/offpolicy"
)

// A policy is a way of choosing, with what it earned or would have earned.
type policy struct {
	Policy string    `json:"policy"`
	Reward replayed  `json:"reward"`
	Cost   *replayed `json:"cost,omitempty"` // of a request; nil: no costs are known
}

// A replayed is a mean with its interval of 90 %. If the mean is known and not estimated, both
// bounds are nil.
type replayed struct {
	Mean float64  `json:"mean"`
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// Unsteady says that parts of the log contradict each other, so that the interval says nothing.
	Unsteady bool `json:"unsteady,omitempty"`
}

// A replayReport is what the command answers.
type replayReport struct {
	Requests     int      `json:"requests"`
	Arms         []string `json:"arms"`
	Items        int      `json:"items"`
	Texts        int      `json:"texts,omitempty"` // without an item, which a partition has divided
	Propensities string   `json:"propensities"`    // told or counted
	LeftOut      int      `json:"left_out,omitempty"`
	Sorted       bool     `json:"sorted,omitempty"` // the file was not in the order of its times
	Judged       int      `json:"judged"`           // the second half, by which policies are compared
	Policies     []policy `json:"policies"`
	Wrote        string   `json:"wrote,omitempty"`
	Learner      string   `json:"learner,omitempty"`
}

// replayLevel is the level of the intervals.
const replayLevel = 0.9

// asHeed is the name of heed's own policy.
const asHeed = "heed"

// weigh estimates from a log what other policies would have earned in its second half. heed learns
// from the first half, and then uses the arm with the greatest mean.
func weigh(ctx context.Context, table *past.Table, now time.Time) (*replayReport, error) {
	r := &replayReport{Requests: len(table.Requests), Arms: table.Arms, Propensities: "counted"}
	items := make(map[strategyCell]bool)
	for i := range table.Requests {
		q := &table.Requests[i]
		items[cellOf(q)] = true
		if q.Propensity > 0 {
			r.Propensities = "told"
		}
	}
	r.Items = len(items)
	log := r.logged(table)
	costly := func(q past.Request) bool { return q.Cost > 0 }
	costs := slices.ContainsFunc(table.Requests, costly)
	if len(log) < 4 { // too few to estimate from
		r.Policies, r.Judged = append(r.Policies, asItWas(log, costs)), len(log)
		return r, nil
	}
	first, second := log[:len(log)/2], log[len(log)/2:]
	r.Judged = len(second)
	leading, err := learned(ctx, first, table.Arms, now)
	if err != nil {
		return nil, err
	}
	p, err := estimated(asHeed, second, costs, leading)
	if err != nil {
		return nil, err
	}
	r.Policies = append(r.Policies, asItWas(second, costs), p)
	for _, arm := range table.Arms {
		always := func(*past.Request) (string, error) { return arm, nil }
		p, err := estimated("always "+arm, second, costs, always)
		if err != nil {
			return nil, err
		}
		r.Policies = append(r.Policies, p)
	}
	return r, nil
}

// A strategyCell is where a learner keeps the evidence of a request.
type strategyCell [3]string

func cellOf(q *past.Request) strategyCell { return strategyCell{q.Category, q.Context, q.Item} }

// learned returns which arm leads for a request, by what a log teaches.
func learned(ctx context.Context, log []past.Request, arms []string, now time.Time) (
	func(*past.Request) (string, error), error,
) {
	st, err := newStudent(ctx, strategy.Config{Unrecorded: true}, arms, now)
	if err != nil {
		return nil, err
	}
	for i := range log {
		if err := st.learn(ctx, &log[i]); err != nil {
			return nil, err
		}
	}
	leading := make(map[strategyCell]string)
	return func(q *past.Request) (string, error) {
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
		leading[cellOf(q)] = arms[best]
		return arms[best], nil
	}, nil
}

// logged returns the requests that can be weighed, each with its propensity: as it was told, or if
// none was, as often as the arm was chosen for the item.
func (r *replayReport) logged(table *past.Table) (log []past.Request) {
	type choice struct {
		at  strategyCell
		arm string
	}
	all, of := make(map[strategyCell]float64), make(map[choice]float64)
	for i := range table.Requests {
		q := &table.Requests[i]
		all[cellOf(q)]++
		of[choice{cellOf(q), q.Arm}]++
	}
	for _, q := range table.Requests {
		if r.Propensities == "counted" {
			q.Propensity = of[choice{cellOf(&q), q.Arm}] / all[cellOf(&q)]
		}
		if q.Propensity > 0 {
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
		p.Reward.Mean += q.Reward / float64(len(log))
		cost += q.Cost / float64(len(log))
	}
	if costs {
		p.Cost = &replayed{Mean: cost}
	}
	return p
}

// estimated is what a policy would have earned that takes one arm for each request.
func estimated(
	name string, log []past.Request, costs bool, takes func(*past.Request) (string, error),
) (p policy, err error) {
	rewards := make([]offpolicy.Logged, len(log))
	most := 0.
	for i := range log {
		q := &log[i]
		arm, err := takes(q)
		if err != nil {
			return p, err
		}
		rewards[i] = offpolicy.Logged{Propensity: q.Propensity, Reward: q.Reward}
		if arm == q.Arm {
			rewards[i].Target = 1
		}
		most = max(most, q.Cost)
	}
	p.Policy = name
	if p.Reward, err = interval90(rewards, 1); err != nil || !costs {
		return p, err
	}
	for i := range log {
		rewards[i].Reward = 0
		if most > 0 {
			rewards[i].Reward = log[i].Cost / most
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
	p.line("%s, %s, %s.", plural(r.Requests, "request", "requests"),
		plural(len(r.Arms), "arm", "arms"), plural(r.Items, "item", "items"))
	if r.Propensities == "counted" {
		p.line("Propensities are not known. They are taken from how often each item had each arm, " +
			"which is right only if the arm was chosen whatever the request was like.")
	}
	if r.Sorted {
		p.line("The requests were put in the order of their times.")
	}
	if r.Texts > 0 {
		p.line("%s without an item were divided by their form: see package strategy/partition.",
			plural(r.Texts, "text", "texts"))
	}
	if r.LeftOut > 0 {
		p.line("%s without a propensity left out of the estimates.",
			plural(r.LeftOut, "request is", "requests are"))
	}
	if len(r.Policies) > 1 {
		p.line("heed learned from the first half. All rows are about the second half, of %s. "+
			"Intervals are of 90 %%.", plural(r.Judged, "request", "requests"))
	}
	p.printf("\n")
	r.printPolicies(p)
	if r.Wrote != "" {
		p.printf("\n")
		p.line("Wrote %s: the learner is %s, with the arms %s.", show(r.Wrote), show(r.Learner),
			strings.Join(texts(r.Arms, show), ", "))
	}
}

func (r *replayReport) printPolicies(p *printer) {
	t := newTable("policy", ">reward", ">low", ">high", "?>cost", "&>low", "&>high")
	var unsteady []string
	for _, of := range r.Policies {
		cells := append([]string{show(of.Policy)}, of.Reward.cells(share)...)
		if of.Cost == nil {
			cells = append(cells, "-", "-", "-")
		} else {
			cells = append(cells, of.Cost.cells(amount)...)
		}
		t.add(cells...)
		if of.Reward.Unsteady || of.Cost != nil && of.Cost.Unsteady {
			unsteady = append(unsteady, show(of.Policy))
		}
	}
	t.print(p)
	if len(unsteady) > 0 {
		p.printf("\n")
		p.line("Parts of the log contradict each other about %s. An arm changed meanwhile, or the log "+
			"is not in the order of the choices. The widest intervals say nothing.",
			strings.Join(unsteady, ", "))
	}
}

// amount writes a number of any size.
func amount(x float64) string { return fmt.Sprintf("%.4g", x) }

// cells returns the mean and the bounds.
func (r *replayed) cells(write func(float64) string) []string {
	if r.Low == nil {
		return []string{write(r.Mean), "-", "-"}
	}
	return []string{write(r.Mean), write(*r.Low), write(*r.High)}
}
