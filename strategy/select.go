package strategy

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Select chooses an arm. It draws a reward for each permitted arm from the belief about it, and the
// greatest wins. Within a session an item keeps the arm that was chosen first, until
// [Learner.EndSession], until the cache lets go of it, or until the arm is no longer permitted.
//
// Bad input is a [*heed.InputError]. A context that ended gives its error. If the store can't be
// read, or the choice can't be recorded before the context is done, Select returns the error and a
// choice of the default arm, or of the first permitted one. A host may go on with it: it is neither
// remembered nor recorded, but its outcome may be observed.
//
// A choice that the session remembers costs no reading of the store. A new one reads the item's
// cells in one round trip, and commits its record: see Config.Unrecorded.
func (l *Learner) Select(ctx context.Context, q Query) (Choice, error) {
	return l.choice(ctx, nil, &q)
}

// SelectIn chooses an arm within a step, for a host that keeps the choice in a record of an answer:
// see [Learner.CreditIn]. It draws like [Learner.Select], and the rules for errors are the same. It
// does not write the answer. If a session chooses for an item for the first time, it writes a small
// record, by which all processes give the session one arm. Without a session it does not write that
// record. With [Config].Topic it adds the choice's event.
func (l *Learner) SelectIn(tx *store.Tx, q Query) (Choice, error) {
	return l.choice(tx.Context(), tx, &q)
}

// Wants lists what [Learner.SelectIn] reads for a query, so that a step reads it together with what
// else it needs. The list is empty if this process remembers the session's choice. A query with a
// fault needs no reads, because SelectIn refuses it.
func (l *Learner) Wants(q Query) (w store.Wants) {
	if l.cfg.Disabled || l.validateQuery(&q) != nil {
		return w
	}
	s, err := l.segment(q.Category, q.Context)
	if err != nil {
		return w
	}
	if _, ok := l.remembered(&q, l.cfg.Now(), nil); ok {
		return w
	}
	w.Cells = l.itemCells(s, q.Item)
	w.Refs = l.recalls(&q, &sessions.Kind)
	return w
}

// choice chooses an arm, within a step if there is one. Every error other than bad input comes with
// the default arm, so that a host can serve its request while the store is down. An ended context
// gives no choice at all, because its caller has gone.
func (l *Learner) choice(ctx context.Context, tx *store.Tx, q *Query) (Choice, error) {
	if err := ctx.Err(); err != nil {
		return Choice{}, err
	}
	if err := l.validateQuery(q); err != nil {
		return Choice{}, fmt.Errorf("strategy: select: %w", err)
	}
	now := l.cfg.Now()
	if l.cfg.Disabled {
		return l.fallBack(q, now), nil
	}
	c, err := l.remember(ctx, tx, q, now, nil)
	switch {
	case err == nil:
		return c, nil
	case isInputError(err):
		return Choice{}, fmt.Errorf("strategy: select: %w", err)
	default:
		return l.fallBack(q, now), fmt.Errorf("strategy: select: the default arm, because %w", err)
	}
}

// validateQuery reports the first fault of a query, as an InputError that names the field.
func (l *Learner) validateQuery(q *Query) error {
	if err := q.validate(); err != nil {
		return err
	}
	for i, arm := range q.Arms {
		if _, ok := l.index[arm]; !ok {
			return valid.Input("Arms", "has %q, which is not one of the learner's arms", arm)
		}
		if slices.Contains(q.Arms[:i], arm) {
			return valid.Input("Arms", "has %q more than once", arm)
		}
	}
	return l.validateShares(q)
}

// validateShares reports shares that are no probabilities of the arms they are for. The sum may be
// off by 1e-6, because hosts add up rounded numbers.
func (l *Learner) validateShares(q *Query) error {
	if len(q.Shares) == 0 {
		return nil
	}
	of, sum := len(q.Arms), 0.
	if of == 0 {
		of = len(l.cfg.Arms)
	}
	for _, share := range q.Shares {
		if !(share >= 0 && share <= 1) {
			return valid.Input("Shares", "must be in [0, 1]")
		}
		sum += share
	}
	if len(q.Shares) != of || math.Abs(sum-1) > 1e-6 {
		return valid.Input("Shares",
			"are %d with the sum %v, must be one for each of %d arms, with the sum 1",
			len(q.Shares), sum, of)
	}
	return nil
}

