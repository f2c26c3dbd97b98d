package memstore

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/export"
)

// evidencePart is what an export holds of an [Evidence].
type evidencePart struct {
	store  *Evidence
	now    evidence.Instant // by the store's clock
	cells  map[string]*cellPart
	named  map[evidence.Cell]bool
	ids    map[string]idPart // with the names that the store gives them
	audit  []evidence.AuditEntry
	outbox []evidence.Event
	events map[string]bool
}

// A cellPart is a cell with its history, in the order in which it was recorded.
type cellPart struct {
	cell      evidence.Cell
	policy    evidence.Policy
	restart   evidence.Instant
	tallies   map[origin]*tallyPart
	history   []entry
	forgotten []string // ids
}

type tallyPart struct {
	evidence.Tally
	lost       [3]int64  // when the last happened that the history no longer holds: positive, negative, neutral
	lostSource bool      // whether one of those had a source
	held       [3]uint64 // how many of the counts are in the history
}

type idPart struct {
	recorded            evidence.Instant
	retracted, untraced bool
}

func newEvidencePart(store *Evidence) *evidencePart {
	return &evidencePart{
		store: store, cells: make(map[string]*cellPart), named: make(map[evidence.Cell]bool), ids: make(map[string]idPart),
		events: make(map[string]bool),
	}
}

func (p *evidencePart) read(r *checkedRow) {
	switch r.Table.Name {
	case export.Cells:
		p.readCell(r)
	case export.Tallies:
		p.readTally(r)
	case export.IDs:
		p.readID(r)
	case export.History:
		p.readHistory(r)
	case export.Forgotten:
		p.readForgotten(r)
	case export.Audit:
		p.readAudit(r)
	case export.Outbox:
		p.readOutbox(r)
	}
}

func (p *evidencePart) readCell(r *checkedRow) {
	halfLife := r.between("half_life", 0, evidence.MaxHalfLife.Microseconds())
	c := &cellPart{
		cell:    evidence.Cell{Kind: r.Text("kind"), Scope: r.Text("scope"), Item: r.Text("item"), Name: r.Text("name")},
		policy:  evidence.Policy{HalfLife: time.Duration(halfLife) * time.Microsecond, ByOrigin: r.flag("by_origin")},
		restart: r.instant("restart"),
		tallies: make(map[origin]*tallyPart),
	}
	r.valid("half_life", c.policy.Validate())
	o := evidence.Observation{ID: "of the cell", Cell: c.cell, At: time.Unix(1, 0)}
	r.valid("cell", o.Validate(o.At))
	key := r.id("cell")
	r.check(p.cells[key] == nil && !p.named[c.cell], "cell", "must not stand twice")
	p.cells[key], p.named[c.cell] = c, true
}

// cellOf returns the cell that a row is of, which has a row before it.
func (p *evidencePart) cellOf(r *checkedRow) *cellPart {
	c := p.cells[r.Text("cell")]
	r.check(c != nil, "cell", "is not known")
	return c
}

func (p *evidencePart) readTally(r *checkedRow) {
	c := p.cellOf(r)
	if r.fault != nil {
		return
	}
	from := origin{r.text("channel"), r.text("source")}
	r.check(c.policy.ByOrigin || from == origin{}, "source", "must be empty, as the channel, where a cell keeps origins together")
	r.check(c.tallies[from] == nil, "cell", "has this origin twice")
	c.tallies[from] = r.tally(c.policy.HalfLife)
}

func (r *checkedRow) tally(halfLife time.Duration) *tallyPart {
	t := &tallyPart{
		Tally: evidence.Tally{
			HalfLife: halfLife,
			Mass:     r.sum("mass"), Squares: r.sum("squares"), Reward: r.sum("reward"), RewardSquares: r.sum("reward_squares"),
			Positive: r.count("n_positive", "last_positive"),
			Negative: r.count("n_negative", "last_negative"),
			Neutral:  r.count("n_neutral", "last_neutral"),
		},
		lost: [3]int64{
			int64(r.instant("lost_positive")), int64(r.instant("lost_negative")), int64(r.instant("lost_neutral")),
		},
		lostSource: r.flag("lost_source"),
	}
	r.check(t.N() > 0, "n_positive", "must not be 0 when the others are")
	var steps int64 // none where nothing fades
	step := grid(halfLife)
	if step > 0 {
		steps = lastInstant / step
	}
	t.Landmark = evidence.Instant(r.between("landmark", 0, steps) * step)
	r.check(step == 0 || int64(t.Last()-t.Landmark) < step, "landmark", "must not be a step or more before the last observation")
	return t
}

