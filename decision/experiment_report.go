package decision

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A Report says what an experiment has shown so far.
type Report struct {
	Variants []VariantReport // in the order of the configuration
	// Best is the variant that is most probably the best.
	Best string
	// Enough says that the rule of [Stop] is met, and Why how.
	Enough bool
	Why    StopReason
}

// A StopReason is the part of [Stop] by which there is enough.
type StopReason string

// By which there is enough.
const (
	NotEnough      StopReason = ""
	ByOdds         StopReason = "probability" // the best is the best as probably as it was asked for
	ByIndifference StopReason = "loss"        // the best may not be the best, but nothing that matters is lost by it
)

// A VariantReport says how one variant did.
type VariantReport struct {
	Name string

	// Since the experiment was made, by this process.
	Decisions int
	Errors    int           // of them, with an error
	Skipped   int           // in shadow: those that found no place, or took too long
	Paths     map[Path]int  // of the decisions, by path
	Agreed    int           // in shadow: those that were what the control said
	Cost      float64       // of a decision, on average
	Latency   time.Duration // of a decision, on average
	Latency95 time.Duration // what 95 of 100 decisions stay below, within 10 %

	// From the outcomes in the store.
	Outcomes float64       // how many, by weight
	Success  evidence.Beta // what is believed of its rate of success, from an even prior
	ProbBest float64       // the probability that it is the best of all
	// ProbBetter is the probability that it is better than the control, and Lift by how much: its rate less the control's,
	// with the interval in which that lies with a probability of 95 %. Of the control they are ½ and 0.
	ProbBetter        float64
	Lift              float64
	LiftLow, LiftHigh float64
	// Loss is how much better the best of the others is, on average over what is believed, counting nothing where this one
	// is the best: what choosing it is expected to cost.
	Loss float64
}

// Rate returns the share of decisions that took a path.
func (v VariantReport) Rate(p Path) float64 {
	if v.Decisions == 0 {
		return 0
	}
	return float64(v.Paths[p]) / float64(v.Decisions)
}

// Report reads the outcomes and says what they show. The probabilities are those that follow from an even prior on every
// rate of success; they stay true however often one looks, if the rates were drawn so. If the variants do the same, one of
// them seems better with a given probability sooner or later: that is what [Stop.Loss] is for.
func (e *Experiment) Report(ctx context.Context) (Report, error) {
	report := Report{Variants: make([]VariantReport, len(e.cfg.Variants))}
	beliefs := make([]evidence.Beta, len(e.cfg.Variants))
	cells := make([]evidence.Cell, len(e.cfg.Variants))
	for i, v := range e.cfg.Variants {
		cells[i] = e.cell(v.Name)
	}
	var all store.Snapshot
	if err := e.cfg.Store.Read(ctx, &all, cells, nil); err != nil {
		return Report{}, fmt.Errorf("decision: report: %w", err)
	}
	now := evidence.InstantOf(e.cfg.Now())
	for i, v := range e.cfg.Variants {
		n := 0
		for n < len(all.Parts) && all.Parts[n].Cell == cells[i] {
			n++
		}
		sums := evidence.Caps{}.Pool(all.Parts[:n], now)
		all.Parts = all.Parts[n:]
		beliefs[i] = sums.Posterior(evidence.Beta{Alpha: 1, Beta: 1})
		report.Variants[i] = e.counts[i].report()
		report.Variants[i].Name = v.Name
		report.Variants[i].Outcomes, report.Variants[i].Success = sums.Mass, beliefs[i]
	}
	report.compare(beliefs)
	report.stop(e.cfg.Stop)
	return report, nil
}

func (c *counts) report() VariantReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := VariantReport{
		Decisions: c.decisions, Errors: c.errors, Skipped: c.skipped, Agreed: c.agreed, Paths: maps.Clone(c.paths),
		Latency95: c.latencies.quantile(0.95),
	}
	if c.decisions > 0 {
		r.Cost = c.cost / float64(c.decisions)
		r.Latency = c.elapsed / time.Duration(c.decisions)
	}
	return r
}

// lifts is over how many draws lifts and losses are worked out: always the same ones, so that a report can be repeated.
const lifts = 10_000

// compare fills in what follows from the beliefs about all variants.
func (r *Report) compare(beliefs []evidence.Beta) {
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
	key := evidence.NewKey(lifts, uint64(len(beliefs)))
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
func (r *Report) stop(rule Stop) {
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
		r.Why = ByOdds
	case best.Loss <= rule.Loss:
		r.Why = ByIndifference
	}
	r.Enough = r.Why != NotEnough
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

// quantile returns the upper end of the class in which a quantile lies.
func (l *latencies) quantile(q float64) time.Duration {
	var total, below float64
	for _, n := range l {
		total += float64(n)
	}
	for class, n := range l {
		if below += float64(n); n > 0 && below >= q*total {
			return time.Duration(math.Exp2(float64(class+1) / 8))
		}
	}
	return 0
}
