package strategy

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// A credit is an outcome on its way into the store. It is made by one run of a step, and lives
// until the memory has been updated after the commit.
type credit struct {
	*Outcome
	segment *segment // where the choice's arm learns
	// did becomes known after the commit, so the caller holds the pointer.
	did *Disposition
	// quiet is silence. A sweep reports it together, and it is no reason to look for what may follow
	// from an outcome.
	quiet bool
	// The first is on the arm. All have the id of the outcome or one of their own. Empty for an
	// outcome that was counted before the commit.
	made     []evidence.Observation
	withdraw []string // the silence to take back
	replaces []string // the ids of the outcomes that it takes the place of
}

// A crediting is what the learner credits in one run of a step. A step may have several outcomes
// and answers, of several segments; they share one commit. A run that is repeated after a conflict
// begins with an empty crediting.
type crediting struct {
	now     time.Time
	credits []*credit
	records map[ChoiceID]*keptChoice // of choices, after the step
	choices []*Choice                // that have such records
	plans   []*creditPlan            // of answers
	planned map[string]int           // the place of an answer's plan
	failed  []error                  // why arms can't be credited
	expires []*segment               // what was taken back has no parts in the receipt
	gone    []string                 // the ids that are taken back, which may be forgotten
	revised []string                 // the ids that the outcomes after them take the place of
	// bulk is nil unless it has so many answers that the segments are read again.
	bulk *bulkStep
}

// bulk is how many answers a step has at least to be credited in bulk, for example by an import: it
// then reads no cell after the commit, and what follows from outcomes happens with the next one of
// the item.
const bulk = 128

// stepKey finds the crediting of a learner in a step. Two learners in one step have two creditings.
type stepKey struct{ *Learner }

// stepOf returns what the learner credits in this run of a step. Answers are credited only before
// the commit, because a later part of the step may change the plan of an answer once more. If the
// store refuses to take outcomes back, the step runs again, and then the plan looks into the
// store's history first: see doubt.
func (l *Learner) stepOf(tx *store.Tx, now time.Time) *crediting {
	return tx.State(stepKey{l}, func() any {
		c := &crediting{
			now: now, records: make(map[ChoiceID]*keptChoice), planned: make(map[string]int),
		}
		tx.Before(func() (err error) {
			if len(c.plans) >= bulk {
				if c.bulk, err = l.inBulk(tx.Context(), c); err != nil {
					return err
				}
			} else { // in one round trip, if they were not wanted before
				for _, p := range c.plans {
					tx.Want(p.segment.sourceWants(&p.choice))
				}
			}
			for _, p := range c.plans {
				if err := l.recredit(tx, c, p); err != nil {
					return err
				}
			}
			return nil
		})
		tx.Again(func(err error) bool {
			return (errors.Is(err, evidence.ErrForgotten) || errors.Is(err, heed.ErrNotFound)) &&
				l.doubt(c.gone)
		})
		tx.Then(func(r store.Receipt, err error) { l.credited(tx.Context(), c, r, err) })
		return c
	}).(*crediting)
}

// segments returns all segments whose evidence changes.
func (c *crediting) segments() []*segment {
	all := slices.Clone(c.expires)
	for _, one := range c.credits {
		all = append(all, one.segment)
	}
	return all
}

// has reports whether the step observes an outcome already.
func (c *crediting) has(id string) bool {
	return slices.ContainsFunc(c.credits, func(one *credit) bool {
		return len(one.made) > 0 && one.made[0].ID == id
	})
}

// withdraws reports whether the step takes the silence on a choice back already.
func (c *crediting) withdraws(id ChoiceID) bool {
	return slices.ContainsFunc(c.credits, func(one *credit) bool {
		return one.Choice.ID == id && len(one.withdraw) > 0
	})
}

// creditWants names what a step reads to count outcomes.
func (l *Learner) creditWants(outcomes []Outcome) (w store.Wants) {
	for i := range outcomes {
		c := &outcomes[i].Choice
		if l.needsRecord(c) {
			w.Refs = append(w.Refs, l.places(c)...)
		}
		// An error here is reported by the step, when it counts the outcome.
		if s, err := l.segment(c.Category, c.Context); err == nil {
			w.Add(s.sourceWants(c))
		}
	}
	return w
}

