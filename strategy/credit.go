package strategy

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	// segment is where the choice's arm learns.
	segment *segment
	// did becomes known after the commit, so the caller holds the pointer.
	did *Disposition
	// quiet credits are not reported to the observer, for example silence, which a sweep reports
	// together.
	quiet bool
	// follows reports that the item's copy or the test of a change may follow.
	follows bool

	// The first is on the arm. All have the id of the outcome or one of their own. Empty for an
	// outcome that was counted before the commit.
	made     []evidence.Observation
	withdraw []string // the silence to take back
	// before are the parts of the arm's cell before the commit, if known is set.
	before []evidence.Part
	known  bool // the cell was read, because evidence was taken away or may not count
	// sampled is by how many outcomes the arm gained or lost, for the bonus of Exploration.
	sampled  int
	replaces []string // the ids of the outcomes that it takes the place of
}

// cell returns the arm's cell.
func (c *credit) cell() evidence.Cell { return c.segment.space.arm(c.Choice.Item, c.Choice.Arm) }

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
	held    []*segment               // that no load may end for
	bulk    bool                     // it has so many answers that the segments are read again
}

// bulk is how many answers a step has at least to be credited in bulk: it then reads no cell after
// the commit, and what follows from outcomes happens with the next one of the item.
const bulk = 128

// stepKey finds the crediting of a learner in a step. Two learners in one step have two creditings.
type stepKey struct{ *Learner }

