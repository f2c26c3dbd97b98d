package strategy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// ObserveIn does what [Learner.Observe] does as a part of a step, so that a host can commit its own
// records together with an outcome. The disposition is final when [store.Do] has returned.
func (l *Learner) ObserveIn(tx *store.Tx, o Outcome) (_ *Disposition, err error) {
	defer because(&err, "observe")
	now, did := l.cfg.Now(), new(Disposition)
	if o.At.IsZero() {
		o.At = now
	}
	if err := l.validateOutcome(&o, now); err != nil {
		return nil, err
	}
	if *did = Dropped; l.drops(o.Confidence) {
		return did, nil
	}
	s, err := l.segment(o.Choice.Category, o.Choice.Context)
	if err != nil {
		return nil, err
	}
	step := l.stepOf(tx, now)
	c := &credit{Outcome: &o, segment: s}
	if err := l.readIntoStep(tx, c, now); err != nil {
		return nil, err
	}
	if c.kept.revision > 0 && knows(c.kept.Answer, o.ID) || step.has(l.evidenceID(&o)) {
		*did = Duplicate
		step.told = append(step.told, told{o, did})
		return did, nil
	}
	b := l.batch(s, &o, observed)
	b.Withdraw = c.withdraw
	if c.kept.revision > 0 {
		b.Records = append(b.Records, l.write(&c.kept, settled(c.kept.Answer, o.result())))
	}
	if err := l.emitObserved(&b, &o); err != nil {
		return nil, err
	}
	*did, c.made, c.follows = Applied, b.Observations, true
	step.credits, step.told = append(step.credits, c), append(step.told, told{o, did})
	b.ID = "" // the step may add more
	tx.Add(b)
	return did, nil
}

// readIntoStep reads the record of an outcome's choice, and the cell that must be known.
func (l *Learner) readIntoStep(tx *store.Tx, c *credit, now time.Time) (err error) {
	if !l.cfg.Unrecorded && !c.Choice.Fallback() {
		places := l.places(&c.Choice)
		tx.Want(store.Wants{Refs: places, Cells: []evidence.Cell{c.cell()}})
		read := make([]store.Record, len(places))
		for i, ref := range places {
			if read[i], err = tx.Get(ref); err != nil {
				return err
			}
		}
		if c.kept, err = l.among(&c.Choice, read); err != nil {
			return err
		}
		if known := c.kept.revision > 0; known && c.kept.Choice.Silent ||
			!known && l.overdue(&c.Choice, now) {
			c.withdraw = l.silences(&c.Choice)
		}
	}
	if c.known = len(c.withdraw) > 0 || l.cfg.Change.FalseAlarms > 0; c.known {
		c.before, err = partsIn(tx, c.cell())
	}
	return err
}

// partsIn returns the parts of a cell as a step has read them.
func partsIn(tx *store.Tx, cell evidence.Cell) ([]evidence.Part, error) {
	var read store.Snapshot
	err := tx.Read(&read, []evidence.Cell{cell}, nil)
	return read.Parts, err
}

// CreditWants names what [Learner.CreditIn] reads for an answer.
func (l *Learner) CreditWants(a *answer.Answer) (w store.Wants) {
	c := a.Choice
	if c == nil || c.Learner != l.cfg.Name || len(c.Credits) == 0 && l.cfg.Change.FalseAlarms == 0 {
		return w
	}
	if s, err := l.segment(c.Category, c.Context); err == nil {
		w.Cells = []evidence.Cell{s.space.arm(c.Item, c.Arm)}
	}
	return w
}

// CreditIn brings the evidence on an answer's arm in line with [answer.Answer.ForArm], as a part of
// a step. Each part is an outcome, with all that the answer took. CreditIn compares the parts with
// a.Choice.Credits, observes those that are new, takes back those that no longer hold, with an
// entry in the audit, and updates a.Choice. The caller puts the answer's record.
//
// An answer of another learner stays as it is. An arm that is no longer configured is credited with
// nothing new. If what was credited before can't be taken back, because the store's history no
// longer has it, or a part can't be observed, for example because [Config].Reward has failed,
// nothing changes for the arm and all else of the step is committed. Then stands points to the
// reason, an [evidence.ErrForgotten] in the first case, when [store.Do] has returned; it points to
// nil otherwise.
func (l *Learner) CreditIn(tx *store.Tx, a *answer.Answer) (stands *error, err error) {
	defer because(&err, "credit")
	stands = new(error)
	if a.Choice == nil {
		return stands, nil
	}
	p := l.plan(a, a.Choice)
	if len(p.gone)+len(p.next) == 0 {
		p.apply(a)
		return stands, nil
	}
	step := l.stepOf(tx, l.cfg.Now())
	if had := step.before(a); had != a.Choice {
		// The step has credited the answer already, and nothing of that is committed.
		p = l.plan(a, had)
	}
	switch {
	case a.Choice.Learner != l.cfg.Name:
		step.fails(a)
		return stands, nil
	case !l.isArm(a.Choice.Arm) && len(p.next) > 0:
		step.fails(a)
		p.withoutNext()
	}
	if *stands, err = l.possible(tx, step, p); err != nil || *stands != nil {
		return stands, err
	}
	step.plan(a.ID, p)
	p.apply(a)
	return stands, nil
}