// count is a number of observations, of which a slot has room for 32 bits.
func (r *checkedRow) count(n, last string) evidence.Count {
	return evidence.Count{N: uint64(r.between(n, 0, math.MaxUint32)), Last: r.instant(last)}
}

func (p *evidencePart) readID(r *checkedRow) {
	names := [...]string{export.IDsOfObservations: "", export.IDsOfAudit: auditName, export.IDsOfEvents: eventName}
	space := r.between("space", 0, int64(len(names)-1))
	id := r.id("id")
	ofObservation := space == export.IDsOfObservations
	one := idPart{r.instant("recorded"), r.flag("retracted") && ofObservation, !r.flag("traced") && ofObservation}
	if r.fault != nil {
		return
	}
	name := names[space] + id
	_, known := p.ids[name]
	r.check(!known, "id", "must not stand twice")
	p.ids[name] = one
}

func (p *evidencePart) readHistory(r *checkedRow) {
	c := p.cellOf(r)
	o := decoded[evidence.Observation](r, "observation")
	r.valid("observation", o.Validate(o.At))
	recorded := r.instant("recorded")
	if r.fault != nil {
		return
	}
	at := evidence.InstantOf(o.At)
	same := o.ID == r.Text("id") && o.Cell == c.cell && o.Source == r.Text("source") && int64(at) == r.Int("happened")
	r.check(same, "observation", "must have the id, the cell, the source and the moment of its row")
	o.Cell, o.At = c.cell, at.Time() // the texts of the cell are then there once
	if c.counts(&o) {
		t := c.tallies[c.origin(&o)]
		r.check(t != nil && t.hold(sign(o.Reward), at), "observation", "must be in the sums of its cell")
	}
	c.history = append(c.history, entry{observation: o, recorded: recorded})
}

// open reports whether the cell has evidence or a restart, so that its policy is settled.
func (c *cellPart) open() bool { return len(c.tallies) > 0 || c.restart > 0 }

// counts reports whether an observation is a part of the cell's sums.
func (c *cellPart) counts(o *evidence.Observation) bool {
	return o.Weight > 0 && evidence.InstantOf(o.At) >= c.restart
}

// origin returns under which origin the cell keeps an observation.
func (c *cellPart) origin(o *evidence.Observation) origin {
	if c.policy.ByOrigin {
		return origin{o.Channel, o.Source}
	}
	return origin{}
}

// hold reports whether one more of a sign may be in the history, that happened then.
func (t *tallyPart) hold(sign int, at evidence.Instant) bool {
	counted := [...]evidence.Count{t.Positive, t.Negative, t.Neutral}[sign]
	t.held[sign]++
	return t.held[sign] <= counted.N && at <= counted.Last
}

// readForgotten passes over cells that there are no longer, as they have no sums.
func (p *evidencePart) readForgotten(r *checkedRow) {
	id := r.id("id")
	r.instant("recorded")
	if c := p.cells[r.Text("cell")]; c != nil {
		c.forgotten = append(c.forgotten, id)
	}
}

func (p *evidencePart) readAudit(r *checkedRow) {
	entry := decoded[evidence.AuditEntry](r, "entry")
	b := evidence.Batch{Audit: []evidence.AuditEntry{entry}}
	r.valid("entry", b.Validate(entry.At))
	p.audit = append(p.audit, entry)
}

func (p *evidencePart) readOutbox(r *checkedRow) {
	event := r.event()
	b := evidence.Batch{Events: []evidence.Event{event}}
	r.valid("id", b.Validate(event.At))
	r.check(!p.events[event.ID], "id", "must not stand twice")
	p.events[event.ID] = true
	p.outbox = append(p.outbox, event)
}

func (p *evidencePart) locker() sync.Locker { return p }

// Lock takes all locks in the order in which commits take them.
func (p *evidencePart) Lock() {
	e := p.store
	e.start()
	p.now = evidence.InstantOf(e.cfg.Now())
	for i := range e.ids.shards {
		e.ids.shards[i].mu.Lock()
	}
	for i := range e.cells.shards {
		e.cells.shards[i].mu.Lock()
	}
	e.records.mu.Lock()
}

