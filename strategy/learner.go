package strategy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/memo"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Learner chooses among arms by Thompson sampling and learns from the outcomes. Make one with
// [New]. All that it knows is in the store, so another learner over the same store goes on where it
// stopped. It starts no goroutine and needs no closing. It is safe for concurrent use by multiple
// goroutines.
type Learner struct {
	cfg      Config
	priors   []evidence.Beta
	index    map[ArmID]int
	values   []parameterValue // of all parameters of all arms, in order
	kinds    kinds
	policies map[string]evidence.Policy // by kind
	key      evidence.Key
	pending  string        // the key of choices that wait
	loose    atomic.Uint64 // numbers the choices without a session
	answers  store.View[answer.Answer]
	sessions *memo.Cache[remembered]
	pointers *memo.Cache[*remembered] // what SelectIn has chosen for sessions
	doubts   doubts
	scratch  sync.Pool
	watch    *watch.Watch

	sampleItems int

	mu       sync.RWMutex
	segments map[segmentKey]*segment
}

// A parameterValue is a value that a parameter of an arm may have.
type parameterValue struct {
	arm ArmID
	Setting
}

// remembered is a choice as the cache keeps it.
type remembered struct {
	details
	checked evidence.Instant // when its record was read last
}

// New returns a learner, or all faults of its configuration, joined: each is a [*heed.ConfigError].
// It keeps its settings in the store, by its name. If the host sets another half-life than the
// stored one, or caps while the store keeps sources together, the error is a [*heed.SettingsError]:
// see [Rebuild]. If it does not set them, it gets the stored ones. Other settings replace the
// stored ones, with an entry in the audit.
func New(ctx context.Context, cfg Config) (*Learner, error) {
	l, err := build(cfg)
	if err == nil {
		err = l.open(ctx, cfg.Refresh == 0)
	}
	if err != nil {
		return nil, fmt.Errorf("strategy: %w", err)
	}
	return l, nil
}

// build makes a learner that has not seen its store yet.
func build(cfg Config) (*Learner, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	seed := cfg.Seed
	if seed == nil {
		seed = rand.NewPCG(rand.Uint64(), rand.Uint64()) //nolint:forbidigo // the random key of a host that gives no seed
	}
	l := &Learner{
		cfg:      cfg,
		priors:   coldStart(cfg.Arms, cfg.Prior),
		index:    make(map[ArmID]int, len(cfg.Arms)),
		kinds:    kindsOf(cfg.Name),
		pending:  answers.Pending(cfg.Name),
		answers:  answers.View(cfg.Answers),
		key:      evidence.Key{A: seed.Uint64(), B: seed.Uint64()},
		sessions: memo.New[remembered](cfg.Cache.Size, cfg.Cache.TTL),
		pointers: memo.New[*remembered](cfg.Cache.Size, cfg.Cache.TTL),
		segments: make(map[segmentKey]*segment),
		watch:    watch.New(cfg.Observer, component+cfg.Name, cfg.Now),

		sampleItems: sampleItems,
	}
	for i, arm := range cfg.Arms {
		l.index[arm.ID] = i
		for _, p := range arm.Parameters {
			for _, value := range p.Values {
				l.values = append(l.values, parameterValue{arm.ID, Setting{Name: p.Name, Value: value}})
			}
		}
	}
	l.scratch.New = func() any { return &scratch{} }
	return l, nil
}

// Config returns the configuration in force, defaults filled in.
func (l *Learner) Config() Config { return l.cfg.withDefaults() }

// Select chooses an arm. It draws a reward for each permitted arm from the belief about it, and the
// greatest wins. Within a session an item keeps the arm that was chosen first, until
// [Learner.EndSession], until the cache lets go of it, or until the arm is no longer permitted.
//
// Bad input is a [*heed.InputError]. A context that has ended gives its error. If the store can't
// be read, or the choice can't be recorded before the context is done, Select returns the error and
// a choice of the default arm, or of the first permitted one. A host may go on with it: it is
// neither remembered nor recorded, but its outcome may be observed.
func (l *Learner) Select(ctx context.Context, q Query) (Choice, error) {
	return l.choice(ctx, nil, &q)
}