// possible reads what a plan needs. It returns why the plan is not possible, if it is not.
func (l *Learner) possible(tx *store.Tx, step *crediting, p *creditPlan) (stands, err error) {
	for _, o := range p.next {
		if fault := l.validateOutcome(o, step.now); fault != nil {
			return fault, nil
		}
	}
	if p.segment, stands = l.segment(p.choice.Category, p.choice.Context); stands != nil {
		return stands, nil
	}
	if there, err := l.takesBack(tx.Context(), p); err != nil {
		return nil, err
	} else if !there {
		return fmt.Errorf("an outcome can't be replaced: %w", evidence.ErrForgotten), nil
	}
	if p.known = len(p.gone) > 0 || l.cfg.Change.FalseAlarms > 0; p.known {
		p.before, err = partsIn(tx, p.cell())
	}
	return nil, err
}

var errNoArm = errors.New("the learner has no such arm, so the outcome is dropped")

// creditID returns the id of the outcome that a credit of an answer is.
func creditID(a *answer.Answer, number uint64) string { return fmt.Sprintf("%s/%d", a.ID, number) }

// A creditPlan is how the credits of an answer change.
type creditPlan struct {
	choice  Choice
	segment *segment
	before  []evidence.Part // of the arm's cell, if it is known
	known   bool
	actor   string
	told    uint64
	credits []answer.ArmCredit // as they are after it
	gone    []Result           // what is to be taken back
	next    []*Outcome         // what is to be observed, or dropped
	counts  []*Outcome         // what is to be observed
	revises bool
}

// cell returns the cell of the arm.
func (p *creditPlan) cell() evidence.Cell {
	return p.segment.space.arm(p.choice.Item, p.choice.Arm)
}

// plan compares what counts for the arm of an answer with the credits that it had.
func (l *Learner) plan(a *answer.Answer, had *answer.Choice) *creditPlan {
	p := &creditPlan{choice: ChoiceOf(a.Choice), actor: a.Changer(), told: had.Told}
	before, cost := slices.Clone(had.Credits), reportedCost(a)
	for _, part := range a.ForArm() {
		is := answer.ArmCredit{
			Of: part.Of, Value: part.Value, Trust: part.Trust, Share: part.Share, Cost: cost,
			Dropped: l.drops(part.Trust),
		}
		i := slices.IndexFunc(before, func(was answer.ArmCredit) bool {
			was.Number, was.Dropped = is.Number, is.Dropped
			return was == is
		})
		if i >= 0 {
			p.credits, before = append(p.credits, before[i]), slices.Delete(before, i, i+1)
			continue
		}
		p.told++
		is.Number = p.told
		o := l.outcomeOf(a, &part)
		o.Choice, o.ID = p.choice, creditID(a, is.Number)
		p.credits, p.next = append(p.credits, is), append(p.next, &o)
		if !is.Dropped {
			p.counts = append(p.counts, &o)
		}
	}
	p.revises = len(p.next) > 0
	for _, was := range before {
		if !was.Dropped {
			p.gone = append(p.gone, Result{
				ID: creditID(a, was.Number), Value: was.Value, Confidence: was.Trust * was.Share,
				At:   a.Choice.At,
				Cost: was.Cost,
			})
		}
	}
	return p
}

// withoutNext leaves out what would be observed.
func (p *creditPlan) withoutNext() {
	first := p.told - uint64(len(p.next))
	p.credits = slices.DeleteFunc(p.credits, func(c answer.ArmCredit) bool {
		return c.Number > first
	})
	p.next, p.counts, p.revises = nil, nil, false
}

// apply notes the credits in the answer.
func (p *creditPlan) apply(a *answer.Answer) {
	if a.Choice.Told == p.told && slices.Equal(a.Choice.Credits, p.credits) {
		return
	}
	c := *a.Choice
	c.Told, c.Credits = p.told, p.credits
	a.Choice = &c
}

