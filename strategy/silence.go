package strategy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// silenceChannel is the channel of the evidence that silence makes: see [Silence].
const silenceChannel = "silence"

// silenceID is the id of silence as an outcome. Hosts can't use it, because it is reserved.
const silenceID = reserved + silenceChannel

// silentParameter names the evidence of silence on one parameter of an arm. It has an id of its
// own, because many items share the parameter, and the store may have forgotten it there but not on
// the arm.
func silentParameter(silence string, n int) string { return fmt.Sprintf("%s:%d", silence, n) }

// silences returns the ids of the evidence that silence on a choice makes.
func (l *Learner) silences(c *Choice) []string {
	ids := []string{l.evidenceID(&Outcome{Choice: *c, ID: silenceID})}
	for range c.Parameters() {
		ids = append(ids, silentParameter(ids[0], len(ids)))
	}
	return ids
}

// Sweep does what is due at now, or by the learner's clock if that is earlier or now is zero.
// Pending choices of this learner that are older than Config.Silence allows expire, and with
// Config.Shared, what the tenant shares is brought up to date once a day. The host calls it now and
// then, for example through [heed.Run]. Several sweeps may run at the same time. The next sweep
// does what a failed one could not do. A choice whose silence can't be counted, because the store
// has other policies, does not hold up others.
func (l *Learner) Sweep(ctx context.Context, now time.Time) (err error) {
	defer because(&err, "sweep")
	now = valid.Due(now, l.cfg.Now())
	n, err := l.expireChoices(ctx, now)
	l.watch.Swept(ctx, now, n)
	err = errors.Join(err, l.reshare(ctx, now))
	l.watch.Failed(ctx, "sweep", err)
	return err
}

// expireChoices makes the choices expire that are due, the oldest first. It returns how many it
// did, and the first error. Pending choices have a key of their own, so the query is served by an
// index and costs what is due. An error that another attempt would not mend is passed over, so that
// one record does not stop the sweep.
func (l *Learner) expireChoices(ctx context.Context, now time.Time) (n int, first error) {
	if !l.cfg.expires() {
		return 0, ctx.Err()
	}
	q := store.Query{
		Kind: l.answers.Name, Keys: []string{l.pending}, Until: now.Add(-l.cfg.Silence.After),
		Oldest: true,
	}
	for r, err := range l.cfg.Store.Find(ctx, q) {
		var kept keptChoice
		if err == nil {
			kept, err = l.kept(r)
		}
		done := false
		if err == nil && kept.revision > 0 {
			done, err = l.expireChoice(ctx, kept, now)
		}
		if done {
			n++
		}
		first = cmp.Or(first, err)
		if err != nil && !hopeless(err) {
			break
		}
	}
	return n, first
}

// silenced reports whether silence may have been counted for a choice, by this clock or another.
func (l *Learner) silenced(c *Choice, now time.Time) bool {
	return l.cfg.Silence.Confidence > 0 && now.Sub(c.At) > l.cfg.Silence.After-evidence.MaxSkew
}

// hopeless reports whether another attempt would fail as well.
func hopeless(err error) bool {
	return isInputError(err) || errors.Is(err, heed.ErrDamaged) ||
		errors.As(err, new(*heed.SettingsError)) || errors.As(err, new(*heed.SizeError))
}

// expireChoice counts the silence of a choice and makes it expire, in one commit. It reports false
// if another writer was quicker.
func (l *Learner) expireChoice(
	ctx context.Context, kept keptChoice, now time.Time,
) (done bool, err error) {
	err = store.Do(ctx, l.cfg.Store, func(tx *store.Tx) error {
		if done {
			done = false // there was a conflict
			return nil
		}
		done = true
		return l.expireIn(tx, kept, now)
	})
	return done && err == nil, err
}

// expireIn marks the record of a choice as expired, and counts its silence if that is configured.
// The record is written with the revision that the sweep read, so an outcome that came in between
// wins.
func (l *Learner) expireIn(tx *store.Tx, kept keptChoice, now time.Time) error {
	row, choice, c := *kept.Answer, *kept.Choice, ChoiceOf(kept.Choice)
	row.Choice, choice.Expired = &choice, true
	e := LearnerEvent{
		ID: expired + ":" + c.ID.String(), Type: expired, At: evidence.InstantOf(now).Time(),
		Choice: c.withoutDraws(),
	}
	var b store.Batch
	// A choice whose outcome was taken back has not been silent.
	if l.isArm(c.Arm) && !l.cfg.Disabled && l.cfg.Silence.Confidence > 0 && len(choice.Taken) == 0 {
		s, err := l.segment(c.Category, c.Context)
		if err != nil {
			return err
		}
		o := &Outcome{
			Choice: c, ID: silenceID, Value: -1, worth: -1,
			Confidence: l.cfg.Silence.Confidence, Channel: silenceChannel, At: e.At,
		}
		if b, err = l.batch(tx, s, o, expired); err != nil {
			return err
		}
		step := l.stepOf(tx, now)
		step.credits = append(step.credits, &credit{
			Outcome: o, segment: s, did: new(Disposition), quiet: true, made: b.Observations,
		})
		e.ID, choice.Silent = expired+":"+b.ID, true
	}
	if err := l.emit(&b, e); err != nil {
		return err
	}
	kept.Answer = &row
	b.Records = append(slices.Clip(b.Records), l.write(&kept))
	tx.Add(b)
	return nil
}
