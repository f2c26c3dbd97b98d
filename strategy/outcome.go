package strategy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// An Outcome says what came of a choice.
type Outcome struct {
	// Choice is the one that is credited, as it was made: in this process, or read back from JSON.
	Choice Choice
	// ID tells the outcomes of one choice apart; what comes again under the same id counts once. "" is as good an id as
	// any, where a choice has one outcome. It must not begin with "heed:".
	ID string
	// Value is how good it was, from -1, as bad as can be, to 1. 0 is neither.
	Value float64
	// Confidence is how much the value is to be trusted, in (0, 1]: it is the weight of the outcome as evidence.
	Confidence float64
	// Channel and Source say how the outcome is known, and who caused it: see [evidence.Observation]. Both may be empty.
	Channel string
	Source  string
	// At is when it came about. The zero time means now.
	At time.Time
}

// A Disposition says what became of an outcome.
type Disposition string

// What can become of an outcome that is not refused.
const (
	Applied   Disposition = "applied"
	Duplicate Disposition = "duplicate" // it had been applied before
	Dropped   Disposition = "dropped"   // its confidence was below Config.MinConfidence, or the learner is disabled
)

// Observe credits the arm and the parameters of a choice with its outcome. The value is mapped to a reward, (value+1)/2,
// once, here. It returns when the store has it, and the choice's record where there are records.
//
// Input that is not valid is a [*heed.InputError] and changes nothing. Where an outcome is counted and its record can't be
// written, the error comes with what became of the outcome; to observe it again writes the record.
func (l *Learner) Observe(ctx context.Context, o Outcome) (Disposition, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	now := l.cfg.Now()
	if o.At.IsZero() {
		o.At = now
	}
	if err := l.validateOutcome(&o, now); err != nil {
		return "", fmt.Errorf("strategy: observe: %w", err)
	}
	if l.cfg.Disabled || o.Confidence < l.cfg.MinConfidence {
		return Dropped, nil
	}
	disposition, err := l.observe(ctx, &o, now)
	if err != nil {
		return disposition, fmt.Errorf("strategy: observe: %w", err)
	}
	return disposition, nil
}

func (l *Learner) validateOutcome(o *Outcome, now time.Time) error {
	switch {
	case o.Choice.Learner() != l.cfg.Name:
		return &heed.InputError{Field: "Choice", Reason: "was not made by this learner"}
	case !(o.Value >= -1 && o.Value <= 1):
		return &heed.InputError{Field: "Value", Reason: fmt.Sprintf("is %v, must be in [-1, 1]", o.Value)}
	case !(o.Confidence > 0 && o.Confidence <= 1):
		return &heed.InputError{Field: "Confidence", Reason: fmt.Sprintf("is %v, must be in (0, 1]", o.Confidence)}
	case o.At.Sub(now) > evidence.MaxSkew:
		return &heed.InputError{Field: "At", Reason: fmt.Sprintf("is more than %v ahead of the clock", evidence.MaxSkew)}
	}
	if _, ok := l.index[o.Choice.Arm]; !ok {
		return &heed.InputError{Field: "Choice.Arm", Reason: fmt.Sprintf("is %q, which is none of the learner's arms", o.Choice.Arm)}
	}
	if strings.HasPrefix(o.ID, reserved) {
		return &heed.InputError{Field: "ID", Reason: fmt.Sprintf("must not begin with %q", reserved)}
	}
	if err := evidence.CheckText("ID", l.evidenceID(o)); err != nil {
		return err
	}
	return o.validateTexts()
}

// validateTexts reports a text that a store can't keep. A choice that comes from outside may hold any.
func (o *Outcome) validateTexts() error {
	c := &o.Choice
	for _, text := range [...]struct{ field, value string }{
		{"Channel", o.Channel}, {"Source", o.Source},
		{"Choice.Session", c.Session}, {"Choice.Item", c.Item}, {"Choice.Category", c.Category}, {"Choice.Context", c.Context},
	} {
		if err := evidence.CheckText(text.field, text.value); err != nil {
			return err
		}
	}
	for name, value := range c.Parameters() {
		if err := evidence.CheckText("Choice.Parameters", name+"="+value); err != nil {
			return err
		}
	}
	return evidence.CheckText("Choice.Category", segmentScope(c.Category, c.Context))
}

// reserved begins the ids of outcomes that the learner makes itself.
const reserved = "heed:"

// evidenceID names an outcome among all that the store knows.
func (l *Learner) evidenceID(o *Outcome) string {
	return l.cfg.Name + ":" + o.Choice.ID.String() + ":" + o.ID
}

func (l *Learner) observe(ctx context.Context, o *Outcome, now time.Time) (Disposition, error) {
	c := &o.Choice
	s, err := l.segment(ctx, c.Category, c.Context, now)
	if err != nil {
		return "", err
	}
	item := s.item(c.Item)
	if err := item.acquire(ctx); err != nil {
		return "", err
	}
	defer item.release()
	duplicate, err := l.count(ctx, s, o, EventObserved, now)
	if err != nil {
		return "", err
	}
	disposition := Applied
	if duplicate {
		disposition = Duplicate
	}
	return disposition, l.settle(ctx, s, o, duplicate, now)
}