// outcomeOf returns a part of an answer's worth as an outcome. Each has all that the answer took,
// because its value is weighed against that.
func (l *Learner) outcomeOf(a *answer.Answer, p *answer.ArmPart) Outcome {
	o := Outcome{
		Value: p.Value, Confidence: p.Trust, Share: p.Share, Channel: p.Channel, Source: p.Source,
		At:   p.At,
		Cost: reportedCost(a),
	}
	if o.At.Before(a.Choice.At) {
		// an event may be reported long after it happened, and its arm be chosen then
		o.At = a.Choice.At
	}
	if a.Reply != nil {
		took := a.Reply.Spent
		o.Cost, o.Latency, o.Tokens = o.Cost+took.Cost, took.Latency, took.Tokens
	}
	return o
}

// reportedCost returns what the reported outcome that counts says that the answer cost.
func reportedCost(a *answer.Answer) float64 {
	if s := a.Outcome(); s != nil && s.Spent != nil {
		return s.Spent.Cost
	}
	return 0
}

// recredit adds to a step what takes outcomes back and what observes others.
func (l *Learner) recredit(tx *store.Tx, step *crediting, p *creditPlan) (err error) {
	s := p.segment
	var b store.Batch
	if len(p.gone) > 0 {
		r := &retraction{choice: &p.choice, actor: p.actor, reason: "withdrawn", next: p.counts}
		for _, gone := range p.gone {
			r.ids = append(r.ids, gone.ID)
		}
		if p.revises {
			r.revises, r.reason, r.name = true, "another outcome takes its place", p.next[0].ID
		}
		if len(p.counts) > 0 {
			r.name = p.counts[0].ID
		}
		if b, err = l.correction(s, r, p.gone); err != nil {
			return err
		}
		step.takes(s, len(p.counts) == 0, b.Retract)
		b.ID, b.PartsOf = "", store.CellsOf(b.Observations...)
		tx.Add(b)
	}
	for i, o := range p.counts {
		own := l.batch(s, o, observed)
		c := &credit{
			Outcome: o, segment: s, before: p.before, known: p.known, made: own.Observations,
			follows: len(p.gone) == 0,
		}
		if i == 0 {
			c.sampled = -len(p.gone)
		}
		step.credits, step.told = append(step.credits, c), append(step.told, told{*o, new(Disposition)})
		if len(p.gone) > 0 {
			continue // the correction observes it
		}
		if err := l.emitObserved(&own, o); err != nil {
			return err
		}
		own.ID = ""
		tx.Add(own)
	}
	return nil
}

// A crediting is what the learner credits in one run of a step.
type crediting struct {
	now     time.Time
	had     map[string]*answer.Choice // the choices of answers before the step
	plans   map[string]*creditPlan    // by answer
	order   []string                  // of the plans
	credits []*credit
	told    []told
	failed  []error
	expires []*segment // what was taken back has no parts in the receipt
	gone    []string   // the ids of what is taken back
	held    []*segment // that no load may end for
}

// told is an outcome that the observer is notified of when the step is over.
type told struct {
	Outcome
	did *Disposition
}

// has reports whether the step observes an outcome already.
func (c *crediting) has(id string) bool {
	return slices.ContainsFunc(c.credits, func(one *credit) bool { return one.made[0].ID == id })
}

// before returns the choice of an answer as it was before the step.
func (c *crediting) before(a *answer.Answer) *answer.Choice {
	if c.had == nil {
		c.had, c.plans = make(map[string]*answer.Choice), make(map[string]*creditPlan)
	}
	if c.had[a.ID] == nil {
		c.had[a.ID] = a.Choice
	}
	return c.had[a.ID]
}

// fails notes that the arm of an answer can't be credited.
func (c *crediting) fails(a *answer.Answer) {
	c.failed = append(c.failed, fmt.Errorf("credit the arm %s of %s: %w",
		a.Choice.Arm, a.ID, errNoArm))
}

// plan notes how the credits of an answer change in the step.
func (c *crediting) plan(id string, p *creditPlan) {
	if c.plans[id] == nil {
		c.order = append(c.order, id)
	}
	c.plans[id] = p
}

func (c *crediting) takes(s *segment, expires bool, ids []string) {
	if c.gone = append(c.gone, ids...); expires {
		c.expires = append(c.expires, s)
	}
}

// segments returns all segments whose evidence changes.
func (c *crediting) segments() []*segment {
	all := slices.Clone(c.expires)
	for _, one := range c.credits {
		all = append(all, one.segment)
	}
	return all
}

type stepKey struct{ *Learner }

