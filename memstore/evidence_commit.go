package memstore

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A commit is one batch on its way into the store. It locks the shards that it touches, always in the same order, looks
// for all that could be wrong, and only then changes anything.
type commit struct {
	store *Evidence
	batch *evidence.Batch
	now   evidence.Instant

	observed   []observed
	lockIDs    uint64 // the shards of ids to lock, a bit each
	lockCells  uint64
	duplicates []string
}

// observed is an observation with what the store calls its parts.
type observed struct {
	*evidence.Observation
	id        id
	key       cellKey
	policy    uint16
	duplicate bool
}

func (c *commit) run() (evidence.Receipt, error) {
	var few [4]observed
	c.prepare(few[:0])
	c.lock()
	defer c.unlock()
	if c.batch.ID != "" {
		h := c.store.ids.hash(c.batch.ID)
		if c.ids(h).knows(h) {
			return evidence.Receipt{Duplicate: true}, nil
		}
	}
	c.markDuplicates()
	if err := c.check(); err != nil {
		return evidence.Receipt{}, err
	}
	c.apply()
	return evidence.Receipt{Duplicates: c.duplicates}, nil
}

// The names of audit entries and events, of ids that were retracted, and of those that came from a store that kept no history
// when it saw them, are known apart from those of observations, which never hold a NUL.
const (
	auditName    = "audit\x00"
	eventName    = "event\x00"
	retractName  = "retracted\x00"
	untracedName = "untraced\x00"
)

// prepare finds the numbers and shards of all that the batch names.
func (c *commit) prepare(buffer []observed) {
	e, b := c.store, c.batch
	if b.ID != "" {
		c.lockIDs |= 1 << e.ids.hash(b.ID).shard()
	}
	for i := range b.Observations {
		o := &b.Observations[i]
		seen := observed{
			Observation: o,
			id:          e.ids.hash(o.ID),
			key:         cellKey{e.spaces.number(space{o.Cell.Kind, o.Cell.Scope}), e.names.number(o.Cell.Name), o.Cell.Item},
			policy:      c.policy(o.Cell.Kind),
		}
		c.lockIDs |= 1 << seen.id.shard()
		c.lockCells |= 1 << e.cells.index(seen.key.group())
		buffer = append(buffer, seen)
	}
	c.observed = buffer
	for i := range b.Audit {
		c.lockIDs |= 1 << e.ids.hash(auditName+b.Audit[i].ID).shard()
	}
	for i := range b.Events {
		c.lockIDs |= 1 << e.ids.hash(eventName+b.Events[i].ID).shard()
	}
	if len(b.Reset)+len(b.Rebuild)+len(b.Restart)+len(b.Retract)+len(b.Expunge) > 0 {
		c.lockIDs, c.lockCells = ^uint64(0), ^uint64(0)
	}
}

func (c *commit) policy(kind string) uint16 {
	return uint16(c.store.rules.number(c.batch.Policies[kind]))
}

// lock takes the locks in the order that all commits keep: ids, cells, records.
func (c *commit) lock() {
	e := c.store
	for mask := c.lockIDs; mask != 0; mask &= mask - 1 {
		shard := &e.ids.shards[bits.TrailingZeros64(mask)]
		shard.mu.Lock()
		shard.age(c.now, e.cfg.IDsFor)
	}
	for mask := c.lockCells; mask != 0; mask &= mask - 1 {
		e.cells.shards[bits.TrailingZeros64(mask)].mu.Lock()
	}
	if c.hasRecords() {
		e.records.mu.Lock()
	}
}

func (c *commit) unlock() {
	e := c.store
	if c.hasRecords() {
		e.records.mu.Unlock()
	}
	for mask := c.lockCells; mask != 0; mask &= mask - 1 {
		e.cells.shards[bits.TrailingZeros64(mask)].mu.Unlock()
	}
	for mask := c.lockIDs; mask != 0; mask &= mask - 1 {
		e.ids.shards[bits.TrailingZeros64(mask)].mu.Unlock()
	}
}

func (c *commit) hasRecords() bool {
	return len(c.batch.Audit)+len(c.batch.Events)+len(c.batch.Sent) > 0
}

func (c *commit) ids(h id) *idShard { return &c.store.ids.shards[h.shard()] }

func (c *commit) cells(key cellKey) *shard { return c.store.cells.of(key.group()) }

