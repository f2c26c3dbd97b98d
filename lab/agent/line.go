package agent

import (
	"context"
	"math"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/loop"
)

const (
	missingBar = "points that the success lacks of ten more than without learning"
	leftOutBar = "of ten lives in which the interval left out the true gain"
)

// Line compares an assistant that learns with the same one that does not, as a line of the
// scorecard, and the gain that heed shows with the true one.
func Line() card.Line {
	run := func(how way, shown interval, short, long int) card.Attempt {
		return func(ctx context.Context, s card.Settings) (r card.Result, _ error) {
			lives, events := card.Pick(s, short, long), 2000
			gained, leftOut := make([]float64, lives), make([]float64, lives)
			kit.Parallel(ctx, lives, func(i int) {
				seed := s.Seed + uint64(i) //nolint:gosec // lives are few
				c := compare(ctx, how, seed, events, shown)
				gained[i] = c.last
				if c.misses > 0 {
					leftOut[i] = 1
				}
			})
			mean := kit.Mean(gained).Mean
			r.Note("success in the last quarter: %.1f points more", 100*mean)
			r.Work = int64(lives * events)
			r.Values = map[string]float64{missingBar: math.Max(0, 10-100*mean),
				leftOutBar: 10 * kit.Mean(leftOut).Mean}
			return r, nil
		}
	}
	return card.Line{
		Name: "gain",
		Promise: "An assistant that learns is right more often than one that does not. What heed " +
			"shows of that gain is true at every look.",
		Attack: "Assistants answer 2,000 events of a simulated world, 5 % of them without " +
			"learning. Each of the others is also answered without learning, with the same luck, which " +
			"gives the true gain. After each ten events, the interval that heed shows is compared " +
			"with it.",
		Bars:  []card.Bar{{Name: missingBar}, {Name: leftOutBar, Most: 3}},
		Short: card.Form{Work: 8_000, Budget: 5 * time.Minute},
		Long:  card.Form{Work: 100_000, Budget: 60 * time.Minute},
		Run:   run(learns, atEveryLook, 4, 50),
		Controls: []card.Control{
			{Name: "an assistant that does not learn", Misses: []string{missingBar},
				Run: run(off, atEveryLook, 1, 3)},
			{Name: "an interval for one look", Misses: []string{leftOutBar},
				Run: run(learns, atOneLook, 2, 3)},
		},
	}
}

// An interval returns what is shown of a gain.
type interval func(g *loop.Gain) (low, high float64)

func atEveryLook(g *loop.Gain) (low, high float64) { return g.Low, g.High }

// atOneLook is the usual interval of 90 % for the difference of two rates, which does not hold if
// it is looked at more than once.
func atOneLook(g *loop.Gain) (low, high float64) {
	l, c := &g.Learned, &g.Control
	difference := l.Success - c.Success
	half := 1.645 * math.Sqrt(l.Success*(1-l.Success)/math.Max(l.Outcomes, 1)+
		c.Success*(1-c.Success)/math.Max(c.Outcomes, 1))
	return difference - half, difference + half
}
