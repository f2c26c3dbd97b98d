package memstore

import (
	"maps"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// prepareTaking finds the shards of the evidence that a batch takes away. Ids to retract say themselves in which cells they are. For
// all else the store is locked as a whole.
func (t *txn) prepareTaking(b *store.Batch) {
	t.taken = slices.Concat(b.Retract, b.Withdraw)
	for _, text := range t.taken {
		t.lockIDs |= 1 << hashID(text).shard()
	}
	if takesMuch(b) {
		t.lockIDs, t.lockCells = ^uint64(0), ^uint64(0)
	}
	if len(b.Forget) > 0 {
		t.lockRecords = ^uint64(0)
	}
}

// takesMuch reports whether a batch does more than to take single ids back.
func takesMuch(b *store.Batch) bool {
	return len(b.Reset)+len(b.Rebuild)+len(b.Restart)+len(b.Expunge)+len(b.Forget) > 0
}

// checkTaking looks whether all can be taken away that the first batch says.
func (t *txn) checkTaking() error {
	b := t.taking
	for _, cell := range b.Rebuild {
		if t.lost(cell) && !resets(b, cell) {
			return evidence.ErrForgotten
		}
	}
	for _, r := range b.Restart {
		if !t.restarted(r) && !resets(b, r.Cell) && t.lostSince(r.Cell, evidence.InstantOf(r.At)) {
			return evidence.ErrForgotten
		}
	}
	t.retracts = slices.Clone(b.Retract)
	for _, text := range b.Retract {
		if err := t.checkRetract(text); err != nil {
			return err
		}
	}
	kept := &t.receipts[0].Kept
	for _, text := range b.Withdraw {
		if t.checkRetract(text) == nil {
			t.retracts = append(t.retracts, text)
		} else if !slices.Contains(*kept, text) {
			*kept = append(*kept, text)
		}
	}
	t.sources = append(slices.Clone(b.Expunge), b.Forget...)
	if len(t.sources) > 0 && t.lostSources() {
		return evidence.ErrForgotten
	}
	return nil
}

func resets(b *store.Batch, cell evidence.Cell) bool {
	return slices.ContainsFunc(b.Reset, func(s store.Selection) bool { return s.Covers(cell) })
}

// slots calls the function with each slot of a cell.
func (t *txn) slots(key cellKey, f func(*slot)) {
	shard := t.shard(key)
	for at := shard.first(key.group()); at != 0; at = shard.slot(at).next {
		if s := shard.slot(at); s.name == key.name {
			f(s)
		}
	}
}

// lost reports whether the history of a cell lacks something that its sums hold.
func (t *txn) lost(cell evidence.Cell) bool {
	key, ok := t.state.findKey(cell)
	if !ok {
		return false
	}
	t.pruned(key)
	lost := false
	t.slots(key, func(s *slot) { lost = lost || s.lost&lostSome != 0 })
	return lost
}

// restarted reports whether a cell's restart is as far on already.
func (t *txn) restarted(r store.Restart) bool {
	key, ok := t.state.findKey(r.Cell)
	return ok && evidence.InstantOf(r.At) <= t.shard(key).restarts[key].at
}

// lostSince reports whether the history of a cell lacks something that its sums hold and that happened at a moment or later.
func (t *txn) lostSince(cell evidence.Cell, at evidence.Instant) (lost bool) {
	key, ok := t.state.findKey(cell)
	if !ok {
		return false
	}
	h := t.pruned(key)
	t.slots(key, func(s *slot) {
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

// pruned returns the history of a cell without expired observations.
func (t *txn) pruned(key cellKey) *history {
	shard := t.shard(key)
	h := shard.histories[key]
	if h != nil {
		t.state.prune(shard, key, h, t.now)
	}
	return h
}

// empties reports whether the batch takes back all evidence of a cell, so that its policy is no longer settled.
func (t *txn) empties(key cellKey, cell evidence.Cell) bool {
	if t.taking == nil || len(t.retracts)+len(t.sources) == 0 {
		return false
	}
	shard := t.shard(key)
	restarts := slices.ContainsFunc(t.taking.Restart, func(r store.Restart) bool { return r.Cell == cell })
	if _, restarted := shard.restarts[key]; restarts || restarted {
		return false
	}
	var left uint64
	t.slots(key, func(s *slot) {
		if s.origin == 0 || !slices.Contains(t.sources, t.state.origins.value(s.origin).source) {
			left += uint64(s.n[0]) + uint64(s.n[1]) + uint64(s.n[2])
		}
	})
	if h := shard.histories[key]; h != nil {
		for i := range h.entries {
			o := &h.entries[i]
			expunged := slices.Contains(t.sources, o.source)
			ofSlot := expunged && t.state.originIn(shard, key, o) != 0 // the slot is left out above, with all that it holds
			if o.weight > 0 && !ofSlot && (expunged || slices.Contains(t.retracts, o.text)) {
				left--
			}
		}
	}
	return left == 0
}

// checkRetract looks whether the history holds all observations of an id, in the cells that may still count them.
func (t *txn) checkRetract(text string) error {
	h := hashID(text)
	ids := t.ids(h)
	m, ok := ids.mark(h)
	switch {
	case !ok:
		return heed.ErrNotFound
	case m&retracted != 0:
		return nil
	case t.state.cfg.NoHistory || m&untraced != 0:
		return evidence.ErrForgotten
	}
	for _, p := range ids.places(h) {
		t.pruned(p.cellKey)
		if t.state.misses(p) && !t.state.holds(p.cellKey, h) && !t.resetsKey(p.cellKey) {
			return evidence.ErrForgotten
		}
	}
	return nil
}

func (t *txn) resetsKey(key cellKey) bool {
	return len(t.taking.Reset) > 0 && resets(t.taking, t.state.spaces.value(key.space).cell(key.item, t.state.names.value(key.name)))
}

// misses reports whether a cell may count an observation of a place that its history does not hold.
func (s *state) misses(p place) bool {
	shard := s.cells.of(p.group())
	h := shard.histories[p.cellKey]
	if h == nil || p.stamp == 0 || p.stamp < h.born {
		return false
	}
	for at := shard.first(p.group()); at != 0; at = shard.slot(at).next {
		slot := shard.slot(at)
		if slot.name == p.name && slot.lost&lostSome != 0 && (slot.origin == p.origin || p.origin == anyOrigin) {
			return true
		}
	}
	return false
}

func (s *state) holds(key cellKey, h id) bool {
	history := s.cells.of(key.group()).histories[key]
	return history != nil && slices.ContainsFunc(history.entries, func(e entry) bool { return e.id == h })
}

// lostSources reports whether a cell that keeps origins together holds sources that its history does not.
func (t *txn) lostSources() bool {
	s := t.state
	for i := range s.cells.shards {
		shard := &s.cells.shards[i]
		for key, h := range shard.histories {
			s.prune(shard, key, h, t.now)
		}
		for _, g := range shard.groups {
			for at := g.first; at != 0; at = shard.slot(at).next {
				slot := shard.slot(at)
				cell := s.spaces.value(slot.space).cell(shard.items.at(slot.item), s.names.value(slot.name))
				if slot.lost&lostSource != 0 && !resets(t.taking, cell) {
					return true
				}
			}
		}
	}
	return false
}

// take takes away the evidence that the first batch names. Nothing in it can fail.
func (t *txn) take() {
	b := t.taking
	for _, selection := range b.Reset {
		t.reset(selection)
	}
	for _, cell := range b.Rebuild {
		if key, ok := t.state.findKey(cell); ok {
			t.rebuild(key, t.policy(b, cell.Kind))
		}
	}
	for _, r := range b.Restart {
		t.restartCell(r)
	}
	for _, text := range t.retracts {
		t.retract(text)
	}
	if len(t.sources) > 0 {
		t.expunge()
	}
	if len(b.Forget) > 0 {
		t.forget()
	}
}

func (t *txn) reset(selection store.Selection) {
	s := t.state
	number, ok := s.spaces.find(space{selection.Kind, selection.Scope})
	if !ok {
		return
	}
	covers := func(space, name uint32, item string) bool {
		return space == number && (selection.Item == "" || selection.Item == item) &&
			(selection.Name == "" || selection.Name == s.names.value(name))
	}
	for i := range s.cells.shards {
		shard := &s.cells.shards[i]
		for _, first := range slices.Clone(shard.spaces[number]) {
			key := shard.key(shard.slot(first))
			shard.remove(hashGroup(shard.seeds, key), func(slot *slot) bool { return covers(key.space, slot.name, key.item) })
		}
		maps.DeleteFunc(shard.histories, func(key cellKey, _ *history) bool { return covers(key.space, key.name, key.item) })
		maps.DeleteFunc(shard.restarts, func(key cellKey, _ restart) bool { return covers(key.space, key.name, key.item) })
	}
}

func (t *txn) restartCell(r store.Restart) {
	s := t.state
	key := cellKey{s.spaces.number(space{r.Cell.Kind, r.Cell.Scope}), s.names.number(r.Cell.Name), r.Cell.Item}
	shard := t.shard(key)
	at := evidence.InstantOf(r.At)
	if at <= shard.restarts[key].at {
		return
	}
	policy, ok := shard.policy(key)
	if !ok {
		policy = t.policy(t.taking, r.Cell.Kind)
	}
	shard.keepRestart(key, restart{at, policy})
	t.rebuild(key, policy)
}

// rebuild makes a cell anew from its history. It then holds the observations of the history, and no others.
func (t *txn) rebuild(key cellKey, policy uint16) {
	shard := t.shard(key)
	t.state.rebuild(shard, key, policy)
	if h := shard.histories[key]; h != nil {
		shard.stamp++
		h.born = shard.stamp
		for i := range h.entries {
			e := &h.entries[i]
			to := place{cellKey: key}
			if e.weight > 0 && e.at >= shard.restarts[key].at {
				to.origin, to.stamp = t.state.originIn(shard, key, e), shard.stamp
			}
			t.ids(e.id).move(e.id, to)
		}
	}
}

func (t *txn) retract(text string) {
	h := hashID(text)
	ids := t.ids(h)
	for _, p := range ids.places(h) {
		t.state.take(t.shard(p.cellKey), p.cellKey, func(o *entry) bool { return o.id == h })
	}
	ids.note(h, newMark(t.now)|retracted)
}

func (t *txn) expunge() {
	s := t.state
	gone := func(source string) bool { return slices.Contains(t.sources, source) }
	for i := range s.cells.shards {
		shard := &s.cells.shards[i]
		for key, h := range shard.histories {
			s.take(shard, key, func(o *entry) bool {
				if !gone(o.source) {
					return false
				}
				t.ids(o.id).move(o.id, place{cellKey: key})
				return true
			})
			maps.DeleteFunc(h.lost, func(number uint32, _ [3]int64) bool {
				return number != 0 && gone(s.origins.value(number).source)
			})
			if len(h.entries)+len(h.lost) == 0 {
				delete(shard.histories, key)
			}
		}
		for hash := range shard.groups {
			shard.remove(hash, func(slot *slot) bool { return slot.origin != 0 && gone(s.origins.value(slot.origin).source) })
		}
	}
	s.origins.drop(func(o origin) bool { return gone(o.source) })
}
