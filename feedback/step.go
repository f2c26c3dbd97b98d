package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A change is what a step of the service reads and adds. Each run of a step has a new one.
type change struct {
	*store.Tx
	// now is the same for all that the step writes, and draw makes the ids of its audit entries.
	now     time.Time
	who     string // the person who wants it, or ""
	draw    func() string
	wrote   bool
	entries []store.AuditEntry
	// promoted are the corrections that are in a cluster with another feedback from now on.
	promoted []Feedback
	notices  []heed.Notice // for the observer, after the commit
	failed   error         // of the first read whose caller does not look at its error
}

// write adds records to the step, and marks it as one that changes something.
func (c *change) write(records ...store.Record) {
	for _, r := range records {
		c.Put(r)
	}
	c.wrote = true
}

// people returns the key that reports whether two names are of one person, though one was
// forgotten. If it can't be read, the step fails when it ends.
func (c *change) people() text.PseudonymKey {
	key, err := stores.PseudonymKeyIn(c.Tx)
	c.failed = cmp.Or(c.failed, err)
	return key
}

// notice has the observer notified, if the step is committed.
func (c *change) notice(n ...heed.Notice) { c.notices = append(c.notices, n...) }

// auditPrefix begins the actions of this package in the audit log.
const auditPrefix = "feedback."

// logAudit appends an entry to the audit log. It has the same id if the step runs again.
func (c *change) logAudit(action, subject, reason string, details map[string]string) {
	c.entries = append(c.entries, store.AuditEntry{
		ID: c.ID(c.draw), At: c.now, Actor: c.who, Action: auditPrefix + action, Subject: subject,
		Reason: reason, Details: details,
	})
}

// promote has the change write a correction that is in a cluster with another feedback from now
// on. A later promotion of the same correction replaces it.
func (c *change) promote(f Feedback) {
	c.promoted = slices.DeleteFunc(c.promoted, func(p Feedback) bool { return p.ID == f.ID })
	c.promoted = append(c.promoted, f)
}

// done adds the corrections that are promoted, and the entries of the audit log.
func (c *change) done() {
	for _, p := range c.promoted {
		c.write(feedbackKind.record(p))
		c.logAudit("promote", p.ID, "stands with "+p.Cluster,
			map[string]string{"classification": string(p.Class)})
	}
	for _, e := range c.entries {
		c.Put(e.Record())
	}
}

// reading returns a Tx for a call that only reads.
func (s *Service) reading(ctx context.Context) *store.Tx { return store.Reading(ctx, s.cfg.Store) }

// now returns the time in the precision that stores keep.
func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }

// peopleWants names what [change.people] reads.
var peopleWants = store.Wants{Refs: []store.Ref{stores.PseudonymKeyRef()}}

// among reports whether a list names a person.
func among(names []string, who string, key text.PseudonymKey) bool {
	who = key.Of(who)
	return slices.ContainsFunc(names, func(name string) bool { return key.Of(name) == who })
}

// joined returns a list of people with others, each person once.
func joined(names []string, key text.PseudonymKey, others ...string) []string {
	for _, who := range others {
		if who != "" && !among(names, who, key) {
			names = append(slices.Clip(names), who)
		}
	}
	return names
}

// step makes a change under a lock, and then notifies the observer, without the lock. It returns
// the revision of the record that was written, or 0. A refusal ends the step. The lock keeps
// goroutines of this process from racing for the same marks; between processes, conflicts do.
func (s *Service) step(
	ctx context.Context, l host.Lock, do func(c *change) error,
) (revision uint64, err error) {
	if err := l.Lock(ctx); err != nil {
		return 0, err
	}
	var made *change
	err = func() error {
		defer l.Unlock()
		return store.Do(ctx, s.cfg.Store, func(tx *store.Tx) error {
			made = &change{Tx: tx, now: s.now(), draw: s.cfg.NewID}
			tx.Then(func(r store.Receipt, _ error) { revision = r.Revision })
			err := do(made)
			err = cmp.Or(made.failed, err)
			made.done()
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

// act does what a person wants: it asks whether they may, makes the change in a step, and writes it
// into the audit log, with refusals unless the input was not valid. do does not write if the wanted
// state is already there. act returns what do returns, with the revision that it has now. If the
// step runs again after a lost reply, its audit entry shows that it took effect: no other step
// writes that entry.
func act[T kept[T]](
	ctx context.Context, s *Service, a Act, do func(c *change) (T, error),
) (made T, err error) {
	var none T
	if a.Actor, err = s.checkAct(ctx, &a); err != nil {
		return none, wrap(a.Kind, err)
	}
	entry := store.AuditEntry{
		ID: s.cfg.NewID(), At: s.now(), Actor: a.Actor, Action: auditPrefix + a.Kind,
		Subject: a.ID, Reason: a.Reason,
	}
	if err := s.authorize(ctx, a); err != nil {
		return none, wrap(a.Kind, s.refuse(ctx, entry, err))
	}
	var tried *change
	var earlier uint64
	revision, err := s.step(ctx, s.governing, func(c *change) (err error) {
		if tried != nil { // and may have taken effect, if its reply was lost
			done, err := c.Get(entry.Record().Ref)
			if err != nil || done.Revision > 0 {
				earlier, c.notices = done.Revision, tried.notices
				return err
			}
		}
		tried, c.now, c.who = c, entry.At, a.Actor
		c.Want(peopleWants)
		if made, err = do(c); err == nil && c.wrote {
			c.entries = slices.Insert(c.entries, 0, entry)
		}
		return err
	})
	if err != nil {
		return none, wrap(a.Kind, s.refuse(ctx, entry, err))
	}
	return made.at(max(made.revision(), revision, earlier)), nil
}

// checkAct reports an act that is not valid. It returns the canonical form of who wants it.
func (s *Service) checkAct(ctx context.Context, a *Act) (who string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if who, err = person("Actor", a.Actor); err != nil {
		return "", err
	}
	if text.IsPseudonym(who) {
		return "", valid.Input("Actor", "must not be the pseudonym of somebody who was forgotten")
	}
	if strings.TrimSpace(a.Reason) == "" {
		return "", valid.Input("Reason", "must not be empty")
	}
	return who, valid.Names(evidence.MaxText, "Reason", a.Reason, "ID", a.ID)
}

// authorize asks the host whether a person may do something. It is called before the step, because
// it may take time and must not run twice.
func (s *Service) authorize(ctx context.Context, a Act) error {
	if s.cfg.Authorize == nil {
		return nil
	}
	err := host.Call("Config.Authorize", func() error { return s.cfg.Authorize(ctx, a) })
	if err != nil {
		return &RefusedError{Reason: "not authorized", Err: err}
	}
	return nil
}

// refuse writes a refusal into the audit log, if why is one, and returns why. It leaves out the
// words of Config.Authorize, which may name people. It does not write if the act may have taken
// effect.
func (s *Service) refuse(ctx context.Context, entry store.AuditEntry, why error) error {
	var refused *RefusedError
	if !errors.As(why, &refused) || errors.Is(why, heed.ErrOutcomeUnknown) {
		return why
	}
	entry.ID = s.cfg.NewID()
	entry.Action += ".refused"
	// As long as a store can keep.
	reason := strings.ToValidUTF8(refused.Reason[:min(len(refused.Reason), evidence.MaxText)], "")
	entry.Details = map[string]string{"refusal": reason}
	_, err := s.cfg.Store.Commit(ctx, store.Batch{Records: []store.Record{entry.Record()}})
	if err != nil {
		return errors.Join(why, fmt.Errorf("the audit log: %w", err))
	}
	return why
}
