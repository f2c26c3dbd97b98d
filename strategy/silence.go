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

// silentParameter names the evidence of silence on one parameter of an arm. It has an id of its own, as many items share
// the parameter, and the store may have forgotten it there while it still knows it on the arm.
func silentParameter(silence string, n int) string { return fmt.Sprintf("%s:%d", silence, n) }

// Sweep makes this learner's pending choices that are older than Config.Silence says expire, and returns how many did. It
// is for the host to call now and then; several may at the same time. What it could not do when it returns an error, the
// next one does; a choice whose silence can't be counted as the store has other policies holds up no others. Without
// Config.Choices it is [ErrNoChoices].
func (l *Learner) Sweep(ctx context.Context) (expired int, err error) {
	if l.cfg.Choices == nil {
		return 0, fmt.Errorf("strategy: sweep: %w", ErrNoChoices)
	}
	now := l.cfg.Now()
	f := ChoiceFilter{Learner: l.cfg.Name, Stage: Pending, Until: now.Add(-l.cfg.Silence.After)}
	var first error
	for record, err := range l.cfg.Choices.List(ctx, f) {
		did := false
		if err == nil {
			did, err = l.expireChoice(ctx, record.Choice, now)
		}
		if did {
			expired++
		}
		if first == nil && err != nil {
			first = fmt.Errorf("strategy: sweep: %w", err)
		}
		if err != nil && !hopeless(err) {
			break
		}
	}
	return expired, first
}

// overdue reports whether a choice may have been swept, by this clock or another.
func (l *Learner) overdue(c *Choice, now time.Time) bool {
	return now.Sub(c.At) > l.cfg.Silence.After-evidence.MaxSkew
}

// expireChoice counts the silence of a choice and makes it expire, in this order: where the second fails, the next sweep
// does both again, and the first only once.
func (l *Learner) expireChoice(ctx context.Context, c Choice, now time.Time) (expired bool, err error) {
	if _, ok := l.index[c.Arm]; !ok || l.cfg.Disabled || l.cfg.Silence.Confidence == 0 {
		if err := l.emitAlone(ctx, Event{
			ID: string(EventExpired) + ":" + c.ID.String(), Type: EventExpired, At: evidence.InstantOf(now).Time(), Choice: c.withoutDraws(),
		}); err != nil {
			return false, err
		}
		return l.expireRecord(ctx, c)
	}
	s, err := l.segment(ctx, c.Category, c.Context, now)
	if err != nil {
		return false, err
	}
	item := s.item(c.Item)
	if err := item.acquire(ctx); err != nil {
		return false, err
	}
	defer item.release()
	o := Outcome{
		Choice: c, ID: silenceID, Value: l.cfg.Silence.Value, Confidence: l.cfg.Silence.Confidence,
		Channel: SilenceChannel, At: evidence.InstantOf(now).Time(),
	}
	if _, err := l.count(ctx, s, &o, EventExpired, now); err != nil {
		return false, err
	}
	if expired, err = l.expireRecord(ctx, c); expired || err != nil {
		return expired, err
	}
	// An outcome that was observed elsewhere meanwhile may have come too early to take the silence back.
	record, err := l.cfg.Choices.Get(ctx, c.ID)
	if err == nil && record.Stage == Observed {
		err = l.breakSilence(ctx, s, c, now)
	}
	return false, known(err)
}

// expireRecord reports whether the record of a choice was pending.
func (l *Learner) expireRecord(ctx context.Context, c Choice) (bool, error) {
	expired, err := l.cfg.Choices.Expire(ctx, c.ID)
	return expired, known(err)
}

// known leaves out that a record is no longer kept.
func known(err error) error {
	if errors.Is(err, heed.ErrNotFound) {
		return nil
	}
	return err
}

// breakSilence takes back what silence was counted for, if it was, as an outcome has come after all. Where the store no
// longer knows enough to do so, the silence stays. The caller holds the item's lock.
func (l *Learner) breakSilence(ctx context.Context, s *segment, c Choice, now time.Time) error {
	scratch := l.scratch.Get().(*scratch)
	defer l.scratch.Put(scratch)
	if err := l.readItem(ctx, s, c.Item, now, scratch); err != nil {
		return err
	}
	silence := l.evidenceID(&Outcome{Choice: c, ID: silenceID})
	ids := []string{silence}
	for range c.Parameters() {
		ids = append(ids, silentParameter(silence, len(ids)))
	}
	changed := false
	for i, id := range ids {
		b := evidence.Batch{ID: "broken:" + id, Policies: l.policies, Retract: []string{id}}
		e := Event{ID: b.ID, Type: EventRetracted, At: evidence.InstantOf(now).Time(), Choice: c.withoutDraws()}
		if err := l.emit(&b, e); err != nil {
			return err
		}
		duplicate, err := l.apply(ctx, s, c.Item, b, now, scratch)
		switch {
		case errors.Is(err, heed.ErrNotFound) || errors.Is(err, evidence.ErrForgotten) || duplicate:
			continue
		case err != nil:
			return err
		}
		if changed = true; i == 0 {
			s.sampled(l.index[c.Arm], -1)
		}
	}
	if !changed {
		return nil
	}
	resets, err := l.resetCount(ctx, s, c.Item)
	if err == nil {
		err = l.catchUp(ctx, s, &c, now, resets, scratch)
	}
	if err != nil {
		s.expire() // the store has it: the next load mends the memory
	}
	return nil
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
