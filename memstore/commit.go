package memstore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

// A txn is one call of Commit. It finds all that could be wrong before it changes anything. What a
// commit takes away is worked out on copies of cells, which then take the place of the cells.
//
// A txn is used once. The fields from ids on are worked out by decide, and read by apply.
type txn struct {
	*state
	now      evidence.Instant // by the store's clock, the same for the whole call
	batches  []store.Batch
	receipts []store.Receipt // by batch
	ids      []id            // by batch; the zero id if a batch has no ID
	observed [][]sighting    // by batch
	// taking is the first batch, if it takes evidence away and is not a duplicate. Only the first
	// batch of a call may, which store.Validate checks.
	taking *store.Batch

	// copies are the cells as they are after the first batch has taken evidence away.
	copies map[*cell]*cell
	// retracted are the ids that it takes back. They stay known.
	retracted []*known
}

// A sighting is an observation with the hash of its id.
type sighting struct {
	*evidence.Observation
	id    id
	known bool // it does not count again
}

// newTxn hashes the ids before the lock is taken, because hashing takes the most time of a small
// commit. It must not fail for batches that are not valid: Commit looks at the fault afterwards.
func newTxn(batches []store.Batch, now evidence.Instant) *txn {
	t := &txn{
		now: now, batches: batches, receipts: make([]store.Receipt, len(batches)),
		ids: make([]id, len(batches)), observed: make([][]sighting, len(batches)),
	}
	for i := range batches {
		b := &batches[i]
		if b.ID != "" {
			t.ids[i] = hashID(b.ID)
		}
		t.observed[i] = make([]sighting, len(b.Observations))
		for k := range b.Observations {
			t.observed[i][k] = sighting{Observation: &b.Observations[k], id: hashID(b.Observations[k].ID)}
		}
	}
	return t
}

// run commits the batches, or returns an error and leaves the state as it was. The caller has the
// lock of the store. At the end it tidies the cells whose copies were empty, for example after a
// reset, and cells that a refused restart has made.
func (t *txn) run(s *state) error {
	t.state = s
	err := t.decide()
	if err == nil {
		t.apply()
	}
	for c := range t.copies {
		s.tidy(c)
	}
	return err
}

// decide works out what the commit changes, and checks that it may. The order of the checks is that
// of the contract: a batch whose ID is known is left out whatever its revisions are, evidence is
// taken away before it is added, and records come last.
func (t *txn) decide() error {
	t.markDuplicates()
	if len(t.batches) > 0 && t.batches[0].TakesAway() && !t.receipts[0].Duplicate {
		t.taking = &t.batches[0]
		if err := t.takeAway(t.taking); err != nil {
			return err
		}
	}
	if err := t.checkPolicies(); err != nil {
		return err
	}
	return t.checkRecords()
}

// markDuplicates finds what counts no more: batches whose id is known, and observations that were
// known before the commit, came with an earlier batch of it, or stand twice in theirs. The id of a
// batch is entered after its observations, because one of them may have the same id, and counts. An
// id may have observations on several cells within one batch, and each of them counts. The state is
// not changed yet, so a call that fails later has made no id known.
func (t *txn) markDuplicates() {
	type once struct {
		id   id
		cell evidence.Cell
	}
	owner := make(map[id]int) // of ids that this commit makes known: the batch
	counted := make(map[once]bool)
	for i := range t.batches {
		receipt, h := &t.receipts[i], t.ids[i]
		if t.batches[i].ID != "" {
			_, again := owner[h]
			receipt.Duplicate = again || t.state.known[h] != nil
		}
		for k := range t.observed[i] {
			o := &t.observed[i][k]
			first, again := owner[o.id]
			switch {
			case receipt.Duplicate:
				o.known = true
			case again && first < i || t.state.known[o.id] != nil:
				o.known = true
				if !slices.Contains(receipt.Duplicates, o.ID) {
					receipt.Duplicates = append(receipt.Duplicates, o.ID)
				}
			case counted[once{o.id, o.Cell}]:
				o.known = true
			default:
				owner[o.id], counted[once{o.id, o.Cell}] = i, true
			}
		}
		if t.batches[i].ID != "" && !receipt.Duplicate {
			owner[h] = i
		}
	}
}

// current returns a cell as it is after what was taken away, or nil. The first batch may have reset
// a cell to which it then adds under another policy.
func (t *txn) current(c evidence.Cell) *cell {
	found := t.find(c)
	if copied := t.copies[found]; copied != nil {
		return copied
	}
	return found
}

// checkPolicies checks that each cell is kept under the policy that its observations come with. A
// cell without evidence takes the policy of the first observation that counts, also within this
// commit.
func (t *txn) checkPolicies() error {
	opened := make(map[evidence.Cell]evidence.Policy) // by this commit
	for i := range t.batches {
		for k := range t.observed[i] {
			o := &t.observed[i][k]
			if o.known {
				continue
			}
			wanted := t.batches[i].Policies[o.Cell.Kind]
			settled, ok := opened[o.Cell]
			if c := t.current(o.Cell); c != nil && c.open() {
				settled, ok = c.policy, true
			}
			if ok && settled != wanted {
				return settled.Conflict(o.Cell.Kind, wanted)
			}
			if o.Weight > 0 {
				opened[o.Cell] = wanted
			}
		}
	}
	return nil
}