// count adds the evidence of an outcome to the store, and tells the segment's memory. The caller holds the item's lock.
func (l *Learner) count(ctx context.Context, s *segment, o *Outcome, event EventType, now time.Time) (duplicate bool, err error) {
	scratch := l.scratch.Get().(*scratch)
	defer l.scratch.Put(scratch)
	if err := l.readItem(ctx, s, o.Choice.Item, now, scratch); err != nil {
		return false, err
	}
	resets, err := l.resetCount(ctx, s, o.Choice.Item)
	if err != nil {
		return false, err
	}
	b, err := l.batch(s, o, event, resets)
	if err != nil {
		return false, err
	}
	duplicate, err = l.apply(ctx, s, o.Choice.Item, b, now, scratch)
	if duplicate || err != nil {
		return duplicate, err
	}
	// The outcome is counted. What follows keeps the memory in step; if it fails, the next load from the store mends it.
	arm := l.index[o.Choice.Arm]
	s.sampled(arm, +1)
	err = l.catchUp(ctx, s, &o.Choice, now, resets, scratch)
	if err == nil && l.cfg.Change.due(scratch.counts[arm]) {
		err = l.restartIfChanged(ctx, s, o.Choice.Item, arm, now, scratch)
	}
	if err != nil {
		s.expire()
	}
	return false, nil
}

// apply commits a batch that changes the evidence of one item, which is in scratch as it was before, and tells the model
// what changed.
func (l *Learner) apply(ctx context.Context, s *segment, item string, b evidence.Batch, now time.Time, scratch *scratch) (duplicate bool, err error) {
	receipt, err := l.cfg.Store.Commit(ctx, b)
	switch {
	case err != nil:
		if !refused(err) {
			s.expire() // the reply may be lost, and the outcome counted all the same
		}
		return false, err
	case receipt.Duplicate:
		return true, nil
	}
	before := slices.Clone(scratch.item.Arms)
	if err := l.readItem(ctx, s, item, now, scratch); err != nil {
		s.expire()
		return false, nil //nolint:nilerr // it is committed, and the next load from the store mends the rest
	}
	for arm, after := range scratch.item.Arms {
		if before[arm] != after {
			s.update(arm, before[arm], after)
		}
	}
	return false, nil
}

// settle writes the outcome into the record of its choice, and takes back the silence that may have been counted for it.
func (l *Learner) settle(ctx context.Context, s *segment, o *Outcome, duplicate bool, now time.Time) error {
	if l.cfg.Choices == nil {
		return nil
	}
	before, err := l.settleRecord(ctx, o, duplicate)
	switch {
	case err != nil && !errors.Is(err, heed.ErrNotFound): // where it is no longer kept there is nothing to write
		return err
	case l.cfg.Silence.Confidence == 0 || before != Expired && !l.overdue(&o.Choice, now):
		return nil
	}
	return l.breakSilence(ctx, s, o.Choice, now)
}

// settleRecord returns the stage that the record of a choice was in. What comes again may tell another time or value than
// what was counted, so it settles only what has not been settled: where the first delivery got no further than the store.
func (l *Learner) settleRecord(ctx context.Context, o *Outcome, duplicate bool) (before Stage, err error) {
	if duplicate {
		record, err := l.cfg.Choices.Get(ctx, o.Choice.ID)
		if err != nil || record.Stage == Observed {
			return record.Stage, err
		}
	}
	return l.cfg.Choices.Settle(ctx, o.Choice.ID, o.result())
}

// refused reports whether an error says that a store has not taken what it was given.
func refused(err error) bool {
	return isInputError(err) || errors.Is(err, heed.ErrConflict) || errors.Is(err, evidence.ErrFull) ||
		errors.Is(err, heed.ErrNotFound) || errors.Is(err, evidence.ErrForgotten)
}

// batch is the evidence of an outcome: on the arm, on the values of its parameters, and on how many sessions the item was
// seen in. Silence is none to be seen in.
func (l *Learner) batch(s *segment, o *Outcome, event EventType, resets string) (evidence.Batch, error) {
	c := &o.Choice
	id := l.evidenceID(o)
	b := evidence.Batch{ID: id, Policies: l.policies}
	observation := evidence.Observation{
		ID: id, Cell: s.space.arm(c.Item, c.Arm), Channel: o.Channel, Source: o.Source, Session: c.Session,
		Reward: (o.Value + 1) / 2, Weight: o.Confidence, At: o.At,
	}
	b.Observations = append(make([]evidence.Observation, 0, 4), observation)
	for name, value := range c.Parameters() {
		observation.Cell = s.space.parameter(c.Arm, Setting{name, value})
		if event == EventExpired {
			observation.ID = silentParameter(id, len(b.Observations))
		}
		b.Observations = append(b.Observations, observation)
	}
	if event == EventObserved {
		b.Observations = append(b.Observations, l.sessionSeen(s, o, resets))
	}
	e := Event{ID: string(event) + ":" + id, Type: event, At: o.At, Choice: c.withoutDraws()}
	if event == EventObserved {
		result := o.result()
		e.Result = &result
	}
	return b, l.emit(&b, e)
}