// needsRecord reports whether the record of a choice must be read, because the choice does not have
// it, or silence was counted that must be taken back with it.
func (l *Learner) needsRecord(c *Choice) bool {
	if l.cfg.Unrecorded || c.facts().Fallback {
		return false
	}
	kept := c.details.kept.Load()
	return kept == nil || kept.Choice.Silent
}

// recordIn returns the record of a choice for a step. Revision 0 means that there is no record. All
// outcomes of a choice within a step share one record, so that the second adds to what the first
// wrote, and does not replace it.
func (l *Learner) recordIn(tx *store.Tx, step *crediting, c *Choice) (*keptChoice, error) {
	step.choices = append(step.choices, c)
	if known := step.records[c.ID]; known != nil {
		return known, nil
	}
	kept := &keptChoice{}
	if l.needsRecord(c) {
		places := l.places(c)
		tx.Want(store.Wants{Refs: places})
		for _, ref := range places {
			r, err := tx.Get(ref)
			if err != nil {
				return nil, err
			}
			of, err := l.kept(r)
			if err != nil {
				return nil, err
			}
			if of.revision > 0 && of.Choice.ID == c.ID {
				kept = &of
				break
			}
		}
	} else if !l.cfg.Unrecorded && !c.facts().Fallback {
		*kept = *c.details.kept.Load()
	}
	step.records[c.ID] = kept
	return kept, nil
}

// observeIn counts an outcome, which is valid, within a step. With alone, the outcome is all that
// the step has, and the step counts once.
func (l *Learner) observeIn(
	tx *store.Tx, o *Outcome, now time.Time, alone bool,
) (*Disposition, error) {
	c := &credit{Outcome: o, did: new(Disposition)}
	if *c.did = Dropped; l.drops(o.Confidence) {
		return c.did, nil
	}
	var err error
	if c.segment, err = l.segment(o.Choice.Category, o.Choice.Context); err != nil {
		return nil, err
	}
	step := l.stepOf(tx, now)
	tx.Want(l.creditWants([]Outcome{*o}))
	kept, err := l.recordIn(tx, step, &o.Choice)
	if err != nil {
		return nil, err
	}
	// The record knows the outcomes of its choice for as long as it is kept. Without a record the
	// store's own ids recognise an outcome that is delivered twice: see learned.
	recorded := kept.revision > 0
	if recorded && knows(kept.Answer, o.ID) || step.has(l.evidenceID(o)) {
		*c.did, step.credits = Duplicate, append(step.credits, c)
		return c.did, nil
	}
	// An outcome that comes after the silence takes the silence's place in the same commit.
	silent := recorded && kept.Choice.Silent || !recorded && l.silenced(&o.Choice, now)
	if silent && !step.withdraws(o.Choice.ID) {
		c.withdraw = l.silences(&o.Choice)
	}
	b, err := l.batch(tx, c.segment, o, observed)
	if err != nil {
		return nil, err
	}
	b.Withdraw, c.made, c.replaces = c.withdraw, b.Observations, step.revised
	if recorded {
		kept.Answer = settled(kept.Answer, o.result())
		b.Records = append(b.Records, l.write(kept))
	}
	if err := l.emitObserved(&b, o); err != nil {
		return nil, err
	}
	// A batch with an id counts as a whole or not at all. Together with others, each observation
	// counts once by its own id, so a duplicate does not stop the rest.
	if !alone {
		b.ID = ""
	}
	step.credits = append(step.credits, c)
	tx.Add(b)
	return c.did, nil
}

// emitObserved puts the event of an outcome that counts into its batch.
func (l *Learner) emitObserved(b *store.Batch, o *Outcome) error {
	if l.cfg.Topic == "" {
		return nil
	}
	result := o.result()
	return l.emit(b, LearnerEvent{
		ID: observed + ":" + l.evidenceID(o), Type: observed, At: o.At,
		Choice: o.Choice.withoutDraws(), Result: &result,
	})
}

