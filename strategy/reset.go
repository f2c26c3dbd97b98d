package strategy

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A Reset names what a learner is to forget, and why.
type Reset struct {
	// Category and Context name the segment.
	Category string
	Context  string
	// Item is the one item to forget. Empty: the whole segment, with what was learned about parameters.
	Item string
	// Actor is who wants it, and Reason why. The reason must not be empty. Both are in the store's audit log.
	Actor  string
	Reason string
}

// Reset forgets what was learned of a segment, or of one of its items, and writes that into the store's audit log. What is
// forgotten begins anew from the cold start, or the item from its segment; outcomes that had been counted do not count
// again if they are delivered again. Choices that running sessions remember stay as they are.
func (l *Learner) Reset(ctx context.Context, r Reset) error {
	q := Query{Item: r.Item, Category: r.Category, Context: r.Context}
	if err := q.validate(); err != nil {
		return fmt.Errorf("strategy: reset: %w", err)
	}
	if r.Reason == "" {
		return fmt.Errorf("strategy: reset: %w", &heed.InputError{Field: "Reason", Reason: "must not be empty"})
	}
	now := l.cfg.Now()
	s, err := l.segment(r.Category, r.Context)
	if err != nil {
		return fmt.Errorf("strategy: reset: %w", err)
	}
	id := "reset:" + uuid.NewString()
	b := store.Batch{
		ID: id, Parts: true,
		Records: []store.Record{store.AuditEntry{
			ID: id, At: now, Actor: r.Actor, Action: l.cfg.Name + ".reset", Subject: r.Item, Reason: r.Reason,
			Details: map[string]string{"category": r.Category, "context": r.Context},
		}.Record()},
		Observations: []evidence.Observation{{ID: id, Cell: s.space.resets(r.Item), Reward: 1, Weight: 1, At: now}},
	}
	for _, kind := range []string{l.kinds.arm, l.kinds.given, l.kinds.sessions} {
		b.Reset = append(b.Reset, evidence.Selection{Kind: kind, Scope: s.space.scope, Item: r.Item})
	}
	if r.Item == "" {
		b.Reset = append(b.Reset, evidence.Selection{Kind: l.kinds.parameter, Scope: s.space.scope})
	}
	if err := l.emit(&b, Event{
		ID: id, Type: EventReset, At: now, Category: r.Category, Context: r.Context, Item: r.Item, Actor: r.Actor, Reason: r.Reason,
	}); err != nil {
		return fmt.Errorf("strategy: reset: %w", err)
	}
	receipts, err := l.cfg.Store.Commit(ctx, b)
	s.expire() // the next use reads it anew
	if err != nil {
		return fmt.Errorf("strategy: reset: %w", err)
	}
	s.wasResetNow(r.Item, receipts[0].Parts)
	return nil
}

// wasResetNow remembers what a reset has left in its cell.
func (s *segment) wasResetNow(item string, parts []evidence.Part) {
	if n := countOf(parts); item == "" {
		s.wasReset("", resets{n})
	} else {
		s.wasReset(item, resets{0, n})
	}
}