// markDuplicates finds the observations whose id was known before, and those that the batch itself holds twice.
func (c *commit) markDuplicates() {
	type once struct {
		id  id
		key cellKey
	}
	var inBatch map[once]bool
	if len(c.observed) > 1 {
		inBatch = make(map[once]bool, len(c.observed))
	}
	for i := range c.observed {
		o := &c.observed[i]
		if o.duplicate = c.ids(o.id).knows(o.id); o.duplicate {
			if !slices.Contains(c.duplicates, o.ID) {
				c.duplicates = append(c.duplicates, o.ID)
			}
			continue
		}
		if inBatch != nil {
			o.duplicate = inBatch[once{o.id, o.key}]
			inBatch[once{o.id, o.key}] = true
		}
	}
}

// check looks for all that keeps the batch from being applied.
func (c *commit) check() error {
	for _, cell := range c.batch.Rebuild {
		if c.lost(cell) && !c.resets(cell) {
			return evidence.ErrForgotten
		}
	}
	for _, r := range c.batch.Restart {
		if c.restarted(r) {
			continue
		}
		if !c.resets(r.Cell) && c.lostSince(r.Cell, evidence.InstantOf(r.At)) {
			return evidence.ErrForgotten
		}
	}
	if c.store.rules.count() > math.MaxUint16 {
		return fmt.Errorf("%w of different policies", evidence.ErrFull)
	}
	for i := range c.observed {
		if err := c.checkPolicy(&c.observed[i]); err != nil {
			return err
		}
	}
	for _, text := range c.batch.Retract {
		if err := c.checkRetract(text); err != nil {
			return err
		}
	}
	if len(c.batch.Expunge) > 0 && c.lostSources() {
		return evidence.ErrForgotten
	}
	return c.checkOutbox()
}

func (c *commit) resets(cell evidence.Cell) bool {
	return slices.ContainsFunc(c.batch.Reset, func(s evidence.Selection) bool { return s.Covers(cell) })
}

// slots calls the function with each slot of a cell.
func (c *commit) slots(cell evidence.Cell, f func(*slot)) {
	key, ok := c.store.findKey(cell)
	if !ok {
		return
	}
	shard := c.cells(key)
	for at := shard.first(key.group()); at != 0; at = shard.slot(at).next {
		if s := shard.slot(at); s.name == key.name {
			f(s)
		}
	}
}

// lost reports whether the history of a cell lacks something that its sums hold.
func (c *commit) lost(cell evidence.Cell) (lost bool) {
	c.prune(cell)
	c.slots(cell, func(s *slot) { lost = lost || s.lost&lostSome != 0 })
	return lost
}

// restarted reports whether a cell's restart is as far on already.
func (c *commit) restarted(r evidence.Restart) bool {
	key, ok := c.store.findKey(r.Cell)
	return ok && evidence.InstantOf(r.At) <= c.cells(key).restarts[key].at
}

// lostSince reports whether the history of a cell lacks something that its sums hold and that happened at a moment or later.
func (c *commit) lostSince(cell evidence.Cell, at evidence.Instant) (lost bool) {
	c.prune(cell)
	key, ok := c.store.findKey(cell)
	if !ok {
		return false
	}
	h := c.cells(key).histories[key]
	c.slots(cell, func(s *slot) {
		if s.lost&lostSome == 0 || slices.Max(s.last[:]) < int64(at) {
			return
		}
		if h != nil {
			if last, ok := h.lost[s.origin]; ok && slices.Max(last[:]) < int64(at) {
				return
			}
		}
		lost = true
	})
	return lost
}

func (c *commit) prune(cell evidence.Cell) {
	if key, ok := c.store.findKey(cell); ok {
		shard := c.cells(key)
		if h := shard.histories[key]; h != nil {
			c.store.prune(shard, key, h, c.now)
		}
	}
}

func (c *commit) checkPolicy(o *observed) error {
	if o.duplicate || c.resets(o.Cell) || slices.Contains(c.batch.Rebuild, o.Cell) {
		return nil
	}
	stored, ok := c.cells(o.key).policy(o.key)
	if !ok || stored == o.policy || c.empties(o.key, o.Cell) {
		return nil
	}
	return &evidence.PolicyError{Cell: o.Cell, Stored: c.store.rule(stored), Wanted: c.store.rule(o.policy)}
}

