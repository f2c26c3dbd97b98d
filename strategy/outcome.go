package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// An Outcome reports how a choice turned out.
type Outcome struct {
	// Choice is the choice to credit, made in this process or read back from JSON.
	Choice Choice
	// ID distinguishes the outcomes of one choice. Each counts once. Leave it "" if a choice has only
	// one outcome. It must not begin with "heed:".
	ID string
	// Value is how good it was, from -1 (as bad as can be) to 1. 0 is neither good nor bad.
	Value float64
	// Confidence is the trust in the value, in (0, 1]. An outcome counts by its confidence over the
	// scale of its segment, Σc²/Σc of the confidences of all its outcomes: equal confidences count
	// as one each, and an unsure outcome counts less than the sure ones of the segment. Under
	// [Copy], it counts by its confidence alone.
	Confidence float64
	// Share is the part that this outcome has in what a choice was worth, in (0, 1], if several
	// people report how one choice turned out: the outcomes of a choice whose shares add up to 1
	// count as one outcome. 0 means 1, all of it.
	Share float64
	// Channel and Source are how the outcome is known, and who caused it: see [evidence.Observation].
	// Both may be empty. Use few channels, because an arm of an item keeps 16 of a source apart.
	// Later channels count together, as "heed:others".
	Channel string
	Source  string
	// At is when it came about: no earlier than the choice less [evidence.MaxSkew]. The zero
	// time means now.
	At time.Time
	// Cost is what the choice cost, in a unit of the host's, from 0 to 1e15, Latency how long it
	// took, and Tokens how many a model counted. They are kept in the choice's record, and change
	// what is learned by [Config].Reward alone.
	Cost    float64
	Latency time.Duration
	Tokens  int

	worth float64 // the value that is learned
}

// A Disposition is what became of an outcome.
type Disposition string

// Dispositions of outcomes that are not refused.
const (
	Applied   Disposition = "applied"
	Duplicate Disposition = "duplicate" // it had been applied before
	// its confidence was below Config.MinConfidence, or the learner is disabled
	Dropped Disposition = "dropped"
)

// Observe credits the arm and the parameters of a choice with its outcome. Its value becomes a
// reward, (value+1)/2, once, here. Observe returns when the store has it, in one commit with the
// choice's record. After an error other than a [*heed.InputError] the same outcome may be observed
// again. It counts once. Bad input is a [*heed.InputError] and is not stored. A host that commits
// its own records in the same commit uses [Learner.ObserveIn].
func (l *Learner) Observe(ctx context.Context, o Outcome) (Disposition, error) {
	did, err := l.observeAll(ctx, []Outcome{o}, "", "")
	if err != nil {
		return "", err
	}
	return did[0], nil
}

// ObserveAll credits several outcomes in one commit, each like [Learner.Observe]. If ended is not
// empty it ends that session with them, once for the id, which must not be empty then. If one
// outcome is not valid, no outcome is counted.
func (l *Learner) ObserveAll(
	ctx context.Context, outcomes []Outcome, id, ended string,
) ([]Disposition, error) {
	did, err := l.observeAll(ctx, slices.Clone(outcomes), id, ended)
	if ended != "" && l.cfg.Unrecorded && !isInputError(err) {
		l.sessions.Drop(ended, 0)
	}
	return did, err
}

// ObserveIn does what [Learner.Observe] does as a part of a step, so that a host can commit its own
// records together with an outcome. The disposition is final when [store.Do] returned.
func (l *Learner) ObserveIn(tx *store.Tx, o Outcome) (_ *Disposition, err error) {
	defer because(&err, "observe")
	now := l.cfg.Now()
	if err := l.validateOutcome(&o, now); err != nil {
		return nil, err
	}
	return l.observeIn(tx, &o, now, false)
}

func (l *Learner) observeAll(
	ctx context.Context, outcomes []Outcome, id, ended string,
) (_ []Disposition, err error) {
	defer because(&err, "observe")
	now := l.cfg.Now()
	for i := range outcomes {
		if err := l.validateOutcome(&outcomes[i], now); err != nil {
			return nil, err
		}
	}
	return l.observe(ctx, now, outcomes, id, ended)
}