// checkRecords checks the revisions, and that there is room for new records. A kind has to be
// declared even in a batch that is left out, because the program is wrong in any case. A row that
// is left because of [store.Once] is no conflict: the receipt names it.
func (t *txn) checkRecords() error {
	grows := make(map[*kind]int)
	err := stores.CheckDeclared(t.batches, func(kind string) bool { return t.declared(kind) != nil })
	if err != nil {
		return err
	}
	for i := range t.batches {
		if t.receipts[i].Duplicate {
			continue
		}
		for _, e := range t.batches[i].Expect {
			if !t.has(e.Ref, e.Revision) {
				return fmt.Errorf("%s: %w", e.Kind, heed.ErrConflict)
			}
		}
		for k := range t.batches[i].Records {
			r := &t.batches[i].Records[k]
			there := !t.has(r.Ref, 0)
			switch {
			case r.Revision == store.Once && there:
				t.receipts[i].Left = append(t.receipts[i].Left, r.Ref)
			case r.Revision != store.Once && !t.has(r.Ref, r.Revision):
				return fmt.Errorf("%s: %w", r.Kind, heed.ErrConflict)
			case r.Body.IsZero():
				grows[t.kinds[r.Kind]]--
			case !there:
				grows[t.kinds[r.Kind]]++
			}
		}
	}
	for k, n := range grows {
		// Counted over the whole call, so that a batch may remove what makes room for another.
		full := k.limits.Refuse && k.limits.Most > 0 && len(k.rows)+n > k.limits.Most
		if n > 0 && full {
			return fmt.Errorf("%w of records of kind %q", evidence.ErrFull, k.Name)
		}
	}
	return nil
}

// has reports whether a record has a revision, 0 without a record. It is asked before anything is
// written, so all batches of a call see the revisions from before the call.
func (t *txn) has(ref store.Ref, revision uint64) bool {
	r := t.row(ref)
	return r == nil && revision == 0 || r != nil && revision == r.revision
}

// apply changes the state. It cannot fail. Versions of kinds rise at the end, once for each call
// that changed the kind, and for all kinds if evidence was taken away by more than ids. Only kinds
// that changed are trimmed, so the cost of a commit does not depend on the number of kinds.
func (t *txn) apply() {
	// The copies go into the cells themselves, because ids point at the cells.
	for c, copied := range t.copies {
		*c = *copied
	}
	for _, k := range t.retracted {
		k.retracted = true
	}
	changed := make(map[*kind]bool)
	for i := range t.batches {
		b := &t.batches[i]
		for k := range t.observed[i] {
			if o := &t.observed[i][k]; !o.known {
				t.observe(o, b.Policies[o.Cell.Kind])
			}
		}
		if t.receipts[i].Duplicate {
			continue
		}
		for k := range b.Records {
			if t.write(&b.Records[k], &t.receipts[i]) {
				changed[t.kinds[b.Records[k].Kind]] = true
			}
		}
		if b.ID != "" {
			t.note(t.ids[i], t.now)
		}
	}
	// After all batches, so that a receipt has what a read would have now.
	t.fillParts()
	if t.taking != nil && stores.TakesMuch(t.taking) {
		t.openVersions(t.taking)
		for _, k := range t.kinds {
			changed[k] = true
		}
	}
	for k := range changed {
		// Each row that has to make room raises the version once more.
		k.version++
		k.trim()
	}
}

// openVersions makes the versioned kinds known of the tenants that a batch takes evidence from. A
// tenant's kind is known from its first record on, and its version has to rise before that as well.
func (t *txn) openVersions(b *store.Batch) {
	for tenant := range stores.TenantsOf(b) {
		for _, k := range slices.Collect(maps.Values(t.kinds)) {
			if _, of := store.KindOf(k.Name); k.Versioned && of == "" {
				t.declared(store.KindIn(k.Name, tenant))
			}
		}
	}
}

// fillParts gives the receipts the parts that their batches asked for, as they are after the whole
// commit. A duplicate's receipt has no parts, because its caller had them with the first commit.
func (t *txn) fillParts() {
	for i := range t.batches {
		if t.receipts[i].Duplicate {
			continue
		}
		for _, c := range t.batches[i].PartsOf {
			t.receipts[i].Parts = t.find(c).parts(t.receipts[i].Parts)
		}
	}
}

// observe adds an observation to its cell, makes its id known, and keeps it in the history. Without
// a history it counts as lost from the beginning. The policy is settled before the observation is
// added, because its sums fade by it.
func (t *txn) observe(o *sighting, policy evidence.Policy) {
	c, e := t.cell(o.Cell), entryOf(o.Observation, t.now)
	c.policy = policy // an open cell has it: see checkPolicies
	c.add(&e)
	k := t.note(o.id, t.now)
	if !t.cfg.NoHistory {
		k.cells = append(k.cells, c)
		c.record(e, t.mostHistory(c.Kind))
	} else if c.counts(&e) {
		c.tally(c.origin(&e)).lose(&e)
	}
	t.tidy(c) // without history, an observation of weight 0 leaves no trace
}

// write writes or removes a record, and reports whether there was anything to do. All records of a
// batch get one revision, which no record ever had.
func (t *txn) write(w *store.Record, receipt *store.Receipt) bool {
	k := t.kinds[w.Kind]
	r := k.rows[w.ID]
	switch {
	case w.Revision == store.Once && r != nil:
		return false
	case w.Body.IsZero():
		k.remove(r)
		return true
	case receipt.Revision == 0:
		t.revision++
		receipt.Revision = t.revision
	}
	// An update keeps the number of the first writing, so the record stays where it was among those
	// of its moment.
	at := evidence.InstantOf(w.At)
	if r != nil {
		k.update(r, at, w.Keys, receipt.Revision, w.Body)
		return true
	}
	// A record that was removed and comes again is a new one, with another number.
	t.seq++
	r = &row{id: w.ID, keys: slices.Clone(w.Keys), revision: receipt.Revision, body: w.Body}
	r.At, r.Seq = at, t.seq
	k.insert(r)
	return true
}
