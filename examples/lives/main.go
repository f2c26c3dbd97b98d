// Lives measures how far learned confidences are right, and how soon: it lets many heuristics live in simulated worlds whose truth is
// known. The defaults of packages learning and decision were chosen with it.
//
// Usage:
//
//	go run ./examples/lives [-quick] [-all] [-lives N] [-seed S] [-json]
//
// A life is a heuristic that fits 2,000 events. It begins with a confidence of 0.3. While its confidence is below 0.7 the model answers,
// mostly without having seen the heuristic, and is compared with it. From 0.7 on the heuristic answers. The people of a crowd say
// something of the answers, or nothing. A good heuristic is right for 90 of 100 events, a bad one for 40. A wrong answer of the model is
// the heuristic's wrong one in one of ten cases.
//
// The first table shows how heuristics start with all at its default. The second table has other weights of agreement. The third
// one changes one setting at a time, and -all combines them. A test holds the
// arithmetic of this program to what the packages do.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/heedhq/heed/examples/internal/show"
)

func main() { show.Main("lives", command) }

func command(ctx context.Context, args []string, out io.Writer, progress func(done, of int)) error {
	flags := flag.NewFlagSet("lives", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "fewer lives, in a few seconds")
	all := flags.Bool("all", false, "combine all settings")
	lives := flags.Int("lives", 1000, "the lives of each row and column")
	seed := flags.Uint64("seed", 2026, "the seed of the worlds")
	asJSON := flags.Bool("json", false, "write the result as JSON")
	if err := show.Parse(flags, args); err != nil {
		return err
	}
	if *lives < 1 {
		return fmt.Errorf("-lives is %d, must be above 0: %w", *lives, show.ErrUsage)
	}
	if *quick {
		*lives = min(*lives, 40)
	}
	s := study{lives: *lives, events: 2000, seed: *seed}
	if err := s.run(ctx, *all, progress); err != nil {
		return err
	}
	if *asJSON {
		return show.JSON(out, map[string]any{"starts": s.Starts, "weights": s.Weights, "settings": s.Settings})
	}
	return s.report(out)
}
