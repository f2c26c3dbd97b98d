package strategy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// CreditWants names what [Learner.CreditIn] reads for an answer. Name them together with the step's
// other wants, so that the step has one round trip.
func (l *Learner) CreditWants(a *answer.Answer) (w store.Wants) {
	c := a.Choice
	if c == nil || c.Learner != l.cfg.Name {
		return w
	}
	if s, err := l.segment(c.Category, c.Context); err == nil {
		choice := ChoiceOf(c)
		w = s.sourceWants(&choice)
	}
	return w
}

// CreditIn brings the evidence on an answer's arm in line with what its statements are worth,
// within a step. Each part is an outcome, with the cost and latency of the whole answer. CreditIn
// compares the parts with a.Choice.Credits, observes those that are new, takes back those that no
// longer hold, with an entry in the audit, and updates a.Choice. The caller puts the answer's
// record.
//
// An answer of another learner stays as it is. An arm that is no longer configured gets no new
// credit. If what was credited before can't be taken back, because the store's history no longer
// has it, or a part can't be observed, for example because [Config].Reward failed, the arm keeps
// its credit and all else of the step is committed. Then stands points to the reason, an
// [evidence.ErrForgotten] in the first case, when [store.Do] returned; it points to nil
// otherwise.
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
	i, planned := step.planned[a.ID]
	if planned {
		// The step has credited the answer already, and that is not committed yet.
		p = l.plan(a, step.plans[i].had)
	}
	if a.Choice.Learner != l.cfg.Name || !l.isArm(a.Choice.Arm) && len(p.next) > 0 {
		step.failed = append(step.failed, fmt.Errorf("credit the arm %s of %s: %w",
			a.Choice.Arm, a.ID, errNoArm))
		if a.Choice.Learner != l.cfg.Name {
			return stands, nil
		}
		p.withoutNext()
	}
	if *stands, err = l.possible(tx, step, p); err != nil || *stands != nil {
		return stands, err
	}
	if planned {
		step.plans[i] = p
	} else {
		step.planned[a.ID] = len(step.plans)
		step.plans = append(step.plans, p)
	}
	p.apply(a)
	return stands, nil
}

// possible reads what a plan needs. It returns why the plan is not possible, if it is not. A fault
// of the plan itself is returned as stands, because the rest of the step goes on without it. An
// error of the store is returned as err and ends the step.
func (l *Learner) possible(tx *store.Tx, step *crediting, p *creditPlan) (stands, err error) {
	for _, o := range p.next {
		if fault := l.validateOutcome(o, step.now); fault != nil {
			return fault, nil
		}
	}
	if p.segment, stands = l.segment(p.choice.Category, p.choice.Context); stands != nil {
		return stands, nil
	}
	there, err := l.takesBack(tx.Context(), p)
	if err == nil && !there {
		stands = fmt.Errorf("an outcome can't be replaced: %w", evidence.ErrForgotten)
	}
	return stands, err
}

var errNoArm = errors.New("the learner has no such arm, so the outcome is dropped")

// creditID returns the id of the outcome that a credit of an answer is.
func creditID(a *answer.Answer, number uint64) string { return fmt.Sprintf("%s/%d", a.ID, number) }

// A creditPlan is how the credits of an answer change: which of its outcomes stay, go, and come. A
// second plan for the same answer in one step replaces the first.
type creditPlan struct {
	choice Choice
	// had is the choice before the step. A second plan is computed from it, because the first plan is
	// not committed.
	had     *answer.Choice
	segment *segment
	actor   string
	// numbered is the number of the last outcome that the answer ever had. Numbers are not reused, so
	// an outcome that comes back gets an id that the store has not seen.
	numbered uint64
	credits  []answer.ArmCredit // as they are after it
	// gone is what is to be taken back. Dropped credits are never in it, because they were not
	// observed.
	gone   []Result
	next   []*Outcome // what is to be observed, or dropped
	counts []*Outcome // what is to be observed
	// revises reports that outcomes come, whether or not one of them counts.
	revises bool
}

// plan compares what counts for the arm of an answer with the credits that it had. A part that is
// the same as before in all that the evidence depends on keeps its credit and number, so a
// statement that changes one person's part does not touch the parts of others.
func (l *Learner) plan(a *answer.Answer, had *answer.Choice) *creditPlan {
	p := &creditPlan{
		choice: ChoiceOf(a.Choice), had: had, actor: answers.Changer(a), numbered: had.Told,
	}
	before, cost := slices.Clone(had.Credits), reportedCost(a)
	for _, part := range answers.ForArm(a) {
		is := answer.ArmCredit{
			Of: part.Of, Value: part.Value, Trust: part.Trust, Share: part.Share, Cost: cost,
			Dropped: l.drops(part.Trust),
		}
		i := slices.IndexFunc(before, func(was answer.ArmCredit) bool {
			// Numbers and whether it was dropped do not make a part different.
			was.Number, was.Dropped = is.Number, is.Dropped
			return was == is
		})
		if i >= 0 {
			p.credits, before = append(p.credits, before[i]), slices.Delete(before, i, i+1)
			continue
		}
		p.numbered++
		is.Number = p.numbered
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
				At: a.Choice.At, Cost: was.Cost,
			})
		}
	}
	return p
}

