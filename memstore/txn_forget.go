package memstore

import (
	"fmt"
	"maps"

	"github.com/heedhq/heed/internal/people"
	"github.com/heedhq/heed/store"
)

// An edit takes people out of a record.
type edit struct {
	kind *kind
	gone bool // the record as a whole
	keys []string
	body store.Body
}

// planForget finds the records that name people to forget, and plans their changes.
func (t *txn) planForget() error {
	if len(t.taking.Forget) == 0 {
		return nil
	}
	t.edits = make(map[*row]edit)
	persons := people.Of(t.taking.Forget)
	for _, k := range *t.state.records.kinds.Load() {
		for _, p := range persons {
			for _, r := range k.named(store.PersonKey(p.Name)) {
				if _, ok := t.edits[r]; ok {
					continue
				}
				if err := t.planEdit(k, r, persons); err != nil {
					return fmt.Errorf("a record of kind %q: %w", k.name, err)
				}
			}
		}
	}
	return nil
}

func (t *txn) planEdit(k *kind, r *row, persons []people.Person) error {
	text, err := r.body.JSON()
	if err != nil {
		return err
	}
	result, err := people.Forget(*k.rule.Load(), text, r.keys, persons)
	if err == nil && (result.Gone || result.Changed) {
		t.edits[r] = edit{kind: k, gone: result.Gone, keys: result.Keys, body: store.Raw(result.JSON)}
	}
	return err
}

// named returns all rows that have a key. The caller has the locks of all shards.
func (k *kind) named(key string) (rows []*row) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if of, ok := k.keys[key]; ok {
		for r := range of.timeline().up(position{}) {
			rows = append(rows, r)
		}
	}
	return rows
}

// forget takes the people out of the records, and drops cells of their name that have become empty.
func (t *txn) forget() {
	var revision uint64 // of all records that change
	for r, e := range t.edits {
		shard := t.state.records.shard(r.id)
		if e.gone {
			e.kind.remove(shard, r)
			continue
		}
		if revision == 0 {
			revision = t.state.records.revision.Add(1)
		}
		e.kind.update(r, r.at, e.keys, revision, e.body)
	}
	s := t.state
	for _, name := range t.taking.Forget {
		for i := range s.cells.shards {
			shard := &s.cells.shards[i]
			maps.DeleteFunc(shard.restarts, func(key cellKey, _ restart) bool {
				named := key.item == name || s.names.value(key.name) == name || s.spaces.value(key.space).scope == name
				return named && shard.histories[key] == nil && !shard.holds(key)
			})
		}
	}
}
