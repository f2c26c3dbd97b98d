package memstore

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/chance"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

// A cell contains the sums of what was observed of it, by origin, and the history of single
// observations.
//
// A cell belongs to its state, whose lock guards it. Only copies are changed while a commit is
// decided.
type cell struct {
	evidence.Cell
	// policy is settled by the first observation that counts, and changed only by a reset or a
	// rebuild.
	policy evidence.Policy
	// restart is the moment from which on observations count. 0: all do.
	restart evidence.Instant
	// tallies are the sums, in the order of channel and source. A tally without observations goes.
	tallies []tally
	// history has the observations that are still known one by one, in the order in which they
	// happened. It is bounded by number, and by the time since they were recorded.
	history []entry
	// lost has the ids of observations that the sums count and the history no longer holds, each with
	// the origin that it counts in. nil: a dump did not name the origin.
	lost map[id]*dump.Origin
}

// A tally holds the sums of one origin. A cell that keeps origins together has one tally, whose
// channel and source are empty.
type tally struct {
	dump.Origin
	evidence.Tally
	// lost is when the last observations happened that count here and that the history does not hold:
	// the last positive, negative and neutral one.
	lost       [3]evidence.Instant
	lostSource bool // one of those had a source, which the tally does not distinguish
}

// An entry is an observation of a history in the form of a dump: smaller than an
// [evidence.Observation]. Its Cell is not set.
type entry = dump.Observation

// entryOf returns an observation as the history has it. recorded is when the store got it, which
// starts its retention.
func entryOf(o *evidence.Observation, recorded evidence.Instant) entry {
	return entry{
		ID: o.ID, Channel: o.Channel, Source: o.Source, Session: o.Session,
		Reward: o.Reward, Weight: o.Weight, Share: o.Share,
		At: evidence.InstantOf(o.At), Recorded: recorded,
	}
}

// clone returns a copy that shares no memory that changes. A commit that takes evidence away works
// on copies, so that it can still be refused.
func (c *cell) clone() *cell {
	copied := *c
	copied.tallies, copied.history = slices.Clone(c.tallies), slices.Clone(c.history)
	copied.lost = maps.Clone(c.lost)
	return &copied
}

// open reports whether the policy of the cell is settled.
func (c *cell) open() bool { return len(c.tallies) > 0 || c.restart > 0 }

// empty reports whether the cell holds no evidence, so that it can go. A cell that was restarted
// is not empty, because what comes late must not count there.
func (c *cell) empty() bool { return !c.open() && len(c.history) == 0 }

// parts appends the sums of a cell, if there is one. They are in order, because the tallies are.
func (c *cell) parts(to []evidence.Part) []evidence.Part {
	if c == nil {
		return to
	}
	to = slices.Grow(to, len(c.tallies))
	for i := range c.tallies {
		t := &c.tallies[i]
		to = append(to, evidence.Part{
			Cell: c.Cell, Channel: t.Channel, Source: t.Source, Tally: t.Tally,
		})
	}
	return to
}

// counts reports whether an observation is a part of the sums: an observation without weight is no
// evidence, and one from before the restart does not count any more.
func (c *cell) counts(e *entry) bool { return e.Weight > 0 && e.At >= c.restart }

// origin returns the origin of the tally in which an observation counts.
func (c *cell) origin(e *entry) dump.Origin {
	if c.policy.ByOrigin {
		return dump.Origin{Channel: e.Channel, Source: e.Source}
	}
	return dump.Origin{}
}

// find returns where the tally of an origin is, or must be.
func (c *cell) find(from dump.Origin) (i int, found bool) {
	return slices.BinarySearchFunc(c.tallies, from, func(t tally, from dump.Origin) int {
		return cmp.Or(cmp.Compare(t.Channel, from.Channel), cmp.Compare(t.Source, from.Source))
	})
}

