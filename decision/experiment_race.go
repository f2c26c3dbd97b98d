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
	mass   float64
	shares []float64
}

// shares returns with which probability each variant takes the next request: 1 for a winner. They are made anew when the outcomes
// have grown by a fiftieth.
func (e *Experiment) shares(ctx context.Context) ([]float64, error) {
	sums, err := e.sums(ctx)
	if err != nil {
		return nil, err
	}
	records, mass := raced(sums)
	e.race.mu.Lock()
	defer e.race.mu.Unlock()
	if e.race.shares != nil && !winner.Due(e.race.mass, mass) {
		return e.race.shares, nil
	}
	e.race.mass = mass
	if best := winner.Stop(records, e.cfg.Error, e.cfg.Indifference); best >= 0 {
		e.race.shares = make([]float64, len(records))
		e.race.shares[best] = 1
	} else {
		e.race.shares = winner.Shares(records)
	}
	return e.race.shares, nil
}

func raced(sums []evidence.Sums) (records []winner.Record, mass float64) {
	for _, s := range sums {
		records = append(records, winner.Of(s))
		mass += s.Mass
	}
	return records, mass
}

// race says which is the best, and whether that is sure enough.
func (r *ExperimentReport) race(rule *ExperimentConfig, sums []evidence.Sums) {
	records, _ := raced(sums)
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
