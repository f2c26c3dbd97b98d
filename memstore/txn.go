package memstore

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A txn is one commit on its way into the store. It locks the shards that it touches, always in the same order: ids,
// cells, records. Then it looks for all that could be wrong, and only then it changes anything.
type txn struct {
	state    *state
	batches  []store.Batch
	now      evidence.Instant
	receipts []store.Receipt
	*notes

	taken    []string     // ids that may be taken back
	taking   *store.Batch // the first batch, if it takes evidence away and is not a duplicate
	sources  []string     // to expunge
	retracts []string     // to retract, those to withdraw among them
	edits    map[*row]edit

	lockIDs, lockCells, lockRecords uint64 // the shards to lock, a bit each
}

// notes are what a transaction writes down. Their memory is used again.
type notes struct {
	hashes   []id // of the batches' ids; empty: no batch has one
	observed []sighting
	writes   []write
	needed   rooms
}

var pages = sync.Pool{New: func() any { return &notes{} }}

// tooLong is how many notes are not kept.
const tooLong = 1024

// giveBack lets the next transaction use the notes.
func (n *notes) giveBack() {
	if cap(n.observed) > tooLong || cap(n.writes) > tooLong {
		return
	}
	clear(n.observed)
	clear(n.writes)
	clear(n.needed)
	n.hashes, n.observed = n.hashes[:0], n.observed[:0]
	n.writes, n.needed = n.writes[:0], n.needed[:0]
	pages.Put(n)
}

// A sighting is an observation with the store's own names of its parts.
type sighting struct {
	*evidence.Observation
	batch  int
	id     id
	key    cellKey
	policy uint16
	known  bool
}

// A write is a record to be written or removed.
type write struct {
	*store.Record
	batch int
	shard int
	kind  *kind
	row   *row // that is there now
	skip  bool
}

func (t *txn) run() error {
	if err := t.prepare(); err != nil {
		return err
	}
	t.lock()
	err := errLeft
	if !t.state.left.Load() {
		err = t.decide()
	}
	if err == nil {
		t.apply()
	}
	t.unlock()
	if err != nil {
		t.receipts = nil
		return err
	}
	t.trim()
	return nil
}

// prepare finds the numbers and shards of all that the batches name.
func (t *txn) prepare() error {
	s := t.state
	t.receipts = make([]store.Receipt, len(t.batches))
	for i := range t.batches {
		b := &t.batches[i]
		t.observed = slices.Grow(t.observed, len(b.Observations))
		t.writes = slices.Grow(t.writes, len(b.Records))
		if b.ID != "" {
			if len(t.hashes) == 0 {
				t.hashes = slices.Grow(t.hashes, len(t.batches))[:len(t.batches)]
			}
			t.hashes[i] = hashID(b.ID)
			t.lockIDs |= 1 << t.hashes[i].shard()
		}
		for k := range b.Observations {
			o := &b.Observations[k]
			seen := sighting{
				Observation: o, batch: i,
				id:     hashID(o.ID),
				key:    cellKey{s.spaces.number(space{o.Cell.Kind, o.Cell.Scope}), s.names.number(o.Cell.Name), o.Cell.Item},
				policy: t.policy(b, o.Cell.Kind),
			}
			t.lockIDs |= 1 << seen.id.shard()
			t.lockCells |= 1 << s.cells.index(seen.key.group())
			t.observed = append(t.observed, seen)
		}
		for k := range b.Expect {
			t.lockRecords |= 1 << s.records.shard(b.Expect[k].ID)
		}
		for k := range b.Records {
			r := &b.Records[k]
			w := write{Record: r, batch: i, shard: s.records.shard(r.ID), kind: s.records.kind(r.Kind)}
			if w.kind == nil {
				return undeclared(len(t.batches), i, k)
			}
			t.lockRecords |= 1 << w.shard
			t.writes = append(t.writes, w)
		}
	}
	if len(t.batches) > 0 && t.batches[0].TakesAway() {
		t.prepareTaking(&t.batches[0])
	}
	if s.rules.count() > math.MaxUint16 {
		return fmt.Errorf("%w of different policies", evidence.ErrFull)
	}
	return nil
}

