package databases

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
	"github.com/heedhq/heed/scorecard/internal/card"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const (
	countBar = "outcomes counted too often or not at all"
	massBar  = "off the sum of weights"
)

func onceLine(engine string) card.Line {
	bars := []card.Bar{card.AtMost(countBar, 0), card.AtMost(massBar, 0)}
	run := func(byPayload bool, short, long int) card.Attempt {
		return func(ctx context.Context, s card.Settings) (card.Result, error) {
			return at(ctx, engine, func(p place) (card.Result, error) { return deliveries(ctx, s, p, byPayload, card.Pick(s, short, long)) })
		}
	}
	return card.Line{
		Name:    "S6 " + engine,
		Promise: "An outcome counts exactly once, however often it is delivered, also across restarts.",
		Attack: "Each outcome is delivered ten times, shuffled, by four callers, while the store is cut off and opened again twenty times. Calls that were cut off are " +
			"made again. A quarter of the outcomes have the content of another one, and count for themselves.",
		Short:    card.Form{Bars: bars, Work: 40_000, Faults: 20, Budget: 4 * time.Minute},
		Long:     card.Form{Bars: bars, Work: 1_000_000, Faults: 20, Budget: 40 * time.Minute},
		Run:      run(false, 4000, 100_000),
		Controls: []card.Control{{Name: "an outcome is known by a hash of what it says", Misses: []string{countBar}, Run: run(true, 1000, 1000)}},
	}
}

// deliveries delivers outcomes ten times each. Work counts deliveries, and faults restarts.
func deliveries(ctx context.Context, s card.Settings, p place, byPayload bool, outcomes int) (result card.Result, err error) {
	const times, restarts = 10, 20
	rng := s.Rand(0)
	said := make([]evidence.Observation, outcomes)
	mass := 0.0
	for i := range said {
		o := evidence.Observation{ID: fmt.Sprint("outcome ", i), Cell: cell, Reward: 1, Weight: float64(1+rng.IntN(64)) / 64, At: fixedNow}
		if i%4 == 3 {
			o.Weight = said[i-1].Weight // an honest one that says the same
		}
		if byPayload {
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
		if err := deliver(ctx, p, rng, said, log[len(log)*part/restarts:end]); err != nil {
			return result, err
		}
		result.Faults++
	}
	result.Work = int64(len(log))
	st, handle, err := p.store(ctx, steady())
	if err != nil {
		return result, err
	}
	defer handle.Close() //nolint:errcheck // it is removed
	n := 0
	for part, err := range st.List(ctx, cell.Kind, cell.Scope) {
		if err != nil {
			return result, err
		}
		n += int(part.Tally.N())
		mass -= part.Tally.Mass
	}
	result.Values = map[string]float64{countBar: float64(max(n-outcomes, outcomes-n)), massBar: max(mass, -mass)}
	return result, nil
}

func steady() sqlstore.Config {
	return sqlstore.Config{Now: func() time.Time { return fixedNow }}
}

// deliver delivers part of a log in batches by four callers, and is cut off somewhere. Batches without an answer are delivered again by a
// store that is opened anew.
func deliver(ctx context.Context, p place, rng *rand.Rand, said []evidence.Observation, log []int) error {
	var batches []store.Batch
	for len(log) > 0 {
		n := min(len(log), 1+rng.IntN(100))
		var b store.Batch
		for _, i := range log[:n] {
			b.Observations = append(b.Observations, said[i])
		}
		batches, log = append(batches, b), log[n:]
	}
	stop := time.Duration(rng.IntN(30)) * time.Millisecond
	left, err := commitAll(ctx, p, batches, stop)
	for err == nil && len(left) > 0 {
		left, err = commitAll(ctx, p, left, untilDone)
	}
	return err
}

const untilDone = time.Hour

// commitAll opens the store, commits batches until it is cut off, and returns those without an answer.
func commitAll(ctx context.Context, p place, batches []store.Batch, stop time.Duration) (left []store.Batch, err error) {
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
	next := make(chan store.Batch, len(batches))
	for _, b := range batches {
		next <- b
	}
	close(next)
	for range 4 {
		all.Go(func() {
			for b := range next {
				if _, failure := st.Commit(within, b); failure != nil {
					mu.Lock()
					left = append(left, b)
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