// tally returns the tally of an origin, or a new one.
func (c *cell) tally(from dump.Origin) *tally {
	i, found := c.find(from)
	if !found {
		c.tallies = slices.Insert(c.tallies, i, tally{
			Origin: from, Tally: evidence.Tally{HalfLife: c.policy.HalfLife},
		})
	}
	return &c.tallies[i]
}

// add adds an observation to the sums, if it counts. It does not touch the history, because a
// rebuild adds what is there already.
func (c *cell) add(e *entry) {
	if c.counts(e) {
		c.tally(c.origin(e)).Add(e.Weight, e.Share, e.Reward, e.At)
	}
}

// record adds an observation to the history, which holds at most a number of them: those that
// happened last. The one that leaves stays in the sums, and is noted as lost. The slice only moves
// forward, so dropping the first costs no copying.
func (c *cell) record(e entry, most int) {
	// From the end, because nearly all observations come in the order in which they happened.
	at := len(c.history)
	for at > 0 && c.history[at-1].At > e.At { // it is late
		at--
	}
	c.history = slices.Insert(c.history, at, e)
	for len(c.history) > most {
		c.lose(&c.history[0])
		c.history[0] = entry{}
		c.history = c.history[1:]
	}
}

// lose notes that the history does not hold an observation.
func (c *cell) lose(e *entry) {
	if !c.counts(e) {
		return
	}
	from := c.origin(e)
	c.tally(from).lose(e)
	if c.lost == nil {
		c.lost = make(map[id]*dump.Origin)
	}
	c.lost[hashID(e.ID)] = &from
}

// lose notes when an observation happened that the sums count and that can no longer be taken back.
// If the tally keeps sources together, one of them can no longer be expunged.
func (t *tally) lose(e *entry) {
	last := &t.lost[stores.Sign(e.Reward)]
	*last = max(*last, e.At)
	t.lostSource = t.lostSource || e.Source != "" && t.Origin == dump.Origin{}
}

// prune drops the observations of the history that were recorded before a moment.
func (c *cell) prune(oldest evidence.Instant) {
	c.history = slices.DeleteFunc(c.history, func(e entry) bool {
		if e.Recorded < oldest {
			c.lose(&e)
		}
		return e.Recorded < oldest
	})
}

// lostAt returns when the last observation happened that the sums count and the history does not
// hold, or 0. What has to be computed again from the history must be later than that.
func (c *cell) lostAt() (last evidence.Instant) {
	for i := range c.tallies {
		last = max(last, slices.Max(c.tallies[i].lost[:]))
	}
	return last
}

// lacks reports whether the sums may count an observation that the history does not hold. After a
// rebuild the sums count the history alone, though the id may still be noted.
func (c *cell) lacks(h id) bool {
	from, lost := c.lost[h]
	return lost && slices.ContainsFunc(c.tallies, func(t tally) bool {
		return slices.Max(t.lost[:]) > 0 && (from == nil || *from == t.Origin)
	})
}

// take takes observations out of the history and, as far as they counted, out of the sums. Sums are
// additive, so what is left is what would be there if the observations had never come. Only the
// moment of the last observation is no sum, and is looked up again.
func (c *cell) take(gone func(*entry) bool) {
	touched := make(map[dump.Origin]bool)
	c.history = slices.DeleteFunc(c.history, func(e entry) bool {
		if !gone(&e) {
			return false
		}
		if c.counts(&e) {
			from := c.origin(&e)
			c.tally(from).Take(e.Weight, e.Share, e.Reward, e.At)
			touched[from] = true
		}
		return true
	})
	for from := range touched {
		c.correctLast(from)
	}
	// A tally is empty by its count, not by its sums, in which rounding may leave a little.
	c.tallies = slices.DeleteFunc(c.tallies, func(t tally) bool { return t.N() == 0 })
}

