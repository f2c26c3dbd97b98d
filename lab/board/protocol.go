package board

import (
	"encoding/json"
	"time"

	"github.com/heedhq/heed/lab/internal/kit"
)

// A policy chooses an arm for each request.
type policy struct {
	name string
	kind kind
	// begin starts a process. A state is what the process before it saved; nil for the first process.
	begin func(t *trial, now func() time.Time, state []byte) router
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
	choose(r *request) (arm int, ticket any)
	// learn takes an outcome: of an earlier process, with the ticket's JSON.
	learn(o *outcome)
	// save returns all that the next process needs.
	save() []byte
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
func (t *trial) play(p policy) played {
	g := game{trial: t, policy: p, due: make(map[int][]*outcome)}
	now := t.requests[0].at
	g.now = func() time.Time { return now }
	g.router = p.begin(t, g.now, nil)
	for i := range t.requests {
		now = t.requests[i].at
		g.step(i)
	}
	g.played.quality /= g.honest
	g.played.cost /= g.honest
	g.played.state = float64(len(g.router.save()))
	return g.played
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

func (g *game) step(i int) {
	n := len(g.requests)
	if k := g.trouble.restarts + 1; i > 0 && i*k/n != (i-1)*k/n {
		g.restart()
	}
	if i == n/2 {
		g.played.half = float64(len(g.router.save()))
	}
	r := &g.requests[i]
	arm, ticket := g.router.choose(r)
	g.count(r, arm)
	o := g.outcome(r, arm, ticket)
	for _, at := range r.arrives {
		g.due[at] = append(g.due[at], o)
	}
	for _, o := range g.due[i] {
		g.router.learn(o)
	}
	delete(g.due, i)
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
		worst, _ := kit.Best(len(r.rates), func(arm int) float64 { return -r.rates[arm] })
		said = arm == worst
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
func (g *game) restart() {
	for _, all := range g.due {
		for _, o := range all {
			if _, done := o.ticket.(json.RawMessage); !done && o.ticket != nil {
				o.ticket = json.RawMessage(kit.Must(json.Marshal(o.ticket)))
			}
		}
	}
	g.router = g.policy.begin(g.trial, g.now, g.router.save())
}
