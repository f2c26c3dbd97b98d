package sqlstore

import (
	"context"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
)

// A clock returns the time of PostgreSQL's server. Each commit reads the server's time again. In
// between, the clock adds the time that passed on this machine, so that it does not matter how this
// machine's clock is set.
type clock struct {
	mu         sync.RWMutex
	serverTime time.Time // by the server
	at         time.Time // when, on this machine
}

// learn sets the clock by the server, in microseconds.
func (c *clock) learn(micros int64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serverTime, c.at = evidence.Instant(micros).Time(), machineNow()
	return c.serverTime
}

// now returns the server's time. It does not ask the server.
func (c *clock) now() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.serverTime.Add(machineNow().Sub(c.at))
}

func machineNow() time.Time { return time.Now() } //nolint:forbidigo // the default clock

// now returns the moment by the store's clock.
func (s *Store) now() time.Time {
	switch {
	case s.cfg.Now != nil:
		return s.cfg.Now()
	case s.db.dialect.embedded():
		return machineNow()
	}
	return s.clock.now()
}

var readClock = either(``, `SELECT `+postgresNow)

// learnClock asks the server for its time.
func (s *Store) learnClock(ctx context.Context) error {
	if s.db.dialect.embedded() {
		return nil
	}
	return s.db.read(ctx, func(t *tx) error {
		var micros int64
		err := t.one(readClock, nil, &micros)
		s.clock.learn(micros)
		return err
	})
}

// postgresNow is the server's clock, in microseconds.
const postgresNow = `CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)`