// remember returns the choice that the session remembers, or makes one, within a step if there is
// one. Goroutines and processes that make one at the same time agree on the session's record, or
// without records on the choice that is remembered first. The number of a choice is greater each
// time that it is made again, so that a session that chooses again does not repeat its draw. With a
// record, the number is the record's.
func (l *Learner) remember(
	ctx context.Context, tx *store.Tx, q *Query, now time.Time, own *ownChoice,
) (Choice, error) {
	before, ok := l.remembered(q, now, own)
	if ok {
		return before.choice(), nil
	}
	m := &making{
		Query: *q, now: now, id: l.cfg.NewID(), own: own, alone: tx == nil, since: l.sessions.Drops(),
	}
	switch {
	case before != nil:
		m.number = before.made.Number + 1
	case q.Session == "" && q.Key == "":
		m.number = l.loose.Add(1) // so that each draws by itself
	}
	var r *remembered
	choose := func(tx *store.Tx) (err error) {
		r, err = l.chooseIn(tx, m)
		return err
	}
	if tx == nil {
		if err := store.Do(ctx, l.cfg.Store, choose); err != nil {
			return Choice{}, err
		}
		return l.made(ctx, m, r).choice(), nil
	}
	if err := choose(tx); err != nil {
		return Choice{}, err
	}
	// It is remembered only after the commit, because a step may fail or run again.
	tx.Then(func(_ store.Receipt, err error) {
		if err == nil {
			l.made(tx.Context(), m, r)
		}
	})
	return r.choice(), nil
}

// made remembers a choice after its commit, and notifies the observer if it was made here. It
// returns the choice that the session has now. With a record, the choice that was stored is the
// session's, also if another goroutine read it there and remembers it already.
func (l *Learner) made(ctx context.Context, m *making, r *remembered) *remembered {
	now := r
	if m.Session != "" && !m.Frozen {
		now = l.sessions.Put(m.Session, m.name(), r, m.since,
			func(r *remembered) bool { return l.fresh(r, &m.Query, m.own, m.now) })
	}
	if r.drawn && !m.Frozen && (now == r || !l.cfg.Unrecorded) {
		l.notifySelected(ctx, &r.made)
	}
	return now
}

func (l *Learner) notifySelected(ctx context.Context, c *answer.Choice) {
	if l.watch != nil {
		l.watch.Tell(ctx, heed.Selected{
			Component: l.watch.Name(), At: c.At, ID: c.ID.String(),
			Category: c.Category, Context: c.Context, Item: c.Item, Arm: string(c.Arm),
		})
	}
}

// remembered returns the choice that this process remembers of a session, if it does, and whether
// that is still good. It remembers no choice without a session.
func (l *Learner) remembered(q *Query, now time.Time, own *ownChoice) (*remembered, bool) {
	r := l.sessions.Get(q.Session, q.name())
	return r, r != nil && l.fresh(r, q, own, now)
}

// fresh reports whether a remembered choice can be used without a look at the store, which follows
// after Config.Refresh.
func (l *Learner) fresh(r *remembered, q *Query, own *ownChoice, now time.Time) bool {
	return l.holds(&r.made, q, own, now) &&
		(l.cfg.Unrecorded || now.Sub(r.checked.Time()).Abs() < l.cfg.Refresh)
}

// holds reports whether a choice that was made in the session is still good. Its arm must be
// permitted now, its time to live must not be over, and if the host chooses by itself, it must be
// the host's arm and parameters. A choice that a wrong clock made in the future is not good: no
// outcome of it would be accepted now.
func (l *Learner) holds(c *answer.Choice, q *Query, own *ownChoice, now time.Time) bool {
	age := now.Sub(c.At)
	return permitted(q.Arms, c.Arm) && age < l.cfg.Cache.TTL && age >= -evidence.MaxSkew && own.is(c)
}

// permitted reports whether a query lets an arm be chosen. Without a list every arm is.
func permitted(arms []ArmID, arm ArmID) bool { return len(arms) == 0 || slices.Contains(arms, arm) }

// A making is what a choice is made of.
type making struct {
	Query
	now    time.Time
	id     ChoiceID
	number uint64     // of the choices that differ in their randomness
	own    *ownChoice // the arm that the host chose by itself, or nil
	since  uint64     // the mark of the memo from before the choice was made
	// alone reports that the choice gets a record, because no host keeps it in an answer.
	alone bool
	// direction is the direction of the query's vector, or nil if the linear level does not apply.
	direction []float32
}

