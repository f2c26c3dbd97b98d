package loop

import "sync"

// mostPlans is how many plans wait for their answers. The oldest go first.
const mostPlans = 1000

// Plans keep plans by their ids until [Agent.Answered] is told of them, for servers whose clients
// ask the model: a plan stays in the process that made it. They keep the latest 1,000, each for the
// person who asked for it. The zero Plans are ready. They are safe for concurrent use by multiple
// goroutines.
type Plans struct {
	mu    sync.Mutex
	known map[planKey]Plan
	order []planKey // the oldest first
}

type planKey struct{ person, id string }

// Put keeps a plan for a person, without its OnChunk, which belongs to a call that is over. It
// replaces the person's plan of the same id.
func (p *Plans) Put(person string, plan Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = make(map[planKey]Plan)
	}
	plan.Event.OnChunk = nil
	k := planKey{person, plan.Event.ID}
	if _, again := p.known[k]; !again {
		p.order = append(p.order, k)
	}
	p.known[k] = plan
	if len(p.order) > mostPlans {
		delete(p.known, p.order[0])
		p.order = p.order[1:]
	}
}

// Get returns the plan of an id that was put for a person, and whether there is one.
func (p *Plans) Get(person, id string) (Plan, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan, ok := p.known[planKey{person, id}]
	return plan, ok
}