// sessionSeen counts the session of an outcome, once.
func (l *Learner) sessionSeen(s *segment, o *Outcome, resets string) evidence.Observation {
	c := &o.Choice
	session := c.Session
	if session == "" {
		session = c.ID.String() // a choice without a session is one of its own, however many outcomes it has
	}
	return evidence.Observation{
		ID: derivedID("session", l.cfg.Name, s.space.scope, c.Item, resets, session), Cell: s.space.sessions(c.Item),
		Session: c.Session, Reward: 1, Weight: 1, At: o.At,
	}
}

// result is the outcome as a record has it.
func (o *Outcome) result() Result {
	return Result{o.ID, o.Value, o.Confidence, o.Channel, o.Source, evidence.InstantOf(o.At).Time()}
}

// derivedID names evidence that follows from other evidence, by what it follows from.
func derivedID(what string, parts ...string) string {
	var text []byte
	for _, part := range parts {
		text = binary.LittleEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return what + ":" + hex.EncodeToString(sum[:])
}

// catchUp tells the segment's memory what an outcome has changed beside the arms, and lets the item specialise. The
// scratch has the item as it is now.
func (l *Learner) catchUp(ctx context.Context, s *segment, c *Choice, now time.Time, resets string, scratch *scratch) error {
	arm := l.index[c.Arm]
	type value struct {
		parameter, value int
		belief           evidence.Sampler
	}
	var values []value
	for i, p := range l.cfg.Arms[arm].Parameters {
		for j, v := range p.Values {
			if v != c.Parameter(p.Name) {
				continue
			}
			parts, err := l.cfg.Store.Read(ctx, nil, s.space.parameter(c.Arm, Setting{p.Name, v}))
			if err != nil {
				return err
			}
			values = append(values, value{i, j, l.parameterBelief(parts, evidence.InstantOf(now)).Sampler()})
		}
	}
	for _, v := range values {
		s.setParameter(arm, v.parameter, v.value, v.belief)
	}
	return l.specialize(ctx, s, c.Item, now, resets, scratch)
}

func (s *segment) setParameter(arm, parameter, value int, belief evidence.Sampler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parameters[arm][parameter][value] = belief
}

// update tells the model, which may be a host's, and panic.
func (s *segment) update(arm int, before, after evidence.Sums) {
	s.mu.Lock()
	defer s.mu.Unlock()
	loaded := s.loaded
	s.loaded = time.Time{} // if it panics or has aged, the model is made anew
	s.model.Update(arm, before, after)
	if ager, ok := s.model.(Ager); !ok || !ager.Aged() {
		s.loaded = loaded
	}
}

func (s *segment) sampled(arm, outcomes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples[arm] = uint64(max(int64(s.samples[arm])+int64(outcomes), 0))
}

// expire makes the next use of the segment load it from the store.
func (s *segment) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = time.Time{}
}

// specialize gives an item its copy of the segment's evidence, if its pooling works so and it has come so far. The copy
// is evidence of its own, stored under a name that counts once.
func (l *Learner) specialize(ctx context.Context, s *segment, item string, now time.Time, resets string, scratch *scratch) error {
	pooling, ok := l.cfg.Pooling.(Specializer)
	if !ok || scratch.item.Given != nil {
		return nil
	}
	parts, err := l.cfg.Store.Read(ctx, nil, s.space.sessions(item))
	if err != nil || countOf(parts) < uint64(pooling.SpecializeAt()) {
		return err
	}
	given := s.give(scratch.item)
	id := derivedID("given", l.cfg.Name, s.space.scope, item, resets)
	b := evidence.Batch{ID: id, Policies: l.policies}
	for i, sums := range given {
		if sums.Mass > 0 {
			b.Observations = append(b.Observations, evidence.Observation{
				ID: id, Cell: s.space.given(item, l.cfg.Arms[i].ID),
				Reward: sums.Mean(), Weight: min(sums.Mass, evidence.MaxWeight), At: now,
			})
		}
	}
	if len(b.Observations) == 0 {
		return nil // it is the first of its segment: there is nothing to give
	}
	e := Event{ID: string(EventSpecialized) + ":" + id, Type: EventSpecialized, Category: s.category, Context: s.context, Item: item, At: now}
	if err := l.emit(&b, e); err != nil {
		return err
	}
	_, err = l.cfg.Store.Commit(ctx, b)
	return err
}

// give asks the model, which may be a host's, and panic.
func (s *segment) give(item Item) []evidence.Sums {
	s.mu.RLock()
	defer s.mu.RUnlock()
	given := make([]evidence.Sums, len(item.Arms))
	s.model.(Giver).Give(item, given)
	return given
}