// withoutNext leaves out what would be observed. It serves an arm that is no longer configured: old
// credit may be withdrawn, but no new one is given.
func (p *creditPlan) withoutNext() {
	first := p.numbered - uint64(len(p.next))
	p.credits = slices.DeleteFunc(p.credits, func(c answer.ArmCredit) bool {
		return c.Number > first
	})
	p.next, p.counts, p.revises = nil, nil, false
}

// apply notes the credits in the answer. The answer's Choice is copied first, because other answers
// or a cache may share it.
func (p *creditPlan) apply(a *answer.Answer) {
	if a.Choice.Told == p.numbered && slices.Equal(a.Choice.Credits, p.credits) {
		return
	}
	c := *a.Choice
	c.Told, c.Credits = p.numbered, p.credits
	a.Choice = &c
}

// outcomeOf returns a part of an answer's worth as an outcome. Each has all that the answer took,
// because its value is weighed against that.
func (l *Learner) outcomeOf(a *answer.Answer, p *answers.ArmPart) Outcome {
	o := Outcome{
		Value: p.Value, Confidence: p.Trust, Share: p.Share, Channel: p.Channel, Source: p.Source,
		At: p.At, Cost: reportedCost(a),
	}
	if o.At.Before(a.Choice.At) {
		// an event may be reported long after it happened, and its arm be chosen then
		o.At = a.Choice.At
	}
	// If the clock was put back since, the store would refuse the time.
	if latest := l.cfg.Now().Add(evidence.MaxSkew); o.At.After(latest) {
		o.At = latest
	}
	if a.Reply != nil {
		took := a.Reply.Spent
		o.Cost, o.Latency, o.Tokens = o.Cost+took.Cost, took.Latency, took.Tokens
	}
	return o
}

// reportedCost returns the cost of the answer in the reported outcome that counts.
func reportedCost(a *answer.Answer) float64 {
	if s := answers.OutcomeOf(a); s != nil && s.Spent != nil {
		return s.Spent.Cost
	}
	return 0
}

// recredit adds to a step what takes outcomes back and what observes others. They are in one batch,
// so that no reader sees the arm without both.
func (l *Learner) recredit(tx *store.Tx, step *crediting, p *creditPlan) error {
	s := p.segment
	var replaces []string
	if len(p.gone) > 0 {
		b, err := l.correction(s, p.retraction(), p.gone)
		if err != nil {
			return err
		}
		replaces, step.gone = b.Retract, append(step.gone, b.Retract...)
		if len(p.counts) == 0 {
			step.expires = append(step.expires, s)
		}
		b.ID = ""
		tx.Add(b)
	}
	for _, o := range p.counts {
		own, err := l.batch(tx, s, o, observed)
		if err == nil {
			err = l.emitObserved(&own, o)
		}
		if err != nil {
			return err
		}
		step.credits = append(step.credits, &credit{
			Outcome: o, segment: s, did: new(Disposition), made: own.Observations, replaces: replaces,
		})
		if own.ID = ""; step.bulk != nil {
			own.PartsOf = nil
		}
		tx.Add(own)
	}
	return nil
}

// retraction returns how the outcomes that no longer hold are taken back.
func (p *creditPlan) retraction() *retraction {
	r := &retraction{choice: &p.choice, actor: p.actor, reason: "withdrawn"}
	for _, gone := range p.gone {
		r.ids = append(r.ids, gone.ID)
	}
	if p.revises {
		r.revises, r.reason = true, another
	}
	return r
}

// takesBack reports whether the store can take back what a plan takes back. It looks into the
// store's history only if a commit failed before, because that costs a round trip.
func (l *Learner) takesBack(ctx context.Context, p *creditPlan) (bool, error) {
	var ids []string
	for _, gone := range p.gone {
		id := l.evidenceID(&Outcome{Choice: p.choice, ID: gone.ID})
		if _, doubtful := l.doubts.Get(id); doubtful {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return true, nil
	}
	for o, err := range l.cfg.Store.History(ctx, p.segment.space.arm(p.choice.Item, p.choice.Arm)) {
		if err != nil {
			return false, err
		}
		if ids = slices.DeleteFunc(ids, func(id string) bool { return id == o.ID }); len(ids) == 0 {
			return true, nil
		}
	}
	return false, nil
}