// credited updates the memory after a commit, and does what follows from outcomes. The commit is
// done by then, so no failure here fails the step. What fails is reported to the observer, and the
// segment is loaded again.
func (l *Learner) credited(ctx context.Context, c *crediting, r store.Receipt, err error) {
	c.remember(r, err)
	switch {
	case err == nil:
		l.learned(c, r)
	case !refused(err): // the reply may be lost, and the outcomes counted all the same
		l.bulk.Store(nil)
		for _, s := range c.segments() {
			l.inMemory(s).expire()
		}
		return
	default:
		return
	}
	for _, err := range c.failed {
		l.watch.Failed(ctx, "credit", err)
	}
	for _, one := range c.credits {
		// An outcome in the place of another is no news of the arm.
		if one.quiet || len(one.replaces) > 0 || *one.did != Applied || c.bulk != nil {
			continue
		}
		if err := l.followUp(ctx, one, r.Parts, c.now); err != nil {
			one.segment.expire() // it is counted: the next load from the store mends the memory
			l.watch.Failed(ctx, "after an outcome", err)
		}
	}
	for _, one := range c.credits {
		if !one.quiet {
			l.notify(ctx, c.now, one.Outcome, *one.did)
		}
	}
}

// inMemory returns the segment that is in memory now, because a step may have one that left it.
func (l *Learner) inMemory(s *segment) *segment {
	if now, known := l.segments.Get(s.space.scope); known {
		return now
	}
	return s
}

// refused reports whether an error means that a store has not taken what it was given. All other
// errors, for example a broken connection, leave open whether the commit took place.
func refused(err error) bool {
	for _, of := range []error{
		heed.ErrConflict, heed.ErrNotFound, evidence.ErrFull, evidence.ErrForgotten,
	} {
		if errors.Is(err, of) {
			return true
		}
	}
	return isInputError(err)
}

// remember gives the choices their records after a commit, so that the next outcome of a choice
// needs no reading. After an error the records must be read again, because the store may have other
// ones.
func (c *crediting) remember(r store.Receipt, err error) {
	for _, choice := range c.choices {
		switch kept := c.records[choice.ID]; {
		case choice.details == nil:
		case err != nil:
			choice.details.kept.Store(nil)
		case kept != nil && kept.written && r.Revision > 0:
			choice.details.kept.Store(&keptChoice{Answer: kept.Answer, revision: r.Revision})
		}
	}
}

// notify notifies the observer of an outcome that was counted, now or before.
func (l *Learner) notify(ctx context.Context, now time.Time, o *Outcome, did Disposition) {
	if l.watch == nil {
		return
	}
	c := &o.Choice
	switch did {
	case Applied:
		l.watch.Tell(ctx, heed.Observed{
			Component: l.watch.Name(), At: now, ID: c.ID.String(), Category: c.Category,
			Context: c.Context, Item: c.Item, Arm: string(c.Arm),
			Channel: o.Channel, Reward: (o.worth + 1) / 2, Confidence: o.weight(),
		})
	case Duplicate:
		l.watch.Tell(ctx, heed.Duplicate{
			Component: l.watch.Name(), At: now, What: "outcome", ID: c.ID.String(),
		})
	case Dropped:
	}
}

// learned finds the duplicates among the outcomes of a step by its receipt, and brings the memory
// of the segments in line with the others.
func (l *Learner) learned(c *crediting, r store.Receipt) {
	if c.bulk == nil {
		l.bulk.Store(nil)
	}
	if len(c.gone) > 0 {
		for _, s := range c.segments() {
			l.inMemory(s).takeBack(c.gone)
		}
	}
	for _, one := range c.credits {
		if len(one.made) == 0 {
			continue
		}
		if *one.did = Applied; r.Duplicate || slices.Contains(r.Duplicates, one.made[0].ID) {
			*one.did = Duplicate
			continue
		}
		s := l.inMemory(one.segment)
		if c.bulk != nil {
			c.bulk.add(one.made)
			s.sources.forget()
			s.expire()
			continue
		}
		for _, o := range one.made {
			s.sources.saw(fair.Full(partsOf(r.Parts, o.Cell), o.Source))
		}
		l.learn(s, one, r.Parts, evidence.InstantOf(c.now))
	}
	for _, s := range c.expires {
		l.inMemory(s).expire()
	}
}

// learn brings the memory of a segment in line with an outcome that was counted, and the memory
// that a load is about to make.
func (l *Learner) learn(s *segment, c *credit, parts []evidence.Part, now evidence.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.cfg.IgnoreChanges && !byVector(&c.Choice) {
		s.latest.add(&c.made[0], c.Choice.Item, l.index[c.Choice.Arm], len(l.cfg.Arms))
	}
	one := l.sampleOf(c.Outcome, s.resetCount(&c.Choice))
	change := func(f *found) (drifted bool) {
		f.linear.replace(slices.Concat(c.withdraw, c.replaces), one)
		return l.update(f, c, parts, now)
	}
	if s.changes != nil {
		s.changes = append(s.changes, change)
	}
	if s.found == nil {
		return
	}
	loaded := s.loaded
	s.loaded = time.Time{} // it is read again if the model drifts or panics
	if !change(s.found) {
		s.loaded = loaded
	}
}

