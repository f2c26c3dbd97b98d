package web

import (
	"math"
	"time"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/strategy"
)

const (
	scaleWidth  = 1000 // of a picture, in its own units
	chartHeight = 200
	mostColumns = 12
	colors      = 8 // of arms, in the style sheet
)

// place returns where a value from 0 to 1 is on the scale. Another value is at the edge.
func place(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return math.Round(scaleWidth * min(max(x, 0), 1))
}

// A bar is an interval on the scale from 0 to 1, in units of the picture.
type bar struct{ X, Width, Tick float64 }

func newBar(low, mean, high float64) bar {
	return bar{
		place(low), max(place(high)-place(low), 4), min(max(place(mean)-3, 0), scaleWidth-6),
	}
}

// A column shows how often each arm was chosen in a span of time. Parts are from the bottom up.
type column struct {
	Since    time.Time
	Of       int
	X, Width float64
	Parts    []part
}

type part struct{ Y, Height, Share float64 }

// columns puts choices, the newest first, into columns of equal numbers of choices.
func columns(choices []strategy.ChoiceRecord, arms []view.Arm) (all []column) {
	n := min(mostColumns, len(choices)/5)
	width := scaleWidth / float64(max(n, 1))
	for i := range n {
		in := choices[len(choices)*(n-1-i)/n : len(choices)*(n-i)/n]
		c := column{
			Since: in[len(in)-1].Choice.At, Of: len(in), X: math.Round(float64(i) * width),
			Width: math.Round(width) - 6,
		}
		y := float64(chartHeight)
		for _, arm := range arms {
			chosen := 0
			for _, r := range in {
				if r.Choice.Arm == arm.Arm {
					chosen++
				}
			}
			share := float64(chosen) / float64(len(in))
			y -= share * chartHeight
			tenth := func(x float64) float64 { return math.Round(x*10) / 10 }
			c.Parts = append(c.Parts, part{tenth(y), tenth(share * chartHeight), share})
		}
		all = append(all, c)
	}
	return all
}

// alone describes whether a heuristic answers by itself.
func alone(h view.Heuristic) string {
	if h.Confidence >= h.Needed {
		return "yes, because its confidence is at least " + three(h.Needed)
	}
	return "no, from " + three(h.Needed) + " on"
}
