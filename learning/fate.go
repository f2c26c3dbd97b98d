package learning

import (
	"context"
	"time"
)

// A Fate is what was seen of an answer, beside what people said. A zero time means that it was not seen.
type Fate struct {
	Undone  time.Time // it was taken back
	Ignored time.Time // the user went on without a word
	Silent  time.Time // nobody said anything
	Outcome time.Time // the outcome of an [Expectation] came
	Success bool      // what that outcome says
}

// Fate returns what was seen of an answer, or [heed.ErrNotFound]. The heuristic is "" if the host's model answered.
func (m *Module) Fate(ctx context.Context, heuristicID, eventID string) (f Fate, err error) {
	defer doing("fate", &err)
	kept, err := m.kinds.fires.Get(ctx, m.cfg.Store, answer{heuristicID, eventID}.record())
	if err != nil {
		return f, err
	}
	seen := &kept.Value.Facts
	at := func(slot string) time.Time {
		if s := seen.of(slot); s != nil {
			return s.At
		}
		return time.Time{}
	}
	return Fate{at(slotUndo), at(slotIgnore), at(slotSilence), at(slotOutcome), seen.Outcome.sign() > 0}, nil
}