// observe counts outcomes, which are valid, and ends a session, in one commit. A single outcome
// that ends no session counts once by the id of its batch, which costs the store less than ids of
// single observations.
func (l *Learner) observe(
	ctx context.Context, now time.Time, outcomes []Outcome, id, ended string,
) ([]Disposition, error) {
	each := make([]*Disposition, len(outcomes))
	ends := ended != "" && !l.cfg.Unrecorded
	err := store.Do(ctx, l.cfg.Store, func(tx *store.Tx) (err error) {
		tx.Want(l.creditWants(outcomes))
		if ends {
			tx.Want(store.Wants{Refs: []store.Ref{sessions.Ref(sessionID(l.cfg.Name, ended))}})
		}
		for i := range outcomes {
			alone := len(outcomes) == 1 && !ends
			if each[i], err = l.observeIn(tx, &outcomes[i], now, alone); err != nil {
				return err
			}
		}
		if !ends {
			return nil
		}
		return l.endIn(tx, ended, store.IDOf(id))
	})
	return dispositions(each, err)
}

// dispositions returns what became of outcomes, once that is final.
func dispositions(each []*Disposition, err error) ([]Disposition, error) {
	if err != nil {
		return nil, err
	}
	did := make([]Disposition, len(each))
	for i := range did {
		did[i] = *each[i]
	}
	return did, nil
}

// validateOutcome reports the first fault of an outcome, and fills in when it came about.
func (l *Learner) validateOutcome(o *Outcome, now time.Time) error {
	if o.At.IsZero() {
		o.At = now
	}
	switch {
	case o.Choice.facts().Learner != l.cfg.Name:
		return errForeign
	case !(o.Value >= -1 && o.Value <= 1):
		return valid.Input("Value", "is %v, must be in [-1, 1]", o.Value)
	case !(o.Confidence > 0 && o.Confidence <= 1):
		return valid.Input("Confidence", "is %v, must be in (0, 1]", o.Confidence)
	case !(o.Share >= 0 && o.Share <= 1):
		return valid.Input("Share", "is %v, must be in (0, 1], or 0 for 1", o.Share)
	case o.At.Sub(now) > evidence.MaxSkew:
		return valid.Input("At", "is more than %v ahead of the clock", evidence.MaxSkew)
	case o.Choice.At.Sub(o.At) > evidence.MaxSkew:
		return valid.Input("At", "is more than %v before the choice", evidence.MaxSkew)
	case !(o.Cost >= 0 && o.Cost <= maxCost):
		return valid.Input("Cost", "is %v, must be in [0, 1e15]", o.Cost)
	case o.Latency < 0:
		return valid.Input("Latency", "must not be negative")
	case o.Tokens < 0:
		return valid.Input("Tokens", "must not be negative")
	}
	if _, ok := l.index[o.Choice.Arm]; !ok {
		return valid.Input("Choice.Arm", "is %q, which is not one of the learner's arms", o.Choice.Arm)
	}
	if err := l.validateID(o.ID); err != nil {
		return err
	}
	if err := o.validateTexts(); err != nil {
		return err
	}
	return l.judge(o)
}

// maxCost keeps the squares of costs, and their sums, finite.
const maxCost = 1e15

// judge works out the value that is learned, by Config.Reward if it is set. Silence has its value
// alone. It is called before the step, which may run twice. [Learner.loadLinear] calls it again for
// each record of a vector. A panic of the function is returned as an error.
func (l *Learner) judge(o *Outcome) error {
	o.worth = o.Value
	if l.cfg.Reward == nil || o.ID == silenceID {
		return nil
	}
	if err := host.Call("Config.Reward", func() error {
		o.worth = l.cfg.Reward(*o)
		return nil
	}); err != nil {
		return err
	}
	if !(o.worth >= -1 && o.worth <= 1) {
		return valid.Input("Reward", "of the configuration gave %v, must give [-1, 1]", o.worth)
	}
	return nil
}

