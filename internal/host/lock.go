package host

import "context"

// A Lock is a mutex that a caller waits for only as long as its context lasts. Use it where the
// holder may be waiting for a store or for a host's code. Make it with [NewLock]. It is safe for
// concurrent use.
type Lock chan struct{}

// NewLock returns an unlocked Lock.
func NewLock() Lock { return make(Lock, 1) }

// Lock waits for the lock. It returns the context's error if the context ends first; the lock is
// then not held.
func (l Lock) Lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryLock takes the lock if it is free, and reports whether it did.
func (l Lock) TryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock frees the lock, which the caller must hold.
func (l Lock) Unlock() { <-l }
