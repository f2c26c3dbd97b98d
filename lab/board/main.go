// Package board plays online routers against each other, on recorded answers and in worlds whose
// truth is known.
//
// For each request a policy chooses an arm, which stands for a model. It learns from the outcome of that arm alone: right or wrong, and what it
// cost. Outcomes come late, never, repeatedly, or from liars. The arms change, and processes restart with nothing but the state that they saved. All policies have
// the same requests and the same luck.
//
//	go run ./lab board [-long] [-data FILE] [-price P] [-runs N] [-requests N] [-seed S]
//	                   [-world NAME] [-under NAME] [-svg FILE]
//
// The tables have the regret, in rewards: a right answer, and the price that was saved, over all that can be earned. They have the quality, the cost and
// the size of the saved state, too. After them comes a list of where heed is not the best.
//
// FILE is a CSV file with a header: the item, the question's id, and for each arm whether it was right, 0 or 1. The last arm costs 1, at the price P in right
// answers, and the others nothing. -svg draws the regret in the first world under the first trouble that is played: of heed and
// of the seven policies that did best there.
package board

import (
	"context"

	"github.com/heedhq/heed/lab/internal/kit"
)

// Run plays: 1 run of 100 requests, and 20 of 2,000 in the long form.
func Run(ctx context.Context, call *kit.Call) error {
	data := call.String("data", "",
		"the `file` with a table of recorded answers, which is one more world")
	price := call.Float64("price", 0.10, "what the last arm of the table costs, in right answers")
	runs := call.Count("runs", 1, 20, "how many runs to average over")
	requests := call.Count("requests", 100, 2000, "how many requests a run has")
	seed := call.Uint64("seed", 2026, "the seed of the runs")
	only := call.String("world", "", "play in this world only")
	under := call.String("under", "", "play under this trouble only")
	svg := call.String("svg", "", "draw the regret into this `file`")
	if err := call.Parse(); err != nil {
		return err
	}
	if *requests < points || !(*price >= 0 && *price <= 100) {
		return call.Usage("-requests %d must be at least %d, and -price %v in [0, 100]", *requests,
			points, *price)
	}
	s := study{requests: *requests, runs: *runs, seed: *seed, policies: policies}
	all := worlds()
	if *data != "" {
		recorded, err := readTable(*data, *price)
		if err != nil {
			return err
		}
		all = append(all, recorded)
	}
	for _, w := range all {
		if *only == "" || w.name == *only {
			s.worlds = append(s.worlds, w)
		}
	}
	for _, t := range troubles() {
		if *under == "" || t.name == *under {
			s.troubles = append(s.troubles, t)
		}
	}
	if len(s.worlds) == 0 || len(s.troubles) == 0 {
		return call.Usage("there is no world %q or no trouble %q", *only, *under)
	}
	cells, err := s.play(ctx, call.Progress)
	if err != nil {
		return err
	}
	if *svg != "" {
		if err := s.picture(cells).WriteFile(*svg); err != nil {
			return err
		}
	}
	return s.report(call.Out, cells)
}
