package feedback

import "sync"

// A memo remembers at least the latest values by name, and at most twice as many. It is safe for
// concurrent use.
type memo[V any] struct {
	// latest is how many values each half has at most. A value is in young if it was used since the
	// halves were exchanged last.
	latest     int
	mu         sync.Mutex
	young, old map[string]V
}

// newMemo returns a memo that remembers at least so many values.
func newMemo[V any](latest int) *memo[V] { return &memo[V]{latest: latest, young: map[string]V{}} }

// get returns the value of a name. A value that is used stays among the latest.
func (m *memo[V]) get(name string) (value V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, known = m.young[name]; known {
		return value, true
	}
	if value, known = m.old[name]; known {
		m.add(name, value)
	}
	return value, known
}

// put remembers the value of a name.
func (m *memo[V]) put(name string, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(name, value)
}

// add remembers a value. If the younger half is full, it becomes the older one, and the oldest
// values are forgotten together: that costs less than an order of use.
func (m *memo[V]) add(name string, value V) {
	if len(m.young) >= m.latest {
		m.young, m.old = map[string]V{}, m.young
	}
	m.young[name] = value
}
