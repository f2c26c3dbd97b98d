package loop

import (
	"context"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// Undelivered records that the person has not seen an answer, for example because the connection
// broke while it was sent. Then neither silence nor the next message counts as a reaction to it;
// statements count as before. Call it before the silence is over, which is 30 seconds by default:
// what silence has counted already stays. An unknown answer is [ErrNoAnswer].
//
// [Agent.Answer] calls it if its context ended, or if Event.OnChunk has panicked at the answer of a
// heuristic.
func (a *Agent) Undelivered(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		return wrap("undelivered", err)
	}
	return wrap("undelivered", store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		row, err := a.in(tx, id)
		if err != nil {
			return err
		}
		own(&row.Value).Undelivered = true
		ignore(&row.Value, func(*answer.Fire) bool { return true })
		a.answers.Put(tx, row.Value, row.Revision)
		return nil
	}))
}

// delivered records that an answer was not delivered, if that is so. fault is the error of its
// delivery.
func (a *Agent) delivered(ctx context.Context, p *Plan, fault error) {
	recorded := p.Text != "" && !p.repeated && !p.undelivered && !p.unkept()
	if !recorded || fault == nil && ctx.Err() == nil {
		return
	}
	ctx, cancel := patient(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := a.Undelivered(ctx, p.Event.ID)
	a.watch.Failed(ctx, "record that "+p.Event.ID+" was not delivered", err)
}

// unheard keeps silence from counting if the store was away before it was over, because reactions
// could not be recorded.
func (a *Agent) unheard(r *answer.Answer) {
	ignore(r, func(f *answer.Fire) bool { return a.lifeline.away(f.Shown, f.Silence) })
}

// ignore ends the windows of silence of the fires that are still open.
func ignore(r *answer.Answer, which func(*answer.Fire) bool) {
	for i := range r.Fires {
		if f := &r.Fires[i]; !f.Closed && !f.Silence.IsZero() && which(f) {
			answers.OwnFires(r)
			r.Fires[i].Silence, r.Fires[i].Ignore = time.Time{}, time.Time{}
		}
	}
}