// correctLast repairs what can't be subtracted: when the last observations of an origin happened.
// They are looked up in the history that is left, and among what is known to be lost.
func (c *cell) correctLast(from dump.Origin) {
	t := c.tally(from)
	last := t.lost
	for i := range c.history {
		if e := &c.history[i]; c.counts(e) && c.origin(e) == from {
			last[stores.Sign(e.Reward)] = max(last[stores.Sign(e.Reward)], e.At)
		}
	}
	for i, count := range []*evidence.Count{&t.Positive, &t.Negative, &t.Neutral} {
		count.Last = last[i]
	}
}

// rebuild makes the sums from the history. The caller has checked that the history is whole.
func (c *cell) rebuild() {
	c.tallies, c.lost = nil, nil
	for i := range c.history {
		c.add(&c.history[i])
	}
}

// A space holds the cells that are listed together, by item. A list of one scope must not cost what
// other scopes have.
type space struct{ kind, scope string }

// find returns a cell, or nil.
func (s *state) find(c evidence.Cell) *cell {
	cells := s.spaces[space{c.Kind, c.Scope}][c.Item]
	if i, found := byName(cells, c.Name); found {
		return cells[i]
	}
	return nil
}

// cell returns a cell, or a new one. The cells of an item stay in the order of their names, which
// is the order of a listing.
func (s *state) cell(c evidence.Cell) *cell {
	in := space{c.Kind, c.Scope}
	cells := s.spaces[in][c.Item]
	i, found := byName(cells, c.Name)
	if found {
		return cells[i]
	}
	if s.spaces[in] == nil {
		s.spaces[in] = make(map[string][]*cell)
	}
	made := &cell{Cell: c}
	s.spaces[in][c.Item] = slices.Insert(cells, i, made)
	return made
}

// byName returns where the cell of a name is among the cells of an item, or must be.
func byName(cells []*cell, name string) (i int, found bool) {
	return slices.BinarySearchFunc(cells, name, func(c *cell, name string) int {
		return cmp.Compare(c.Name, name)
	})
}

// tidy drops a cell that is empty, and its item and its space if it was their last. The cell may be
// a copy that did not take the place of the cell, which then stays.
func (s *state) tidy(c *cell) {
	in := space{c.Kind, c.Scope}
	cells := s.spaces[in][c.Item]
	i, found := byName(cells, c.Name)
	if !c.empty() || !found || cells[i] != c {
		return
	}
	if cells = slices.Delete(cells, i, i+1); len(cells) > 0 {
		s.spaces[in][c.Item] = cells
		return
	}
	delete(s.spaces[in], c.Item)
	if len(s.spaces[in]) == 0 {
		delete(s.spaces, in)
	}
}