// choice chooses an arm, as a part of a step if there is one.
func (l *Learner) choice(ctx context.Context, tx *store.Tx, q *Query) (Choice, error) {
	if err := ctx.Err(); err != nil {
		return Choice{}, err
	}
	err := l.validateQuery(q)
	if err != nil {
		return Choice{}, fmt.Errorf("strategy: select: %w", err)
	}
	now := l.cfg.Now()
	if l.cfg.Disabled {
		return l.fallBack(q, now), nil
	}
	var c Choice
	if tx == nil {
		c, err = l.remember(ctx, q, now, nil)
	} else {
		c, err = l.rememberIn(tx, *q, now, nil)
	}
	switch {
	case err == nil:
		return c, nil
	case isInputError(err):
		return Choice{}, fmt.Errorf("strategy: select: %w", err)
	default:
		return l.fallBack(q, now), fmt.Errorf("strategy: select: the default arm, because %w", err)
	}
}

// remember returns the choice that the session remembers, or makes one.
func (l *Learner) remember(ctx context.Context, q *Query, now time.Time, own *ownChoice) (Choice, error) {
	var r *remembered
	var err error
	known := false
	name := ""
	if q.Session != "" {
		name = answers.InSession(q.Item, q.Category, q.Context)
	}
	switch {
	case q.Frozen && q.Session != "":
		if r, known = l.sessions.Get(q.Session, name, now); known && l.fresh(r, q, own, now) {
			break
		}
		fallthrough
	case q.Session == "":
		r = &remembered{}
		err = l.choose(ctx, q, now, l.number(q), own, r)
	default:
		r, known, err = l.sessions.Do(ctx, q.Session, name, now,
			func(r *remembered) bool { return l.fresh(r, q, own, now) },
			func(r *remembered, number uint64) error { return l.choose(ctx, q, now, number, own, r) })
	}
	if err != nil {
		return Choice{}, err
	}
	if l.watch != nil && !known && r.drawn {
		l.watch.Tell(ctx, l.selected(&r.made))
	}
	return r.choice(), nil
}

// number returns the number of a choice whose session remembers nothing. Choices of one Query.Key
// have the same one.
func (l *Learner) number(q *Query) uint64 {
	if q.Session != "" || q.Key != "" {
		return 0
	}
	return l.loose.Add(1)
}

// fresh reports whether a remembered choice can be used without a look at the store, which follows
// after Config.Refresh.
func (l *Learner) fresh(r *remembered, q *Query, own *ownChoice, now time.Time) bool {
	return l.holds(&r.made, q, own, now) &&
		(l.cfg.Unrecorded || now.Sub(r.checked.Time()).Abs() < l.cfg.Refresh)
}

// selected returns the notice of a choice that was made.
func (l *Learner) selected(c *answer.Choice) heed.Selected {
	return heed.Selected{
		Component: l.watch.Name(), At: c.At, ID: c.ID.String(),
		Category: c.Category, Context: c.Context, Item: c.Item, Arm: string(c.Arm),
	}
}

func (l *Learner) validateQuery(q *Query) error {
	if err := q.validate(); err != nil {
		return err
	}
	for i, arm := range q.Arms {
		if _, ok := l.index[arm]; !ok {
			reason := fmt.Sprintf("has %q, which is none of the learner's arms", arm)
			return &heed.InputError{Field: "Arms", Reason: reason}
		}
		if slices.Contains(q.Arms[:i], arm) {
			return &heed.InputError{Field: "Arms", Reason: fmt.Sprintf("has %q more than once", arm)}
		}
	}
	return l.validateShares(q)
}

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
			return &heed.InputError{Field: "Shares", Reason: "must be in [0, 1]"}
		}
		sum += share
	}
	if len(q.Shares) != of || math.Abs(sum-1) > 1e-6 {
		return &heed.InputError{Field: "Shares", Reason: fmt.Sprintf("are %d with the sum %v, must be one for each of %d arms, with the sum 1", len(q.Shares), sum, of)}
	}
	return nil
}

