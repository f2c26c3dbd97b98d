package decision

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// An ExperimentReport says what an experiment has shown so far.
type ExperimentReport struct {
	Variants []VariantReport // in the order of the configuration
	Best     string          // the variant that is most probably the best
	// Enough says that there is enough to decide by: see [ExperimentConfig]. Why is then
	// "probability", or "loss" if a better variant is possible but would gain too little to matter,
	// or "winner" with an Error.
	Enough bool
	Why    string
}

// A VariantReport says how one variant did.
type VariantReport struct {
	Name string

	// Since the experiment was made, in this process.
	Decisions int
	Errors    int           // decisions with an error
	Skipped   int           // decisions in shadow that found no place, or took too long
	Paths     map[Path]int  // decisions by path
	Agreed    int           // decisions in shadow with the control's answer
	Cost      float64       // of a decision, on average
	Latency   time.Duration // of a decision, on average
	Latency95 time.Duration // 95 of 100 decisions are faster, within 10 %

	// From the outcomes in the store.
	Outcomes float64       // how many, by weight
	Success  evidence.Beta // the belief about its rate of success, from an even prior
	ProbBest float64       // the probability that it is the best of all
	// ProbBetter is the probability that it is better than the control. Lift is its rate less the
	// control's, with the interval that has 95 % of the probability. For the control they are ½ and
	// 0.
	ProbBetter        float64
	Lift              float64
	LiftLow, LiftHigh float64
	// Loss is the success that choosing it costs, on average over the belief: how much better the
	// best variant is.
	Loss float64
}

// Report reads the outcomes and says what they show. Its probabilities start from an even prior on
// each rate. They hold however often one looks, as far as that prior is right. But of two equally
// good variants, one will sooner or later look better, at any probability: see
// [ExperimentConfig].Loss.
func (e *Experiment) Report(ctx context.Context) (ExperimentReport, error) {
	report := ExperimentReport{Variants: make([]VariantReport, len(e.cfg.Variants))}
	beliefs := make([]evidence.Beta, len(e.cfg.Variants))
	all, err := e.sums(ctx)
	if err != nil {
		return ExperimentReport{}, fmt.Errorf("decision: report: %w", err)
	}
	for i, v := range e.cfg.Variants {
		beliefs[i] = all[i].Posterior(evidence.Beta{Alpha: 1, Beta: 1})
		report.Variants[i] = e.counts[i].read()
		report.Variants[i].Name = v.Name
		report.Variants[i].Outcomes, report.Variants[i].Success = all[i].Mass, beliefs[i]
	}
	report.compare(beliefs)
	if e.cfg.Error > 0 {
		report.race(&e.cfg, all)
	} else {
		report.stop(&e.cfg)
	}
	return report, nil
}

// sums reads the outcomes of each variant.
func (e *Experiment) sums(ctx context.Context) ([]evidence.Sums, error) {
	cells := make([]evidence.Cell, 0, 2*len(e.cfg.Variants))
	for _, v := range e.cfg.Variants {
		cell := e.cell(v.Name)
		cells = append(cells, cell)
		cell.Name = replaced
		cells = append(cells, cell)
	}
	var read store.Snapshot
	if err := e.cfg.Store.Read(ctx, &read, cells, nil); err != nil {
		return nil, err
	}
	now := evidence.InstantOf(e.cfg.Now())
	of := func(c evidence.Cell) []evidence.Part {
		n := 0
		for n < len(read.Parts) && read.Parts[n].Cell == c {
			n++
		}
		parts := read.Parts[:n]
		read.Parts = read.Parts[n:]
		return parts
	}
	sums := make([]evidence.Sums, len(e.cfg.Variants))
	for i := range sums {
		sums[i] = standing(of(cells[2*i]), of(cells[2*i+1]), now)
	}
	return sums, nil
}

// lifts is the number of draws for lifts and losses. They are always the same, so that a report can
// be repeated.
const lifts = 10_000

// compare fills in what follows from the beliefs about all variants.
func (r *ExperimentReport) compare(beliefs []evidence.Beta) {
	best := evidence.ProbBest(beliefs)
	draws := drawAll(beliefs)
	differences := make([]float64, lifts)
	for i := range r.Variants {
		v := &r.Variants[i]
		v.ProbBest, v.ProbBetter = best[i], 0.5
		for n := range lifts {
			most := draws[i][n]
			for j := range draws {
				most = max(most, draws[j][n])
			}
			v.Loss += (most - draws[i][n]) / lifts
			differences[n] = draws[i][n] - draws[0][n]
		}
		if i > 0 {
			slices.Sort(differences)
			v.ProbBetter = evidence.ProbBest([]evidence.Beta{beliefs[i], beliefs[0]})[0]
			v.Lift = beliefs[i].Mean() - beliefs[0].Mean()
			v.LiftLow, v.LiftHigh = differences[lifts/40], differences[lifts-1-lifts/40]
		}
	}
}

// drawAll draws from each belief, with a generator for each.
func drawAll(beliefs []evidence.Beta) [][]float64 {
	key := evidence.Key{A: lifts, B: uint64(len(beliefs))}
	draws := make([][]float64, len(beliefs))
	for i, b := range beliefs {
		sampler, rng := b.Sampler(), key.Rand(uint64(i))
		draws[i] = make([]float64, lifts)
		for n := range draws[i] {
			draws[i][n] = sampler.Draw(&rng)
		}
	}
	return draws
}

// stop says which is the best, and whether there is enough to say so.
func (r *ExperimentReport) stop(rule *ExperimentConfig) {
	best := &r.Variants[0]
	enough := true
	for i := range r.Variants {
		v := &r.Variants[i]
		if v.ProbBest > best.ProbBest {
			best = v
		}
		enough = enough && v.Outcomes >= rule.MinOutcomes
	}
	r.Best = best.Name
	switch {
	case !enough:
	case best.ProbBest >= rule.Probability:
		r.Why = "probability"
	case best.Loss <= rule.Loss:
		r.Why = "loss"
	}
	r.Enough = r.Why != ""
}

// latencies counts durations in classes that are each an eighth of an octave wide.
type latencies [8 * 64]uint32

func (l *latencies) add(d time.Duration) {
	class := 0
	if d > 1 {
		class = int(8 * math.Log2(float64(d)))
	}
	l[min(class, len(l)-1)]++
}

// quantile returns the upper end of the class of the duration that is the nth from below.
func (l *latencies) quantile(nth float64) time.Duration {
	var below float64
	for class, n := range l {
		if below += float64(n); n > 0 && below >= nth {
			return time.Duration(math.Exp2(float64(class+1) / 8))
		}
	}
	return 0
}
