package memstore

import (
	"slices"

	"github.com/heedhq/heed/evidence"
)

// A history holds observations of one cell, the oldest first.
type history struct {
	entries []entry
	// lost has an entry for each origin that has lost observations from the history: when the last of them happened, by sign. Those that are
	// kept of that origin and sign happened later, except for those that came too late to be kept.
	lost map[uint32][3]int64
	// born is the least stamp of observations that the cell may hold. Those before it went with a reset or a rebuild.
	born uint64
}

// An entry is an observation without its cell.
type entry struct {
	text                     string // the observation's ID
	id                       id     // the hash of that
	channel, source, session string
	reward, weight, share    float64
	at, recorded             evidence.Instant
}

func newEntry(o *evidence.Observation, h id, recorded evidence.Instant) entry {
	return entry{o.ID, h, o.Channel, o.Source, o.Session, o.Reward, o.Weight, o.Share, evidence.InstantOf(o.At), recorded}
}

func (e *entry) observation(c evidence.Cell) evidence.Observation {
	return evidence.Observation{
		ID: e.text, Cell: c, Channel: e.channel, Source: e.source, Session: e.session, Reward: e.reward, Weight: e.weight, Share: e.share,
		At: e.at.Time(),
	}
}

// history returns the history of a cell, a new one if there is none.
func (s *shard) history(key cellKey) *history {
	h := s.histories[key]
	if h == nil {
		if s.histories == nil {
			s.histories = make(map[cellKey]*history)
		}
		h = &history{born: s.stamp}
		s.histories[key] = h
	}
	return h
}

// lose notes when the last observations of an origin happened that have left the history, by sign.
func (h *history) lose(origin uint32, last [3]int64) {
	if h.lost == nil {
		h.lost = make(map[uint32][3]int64)
	}
	for i, before := range h.lost[origin] {
		last[i] = max(last[i], before)
	}
	h.lost[origin] = last
}

// record adds an observation to the history of its cell, and drops the oldest if the history is then too long.
func (e *engine) record(s *shard, key cellKey, added entry) {
	h := s.history(key)
	place, at := len(h.entries), added.at
	if place > 0 && h.entries[place-1].at > at { // it is late
		place, _ = slices.BinarySearchFunc(h.entries, at, func(e entry, at evidence.Instant) int {
			if e.at <= at {
				return -1
			}
			return 1
		})
	}
	h.entries = slices.Insert(h.entries, place, added)
	if len(h.entries) > e.most(key) {
		e.forget(s, key, h, &h.entries[0])
		h.entries[0] = entry{}
		h.entries = h.entries[1:]
	}
}

// most returns how many observations are kept of a cell.
func (e *engine) most(key cellKey) int {
	if !e.cfg.declared {
		return e.cfg.HistoryPerCell
	}
	return max(e.cfg.HistoryPerCell, e.declaredHistory(e.spaces.value(key.space).kind))
}

// prune drops expired observations from a history.
func (e *engine) prune(s *shard, key cellKey, h *history, now evidence.Instant) {
	oldest := now - evidence.Instant(e.cfg.HistoryFor.Microseconds())
	h.entries = slices.DeleteFunc(h.entries, func(entry entry) bool {
		if entry.recorded >= oldest {
			return false
		}
		e.forget(s, key, h, &entry)
		return true
	})
	if len(h.entries) == 0 && len(h.lost) == 0 {
		delete(s.histories, key)
	}
}

// forget marks that the cell's sums hold an observation that its history does not.
func (e *engine) forget(s *shard, key cellKey, h *history, gone *entry) {
	if gone.weight == 0 || gone.at < s.restarts[key].at {
		return
	}
	number := e.originIn(s, key, gone)
	at := s.find(key, number)
	if at == 0 {
		return
	}
	slot := s.slot(at)
	slot.lost |= lossOf(gone, slot.origin)
	var last [3]int64
	last[sign(gone.reward)] = int64(gone.at)
	h.lose(number, last)
}

// lossOf returns the loss of an observation that the history does not hold. A slot of its own origin tells its source.
func lossOf(o *entry, origin uint32) loss {
	if o.source != "" && origin == 0 {
		return lostSome | lostSource
	}
	return lostSome
}

// originIn returns the number of the origin under which a cell keeps an observation.
func (e *engine) originIn(s *shard, key cellKey, o *entry) uint32 {
	if policy, ok := s.policy(key); ok && e.rule(policy).ByOrigin {
		return e.origins.number(origin{o.channel, o.source})
	}
	return 0
}

// take takes out of a cell the observations of its history for which the function is true: out of the history, and as far
// as they counted, out of the sums.
func (e *engine) take(s *shard, key cellKey, gone func(*entry) bool) {
	h := s.histories[key]
	if h == nil {
		return
	}
	touched := make(map[uint32]bool)
	kept := h.entries[:0]
	for i := range h.entries {
		o := &h.entries[i]
		if !gone(o) {
			kept = append(kept, *o)
			continue
		}
		if o.weight == 0 || o.at < s.restarts[key].at {
			continue
		}
		number := e.originIn(s, key, o)
		slot := s.slot(s.find(key, number))
		tally := slot.tally(e.rule(slot.policy).HalfLife)
		tally.Take(o.weight, o.share, o.reward, o.at)
		slot.keep(tally)
		touched[number] = true
	}
	clear(h.entries[len(kept):])
	h.entries = kept
	for number := range touched {
		e.mendLast(s, key, h, number)
	}
	s.remove(hashGroup(s.seeds, key.group()), func(slot *slot) bool { return slot.name == key.name && slot.empty() })
	if len(h.entries) == 0 && len(h.lost) == 0 {
		delete(s.histories, key)
	}
}

// mendLast sets when the last observations of an origin happened to what is left: in the history, or known to be lost.
func (e *engine) mendLast(s *shard, key cellKey, h *history, number uint32) {
	last := h.lost[number]
	for i := range h.entries {
		o := &h.entries[i]
		if o.weight > 0 && o.at >= s.restarts[key].at && e.originIn(s, key, o) == number {
			last[sign(o.reward)] = max(last[sign(o.reward)], int64(o.at))
		}
	}
	slot := s.slot(s.find(key, number))
	for i := range last {
		if slot.n[i] > 0 {
			slot.last[i] = last[i]
		} else {
			slot.last[i] = 0
		}
	}
}

// rebuild makes a cell anew from its history, under a policy and from a restart on.
func (e *engine) rebuild(s *shard, key cellKey, policy uint16) {
	s.remove(hashGroup(s.seeds, key.group()), func(slot *slot) bool { return slot.name == key.name })
	if r, ok := s.restarts[key]; ok {
		s.restarts[key] = restart{r.at, policy}
	}
	h := s.histories[key]
	if h == nil {
		return
	}
	h.lost = nil
	for i := range h.entries {
		e.count(s, key, &h.entries[i], policy)
	}
}

// count adds an observation to the sums of its cell.
func (e *engine) count(s *shard, key cellKey, o *entry, policy uint16) *slot {
	if o.weight == 0 || o.at < s.restarts[key].at {
		return nil
	}
	rule := e.rule(policy)
	var from uint32
	if rule.ByOrigin {
		from = e.origins.number(origin{o.channel, o.source})
	}
	slot := s.open(key, from, policy, e.compareOrigins)
	tally := slot.tally(rule.HalfLife)
	tally.Add(o.weight, o.share, o.reward, o.at)
	slot.keep(tally)
	return slot
}
