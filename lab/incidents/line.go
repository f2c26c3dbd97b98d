package incidents

import (
	"context"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
)

const (
	worseBar      = "points worse after an outage"
	unansweredBar = "events without an answer while the database is away"
)

// Line is the short form of this study as a line of the scorecard.
func Line() card.Line {
	run := func(control bool, short, long int) card.Attempt {
		return func(ctx context.Context, c card.Settings) (r card.Result, _ error) {
			s := study{seeds: card.Pick(c, short, long), seed: c.Seed, outages: []outage{
				{length: 100, how: dead}, {length: 100, how: half}, {length: 100, how: database}},
				skip: [2]bool{control, !control}}
			s.play(ctx)
			r.Values = make(map[string]float64)
			for i, o := range s.outages {
				lives := s.heed[i]
				if control {
					lives = s.control[i]
				}
				for _, f := range figures {
					by := worst(lives, s.without[o.length], f.of)
					r.Note("%s: %s by %s points", o, f.name, points(by))
					r.Values[worseBar] = max(r.Values[worseBar], 100*by.Mean)
				}
				for _, l := range lives {
					if r.Faults += int64(o.length); o.how == database {
						r.Values[unansweredBar] += float64(l.unanswered)
					}
				}
				r.Work += int64(len(lives))
			}
			return r, nil
		}
	}
	return card.Line{
		Name: "incidents",
		Promise: "An outage of a model is not learned of the arm. While the database is away, events " +
			"are answered, and nothing is unlearned.",
		Attack: "For 100 events the best arm's model refuses all calls, or half of them, or the " +
			"database " +
			"is away. The five hundreds of events after it are compared with the same life without " +
			"the outage: how often the best arm is chosen, and how far heuristics and ways are trusted.",
		Bars:  []card.Bar{{Name: worseBar, Most: 100 * mostWorse}, {Name: unansweredBar}},
		Short: card.Form{Work: 15, Faults: 1500, Budget: 4 * time.Minute},
		Long:  card.Form{Work: 60, Faults: 6000, Budget: 30 * time.Minute},
		Run:   run(false, 6, 20),
		Controls: []card.Control{{
			Name:   "a failed call counts against the arm, and the store is required",
			Misses: []string{worseBar, unansweredBar}, Run: run(true, 6, 6),
		}},
	}
}
