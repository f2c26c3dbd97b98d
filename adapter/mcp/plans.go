package mcp

import (
	"sync"

	"github.com/heedhq/heed/loop"
)

// mostPlans is how many plans wait for their answers. The oldest go first.
const mostPlans = 1000

// plans are those that answered may be about. The zero plans are ready. They are safe for concurrent use.
type plans struct {
	mu    sync.Mutex
	known map[planKey]loop.Plan
	order []planKey // the oldest first
}

type planKey struct{ person, id string }

func (p *plans) put(person string, plan loop.Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = make(map[planKey]loop.Plan)
	}
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

func (p *plans) get(person, id string) (loop.Plan, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan, ok := p.known[planKey{person, id}]
	return plan, ok
}
