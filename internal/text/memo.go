package text

import (
	"maps"
	"sync"
)

// A Memo remembers at least the latest values by name, and at most twice as many. Make one with
// [NewMemo]. It is safe for concurrent use.
type Memo[V any] struct {
	// latest is how many values each half has at most. A value is in young if it was used since the
	// halves were exchanged last.
	latest     int
	mu         sync.Mutex
	young, old map[string]V
}

// NewMemo returns a memo that remembers at least so many values.
func NewMemo[V any](latest int) *Memo[V] { return &Memo[V]{latest: latest, young: map[string]V{}} }

// Get returns the value of a name. A value that is used stays among the latest.
func (m *Memo[V]) Get(name string) (value V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(name)
}

func (m *Memo[V]) get(name string) (value V, known bool) {
	if value, known = m.young[name]; known {
		return value, true
	}
	if value, known = m.old[name]; known {
		m.put(name, value)
	}
	return value, known
}

// Put remembers the value of a name.
func (m *Memo[V]) Put(name string, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, value)
}

// put remembers a value. If the younger half is full, it becomes the older one, and the oldest
// values are forgotten together: that costs less than an order of use.
func (m *Memo[V]) put(name string, value V) {
	if len(m.young) >= m.latest {
		m.young, m.old = map[string]V{}, m.young
	}
	m.young[name] = value
}

// Add remembers the value of a name unless there is one, and returns the one that is remembered.
func (m *Memo[V]) Add(name string, value V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, known := m.get(name); known {
		return before
	}
	m.put(name, value)
	return value
}

// All returns the values that are remembered, by name.
func (m *Memo[V]) All() map[string]V {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := maps.Clone(m.young)
	for name, value := range m.old {
		if _, known := all[name]; !known {
			all[name] = value
		}
	}
	return all
}

// Drop forgets the value of a name if gone reports that it is the one to forget.
func (m *Memo[V]) Drop(name string, gone func(V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, half := range []map[string]V{m.young, m.old} {
		if value, known := half[name]; known && gone(value) {
			delete(half, name)
		}
	}
}