// chooseIn takes over the choice that a session's record has, or makes one and records it. If
// several processes choose for one item at the same time, one makes the choice and the others take
// it over when their steps run again.
func (l *Learner) chooseIn(tx *store.Tx, m *making) (*remembered, error) {
	s, err := l.segment(m.Category, m.Context)
	if err != nil {
		return nil, err
	}
	of := &sessions.Kind
	if m.alone {
		of = &l.answers.Kind
	}
	m.direction = l.directionOf(s, &m.Query)
	// What the item has shown and the session's records are read in the same round trip.
	refs := l.recalls(&m.Query, of)
	read, err := l.read(tx, s, m.Item, m.now, refs...)
	if err != nil {
		return nil, err
	}
	r := &remembered{details: l.begin(&m.Query, m.now, m.id)}
	var last keptChoice
	if len(refs) > 0 {
		var found bool
		if last, found, err = l.recall(tx, m, read.records, r); err != nil || found {
			return r, err
		}
		m.number = r.made.Number
	} else {
		r.made.Number = m.number
		// Without a session there is no earlier record. The id of the new record is the choice's own,
		// so that it can be written once without a reading.
		last.revision = store.Once
	}
	r.made.Resets, r.given = read.resets, read.Given != nil
	if m.own != nil {
		m.own.into(&r.made)
	} else if err := l.draw(s, m, read, r); err != nil {
		return nil, err
	}
	l.predict(s, m, read, &r.made)
	r.checked, r.drawn = evidence.InstantOf(m.now), true
	if m.Frozen {
		return r, nil
	}
	return r, l.keep(tx, m, last, r)
}

// recalls names the records that have how often a session ended, and its last choice for an item.
// The second is the record of a choice, or the pointer of SelectIn, depending on the kind.
func (l *Learner) recalls(q *Query, of *store.Kind) []store.Ref {
	if l.cfg.Unrecorded || q.Session == "" {
		return nil
	}
	session := sessionID(l.cfg.Name, q.Session)
	return []store.Ref{sessions.Ref(session), {Kind: of.Name, ID: l.lastID(q)}}
}

// lastID returns the id of the record of a session's last choice for an item.
func (l *Learner) lastID(q *Query) string {
	return answers.LastID(l.cfg.Name, q.Session, q.name())
}

// recall takes over the choice that the session made before, or reports false. Then it notes how
// many choices the session made for the item. It also returns the record that was read. A choice of
// an earlier epoch ended with its session, so the numbers begin again at 0. A choice of this epoch
// that no longer holds, for example because its arm is not permitted, has a successor with the next
// number, which draws other random numbers.
func (l *Learner) recall(
	tx *store.Tx, m *making, read []store.Record, r *remembered,
) (last keptChoice, found bool, err error) {
	session, err := sessions.In(tx, read[0].ID)
	if err != nil {
		return last, false, err
	}
	var before *answer.Choice
	if !m.alone {
		pointer, err := sessions.In(tx, read[1].ID)
		if err != nil {
			return last, false, err
		}
		before, last.revision = pointer.Value.Choice, pointer.Revision
	} else if last, err = l.kept(read[1]); err != nil {
		return last, false, err
	} else if last.Answer != nil {
		before = last.Choice
	}
	switch epoch := session.Value.Epoch; {
	case before == nil || before.Epoch < epoch:
		r.made.Epoch = epoch
	case l.isArm(before.Arm) && l.holds(before, &m.Query, m.own, m.now):
		r.made, r.checked = *before, evidence.InstantOf(m.now)
		if m.alone {
			r.kept.Store(&last)
		}
		return last, true, nil
	default:
		r.made.Epoch, r.made.Number = epoch, before.Number+1
	}
	return last, false, nil
}

// isArm reports whether the learner has an arm. A record may name one that was dropped since.
func (l *Learner) isArm(arm ArmID) bool {
	_, ok := l.index[arm]
	return ok
}

// keep adds the record of a choice to a step, and its event. The record of the session's last
// choice for the item moves to the id of that choice. So the session's last choice is always found
// under one id, and earlier ones stay findable by theirs. Without records it has no event, which
// would cost the commit that such a host saves.
func (l *Learner) keep(tx *store.Tx, m *making, last keptChoice, r *remembered) error {
	switch {
	case l.cfg.Unrecorded || !m.alone && m.Session == "":
	case !m.alone:
		row := sessionRow{ID: l.lastID(&m.Query), At: r.made.At, Choice: &r.made}
		sessions.Put(tx, row, last.revision)
	default:
		row := &answer.Answer{ID: m.id.String(), At: r.made.At, Session: m.Session, Choice: &r.made}
		kept := l.answers.Record(*row, last.revision)
		tx.Put(kept)
		if last.Answer != nil {
			before, choice := *last.Answer, *last.Choice
			choice.Own, before.Choice = true, &choice
			tx.Put(l.answers.Record(before, 0))
		}
		tx.Then(func(receipt store.Receipt, err error) {
			if err == nil && !slices.Contains(receipt.Left, kept.Ref) {
				r.kept.Store(&keptChoice{Answer: row, revision: receipt.Revision})
			}
		})
	}
	if l.cfg.Topic == "" || l.cfg.Unrecorded && m.alone {
		return nil
	}
	var b store.Batch
	c := r.choice()
	err := l.emit(&b, LearnerEvent{
		ID: selected + ":" + c.ID.String(), Type: selected, At: c.At, Choice: &c,
	})
	tx.Add(b)
	return err
}

