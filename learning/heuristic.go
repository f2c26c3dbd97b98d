package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A Heuristic defines the advice that is given in a situation, where its confidence begins and what
// limits it. Its evidence is stored separately.
type Heuristic struct {
	// ID identifies the heuristic within its module, and must not be empty.
	ID string
	// Domain selects the windows of [Strategy.Windows], and the people that limits are about. Set it
	// if heuristics are about separate fields, for example "home" and "work".
	Domain string
	// Pack selects constraints of [Config].Packs. Set it for heuristics that come from one source.
	Pack string
	// Condition is the situation that it is for. Expectations look for their triggers in it.
	Condition string
	// Action is what to answer or do then: at most 16 KiB. heed does not learn from its text.
	Action string `json:",omitempty"`
	// Initial is the confidence before any evidence, in (0, 1). 0 means [Config].Initial.
	// Set it for advice that somebody has reviewed before.
	Initial float64
	// Constraints override the constraints of the pack. The zero value inherits all of them.
	Constraints Constraints
	// CreatedAt is when it was made. The zero time means when it is first put.
	CreatedAt time.Time
	// Since is when its advice last changed, the zero time if never: see [Module.Restart]. Edition
	// numbers its wordings, because each has separate evidence. Put stores both as they are given.
	Since   time.Time `json:",omitzero"`
	Edition uint64    `json:",omitempty"`
	// Revision is the record's revision. [Module.Put] sets it.
	Revision uint64
}

// validate reports the first fault as a [*heed.InputError].
func (h *Heuristic) validate() error {
	switch {
	case h.Initial != 0 && !isConfidence(h.Initial):
		return valid.Input("Initial", "must be above 0 and below 1")
	case !h.CreatedAt.IsZero() && (h.CreatedAt.Unix() < 0 || h.CreatedAt.Year() > 9999):
		return valid.Input("CreatedAt", "must be in the years 1970 to 9999")
	}
	return cmp.Or(valid.Names(evidence.MaxText, "ID", h.ID), h.Constraints.validateInput(),
		valid.Texts(maxAction, "Action", h.Action), valid.Texts(evidence.MaxText,
			"Domain", h.Domain, "Pack", h.Pack, "Condition", h.Condition))
}

// maxAction is the size of the longest action, in bytes.
const maxAction = 16 << 10

// A heuristicRecord is a heuristic with what [Module.Put] leaves as it is.
type heuristicRecord struct {
	Heuristic
	Pin  *Pin      `json:",omitempty"` // what a person decided about it
	Past []wording `json:",omitempty"` // its earlier wordings, the oldest first
}

// A wording is an earlier condition and action of a heuristic.
type wording struct {
	Hash    string // of its condition and action
	Edition uint64 `json:",omitempty"`
}

// maxWordings is how many earlier wordings keep their evidence.
const maxWordings = 8

func wordingOf(h *Heuristic) string { return store.IDOf(h.Condition, h.Action) }

// reword replaces the heuristic by one of another wording, and sets its edition: the edition that
// the same wording had before, or else the revision that it replaces, which no other edition has.
// It returns the editions whose evidence is to go.
func (r *heuristicRecord) reword(now Heuristic, replaced uint64) (gone []uint64) {
	old, wanted := wording{wordingOf(&r.Heuristic), r.Edition}, wordingOf(&now)
	past := slices.Clone(r.Past)
	now.Edition = replaced
	i := slices.IndexFunc(past, func(p wording) bool { return p.Hash == wanted })
	switch {
	case wanted == old.Hash: // it begins again
		gone = append(gone, old.Edition)
	case i >= 0:
		now.Edition = past[i].Edition
		past = append(slices.Delete(past, i, i+1), old)
	default:
		past = append(past, old)
	}
	for ; len(past) > maxWordings; past = past[1:] {
		gone = append(gone, past[0].Edition)
	}
	r.Heuristic, r.Past = now, past
	return gone
}

// Put stores a heuristic and returns it with its new revision. Revision 0 means that it is new;
// else it must be the stored one. If it is not, Put returns [heed.ErrConflict] and leaves the store
// unchanged. Somebody may repeat a call whose reply got lost: if the same heuristic is stored
// already, Put returns it. A pin stays. Invalid input is a [*heed.InputError].
func (m *Module) Put(ctx context.Context, h Heuristic) (_ Heuristic, err error) {
	defer doing("put", &err)
	if err := h.validate(); err != nil {
		return Heuristic{}, err
	}
	row, err := m.kinds.heuristics.In(store.Reading(ctx, m.cfg.Store), h.ID)
	if err != nil {
		return Heuristic{}, err
	}
	row.Value.Heuristic = h
	return m.put(ctx, row.Value, store.Batch{})
}

// put commits a record together with a batch. The heuristic has the revision that it replaces. If
// the same is stored already, apart from what heed sets in it, the reply to an equal call got lost,
// and put returns what is stored. with names a record of the batch that is stored with it then.
func (m *Module) put(
	ctx context.Context, r heuristicRecord, b store.Batch, with ...store.Ref,
) (_ Heuristic, err error) {
	read := r.Revision
	r.CreatedAt, r.Revision = m.orNow(r.CreatedAt), 0
	b.Records = append([]store.Record{m.kinds.heuristics.Record(r, read)}, b.Records...)
	receipts, err := m.cfg.Store.Commit(ctx, b)
	switch {
	case err == nil:
		r.Revision = receipts[0].Revision
		return r.Heuristic, nil
	case errors.Is(err, heed.ErrConflict):
		err = fmt.Errorf("a heuristic of this id is stored with another revision: %w", heed.ErrConflict)
	case !errors.Is(err, heed.ErrOutcomeUnknown):
		return Heuristic{}, err
	}
	tx := store.Reading(ctx, m.cfg.Store)
	row, _ := m.kinds.heuristics.In(tx, r.ID)
	stored := heuristicOf(row)
	for _, ref := range with {
		if came, _ := tx.Get(ref); came.Revision > 0 {
			r.Edition = stored.Edition // a later call would set another one
		}
	}
	r.CreatedAt, r.Since, r.Revision = stored.CreatedAt, stored.Since, stored.Revision
	if r.Heuristic == stored {
		return stored, nil
	}
	return Heuristic{}, err
}

