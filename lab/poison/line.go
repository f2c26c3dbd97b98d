package poison

import (
	"context"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
)

const (
	bestBar  = "points of the best arm's choices, which one loud account takes"
	worstBar = "points of the worst arm's choices, which three accounts add"
)

// Line is the short form of this study as a line of the scorecard.
func Line() card.Line {
	run := func(s setting, short, long int) card.Attempt {
		return func(ctx context.Context, c card.Settings) (r card.Result, err error) {
			runs := card.Pick(c, short, long)
			r.Values = make(map[string]float64)
			for _, items := range []int{1, 20} {
				loud := trial{liar: &liars[len(liars)-1], accounts: 1, items: items}
				_, best := points(ctx, s, loud, c.Seed, runs)
				three := trial{liar: &liars[0], accounts: 3, items: items}
				worst, _ := points(ctx, s, three, c.Seed, runs)
				r.Values[bestBar] = max(r.Values[bestBar], best)
				r.Values[worstBar] = max(r.Values[worstBar], worst)
				r.Work += int64(runs)
			}
			r.Faults = r.Work
			return r, nil
		}
	}
	return card.Line{
		Name:    "limits",
		Promise: "A few false accounts do not decide for forty people.",
		Attack: "One account reacts to all choices with lies, and three accounts praise the worst " +
			"arm 100 times each, with 1 and with 20 items. Each run is compared with the same people " +
			"without them.",
		Bars:  []card.Bar{{Name: bestBar, Most: 5}, {Name: worstBar, Most: 5}},
		Short: card.Form{Work: 80, Faults: 80, Budget: 3 * time.Minute},
		Long:  card.Form{Work: 200, Faults: 200, Budget: 30 * time.Minute},
		Run:   run(settings[0], 40, 200),
		Controls: []card.Control{{
			Name:   "outcomes without a source, so that no limit applies",
			Misses: []string{bestBar, worstBar}, Run: run(settings[2], 3, 3),
		}},
	}
}

// points returns how many points more of the choices the worst arm gets, and how many fewer the
// best, with false accounts than without.
func points(ctx context.Context, s setting, lies trial, seed uint64, runs int) (worst,
	best float64) {
	honest := lies
	honest.accounts = 0
	for run := range uint64(runs) { //nolint:gosec // it is small
		with, without := play(ctx, s, lies, seed+run), play(ctx, s, honest, seed+run)
		worst += 100 * (with.worst - without.worst) / float64(runs)
		best += 100 * (without.best - with.best) / float64(runs)
	}
	return worst, best
}