func (p *evidencePart) Unlock() {
	e := p.store
	e.records.mu.Unlock()
	for i := range e.cells.shards {
		e.cells.shards[i].mu.Unlock()
	}
	for i := range e.ids.shards {
		e.ids.shards[i].mu.Unlock()
	}
}

func (p *evidencePart) check() error {
	if err := checkEmpty(p.empty(), "evidence"); err != nil {
		return err
	}
	policies := map[evidence.Policy]bool{{}: true} // the zero policy has its number in any case
	for _, c := range p.cells {
		if c.open() {
			policies[c.policy] = true
		}
	}
	return cmp.Or(checkRoom(len(policies), math.MaxUint16-p.store.rules.count(), "policies"),
		checkRoom(len(p.outbox), p.store.cfg.MaxEvents, "events"))
}

func (p *evidencePart) empty() bool {
	e := p.store
	empty := len(e.records.audit)+len(e.records.outbox) == 0
	for i := range e.ids.shards {
		s := &e.ids.shards[i]
		s.age(p.now, e.cfg.IDsFor)
		empty = empty && len(s.young.known)+len(s.old.known) == 0
	}
	for i := range e.cells.shards {
		s := &e.cells.shards[i]
		empty = empty && len(s.groups)+len(s.histories)+len(s.restarts) == 0
	}
	return empty
}

func (p *evidencePart) fill() {
	p.fillIDs()
	for _, c := range p.cells {
		p.fillCell(c)
	}
	p.store.records.add(p.audit, p.outbox, nil, p.store.cfg.MaxAudit)
}

// fillIDs makes the ids known that are not past their time. They go with the old generation, which lives for as long as an id
// must be known at least that is recorded now; where the clock was ahead when some were, from then on.
func (p *evidencePart) fillIDs() {
	e := p.store
	oldest := p.now - evidence.Instant(e.cfg.IDsFor.Microseconds())
	began := p.now
	for name, id := range p.ids {
		if id.recorded < oldest {
			continue
		}
		began = max(began, id.recorded)
		e.ids.noteOld(name)
		if id.retracted {
			e.ids.noteOld(retractName + name)
		}
		if id.untraced {
			e.ids.noteOld(untracedName + name)
		}
	}
	for i := range e.ids.shards {
		e.ids.shards[i].began = began
	}
}

// fillCell makes a cell: its sums first, into which marks go for what of its history is not kept.
func (p *evidencePart) fillCell(c *cellPart) {
	e := p.store
	key := cellKey{e.spaces.number(space{c.cell.Kind, c.cell.Scope}), e.names.number(c.cell.Name), c.cell.Item}
	shard := e.cells.of(key.group())
	var policy uint16
	if c.open() {
		policy = uint16(e.rules.number(c.policy))
	}
	if c.restart > 0 {
		shard.keepRestart(key, restart{c.restart, policy})
	}
	for from, t := range c.tallies {
		p.fillTally(shard, key, policy, from, t)
	}
	if e.cfg.NoHistory {
		p.loseHistory(shard, key, c)
	} else {
		p.fillHistory(shard, key, c)
	}
}

// fillHistory records what is not past its time, and forgets the rest.
func (p *evidencePart) fillHistory(s *shard, key cellKey, c *cellPart) {
	e := p.store
	oldest := p.now - evidence.Instant(e.cfg.HistoryFor.Microseconds())
	for i := range c.history {
		one := &c.history[i]
		e.ids.locateOld(one.observation.ID, c.cell)
		if one.recorded >= oldest {
			e.record(s, key, *one)
		} else {
			e.forget(s, key, s.history(key), one)
		}
	}
	for _, id := range c.forgotten {
		e.ids.locateOld(id, c.cell)
	}
}

func (p *evidencePart) loseHistory(s *shard, key cellKey, c *cellPart) {
	for i := range c.history {
		if o := &c.history[i].observation; c.counts(o) {
			number := p.store.origins.number(c.origin(o))
			s.slot(s.find(key, number)).lost |= lossOf(o, number)
		}
	}
}

func (p *evidencePart) fillTally(s *shard, key cellKey, policy uint16, from origin, t *tallyPart) {
	number := p.store.origins.number(from)
	slot := s.open(key, number, policy)
	slot.keep(t.Tally)
	if t.lostSource {
		slot.lost |= lostSource
	}
	if t.lost == [3]int64{} {
		return
	}
	slot.lost |= lostSome
	if !p.store.cfg.NoHistory { // where none is kept, nobody would keep this up to date
		s.history(key).lose(number, t.lost)
	}
}
