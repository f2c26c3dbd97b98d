package board

import (
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
)

const regretBar = "% of the regret by chance"

// Line is a part of the set routers as a line of the scorecard.
func Line() card.Line {
	const name = "heed"
	run := func(chosen string, short, long int) card.Attempt {
		return func(ctx context.Context, c card.Settings) (r card.Result, _ error) {
			s := study{requests: 1000, runs: card.Pick(c, short, long), seed: c.Seed}
			s.worlds = slices.DeleteFunc(routerWorlds(), func(w world) bool {
				return w.name != "no context" && w.name != "by item"
			})
			s.troubles = troubles()[:1]
			s.policies = func(w *world) []policy {
				return append([]policy{heeding(name, option{})}, yardsticks(w)...)
			}
			r.Values = make(map[string]float64)
			for _, block := range blocks(s.play(ctx), sameTrouble) {
				at := func(name string) kit.Estimate {
					i := slices.IndexFunc(block, func(c *cell) bool { return c.policy == name })
					return block[i].regret
				}
				part := 100 * at(chosen).Mean / at("by chance").Mean
				r.Note("%s: %.1f %% of the regret by chance", block[0].world, part)
				r.Values[regretBar] = max(r.Values[regretBar], part)
				r.Work += int64(s.requests * s.runs)
			}
			return r, nil
		}
	}
	return card.Line{
		Name:    "choosing",
		Promise: "Heed finds the better arms soon.",
		Attack: "Four arms with unknown rates, without items and with 40 items, which have rates of " +
			"their own. The regret of 1,000 choices is compared with the regret by chance.",
		Bars:  []card.Bar{{Name: regretBar, Most: 50}},
		Short: card.Form{Work: 10_000, Budget: 2 * time.Minute},
		Long:  card.Form{Work: 100_000, Budget: 20 * time.Minute},
		Run:   run(name, 5, 50),
		Controls: []card.Control{{Name: "chooses by chance", Run: run("by chance", 1, 1)},
			{Name: "always takes the first arm", Run: run("always arm 1", 5, 5)}},
	}
}
