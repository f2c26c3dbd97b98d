package evidence

import (
	"cmp"
	"math"
	"time"

	"github.com/heedhq/heed/internal/valid"
)

// A Tally is a sum of evidence that fades with a half-life. Adding and taking away cost the same
// whatever the history. The order of arrival does not matter: a late observation counts with the
// age it has. The zero Tally is empty and never fades.
//
// The four sums are stated at a landmark: an observation from then counts its weight, and one from
// a half-life later counts twice that. Landmarks lie on a grid of whole half-lives, so that moving
// one scales the sums exactly, by a power of two.
//
// A Tally is a plain value. The methods that change it must not be used concurrently.
type Tally struct {
	// after which evidence counts half, in whole microseconds; 0: evidence never fades
	HalfLife time.Duration
	Landmark Instant // the moment at which the sums are stated; 0 without fading

	Mass          float64 // Σ w·f of weights w, each with its fade f times its share
	Squares       float64 // Σ w²·f
	Reward        float64 // Σ w·r·f of rewards r
	RewardSquares float64 // Σ w·r²·f

	// How many observations of some weight there were, and when the last of them happened. These do
	// not fade.
	Positive, Negative, Neutral Count // by a reward above, below and at ½
}

// A Count is a number of observations, with the moment at which the last of them happened.
type Count struct {
	N    uint64
	Last Instant
}

// N returns the number of observations in the tally, except observations of weight 0.
func (t Tally) N() uint64 { return t.Positive.N + t.Negative.N + t.Neutral.N }

// Last returns when the last of them happened.
func (t Tally) Last() Instant { return max(t.Positive.Last, t.Negative.Last, t.Neutral.Last) }

// Add adds an observation: its weight, its share of an event (0 means 1), its reward in [0, 1] and
// when it was. A weight of 0 leaves the sums unchanged. The caller has validated the numbers.
func (t *Tally) Add(weight, share, reward float64, at Instant) {
	if weight == 0 {
		return
	}
	t.advance(at)
	t.sum(weight*cmp.Or(share, 1)*fade(at-t.Landmark, t.HalfLife), weight, reward)
	count := t.count(reward)
	count.N++
	count.Last = max(count.Last, at)
}

// Take takes an observation away again. If it was the latest of its sign, the caller sets
// [Count].Last to the one before. If the tally then has no observation of that sign, Take clears
// Last.
func (t *Tally) Take(weight, share, reward float64, at Instant) {
	if weight == 0 {
		return
	}
	t.sum(-weight*cmp.Or(share, 1)*fade(at-t.Landmark, t.HalfLife), weight, reward)
	count := t.count(reward)
	if count.N--; count.N == 0 {
		count.Last = 0
	}
	if t.N() == 0 {
		*t = Tally{HalfLife: t.HalfLife}
	}
}

func (t *Tally) sum(faded, weight, reward float64) {
	t.Mass += faded
	t.Squares += faded * weight
	t.Reward += faded * reward
	t.RewardSquares += faded * reward * reward
}

func (t *Tally) count(reward float64) *Count {
	switch {
	case reward > 0.5:
		return &t.Positive
	case reward < 0.5:
		return &t.Negative
	default:
		return &t.Neutral
	}
}

// Merge adds another tally of the same half-life. The result is the same as if its observations had
// been added here. An empty tally becomes the other.
func (t *Tally) Merge(o Tally) {
	if o.N() == 0 {
		return
	}
	if t.N() == 0 {
		*t = o
		return
	}
	t.raise(o.Landmark)
	o.raise(t.Landmark)
	t.Mass += o.Mass
	t.Squares += o.Squares
	t.Reward += o.Reward
	t.RewardSquares += o.RewardSquares
	t.Positive.merge(o.Positive)
	t.Negative.merge(o.Negative)
	t.Neutral.merge(o.Neutral)
}

func (c *Count) merge(o Count) {
	c.N += o.N
	c.Last = max(c.Last, o.Last)
}

