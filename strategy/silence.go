package strategy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// SilenceChannel is the channel of the evidence that silence makes: see [Silence].
const SilenceChannel = "silence"

const silenceID = reserved + SilenceChannel

// Sweep makes this learner's pending choices that are older than Config.Silence says expire, and returns how many did. It
// is for the host to call now and then; several may at the same time. Without Config.Choices it is [ErrNoChoices].
func (l *Learner) Sweep(ctx context.Context) (expired int, err error) {
	if l.cfg.Choices == nil {
		return 0, fmt.Errorf("strategy: sweep: %w", ErrNoChoices)
	}
	now := l.cfg.Now()
	f := ChoiceFilter{Learner: l.cfg.Name, Stage: Pending, Until: now.Add(-l.cfg.Silence.After)}
	for record, err := range l.cfg.Choices.List(ctx, f) {
		if err != nil {
			return expired, fmt.Errorf("strategy: sweep: %w", err)
		}
		did, err := l.expireChoice(ctx, record.Choice, now)
		if err != nil {
			return expired, fmt.Errorf("strategy: sweep: %w", err)
		}
		if did {
			expired++
		}
	}
	return expired, nil
}

func (l *Learner) expireChoice(ctx context.Context, c Choice, now time.Time) (bool, error) {
	expired, err := l.cfg.Choices.Expire(ctx, c.ID)
	if !expired || err != nil {
		if errors.Is(err, heed.ErrNotFound) {
			err = nil
		}
		return false, err
	}
	if _, ok := l.index[c.Arm]; !ok || l.cfg.Disabled || l.cfg.Silence.Confidence == 0 {
		return true, l.emitAlone(ctx, Event{
			ID: string(EventExpired) + ":" + c.ID.String(), Type: EventExpired, At: evidence.InstantOf(now).Time(), Choice: c.withoutDraws(),
		})
	}
	s, err := l.segment(ctx, c.Category, c.Context, now)
	if err != nil {
		return true, err
	}
	item := s.item(c.Item)
	if err := item.acquire(ctx); err != nil {
		return true, err
	}
	defer item.release()
	o := Outcome{
		Choice: c, ID: silenceID, Value: l.cfg.Silence.Value, Confidence: l.cfg.Silence.Confidence,
		Channel: SilenceChannel, At: evidence.InstantOf(now).Time(),
	}
	if _, err := l.count(ctx, s, &o, EventExpired, now); err != nil {
		return true, err
	}
	// An outcome that was observed elsewhere meanwhile could not yet take the silence back.
	record, err := l.cfg.Choices.Get(ctx, c.ID)
	if err == nil && record.Stage == Observed {
		err = l.breakSilence(ctx, s, c, now)
	}
	if errors.Is(err, heed.ErrNotFound) {
		err = nil
	}
	return true, err
}

// breakSilence takes back what silence was counted for, as an outcome has come after all. Where the store no longer knows
// enough to do so, the silence stays. The caller holds the item's lock.
func (l *Learner) breakSilence(ctx context.Context, s *segment, c Choice, now time.Time) error {
	scratch := l.scratch.Get().(*scratch)
	defer l.scratch.Put(scratch)
	if err := l.readItem(ctx, s, c.Item, now, scratch); err != nil {
		return err
	}
	resets, err := l.resetCount(ctx, s, c.Item)
	if err != nil {
		return err
	}
	silence := l.evidenceID(&Outcome{Choice: c, ID: silenceID})
	b := evidence.Batch{ID: "broken:" + silence, Policies: l.policies, Retract: []string{silence}}
	e := Event{ID: b.ID, Type: EventRetracted, At: evidence.InstantOf(now).Time(), Choice: c.withoutDraws()}
	if err := l.emit(&b, e); err != nil {
		return err
	}
	duplicate, err := l.apply(ctx, s, c.Item, b, now, scratch)
	switch {
	case errors.Is(err, heed.ErrNotFound) || errors.Is(err, evidence.ErrForgotten) || duplicate:
		return nil
	case err != nil:
		return err
	}
	return l.catchUp(ctx, s, &c, now, resets, scratch)
}

// emitAlone puts an event into the outbox that comes with no evidence.
func (l *Learner) emitAlone(ctx context.Context, e Event) error {
	if l.cfg.Topic == "" {
		return nil
	}
	var b evidence.Batch
	if err := l.emit(&b, e); err != nil {
		return err
	}
	_, err := l.cfg.Store.Commit(ctx, b)
	return err
}