// cells yields all cells, in any order.
func (s *state) cells() iter.Seq[*cell] {
	return func(yield func(*cell) bool) {
		for _, items := range s.spaces {
			for _, cells := range items {
				for _, c := range cells {
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}

// items returns the items of a space in order, or a sample of them. See [store.Sample] for what a
// sample must not depend on.
func (s *state) items(in space, sample *store.Sample) []string {
	all := s.spaces[in]
	if sample == nil || len(all) <= sample.Most {
		return slices.Sorted(maps.Keys(all))
	}
	items := make([]string, 0, sample.Most+sample.Most/4)
	// Each item draws a number. The numbers depend on its name and on how many items there are, so
	// that a store with the same evidence gives the same sample, and no name is in every sample.
	draws, least := chance.Key{A: uint64(len(all))}, float64(sample.Most)/float64(len(all))
	for item := range all {
		if draw := draws.Rand(0, item); draw.Float64() < least {
			items = append(items, item)
		}
	}
	sample.Given, sample.All = len(items), len(all)
	slices.Sort(items)
	return items
}

// selected appends the parts of a cell that a query selects. A query that asks for cells without
// evidence, or for a source, gets a part without sums if there is no other. With Lost, a cell
// counts as one that lost evidence as soon as its history is past its time.
func (c *cell) selected(q *store.CellQuery, oldest evidence.Instant, to []evidence.Part,
) []evidence.Part {
	had := len(to)
	switch {
	case q.Lost && (c.lostAt() > 0 || c.expired(oldest)), !q.Lost && q.Naming == "":
		to = c.parts(to)
	case q.Naming != "":
		mayHold := func(p evidence.Part) bool { return p.Source == q.Naming || !c.policy.ByOrigin }
		for _, p := range c.parts(nil) {
			if mayHold(p) {
				to = append(to, p)
			}
		}
	}
	if len(to) == had && !q.Lost && (q.Empty || q.Naming != "") {
		to = append(to, evidence.Part{Cell: c.Cell})
	}
	return to
}

// naming returns the cells that name a source, in order. If a source is lost in the sums of any
// cell of the tenant, it may be the one that is asked for, and the answer is an error for all
// cells: a job that forgets the person must not begin then.
func (s *state) naming(source, tenant string, now evidence.Instant) (all []*cell, err error) {
	oldest := s.oldestHistory(now)
	for c := range s.cells() {
		if _, of := store.KindOf(c.Kind); of != tenant {
			continue
		}
		lost := func(t tally) bool { return t.lostSource }
		// What is past its time is about to be lost.
		losing := func(e entry) bool { return e.Recorded < oldest && e.Source != "" && c.counts(&e) }
		if slices.ContainsFunc(c.tallies, lost) ||
			!c.policy.ByOrigin && slices.ContainsFunc(c.history, losing) {
			return nil, fmt.Errorf("in a cell of kind %q and scope %q: %w", c.Kind, c.Scope,
				evidence.ErrForgotten)
		}
		if c.names(source) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *cell) int { return a.Compare(b.Cell) })
	return all, nil
}

// names reports whether a cell contains a source in its sums, its history or its name.
func (c *cell) names(source string) bool {
	return c.named(source) ||
		slices.ContainsFunc(c.history, func(e entry) bool { return e.Source == source }) ||
		slices.ContainsFunc(c.tallies, func(t tally) bool { return t.Source == source })
}

// scopes returns the scopes of a kind that have evidence, in order. It looks at all scopes, because
// there are few of them.
func (s *state) scopes(kind string) (scopes []string) {
	// A scope whose cells were all restarted has cells, and yet no evidence.
	for in, items := range s.spaces {
		hasEvidence := func(c *cell) bool { return len(c.tallies) > 0 }
		for _, cells := range items {
			if in.kind == kind && slices.ContainsFunc(cells, hasEvidence) {
				scopes = append(scopes, in.scope)
				break
			}
		}
	}
	slices.Sort(scopes)
	return scopes
}

// mostHistory returns how many observations are kept of a cell of a kind: as many as the kind was
// declared with, unless the host configured a number.
func (s *state) mostHistory(name string) int {
	base, _ := store.KindOf(name)
	if kind := s.kinds[base]; kind != nil && s.cfg.declared {
		return max(s.cfg.HistoryPerCell, kind.History)
	}
	return s.cfg.HistoryPerCell
}

// oldestHistory returns the moment from which on observations are kept.
func (s *state) oldestHistory(now evidence.Instant) evidence.Instant {
	return before(now, s.cfg.HistoryFor)
}

// before returns the moment that is as long ago as a duration.
func before(now evidence.Instant, d time.Duration) evidence.Instant {
	return now - evidence.Instant(d.Microseconds())
}

// expiredCells returns the cells whose history has observations that are past their time.
func (s *state) expiredCells(now evidence.Instant) (due []*cell) {
	oldest := s.oldestHistory(now)
	for c := range s.cells() {
		if c.expired(oldest) {
			due = append(due, c)
		}
	}
	return due
}

// expired reports whether the history has an observation that was recorded before a moment.
func (c *cell) expired(oldest evidence.Instant) bool {
	return slices.ContainsFunc(c.history, func(e entry) bool { return e.Recorded < oldest })
}

// prune drops what is past its time from the history of a cell, and the cell if it is empty then.
func (s *state) prune(c *cell, now evidence.Instant) {
	c.prune(s.oldestHistory(now))
	s.tidy(c)
}