// stepOf returns what the learner credits in this run of a step. From the commit on no load of the
// segments ends until the memory is up to date. Answers are credited only before the commit,
// because a later part of the step may change the plan of an answer once more. If the store refuses
// to take outcomes back, the step runs again, and then the plan looks into the store's history
// first: see doubt.
func (l *Learner) stepOf(tx *store.Tx, now time.Time) *crediting {
	return tx.State(stepKey{l}, func() any {
		c := &crediting{
			now: now, records: make(map[ChoiceID]*keptChoice), planned: make(map[string]int),
		}
		tx.Before(func() (err error) {
			if c.bulk = len(c.plans) >= bulk; c.bulk {
				err = l.readSources(tx, c)
			} else { // in one round trip, if they were not wanted before
				l.sources.drop()
				for _, p := range c.plans {
					tx.Want(l.sourceWants(p.of.segment, &p.choice))
				}
			}
			if err != nil {
				return err
			}
			for _, p := range c.plans {
				if err := l.recredit(tx, c, p); err != nil {
					return err
				}
			}
			c.held, err = observe(tx.Context(), c.segments()...)
			return err
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

// observe lets no load of the segments end until the caller left those that it returns. A load that
// ended between the commit and the update of the memory would have the outcome in it already, and
// the update would count it twice. The order of the segments prevents a deadlock of two steps that
// have the same segments.
func observe(ctx context.Context, all ...*segment) ([]*segment, error) {
	if len(all) > 1 { // in one order, because loads wait as well
		slices.SortFunc(all, func(a, b *segment) int {
			return strings.Compare(a.space.scope, b.space.scope)
		})
		all = slices.Compact(all)
	}
	for i, s := range all {
		select {
		case s.observers <- struct{}{}:
		case <-ctx.Done():
			leave(all[:i])
			return nil, ctx.Err()
		}
	}
	return all, nil
}

// leave lets loads of the segments end again.
func leave(all []*segment) {
	for _, s := range all {
		<-s.observers
	}
}

// creditWants names what a step reads to count outcomes.
func (l *Learner) creditWants(outcomes []Outcome) (w store.Wants) {
	for i := range outcomes {
		c := &outcomes[i].Choice
		reads := l.needsRecord(c)
		if reads {
			w.Refs = append(w.Refs, l.places(c)...)
		}
		s, err := l.segment(c.Category, c.Context)
		switch {
		// The step itself reports this error, when it counts the outcome.
		case err != nil:
		// Many sources may have reached the limit of a cell, so batch has to see who is there.
		case s.sources.mayBeMany():
			w.Cells = append(w.Cells, l.creditedCells(s, c)...)
		case reads || s.mayNotCount(&outcomes[i]):
			w.Cells = append(w.Cells, s.space.arm(c.Item, c.Arm))
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
	c := &credit{Outcome: o, did: new(Disposition), follows: true}
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
	if err := c.read(tx, len(c.withdraw) > 0 || c.segment.mayNotCount(o)); err != nil {
		return nil, err
	}
	l.sources.drop()
	b, err := l.batch(tx, c.segment, o, observed)
	if err != nil {
		return nil, err
	}
	b.Withdraw, c.made = c.withdraw, b.Observations
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

// read reads the arm's cell if that must be known.
func (c *credit) read(tx *store.Tx, known bool) error {
	if c.known = known; !known {
		return nil
	}
	var read store.Snapshot
	err := tx.Read(&read, []evidence.Cell{c.cell()}, nil)
	c.before = read.Parts
	return err
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
	c.update(l, r, err)
	if err != nil {
		return
	}
	for _, err := range c.failed {
		l.watch.Failed(ctx, "credit", err)
	}
	for _, one := range c.credits {
		if !one.follows || *one.did != Applied || c.bulk {
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

// update brings the memory of the segments in line with a commit, and lets loads of them end. If
// the store refused the commit, the memory stays as it is, because the evidence did too.
func (c *crediting) update(l *Learner, r store.Receipt, err error) {
	defer leave(c.held) // also if a host's pooling panics
	switch {
	case err == nil:
		c.learned(l, r)
	case refused(err):
		return
	default: // the reply may be lost, and the outcomes counted all the same
		for _, s := range c.segments() {
			l.sources.drop()
			s.expire()
		}
	}
	for _, s := range c.held {
		if now, known := l.segments.Get(s.space.scope); known && now != s {
			now.expire() // this one left the memory before the commit
		}
	}
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

// A cellChange is what a step changed in the cell of an arm. Several outcomes of a step may be on
// one cell; the receipt has the cell as it is after all of them.
type cellChange struct {
	made   []evidence.Observation
	fewer  int             // the outcomes that were taken back
	before []evidence.Part // if the cell was read
	known  bool
	is     evidence.Sums // what the cell counts for now
}

// learned updates the memory of the segments by a receipt. It goes over the credits twice. The
// first pass collects what changed in each cell, and finds the duplicates. The second updates the
// memory, if the cell's count in the receipt is the count before plus this step's own outcomes. If
// it is not, another process committed in between, and the difference can't be computed from the
// receipt.
func (c *crediting) learned(l *Learner, r store.Receipt) {
	changes := make(map[evidence.Cell]*cellChange)
	for _, one := range c.credits {
		if len(one.made) == 0 {
			continue
		}
		*one.did = Applied
		if r.Duplicate || slices.Contains(r.Duplicates, one.made[0].ID) {
			*one.did = Duplicate
		}
		cell := one.cell()
		of := changes[cell]
		if of == nil {
			of = &cellChange{}
			changes[cell] = of
		}
		if len(one.withdraw) > 0 && !slices.Contains(r.Kept, one.withdraw[0]) {
			one.sampled--
		}
		if of.fewer -= one.sampled; one.known && !of.known {
			of.known, of.before = true, one.before
		}
		if *one.did == Applied {
			of.made = append(of.made, one.made[0])
		}
	}
	for _, one := range c.credits {
		if *one.did != Applied {
			continue
		}
		if c.bulk {
			for i := range one.made {
				if parts := l.sources.count(&one.made[i]); parts >= fair.MostParts {
					one.segment.sources.saw(parts) // and no fewer, because other cells were not seen
				}
			}
			one.segment.expire()
			continue
		}
		one.sampled++
		for i := range one.made {
			one.segment.sources.saw(len(partsOf(r.Parts, one.made[i].Cell)))
		}
		of := changes[one.cell()]
		after := countOf(partsOf(r.Parts, one.cell()))
		if of.known && after != countOf(of.before)+uint64(len(of.made))-uint64(of.fewer) {
			one.segment.expire() // another commit came in between
			continue
		}
		l.learn(one, r.Parts, of, c.now)
	}
	for _, s := range c.expires {
		s.expire()
	}
}

// learn updates the memory of a segment by an outcome. The first outcome on a cell updates the
// model for all. The memory is updated by a difference: what the cell was worth for the segment
// before and what it is worth after. The model takes both, so an outcome costs the same in a small
// segment and a large one.
func (l *Learner) learn(c *credit, parts []evidence.Part, of *cellChange, now time.Time) {
	s, arm, at := c.segment, l.index[c.Choice.Arm], evidence.InstantOf(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes(c.Choice.Item, arm, l.sampleItems)
	if !l.cfg.IgnoreChanges && !byVector(&c.Choice) {
		s.latest.add(&c.made[0], c.Choice.Item, arm, len(l.cfg.Arms))
	}
	l.learnLinear(c)
	if s.model == nil {
		return
	}
	scale := scaleOf(s.total, l.cfg.MinConfidence)
	// A silence that was loaded and then taken back elsewhere may be taken away twice, so the count
	// stops at 0.
	s.samples[arm] = uint64(max(int64(s.samples[arm])+int64(c.sampled), 0))
	for i, v := range l.values {
		if v.arm == c.Choice.Arm && v.Value == c.Choice.Parameter(v.Name) {
			of := partsOf(parts, s.space.parameter(v.arm, v.Setting))
			s.parameters[i] = parameterSampler(s.crowd.Pool(of, at), scale)
		}
	}
	first := c.made[0].ID == of.made[0].ID
	after := partsOf(parts, c.made[0].Cell)
	if first {
		of.is = s.crowd.Share(arm, after, at)
	}
	if s.crowd.Add(arm, c.made[0].Source, c.weight(), of.is.Mass) {
		s.loaded = time.Time{} // the next load computes the limits again
	}
	if !first {
		return
	}
	is := of.is
	was, ok := s.crowd.Share(arm, of.before, at), of.known
	if !ok {
		was, ok = s.shareWithout(arm, after, of.made, at)
	}
	loaded := s.loaded
	// the model is made again if an observation from before a restart had no effect, or the model
	// panics or drifts
	s.loaded = time.Time{}
	if !ok {
		return
	}
	s.total = sumsWithout(s.total.Plus(is), was)
	drifted := len(l.values) > 0 && aged(scaleOf(s.total, l.cfg.MinConfidence)/s.scale)
	if !s.model.Update(arm, was, is) && !drifted {
		s.loaded = loaded
	}
}

// shareWithout returns what a cell was for the segment before the observations. It reports false if
// the observations are not there. Parts may be very many, so it takes the observations out of them
// and puts them back. A caller uses it if the cell was not read before the commit. The parts belong
// to the receipt, so they must be as before when it returns.
func (s *segment) shareWithout(
	arm int, parts []evidence.Part, observations []evidence.Observation, now evidence.Instant,
) (was evidence.Sums, ok bool) {
	type change struct {
		at   int
		part evidence.Part
	}
	var taken []change
	defer func() {
		for _, c := range slices.Backward(taken) {
			parts[c.at] = c.part
		}
	}()
	for _, o := range observations {
		i := 0
		if len(parts) != 1 || parts[0].Channel != o.Channel || parts[0].Source != o.Source {
			i = slices.IndexFunc(parts, func(p evidence.Part) bool {
				return p.Channel == o.Channel && p.Source == o.Source
			})
		}
		if i < 0 {
			return was, false
		}
		t := &parts[i].Tally
		n := t.Neutral.N
		switch {
		case o.Reward > 0.5:
			n = t.Positive.N
		case o.Reward < 0.5:
			n = t.Negative.N
		}
		if n == 0 {
			return was, false
		}
		taken = append(taken, change{i, parts[i]})
		t.Take(o.Weight, o.Share, o.Reward, evidence.InstantOf(o.At))
	}
	return s.crowd.Share(arm, parts, now), true
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
