package web

import (
	"math"
	"time"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/strategy"
)

// scaleWidth is how wide a picture is, in its own units.
const scaleWidth = 1000

// A bar is an interval on the scale from 0 to 1, which all bars share. X, Width and Tick are in units of the picture.
type bar struct {
	Name            string
	Low, Mean, High float64
	X, Width, Tick  float64
	Outcomes        uint64
	Sure            float64 // that it is the best
	Leads           bool
	Color           int
}

// Marked reports whether a bar is said to lead.
func (b bar) Marked() bool { return b.Leads && b.Sure >= 0.5 }

// newBar returns a bar. A value outside of 0 to 1 is drawn at the edge.
func newBar(name string, low, mean, high float64) bar {
	at := func(x float64) float64 {
		if math.IsNaN(x) {
			return 0
		}
		return math.Round(scaleWidth * min(max(x, 0), 1))
	}
	return bar{Name: name, Low: low, Mean: mean, High: high, X: at(low), Width: max(at(high)-at(low), 4), Tick: min(max(at(mean)-3, 0), scaleWidth-6)}
}

// bars draws arms.
func bars(arms []view.Arm, leading strategy.ArmID) (all []bar) {
	for i, arm := range arms {
		b := newBar(string(arm.Arm), arm.Low, arm.Mean, arm.High)
		b.Outcomes, b.Sure, b.Leads, b.Color = arm.Outcomes, arm.Best, arm.Arm == leading, i%colors
		all = append(all, b)
	}
	return all
}

const colors = 8 // of arms, in the style sheet

// A column says how often each arm was chosen in a span of time. Parts are from the bottom up.
type column struct {
	Since time.Time
	Of    int
	X     float64
	Width float64
	Parts []part
}

type part struct {
	Arm       string
	Y, Height float64
	Share     float64
	Color     int
}

const (
	mostColumns = 12
	chartHeight = 200
)

// columns puts choices, the newest first, into columns of equal numbers of choices.
func columns(choices []strategy.Choice, arms []view.Arm) (all []column) {
	n := min(mostColumns, len(choices)/5)
	for i := range n {
		from, to := len(choices)*(n-1-i)/n, len(choices)*(n-i)/n
		width := float64(scaleWidth) / float64(n)
		c := column{Since: choices[to-1].At, Of: to - from, X: math.Round(float64(i) * width), Width: math.Round(width) - 6}
		counts := make(map[strategy.ArmID]int)
		for _, choice := range choices[from:to] {
			counts[choice.Arm]++
		}
		y := float64(chartHeight)
		for k, arm := range arms {
			share := float64(counts[arm.Arm]) / float64(c.Of)
			y -= share * chartHeight
			c.Parts = append(c.Parts, part{string(arm.Arm), math.Round(y*10) / 10, math.Round(share*chartHeight*10) / 10, share, k % colors})
		}
		all = append(all, c)
	}
	return all
}
