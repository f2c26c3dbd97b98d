package store

import (
	"encoding/json"
	"reflect"
)

// resolve returns the receipt of a commit whose outcome is unknown if the store shows that it
// took effect. The caller of [Do] then gets the result of that run, as if the reply had come.
//
// The commit took effect if each record that the step wrote is as the step wrote it, under one new
// revision, and if the store knows the batch's ID or else all ids of its observations. A commit
// that wrote no records and took evidence away, or one whose records somebody wrote since, does not
// show it: the step runs again, and may then find its own work as a duplicate. Another writer that
// commits the same contents under the same ids at the same moment can't be told apart.
func (tx *Tx) resolve() (r Receipt, took bool) {
	b := &tx.batch
	_ = pause(tx.ctx, 1) // if the context ends, so does the read
	var now Snapshot
	if tx.store.Read(tx.ctx, &now, b.PartsOf, tx.written.keys) != nil || !b.wrote(now.Records, &r) {
		return Receipt{}, false
	}
	ids := b.countedIDs()
	if len(ids) == 0 && r.Revision == 0 || b.ID == "" && r.Revision == 0 && b.TakesAway() {
		return Receipt{}, false
	}
	// A batch whose ID is known is left out, whatever it expects. No record has the revision.
	probes := make([]Batch, len(ids))
	for i, id := range ids {
		none := Precondition{Ref{tasks.Name, IDOf("unknown", id)}, pending}
		probes[i] = Batch{ID: id, Expect: []Precondition{none}}
	}
	if len(probes) > 0 {
		if _, err := tx.store.Commit(tx.ctx, probes...); err != nil {
			return Receipt{}, false
		}
	}
	r.Parts = now.Parts
	return r, true
}

// countedIDs returns what makes a batch count once: its ID, or else the ids of its observations,
// each once.
func (b *Batch) countedIDs() []string {
	if b.ID != "" {
		return []string{b.ID}
	}
	var ids index[string]
	for i := range b.Observations {
		ids.add(b.Observations[i].ID)
	}
	return ids.keys
}

// wrote reports whether the records of a batch are as the batch wrote them, and fills in the
// receipt's Revision and Left.
func (b *Batch) wrote(now []Record, r *Receipt) bool {
	var first []int // the records that were written once
	for i := range b.Records {
		w, is := &b.Records[i], &now[i]
		switch {
		case w.Body.IsZero():
			if is.Revision != 0 {
				return false
			}
		case is.Revision == 0:
			return false
		case w.Revision == Once:
			first = append(first, i)
		case is.Revision <= w.Revision, r.Revision != 0 && r.Revision != is.Revision,
			!is.Body.same(w.Body):
			return false
		default:
			r.Revision = is.Revision
		}
	}
	for _, i := range first {
		is := &now[i]
		if !is.Body.same(b.Records[i].Body) || r.Revision != 0 && r.Revision != is.Revision {
			r.Left = append(r.Left, is.Ref)
			continue
		}
		r.Revision = is.Revision
	}
	return true
}

// same reports whether two bodies are the same JSON, in any order of names.
func (b Body) same(other Body) bool {
	var values [2]any
	for i, body := range []Body{b, other} {
		text, _ := body.JSON() // no text is no JSON
		if json.Unmarshal(text, &values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}