// stepOf returns what the learner credits in this run of a step. From the commit on no load of the
// segments ends until the memory is up to date.
func (l *Learner) stepOf(tx *store.Tx, now time.Time) *crediting {
	return tx.State(stepKey{l}, func() any {
		c := &crediting{now: now}
		tx.Before(func() (err error) {
			for _, id := range c.order {
				if err := l.recredit(tx, c, c.plans[id]); err != nil {
					return err
				}
			}
			c.held, err = observe(tx.Context(), c.segments()...)
			return err
		})
		tx.Again(func(err error) bool {
			return (errors.Is(err, evidence.ErrForgotten) || errors.Is(err, heed.ErrNotFound)) &&
				l.doubts.add(c.gone)
		})
		tx.Then(func(r store.Receipt, err error) { l.credited(tx.Context(), c, r, err) })
		return c
	}).(*crediting)
}

// credited updates the memory of the segments after a commit, and does what follows from outcomes.
func (l *Learner) credited(ctx context.Context, c *crediting, r store.Receipt, err error) {
	if err != nil {
		for _, s := range c.segments() {
			if !refused(err) {
				s.expire() // the reply may be lost, and the outcomes counted all the same
			}
		}
		leave(c.held)
		return
	}
	c.learned(l, r)
	leave(c.held)
	for _, err := range c.failed {
		l.watch.Failed(ctx, "credit", err)
	}
	for i := range c.told {
		if l.watch != nil {
			l.tell(ctx, c.now, []Outcome{c.told[i].Outcome}, []Disposition{*c.told[i].did})
		}
	}
	for _, one := range c.credits {
		if !one.follows || slices.Contains(r.Duplicates, one.made[0].ID) {
			continue
		}
		if err := l.followUp(ctx, one, c.now); err != nil {
			one.segment.expire() // it is counted: the next load from the store mends the memory
			l.watch.Failed(ctx, "after an outcome", err)
		}
	}
}

// learned brings the memory of the segments in line with a receipt.
func (c *crediting) learned(l *Learner, r store.Receipt) {
	made := make(map[evidence.Cell][]evidence.Observation) // on the cells of arms
	fewer := make(map[evidence.Cell]int)                   // the outcomes that were taken back
	before := make(map[evidence.Cell][]evidence.Part)
	known := make(map[evidence.Cell]bool)
	for _, one := range c.credits {
		cell := one.cell()
		if fewer[cell] -= one.sampled; len(one.withdraw) > 0 &&
			!slices.Contains(r.Kept, one.withdraw[0]) {
			fewer[cell]++
			one.sampled--
		}
		if one.known && !known[cell] {
			known[cell], before[cell] = true, one.before
		}
		if !slices.Contains(r.Duplicates, one.made[0].ID) {
			made[cell] = append(made[cell], one.made[0])
		}
	}
	for i, one := range c.credits {
		cell, did := one.cell(), c.did(one)
		if *did = Applied; slices.Contains(r.Duplicates, one.made[0].ID) {
			*did = Duplicate
			continue
		}
		one.parts, one.known, one.before = r.Parts, known[cell], before[cell]
		one.sampled++
		after := countOf(partsOf(r.Parts, cell))
		if known[cell] && after != countOf(one.before)+uint64(len(made[cell]))-uint64(fewer[cell]) {
			c.credits[i].segment.expire() // another commit came in between
			continue
		}
		l.learn(one, c.now, made[cell])
	}
	for _, s := range c.expires {
		s.expire()
	}
}

// did returns where the disposition of a credit is.
func (c *crediting) did(one *credit) *Disposition {
	for i := range c.told {
		if t := &c.told[i]; t.Choice.ID == one.Choice.ID && t.ID == one.ID {
			return t.did
		}
	}
	return new(Disposition)
}

// doubts are ids of evidence that a store may be unable to take back.
type doubts struct {
	mu  sync.Mutex
	ids map[string]bool
}

// maxDoubts bounds the ids that are remembered. An id that is dropped is added again by the next
// commit that fails.
const maxDoubts = 10_000

// add reports whether any of the ids is new.
func (d *doubts) add(ids []string) (added bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if d.ids[id] {
			continue
		}
		if d.ids == nil || len(d.ids) >= maxDoubts {
			d.ids = make(map[string]bool)
		}
		d.ids[id], added = true, true
	}
	return added
}

func (d *doubts) has(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids[id]
}

// takesBack reports whether the store can take back what a plan takes back. It looks into the
// store's history only if a commit has failed before, because that costs a round trip.
func (l *Learner) takesBack(ctx context.Context, p *creditPlan) (bool, error) {
	var ids []string
	for _, gone := range p.gone {
		if id := l.evidenceID(&Outcome{Choice: p.choice, ID: gone.ID}); l.doubts.has(id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return true, nil
	}
	for o, err := range l.cfg.Store.History(ctx, p.cell()) {
		if err != nil {
			return false, err
		}
		if ids = slices.DeleteFunc(ids, func(id string) bool { return id == o.ID }); len(ids) == 0 {
			return true, nil
		}
	}
	return false, nil
}
