package patterns

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
)

// A Rating says that a criterion or a pattern was helpful or harmful, without an outcome: a person said so, or a check
// elsewhere.
type Rating struct {
	// ID names the rating. A rating that is delivered again under the same id counts once.
	ID string
	// Criterion or Pattern is rated: one of them.
	Criterion string
	Pattern   PatternID
	// Class is what it says. A neutral rating is remembered by its id and is no evidence.
	Class Class
	// Strength is how much evidence it is, in (0, 1]. 1 is one full observation.
	Strength float64
	// Task is the task that it is about, and Source is who gave it. Both may be empty.
	Task   string
	Source string
	// At is when it was given. It fades from then. The zero time means now.
	At time.Time
}

// Rate counts a rating, in one commit with what becomes of the pattern. Deliver it again after an error, as with
// [Recorder.Record].
func (r *Recorder) Rate(ctx context.Context, rating Rating) (Recorded, error) {
	now := r.cfg.Now()
	if rating.At.IsZero() {
		rating.At = now
	}
	if err := rating.validate(now); err != nil {
		return Recorded{}, failed("rate", err)
	}
	var named []PatternID
	if rating.Pattern != "" {
		named = []PatternID{rating.Pattern}
	}
	one := evidence.Observation{
		Source: rating.Source, Session: rating.Task, Reward: rewardOf(rating.Class), Weight: rating.Strength, At: rating.At,
	}
	if rating.Class == Neutral {
		one.Weight = 0
	}
	d, err := r.change(ctx, named, "", func(d *draft) error {
		d.count("rating", rating.ID)
		one.ID = d.batch.ID
		if rating.Pattern == "" {
			one.Cell = r.criterionCell(rating.Criterion)
			d.batch.Observations = append(d.batch.Observations, one)
			return nil
		}
		roots, err := d.resolve(named)
		if err != nil {
			return err
		}
		d.observe(roots[0], one)
		return d.settle(roots[0], "", r.unarchive)
	})
	if err != nil {
		return Recorded{}, failed("rate", err)
	}
	return Recorded{Duplicate: d.duplicate, Transitions: d.transitions, Inversions: d.inversions}, nil
}

func (g *Rating) validate(now time.Time) error {
	switch {
	case (g.Criterion == "") == (g.Pattern == ""):
		return inputError("Criterion", "or Pattern must be set, and not both")
	case g.Class != Helpful && g.Class != Neutral && g.Class != Harmful:
		return inputError("Class", "must be helpful, neutral or harmful")
	case !(g.Strength > 0 && g.Strength <= 1):
		return inputError("Strength", fmt.Sprintf("is %v, must be in (0, 1]", g.Strength))
	}
	return firstError(checkIDs(field{"ID", g.ID}), checkText("Criterion", g.Criterion, maxID),
		checkText("Pattern", string(g.Pattern), maxID), checkText("Task", g.Task, maxID),
		checkText("Source", g.Source, maxID), checkTime("At", g.At, now))
}