var errForeign = valid.Input("Choice", "was not made by this learner")

// validateID reports an id that no outcome can have.
func (l *Learner) validateID(id string) error {
	if strings.HasPrefix(id, reserved) {
		return valid.Input("ID", "must not begin with %q", reserved)
	}
	// The id of the evidence has the learner's name, the UUID of the choice and this id, so all
	// together must fit into the text of an observation.
	if n := len(l.cfg.Name) + len(":") + 36 + len(":") + len(id); n > evidence.MaxText {
		return valid.Input("ID", "is %d bytes long with the choice's, may be %d", n, evidence.MaxText)
	}
	return nil
}

// validateTexts reports a text that a store can't keep. A choice that comes from outside may hold
// any. Category and context are checked together as well, because they make one scope.
func (o *Outcome) validateTexts() error {
	c := &o.Choice
	for _, p := range c.facts().Parameters {
		if err := evidence.CheckText("Choice.Parameters", p.Name+"="+p.Value); err != nil {
			return err
		}
	}
	return valid.Texts(evidence.MaxText, "ID", o.ID, "Channel", o.Channel, "Source", o.Source,
		"Choice.Session", c.Session, "Choice.Item", c.Item, "Choice.Category", c.Category,
		"Choice.Context", c.Context, "Choice.Category", answers.Scope(c.Category, c.Context))
}

// reserved begins the ids of outcomes that the learner makes itself.
const reserved = "heed:"

// evidenceID names an outcome among all ids in the store. It counts once in the store, whichever
// process or delivery brings it.
func (l *Learner) evidenceID(o *Outcome) string {
	choice, _ := o.Choice.ID.MarshalText() // never fails
	return l.cfg.Name + ":" + string(choice) + ":" + o.ID
}

// batch is the evidence of an outcome: on the arm, on the values of its parameters, and, if items
// specialise after a number of sessions, on how many the item was seen in. A silent session does
// not count. Cells that may have very many sources are read for that: see [fair.Apart].
// Observations on parameters of a silent choice have ids of their kind, because silence is taken
// back later by its ids, and each must then name one observation.
func (l *Learner) batch(
	tx *store.Tx, s *segment, o *Outcome, event string,
) (b store.Batch, err error) {
	step, read := l.stepOf(tx, l.cfg.Now()), store.Snapshot{}
	cells := s.sourceWants(&o.Choice).Cells
	if step.bulk == nil && o.Source+o.Channel != "" {
		if err := tx.Read(&read, cells, nil); err != nil {
			return b, err
		}
	}
	apart := func(o evidence.Observation) evidence.Observation {
		if step.bulk != nil {
			o.Source = step.bulk.apart(l.cfg.Trust, &o)
		} else {
			fair.Apart(l.cfg.Trust, partsOf(read.Parts, o.Cell), &o)
		}
		return o
	}
	c := &o.Choice
	id := l.evidenceID(o)
	observation := evidence.Observation{
		ID: id, Cell: s.space.arm(c.Item, c.Arm), Channel: o.Channel, Source: o.Source,
		Session: c.Session, Reward: (o.worth + 1) / 2, Weight: o.Confidence, Share: o.Share,
		At: o.At,
	}
	b = store.Batch{ID: id, Policies: l.policies}
	b.Observations = make([]evidence.Observation, 0, 2+len(c.facts().Parameters))
	b.Observations = append(b.Observations, apart(observation))
	for name, value := range c.Parameters() {
		observation.Cell = s.space.parameter(c.Arm, answer.Setting{Name: name, Value: value})
		if event == expired {
			observation.ID = silentParameter(id, len(b.Observations))
		}
		b.Observations = append(b.Observations, apart(observation))
	}
	if l.specializes() && event == observed {
		b.Observations = append(b.Observations, l.sessionSeen(s, o))
	}
	b.PartsOf = store.CellsOf(b.Observations...)
	return b, nil
}

