package strategy

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
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
	s, err := l.segment(ctx, r.Category, r.Context, now)
	if err != nil {
		return fmt.Errorf("strategy: reset: %w", err)
	}
	id := "reset:" + uuid.NewString()
	b := evidence.Batch{
		ID: id,
		Audit: []evidence.AuditEntry{{
			ID: id, At: now, Actor: r.Actor, Action: l.cfg.Name + ".reset", Subject: r.Item, Reason: r.Reason,
			Details: map[string]string{"category": r.Category, "context": r.Context},
		}},
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
	if _, err := l.cfg.Store.Commit(ctx, b); err != nil {
		return fmt.Errorf("strategy: reset: %w", err)
	}
	if err := l.refresh(ctx, s, now); err != nil {
		return fmt.Errorf("strategy: reset: it is done, but: %w", err)
	}
	return nil
}

// resetCount returns how often an item was reset, alone or with its segment. Evidence that is derived from other evidence
// has it in its id, so that it can be derived once more after a reset.
func (l *Learner) resetCount(ctx context.Context, s *segment, item string) (string, error) {
	parts, err := l.cfg.Store.Read(ctx, nil, s.space.resets(""), s.space.resets(item))
	if err != nil {
		return "", err
	}
	counts := [2]uint64{}
	for i := range parts {
		if parts[i].Cell.Item == "" {
			counts[0] = parts[i].Tally.N()
		} else {
			counts[1] = parts[i].Tally.N()
		}
	}
	return fmt.Sprint(counts), nil
}
