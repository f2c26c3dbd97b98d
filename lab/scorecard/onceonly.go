package scorecard

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const (
	countBar = "outcomes counted too often or not at all"
	massBar  = "off the sum of weights"
	eventBar = "batches with an id counted too often or not at all"
)

// A courier delivers outcomes, and batches with an id.
type courier struct {
	place
	byPayload bool // an outcome is known by what it says
	nameless  bool // batches have no id

	rng    *rand.Rand
	events int             // how many batches with an id there are
	sent   map[string]bool // their ids
	n      int             // how often one was sent
}

// batchCell is what batches with an id are about.
var batchCell = evidence.Cell{Kind: cell.Kind, Scope: cell.Scope, Item: cell.Item, Name: "batch"}

// event is a batch with an id. Its observation has another id at each delivery, so that it counts once by the id of the batch alone.
func (c *courier) event() store.Batch {
	id := fmt.Sprint("event ", c.rng.IntN(c.events))
	c.sent[id] = true
	c.n++
	b := store.Batch{ID: id, Observations: []evidence.Observation{{ID: fmt.Sprint(id, ", delivery ", c.n), Cell: batchCell, Reward: 1, Weight: 0.5, At: fixedNow}}}
	if c.nameless {
		b.ID = ""
	}
	return b
}

func onceLine(engine string) card.Line {
	run := func(c courier, short, long int) card.Attempt {
		return on(engine, func(ctx context.Context, s card.Settings, p place) (card.Result, error) {
			one := c
			one.place, one.rng = p, s.Rand(0)
			return one.deliveries(ctx, card.Pick(s, short, long))
		})
	}
	return card.Line{
		Name:    "S6 " + engine,
		Promise: "An outcome counts exactly once, however often it is delivered, also across restarts.",
		Attack: "Each outcome is delivered ten times, shuffled, by four callers, while the store is cut off and opened again twenty times. Calls that were cut off are " +
			"made again. A quarter of the outcomes have the content of another one, and count for themselves. With each delivery comes a batch with an id, with an " +
			"observation that has another name each time.",
		Bars:  card.None(countBar, massBar, eventBar),
		Short: card.Form{Work: 40_000, Faults: 20, Budget: 4 * time.Minute},
		Long:  card.Form{Work: 1_000_000, Faults: 20, Budget: 40 * time.Minute},
		Run:   run(courier{}, 4000, 100_000),
		Controls: []card.Control{{
			Name: "an outcome is known by a hash of what it says, and a batch by nothing", Misses: []string{countBar, massBar, eventBar},
			Run: run(courier{byPayload: true, nameless: true}, 1000, 1000),
		}},
	}
}

// deliveries delivers outcomes ten times each. Work counts deliveries, and faults restarts.
func (c *courier) deliveries(ctx context.Context, outcomes int) (result card.Result, err error) {
	const times, restarts = 10, 20
	rng := c.rng
	c.events, c.sent = outcomes/50, make(map[string]bool)
	said := make([]evidence.Observation, outcomes)
	mass := 0.0
	for i := range said {
		o := evidence.Observation{ID: fmt.Sprint("outcome ", i), Cell: cell, Reward: 1, Weight: float64(1+rng.IntN(64)) / 64, At: fixedNow}
		if i%4 == 3 {
			o.Weight = said[i-1].Weight // an honest one that says the same
		}
		if c.byPayload {
			sum := sha256.Sum256(fmt.Append(nil, o.Reward, o.Weight, o.At, i/4))
			o.ID = hex.EncodeToString(sum[:])
		}
		mass += o.Weight
		said[i] = o
	}
	log := make([]int, 0, outcomes*times)
	for i := range outcomes * times {
		log = append(log, i%outcomes)
	}
	rng.Shuffle(len(log), func(i, k int) { log[i], log[k] = log[k], log[i] })
	for part := range restarts {
		end := len(log) * (part + 1) / restarts
		if err := c.deliver(ctx, said, log[len(log)*part/restarts:end]); err != nil {
			return result, err
		}
		result.Faults++
	}
	result.Work = int64(len(log))
	st, handle, err := c.store(ctx, steady())
	if err != nil {
		return result, err
	}
	defer handle.Close() //nolint:errcheck // it is removed
	n, batches := 0, 0
	for part, err := range st.List(ctx, cell.Kind, cell.Scope) {
		if err != nil {
			return result, err
		}
		if part.Cell == batchCell {
			batches += int(part.Tally.N())
			continue
		}
		n += int(part.Tally.N())
		mass -= part.Tally.Mass
	}
	result.Values = map[string]float64{
		countBar: float64(max(n-outcomes, outcomes-n)), massBar: max(mass, -mass),
		eventBar: float64(max(batches-len(c.sent), len(c.sent)-batches)),
	}
	return result, nil
}

func steady() sqlstore.Config {
	return sqlstore.Config{Now: func() time.Time { return fixedNow }}
}

// deliver delivers part of a log in batches by four callers, and is cut off somewhere. Batches without an answer are delivered again by a
// store that is opened anew.
func (c *courier) deliver(ctx context.Context, said []evidence.Observation, log []int) error {
	var calls [][]store.Batch
	for len(log) > 0 {
		n := min(len(log), 1+c.rng.IntN(100))
		var b store.Batch
		for _, i := range log[:n] {
			b.Observations = append(b.Observations, said[i])
		}
		calls, log = append(calls, []store.Batch{b, c.event()}), log[n:]
	}
	stop := time.Duration(c.rng.IntN(30)) * time.Millisecond
	left, err := commitAll(ctx, c.place, calls, stop)
	for err == nil && len(left) > 0 {
		left, err = commitAll(ctx, c.place, left, untilDone)
	}
	return err
}

const untilDone = time.Hour

// commitAll opens the store, makes calls until it is cut off, and returns those without an answer.
func commitAll(ctx context.Context, p place, calls [][]store.Batch, stop time.Duration) (left [][]store.Batch, err error) {
	var handle *sql.DB
	st, handle, err := p.store(ctx, steady())
	if err != nil {
		return nil, err
	}
	defer handle.Close() //nolint:errcheck // it may be cut off
	within, cancel := context.WithTimeout(ctx, stop)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	next := make(chan []store.Batch, len(calls))
	for _, call := range calls {
		next <- call
	}
	close(next)
	for range 4 {
		all.Go(func() {
			for call := range next {
				if _, failure := st.Commit(within, call...); failure != nil {
					mu.Lock()
					left = append(left, call)
					if stop == untilDone {
						err = failure
					}
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if err == nil {
		err = ctx.Err()
	}
	return left, err
}
