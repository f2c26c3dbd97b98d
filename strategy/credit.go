package strategy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/spread"
	"github.com/heedhq/heed/store"
)

// A credit is an outcome on its way into the store.
type credit struct {
	*Outcome
	index   int // among the outcomes
	segment *segment
	kept    keptChoice // the record of the choice; Revision 0: there is none

	before []evidence.Part // of the arm's cell, where it was read
	// whether to use before: evidence was taken away, or may not count
	known    bool
	withdraw []string               // the silence to take back
	made     []evidence.Observation // the first is on the arm, and all have the id of the batch or one of their own
	parts    []evidence.Part        // of their cells, after the commit
	sampled  int                    // by how many outcomes the arm has more
	follows  bool                   // in a step: whether a copy or a change may follow
}

// An ending is a session that ends in the commit of outcomes, once for its id.
type ending struct{ session, id string }

// credit counts outcomes, which are valid, and ends a session, in one commit.
func (l *Learner) credit(ctx context.Context, now time.Time, outcomes []Outcome, end ending) ([]Disposition, error) {
	dispositions := make([]Disposition, len(outcomes))
	credits := make([]credit, 0, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		if dispositions[i] = Dropped; l.drops(o.Confidence) {
			continue
		}
		s, err := l.segment(o.Choice.Category, o.Choice.Context)
		if err != nil {
			return nil, err
		}
		credits = append(credits, credit{Outcome: o, index: i, segment: s})
	}
	if l.cfg.Unrecorded {
		end.session, end.id = "", ""
	}
	if len(credits) == 0 && end.session == "" {
		return dispositions, nil
	}
	if err := l.apply(ctx, now, credits, end, dispositions); err != nil {
		return nil, err
	}
	for i := range credits {
		if c := &credits[i]; dispositions[c.index] == Applied {
			if err := l.followUp(ctx, c, now); err != nil {
				c.segment.expire() // it is counted: the next load from the store mends the memory
				l.watch.Failed(ctx, "after an outcome", err)
			}
		}
	}
	if l.watch != nil {
		l.tell(ctx, now, outcomes, dispositions)
	}
	return dispositions, nil
}

// tell tells the observer of outcomes that were counted, now or before.
func (l *Learner) tell(ctx context.Context, now time.Time, outcomes []Outcome, dispositions []Disposition) {
	for i := range outcomes {
		o, c := &outcomes[i], &outcomes[i].Choice
		switch dispositions[i] {
		case Applied:
			l.watch.Tell(ctx, heed.Observed{
				Component: l.watch.Name(), At: now, ID: c.ID.String(), Category: c.Category, Context: c.Context, Item: c.Item, Arm: string(c.Arm),
				Channel: o.Channel, Reward: (o.worth + 1) / 2, Confidence: o.weight(),
			})
		case Duplicate:
			l.watch.Tell(ctx, heed.Duplicate{Component: l.watch.Name(), At: now, What: "outcome", ID: c.ID.String()})
		case Dropped:
		}
	}
}

// apply commits and tells the memory of the segments. No load ends before it returns.
func (l *Learner) apply(ctx context.Context, now time.Time, credits []credit, end ending, dispositions []Disposition) error {
	all := make([]*segment, len(credits))
	for i := range credits {
		all[i] = credits[i].segment
	}
	all, err := observe(ctx, all...)
	if err != nil {
		return err
	}
	defer leave(all)
	receipts, err := l.commit(ctx, now, credits, end, false)
	if raced(err) {
		receipts, err = l.commitAgain(ctx, now, credits, end, err)
	}
	if err != nil {
		expire(credits, err)
		return err
	}
	for i := range credits {
		c := &credits[i]
		c.parts = receipts[i].Parts
		if dispositions[c.index] = Duplicate; !receipts[i].Duplicate {
			dispositions[c.index], c.sampled = Applied, c.sampled+1
		}
	}
	if len(credits) == 1 && dispositions[credits[0].index] == Applied {
		l.learn(&credits[0], now, credits[0].made[:1])
		return nil
	}
	made := make(map[evidence.Cell][]evidence.Observation) // on the cells of arms
	for i := range credits {
		if o := credits[i].made[0]; dispositions[credits[i].index] == Applied {
			made[o.Cell] = append(made[o.Cell], o)
		}
	}
	for i := range credits {
		if c := &credits[i]; dispositions[c.index] == Applied {
			l.learn(c, now, made[c.made[0].Cell])
		}
	}
	return nil
}

