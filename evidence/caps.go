package evidence

import (
	"slices"

	"github.com/heedhq/heed/internal/faults"
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
type Caps struct {
	// SourceMass and SourceShare limit each source to the greater of a mass and a share, in [0, 1), of the mass of all others.
	// Observations without a source are one source. If both are 0, there is no limit.
	SourceMass  float64
	SourceShare float64
	// Silence names the channels of silence: "implicit_timeout". Their positive evidence counts for at most SilenceMass plus the positive
	// evidence of all other channels. So a complaint never makes silence louder. From an even prior, with a SilenceMass of 1, silence
	// alone brings a belief to 2/3 at most. Empty means no limit.
	Silence     []string
	SilenceMass float64
}

// Validate reports all faults, joined.
func (c Caps) Validate() error {
	var found faults.List
	found.Check(c.SourceMass >= 0 && c.SourceMass <= MaxWeight, "SourceMass", c.SourceMass, "must be in [0, 1e6]")
	found.Check(c.SourceShare >= 0 && c.SourceShare < 1, "SourceShare", c.SourceShare, "must be in [0, 1)")
	found.Check(c.SilenceMass >= 0 && c.SilenceMass <= MaxWeight, "SilenceMass", c.SilenceMass, "must be in [0, 1e6]")
	found.Check(c.SilenceMass == 0 || len(c.Silence) > 0, "SilenceMass", c.SilenceMass, "needs the channels in Silence")
	return found.Err()
}

// Pool reads the parts of one cell at a moment, limits them and adds them up, in any order.
func (c Caps) Pool(parts []Part, now Instant) Sums {
	switch {
	case len(parts) == 0:
		return Sums{}
	case len(parts) == 1 && c.SourceMass == 0 && c.SourceShare == 0 && len(c.Silence) == 0:
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
	if c.SourceMass == 0 && c.SourceShare == 0 {
		return
	}
	var total float64
	bySource := make(map[string]float64, len(parts))
	for i, s := range read {
		total += s.Mass
		bySource[parts[i].Source] += s.Mass
	}
	for i := range read {
		own := bySource[parts[i].Source]
		if limit := max(c.SourceMass, c.SourceShare*(total-own)); own > limit {
			read[i] = read[i].scale(limit / own)
		}
	}
}

func (c Caps) limitSilence(parts []Part, read []Sums) {
	if len(c.Silence) == 0 {
		return
	}
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
