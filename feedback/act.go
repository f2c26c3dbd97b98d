package feedback

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/lock"
	"github.com/heedhq/heed/store"
)

// act does what a person wants: it asks whether they may, makes the change, and writes it into the audit log. propose is
// called again where the change lost a race, and returns an empty change where there is nothing to do. What is refused is in
// the audit log as well, unless the input was not valid. act returns the revision of what was written, 0 if nothing was.
func (s *Service) act(
	ctx context.Context, kind ActKind, subject, actor, reason string, d *Draft, propose func(now time.Time, who string) (change, error),
) (revision uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	who, err := s.person("Actor", actor)
	if err != nil {
		return 0, err
	}
	if err := checkReason(reason); err != nil {
		return 0, err
	}
	if err := checkName("ID", subject); err != nil && subject != "" {
		return 0, err
	}
	now := s.now()
	entry := s.entry(now, who, string(kind), subject, reason)
	if err := s.authorize(ctx, Act{Actor: who, Kind: kind, Subject: subject, Draft: d}); err != nil {
		return 0, s.refuse(ctx, entry, err)
	}
	err = holding(ctx, s.governing, func() error {
		revision = 0
		c, err := propose(now, who)
		if err != nil || c.empty() {
			return err
		}
		if len(c.audit) == 0 {
			c.tell(entry)
		}
		revision, err = s.apply(ctx, c)
		return err
	})
	return revision, s.refuse(ctx, entry, err)
}

// A refusal is an error that belongs into the audit log.
type refusal interface {
	error
	refusal() string // why, in words that name nobody
}

// refuse writes into the audit log that something was refused, if that is why, and returns why.
func (s *Service) refuse(ctx context.Context, entry store.AuditEntry, why error) error {
	refused := (refusal)(nil)
	if !errors.As(why, &refused) {
		return why
	}
	entry.ID = s.cfg.NewID()
	entry.Action += ".refused"
	entry.Details = map[string]string{"refusal": clip(refused.refusal())}
	if _, err := s.apply(ctx, change{audit: []store.AuditEntry{entry}}); err != nil {
		return errors.Join(why, fmt.Errorf("the audit log: %w", err))
	}
	return why
}

// auditPrefix begins the actions of this package in the audit log.
const auditPrefix = "feedback."

func (s *Service) entry(now time.Time, actor, action, subject, reason string) store.AuditEntry {
	return store.AuditEntry{ID: s.cfg.NewID(), At: now, Actor: actor, Action: auditPrefix + action, Subject: subject, Reason: reason}
}

// clip cuts a text to what a store can keep.
func clip(text string) string {
	if len(text) > evidence.MaxText {
		text = text[:evidence.MaxText]
	}
	return strings.ToValidUTF8(text, "")
}

func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }

// holding does something under a lock, and repeats it where it loses a race.
func holding(ctx context.Context, l lock.Lock, do func() error) error {
	if err := l.Lock(ctx); err != nil {
		return err
	}
	defer l.Unlock()
	return again(ctx, do)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("feedback: %s: %w", what, err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
