package feedback

import (
	"context"
	"sync"

	"github.com/heedhq/heed/internal/ahead"
	"github.com/heedhq/heed/store"
)

// foresee returns a context whose first reads of these records and queries are one call of the store, and a function that ends that.
func (s *Service) foresee(ctx context.Context, refs []store.Ref, queries ...store.Query) (context.Context, func()) {
	ctx, end := s.ahead.Begin(ctx)
	ahead.Rehearse(ctx, func(ctx context.Context) error {
		var none store.Snapshot
		return s.cfg.Store.Read(ctx, &none, nil, refs, queries...)
	})
	return ctx, end
}

// foreseeing returns what the gate reads about a draft: the marks, the rules that it is about, and the active rules that its agents see.
func (s *Service) foreseeing(d *Draft) (refs []store.Ref, queries []store.Query) {
	refs = []store.Ref{markKind.Ref(rulesMark), markKind.Ref(proposalsMark)}
	for _, id := range d.Supersedes {
		refs = append(refs, ruleKind.Ref(id))
	}
	if !d.makes() {
		refs = append(refs, ruleKind.Ref(d.Of))
	}
	if d.makes() || d.Change == Restore {
		queries = ruleKind.queries(d.activeKeys())
	}
	return refs, queries
}

// A memo remembers the latest values by id. The zero value is ready to use; it is safe for concurrent use.
type memo[V any] struct {
	mu         sync.Mutex
	young, old map[string]V
}

func (m *memo[V]) get(id string) (value V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, known = m.young[id]; !known {
		value, known = m.old[id]
	}
	return value, known
}

func (m *memo[V]) put(id string, value V) {
	const most = 1000 // of each age
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.young) >= most {
		m.young, m.old = nil, m.young
	}
	if m.young == nil {
		m.young = make(map[string]V)
	}
	m.young[id] = value
}