// holds reports whether a choice that was made in the session is still good.
func (l *Learner) holds(c *answer.Choice, q *Query, own *ownChoice, now time.Time) bool {
	return permitted(q.Arms, c.Arm) && now.Sub(c.At) < l.cfg.Cache.TTL && own.is(c)
}

func permitted(arms []ArmID, arm ArmID) bool { return len(arms) == 0 || slices.Contains(arms, arm) }

// EndSession forgets the choices of a session. Later queries of the session choose again, which
// gives the same arm if nothing was learned since. Records of choices stay. Another learner
// over the same store that remembers a choice of the session keeps it for at most Config.Refresh.
func (l *Learner) EndSession(ctx context.Context, session string) (err error) {
	defer l.drop(session)
	if l.cfg.Unrecorded || session == "" {
		return ctx.Err()
	}
	defer because(&err, "end session")
	return store.Do(ctx, l.cfg.Store, func(tx *store.Tx) error {
		row, err := tx.Get(sessions.Ref(sessionID(l.cfg.Name, session)))
		if err != nil {
			return err
		}
		b, err := l.ended(row, "")
		tx.Add(b)
		return err
	})
}

// drop forgets what is remembered of a session.
func (l *Learner) drop(session string) {
	l.sessions.Drop(session)
	l.pointers.Drop(session)
}

// ended returns the batch that ends a session, whose record was read. If the id is not empty, it
// counts once.
func (l *Learner) ended(read store.Record, id string) (store.Batch, error) {
	kept, err := sessions.Of(read)
	next := sessionRow{
		ID: read.ID, Epoch: kept.Value.Epoch + 1, At: evidence.InstantOf(l.cfg.Now()).Time(),
	}
	return store.Batch{ID: id, Records: []store.Record{sessions.Record(next, kept.Revision)}}, err
}

// Refresh reads all segments in memory again from the store. Call it after evidence was retracted,
// expunged or reset in the store, or added by others.
func (l *Learner) Refresh(ctx context.Context) (err error) {
	defer because(&err, "refresh")
	return l.refreshAll(ctx, l.cfg.Now(), 0)
}

// refreshAll loads the segments in memory that are not as fresh as that.
func (l *Learner) refreshAll(ctx context.Context, now time.Time, fresh time.Duration) error {
	l.mu.RLock()
	segments := slices.Collect(maps.Values(l.segments))
	l.mu.RUnlock()
	var failures []error
	for _, s := range segments {
		if loaded, fresh := s.state(now, fresh); loaded && !fresh {
			failures = append(failures, l.refresh(ctx, s, now))
		}
	}
	return errors.Join(failures...)
}

func (l *Learner) refresh(ctx context.Context, s *segment, now time.Time) error {
	if err := s.loading.Lock(ctx); err != nil {
		return err
	}
	defer s.loading.Unlock()
	return l.load(ctx, s, now, &scratch{})
}

// scratch is memory for reading, kept from one choice to the next.
type scratch struct {
	cells []evidence.Cell
	refs  []store.Ref
	store.Snapshot

	batch   [1]store.Batch // to be committed, with its records
	records [3]store.Record

	item    Item
	counts  []uint64 // how many outcomes each arm has
	given   []evidence.Sums
	beliefs []Belief
}

func (s *scratch) reset() {
	s.cells, s.refs = s.cells[:0], s.refs[:0]
	s.Snapshot.Reset()
}

// raced reports whether a call that has failed with this error should be made again, as by
// [store.Do].
func raced(err error) bool {
	return errors.Is(err, heed.ErrConflict) && !errors.As(err, new(*heed.SettingsError)) &&
		!errors.Is(err, heed.ErrOutcomeUnknown)
}

// repeat calls try, and again as the rules of [store.Do] have it. The first call costs nothing more
// than try.
func (l *Learner) repeat(ctx context.Context, try func() error) error {
	err := try()
	if !raced(err) {
		return err
	}
	return store.Do(ctx, l.cfg.Store, func(*store.Tx) error { return try() })
}

