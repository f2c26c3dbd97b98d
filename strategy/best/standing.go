package best

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/internal/winner"
	"github.com/heedhq/heed/strategy"
)

// A Standing is the state of a race.
type Standing struct {
	Category string `json:"category,omitempty"`
	Context  string `json:"context,omitempty"`
	Item     string `json:"item,omitempty"`
	// Leader is the winner, or else the arm with the greatest mean reward. It is "" until each arm
	// has five outcomes.
	Leader strategy.ArmID `json:"leader,omitempty"`
	Ended  bool           `json:"ended"`
	At     time.Time      `json:"at,omitzero"` // when it ended
	// Needed is how many outcomes there were when the race ended, or until now if it is open.
	Needed uint64 `json:"needed"`
	// Error is the setting with which the race was judged.
	Error float64      `json:"error"`
	Arms  []Contestant `json:"arms"` // in the learner's order
}

// A Contestant is an arm of a race.
type Contestant struct {
	Arm      strategy.ArmID `json:"arm"`
	Outcomes uint64         `json:"outcomes"`
	Mean     float64        `json:"mean"` // reward, in [0, 1]
	// Low and High are the bounds of how much less than the leader's its expected reward is. A
	// negative bound means that it may be greater. The bounds of all arms hold together, at all
	// times, except for the error of the race. Of the leader they are 0, and so are all without a
	// leader.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Standing returns the state of the race of a query's category, context and item. It ends the race
// if there is enough evidence. You may call it as often as you like: the stated error holds at all
// looks together. The query's session, arms and vector have no effect.
func (r *Race) Standing(ctx context.Context, q strategy.Query) (Standing, error) {
	s, err := r.stands(ctx, q)
	if err != nil {
		return Standing{}, err
	}
	return r.standing(&s), nil
}

// fewest is how many outcomes each arm needs before one is called the leader.
const fewest = 5

// standing returns the state as hosts see it. After the end the leader is the winner, even if
// another arm has a greater mean by now: as long as that is not sure, the race stays ended.
func (r *Race) standing(s *state) Standing {
	standing := Standing{Category: s.query.Category, Context: s.query.Context, Item: s.query.Item,
		Error: r.cfg.Error, Needed: s.outcomes}
	lead := 0
	known := slices.Min(s.counts) >= fewest
	for i, record := range s.records {
		if record.Mean() > s.records[lead].Mean() {
			lead = i
		}
	}
	if s.over {
		e := &s.ended.Value
		standing.Ended, standing.At, standing.Needed = true, e.At, e.Outcomes
		for i, arm := range r.learner.Arms {
			if arm.ID == e.Arm {
				lead, known = i, true
			}
		}
	}
	if known {
		standing.Leader = r.learner.Arms[lead].ID
	}
	for i, arm := range r.learner.Arms {
		c := Contestant{Arm: arm.ID, Outcomes: s.counts[i], Mean: s.records[i].Mean()}
		if known && i != lead {
			c.Low, c.High = winner.Gap(s.records[lead], s.records[i], len(s.records), r.cfg.Error)
		}
		standing.Arms = append(standing.Arms, c)
	}
	return standing
}

// String describes the standing in words: "b is best, with an error of at most 5 %, after 412
// outcomes; a is worse by 0.02 to 0.11".
func (r Standing) String() string {
	var b strings.Builder
	switch {
	case r.Ended:
		fmt.Fprintf(&b, "%s is best, with an error of at most %.3g %%, after %d outcomes", r.Leader,
			100*r.Error, r.Needed)
	case r.Leader == "":
		return fmt.Sprintf("undecided after %d outcomes, because an arm has fewer than %d", r.Needed,
			fewest)
	default:
		fmt.Fprintf(&b, "no winner after %d outcomes; %s leads", r.Needed, r.Leader)
	}
	for _, c := range r.Arms {
		switch {
		case c.Arm == r.Leader:
		case c.Low >= 0:
			fmt.Fprintf(&b, "; %s is worse by %.2f to %.2f", c.Arm, c.Low, c.High)
		case c.High <= 0:
			fmt.Fprintf(&b, "; %s is better by %.2f to %.2f", c.Arm, -c.High, -c.Low)
		default:
			fmt.Fprintf(&b, "; %s is at most %.2f worse and %.2f better", c.Arm, c.High, -c.Low)
		}
	}
	return b.String()
}