// creditedCells are the cells that an outcome of a choice adds to.
func (s *segment) creditedCells(c *Choice) []evidence.Cell {
	cells := []evidence.Cell{s.space.arm(c.Item, c.Arm)}
	for name, value := range c.Parameters() {
		cells = append(cells, s.space.parameter(c.Arm, answer.Setting{Name: name, Value: value}))
	}
	return cells
}

// sessionSeen counts the session of an outcome, once. Its id is derived from the session and the
// item, so further outcomes of the session do not count again. The counts of resets are in it,
// because after a reset the session may count once more.
func (l *Learner) sessionSeen(s *segment, o *Outcome) evidence.Observation {
	c := &o.Choice
	session := c.Session
	if session == "" {
		// a choice without a session is one session, however many outcomes it has
		session = c.ID.String()
	}
	return evidence.Observation{
		ID: derivedID("session", l.cfg.Name, s.space.scope, c.Item, fmt.Sprint(s.resetsOf(c)),
			session),
		Cell: s.space.sessions(c.Item), Session: c.Session, Reward: 1, Weight: 1, At: o.At,
	}
}

// result is the outcome as a record has it.
func (o *Outcome) result() Result {
	return Result{
		ID: o.ID, Value: o.Value, Confidence: o.weight(), Channel: o.Channel, Source: o.Source,
		At: evidence.InstantOf(o.At).Time(), Cost: o.Cost, Latency: o.Latency, Tokens: o.Tokens,
	}
}

// weight is how much evidence the outcome is.
func (o *Outcome) weight() float64 { return o.Confidence * cmp.Or(o.Share, 1) }

// derivedID names evidence that follows from other evidence, by what it follows from. Two processes
// that derive the same evidence give it the same id, and the store counts it once.
func derivedID(what string, parts ...string) string { return what + ":" + store.IDOf(parts...) }

// expire makes the next use of the segment load it from the store. The count of expiries shows a
// load that is under way that its result is outdated.
func (s *segment) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = time.Time{}
	s.expired++
}

// specialize gives an item its copy of the segment's evidence. The copy is new evidence, under an
// id that counts once. The model is asked within the step, because the item's own evidence must be
// as it is in the store. If another process gave the item its copy, there is no more to do.
func (l *Learner) specialize(ctx context.Context, s *segment, item string, now time.Time) error {
	return store.Do(ctx, l.cfg.Store, func(tx *store.Tx) error {
		read, err := l.read(tx, s, item, now)
		if err != nil || read.Given != nil {
			return err
		}
		given := s.give(read.arms, evidence.InstantOf(now))
		b := store.Batch{
			ID:       derivedID("given", l.cfg.Name, s.space.scope, item, fmt.Sprint(read.resets)),
			Policies: l.policies,
		}
		add := func(arm int, reward, weight float64) {
			b.Observations = append(b.Observations, evidence.Observation{
				ID: b.ID, Cell: s.space.given(item, l.cfg.Arms[arm].ID), Reward: reward, Weight: weight,
				At: now,
			})
		}
		for i, sums := range given {
			if sums.Mass > 0 {
				add(i, sums.Mean(), min(sums.Mass, evidence.MaxWeight))
			}
		}
		if len(b.Observations) == 0 { // it is the first of its segment
			add(0, 0.5, givenNothing)
		}
		err = l.emit(&b, LearnerEvent{
			ID: specialized + ":" + b.ID, Type: specialized, Category: s.category, Context: s.context,
			Item: item, At: now,
		})
		tx.Add(b)
		return err
	})
}

// givenNothing is the weight of the mark that an item specialised, if there was no evidence to
// copy. It changes no belief.
const givenNothing = 1e-9

// give returns what is left of the segment without the item's part of it.
func (s *segment) give(arms [][]evidence.Part, at evidence.Instant) []evidence.Sums {
	s.mu.RLock()
	defer s.mu.RUnlock()
	item := Item{Arms: make([]evidence.Sums, len(arms))}
	for i, parts := range arms {
		item.Arms[i] = s.found.crowd.Share(i, parts, at)
	}
	m, _ := s.found.model.(*copied) // as the pooling is a Copy
	return m.give(item)
}
