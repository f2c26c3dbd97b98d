package strategy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// SilenceChannel is the channel of the evidence that silence makes: see [Silence].
const SilenceChannel = "silence"

const silenceID = reserved + SilenceChannel

// silentParameter names the evidence of silence on one parameter of an arm. It has an id of its own, as many items share
// the parameter, and the store may have forgotten it there while it still knows it on the arm.
func silentParameter(silence string, n int) string { return fmt.Sprintf("%s:%d", silence, n) }

// silences returns the ids of the evidence that silence on a choice makes.
func (l *Learner) silences(c *Choice) []string {
	ids := []string{l.evidenceID(&Outcome{Choice: *c, ID: silenceID})}
	for range c.Parameters() {
		ids = append(ids, silentParameter(ids[0], len(ids)))
	}
	return ids
}

// Sweep does what is due at now, or by the learner's clock where that is earlier, or now is zero: this learner's pending
// choices that are older than Config.Silence says expire, and the segments in memory that are older than Config.Refresh are
// read anew. It is for the host to call now and then, as [heed.Run] does; several may at the same time. What it could not
// do when it returns an error, the next one does; a choice whose silence can't be counted as the store has other policies
// holds up no others.
func (l *Learner) Sweep(ctx context.Context, now time.Time) error {
	if own := l.cfg.Now(); now.IsZero() || now.After(own) {
		now = own
	}
	err := errors.Join(l.expireChoices(ctx, now), l.refreshAll(ctx, now, l.cfg.Refresh))
	if err != nil {
		return fmt.Errorf("strategy: sweep: %w", err)
	}
	return nil
}

// expireChoices makes the choices expire that are due, the oldest first. It returns the first error.
func (l *Learner) expireChoices(ctx context.Context, now time.Time) (first error) {
	if l.cfg.Unrecorded {
		return ctx.Err()
	}
	q := store.Query{Keys: []string{pendingKey(l.cfg.Name)}, Until: now.Add(-l.cfg.Silence.After), Oldest: true}
	for kept, err := range choices.Find(ctx, l.cfg.Store, q) {
		if err == nil {
			err = l.expireChoice(ctx, kept, now)
		}
		if first == nil {
			first = err
		}
		if err != nil && !hopeless(err) {
			break
		}
	}
	return first
}

// overdue reports whether silence may have been counted for a choice, by this clock or another.
func (l *Learner) overdue(c *Choice, now time.Time) bool {
	return l.cfg.Silence.Confidence > 0 && now.Sub(c.At) > l.cfg.Silence.After-evidence.MaxSkew
}

// hopeless reports whether another attempt would fail as well.
func hopeless(err error) bool { return isInputError(err) || errors.As(err, new(*evidence.PolicyError)) }

// expireChoice counts the silence of a choice and makes it expire, in one commit. Where an outcome was quicker, it does
// nothing.
func (l *Learner) expireChoice(ctx context.Context, kept keptChoice, now time.Time) error {
	row, c := *kept.Value, kept.Value.Choice
	row.Stage = Expired
	e := Event{ID: expired + ":" + c.ID.String(), Type: expired, At: evidence.InstantOf(now).Time(), Choice: c.withoutDraws()}
	if !l.isArm(c.Arm) || l.cfg.Disabled || l.cfg.Silence.Confidence == 0 {
		_, err := l.commitExpired(ctx, store.Batch{}, e, &row, kept.ID, kept.Revision)
		return err
	}
	s, err := l.segment(c.Category, c.Context)
	if err != nil {
		return err
	}
	release, err := observe(ctx, s)
	if err != nil {
		return err
	}
	defer release()
	o := Outcome{
		Choice: c, ID: silenceID, Value: l.cfg.Silence.Value, Confidence: l.cfg.Silence.Confidence,
		Channel: SilenceChannel, At: e.At,
	}
	b := l.batch(s, &o, expired)
	e.ID, row.Silent = expired+":"+b.ID, true
	receipt, err := l.commitExpired(ctx, b, e, &row, kept.ID, kept.Revision)
	switch {
	case err != nil:
		s.expire()
		return err
	case receipt.Duplicate: // the silence is counted and the record says otherwise, as after a replay
		_, err = l.commitExpired(ctx, store.Batch{}, e, &row, kept.ID, kept.Revision)
		return err
	case receipt.Parts != nil:
		l.learn(&credit{Outcome: &o, segment: s, batch: b, parts: receipt.Parts, sampled: 1}, now, b.Observations[:1])
	}
	return nil
}

// commitExpired commits a batch with the record of a choice. That somebody else was quicker is no error: the receipt is
// empty then.
func (l *Learner) commitExpired(ctx context.Context, b store.Batch, e Event, row *choiceRow, id string, revision uint64) (store.Receipt, error) {
	if err := l.emit(&b, e); err != nil {
		return store.Receipt{}, err
	}
	b.Records = append(slices.Clip(b.Records), row.write(id, revision))
	receipts, err := l.cfg.Store.Commit(ctx, b)
	switch {
	case err == nil:
		return receipts[0], nil
	case errors.Is(err, heed.ErrConflict) && !errors.As(err, new(*evidence.PolicyError)):
		return store.Receipt{}, nil
	}
	return store.Receipt{}, err
}