// empties reports whether the batch takes back all evidence of a cell, so that its policy is no longer settled.
func (c *commit) empties(key cellKey, cell evidence.Cell) bool {
	b, shard := c.batch, c.cells(key)
	restarts := slices.ContainsFunc(b.Restart, func(r evidence.Restart) bool { return r.Cell == cell })
	if _, restarted := shard.restarts[key]; restarts || restarted || len(b.Retract)+len(b.Expunge) == 0 {
		return false
	}
	var left uint64
	c.slots(cell, func(s *slot) {
		if s.origin == 0 || !slices.Contains(b.Expunge, c.store.origins.value(s.origin).source) {
			left += uint64(s.n[0]) + uint64(s.n[1]) + uint64(s.n[2])
		}
	})
	if h := shard.histories[key]; h != nil {
		for i := range h.entries {
			o := &h.entries[i].observation
			expunged := slices.Contains(b.Expunge, o.Source)
			ofSlot := expunged && c.store.originIn(shard, key, o) != 0 // the slot is left out above, with all that it holds
			if o.Weight > 0 && !ofSlot && (expunged || slices.Contains(b.Retract, o.ID)) {
				left--
			}
		}
	}
	return left == 0
}

// checkRetract looks whether the history holds all observations of an id, in the cells that may still count them.
func (c *commit) checkRetract(text string) error {
	h := c.store.ids.hash(text)
	ids := c.ids(h)
	switch {
	case c.knows(retractName + text):
		return nil
	case !ids.knows(h):
		return heed.ErrNotFound
	case c.store.cfg.NoHistory || c.knows(untracedName+text):
		return evidence.ErrForgotten
	}
	for _, cell := range ids.where(h) {
		if c.lost(cell) && !c.holds(cell, text) && !c.resets(cell) {
			return evidence.ErrForgotten
		}
	}
	return nil
}

func (c *commit) knows(name string) bool {
	h := c.store.ids.hash(name)
	return c.ids(h).knows(h)
}

func (c *commit) holds(cell evidence.Cell, id string) bool {
	key, ok := c.store.findKey(cell)
	if !ok {
		return false
	}
	h := c.cells(key).histories[key]
	return h != nil && slices.ContainsFunc(h.entries, func(e entry) bool { return e.observation.ID == id })
}

// lostSources reports whether a cell that keeps origins together holds sources that its history does not.
func (c *commit) lostSources() bool {
	e := c.store
	for i := range e.cells.shards {
		shard := &e.cells.shards[i]
		for key, h := range shard.histories {
			e.prune(shard, key, h, c.now)
		}
		for _, first := range shard.groups {
			for at := first; at != 0; at = shard.slot(at).next {
				s := shard.slot(at)
				if s.lost&lostSource != 0 && !c.resets(e.spaces.value(s.space).cell(shard.items.at(s.item), e.names.value(s.name))) {
					return true
				}
			}
		}
	}
	return false
}

func (c *commit) checkOutbox() error {
	if len(c.batch.Events) == 0 {
		return nil
	}
	held := len(c.store.records.outbox)
	for i := range c.batch.Events {
		h := c.store.ids.hash(eventName + c.batch.Events[i].ID)
		if !c.ids(h).knows(h) {
			held++
		}
	}
	if held <= c.store.cfg.MaxEvents {
		return nil
	}
	for _, e := range c.store.records.outbox {
		if slices.Contains(c.batch.Sent, e.ID) {
			held--
		}
	}
	if held > c.store.cfg.MaxEvents {
		return evidence.ErrFull
	}
	return nil
}

// apply changes the store. Nothing in it can fail.
func (c *commit) apply() {
	e, b := c.store, c.batch
	for _, selection := range b.Reset {
		c.reset(selection)
	}
	for _, cell := range b.Rebuild {
		if key, ok := e.findKey(cell); ok {
			e.rebuild(c.cells(key), key, c.policy(cell.Kind))
		}
	}
	for _, r := range b.Restart {
		c.restart(r)
	}
	for _, text := range b.Retract {
		c.retract(text)
	}
	if len(b.Expunge) > 0 {
		c.expunge()
	}
	for i := range c.observed {
		c.observe(&c.observed[i])
	}
	c.addRecords()
	if b.ID != "" {
		c.note(b.ID)
	}
}

