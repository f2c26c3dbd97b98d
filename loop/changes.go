package loop

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// How changes get into the audit log. A call that changes evidence only notes the segment and the
// heuristic that it touched, because it should not wait for more. Sweeps compare the touched ones
// with the latest entry, and add an entry if the leader of a segment or the state of a heuristic is
// another one. So several processes that sweep at once add one entry, by its id.

// What an audit entry of an agent records, behind the agent's name and a dot.
const (
	leads    = "leads"    // an arm leads in a segment, the entry's subject
	begins   = "answers"  // a heuristic reaches the confidence from which it answers by itself
	stops    = "stops"    // its confidence fell below that
	outages  = "outage"   // the subject, a model or the store, can't be reached
	restored = "recovery" // it can be reached again
)

const (
	// mostTouched is how many segments and heuristics wait for a sweep.
	mostTouched = 4096
	// mostTurned is how many of them one sweep looks at, because each needs some reads.
	mostTurned = 64
	// mostLooked is among how many audit entries the latest of a subject is looked for.
	mostLooked = 64
)

// changes has what sweeps look at to record what learning changed. It is memory only: if a process
// ends before its sweep, an entry is written with the next change of the same segment or heuristic.
type changes struct {
	mu       sync.Mutex
	segments touched // that got evidence, by their scopes
	// heuristics are the ids of the ones that got evidence, and incidents are entries that no sweep
	// has stored yet.
	heuristics touched
	incidents  []store.AuditEntry
}

type touched map[string]struct{}

// looked removes an id that a sweep has looked at, and returns the error of the look. If the look
// failed, the id stays for the next sweep, unless the error is the store's answer, such as a
// damaged record or an entry that is too large, because that fails again. A conflict may not.
func (t touched) looked(id string, err error) error {
	again := errors.Is(err, heed.ErrConflict) || isOutage(context.Background(), err)
	if err == nil || !again {
		delete(t, id)
	}
	return err
}

// touch notes that an answer counts for something else now. More than mostTouched between two
// sweeps are left out. It only takes a lock.
func (c *changes) touch(r *answer.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.segments == nil {
		c.segments, c.heuristics = make(touched), make(touched)
	}
	if r.Choice != nil && len(c.segments) < mostTouched {
		c.segments[answers.Scope(r.Choice.Category, r.Choice.Context)] = struct{}{}
	}
	for i := range r.Fires {
		if len(c.heuristics) < mostTouched {
			c.heuristics[r.Fires[i].Heuristic] = struct{}{}
		}
	}
}

// incident keeps entries until a sweep stores them.
func (c *changes) incident(all ...store.AuditEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.incidents = append(c.incidents, all[:min(len(all), mostTouched-len(c.incidents))]...)
}

// take returns what one sweep looks at. The rest waits for the next sweep, so that none takes long.
// It is taken in no order, so that those that fail each time don't keep others waiting for good.
// What it returns is removed, so two sweeps at once look at different ones.
func (c *changes) take() (segments, heuristics touched, incidents []store.AuditEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	some := func(of touched) touched {
		taken := make(touched)
		for one := range of {
			if len(taken) == mostTurned {
				break
			}
			taken[one] = struct{}{}
			delete(of, one)
		}
		return taken
	}
	incidents, c.incidents = c.incidents, nil
	return some(c.segments), some(c.heuristics), incidents
}

// putBack returns what a sweep has taken and could not record, so that the next sweep looks at it.
func (c *changes) putBack(segments, heuristics touched, incidents []store.AuditEntry) {
	c.incident(incidents...)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.segments, segments)
	maps.Copy(c.heuristics, heuristics)
}

// recordChanges adds to the audit log which arms took over, which heuristics began or stopped to
// answer, and which outages there were. Errors are joined, and one segment does not stop the
// others. The next sweep looks again at what failed, unless the store has answered.
func (a *Agent) recordChanges(ctx context.Context, now time.Time) error {
	segments, heuristics, incidents := a.changed.take()
	errs := []error{a.putEntries(ctx, incidents...)}
	if errs[0] == nil {
		incidents = nil
	}
	for _, scope := range slices.Sorted(maps.Keys(segments)) {
		errs = append(errs, segments.looked(scope, a.leader(ctx, scope, now)))
	}
	for _, id := range slices.Sorted(maps.Keys(heuristics)) {
		errs = append(errs, heuristics.looked(id, a.answering(ctx, id, now)))
	}
	a.changed.putBack(segments, heuristics, incidents)
	return errors.Join(errs...)
}

