package routing

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/strategy"
)

// prices are those of the last arm, in right answers, for which the curve is drawn.
var prices = []float64{0, 0.02, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.40, 0.60}

// curveRuns bounds the runs that each point of the curve is the mean of.
const curveRuns = 4

// A point says what heed came to at a price, over the whole stream with all that it takes to learn.
type point struct {
	Price   float64
	Share   float64 // of the tasks that the last arm got
	Quality float64 // the share of right answers
	// Recovered is the part of the gap in quality between the best of the other arms and the last one that was won. Chosen by chance it
	// would be the Share.
	Recovered float64
}

// drawCurve plays heed's default pooling at each price.
func (t *table) drawCurve(ctx context.Context, runs int, seed uint64, progress func(done, of int)) ([]point, error) {
	runs = min(runs, curveRuns)
	all := make([]point, len(prices)*runs)
	err := kit.Parallel(ctx, len(all), progress, func(job int) error {
		p := &all[job]
		p.Price = prices[job/runs]
		r := replay{t, p.Price, seed, job % runs}
		_, err := r.learn(ctx, strategy.TwoLevel{}, r.subject, func(task, arm int) float64 {
			n := float64(len(t.tasks))
			if arm == len(t.arms)-1 {
				p.Share += 1 / n
			}
			if t.tasks[task].right[arm] {
				p.Quality += 1 / n
			}
			return t.reward(task, arm, p.Price)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	other, last := t.gap()
	points := make([]point, len(prices))
	for i := range points {
		mean := point{Price: prices[i]}
		for _, p := range all[i*runs : (i+1)*runs] {
			mean.Share += p.Share / float64(runs)
			mean.Quality += p.Quality / float64(runs)
		}
		if last != other {
			mean.Recovered = (mean.Quality - other) / (last - other)
		}
		points[i] = mean
	}
	return points, nil
}

// gap returns the quality of the best of the other arms, and of the last.
func (t *table) gap() (other, last float64) {
	for arm := range t.arms {
		quality := 0.
		for _, task := range t.tasks {
			if task.right[arm] {
				quality += 1 / float64(len(t.tasks))
			}
		}
		if last = quality; arm < len(t.arms)-1 {
			other = max(other, quality)
		}
	}
	return other, last
}

func (s *study) reportCurve(b *strings.Builder) error {
	last := s.table.arms[len(s.table.arms)-1]
	other, top := s.table.gap()
	fmt.Fprintf(b, "\nQuality against the share of calls to %s, where heed learns at each price (mean of %d runs):\n\n", last, min(s.Runs, curveRuns))
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "price\tcalls to it\tright\tof the gap\t\t\n")
	for _, p := range s.Curve {
		bar := strings.Repeat("█", int(min(max(p.Recovered, 0), 1.2)*30+0.5))
		fmt.Fprintf(table, "%.2f\t%.1f %%\t%.2f %%\t%.1f %%\t\t%-36s\t\n", p.Price, 100*p.Share, 100*p.Quality, 100*p.Recovered, bar)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b, "\nThe gap is that between the best of the other arms (%.2f %%) and %s (%.2f %%). Chosen by chance, the share of\nthe gap would be that of the calls.\n", 100*other, last, 100*top)
	return nil
}
