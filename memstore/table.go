package memstore

import (
	"sync"
	"sync/atomic"
)

// A table gives small numbers to values that recur: kinds and scopes, names, origins. The zero value of K has the number
// 0. Reading a value by its number takes no lock. The zero table is ready to use and safe for concurrent use.
type table[K comparable] struct {
	mu      sync.RWMutex
	numbers map[K]uint32
	free    []uint32
	values  atomic.Pointer[[]K] // by number; never changed in place
}

// find returns the number of a value, if it has one.
func (t *table[K]) find(value K) (uint32, bool) {
	if value == *new(K) {
		return 0, true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	number, ok := t.numbers[value]
	return number, ok
}

// number returns the number of a value, a new one if it has none yet.
func (t *table[K]) number(value K) uint32 {
	if number, ok := t.find(value); ok {
		return number
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if number, ok := t.numbers[value]; ok {
		return number
	}
	if t.numbers == nil {
		t.numbers = make(map[K]uint32)
		t.values.Store(&[]K{*new(K)})
	}
	values := *t.values.Load()
	var number uint32
	if n := len(t.free); n > 0 {
		number, t.free = t.free[n-1], t.free[:n-1]
		values = append([]K(nil), values...)
		values[number] = value
	} else {
		// Readers of the shorter slice never look at the element that append may add behind it.
		number = uint32(len(values))
		values = append(values, value)
	}
	t.numbers[value] = number
	t.values.Store(&values)
	return number
}

// value returns the value of a number.
func (t *table[K]) value(number uint32) K {
	if number == 0 {
		return *new(K)
	}
	return (*t.values.Load())[number]
}

// count returns how many numbers were given out.
func (t *table[K]) count() int {
	if values := t.values.Load(); values != nil {
		return len(*values)
	}
	return 0
}

// drop forgets the values for which the function is true. Their numbers go to others later, so nothing may hold them.
func (t *table[K]) drop(gone func(K) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.numbers == nil {
		return
	}
	values := append([]K(nil), *t.values.Load()...)
	for number, value := range values {
		if number > 0 && value != *new(K) && gone(value) {
			delete(t.numbers, value)
			values[number] = *new(K)
			t.free = append(t.free, uint32(number))
		}
	}
	t.values.Store(&values)
}
