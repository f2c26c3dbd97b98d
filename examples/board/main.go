// Board plays online routers against each other, on recorded answers and in worlds whose truth is known.
//
// For each request a policy chooses an arm, which stands for a model. It learns from the outcome of that arm alone: right or wrong, and what it
// cost. Outcomes come late, never, repeatedly, or from liars. The arms change, and processes restart with nothing but the state that they saved. All policies have
// the same requests and the same luck.
//
// Usage:
//
//	go run ./examples/board [-quick] [-data FILE] [-price P] [-runs N] [-requests N] [-seed S] [-world NAME] [-under NAME] [-json] [-svg FILE]
//
// The tables have the regret, in rewards: a right answer, and the price that was saved, over all that can be earned. They have the quality, the cost and
// the size of the saved state, too. After them comes a list of where heed is not the best.
//
// FILE is a CSV file with a header: the item, the question's id, and for each arm whether it was right, 0 or 1. The last arm costs 1, at the price P in right
// answers, and the others nothing. -svg draws the regret in the first world under the first trouble that is played: of heed and
// of the seven policies that did best there.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/heedhq/heed/examples/internal/show"
)

func main() { show.Main("board", command) }

func command(ctx context.Context, args []string, out io.Writer, progress func(done, of int)) error {
	flags := flag.NewFlagSet("board", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "1 run of 100 requests")
	data := flags.String("data", "", "the `file` with a table of recorded answers, which is one more world")
	price := flags.Float64("price", 0.10, "what the last arm of the table costs, in right answers")
	runs := flags.Int("runs", 20, "how many runs to average over")
	requests := flags.Int("requests", 2000, "how many requests a run has")
	seed := flags.Uint64("seed", 2026, "the seed of the runs")
	only := flags.String("world", "", "play in this world only")
	under := flags.String("under", "", "play under this trouble only")
	asJSON := flags.Bool("json", false, "write the result as JSON")
	svg := flags.String("svg", "", "draw the regret into this `file`")
	if err := show.Parse(flags, args); err != nil {
		return err
	}
	if *quick {
		*runs, *requests = 1, 100
	}
	if *runs < 1 || *requests < points || !(*price >= 0 && *price <= 100) {
		return fmt.Errorf("-runs %d must be at least 1, -requests %d at least %d, and -price %v in [0, 100]: %w", *runs, *requests, points, *price, show.ErrUsage)
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
		return fmt.Errorf("there is no world %q or no trouble %q: %w", *only, *under, show.ErrUsage)
	}
	cells, err := s.play(ctx, progress)
	if err != nil {
		return err
	}
	if *svg != "" {
		if err := s.picture(cells).WriteFile(*svg); err != nil {
			return err
		}
	}
	if *asJSON {
		return show.JSON(out, map[string]any{"requests": *requests, "runs": *runs, "seed": *seed, "cells": cells})
	}
	return s.report(out, cells)
}
