package patterns

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A draft is the changes of one commit, made from what was read.
type draft struct {
	*reading
	r     *Recorder
	now   time.Time
	batch store.Batch
	next  map[PatternID]Pattern // those that the commit writes
	order []PatternID           // of next

	what, id    string       // the evidence: "outcome" and its id; empty if there is none
	duplicate   bool         // that evidence had been counted
	transitions []Transition // what becomes of patterns
	inversions  []Pattern    // the anti-patterns of those that are inverted
}

func (r *Recorder) draft(from *reading) *draft {
	return &draft{reading: from, r: r, now: r.cfg.Now(), batch: store.Batch{Policies: r.policies}, next: make(map[PatternID]Pattern)}
}

// count makes the draft count evidence once, by its id.
func (d *draft) count(what, id string) {
	d.what, d.id, d.batch.ID = what, id, d.r.cfg.Name+":"+what+":"+id
}

// pattern returns a pattern as it is in the draft. It must not be changed.
func (d *draft) pattern(id PatternID) (p Pattern, known bool) {
	if p, known = d.next[id]; known {
		return p, true
	}
	kept, known := d.patterns[id]
	return kept.Value, known
}

// put has the commit write a pattern.
func (d *draft) put(p Pattern) Pattern {
	if _, known := d.next[p.ID]; !known {
		d.order = append(d.order, p.ID)
	}
	p.UpdatedAt = stored(d.now)
	d.next[p.ID] = p
	return p
}

// observe adds evidence on a pattern. It writes the pattern's record, too, so that the revision tells of the new evidence.
func (d *draft) observe(id PatternID, o evidence.Observation) {
	o.Cell = d.r.patternCell(id)
	d.batch.Observations = append(d.batch.Observations, o)
	t := d.tallies[id]
	if t.N() == 0 {
		t = evidence.Tally{HalfLife: d.r.policies[d.r.kinds.patternCells].HalfLife}
	}
	t.Add(o.Weight, o.Share, o.Reward, evidence.InstantOf(o.At))
	d.tallies[id] = t
	p, _ := d.pattern(id)
	d.put(p)
}

// An edit changes a pattern, with a look at its evidence. It returns a cause if the change is a transition by itself, and
// errDone if nothing needs to change.
type edit func(p *Pattern, t *evidence.Tally) (cause string, err error)

var errDone = errors.New("done")

// settle edits a pattern, and brings it and its anti-pattern in line with its evidence.
func (d *draft) settle(id PatternID, actor string, change edit) error {
	before, _ := d.pattern(id)
	p, t := before.clone(), d.tallies[id]
	cause, err := change(&p, &t)
	if err != nil {
		return err
	}
	if because := d.r.advance(&p, &t, d.now); cause == "" {
		cause = because
	} else if because != "" {
		cause += "; " + because
	}
	if p.Twin != "" && !p.Anti {
		anti := d.warn(&p, &t)
		if p.State == Inverted && before.State != Inverted {
			d.inversions = append(d.inversions, anti.clone())
		}
	}
	if cause != "" || !reflect.DeepEqual(before, p) {
		d.put(p)
	}
	if cause != "" {
		done := Transition{d.r.cfg.NewID(), id, before.State, p.State, stored(d.now), actor, cause}
		d.transitions = append(d.transitions, done)
		d.batch.Records = append(d.batch.Records, d.r.kinds.transitions.Record(done, store.Once))
	}
	return nil
}

// warn brings the anti-pattern of a pattern in line with it, and returns it. While the pattern is inverted, the anti-pattern
// has the counts of today. Afterwards it is archived.
func (d *draft) warn(p *Pattern, t *evidence.Tally) Pattern {
	before, known := d.pattern(antiPrefix + p.ID)
	anti := before.clone()
	if !known {
		anti.CreatedAt = stored(d.now)
	}
	switch {
	case p.State == Inverted:
		anti.ArchivedAt = time.Time{}
		d.r.cfg.Inversion.warn(&anti, p, countsOf(t).minus(p.Base))
	case p.Override == Deprecated: // it goes on warning
	case !anti.archived():
		anti.ArchivedAt = stored(d.now)
	}
	if !reflect.DeepEqual(before, anti) {
		anti = d.put(anti)
	}
	return anti
}

// commit stores all of it, or none and an error. It stores nothing for a draft without an id that changes nothing.
func (d *draft) commit(ctx context.Context) error {
	for _, id := range d.order {
		d.batch.Records = append(d.batch.Records, d.r.kinds.patterns.Record(d.next[id], d.patterns[id].Revision))
	}
	if d.batch.ID == "" && len(d.batch.Records) == 0 && !d.batch.TakesAway() {
		return nil
	}
	receipts, err := d.r.commit(ctx, d.batch)
	if err != nil {
		return err
	}
	if d.duplicate = receipts[0].Duplicate; d.duplicate {
		d.transitions, d.inversions = nil, nil
	}
	return nil
}

// commit commits a batch, and remembers what it wrote for the next plan.
func (r *Recorder) commit(ctx context.Context, b store.Batch) ([]store.Receipt, error) {
	var patterns, entries []string
	endPatterns, endTasks := r.past.ownPatterns.begin(), r.past.ownTasks.begin()
	defer func() {
		endPatterns(patterns)
		endTasks(entries)
	}()
	receipts, err := r.cfg.Store.Commit(ctx, b)
	if err != nil || receipts[0].Duplicate {
		return receipts, err
	}
	for i := range b.Records {
		switch ref := b.Records[i].Ref; {
		case slices.Contains(receipts[0].Left, ref):
		case ref.Kind == r.kinds.patterns.Name:
			patterns = append(patterns, ref.ID)
		case ref.Kind == r.kinds.entries.Name:
			entries = append(entries, ref.ID)
		}
	}
	return receipts, nil
}