func undeclared(batches, batch, record int) error {
	field := fmt.Sprintf("Records[%d].Kind", record)
	if batches > 1 {
		field = fmt.Sprintf("Batches[%d].%s", batch, field)
	}
	return &heed.InputError{Field: field, Reason: "must have been declared"}
}

func (t *txn) policy(b *store.Batch, kind string) uint16 {
	return uint16(t.state.rules.number(b.Policies[kind]))
}

func (t *txn) lock() {
	s := t.state
	for mask := t.lockIDs; mask != 0; mask &= mask - 1 {
		shard := &s.known.shards[bits.TrailingZeros64(mask)]
		shard.mu.Lock()
		shard.age(t.now, s.cfg.IDsFor)
	}
	for _, text := range t.taken { // only now they stay where they are
		h := hashID(text)
		for _, p := range t.ids(h).places(h) {
			t.lockCells |= 1 << s.cells.index(p.group())
		}
	}
	for mask := t.lockCells; mask != 0; mask &= mask - 1 {
		s.cells.shards[bits.TrailingZeros64(mask)].mu.Lock()
	}
	for mask := t.lockRecords; mask != 0; mask &= mask - 1 {
		s.records.locks[bits.TrailingZeros64(mask)].Lock()
	}
}

func (t *txn) unlock() {
	s := t.state
	for mask := t.lockRecords; mask != 0; mask &= mask - 1 {
		s.records.locks[bits.TrailingZeros64(mask)].Unlock()
	}
	for mask := t.lockCells; mask != 0; mask &= mask - 1 {
		s.cells.shards[bits.TrailingZeros64(mask)].mu.Unlock()
	}
	for mask := t.lockIDs; mask != 0; mask &= mask - 1 {
		s.known.shards[bits.TrailingZeros64(mask)].mu.Unlock()
	}
}

func (t *txn) ids(h id) *knownShard { return t.state.known.of(h) }

func (t *txn) shard(key cellKey) *shard { return t.state.cells.of(key.group()) }

// decide plans the changes of the transaction, and checks that they can be made.
func (t *txn) decide() error {
	t.markDuplicates()
	if len(t.batches) > 0 && t.batches[0].TakesAway() && !t.receipts[0].Duplicate {
		t.taking = &t.batches[0]
		if err := t.checkTaking(); err != nil {
			return err
		}
		if err := t.planForget(); err != nil {
			return err
		}
	}
	if err := t.checkPolicies(); err != nil {
		return err
	}
	return t.checkRecords()
}

// markDuplicates finds the batches whose id is known, and the observations: known before the commit, from a batch before
// their own, or the same again in one batch.
func (t *txn) markDuplicates() {
	var seen map[id]int // ids of this commit, with the batch that brought them
	if len(t.batches) > 1 {
		seen = make(map[id]int)
	}
	rest := t.observed
	for i := range t.batches {
		b, own := &t.batches[i], 0
		for own < len(rest) && rest[own].batch == i {
			own++
		}
		observed := rest[:own]
		rest = rest[own:]
		if b.ID != "" {
			h := t.hashes[i]
			if _, ok := seen[h]; ok || t.ids(h).knows(h) {
				t.receipts[i].Duplicate = true
				for k := range observed {
					observed[k].known = true
				}
				continue
			}
		}
		t.markKnown(i, observed, seen)
		if seen != nil && b.ID != "" {
			seen[t.hashes[i]] = i
		}
	}
}

// markKnown finds the observations of a batch that are not to be counted.
func (t *txn) markKnown(batch int, observed []sighting, seen map[id]int) {
	type once struct {
		id  id
		key cellKey
	}
	var own map[once]bool
	if len(observed) > fewIDs {
		own = make(map[once]bool, len(observed))
	}
	receipt := &t.receipts[batch]
	for i := range observed {
		o := &observed[i]
		from, ok := seen[o.id]
		if o.known = ok && from < batch || t.ids(o.id).knows(o.id); o.known {
			if !slices.Contains(receipt.Duplicates, o.ID) {
				receipt.Duplicates = append(receipt.Duplicates, o.ID)
			}
			continue
		}
		if seen != nil {
			seen[o.id] = batch
		}
		if own != nil {
			o.known = own[once{o.id, o.key}]
			own[once{o.id, o.key}] = true
			continue
		}
		for k := range observed[:i] {
			o.known = o.known || observed[k].id == o.id && observed[k].key == o.key
		}
	}
}

