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
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/lock"
	"github.com/heedhq/heed/store"
)

// An Act is something that a person wants to do: see [Config].Authorize.
type Act struct {
	Actor string // in canonical form
	// Kind is "propose", "modify", "approve", "reject", "take-out", "retire", "revoke", "resolve",
	// "erase" or "import". The Draft tells whether it is about a rule that is restored, pinned or
	// unpinned.
	Kind string
	// the id of the feedback, the proposal or the rule. Empty where there is none yet
	Subject string
	// what is proposed, approved or taken out, where there is such a thing; it must not be changed
	Draft *Draft
}

// An Order names a thing, and who wants something done with it and why.
type Order struct {
	ID     string // of the rule, the proposal or the feedback
	Actor  string
	Reason string // never empty
}

// A RefusedError says why a person may not do something, or not now. The refusal is in the audit
// log.
type RefusedError struct {
	Reason string // in words that name no person
	// State is the state or the classification that something has, if it needs another one.
	State string
	// Conflicts are the active rules that a draft contradicts, if that is why.
	Conflicts []Conflict
	// Err is the error of Config.Authorize. It is [heed.ErrConflict] if something is no longer as
	// the person saw it.
	Err error
}

func (e *RefusedError) Error() string {
	if e.Err != nil && !errors.Is(e.Err, heed.ErrConflict) {
		return e.Reason + ": " + e.Err.Error()
	}
	return e.Reason
}

func (e *RefusedError) Unwrap() error { return e.Err }

// notNow refuses what another state is needed for.
func notNow[S ~string](what string, state S) error {
	return &RefusedError{Reason: "the " + what + " is " + string(state), State: string(state),
		Err: heed.ErrConflict}
}

// ineligible refuses what a person may not do.
func ineligible(reason string) error { return &RefusedError{Reason: reason} }

// contradicted refuses what contradicts active rules.
func contradicted(by []Conflict) error {
	ids := make([]string, len(by))
	for i, c := range by {
		ids[i] = c.ID
	}
	return &RefusedError{Reason: "it contradicts active rules: " + strings.Join(ids, ", "),
		Conflicts: by}
}

// errFull refuses a proposal where as many are pending as may be.
var errFull = ineligible("too many proposals are pending")

func (s *Service) authorize(ctx context.Context, act Act) error {
	if s.cfg.Authorize == nil {
		return nil
	}
	if err := host.Call("Config.Authorize",
		func() error { return s.cfg.Authorize(ctx, act) }); err != nil {
		return &RefusedError{Reason: "not authorized", Err: err}
	}
	return nil
}

// reading returns a Tx for a call that only reads.
func (s *Service) reading(ctx context.Context) *store.Tx { return store.Reading(ctx, s.cfg.Store) }

// act does what a person wants: it asks whether they may, makes the change, and writes it into the
// audit log. propose makes the change in a step, and writes nothing if there is nothing to do. The
// audit log has refusals as well, unless the input was not valid. act returns the revision of what
// was written, 0 if nothing was.
func (s *Service) act(
	ctx context.Context, kind, subject, actor, reason string, d *Draft, propose func(c *change,
		now time.Time, who string) error,
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
	entry := s.entry(now, who, kind, subject, reason)
	if err := s.authorize(ctx, Act{Actor: who, Kind: kind, Subject: subject,
		Draft: d}); err != nil {
		return 0, s.refuse(ctx, entry, err)
	}
	revision, err = s.step(ctx, s.governing, func(c *change) error {
		err := propose(c, now, who)
		if err == nil && c.wrote && !c.told {
			c.tell(entry)
		}
		return err
	})
	return revision, s.refuse(ctx, entry, err)
}

// refuse writes a refusal into the audit log, if why is one, and returns why. It leaves out the
// words of Config.Authorize, which may name people. It writes nothing if the act may have taken
// effect.
func (s *Service) refuse(ctx context.Context, entry store.AuditEntry, why error) error {
	var refused *RefusedError
	if !errors.As(why, &refused) || errors.Is(why, heed.ErrOutcomeUnknown) {
		return why
	}
	entry.ID = s.cfg.NewID()
	entry.Action += ".refused"
	entry.Details = map[string]string{"refusal": clip(refused.Reason)}
	if _, err := s.cfg.Store.Commit(ctx,
		store.Batch{Records: []store.Record{entry.Record()}}); err != nil {
		return errors.Join(why, fmt.Errorf("the audit log: %w", err))
	}
	return why
}

// auditPrefix begins the actions of this package in the audit log.
const auditPrefix = "feedback."

func (s *Service) entry(now time.Time, actor, action, subject, reason string) store.AuditEntry {
	return store.AuditEntry{ID: s.cfg.NewID(), At: now, Actor: actor, Action: auditPrefix + action,
		Subject: subject, Reason: reason}
}

// clip cuts a text to what a store can keep.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), evidence.MaxText)], "")
}

func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }

// step makes a change under a lock, and then notifies the observer, without the lock. It returns
// the revision of what was written, 0 if nothing was. A refusal ends the step.
func (s *Service) step(ctx context.Context, l lock.Lock, do func(c *change) error) (revision uint64,
	err error) {
	if err := l.Lock(ctx); err != nil {
		return 0, err
	}
	var made *change
	err = func() error {
		defer l.Unlock()
		return store.Do(ctx, s.cfg.Store, func(tx *store.Tx) error {
			made = &change{Tx: tx}
			tx.Then(func(r store.Receipt, _ error) { revision = r.Revision })
			err := do(made)
			if refused := new(RefusedError); errors.As(err, &refused) {
				return store.Final(err)
			}
			return err
		})
	}()
	if err == nil && s.watch != nil {
		for _, n := range made.notices {
			s.watch.Tell(ctx, n)
		}
	}
	return revision, err
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("feedback: %s: %w", what, err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