// choose takes the session's choice from its record, or makes one and records it. If several
// processes choose for one item at the same time, one makes the choice and the others take it.
func (l *Learner) choose(
	ctx context.Context, q *Query, now time.Time, number uint64, own *ownChoice, r *remembered,
) error {
	s, err := l.segment(q.Category, q.Context)
	if err != nil {
		return err
	}
	scratch := l.scratch.Get().(*scratch)
	defer l.scratch.Put(scratch)
	if err = l.tryChoose(ctx, s, q, now, number, own, scratch, r); !raced(err) {
		return err
	}
	again := *q // so that q stays on the stack
	return store.Do(ctx, l.cfg.Store, func(*store.Tx) error {
		return l.tryChoose(ctx, s, &again, now, number, own, scratch, r)
	})
}

// tryChoose makes one attempt to choose.
func (l *Learner) tryChoose(
	ctx context.Context, s *segment, q *Query, now time.Time, number uint64, own *ownChoice,
	scratch *scratch, r *remembered,
) error {
	scratch.reset()
	scratch.cells = l.itemCells(s, q.Item, scratch.cells)
	recalls := !l.cfg.Unrecorded && q.Session != ""
	if recalls {
		name := answers.InSession(q.Item, q.Category, q.Context)
		ofSession, ofChoice := bothIDs(l.cfg.Name, q.Session, name)
		scratch.refs = append(scratch.refs, sessions.Ref(ofSession), l.answers.Ref(ofChoice))
	}
	if err := l.read(ctx, s, now, scratch); err != nil {
		return err
	}
	l.begin(q, now, &r.details)
	var last keptChoice
	if recalls {
		session, err := sessions.Of(scratch.Records[0])
		if err != nil {
			return err
		}
		if last, err = l.kept(scratch.Records[1]); err != nil {
			return err
		}
		var before *answer.Choice
		if last.revision > 0 {
			before = last.Choice
		}
		if l.recall(before, session.Value.Epoch, q, own, now, r) {
			kept := last
			r.details.kept.Store(&kept)
			return nil
		}
	}
	if err := l.drawItem(s, q, number, own, now, scratch, r); err != nil || q.Frozen {
		return err
	}
	return l.keep(ctx, q, scratch, last, r)
}

// recall takes over the choice that the session has made before, or reports false. Then it notes
// how many choices the session has made for the item.
func (l *Learner) recall(
	before *answer.Choice, epoch uint64, q *Query, own *ownChoice, now time.Time, r *remembered,
) bool {
	switch {
	case before == nil || before.Epoch < epoch:
		r.made.Number = 0
	case l.isArm(before.Arm) && l.holds(before, q, own, now):
		r.made, r.checked, r.drawn = *before, evidence.InstantOf(now), false
		return true
	default:
		r.made.Number = before.Number + 1
	}
	r.made.Epoch = epoch
	return false
}

// drawItem draws an arm from what was read of an item, or takes the host's.
func (l *Learner) drawItem(
	s *segment, q *Query, number uint64, own *ownChoice, now time.Time, scratch *scratch,
	r *remembered,
) error {
	if q.Session != "" && !l.cfg.Unrecorded {
		number = r.made.Number
	}
	r.made.Resets = l.readItem(s, q.Item, now, scratch)
	r.given = scratch.item.Given != nil
	if own != nil {
		own.into(&r.made)
	} else if err := l.draw(s, q, number, scratch, r); err != nil {
		return err
	}
	r.checked, r.drawn = evidence.InstantOf(now), true
	return nil
}

func (l *Learner) isArm(arm ArmID) bool {
	_, ok := l.index[arm]
	return ok
}

