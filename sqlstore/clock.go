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
//
// All processes of a store thus share one clock, by which ids, history and records age. SQLite has
// no server: there the clock is the machine's.
type clock struct {
	mu sync.RWMutex
	// serverTime is the server's time when it was read last.
	serverTime time.Time
	// at is when that was on this machine. It has Go's monotonic reading, so a clock that is set back
	// does not matter.
	at time.Time
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

// machineNow is this machine's clock.
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

// readClock reads the server's clock by itself.
var readClock = either(``, `SELECT `+postgresNow)

// learnClock asks the server for its time. Open and Sweep call it. A commit brings the server's
// time along, at no cost.
func (s *Store) learnClock(ctx context.Context) error {
	if s.db.dialect.embedded() {
		return nil
	}
	return s.db.read(ctx, func(t *tx) error {
		var micros int64
		err := t.one(readClock, nil, &micros)
		if err == nil {
			s.clock.learn(micros)
		}
		return err
	})
}

// postgresNow is the server's clock, in microseconds. It is clock_timestamp and not now, which is
// when the transaction began: a commit may wait for a lock.
const postgresNow = `CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)`