// answering records whether a heuristic answers by itself, unless it was deleted.
func (a *Agent) answering(ctx context.Context, id string, now time.Time) error {
	standings, err := a.learning.Standings(ctx, id)
	of, known := standings[id]
	if err != nil || !known {
		return err
	}
	action := stops
	if of.Confidence >= a.decider.Config().Threshold {
		action = begins
	}
	return a.turn(ctx, store.AuditEntry{At: now, Action: action, Subject: id,
		Details: map[string]string{"domain": of.Heuristic.Domain}})
}

// leader records which arm leads in a segment, if it does so clearly: the interval of 90 % of its
// reward lies above the means of all others. A lead that is not clear is no entry, so arms that are
// equally good do not fill the log by taking turns.
func (a *Agent) leader(ctx context.Context, scope string, now time.Time) error {
	if a.learner == nil {
		return nil
	}
	category, in, _ := answers.ParseScope(scope)
	beliefs, err := a.learner.Beliefs(ctx, strategy.Query{Category: category, Context: in})
	if err != nil || len(beliefs) < 2 {
		return err
	}
	best, second := 0, -1. // the best arm, and the greatest mean of the others
	for i := 1; i < len(beliefs); i++ {
		mean := beliefs[i].Mean()
		if first := beliefs[best].Mean(); mean > first {
			best, mean = i, first
		}
		second = max(second, mean)
	}
	if low, _ := beliefs[best].Interval(0.9); low <= second {
		return nil
	}
	return a.turn(ctx, store.AuditEntry{
		At: now, Action: leads, Subject: scope,
		Details: map[string]string{"arm": string(a.learner.Config().Arms[best].ID), "domain": category},
	})
}

// turn records an entry, unless the latest one of its subject records the same, or it would be the
// first and record that a heuristic does not answer. The id is derived from the latest entry, so
// several processes that find the same change write one entry.
func (a *Agent) turn(ctx context.Context, e store.AuditEntry) error {
	e.Action = a.cfg.Name + "." + e.Action
	var last store.AuditEntry
	own := []string{a.cfg.Name + "." + leads, a.cfg.Name + "." + begins, a.cfg.Name + "." + stops}
	for one, err := range store.AuditEntries(ctx, a.cfg.Store,
		store.Query{Keys: []string{store.PersonKey(e.Subject)}, Limit: mostLooked}) {
		if err != nil {
			return err
		}
		if one.Subject == e.Subject && slices.Contains(own, one.Action) {
			last = one
			break
		}
	}
	// An entry repeats the latest one if the state is the same. A heuristic that never answered by
	// itself has not stopped.
	same := last.Action == e.Action && last.Details["arm"] == e.Details["arm"]
	if same || last.ID == "" && e.Action == own[2] {
		return nil
	}
	if before := last.Details["arm"]; before != "" {
		e.Details["before"] = before
	}
	e.ID = store.IDOf("turn", e.Action, e.Subject, last.ID)
	return a.putEntries(ctx, e)
}

// putEntries adds entries to the audit log. An entry with an id that is there already is no new
// one, so several processes can add the same.
func (a *Agent) putEntries(ctx context.Context, all ...store.AuditEntry) error {
	return store.Do(ctx, a.cfg.Store, func(tx *store.Tx) error {
		for i := range all {
			tx.Put(all[i].Record())
		}
		return nil
	})
}

// outage notifies the observer that a model or the store can't be reached, or that it can be
// reached again if since is set. The next sweep has it in the audit log, because the store may be
// away. The id of the entry is derived from the moment, so one that is stored again is the same.
func (a *Agent) outage(ctx context.Context, what string, since time.Time, cause error) {
	now, action := a.cfg.Testing.Now(), outages
	var notice heed.Notice = heed.Outage{Component: a.cfg.Name, At: now, What: what, Err: cause}
	if !since.IsZero() {
		notice = heed.Restored{Component: a.cfg.Name, At: now, What: what, Since: since}
		action = restored
	}
	a.changed.incident(store.AuditEntry{
		ID: store.IDOf("incident", a.cfg.Name, action, what, now.UTC().Format(time.RFC3339Nano)),
		At: now, Action: a.cfg.Name + "." + action, Subject: what,
	})
	if a.watch != nil {
		a.watch.Tell(ctx, notice)
	}
}
