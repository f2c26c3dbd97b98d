// Package poison measures what false accounts do to a learner: how often it chooses the worst arm
// after they have praised it, with and without limits on sources, and what the limits cost if all
// accounts are honest.
//
//	go run ./lab poison [-long] [-runs N] [-seed S]
//
// Honest accounts try what the learner chooses and say how it went. Then false accounts say of the
// worst arm that it went well. They choose the arm by themselves, so that nothing but the limits
// stands in their way.
package poison

import (
	"context"

	"github.com/heedhq/heed/lab/internal/kit"
)

// Run runs the study: 10 runs of 200 honest outcomes, and in the long form 100 of 1,000.
func Run(ctx context.Context, call *kit.Call) error {
	runs := call.Count("runs", 10, 100, "how often each is done")
	seed := call.Uint64("seed", 2026, "the seed of the worlds and choices")
	if err := call.Parse(); err != nil {
		return err
	}
	honest := []int{200, 1000}[:call.Pick(1, 2)]
	for i, rates := range worlds {
		s := study{runs: *runs, seed: *seed, honest: honest, rates: rates, settings: settings(),
			attacks: attacks()}
		results, err := s.play(ctx, func(done, of int) { call.Progress(i*of+done, len(worlds)*of) })
		if err != nil {
			return err
		}
		if err := report(call.Out, rates, *runs, results); err != nil {
			return err
		}
	}
	return nil
}