// keep commits the record of a choice, and its event. The record of the session's last choice for
// the item moves to the id of that choice.
func (l *Learner) keep(
	ctx context.Context, q *Query, scratch *scratch, last keptChoice, r *remembered,
) error {
	if l.cfg.Unrecorded && l.cfg.Topic == "" {
		return nil
	}
	b := &scratch.batch[0]
	defer func() {
		clear(b.Records)
		*b = store.Batch{}
	}()
	var row *madeRow
	if !l.cfg.Unrecorded {
		var keys []string
		row, keys = l.newRow(&r.details, q.Tenant)
		if last.id == "" {
			last.id = row.ID // it has no session
		}
		b.Records = append(scratch.records[:0], store.Record{
			Ref: l.answers.Ref(last.id), Revision: last.revision, At: row.At, Keys: keys,
			Body: store.Of(&row.Answer),
		})
		if last.revision > 0 {
			before, choice := *last.Answer, *last.Choice
			choice.Own, before.Choice = true, &choice
			b.Records = append(b.Records, l.answers.Record(before, 0))
		}
	}
	if l.cfg.Topic != "" {
		if err := l.emitSelected(b, r); err != nil {
			return err
		}
	}
	receipts, err := l.cfg.Store.Commit(ctx, scratch.batch[:]...)
	if err == nil && !l.cfg.Unrecorded {
		row.kept.Answer, row.kept.id, row.kept.revision = &row.Answer, last.id, receipts[0].Revision
		r.details.kept.Store(&row.kept)
	}
	return err
}

// emitSelected puts the event of a choice into a batch.
func (l *Learner) emitSelected(b *store.Batch, r *remembered) error {
	c := r.choice()
	return l.emit(b, LearnerEvent{
		ID: selected + ":" + c.ID.String(), Type: selected, At: c.At, Choice: &c,
	})
}

// begin fills in what a choice has of its query.
func (l *Learner) begin(q *Query, now time.Time, d *details) {
	d.made = answer.Choice{
		ID: l.cfg.NewID(), Learner: l.cfg.Name, Session: q.Session, Item: q.Item, Category: q.Category,
		Context: q.Context,
		At:      evidence.InstantOf(now).Time(),
	}
}

func isInputError(err error) bool { return errors.As(err, new(*heed.InputError)) }

// because adds to the error of a method what it was doing.
func because(err *error, doing string) {
	if *err != nil {
		*err = fmt.Errorf("strategy: %s: %w", doing, *err)
	}
}

// fallBack makes the choice of the default arm, with the first value of each parameter.
func (l *Learner) fallBack(q *Query, now time.Time) Choice {
	d := &details{}
	l.begin(q, now, d)
	m := &d.made
	m.Arm, m.Fallback = l.cfg.Default, true
	if !permitted(q.Arms, m.Arm) {
		m.Arm = q.Arms[0]
	}
	for _, p := range l.cfg.Arms[l.index[m.Arm]].Parameters {
		m.Parameters = append(m.Parameters, Setting{Name: p.Name, Value: p.Values[0]})
	}
	return d.choice()
}

