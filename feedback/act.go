package feedback

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// act does what a person wants: it asks whether they may, makes the change, and writes it into the audit log. change is
// called again where the change lost a race, and returns an empty change where there is nothing to do. What is refused is in
// the audit log as well, unless the input was not valid.
func (s *Service) act(ctx context.Context, kind ActKind, subject, actor, reason string, d *Draft, change func(now time.Time, who string) (Change, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	who, err := s.person("Actor", actor)
	if err != nil {
		return err
	}
	if err := checkReason(reason); err != nil {
		return err
	}
	if err := checkName("ID", subject); err != nil && subject != "" {
		return err
	}
	now := s.now()
	entry := s.entry(now, who, string(kind), subject, reason)
	if err := s.authorize(ctx, Act{Actor: who, Kind: kind, Subject: subject, Draft: d}); err != nil {
		return s.refuse(ctx, entry, err)
	}
	err = s.governing.take(ctx, func() error {
		return again(ctx, func() error {
			c, err := change(now, who)
			if err != nil || c.empty() {
				return err
			}
			if len(c.Audit) == 0 {
				c.Audit = []evidence.AuditEntry{entry}
			}
			return s.apply(ctx, c)
		})
	})
	if refused := (refusal)(nil); errors.As(err, &refused) {
		return s.refuse(ctx, entry, err)
	}
	return err
}

func (c *Change) empty() bool {
	return len(c.Records) == 0 && len(c.Proposals) == 0 && len(c.Rules) == 0 && len(c.Audit) == 0
}

// A refusal is an error that belongs into the audit log.
type refusal interface {
	error
	refusal()
}

// refuse writes into the audit log that something was refused, and returns why.
func (s *Service) refuse(ctx context.Context, entry evidence.AuditEntry, why error) error {
	entry.ID = s.cfg.NewID()
	entry.Action += ".refused"
	entry.Details = map[string]string{"refusal": clip(why.Error())}
	if err := s.cfg.Store.Apply(ctx, Change{Audit: []evidence.AuditEntry{entry}}); err != nil {
		return errors.Join(why, fmt.Errorf("the audit log: %w", err))
	}
	return why
}

func (s *Service) entry(now time.Time, actor, action, subject, reason string) evidence.AuditEntry {
	return evidence.AuditEntry{ID: s.cfg.NewID(), At: now, Actor: actor, Action: "feedback." + action, Subject: subject, Reason: reason}
}

// clip cuts a text to what a store can keep.
func clip(text string) string {
	if len(text) > evidence.MaxText {
		text = text[:evidence.MaxText]
	}
	return strings.ToValidUTF8(text, "")
}

func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }

// lane names the revision that the evaluations of one agent's feedback share.
func lane(agent string) string { return "agent:" + agent }

// board names the revision that all proposals and rules share.
const board = "rules"

// A raceError says that the store had another revision than what was read.
type raceError struct{ err error }

func (e *raceError) Error() string { return e.err.Error() }
func (e *raceError) Unwrap() error { return e.err }

func (s *Service) apply(ctx context.Context, c Change) error {
	err := s.cfg.Store.Apply(ctx, c)
	if errors.Is(err, heed.ErrConflict) {
		return &raceError{err}
	}
	return err
}

// again repeats what lost a race. In each round of a race somebody wins; the limit is for a store that never agrees.
func again(ctx context.Context, do func() error) error {
	const rounds = 1000
	var err error
	for range rounds {
		err = do()
		if lost := (*raceError)(nil); !errors.As(err, &lost) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return err
}

// A turn is had by one goroutine at a time, which waits for it no longer than its context lasts.
type turn chan struct{}

func (t turn) take(ctx context.Context, do func() error) error {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t }()
	return do()
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("feedback: %s: %w", what, err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
