package patterns

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/evidence"
)

// Feedback is what someone, or something, says of a criterion or a pattern without an outcome: a person's rating, a
// validation elsewhere.
type Feedback struct {
	// ID names the feedback. What comes again under it counts once.
	ID string
	// Criterion or Pattern is what it is about: one of them.
	Criterion string
	Pattern   PatternID
	// Class is what it says. Neutral feedback is remembered by its id and is no evidence.
	Class Class
	// Strength is how much evidence it is, in (0, 1]: 1 is one full observation.
	Strength float64
	// Task is what it was about, and Source who gave it. Both may be empty.
	Task   string
	Source string
	// At is when it was given, from which it fades. The zero time means now.
	At time.Time
}

// Fed is what came of feedback.
type Fed struct {
	Duplicate bool // its id was known, and nothing was counted
	// Transition is what became of the pattern. nil: nothing.
	Transition *Transition
}

// Feedback counts feedback, in one commit with what becomes of the pattern. Record again what returned an error, as with
// [Recorder.Record].
func (r *Recorder) Feedback(ctx context.Context, f Feedback) (Fed, error) {
	now := r.cfg.Now()
	if f.At.IsZero() {
		f.At = now
	}
	err := f.validate(now)
	var fed Fed
	if err == nil {
		err = r.retry(ctx, func() (err error) {
			fed, err = r.feedback(ctx, &f)
			return err
		})
	}
	if err != nil {
		return Fed{}, fmt.Errorf("patterns: feedback: %w", err)
	}
	return fed, nil
}

func (r *Recorder) feedback(ctx context.Context, f *Feedback) (Fed, error) {
	var named []PatternID
	if f.Pattern != "" {
		named = []PatternID{f.Pattern}
	}
	found, err := r.read(ctx, named, "")
	if err != nil {
		return Fed{}, err
	}
	d := r.draft(found)
	d.batch.ID = r.cfg.Name + ":feedback:" + f.ID
	one := evidence.Observation{
		ID: d.batch.ID, Source: f.Source, Session: f.Task, Reward: rewardOf(f.Class), Weight: f.Strength, At: f.At,
	}
	if f.Class == Neutral {
		one.Weight = 0
	}
	var s settled
	if f.Pattern == "" {
		one.Cell = r.criterionCell(f.Criterion)
		d.batch.Observations = []evidence.Observation{one}
	} else {
		roots, err := d.resolve(named)
		if err != nil {
			return Fed{}, err
		}
		d.observe(roots[0], one)
		if s, err = d.settle(roots[0], "", r.unarchive); err != nil {
			return Fed{}, err
		}
	}
	receipt, err := d.commit(ctx)
	if err != nil || receipt.Duplicate {
		return Fed{Duplicate: receipt.Duplicate}, err
	}
	return Fed{Transition: s.transition}, nil
}

func (f *Feedback) validate(now time.Time) error {
	switch {
	case (f.Criterion == "") == (f.Pattern == ""):
		return inputError("Criterion", "or Pattern must be set, and not both")
	case f.Class != Helpful && f.Class != Neutral && f.Class != Harmful:
		return inputError("Class", "must be helpful, neutral or harmful")
	case !(f.Strength > 0 && f.Strength <= 1):
		return inputError("Strength", fmt.Sprintf("is %v, must be in (0, 1]", f.Strength))
	}
	return firstError(checkIDs(field{"ID", f.ID}), checkText("Criterion", f.Criterion, MaxID),
		checkText("Pattern", string(f.Pattern), MaxID), checkText("Task", f.Task, MaxID),
		checkText("Source", f.Source, MaxID), checkTime("At", f.At, now))
}
