package strategy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/memo"
)

// A Learner chooses among arms by Thompson sampling and learns from what comes of it. Make one with [New]. It holds
// nothing that the store does not, but for the choices of running sessions: another learner over the same store goes on
// where it stopped. It starts no goroutine and needs no closing.
//
// A Learner is safe for concurrent use by multiple goroutines.
type Learner struct {
	cfg      Config
	priors   []evidence.Beta
	index    map[ArmID]int
	kinds    kinds
	policies map[string]evidence.Policy // by kind
	key      evidence.Key
	loose    atomic.Uint64 // numbers the choices without a session
	sessions *memo.Cache[remembered]
	scratch  sync.Pool

	mu       sync.RWMutex
	segments map[segmentKey]*segment
}

// remembered is a choice as the cache keeps it.
type remembered struct {
	choice  Choice
	details details
}

// New returns a learner, or all faults of its configuration, joined: each is a [*heed.ConfigError].
func New(cfg Config) (*Learner, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("strategy: %w", err)
	}
	source := cfg.Source
	if source == nil {
		source = rand.NewPCG(rand.Uint64(), rand.Uint64()) //nolint:forbidigo // the random key of a host that gives no source
	}
	l := &Learner{
		cfg:      cfg,
		priors:   coldStart(cfg.Arms, cfg.Prior),
		index:    make(map[ArmID]int, len(cfg.Arms)),
		kinds:    kindsOf(cfg.Name),
		key:      evidence.NewKey(source.Uint64(), source.Uint64()),
		sessions: memo.New[remembered](cfg.Cache.Size, cfg.Cache.TTL),
		segments: make(map[segmentKey]*segment),
	}
	l.policies = map[string]evidence.Policy{
		l.kinds.arm: cfg.policy(), l.kinds.parameter: cfg.policy(), l.kinds.given: {HalfLife: cfg.HalfLife},
	}
	for i, arm := range cfg.Arms {
		l.index[arm.ID] = i
	}
	l.scratch.New = func() any { return &scratch{} }
	return l, nil
}

// Config returns the configuration in force, defaults filled in.
func (l *Learner) Config() Config { return l.cfg.withDefaults() }

// Select chooses an arm: it draws a reward for each permitted arm from what is believed of it, and the arm with the
// greatest wins. In one session, an item keeps the arm that was chosen first, until [Learner.EndSession], or until the
// cache lets go of it; a choice whose arm is no longer permitted is made anew.
//
// Input that is not valid is a [*heed.InputError], and a context that is done when Select is called gives its error. If the
// store can't be read, or the choice not be recorded, or not before the context is done, Select returns that error together
// with a choice of the default arm (or of the first permitted one), which a host may use to go on: it is not remembered nor
// recorded, and an outcome may be observed of it.
func (l *Learner) Select(ctx context.Context, q Query) (Choice, error) {
	if err := ctx.Err(); err != nil {
		return Choice{}, err
	}
	if err := l.validateQuery(&q); err != nil {
		return Choice{}, fmt.Errorf("strategy: select: %w", err)
	}
	now := l.cfg.Now()
	if l.cfg.Disabled {
		return l.fallBack(&q, now), nil
	}
	var r *remembered
	var err error
	if q.Session == "" {
		r = &remembered{}
		err = l.choose(ctx, &q, now, l.loose.Add(1), q.Item, r)
	} else {
		name := nameInSession(&q)
		r, _, err = l.sessions.Do(ctx, q.Session, name, now,
			func(r *remembered) bool { return l.holds(&r.choice, &q, now) },
			func(r *remembered, number uint64) error { return l.recall(ctx, &q, now, number, name, r) })
	}
	switch {
	case err == nil:
		return r.choice, nil
	case isInputError(err):
		return Choice{}, fmt.Errorf("strategy: select: %w", err)
	default:
		return l.fallBack(&q, now), fmt.Errorf("strategy: select: the default arm, as %w", err)
	}
}

// nameInSession is what a choice is remembered by and drawn by: its item, and where there is none, its segment. No item
// has a NUL.
func nameInSession(q *Query) string {
	if q.Item != "" {
		return q.Item
	}
	return "\x00" + segmentScope(q.Category, q.Context)
}

func (l *Learner) validateQuery(q *Query) error {
	if err := q.validate(); err != nil {
		return err
	}
	for _, arm := range q.Arms {
		if _, ok := l.index[arm]; !ok {
			return &heed.InputError{Field: "Arms", Reason: fmt.Sprintf("has %q, which is none of the learner's arms", arm)}
		}
	}
	return nil
}

// holds reports whether a choice that was made in the session is still good.
func (l *Learner) holds(c *Choice, q *Query, now time.Time) bool {
	return permitted(q.Arms, c.Arm) && now.Sub(c.At) < l.cfg.Cache.TTL
}

// recall takes up the choice that was made in the session before, as its record has it, or else makes one.
func (l *Learner) recall(ctx context.Context, q *Query, now time.Time, number uint64, name string, r *remembered) error {
	if l.cfg.Choices != nil {
		if found, err := l.recallRecord(ctx, *q, now, r); found || err != nil {
			return err
		}
	}
	return l.choose(ctx, q, now, number, name, r)
}