// fewIDs is how many observations of a batch are compared with each other, instead of being looked up.
const fewIDs = 8

// checkPolicies looks whether each cell is kept under the policy that its observations come with.
func (t *txn) checkPolicies() error {
	var opened map[cellKey]uint16 // cells that the commit opens
	if len(t.batches) > 1 {
		opened = make(map[cellKey]uint16)
	}
	for i := range t.observed {
		o := &t.observed[i]
		if o.known {
			continue
		}
		policy, ok := opened[o.key]
		if !ok {
			policy, ok = t.policyBefore(o)
		}
		if ok && policy != o.policy {
			return t.state.rule(policy).Conflict(o.Cell.Kind, t.state.rule(o.policy))
		}
		if opened != nil && o.Weight > 0 && evidence.InstantOf(o.At) >= t.restart(o) {
			opened[o.key] = o.policy
		}
	}
	return nil
}

// policyBefore returns the policy under which a cell is kept before the observations, if it is.
func (t *txn) policyBefore(o *sighting) (policy uint16, ok bool) {
	policy, ok = t.shard(o.key).policy(o.key)
	switch {
	case t.taking == nil:
	case resets(t.taking, o.Cell):
		ok = false
	case slices.Contains(t.taking.Rebuild, o.Cell):
		policy = t.policy(t.taking, o.Cell.Kind)
	}
	if ok && policy != o.policy && t.empties(o.key, o.Cell) {
		return 0, false
	}
	if !ok && t.taking != nil && slices.ContainsFunc(t.taking.Restart, func(r store.Restart) bool { return r.Cell == o.Cell }) {
		return t.policy(t.taking, o.Cell.Kind), true
	}
	return policy, ok
}

// restart returns from when on the evidence of a cell counts.
func (t *txn) restart(o *sighting) (at evidence.Instant) {
	if t.taking != nil {
		for _, r := range t.taking.Restart {
			if r.Cell == o.Cell {
				at = max(at, evidence.InstantOf(r.At))
			}
		}
		if resets(t.taking, o.Cell) {
			return at
		}
	}
	return max(at, t.shard(o.key).restarts[o.key].at)
}

// checkRecords looks whether the revisions are current, and takes the room that new records need.
func (t *txn) checkRecords() error {
	for i := range t.batches {
		if t.receipts[i].Duplicate {
			continue
		}
		for _, e := range t.batches[i].Expect {
			if !t.current(t.row(e.Ref), e.Revision) {
				return fmt.Errorf("%s: %w", e.Kind, heed.ErrConflict)
			}
		}
	}
	for _, e := range t.edits {
		if e.gone {
			t.needed.add(e.kind, -1)
		}
	}
	for i := range t.writes {
		w := &t.writes[i]
		receipt := &t.receipts[w.batch]
		if w.skip = receipt.Duplicate; w.skip {
			continue
		}
		w.row = t.row(w.Ref)
		switch {
		case w.Revision == store.Once && w.row != nil:
			w.skip = true
			receipt.Left = append(receipt.Left, w.Ref)
		case w.Revision != store.Once && !t.current(w.row, w.Revision):
			return fmt.Errorf("%s: %w", w.Kind, heed.ErrConflict)
		case w.Body.IsZero():
			t.needed.add(w.kind, -1)
		case w.row == nil:
			t.needed.add(w.kind, 1)
		}
	}
	return t.needed.take()
}

// row returns the row that a reference names, if there is one that stays when people are forgotten.
func (t *txn) row(ref store.Ref) *row {
	k := t.state.records.kind(ref.Kind)
	if k == nil {
		return nil
	}
	r := k.rows[t.state.records.shard(ref.ID)][ref.ID]
	if t.edits[r].gone {
		return nil
	}
	return r
}

// current reports whether a row has the revision that a writer has seen. Nobody has seen one that the commit changes.
func (t *txn) current(r *row, revision uint64) bool {
	if r == nil {
		return revision == 0
	}
	_, edited := t.edits[r]
	return revision == r.revision && !edited
}

// A room is by how many rows a kind grows.
type room struct {
	kind *kind
	rows int64
}

type rooms []room

func (all *rooms) add(k *kind, rows int64) {
	for i := range *all {
		if r := &(*all)[i]; r.kind == k {
			r.rows += rows
			return
		}
	}
	*all = append(*all, room{k, rows})
}

