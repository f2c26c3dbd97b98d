package strategy

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// A memo remembers values by group and name, each for a time to live and as many as it has room
// for, and those that are being made. When it is full, a new value takes the place of the one that
// was not asked for longest. A value is made once, however many callers ask for it at the same
// time. A memo is safe for concurrent use.
//
// It is not a general cache: a group is a session, all of whose values can be dropped at once, and
// each value has a number that grows when it is made again, so that a session's second choice for
// an item draws other random numbers than its first.
type memo[V any] struct {
	room int
	ttl  time.Duration

	mu     sync.Mutex
	groups map[string]map[string]*entry[V] // by name
	recent list.List                       // of entries, the one that was used last first
}

// An entry is in its group and among the recent ones while it is kept. Its value does not change
// once it is made.
type entry[V any] struct {
	group, name string
	value       V
	number      uint64 // how many values the name has had before
	expires     int64  // in nanoseconds of Unix time
	made        bool
	waiting     chan struct{} // made by the first who waits, closed when the value is made
	place       *list.Element // in recent
}

// newMemo returns one with room for that many values.
func newMemo[V any](room int, ttl time.Duration) *memo[V] {
	return &memo[V]{room: room, ttl: ttl, groups: make(map[string]map[string]*entry[V])}
}

// Do returns the value of a name in a group, and whether it was there. If it is not, or is past its
// time, or usable refuses it, fill makes it, given how many values the name has had before; other
// callers wait for that, or until their context is done. A value that could not be made is not
// kept.
func (c *memo[V]) Do(ctx context.Context, group, name string, now time.Time,
	usable func(*V) bool, fill func(v *V, number uint64) error,
) (value *V, hit bool, err error) {
	for {
		c.mu.Lock()
		e := c.groups[group][name]
		switch {
		case e != nil && !e.made:
			if err := c.wait(ctx, e); err != nil {
				return nil, false, err
			}
			continue
		case e != nil && now.UnixNano() < e.expires && usable(&e.value):
			c.recent.MoveToFront(e.place)
			c.mu.Unlock()
			return &e.value, true, nil
		}
		// The entry is added before its value is made, so that other callers find it and wait. The
		// lock is not held while the value is made.
		fresh := &entry[V]{group: group, name: name, expires: now.Add(c.ttl).UnixNano()}
		c.add(fresh)
		c.mu.Unlock()
		return c.fill(fresh, fill)
	}
}

// Get returns the value of a name in a group if it is kept and not past its time. It does not wait.
func (c *memo[V]) Get(group, name string, now time.Time) (value *V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.groups[group][name]
	if e == nil || !e.made || now.UnixNano() >= e.expires {
		return nil, false
	}
	c.recent.MoveToFront(e.place)
	return &e.value, true
}

// Put keeps a value that was made elsewhere, and replaces the value of the same name. It has no
// effect if [memo.Do] is making a value of this name.
func (c *memo[V]) Put(group, name string, now time.Time, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.groups[group][name]; e == nil || e.made {
		c.add(&entry[V]{group: group, name: name, value: value, made: true,
			expires: now.Add(c.ttl).UnixNano()})
	}
}

// wait gives the lock back and waits until the entry is made, or failed to be.
func (c *memo[V]) wait(ctx context.Context, e *entry[V]) error {
	if e.waiting == nil {
		e.waiting = make(chan struct{})
	}
	waiting := e.waiting
	c.mu.Unlock()
	select {
	case <-waiting:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fill makes the value of an entry that others may wait for. If it fails, the entry is removed and
// those who waited look again, so one of them makes the value in its place.
func (c *memo[V]) fill(e *entry[V], fill func(*V, uint64) error) (*V, bool, error) {
	failed := true // unless fill returns: it may panic
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		e.made = true
		if failed && c.groups[e.group][e.name] == e {
			c.remove(e)
		}
		if e.waiting != nil {
			close(e.waiting)
		}
	}()
	err := fill(&e.value, e.number)
	failed = err != nil
	return &e.value, false, err
}

// Drop forgets all values of a group.
func (c *memo[V]) Drop(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.groups[group] {
		c.remove(e)
	}
}

// Len returns how many values are kept, those past their time among them.
func (c *memo[V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}

// add puts an entry in the place of the one of its name, and makes room for it. An entry that is
// being made stays, because others wait for it.
func (c *memo[V]) add(e *entry[V]) {
	if before := c.groups[e.group][e.name]; before != nil {
		e.number = before.number + 1
		c.remove(before)
	}
	if c.recent.Len() >= c.room {
		for at := c.recent.Back(); at != nil; at = at.Prev() {
			if oldest, _ := at.Value.(*entry[V]); oldest.made {
				c.remove(oldest)
				break
			}
		}
	}
	if c.groups[e.group] == nil {
		c.groups[e.group] = make(map[string]*entry[V])
	}
	c.groups[e.group][e.name] = e
	e.place = c.recent.PushFront(e)
}

// remove takes an entry out. Its value stays valid for those who have it.
func (c *memo[V]) remove(e *entry[V]) {
	c.recent.Remove(e.place)
	delete(c.groups[e.group], e.name)
	if len(c.groups[e.group]) == 0 {
		delete(c.groups, e.group)
	}
}
