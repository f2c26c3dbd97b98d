package decision

import (
	"math"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
)

// Factors compute the weight of a judgement from how it is known and who made it. The zero value
// leaves every weight as it is. Set [answer.Statement].Weight to what [Factors.Weight] returns. It
// is immutable.
type Factors struct {
	// Channels and Paths are factors in [0, 10], by the statement's channel and by the answer's path,
	// "heuristic" or "llm". The default is 1, and a factor out of the range counts as its nearer end.
	// Set 0 for a channel that is not to count.
	Channels, Paths map[string]float64
	// HalfLife is the time between answer and judgement after which the weight halves. 0: the time
	// does not matter. Set it if late judgements are less reliable.
	HalfLife time.Duration
	// Calibration makes a person's rare judgements weigh more than the common ones, because a
	// person who always complains, or never, reveals little by it. It is how many judgements a
	// person is assumed to have made before the first one, half of them positive, in [0, 1e6]; 10
	// is a good value. 0: all judgements weigh alike.
	Calibration float64
}

// Weight returns the weight of a judgement of an answer that took a path and was given at answered.
// positive and negative are how many other judgements of each sign the person made:
//
//	weight × Channels[channel] × Paths[path] × 2^(-age/HalfLife) × calibration
//
// weight is the statement's own weight, and age is the time since the answer, at least 0. If p is
// the person's share of positive judgements, (positive + Calibration/2) / (positive + negative +
// Calibration), the calibration is ½/p for a positive judgement, ½/(1-p) for a negative one, and
// 1 for value 0; it is at least ½ and at most 2.
//
// The weight is at most 10. If it is 0, the judgement does not count: leave it out, because a
// Weight of 0 in an [answer.Statement] means 1.
func (f *Factors) Weight(
	s answer.Statement, path string, answered time.Time, positive, negative int,
) float64 {
	weight := answers.Weight(&s)
	if x, ok := f.Channels[s.Channel]; ok {
		weight *= min(max(x, 0), 10)
	}
	if x, ok := f.Paths[path]; ok {
		weight *= min(max(x, 0), 10)
	}
	if f.HalfLife > 0 {
		weight *= math.Exp2(-max(s.At.Sub(answered), 0).Hours() / f.HalfLife.Hours())
	}
	if value := answers.Value(&s); f.Calibration > 0 && value != 0 {
		p := (float64(positive) + f.Calibration/2) / (float64(positive+negative) + f.Calibration)
		if value < 0 {
			p = 1 - p
		}
		weight *= min(max(0.5/p, 0.5), 2)
	}
	return min(weight, answers.MaxWeight)
}
