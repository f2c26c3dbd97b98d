package strategy

import (
	"container/list"
	"sync"
)

// A memo remembers the choices of sessions, as many as it has room for. When it is full, a new
// choice takes the place of the one that was not asked for longest. All choices of a session can be
// dropped at once. It is safe for concurrent use by multiple goroutines.
type memo struct {
	room int

	mu sync.Mutex
	// sessions has an element of recent for each choice, by session and by name.
	sessions map[string]map[string]*list.Element
	recent   list.List // of entries, the one that was used last first
}

// An entry is a choice with its place in the memo.
type entry struct {
	session, name string
	*remembered
}

// newMemo returns one with room for that many choices.
func newMemo(room int) *memo {
	return &memo{room: room, sessions: make(map[string]map[string]*list.Element)}
}

// Get returns the choice of a name in a session, or nil.
func (c *memo) Get(session, name string) *remembered {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.sessions[session][name]
	if at == nil {
		return nil
	}
	c.recent.MoveToFront(at)
	return entryOf(at).remembered
}

// Put keeps a choice, unless the choice that is there can still be used. It returns the one that is
// kept. So goroutines that choose for a session at the same time agree.
func (c *memo) Put(
	session, name string, r *remembered, usable func(*remembered) bool,
) *remembered {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.sessions[session][name]; at != nil {
		if before := entryOf(at).remembered; usable(before) {
			return before
		}
		c.remove(at)
	}
	if c.recent.Len() >= c.room {
		c.remove(c.recent.Back())
	}
	if c.sessions[session] == nil {
		c.sessions[session] = make(map[string]*list.Element)
	}
	c.sessions[session][name] = c.recent.PushFront(entry{session, name, r})
	return r
}

// Drop forgets all choices of a session.
func (c *memo) Drop(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.sessions[session] {
		c.remove(at)
	}
}

// Len returns how many choices are kept.
func (c *memo) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}

func (c *memo) remove(at *list.Element) {
	e := entryOf(at)
	c.recent.Remove(at)
	if delete(c.sessions[e.session], e.name); len(c.sessions[e.session]) == 0 {
		delete(c.sessions, e.session)
	}
}

func entryOf(at *list.Element) entry {
	e, _ := at.Value.(entry) // recent has no others
	return e
}
