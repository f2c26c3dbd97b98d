package feedback

import "sync"

// A memo remembers the latest values by id. The zero value is ready to use; it is safe for
// concurrent use.
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
