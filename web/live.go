package web

import (
	"context"
	"sync"

	"github.com/heedhq/heed"
)

// Live tells open pages that something has changed. Its Observe is the [heed.Observer] of the parts whose changes pages show at
// once. The zero Live is ready. It is safe for concurrent use by multiple goroutines.
type Live struct {
	mu        sync.Mutex
	listeners map[chan struct{}]struct{}
}

// Observe implements [heed.Observer]. It waits for nobody.
func (l *Live) Observe(_ context.Context, n heed.Notice) {
	switch n.(type) {
	case heed.Selected, heed.Duplicate:
		return
	}
	l.wake()
}

func (l *Live) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.listeners {
		select {
		case c <- struct{}{}:
		default: // it is woken already
		}
	}
}

// listen returns a channel that gets a value after changes, and a function that ends it.
func (l *Live) listen() (changed <-chan struct{}, end func()) {
	c := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners == nil {
		l.listeners = make(map[chan struct{}]struct{})
	}
	l.listeners[c] = struct{}{}
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listeners, c)
	}
}