// begin returns what a choice has of its query. The moment is in whole microseconds, so that it is
// the same after a load from the store.
func (l *Learner) begin(q *Query, now time.Time, id ChoiceID) details {
	return details{made: answer.Choice{
		ID: id, Learner: l.cfg.Name, Session: q.Session, Item: q.Item, Category: q.Category,
		Context: q.Context, At: evidence.InstantOf(now).Time(),
	}}
}

// fallBack makes the choice of the default arm, with the first value of each parameter. It draws no
// random numbers.
func (l *Learner) fallBack(q *Query, now time.Time) Choice {
	d := l.begin(q, now, l.cfg.NewID())
	m := &d.made
	m.Arm, m.Fallback = l.cfg.Default, true
	if !permitted(q.Arms, m.Arm) {
		m.Arm = q.Arms[0]
	}
	for _, p := range l.cfg.Arms[l.index[m.Arm]].Parameters {
		m.Parameters = append(m.Parameters, answer.Setting{Name: p.Name, Value: p.Values[0]})
	}
	return d.choice()
}

// draw draws an arm and its parameters, with the randomness of the choice's number, its session or
// key, and its name in it. The order of the draws is fixed: the arms in their order, the linear
// level, the parameters. So the same key, number and beliefs give the same choice, on any machine.
func (l *Learner) draw(s *segment, m *making, read *reading, r *remembered) error {
	q := &m.Query
	key, name := cmp.Or(q.Session, q.Key), q.Item
	if key != "" {
		name = q.name()
	}
	rng := l.key.Rand(m.number, key, name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(q.Shares) > 0 {
		l.share(q, &rng, r)
		r.made.Parameters = l.drawParameters(s, r.made.Arm, &rng)
		return nil
	}
	beliefs := make([]evidence.Belief, len(l.cfg.Arms))
	s.found.model.Believe(read.Item, beliefs)
	d := &r.made
	d.Draws = make([]answer.Draw, 0, len(l.cfg.Arms))
	for i := range l.cfg.Arms {
		if arm := l.cfg.Arms[i].ID; permitted(q.Arms, arm) {
			d.Draws = append(d.Draws, answer.Draw{Arm: arm, Bonus: l.bonus(s, i), Belief: beliefs[i]})
		}
	}
	best := drawArms(d.Draws, &rng)
	if math.IsNaN(d.Draws[best].Sample) {
		return fmt.Errorf("%T believes what can't be drawn", l.cfg.Pooling)
	}
	d.Arm = d.Draws[best].Arm
	l.drawLinear(s, m, read, d, &rng)
	d.Parameters = l.drawParameters(s, d.Arm, &rng)
	return nil
}

// share takes an arm by the query's shares. Rounding may leave a little of 1 after the last share;
// the last arm with a share gets it.
func (l *Learner) share(q *Query, rng *chance.Rand, r *remembered) {
	left, last := rng.Float64(), 0
	for i, share := range q.Shares {
		if share == 0 {
			continue
		}
		last = i
		if left -= share; left < 0 {
			break
		}
	}
	r.made.Propensity = q.Shares[last]
	if r.made.Arm = l.cfg.Arms[last].ID; len(q.Arms) > 0 {
		r.made.Arm = q.Arms[last]
	}
}

// bonus returns what is added to the draw of an arm with few outcomes: see Exploration. Outcomes
// count as far as the limits on people let them, so that one person does not end the trials of an
// arm.
func (l *Learner) bonus(s *segment, arm int) float64 {
	if float64(s.found.samples[arm])*s.found.crowd.Part(arm) < float64(l.cfg.Exploration.MinSamples) {
		return l.cfg.Exploration.Bonus
	}
	return 0
}

// drawParameters chooses a value for each parameter of an arm, in the same way as an arm. A
// parameter with a single value makes no draw, so that adding one does not change later draws.
func (l *Learner) drawParameters(s *segment, arm ArmID, rng *chance.Rand) (
	settings []answer.Setting,
) {
	at := slices.IndexFunc(l.values, func(v parameterValue) bool { return v.arm == arm })
	parameters := l.cfg.Arms[l.index[arm]].Parameters
	settings = slices.Grow(settings, len(parameters))
	for _, p := range parameters {
		setting := answer.Setting{Name: p.Name, Value: p.Values[0]}
		if most := 0.; len(p.Values) > 1 {
			for i, value := range p.Values {
				if x := s.found.parameters[at+i].Draw(rng); x > most {
					setting.Value, most = value, x
				}
			}
		}
		at += len(p.Values)
		settings = append(settings, setting)
	}
	return settings
}