// take counts the rows that are about to come or go, unless a kind has no room for them.
func (all rooms) take() error {
	for i, r := range all {
		size := r.kind.size.Add(r.rows)
		if limits := r.kind.limits(); r.rows > 0 && limits.Refuse && limits.Most > 0 && size > int64(limits.Most) {
			for _, taken := range all[:i+1] {
				taken.kind.size.Add(-taken.rows)
			}
			return fmt.Errorf("%w of records of kind %q", evidence.ErrFull, r.kind.name)
		}
	}
	return nil
}

// apply changes the store. Nothing in it can fail.
func (t *txn) apply() {
	if t.taking != nil {
		t.take()
	}
	observed, writes := t.observed, t.writes
	for i := range t.batches {
		for len(observed) > 0 && observed[0].batch == i {
			t.observe(&observed[0])
			observed = observed[1:]
		}
		for len(writes) > 0 && writes[0].batch == i {
			t.write(&writes[0])
			writes = writes[1:]
		}
		if t.batches[i].ID != "" && !t.receipts[i].Duplicate {
			h := t.hashes[i]
			t.ids(h).note(h, newMark(t.now))
		}
	}
	for i := range t.batches {
		if cells := t.batches[i].PartsOf; len(cells) > 0 && !t.receipts[i].Duplicate {
			t.receipts[i].Parts = t.parts(cells)
		}
	}
	t.raise()
}

// raise raises the versions of the kinds that have changed, each by one.
func (t *txn) raise() {
	if b := t.taking; b != nil && takesMuch(b) {
		for _, k := range *t.state.records.kinds.Load() {
			k.version.Add(1)
		}
		return
	}
	var last *kind
	var raised map[*kind]bool // if there are several
	for i := range t.writes {
		w := &t.writes[i]
		if w.skip || w.kind == last || raised[w.kind] {
			continue
		}
		if last != nil && raised == nil {
			raised = make(map[*kind]bool)
		}
		if raised != nil {
			raised[last], raised[w.kind] = true, true
		}
		last = w.kind
		last.version.Add(1)
	}
}

func (t *txn) observe(o *sighting) {
	if o.known {
		return
	}
	s := t.state
	ids, shard := t.ids(o.id), t.shard(o.key)
	ids.note(o.id, newMark(t.now))
	added := newEntry(o.Observation, o.id, t.now)
	slot := s.count(shard, o.key, &added, o.policy)
	if !s.cfg.NoHistory {
		shard.stamp++
		at := place{cellKey: o.key}
		if slot != nil {
			at.origin, at.stamp = slot.origin, shard.stamp
		}
		ids.locate(o.id, at)
		s.record(shard, o.key, added)
	} else if slot != nil {
		slot.lost |= lossOf(&added, slot.origin)
	}
}

func (t *txn) write(w *write) {
	if w.skip {
		return
	}
	if w.Body.IsZero() {
		w.kind.remove(w.shard, w.row)
		return
	}
	at, revision := evidence.InstantOf(w.At), t.revision(w.batch)
	if w.row != nil {
		w.kind.update(w.row, at, w.row.rekeyed(w.Keys), revision, w.Body)
		return
	}
	r := newRow(position{at, t.state.records.seq.Add(1)}, w.ID, w.Keys)
	r.revision, r.body = revision, w.Body
	w.kind.insert(w.shard, r)
}

// revision returns the revision of a batch's writes.
func (t *txn) revision(batch int) uint64 {
	receipt := &t.receipts[batch]
	if receipt.Revision == 0 {
		receipt.Revision = t.state.records.revision.Add(1)
	}
	return receipt.Revision
}

// parts reads cells of the commit's observations.
func (t *txn) parts(cells []evidence.Cell) (parts []evidence.Part) {
	for i, c := range cells {
		if key, ok := t.state.findKey(c); ok {
			parts = t.state.readLocked(parts, cells[i:i+1], key.group(), t.shard(key))
		}
	}
	return parts
}

// trim drops the oldest records of kinds that have become too many. It holds no lock of the commit any more.
func (t *txn) trim() {
	for i := range t.writes {
		if w := &t.writes[i]; !w.skip {
			t.state.records.trim(w.kind)
		}
	}
}
