package web

import (
	"math"

	"github.com/heedhq/heed/internal/view"
)

const (
	scaleWidth  = 1000 // of a picture, in its own units
	chartHeight = 200
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

// alone describes whether a heuristic answers by itself.
func alone(h view.Heuristic) string {
	if h.Confidence >= h.Needed {
		return "yes, because its confidence is at least " + three(h.Needed)
	}
	return "no, from " + three(h.Needed) + " on"
}