// At reads the tally at a moment. A moment before the last observation reads as that one, so that a
// clock that goes back never makes evidence count for more.
func (t *Tally) At(now Instant) Sums {
	factor := fade(t.Landmark-max(now, t.Last()), t.HalfLife)
	return Sums{Mass: t.Mass * factor, Squares: t.Squares * factor, Reward: t.Reward * factor,
		RewardSquares: t.RewardSquares * factor}
}

// advance moves the landmark to the last one before at, unless it is there already or beyond.
func (t *Tally) advance(at Instant) {
	if t.HalfLife == 0 {
		return
	}
	step := valid.LandmarkStep * t.HalfLife.Microseconds()
	landmark := Instant(floorDiv(int64(at), step) * step)
	if t.N() == 0 {
		t.Landmark = landmark
	}
	t.raise(landmark)
}

// raise states the sums at a later landmark; at an earlier one they stay as they are.
func (t *Tally) raise(landmark Instant) {
	if landmark <= t.Landmark {
		return
	}
	factor := fade(t.Landmark-landmark, t.HalfLife)
	t.Mass *= factor
	t.Squares *= factor
	t.Reward *= factor
	t.RewardSquares *= factor
	t.Landmark = landmark
}

// fade returns 2^(later/halfLife), the factor for evidence that is later microseconds after the
// landmark. The whole half-lives are an exact power of two.
func fade(later Instant, halfLife time.Duration) float64 {
	if halfLife == 0 {
		return 1
	}
	half := halfLife.Microseconds()
	whole := floorDiv(int64(later), half)
	part := math.Exp2(float64(int64(later)-whole*half) / float64(half))
	if whole == 0 {
		return part
	}
	return math.Ldexp(part, int(max(whole, -2000)))
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// A Part is the tally of one channel and one source of a cell, or of all of them if the cell's
// policy keeps origins together.
type Part struct {
	Cell    Cell
	Channel string
	Source  string
	Tally   Tally
}

// Sums is a tally read at a moment: plain numbers, which add up.
type Sums struct {
	Mass          float64 // Σ w·f
	Squares       float64 // Σ w²·f
	Reward        float64 // Σ w·r·f
	RewardSquares float64 // Σ w·r²·f
	// Limited is Σ w·f·(1-l) of observations that count by a part l, because [Trust] limits their
	// source. All other sums are of what counts: l is in f. 0 without a limit.
	Limited float64
}

// Plus returns the sums of both.
func (s Sums) Plus(o Sums) Sums {
	return Sums{s.Mass + o.Mass, s.Squares + o.Squares, s.Reward + o.Reward,
		s.RewardSquares + o.RewardSquares, s.Limited + o.Limited}
}

// Kept returns for how much each observation counts in the mean, in (0, 1]. The mean is as precise
// as the evidence of Mass/Kept() observations that count whole (Kish 1965).
func (s Sums) Kept() float64 {
	if s.Mass <= 0 || s.Limited <= 0 {
		return 1
	}
	return max(1-s.Limited/s.Mass, leastKept)
}

const leastKept = 1e-9

// Mean returns the mean reward by weight, in [0, 1], and ½ where there is no evidence.
func (s Sums) Mean() float64 {
	if s.Mass <= 0 {
		return 0.5
	}
	return min(max(s.Reward/s.Mass, 0), 1)
}

// Effective returns the number of equal observations that are as much evidence: (Σwf)²/Σw²f (Kish
// 1965). Equal weights of any size count as one each. It is at most the mass divided by
// leastWeight, the least weight that the caller accepts, so that many tiny weights are not many
// observations.
func (s Sums) Effective(leastWeight float64) float64 {
	if s.Mass <= 0 || s.Squares <= 0 {
		return 0
	}
	return min(s.Mass/s.Squares*s.Mass, s.Mass/leastWeight)
}

// Posterior returns the prior plus the sums, unscaled: Alpha plus Reward, Beta plus Mass less
// Reward.
func (s Sums) Posterior(prior Beta) Beta {
	return Beta{prior.Alpha + max(s.Reward, 0), prior.Beta + max(s.Mass-s.Reward, 0)}
}
