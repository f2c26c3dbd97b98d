package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/overview"
	"github.com/heedhq/heed/learning"
)

// A curve is how far a heuristic was trusted after each of its observations that are kept.
type curve struct {
	Points      string // of a polyline
	First, Last time.Time
}

// curveOf draws what [overview.Trust] says.
func curveOf(e *learning.Explanation, cfg learning.Config, now time.Time) (c curve) {
	points := overview.Trust(e, cfg, now)
	if len(points) == 0 {
		return c
	}
	c.First, c.Last = points[0].At, now
	span := max(float64(now.Sub(c.First)), 1)
	var drawn []string
	for _, at := range points {
		drawn = append(drawn, fmt.Sprintf("%.0f,%.0f", scaleWidth*float64(at.At.Sub(c.First))/span, chartHeight*(1-at.Trust)))
	}
	c.Points = strings.Join(drawn, " ")
	return c
}