// recallRecord has a copy of the query, as it comes to lie on the heap.
func (l *Learner) recallRecord(ctx context.Context, q Query, now time.Time, r *remembered) (found bool, err error) {
	f := ChoiceFilter{Learner: l.cfg.Name, Session: q.Session, Item: q.Item, Since: now.Add(-l.cfg.Cache.TTL)}
	if q.Item == "" {
		f.Category, f.Context = q.Category, q.Context
	}
	for record, err := range l.cfg.Choices.List(ctx, f) {
		if err != nil {
			return false, err
		}
		c := &record.Choice
		if nameInSession(&Query{Item: c.Item, Category: c.Category, Context: c.Context}) != nameInSession(&q) {
			continue // what is empty in a filter lets all pass
		}
		if _, known := l.index[c.Arm]; !known || record.Ended || !l.holds(c, &q, now) {
			return false, nil
		}
		r.choice = *c
		if c.details != nil {
			r.details = *c.details
		}
		r.choice.details = &r.details
		return true, nil
	}
	return false, nil
}

func permitted(arms []ArmID, arm ArmID) bool { return len(arms) == 0 || slices.Contains(arms, arm) }

// EndSession forgets the choices of a session: what is asked for in it afterwards is chosen anew, which gives the same arm
// if nothing was learned meanwhile. Records of choices stay, marked as ended; only writing them can fail, and then the
// session goes on for whoever reads them. Another learner over the same records, which remembers a choice of the session
// itself, keeps it until it is told as well, or until the choice's time is over.
func (l *Learner) EndSession(ctx context.Context, session string) error {
	defer l.sessions.Drop(session)
	if l.cfg.Choices == nil || session == "" {
		return nil
	}
	if err := l.cfg.Choices.EndSession(ctx, l.cfg.Name, session); err != nil {
		return fmt.Errorf("strategy: end session: %w", err)
	}
	return nil
}

// Refresh makes anew from the store what is held in memory of all segments: after evidence was retracted, expunged or
// reset in the store, or added by others.
func (l *Learner) Refresh(ctx context.Context) error {
	l.mu.RLock()
	segments := make([]*segment, 0, len(l.segments))
	for _, s := range l.segments {
		segments = append(segments, s)
	}
	l.mu.RUnlock()
	now := l.cfg.Now()
	var failures []error
	for _, s := range segments {
		failures = append(failures, l.refresh(ctx, s, now))
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("strategy: refresh: %w", err)
	}
	return nil
}

func (l *Learner) refresh(ctx context.Context, s *segment, now time.Time) error {
	if err := s.loading.acquire(ctx); err != nil {
		return err
	}
	defer s.loading.release()
	return l.load(ctx, s, now)
}

// scratch is what reading an item needs, kept from one choice to the next.
type scratch struct {
	item    Item
	counts  []uint64 // how many outcomes each arm has
	given   []evidence.Sums
	beliefs []Belief
	cells   []evidence.Cell
	parts   []evidence.Part
}

// choose makes a choice, with the randomness of its number, its session and its name in it, and keeps a record of it.
func (l *Learner) choose(ctx context.Context, q *Query, now time.Time, number uint64, name string, r *remembered) error {
	l.begin(q, now, r)
	rng := l.key.Rand(number, q.Session, name)
	if err := l.draw(ctx, q, now, &rng, r); err != nil {
		return err
	}
	// The record comes last: one without its event would wait for an outcome, though the choice is never made use of.
	if l.cfg.Topic != "" {
		if err := l.emitAlone(ctx, Event{
			ID: string(EventSelected) + ":" + r.choice.ID.String(), Type: EventSelected, At: r.choice.At, Choice: &r.choice,
		}); err != nil {
			return err
		}
	}
	if l.cfg.Choices == nil {
		return nil
	}
	return l.cfg.Choices.Add(ctx, r.choice)
}

// begin fills in what a choice has of its query.
func (l *Learner) begin(q *Query, now time.Time, r *remembered) {
	r.details.learner = l.cfg.Name
	r.choice = Choice{
		ID: l.cfg.NewID(), Session: q.Session, Item: q.Item, Category: q.Category, Context: q.Context,
		At: evidence.InstantOf(now).Time(), details: &r.details,
	}
}

func isInputError(err error) bool {
	var fault *heed.InputError
	return errors.As(err, &fault)
}

// fallBack makes the choice of the default arm, with the first value of each parameter.
func (l *Learner) fallBack(q *Query, now time.Time) Choice {
	r := &remembered{}
	l.begin(q, now, r)
	r.choice.Arm = l.cfg.Default
	if !permitted(q.Arms, r.choice.Arm) {
		r.choice.Arm = q.Arms[0]
	}
	r.details.fallback = true
	for _, p := range l.cfg.Arms[l.index[r.choice.Arm]].Parameters {
		r.details.parameters = append(r.details.parameters, Setting{p.Name, p.Values[0]})
	}
	return r.choice
}