// update puts what the cells of an outcome count for now in the place of what they counted for
// before, and reports whether the segment should be read again. The receipt has the whole cells. So
// an update may come twice, as after a load that has read the outcome already. And receipts may
// come out of order. One that added to a cell is old if it has no more outcomes than the memory.
// One that took outcomes back and has fewer may be old or new, so the segment is read again.
func (l *Learner) update(
	f *found, c *credit, parts []evidence.Part, now evidence.Instant,
) (drifted bool) {
	if len(f.late) > len(f.names)+l.sampleItems {
		return true // it takes no more items until it is read again
	}
	fewer := len(c.withdraw)+len(c.replaces) > 0
	scale := scaleOf(f.total, l.cfg.MinConfidence)
	for i, v := range l.values {
		if v.arm == c.Choice.Arm && v.Value == c.Choice.Parameter(v.Name) {
			of := partsOf(parts, f.space.parameter(v.arm, v.Setting))
			if is := f.parameter(of, now, scale); fewer || is.outcomes > f.parameters[i].outcomes {
				f.parameters[i] = is
			}
		}
	}
	cell := c.made[0].Cell
	of, at, arm := partsOf(parts, cell), f.at(cell.Item), l.index[c.Choice.Arm]
	is, has, had := f.crowd.Share(arm, of, now), countOf(of), f.counts[at][arm]
	drifted = f.crowd.Add(arm, c.made[0].Source, c.weight(), is.Mass)
	if has <= had && !fewer {
		return drifted
	}
	was := l.fadedTo(now, f, cell, f.items[at].Arms[arm])
	f.items[at].Arms[arm], f.counts[at][arm] = is, has
	f.samples[arm] += has - had
	f.total = sumsWithout(f.total.Plus(is), was)
	return f.model.Update(arm, was, is) || drifted || has < had ||
		len(l.values) > 0 && aged(scaleOf(f.total, l.cfg.MinConfidence)/f.scale)
}

// fadedTo returns the sums of a cell as they have faded until now, and notes that they are read
// again now.
func (l *Learner) fadedTo(
	now evidence.Instant, f *found, cell evidence.Cell, sums evidence.Sums,
) evidence.Sums {
	if l.cfg.HalfLife == 0 {
		return sums
	}
	before, changed := f.changed[cell]
	if !changed {
		before = f.now
	}
	if f.changed == nil {
		f.changed = make(map[evidence.Cell]evidence.Instant)
	}
	f.changed[cell] = now
	age := max(now.Time().Sub(before.Time()), 0)
	return fair.Scale(sums, math.Exp2(-age.Hours()/l.cfg.HalfLife.Hours()))
}

// followUp does what may follow from an outcome: the item's copy of its segment, and a test for a
// change. Both are commits after the outcome's own. If one of them fails, the outcome still counts,
// and the next outcome of the item tries again.
func (l *Learner) followUp(
	ctx context.Context, c *credit, parts []evidence.Part, now time.Time,
) error {
	s, item := c.segment, c.Choice.Item
	if p, ok := l.cfg.Pooling.(Copy); ok && !c.Choice.details.given &&
		countOf(partsOf(parts, s.space.sessions(item))) >= p.sessions() {
		if err := l.specialize(ctx, s, item, now); err != nil {
			return err
		}
	}
	if l.cfg.IgnoreChanges {
		return nil
	}
	return l.restartIfChanged(ctx, s, item, l.index[c.Choice.Arm], now)
}

// doubt remembers ids of evidence that the store may be unable to take back, and reports whether
// any of them is new.
//
// A step that takes evidence back fails as a whole if the store's history no longer has the
// evidence. The ids of such a step are remembered, so that its next run looks into the history and
// leaves the outcomes that can't be taken back as they are. All other steps are spared that look.
func (l *Learner) doubt(ids []string) (added bool) {
	for _, id := range ids {
		if _, known := l.doubts.Get(id); !known {
			l.doubts.Put(id, struct{}{})
			added = true
		}
	}
	return added
}

// maxDoubts bounds the ids that are remembered. An id that is dropped is added again by the next
// commit that fails.
const maxDoubts = 5_000
