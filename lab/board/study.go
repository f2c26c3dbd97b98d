package board

import (
	"context"

	"github.com/heedhq/heed/lab/internal/kit"
)

// A study is what policies come to in some worlds under some troubles.
type study struct {
	requests, runs int
	seed           uint64
	ranks          bool // heed's default is ranked among the others
	worlds         []world
	troubles       []trouble
	policies       func(w *world) []policy
}

// A cell is what one policy came to in one world under one trouble.
type cell struct {
	world, trouble, policy string
	kind                   kind
	regret                 kit.Estimate
	quality                kit.Estimate // the rate of right answers
	cost                   kit.Estimate // of a request
	half, state            kit.Estimate // bytes at the half, and at the end
	// the regret, less the first policy's in the same runs, and over it
	more, ratio kit.Estimate

	runs []played
}

// play lets every policy play in the same runs. The cells are in the order of worlds, troubles and
// policies.
func (s *study) play(ctx context.Context) []*cell {
	type job struct{ world, trouble, run, first int }
	var jobs []job
	var cells []*cell
	for i, w := range s.worlds {
		for j, t := range s.troubles {
			for run := range s.runs {
				jobs = append(jobs, job{i, j, run, len(cells)})
			}
			for _, p := range s.policies(&s.worlds[i]) {
				c := &cell{world: w.name, trouble: t.name, policy: p.name, kind: p.kind}
				c.runs = make([]played, s.runs)
				cells = append(cells, c)
			}
		}
	}
	kit.Parallel(ctx, len(jobs), func(i int) {
		j := jobs[i]
		w := &s.worlds[j.world]
		t := w.trial(&s.troubles[j.trouble], s.requests, j.run, s.seed) // which policies only read
		for k, p := range s.policies(w) {
			kit.Check(ctx.Err())
			cells[j.first+k].runs[j.run] = t.play(p)
		}
	})
	for _, block := range blocks(cells, sameTrouble) {
		for _, c := range block {
			c.summarize(block[0])
		}
	}
	return cells
}

// summarize compares runs in pairs. The interval of the ratio is the delta method's.
func (c *cell) summarize(first *cell) {
	c.regret = kit.MeanOf(c.runs, func(p *played) float64 { return p.regret })
	c.quality = kit.MeanOf(c.runs, func(p *played) float64 { return p.quality })
	c.cost = kit.MeanOf(c.runs, func(p *played) float64 { return p.cost })
	c.state = kit.MeanOf(c.runs, func(p *played) float64 { return p.state })
	c.half = kit.MeanOf(c.runs, func(p *played) float64 { return p.half })
	more, rest := make([]float64, len(c.runs)), make([]float64, len(c.runs))
	ratio := c.regret.Mean / first.regret.Mean
	for i := range c.runs {
		own, other := c.runs[i].regret, first.runs[i].regret
		more[i], rest[i] = own-other, (own-ratio*other)/first.regret.Mean
	}
	c.more, c.ratio = kit.Mean(more), kit.Estimate{Mean: ratio, Half: kit.Mean(rest).Half}
}
