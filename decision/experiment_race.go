package decision

import (
	"context"
	"sync"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/winner"
)

// A race is what an experiment with an Error knows of its last look at the outcomes.
type race struct {
	mu     sync.Mutex
	seen   winner.Seen
	shares []float64
}

// shares returns with which probability each variant takes the next request: 1 for a winner. They
// are computed again when the outcomes have grown by a fiftieth, or some were replaced.
func (e *Experiment) shares(ctx context.Context) ([]float64, error) {
	sums, err := e.sums(ctx)
	if err != nil {
		return nil, err
	}
	records := raced(sums)
	seen := winner.Seen{Sums: records}
	for _, r := range records {
		seen.Outcomes += r.Mass
	}
	e.race.mu.Lock()
	defer e.race.mu.Unlock()
	if e.race.shares != nil && !e.race.seen.Due(seen) {
		return e.race.shares, nil
	}
	e.race.seen = seen
	if best := winner.Stop(records, e.cfg.Error, e.cfg.Indifference); best >= 0 {
		e.race.shares = make([]float64, len(records))
		e.race.shares[best] = 1
	} else {
		e.race.shares = winner.Shares(records)
	}
	return e.race.shares, nil
}

func raced(sums []evidence.Sums) (records []winner.Record) {
	for _, s := range sums {
		records = append(records, winner.Of(s))
	}
	return records
}

// race says which is the best, and whether that is sure enough.
func (r *ExperimentReport) race(rule *ExperimentConfig, sums []evidence.Sums) {
	records := raced(sums)
	best := winner.Stop(records, rule.Error, rule.Indifference)
	if r.Enough = best >= 0; r.Enough {
		r.Best, r.Why = r.Variants[best].Name, "winner"
		return
	}
	most := 0
	for i := range r.Variants {
		if r.Variants[i].ProbBest > r.Variants[most].ProbBest {
			most = i
		}
	}
	r.Best = r.Variants[most].Name
}