// change reads patterns and the entry of an outcome, makes a draft with do, and commits it. It does so again if somebody else
// stored a pattern first. Changes of this recorder that are made again take turns, so that they are not in each other's way. If
// do returns errDone, nothing is stored. At the end, change tells the observer.
func (r *Recorder) change(ctx context.Context, ids []PatternID, outcome string, do func(d *draft) error) (*draft, error) {
	d, raced, err := r.try(ctx, ids, outcome, do)
	if raced {
		if err = r.turn.Lock(ctx); err != nil {
			return nil, err
		}
		for n := 0; raced && n < maxTries; n++ {
			d, raced, err = r.try(ctx, ids, outcome, do)
		}
		r.turn.Unlock()
	}
	if err != nil {
		return nil, err
	}
	r.tell(ctx, d)
	return d, nil
}

// maxTries is how often others may come first. Each time one of them got on, so only a broken store reaches it.
const maxTries = 10_000

// try changes once. It reports whether somebody else came first.
func (r *Recorder) try(ctx context.Context, ids []PatternID, outcome string, do func(d *draft) error) (d *draft, raced bool, err error) {
	found, err := r.read(ctx, ids, outcome)
	if err != nil {
		return nil, false, err
	}
	d = r.draft(found)
	if err = do(d); err != nil {
		if errors.Is(err, errDone) {
			err = nil
		}
		return d, false, err
	}
	err = d.commit(ctx)
	return d, errors.Is(err, heed.ErrConflict) && !errors.As(err, new(*heed.SettingsError)) && ctx.Err() == nil, err
}

// advance gives a pattern the state that its evidence calls for. It returns the cause if the state changes.
func (r *Recorder) advance(p *Pattern, t *evidence.Tally, now time.Time) (cause string) {
	if p.Anti {
		return ""
	}
	from := p.State
	counts := countsOf(t)
	switch {
	case p.Override != "":
		p.State = p.Override
		return ""
	case p.State == Inverted && !r.rehabilitated(p, t):
	case p.State != Inverted && r.cfg.Inversion.inverts(counts.minus(p.Base)):
		p.State, p.Inverted, p.Twin = Inverted, counts, antiPrefix+p.ID
		return counts.minus(p.Base).reason()
	default:
		if p.State == Inverted {
			p.Base = counts
			cause = fmt.Sprintf("rehabilitated by %d successes since it was inverted: ", counts.minus(p.Inverted).Successes)
		}
		p.State = stateOf(r.cfg.conditions(t, now))
	}
	if p.State == from {
		return ""
	}
	return cause + fmt.Sprintf("%d helpful, %d harmful, a harmful share of %s", counts.Successes, counts.Failures, share(harmfulShare(t)))
}

// rehabilitated reports whether an inverted pattern has shown that it works after all.
func (r *Recorder) rehabilitated(p *Pattern, t *evidence.Tally) bool {
	return countsOf(t).minus(p.Inverted).Successes >= uint64(r.cfg.Inversion.Rehabilitation) &&
		harmfulShare(t) <= r.cfg.Maturity.Deprecation+tolerance
}

func countsOf(t *evidence.Tally) Observations { return Observations{t.Positive.N, t.Negative.N} }

// tell tells the observer what a draft has changed.
func (r *Recorder) tell(ctx context.Context, d *draft) {
	if r.watch == nil {
		return
	}
	if d.duplicate {
		r.watch.Tell(ctx, heed.Duplicate{Component: r.watch.Name(), At: d.now, What: d.what, ID: d.id})
		return
	}
	for _, o := range d.batch.Observations {
		if o.Weight > 0 {
			r.watch.Tell(ctx, heed.Counted{
				Component: r.watch.Name(), At: d.now, Subject: o.Cell.Item, Channel: d.what, Reward: o.Reward, Weight: o.Weight,
			})
		}
	}
	for _, t := range d.transitions {
		reason := t.Cause
		if t.Actor != "" {
			reason = "decided by hand" // and not in that person's words
		}
		p, _ := d.pattern(t.Pattern)
		before := d.patterns[t.Pattern].Value
		name, id := r.watch.Name(), string(t.Pattern)
		was, is := inUse(&before, t.From), inUse(&p, t.To)
		if t.To == Inverted && t.From != Inverted {
			r.watch.Tell(ctx, heed.Harmful{Component: name, At: d.now, Subject: id, Reason: reason})
		}
		switch {
		case t.To == Inverted && was:
			r.watch.Tell(ctx, heed.Inverted{Component: name, At: d.now, Subject: id, Reason: reason})
		case is && !was:
			r.watch.Tell(ctx, heed.Activated{Component: name, At: d.now, Subject: id})
		case was && !is, t.To == Deprecated && t.From != Deprecated:
			r.watch.Tell(ctx, heed.Retired{Component: name, At: d.now, Subject: id, Reason: reason})
		}
	}
}

// inUse reports whether plans recommend a pattern that is in this state.
func inUse(p *Pattern, s State) bool { return (s == Established || s == Proven) && !p.archived() }
