package view

import (
	"context"
	"time"

	"github.com/heedhq/heed/internal/host"
)

// A Memo keeps what was read for a second of real time, and one caller reads at a time: so many
// readers cost as much as one. It is safe for concurrent use. Make it with [NewMemo].
type Memo[K comparable, V any] struct {
	lock  host.Lock
	known map[K]reading[V]
}

type reading[V any] struct {
	value V
	err   error
	at    time.Time
}

const (
	fresh        = time.Second
	mostReadings = 100
)

// NewMemo returns an empty memo.
func NewMemo[K comparable, V any]() Memo[K, V] {
	return Memo[K, V]{host.NewLock(), make(map[K]reading[V])}
}

// Of returns what was read last, or reads it again. A reader that goes away leaves that to others.
func (m *Memo[K, V]) Of(ctx context.Context, key K, read func() (V, error)) (v V, err error) {
	if err := m.lock.Lock(ctx); err != nil {
		return v, err
	}
	defer m.lock.Unlock()
	if known := m.known[key]; time.Since(known.at) < fresh { //nolint:forbidigo // real time
		return known.value, known.err
	}
	if v, err = read(); err != nil && ctx.Err() != nil {
		return v, err
	}
	if len(m.known) >= mostReadings {
		clear(m.known)
	}
	m.known[key] = reading[V]{v, err, time.Now()} //nolint:forbidigo // as above
	return v, err
}
