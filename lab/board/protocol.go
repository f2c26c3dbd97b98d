package board

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// A policy chooses an arm for each request.
type policy struct {
	name string
	kind kind
	// begin starts a process. A state is what the process before it saved; nil for the first process.
	begin func(t *trial, now func() time.Time, state []byte) (router, error)
}

// A kind is whose a policy is.
type kind int

const (
	heeds     kind = iota
	rule           // another that learns
	yardstick      // it does not learn
)

// A router is a policy in one process.
type router interface {
	// choose returns an arm, and a ticket that comes back with the outcome. The ticket must go
	// through JSON, if it is not nil.
	choose(r *request) (arm int, ticket any, err error)
	// learn takes an outcome: of an earlier process, with the ticket's JSON.
	learn(o *outcome) error
	// save returns all that the next process needs.
	save() ([]byte, error)
}

// An outcome is one delivery of what became of a choice.
type outcome struct {
	request *request
	arm     int
	ticket  any // what choose returned, or a [json.RawMessage] of it after a restart
	quality float64
	cost    float64
	reward  float64 // of these at the world's price, in [0, 1]
}

// A played run is what a policy came to. Liars' requests do not count.
type played struct {
	regret  float64 // to the best arm of each request, in rewards
	quality float64 // the mean rate of right answers
	cost    float64 // the mean
	state   float64 // bytes that were saved at the end
	half    float64 // bytes that would have been saved at the half
}

// play lets a policy choose for all requests of a trial.
func (t *trial) play(p policy) (played, error) {
	g := game{trial: t, policy: p, due: make(map[int][]*outcome)}
	now := t.requests[0].at
	g.now = func() time.Time { return now }
	var err error
	if g.router, err = p.begin(t, g.now, nil); err != nil {
		return g.played, err
	}
	for i := range t.requests {
		now = t.requests[i].at
		if err := g.step(i); err != nil {
			return g.played, fmt.Errorf("%s in %q under %q, request %d: %w", p.name, t.world.name,
				t.trouble.name, i, err)
		}
	}
	g.played.quality /= g.honest
	g.played.cost /= g.honest
	state, err := g.router.save()
	g.played.state = float64(len(state))
	return g.played, err
}

// A game is a run in progress.
type game struct {
	*trial
	policy policy
	router router
	now    func() time.Time
	due    map[int][]*outcome // by the request after which they are delivered
	played played
	honest float64
}

func (g *game) step(i int) error {
	n := len(g.requests)
	if k := g.trouble.restarts + 1; i > 0 && i*k/n != (i-1)*k/n {
		if err := g.restart(); err != nil {
			return err
		}
	}
	if i == n/2 {
		state, err := g.router.save()
		if err != nil {
			return err
		}
		g.played.half = float64(len(state))
	}
	r := &g.requests[i]
	arm, ticket, err := g.router.choose(r)
	if err != nil {
		return err
	}
	if arm < 0 || arm >= len(r.rates) {
		return fmt.Errorf("there is no arm %d", arm)
	}
	g.count(r, arm)
	o := g.outcome(r, arm, ticket)
	for _, at := range r.arrives {
		g.due[at] = append(g.due[at], o)
	}
	for _, o := range g.due[i] {
		if err := g.router.learn(o); err != nil {
			return err
		}
	}
	delete(g.due, i)
	return nil
}

func (g *game) count(r *request, arm int) {
	if r.liar {
		return
	}
	_, most := g.best(r)
	g.played.regret += most - g.world.reward(r.rates[arm], g.world.costs[arm])
	g.honest++
	g.played.quality += r.rates[arm]
	g.played.cost += g.world.costs[arm]
}

// outcome is a report on a choice.
func (g *game) outcome(r *request, arm int, ticket any) *outcome {
	o := &outcome{request: r, arm: arm, ticket: ticket, cost: g.world.costs[arm]}
	said := r.right[arm]
	if r.liar {
		said = arm == worst(r.rates)
	}
	switch {
	case r.grades != nil && !r.liar:
		o.quality = r.grades[arm]
	case said:
		o.quality = 1
	}
	o.reward = g.world.reward(o.quality, o.cost)
	return o
}

// restart ends the process. Another goes on with what it saved, and tickets that are still out go
// through JSON.
func (g *game) restart() error {
	state, err := g.router.save()
	if err != nil {
		return err
	}
	for _, all := range g.due {
		for _, o := range all {
			if _, done := o.ticket.(json.RawMessage); done || o.ticket == nil {
				continue
			}
			text, err := json.Marshal(o.ticket)
			if err != nil {
				return err
			}
			o.ticket = json.RawMessage(text)
		}
	}
	g.router, err = g.policy.begin(g.trial, g.now, state)
	return err
}

// worst returns the arm with the lowest rate.
func worst(rates []float64) (arm int) {
	least := math.Inf(1)
	for i, rate := range rates {
		if rate < least {
			arm, least = i, rate
		}
	}
	return arm
}
