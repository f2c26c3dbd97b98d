// Poison measures what false accounts do to a learner: how often it chooses the worst arm after they have praised it, with and without limits
// on sources, and what the limits cost where nobody lies.
//
// Usage:
//
//	go run ./examples/poison [-quick] [-runs N] [-seed S] [-json]
//
// Honest accounts try what the learner chooses and say how it went. Then false accounts say of the worst arm that it went well. They choose
// the arm by themselves, so that nothing but the limits stands in their way.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/heedhq/heed/examples/internal/show"
)

func main() { show.Main("poison", command) }

func command(ctx context.Context, args []string, out io.Writer, progress func(done, of int)) error {
	flags := flag.NewFlagSet("poison", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "200 honest outcomes alone, and not 1,000 as well")
	runs := flags.Int("runs", 100, "how often each is done")
	seed := flags.Uint64("seed", 2026, "the seed of the worlds and choices")
	asJSON := flags.Bool("json", false, "write the result as JSON")
	if err := show.Parse(flags, args); err != nil {
		return err
	}
	honest := []int{200, 1000}
	if *quick {
		honest = honest[:1]
	}
	if *runs < 1 {
		return fmt.Errorf("-runs must be positive: %w", show.ErrUsage)
	}
	var all []map[string]any
	for i, rates := range worlds {
		s := study{runs: *runs, seed: *seed, honest: honest, rates: rates, settings: settings(), attacks: attacks()}
		results, err := s.play(ctx, func(done, of int) { progress(i*of+done, len(worlds)*of) })
		if err != nil {
			return err
		}
		if *asJSON {
			all = append(all, map[string]any{"rates": rates, "runs": *runs, "results": results})
		} else if err := report(out, rates, *runs, results); err != nil {
			return err
		}
	}
	if *asJSON {
		return show.JSON(out, map[string]any{"worlds": all})
	}
	return nil
}
