package board

import (
	"context"

	"github.com/heedhq/heed/lab/internal/kit"
)

// A study is what the policies came to in some worlds under some troubles.
type study struct {
	requests int
	runs     int
	seed     uint64
	worlds   []world
	troubles []trouble
	policies func(w *world) []policy
}

// A mean has half the width of its 95 % confidence interval.
type mean struct {
	Mean float64
	CI95 float64
}

func meanOf(runs []played, what func(p *played) float64) (m mean) {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = what(&runs[i])
	}
	m.Mean, m.CI95 = kit.Mean(values)
	return m
}

// A cell is what one policy came to in one world under one trouble.
type cell struct {
	World   string
	Trouble string
	Policy  string
	Heed    bool
	Learns  bool
	Regret  mean
	Quality mean // the rate of right answers
	Cost    mean // of a request
	State   mean // bytes at the end
	Half    mean // bytes at the half
	// Less is how much less regret it had than heed's default, in the same runs.
	Less mean

	runs []played
}

// regret is that of the whole run.
func regret(p *played) float64 { return p.regret[points] }

// play lets every policy play in the same runs. The cells are in the order of worlds, troubles and policies.
func (s *study) play(ctx context.Context, progress func(done, of int)) ([]*cell, error) {
	type job struct{ world, trouble, run, first int }
	var jobs []job
	var cells []*cell
	for i := range s.worlds {
		for j := range s.troubles {
			for run := range s.runs {
				jobs = append(jobs, job{i, j, run, len(cells)})
			}
			for _, p := range s.policies(&s.worlds[i]) {
				cells = append(cells, &cell{
					World: s.worlds[i].name, Trouble: s.troubles[j].name, Policy: p.name, Heed: p.kind == heeds, Learns: p.kind != yardstick, runs: make([]played, s.runs),
				})
			}
		}
	}
	err := kit.Parallel(ctx, len(jobs), progress, func(i int) error {
		j := jobs[i]
		w := &s.worlds[j.world]
		t := w.trial(&s.troubles[j.trouble], s.requests, j.run, s.seed) // which policies only read
		for k, p := range s.policies(w) {
			if err := ctx.Err(); err != nil {
				return err
			}
			result, err := t.play(p)
			if err != nil {
				return err
			}
			cells[j.first+k].runs[j.run] = result
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var first *cell
	for _, c := range cells {
		if first == nil || first.World != c.World || first.Trouble != c.Trouble {
			first = c
		}
		c.summarize(first)
	}
	return cells, nil
}

func (c *cell) summarize(first *cell) {
	c.Regret = meanOf(c.runs, regret)
	c.Quality = meanOf(c.runs, func(p *played) float64 { return p.quality })
	c.Cost = meanOf(c.runs, func(p *played) float64 { return p.cost })
	c.State = meanOf(c.runs, func(p *played) float64 { return p.state })
	c.Half = meanOf(c.runs, func(p *played) float64 { return p.half })
	less := make([]float64, len(c.runs))
	for i := range less {
		less[i] = regret(&first.runs[i]) - regret(&c.runs[i])
	}
	c.Less.Mean, c.Less.CI95 = kit.Mean(less)
}
