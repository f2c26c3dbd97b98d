package evidence

import (
	"math"
	"slices"

	"github.com/heedhq/heed/internal/valid"
)

// A Part is the tally of one channel and one source of a cell, or of all of them if the cell's policy keeps origins together.
type Part struct {
	Cell    Cell
	Channel string
	Source  string
	Tally   Tally
}

// Caps limit how much of a belief one source, or silence, can make up. They apply when a cell is read and never change what is stored. So
// they can be changed at any time, and the order of arrival does not matter. They need a policy that keeps origins apart: see
// [Policy]. The zero Caps limit nothing.
//
// A part over its limit is scaled down to the limit, as if it had faded. Sources are limited first, then silence.
//
// Limited sources bound every coalition. Before silence is limited, k sources move the mean of a cell by at most
//
//	f(k) = max(k·SourceShare, k·SourceMass/(k·SourceMass + h))
//
// whatever they send, where h is the mass of all other sources, each limited to SourceMass. With a SourceMass of 1 and a SourceShare of 0.05,
// three sources beside twenty others with one full observation each move it by at most 0.15.
type Caps struct {
	// SourceMass is the mass that each source may have, in [0, MaxWeight]. Observations without a source are one source. 0: no limit.
	SourceMass float64
	// SourceShare lets a source have more than SourceMass where there are many sources: up to this share, in [0, 1), of what is counted of all
	// sources together, itself included. It needs a SourceMass. 0: SourceMass is the limit.
	SourceShare float64
	// Silence names the channels of silence: "implicit_timeout". Their positive evidence counts for at most SilenceMass plus the positive
	// evidence of all other channels. So a complaint never makes silence louder. From an even prior, with a SilenceMass of 1, silence
	// alone brings a belief to 2/3 at most. Empty means no limit.
	Silence     []string
	SilenceMass float64
}

// Validate reports all faults, joined.
func (c Caps) Validate() error {
	var found valid.Faults
	found.Check(c.SourceMass >= 0 && c.SourceMass <= MaxWeight, "SourceMass", c.SourceMass, "must be in [0, 1e6]")
	found.Check(c.SourceShare >= 0 && c.SourceShare < 1, "SourceShare", c.SourceShare, "must be in [0, 1)")
	found.Check(!(c.SourceShare > 0 && c.SourceShare < 1) || c.SourceMass != 0, "SourceShare", c.SourceShare, "needs a SourceMass, which sources have where they are few")
	found.Check(c.SilenceMass >= 0 && c.SilenceMass <= MaxWeight, "SilenceMass", c.SilenceMass, "must be in [0, 1e6]")
	found.Check(c.SilenceMass == 0 || len(c.Silence) > 0, "SilenceMass", c.SilenceMass, "needs the channels in Silence")
	return found.Err()
}

// Pool reads the parts of one cell at a moment, limits them and adds them up, in any order.
func (c Caps) Pool(parts []Part, now Instant) Sums {
	switch {
	case len(parts) == 0:
		return Sums{}
	case len(parts) == 1 && c.SourceMass == 0 && len(c.Silence) == 0:
		return parts[0].Tally.At(now)
	}
	read := make([]Sums, len(parts))
	for i := range parts {
		read[i] = parts[i].Tally.At(now)
	}
	c.limitSources(parts, read)
	c.limitSilence(parts, read)
	var pooled Sums
	for _, s := range read {
		pooled = pooled.Plus(s)
	}
	return pooled
}

func (c Caps) limitSources(parts []Part, read []Sums) {
	if c.SourceMass == 0 {
		return
	}
	of, masses := bySource(parts, read)
	limit := c.limit(masses)
	for i := range read {
		if own := masses[of(i)]; own > limit {
			read[i] = read[i].scale(limit / own)
		}
	}
}

// bySource returns the mass of each source, and which of them is that of a part.
func bySource(parts []Part, read []Sums) (of func(part int) int, masses []float64) {
	masses = make([]float64, 0, len(parts))
	apart := true // as a store gives the parts of one channel
	for i := 1; i < len(parts) && apart; i++ {
		apart = parts[i-1].Source < parts[i].Source
	}
	if apart {
		for _, s := range read {
			masses = append(masses, s.Mass)
		}
		return func(part int) int { return part }, masses
	}
	numbers, sources := make([]int, len(parts)), make(map[string]int, len(parts))
	for i, s := range read {
		n, ok := sources[parts[i].Source]
		if !ok {
			n = len(masses)
			sources[parts[i].Source], masses = n, append(masses, 0)
		}
		numbers[i] = n
		masses[n] += s.Mass
	}
	return func(part int) int { return numbers[part] }, masses
}

// limit returns the mass that a source may have: SourceMass, or more where SourceShare allows it. The share allows the mass x at which a source
// has exactly that share of all: x = SourceShare·Σ min(mass, x). Sources raise this x, and each one's part of the whole falls as it rises. So what
// a coalition takes from the others is its own part.
//
// The difference of the two sides is concave in x. From above the solution, Newton's method comes down to it without passing it, in fewer than
// 1/SourceShare steps.
func (c Caps) limit(masses []float64) float64 {
	x := math.Inf(1)
	for c.SourceShare > 0 {
		over, rest := 0., 0.
		for _, m := range masses {
			if m > x {
				over++
			} else {
				rest += m
			}
		}
		slope := 1 - c.SourceShare*over
		next := c.SourceShare * rest / slope
		switch {
		case slope < 1e-12, next >= x:
			return max(x, c.SourceMass)
		case next <= c.SourceMass: // also where there are fewer sources than can have such a share
			return c.SourceMass
		}
		x = next
	}
	return c.SourceMass
}

func (c Caps) limitSilence(parts []Part, read []Sums) {
	limit, silence := c.SilenceMass, 0.
	for i, s := range read {
		if slices.Contains(c.Silence, parts[i].Channel) {
			silence += s.Reward
		} else {
			limit += s.Reward
		}
	}
	if silence <= limit {
		return
	}
	for i, s := range read {
		if slices.Contains(c.Silence, parts[i].Channel) {
			read[i] = s.scalePositive(limit / silence)
		}
	}
}

// scalePositive scales what was gained and leaves what was lost: rewards fade, and the mass by as much.
func (s Sums) scalePositive(factor float64) Sums {
	if s.Mass <= 0 {
		return s
	}
	lost := s.Mass - s.Reward
	kept := (lost + s.Reward*factor) / s.Mass
	return Sums{
		Mass: s.Mass * kept, Squares: s.Squares * kept,
		Reward: s.Reward * factor, RewardSquares: s.RewardSquares * factor,
	}
}
