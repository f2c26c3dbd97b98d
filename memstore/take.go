package memstore

import (
	"fmt"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/people"
)

// takeAway works out what the first batch takes away, in the order of the batch's fields.
func (t *txn) takeAway(b *store.Batch) error {
	t.copies = make(map[*cell]*cell)
	for _, selection := range b.Reset {
		for _, cells := range t.spaces[space{selection.Kind, selection.Scope}] {
			for _, c := range cells {
				if selection.Covers(c.Cell) {
					t.copies[c] = &cell{Cell: c.Cell}
				}
			}
		}
	}
	for _, of := range b.Rebuild {
		found := t.find(of)
		if found == nil {
			continue
		}
		c := t.edit(found)
		if c.lostAt() > 0 {
			return evidence.ErrForgotten
		}
		c.policy = b.Policies[of.Kind]
		c.rebuild()
	}
	for _, r := range b.Restart {
		if err := t.restart(r, b.Policies[r.Cell.Kind]); err != nil {
			return err
		}
	}
	for _, text := range b.Retract {
		if err := t.retract(text); err != nil {
			return err
		}
	}
	for _, text := range b.Withdraw {
		kept := &t.receipts[0].Kept
		if t.retract(text) != nil && !slices.Contains(*kept, text) {
			*kept = append(*kept, text)
		}
	}
	if err := t.expunge(slices.Concat(b.Expunge, b.Forget)); err != nil {
		return err
	}
	return t.planForget(b.Forget)
}

// edit returns the copy of a cell that is to take its place, without expired observations.
func (t *txn) edit(c *cell) *cell {
	copied := t.copies[c]
	if copied == nil {
		copied = c.clone()
		copied.prune(t.oldestHistory(t.now))
		t.copies[c] = copied
	}
	return copied
}

func (t *txn) restart(r store.Restart, policy evidence.Policy) error {
	c, at := t.edit(t.cell(r.Cell)), evidence.InstantOf(r.At)
	if at <= c.restart {
		return nil
	}
	if c.lostAt() >= at {
		return evidence.ErrForgotten
	}
	if !c.open() {
		c.policy = policy
	}
	c.restart = at
	c.rebuild()
	return nil
}

// retract takes the observations of an id out of their cells, or returns why that is not possible.
func (t *txn) retract(text string) error {
	h := hashID(text)
	k := t.state.known[h]
	switch {
	case k == nil:
		return heed.ErrNotFound
	case k.retracted:
		return nil
	case k.untraced || t.cfg.NoHistory:
		return evidence.ErrForgotten
	}
	for _, c := range k.cells {
		if t.edit(c).lacks(h) {
			return evidence.ErrForgotten
		}
	}
	for _, c := range k.cells {
		t.edit(c).take(func(e *entry) bool { return e.ID == text })
	}
	t.retracted = append(t.retracted, k)
	return nil
}

// expunge takes the observations of sources out of all cells.
func (t *txn) expunge(sources []string) error {
	if len(sources) == 0 {
		return nil
	}
	gone := func(source string) bool { return source != "" && slices.Contains(sources, source) }
	oldest := t.oldestHistory(t.now)
	for found := range t.cells() {
		c := t.copies[found]
		if c == nil {
			if c = found; !c.names(gone) && !c.expired(oldest) {
				continue
			}
			c = t.edit(found)
		}
		for i := range c.tallies {
			if c.tallies[i].lostSource {
				return evidence.ErrForgotten
			}
		}
		c.take(func(e *entry) bool { return gone(e.Source) })
		c.tallies = slices.DeleteFunc(c.tallies, func(t tally) bool { return gone(t.Source) })
		for h, from := range c.lost {
			if from != nil && gone(from.Source) {
				delete(c.lost, h)
			}
		}
	}
	return nil
}

// names reports whether a cell has one of some sources, or has lost the source of an observation.
func (c *cell) names(gone func(source string) bool) bool {
	return slices.ContainsFunc(c.history, func(e entry) bool { return gone(e.Source) }) ||
		slices.ContainsFunc(c.tallies, func(t tally) bool { return t.lostSource || gone(t.Source) })
}

// An edit takes people out of a record.
type edit struct {
	kind *kind
	gone bool // the record as a whole
	keys []string
	body store.Body
}

// planForget finds the records that name people, and works out their edits.
func (t *txn) planForget(names []string) error {
	t.edits = make(map[*row]edit)
	if len(names) == 0 {
		return nil
	}
	key, err := t.pseudonymKey()
	if err != nil {
		return err
	}
	persons := people.Of(key, names)
	for _, k := range t.kinds {
		for _, name := range names {
			for _, r := range k.keyed[store.PersonKey(name)] {
				if _, ok := t.edits[r]; ok {
					continue
				}
				text, err := r.body.JSON()
				var result people.Result
				if err == nil {
					result, err = people.Forget(k.Kind, text, r.keys, persons)
				}
				if err != nil {
					return fmt.Errorf("a record of kind %q: %w", k.Name, err)
				}
				if result.Gone || result.Changed {
					t.edits[r] = edit{k, result.Gone, result.Keys, store.Raw(result.JSON)}
				}
			}
		}
	}
	return nil
}

// pseudonymKey returns the key of the store. If there is none, the commit makes one.
func (t *txn) pseudonymKey() (key store.PseudonymKey, err error) {
	if r := t.row(store.PseudonymKeyRef()); r != nil {
		return store.Decode[store.PseudonymKey](r.body)
	}
	key = store.NewPseudonymKey(t.now.Time())
	t.minted = &key
	return key, nil
}

// forget edits the records, and drops cells of the people's names that hold nothing but a restart.
func (t *txn) forget() {
	if len(t.edits) > 0 || t.minted != nil {
		t.revision++
	}
	if t.minted != nil {
		t.declare(store.Pseudonyms.Kind)
		of := store.Pseudonyms.Record(*t.minted, 0)
		t.seq++
		r := &row{id: of.ID, revision: t.revision, body: of.Body}
		r.At, r.Seq = evidence.InstantOf(of.At), t.seq
		t.kinds[of.Kind].insert(r)
	}
	for r, e := range t.edits {
		if e.gone {
			e.kind.remove(r)
		} else {
			e.kind.update(r, r.At, e.keys, t.revision, e.body)
		}
	}
	if t.taking == nil {
		return
	}
	for _, name := range t.taking.Forget {
		for c := range t.cells() {
			named := name == c.Scope || name == c.Item || name == c.Name
			if named && len(c.tallies)+len(c.history) == 0 {
				c.restart = 0
				t.copies[c] = c // to be tidied
			}
		}
	}
}