// draw draws an arm and its parameters, with the randomness of the choice's number, its session or
// key, and its name in it.
func (l *Learner) draw(s *segment, q *Query, number uint64, scratch *scratch, r *remembered) error {
	key, name := cmp.Or(q.Session, q.Key), q.Item
	if key != "" {
		name = answers.InSession(q.Item, q.Category, q.Context)
	}
	rng := l.key.Rand(number, key, name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(q.Shares) > 0 {
		l.share(q, &rng, r)
		r.made.Parameters = l.drawParameters(s, r.made.Arm, &rng)
		return nil
	}
	s.model.Believe(scratch.item, scratch.beliefs)
	d := &r.made
	d.Draws = make([]Draw, 0, len(l.cfg.Arms))
	for i := range l.cfg.Arms {
		if arm := l.cfg.Arms[i].ID; permitted(q.Arms, arm) {
			d.Draws = append(d.Draws, Draw{Arm: arm, Bonus: l.bonus(s, i), Belief: scratch.beliefs[i]})
		}
	}
	best := drawArms(d.Draws, &rng)
	if math.IsNaN(d.Draws[best].Sample) {
		return fmt.Errorf("%T believes what can't be drawn", l.cfg.Pooling)
	}
	d.Arm = d.Draws[best].Arm
	d.Parameters = l.drawParameters(s, d.Arm, &rng)
	return nil
}

// share takes an arm by the query's shares.
func (l *Learner) share(q *Query, rng *evidence.Rand, r *remembered) {
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

func (l *Learner) bonus(s *segment, arm int) float64 {
	if s.samples[arm] < uint64(l.cfg.Exploration.MinSamples) {
		return l.cfg.Exploration.Bonus
	}
	return 0
}

// drawParameters chooses a value for each parameter of an arm, as arms are chosen.
func (l *Learner) drawParameters(s *segment, arm ArmID, rng *evidence.Rand) (settings []Setting) {
	at := slices.IndexFunc(l.values, func(v parameterValue) bool { return v.arm == arm })
	parameters := l.cfg.Arms[l.index[arm]].Parameters
	settings = slices.Grow(settings, len(parameters))
	for _, p := range parameters {
		setting := Setting{Name: p.Name, Value: p.Values[0]}
		if most := -1.; len(p.Values) > 1 {
			for i, value := range p.Values {
				if x := s.parameters[at+i].Draw(rng); x > most {
					setting.Value, most = value, x
				}
			}
		}
		at += len(p.Values)
		settings = append(settings, setting)
	}
	return settings
}

// itemCells appends the cells of an item: its arms, what it was given if its pooling specialises,
// and how often it was reset.
func (l *Learner) itemCells(s *segment, item string, cells []evidence.Cell) []evidence.Cell {
	for i := range l.cfg.Arms {
		cells = append(cells, s.space.arm(item, l.cfg.Arms[i].ID))
	}
	if _, ok := l.cfg.Pooling.(Specializer); ok {
		for i := range l.cfg.Arms {
			cells = append(cells, s.space.given(item, l.cfg.Arms[i].ID))
		}
	}
	cells = append(cells, s.space.resets(""))
	if item != "" {
		cells = append(cells, s.space.resets(item))
	}
	return cells
}

// readItem takes up what was read of the cells of an item.
func (l *Learner) readItem(s *segment, item string, now time.Time, into *scratch) (resets resets) {
	n, at := len(l.cfg.Arms), evidence.InstantOf(now)
	into.counts = slices.Grow(into.counts[:0], n)[:n]
	into.item.Arms = slices.Grow(into.item.Arms[:0], n)[:n]
	into.beliefs = slices.Grow(into.beliefs[:0], n)[:n]
	into.item.Given = nil
	parts := into.Parts
	next := func(cell evidence.Cell) (of []evidence.Part) {
		of = leading(parts, cell)
		parts = parts[len(of):]
		return of
	}
	for i := range l.cfg.Arms {
		of := next(into.cells[i])
		into.item.Arms[i], into.counts[i] = l.cfg.Caps.Pool(of, at), countOf(of)
	}
	if _, ok := l.cfg.Pooling.(Specializer); ok {
		into.given = slices.Grow(into.given[:0], n)[:n]
		for i := range l.cfg.Arms {
			of := next(into.cells[n+i])
			if into.given[i] = (evidence.Caps{}).Pool(of, at); len(of) > 0 {
				into.item.Given = into.given
			}
		}
	}
	resets[0] = countOf(next(s.space.resets("")))
	if item != "" {
		resets[1] = countOf(next(s.space.resets(item)))
	}
	s.wasReset(item, resets)
	return resets
}

// Beliefs returns the belief about each arm of an item now, in the order of the arms. The query's
// session and permitted arms are ignored.
func (l *Learner) Beliefs(ctx context.Context, q Query) (_ []Belief, err error) {
	defer because(&err, "beliefs")
	if err := q.validate(); err != nil {
		return nil, err
	}
	now := l.cfg.Now()
	s, err := l.segment(q.Category, q.Context)
	if err != nil {
		return nil, err
	}
	scratch := scratch{cells: l.itemCells(s, q.Item, nil)}
	if err := l.read(ctx, s, now, &scratch); err != nil {
		return nil, err
	}
	return l.believe(s, &q, now, &scratch), nil
}
