// Package lives measures how far learned confidences are right, and how soon: it lets many
// heuristics live in simulated worlds whose truth is known. The defaults of packages learning and
// decision were chosen with it.
//
//	go run ./lab lives [-long] [-lives N] [-seed S]
//
// A life is a heuristic that fits 2,000 events. It begins with a confidence of 0.3. While its
// confidence is below 0.7 the model answers, mostly without having seen the heuristic, and is
// compared with it. From 0.7 on the heuristic answers. The people of a crowd react to the answers,
// or stay silent. A good heuristic is right for 90 of 100 events, a bad one for 40. A wrong answer
// of the model is the heuristic's wrong one in one of ten cases.
//
// A test holds the arithmetic of this program to what the packages do.
package lives

import (
	"context"

	"github.com/heedhq/heed/lab/internal/kit"
)

// Run runs the study: 40 lives for each figure, and 1,000 in the long form.
func Run(ctx context.Context, call *kit.Call) error {
	lives := call.Count("lives", 40, 1000, "the lives of each row and column")
	seed := call.Uint64("seed", 2026, "the seed of the worlds")
	if err := call.Parse(); err != nil {
		return err
	}
	s := study{lives: *lives, events: 2000, seed: *seed}
	starts, err := s.run(ctx)
	if err != nil {
		return err
	}
	return s.report(call.Out, starts)
}