func (c *commit) note(text string) {
	h := c.store.ids.hash(text)
	c.ids(h).young.note(h)
}

func (c *commit) observe(o *observed) {
	if o.duplicate {
		return
	}
	e := c.store
	ids, shard := c.ids(o.id), c.cells(o.key)
	ids.young.note(o.id)
	slot := e.count(shard, o.key, o.Observation, o.policy)
	if !e.cfg.NoHistory {
		ids.young.locate(o.id, o.Cell)
		kept := *o.Observation
		kept.At = evidence.InstantOf(o.At).Time()
		e.record(shard, o.key, entry{observation: kept, recorded: c.now})
	} else if slot != nil {
		slot.lost |= lossOf(o.Observation, slot.origin)
	}
}

func (c *commit) reset(selection evidence.Selection) {
	e := c.store
	number, ok := e.spaces.find(space{selection.Kind, selection.Scope})
	if !ok {
		return
	}
	covers := func(space, name uint32, item string) bool {
		return space == number && (selection.Item == "" || selection.Item == item) &&
			(selection.Name == "" || selection.Name == e.names.value(name))
	}
	for i := range e.cells.shards {
		shard := &e.cells.shards[i]
		for group, first := range shard.groups {
			key := shard.key(shard.slot(first))
			shard.remove(group, func(s *slot) bool { return covers(key.space, s.name, key.item) })
		}
		for key := range shard.histories {
			if covers(key.space, key.name, key.item) {
				delete(shard.histories, key)
			}
		}
		for key := range shard.restarts {
			if covers(key.space, key.name, key.item) {
				delete(shard.restarts, key)
			}
		}
	}
}

func (c *commit) restart(r evidence.Restart) {
	e := c.store
	key := cellKey{e.spaces.number(space{r.Cell.Kind, r.Cell.Scope}), e.names.number(r.Cell.Name), r.Cell.Item}
	shard := c.cells(key)
	at := evidence.InstantOf(r.At)
	if at <= shard.restarts[key].at {
		return
	}
	policy, ok := shard.policy(key)
	if !ok {
		policy = c.policy(r.Cell.Kind)
	}
	shard.keepRestart(key, restart{at, policy})
	e.rebuild(shard, key, policy)
}

func (c *commit) retract(text string) {
	h := c.store.ids.hash(text)
	for _, cell := range c.ids(h).where(h) {
		if key, ok := c.store.findKey(cell); ok {
			c.store.take(c.cells(key), key, func(o *evidence.Observation) bool { return o.ID == text })
		}
	}
	c.note(retractName + text)
}

func (c *commit) expunge() {
	e := c.store
	gone := func(source string) bool { return slices.Contains(c.batch.Expunge, source) }
	for i := range e.cells.shards {
		shard := &e.cells.shards[i]
		for key, h := range shard.histories {
			e.take(shard, key, func(o *evidence.Observation) bool { return gone(o.Source) })
			maps.DeleteFunc(h.lost, func(number uint32, _ [3]int64) bool {
				return number != 0 && gone(e.origins.value(number).source)
			})
		}
		for group := range shard.groups {
			shard.remove(group, func(s *slot) bool { return s.origin != 0 && gone(e.origins.value(s.origin).source) })
		}
	}
	e.origins.drop(func(o origin) bool { return gone(o.source) })
}

func (c *commit) addRecords() {
	if !c.hasRecords() {
		return
	}
	b := c.batch
	audit := c.unknown(auditName, len(b.Audit), func(i int) string { return b.Audit[i].ID })
	events := c.unknown(eventName, len(b.Events), func(i int) string { return b.Events[i].ID })
	c.store.records.add(pick(b.Audit, audit), pick(b.Events, events), b.Sent, c.store.cfg.MaxAudit)
}

// unknown returns which of n records are new, and makes them known.
func (c *commit) unknown(name string, n int, id func(int) string) (fresh []int) {
	for i := range n {
		h := c.store.ids.hash(name + id(i))
		if ids := c.ids(h); !ids.knows(h) {
			ids.young.note(h)
			fresh = append(fresh, i)
		}
	}
	return fresh
}

func pick[T any](all []T, which []int) (some []T) {
	for _, i := range which {
		some = append(some, all[i])
	}
	return some
}