// Restart stores a heuristic whose advice changed, like [Module.Put], in one commit with an audit
// entry. Its evidence begins again, and so do the counts of its answers and its streak of ignores.
// A pin stays. The evidence of its last 8 wordings is kept apart: a wording that comes back, with
// the same condition and action, goes on with its own evidence. With the wording that is in force,
// all that was learned of it is forgotten. Signals on answers that were shown with another wording
// do not count. Actor and reason are for the audit, and may be empty. Somebody may repeat a call
// whose reply got lost, with the same revision: Restart returns what is stored then.
func (m *Module) Restart(
	ctx context.Context, h Heuristic, actor, reason string,
) (_ Heuristic, err error) {
	defer doing("restart", &err)
	texts := valid.Texts(evidence.MaxText, "Actor", actor, "Reason", reason)
	if err := cmp.Or(h.validate(), texts); err != nil {
		return Heuristic{}, err
	}
	a, err := m.ledger(store.Reading(ctx, m.cfg.Store)).open(h.ID)
	if err != nil {
		return Heuristic{}, err
	}
	h.Since = m.orNow(time.Time{})
	b, r := store.Batch{Policies: m.policies()}, a.heuristic.Value
	for _, edition := range r.reword(h, a.heuristic.Revision) {
		b.Reset = m.answerCells(m.confidenceCells(b.Reset, h.ID, edition), h.ID, edition)
	}
	entry := store.AuditEntry{
		ID: store.IDOf(m.kinds.heuristics.Name, h.ID, fmt.Sprint(h.Revision)), At: h.Since,
		Actor: actor, Action: m.cfg.Name + ".restart", Subject: h.ID, Reason: reason,
	}.Record()
	b.Records = append(b.Records, entry)
	if a.streak.Revision > 0 {
		b.Records = append(b.Records, m.kinds.streaks.Removal(h.ID, a.streak.Revision))
	}
	return m.put(ctx, r, b, entry.Ref)
}

// heuristicOf returns the heuristic of a record, with the revision that a later Put must name.
func heuristicOf(kept store.Row[heuristicRecord]) Heuristic {
	kept.Value.Revision = kept.Revision
	return kept.Value.Heuristic
}

// Heuristics yields all heuristics by id. Before the loop begins, one small read finds out whether
// any of them changed since the last time. If one has, it reads all of them. If it can't read some,
// it yields the others first, and then the error, which ends the loop.
func (m *Module) Heuristics(ctx context.Context) iter.Seq2[Heuristic, error] {
	return func(yield func(Heuristic, error) bool) {
		all, err := m.Steps().HeuristicsIn(store.Reading(ctx, m.cfg.Store))
		for _, h := range all {
			if !yield(h, nil) {
				return
			}
		}
		if err != nil {
			yield(Heuristic{}, fmt.Errorf("learning: heuristics: %w", err))
		}
	}
}

// HeuristicsWants names what HeuristicsIn reads if no heuristic changed.
func (m steps) HeuristicsWants() store.Wants {
	return store.Wants{Refs: []store.Ref{m.kinds.heuristics.Ref("")}}
}

// HeuristicsIn returns all heuristics by id, like [Module.Heuristics], in a step, and those that it
// can read with an error. The slice must not be changed.
func (m steps) HeuristicsIn(tx *store.Tx) (all []Heuristic, err error) {
	version, err := tx.Get(m.kinds.heuristics.Ref(""))
	if err != nil {
		return nil, err
	}
	k := &m.known
	k.mu.Lock()
	last, read := k.all, k.read && k.version == version.Revision
	k.mu.Unlock()
	if read {
		return last, nil
	}
	var failures []error
	m.heuristics.Clear() // deleted ones must not stay
	for kept, err := range m.kinds.heuristics.Find(tx.Context(), m.cfg.Store, store.Query{}) {
		if err != nil {
			failures = append(failures, err)
			continue
		}
		h := heuristicOf(kept)
		all = append(all, h)
		m.heuristics.Store(h.ID, seenOf(&h))
	}
	slices.SortFunc(all, func(a, b Heuristic) int { return cmp.Compare(a.ID, b.ID) })
	if len(failures) > 0 {
		return all, errors.Join(failures...)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read, k.version, k.all = true, version.Revision, all
	return all, nil
}

// Delete removes a heuristic and its pin, or returns [heed.ErrNotFound]. Its evidence stays, and
// counts again if a heuristic of that id and Edition is put later. Its open answers end with an
// error when they are next looked at.
func (m *Module) Delete(ctx context.Context, id string) (err error) {
	defer doing("delete", &err)
	return store.Do(ctx, m.cfg.Store, func(tx *store.Tx) error {
		a, err := m.ledger(tx).open(id)
		if err != nil {
			return err
		}
		tx.Put(m.kinds.heuristics.Removal(id, a.heuristic.Revision))
		if a.streak.Revision > 0 {
			tx.Put(m.kinds.streaks.Removal(id, a.streak.Revision))
		}
		return nil
	})
}