// commitAgain commits as the rules of [store.Do] have it after a first attempt has failed.
func (l *Learner) commitAgain(
	ctx context.Context, now time.Time, credits []credit, end ending, err error,
) (receipts []store.Receipt, _ error) {
	expire(credits, err)
	err = store.Do(ctx, l.cfg.Store, func(*store.Tx) (err error) {
		if receipts, err = l.commit(ctx, now, credits, end, true); err != nil {
			expire(credits, err)
		}
		return err
	})
	return receipts, err
}

// expire has the segments of outcomes read again unless an error reports that the outcomes were not
// counted.
func expire(credits []credit, err error) {
	for i := range credits {
		if !refused(err) {
			// the reply may be lost, and the outcome counted all the same
			credits[i].segment.expire()
		}
	}
}

// refused reports whether an error says that a store has not taken what it was given.
func refused(err error) bool {
	return isInputError(err) || errors.Is(err, heed.ErrConflict) || errors.Is(err, evidence.ErrFull) ||
		errors.Is(err, heed.ErrNotFound) || errors.Is(err, evidence.ErrForgotten)
}

// observe lets no load of the segments end until the caller has left those that it returns.
func observe(ctx context.Context, all ...*segment) ([]*segment, error) {
	if len(all) > 1 { // in one order, as loads wait as well
		slices.SortFunc(all, func(a, b *segment) int { return strings.Compare(a.space.scope, b.space.scope) })
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

func leave(all []*segment) {
	for _, s := range all {
		<-s.observers
	}
}

// commit makes one attempt, and returns a receipt for each credit. The first attempt trusts what
// the choices know of their records.
func (l *Learner) commit(ctx context.Context, now time.Time, credits []credit, end ending, again bool) ([]store.Receipt, error) {
	session, err := l.readCredits(ctx, now, credits, end, again)
	if err != nil {
		return nil, err
	}
	rows := settledRows(credits)
	batches, withdraw, err := l.batches(credits, rows)
	if err != nil {
		return nil, err
	}
	if len(withdraw) > 0 {
		batches = slices.Insert(batches, 0, store.Batch{Withdraw: withdraw})
	}
	if end.session != "" {
		b, err := l.ended(session, end.id)
		if err != nil {
			return nil, err
		}
		batches = append(batches, b)
	}
	receipts, err := l.cfg.Store.Commit(ctx, batches...)
	if err != nil {
		return nil, err
	}
	var kept []string
	if len(withdraw) > 0 {
		kept, receipts = receipts[0].Kept, receipts[1:]
	}
	for i := range credits {
		c := &credits[i]
		if len(c.withdraw) > 0 && !slices.Contains(append(kept, receipts[i].Kept...), c.withdraw[0]) {
			c.sampled--
		}
		if rows[i] != nil && !receipts[i].Duplicate {
			c.Choice.remember(keptChoice{
				Answer: rows[i], id: c.kept.id, revision: receipts[i].Revision, place: c.kept.place,
			})
		}
	}
	return receipts[:len(credits)], nil
}

// settledRows returns the record that each credit writes. Of several outcomes of one choice, one
// writes it for all, as a commit may write a record once: the first that the record does not know,
// as what is known is not written again.
func settledRows(credits []credit) []*answer.Answer {
	rows := make([]*answer.Answer, len(credits))
	if len(credits) == 1 {
		if c := &credits[0]; c.kept.revision > 0 {
			rows[0] = settled(c.kept.Answer, c.result())
		}
		return rows
	}
	writer := make(map[ChoiceID]int, len(credits))
	for i := range credits {
		c := &credits[i]
		at, ok := writer[c.Choice.ID]
		if !ok {
			writer[c.Choice.ID] = i
			continue
		}
		w := &credits[at]
		if w.kept.revision == 0 {
			w.kept = c.kept
		}
		c.withdraw = nil // it is the writer's to take the silence back
		if w.kept.revision > 0 && knows(w.kept.Answer, w.ID) && !knows(w.kept.Answer, c.ID) {
			c.kept, c.withdraw, w.withdraw, writer[c.Choice.ID] = w.kept, w.withdraw, nil, i
		}
	}
	for _, at := range writer {
		if credits[at].kept.revision > 0 {
			rows[at] = credits[at].kept.Answer
		}
	}
	for i := range credits {
		if at := writer[credits[i].Choice.ID]; rows[at] != nil {
			rows[at] = settled(rows[at], credits[i].result())
		}
	}
	return rows
}

// batches returns a batch for each credit, and what to withdraw before them, as only the first
// batch may take evidence away.
func (l *Learner) batches(
	credits []credit, rows []*answer.Answer,
) (batches []store.Batch, withdraw []string, err error) {
	more := 0
	if len(credits) > 1 {
		more = 2 // what is withdrawn, and the end of the session
	}
	batches = make([]store.Batch, 0, len(credits)+more)
	for i := range credits {
		c := &credits[i]
		b := l.batch(c.segment, c.Outcome, observed)
		if b.Withdraw = c.withdraw; rows[i] != nil {
			b.Records = append(b.Records, l.write(&c.kept, rows[i]))
		}
		if err := l.emitObserved(&b, c.Outcome); err != nil {
			return nil, nil, err
		}
		if len(credits) > 1 {
			withdraw, b.Withdraw = append(withdraw, b.Withdraw...), nil
		}
		batches, c.made = append(batches, b), b.Observations
	}
	return batches, withdraw, nil
}

func (l *Learner) emitObserved(b *store.Batch, o *Outcome) error {
	if l.cfg.Topic == "" {
		return nil
	}
	return l.emit(b, l.observedEvent(o))
}

// observedEvent tells of an outcome that counts.
func (l *Learner) observedEvent(o *Outcome) LearnerEvent {
	result := o.result()
	return LearnerEvent{ID: observed + ":" + l.evidenceID(o), Type: observed, At: o.At, Choice: o.Choice.withoutDraws(), Result: &result}
}

// readCredits reads the records of the choices, and the cells that must be known. It reads nothing
// if the choices know their records. It returns the record of the session that ends.
func (l *Learner) readCredits(ctx context.Context, now time.Time, credits []credit, end ending, again bool) (session store.Record, err error) {
	var refs []store.Ref
	var cells []evidence.Cell
	for i := range credits {
		c := &credits[i]
		*c = credit{Outcome: c.Outcome, index: c.index, segment: c.segment}
		reads := false
		if !l.cfg.Unrecorded && !c.Choice.Fallback() {
			kept := c.Choice.details.kept.Load()
			if reads = kept == nil || again || kept.Choice.Silent; reads {
				refs = append(refs, l.places(&c.Choice)...)
			} else {
				c.kept = *kept
			}
		}
		if c.known = l.cfg.Change.FalseAlarms > 0; c.known || reads {
			cells = append(cells, c.cell())
		}
	}
	if end.session != "" {
		refs = append(refs, sessions.Ref(sessionID(l.cfg.Name, end.session)))
	}
	if len(refs)+len(cells) == 0 {
		return session, nil
	}
	slices.SortFunc(cells, evidence.Cell.Compare)
	read := &store.Snapshot{}
	if err := l.cfg.Store.Read(ctx, read, slices.Compact(cells), refs); err != nil {
		return session, err
	}
	rest := read.Records
	for i := range credits {
		c := &credits[i]
		c.before = partsOf(read.Parts, c.cell())
		if c.kept.revision > 0 || l.cfg.Unrecorded || c.Choice.Fallback() {
			continue
		}
		places := 1
		if c.Choice.Session != "" {
			places = 2
		}
		if c.kept, err = l.among(&c.Choice, rest[:places]); err != nil {
			return session, err
		}
		rest = rest[places:]
		if c.kept.revision > 0 && c.kept.Choice.Silent ||
			c.kept.revision == 0 && l.overdue(&c.Choice, now) {
			c.withdraw, c.known = l.silences(&c.Choice), true
		}
	}
	shareKnown(credits)
	if end.session != "" {
		session = rest[0]
	}
	return session, nil
}

// shareKnown makes what is known of a cell hold for all outcomes on it.
func shareKnown(credits []credit) {
	known := make(map[evidence.Cell]bool)
	for i := range credits {
		known[credits[i].cell()] = known[credits[i].cell()] || credits[i].known
	}
	for i := range credits {
		credits[i].known = known[credits[i].cell()]
	}
}

// cell returns the arm's cell.
func (c *credit) cell() evidence.Cell { return c.segment.space.arm(c.Choice.Item, c.Choice.Arm) }

// learn tells the memory of a segment what a commit has changed. The observations are all of the
// commit on the arm's cell.
func (l *Learner) learn(c *credit, now time.Time, observations []evidence.Observation) {
	s, arm, at := c.segment, l.index[c.Choice.Arm], evidence.InstantOf(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes(c.Choice.Item, arm, l.sampleItems)
	if s.model == nil {
		return
	}
	scale := scaleOf(s.total, l.cfg.MinConfidence)
	s.samples[arm] = uint64(max(int64(s.samples[arm])+int64(c.sampled), 0))
	for i, v := range l.values {
		if v.arm == c.Choice.Arm && v.Value == c.Choice.Parameter(v.Name) {
			s.parameters[i] = l.parameterBelief(partsOf(c.parts, s.space.parameter(v.arm, v.Setting)), at, scale).Sampler()
		}
	}
	if c.made[0].ID != observations[0].ID {
		return // the first tells it for all
	}
	after := partsOf(c.parts, c.made[0].Cell)
	is := l.cfg.Caps.Pool(after, at)
	var was evidence.Sums
	ok := c.known
	if ok {
		was = l.cfg.Caps.Pool(c.before, at)
	} else {
		was, ok = l.poolWithout(after, observations, at)
	}
	loaded := s.loaded
	// the model is made again if an observation from before a restart changed nothing, or the model
	// panics or drifts
	s.loaded = time.Time{}
	if !ok {
		return
	}
	s.total = spread.Less(s.total.Plus(is), was)
	drifted := len(l.values) > 0 && aged(scaleOf(s.total, l.cfg.MinConfidence)/s.scale)
	if !s.model.Update(arm, was, is) && !drifted {
		s.loaded = loaded
	}
}

// poolWithout pools the parts of a cell as they were before the observations. It reports false if
// the observations are not there. Parts may be very many, so it takes the observations out of them
// and puts them back.
func (l *Learner) poolWithout(parts []evidence.Part, observations []evidence.Observation, now evidence.Instant) (was evidence.Sums, ok bool) {
	type change struct {
		at   int
		part evidence.Part
	}
	var few [1]change
	taken := few[:0]
	defer func() {
		for _, c := range slices.Backward(taken) {
			parts[c.at] = c.part
		}
	}()
	for _, o := range observations {
		i := 0
		if len(parts) != 1 || parts[0].Channel != "" || parts[0].Source != "" {
			i = slices.IndexFunc(parts, func(p evidence.Part) bool { return p.Channel == o.Channel && p.Source == o.Source })
		}
		if i < 0 || i >= len(parts) {
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
	return l.cfg.Caps.Pool(parts, now), true
}

// followUp does what may follow from an outcome: the item's copy of its segment, and a test for a
// change.
func (l *Learner) followUp(ctx context.Context, c *credit, now time.Time) error {
	s, arm := c.segment, l.index[c.Choice.Arm]
	if pooling, ok := l.cfg.Pooling.(Specializer); ok && !c.Choice.details.given {
		if countOf(partsOf(c.parts, s.space.sessions(c.Choice.Item))) >= uint64(pooling.SpecializeAt()) {
			if err := l.specialize(ctx, s, c.Choice.Item, now); err != nil {
				return err
			}
		}
	}
	if l.cfg.Change.due(countOf(partsOf(c.parts, s.space.arm(c.Choice.Item, c.Choice.Arm)))) {
		return l.restartIfChanged(ctx, s, c.Choice.Item, arm, now)
	}
	return nil
}
