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
	// drops counts the calls of Drop. The last of them are in dropped, the n-th at n modulo its
	// length.
	drops   uint64
	dropped [256]dropped
}

// A dropped is a session that was dropped, because it ended.
type dropped struct {
	session string
	epoch   uint64 // the one that began then, or 0 if it is not known
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

// Drops returns a mark for Put. Take it before a choice is made.
func (c *memo) Drops() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drops
}

// Put returns the choice that is there if it can still be used, and otherwise the new one. So
// goroutines that choose for a session at the same time agree. The new one is kept, unless its
// session was dropped since the mark.
func (c *memo) Put(
	session, name string, r *remembered, since uint64, usable func(*remembered) bool,
) *remembered {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.sessions[session][name]
	if at != nil && usable(entryOf(at).remembered) {
		return entryOf(at).remembered
	}
	if c.ended(session, r.made.Epoch, since) {
		return r
	}
	if at != nil {
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

// ended reports whether a choice is of a session that was dropped since the mark, or of an earlier
// epoch than one that is known: a step may have read the epoch long before it chose. If there were
// too many drops since to know, it reports true, because a choice that is not kept only costs
// another one.
func (c *memo) ended(session string, epoch, since uint64) bool {
	size := uint64(len(c.dropped))
	for n := c.drops - min(c.drops, size); n < c.drops; n++ {
		d := &c.dropped[n%size]
		if d.session == session && (n >= since || epoch < d.epoch) {
			return true
		}
	}
	return c.drops-since > size
}

// Drop forgets all choices of a session, also those that are being made. The epoch is the one that
// begins, or 0 if it is not known.
func (c *memo) Drop(session string, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped[c.drops%uint64(len(c.dropped))] = dropped{session, epoch}
	c.drops++
	for _, at := range c.sessions[session] {
		c.remove(at)
	}
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