func (l *Learner) draw(ctx context.Context, q *Query, now time.Time, rng *evidence.Rand, r *remembered) error {
	s, err := l.segment(ctx, q.Category, q.Context, now)
	if err != nil {
		return err
	}
	scratch := l.scratch.Get().(*scratch)
	defer l.scratch.Put(scratch)
	if err := l.readItem(ctx, s, q.Item, now, scratch); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.model.Believe(scratch.item, scratch.beliefs)
	d := &r.details
	d.draws = make([]Draw, 0, len(l.cfg.Arms))
	for i := range l.cfg.Arms {
		if arm := l.cfg.Arms[i].ID; permitted(q.Arms, arm) {
			d.draws = append(d.draws, Draw{Arm: arm, Bonus: l.bonus(s, i), Belief: scratch.beliefs[i]})
		}
	}
	best := drawArms(d.draws, rng)
	if math.IsNaN(d.draws[best].Sample) {
		return fmt.Errorf("%T believes what can't be drawn", l.cfg.Pooling)
	}
	r.choice.Arm = d.draws[best].Arm
	chosen := l.index[r.choice.Arm]
	d.parameters = s.drawParameters(l.cfg.Arms[chosen], chosen, rng)
	return nil
}

func (l *Learner) bonus(s *segment, arm int) float64 {
	if s.samples[arm] < uint64(l.cfg.Exploration.MinSamples) {
		return l.cfg.Exploration.Bonus
	}
	return 0
}

// drawParameters chooses a value for each parameter of an arm, as arms are chosen.
func (s *segment) drawParameters(arm Arm, index int, rng *evidence.Rand) []Setting {
	if len(arm.Parameters) == 0 {
		return nil
	}
	settings := make([]Setting, len(arm.Parameters))
	for i, p := range arm.Parameters {
		settings[i] = Setting{p.Name, p.Values[0]}
		if len(p.Values) == 1 {
			continue
		}
		most := -1.
		for j := range p.Values {
			if x := s.parameters[index][i][j].Draw(rng); x > most {
				settings[i].Value, most = p.Values[j], x
			}
		}
	}
	return settings
}

// readItem reads what an item has shown, and what it was given if its pooling specialises.
func (l *Learner) readItem(ctx context.Context, s *segment, item string, now time.Time, into *scratch) error {
	n := len(l.cfg.Arms)
	into.counts = slices.Grow(into.counts[:0], n)[:n]
	into.item.Arms = slices.Grow(into.item.Arms[:0], n)[:n]
	into.beliefs = slices.Grow(into.beliefs[:0], n)[:n]
	into.cells = into.cells[:0]
	for i := range l.cfg.Arms {
		into.cells = append(into.cells, s.space.arm(item, l.cfg.Arms[i].ID))
	}
	if err := l.readSums(ctx, into, into.item.Arms, into.counts, now, l.cfg.Caps); err != nil {
		return err
	}
	into.item.Given = nil
	if _, ok := l.cfg.Pooling.(Specializer); !ok {
		return nil
	}
	into.cells = into.cells[:0]
	for i := range l.cfg.Arms {
		into.cells = append(into.cells, s.space.given(item, l.cfg.Arms[i].ID))
	}
	into.given = slices.Grow(into.given[:0], n)[:n]
	err := l.readSums(ctx, into, into.given, nil, now, evidence.Caps{})
	if len(into.parts) > 0 {
		into.item.Given = into.given
	}
	return err
}

// readSums reads the scratch's cells into sums, one each, and how many observations each has into counts, unless they are
// nil.
func (l *Learner) readSums(ctx context.Context, into *scratch, sums []evidence.Sums, counts []uint64, now time.Time, caps evidence.Caps) (err error) {
	into.parts, err = l.cfg.Store.Read(ctx, into.parts[:0], into.cells...)
	if err != nil {
		return err
	}
	at, parts := evidence.InstantOf(now), into.parts
	for i := range into.cells {
		n := 0
		for n < len(parts) && parts[n].Cell == into.cells[i] {
			n++
		}
		sums[i] = caps.Pool(parts[:n], at)
		if counts != nil {
			counts[i] = countOf(parts[:n])
		}
		parts = parts[n:]
	}
	return nil
}

// Beliefs returns what is believed of each arm of an item at this moment, in the order of the arms. The query's session
// and permitted arms are of no account.
func (l *Learner) Beliefs(ctx context.Context, q Query) ([]Belief, error) {
	if err := q.validate(); err != nil {
		return nil, fmt.Errorf("strategy: beliefs: %w", err)
	}
	now := l.cfg.Now()
	s, err := l.segment(ctx, q.Category, q.Context, now)
	if err != nil {
		return nil, fmt.Errorf("strategy: beliefs: %w", err)
	}
	var scratch scratch
	if err := l.readItem(ctx, s, q.Item, now, &scratch); err != nil {
		return nil, fmt.Errorf("strategy: beliefs: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.model.Believe(scratch.item, scratch.beliefs)
	return scratch.beliefs, nil
}
