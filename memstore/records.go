package memstore

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
)

// A kind holds the records of one kind, of one tenant. Rows are found by id, by moment, and by key
// and moment.
//
// Lists are slices that are searched by bisection. A record that is added at the end or dropped
// from the beginning, as nearly all are, costs no more than that search.
type kind struct {
	store.Kind              // as declared
	limits     store.Limits // in force
	version    uint64       // rises with each commit that changes records
	// rows has the records by id.
	rows map[string]*row
	all  rows // in the order of Find
	// keyed has the same rows by key. A row is in as many lists as it has different keys.
	keyed map[string]rows
}

// A row is a record. An update changes it in place.
type row struct {
	stores.Position
	// id, keys, revision and body are the record's.
	id       string
	keys     []string // never changed in place
	revision uint64
	body     store.Body
}

// record returns the row as a caller gets it. Keys are copied, and the value in the body is
// shared, because it must not be changed.
func (r *row) record(kind string) store.Record {
	return store.Record{
		Ref: store.Ref{Kind: kind, ID: r.id}, Revision: r.revision, At: r.At.Time(),
		Keys: slices.Clone(r.keys), Body: r.body,
	}
}

// declare makes a kind known, or changes how it is kept, also for tenants. Declarations of several
// packages are joined, so that none loses the paths of another.
func (s *state) declare(rule store.Kind) {
	k := s.kinds[rule.Name]
	if k == nil {
		k = newKind()
		s.kinds[rule.Name] = k
	}
	// A declaration that changes nothing ends here. Otherwise all tenants would be gone through
	// whenever a package starts.
	before := k.Kind
	if k.Kind = stores.Join(k.Kind, rule); reflect.DeepEqual(before, k.Kind) {
		return
	}
	k.limits = k.Limits
	if limits, ok := s.cfg.Limits[rule.Name]; ok {
		k.limits = limits
	}
	for name, of := range s.kinds {
		if base, _ := store.KindOf(name); base == rule.Name {
			of.Kind, of.limits = k.Kind, k.limits
			of.trim()
		}
	}
}

// newKind returns a kind without records, which was not declared yet.
func newKind() *kind { return &kind{rows: make(map[string]*row), keyed: make(map[string]rows)} }

// declared returns a kind, also of a tenant, or nil if the kind was not declared. A kind of a
// tenant comes into being with its first record.
func (s *state) declared(name string) *kind {
	if k := s.kinds[name]; k != nil {
		return k
	}
	base, _ := store.KindOf(name)
	of := s.kinds[base]
	if of == nil {
		return nil
	}
	// As its kind is kept now. A later declaration changes it as well: see declare.
	k := newKind()
	k.Kind, k.limits = of.Kind, of.limits
	s.kinds[name] = k
	return k
}

// declarations returns a record for each declared kind. Kinds of tenants are left out, because they
// are kept as their kind is.
func (s *state) declarations() (all []store.Record, _ error) {
	for name, k := range s.kinds {
		if name == k.Name {
			all = append(all, store.DeclarationOf(k.Kind))
		}
	}
	return all, nil
}

// record returns the record that a reference names, or the version of a kind.
func (s *state) record(ref store.Ref) (store.Record, error) {
	base, _ := store.KindOf(ref.Kind)
	k := s.kinds[base]
	switch {
	case ref.ID == "" && (k == nil || !k.Versioned):
		return store.Record{}, &heed.InputError{Field: "Refs", Reason: fmt.Sprintf(
			"asks for the version of %q, which is not declared with one", ref.Kind)}
	case ref.ID == "":
		if k = s.kinds[ref.Kind]; k == nil {
			return store.Record{Ref: ref}, nil
		}
		return store.Record{Ref: ref, Revision: k.version}, nil
	}
	if r := s.row(ref); r != nil {
		return r.record(ref.Kind), nil
	}
	return store.Record{Ref: ref}, nil
}

// row returns the row that a reference names, or nil.
func (s *state) row(ref store.Ref) *row {
	if k := s.kinds[ref.Kind]; k != nil {
		return k.rows[ref.ID]
	}
	return nil
}

// insert adds a row that is new. The caller has given it its number.
func (k *kind) insert(r *row) {
	k.rows[r.id] = r
	k.enter(r)
}

// update changes a row in place. The row moves in the lists only if its moment or its keys change.
func (k *kind) update(
	r *row, at evidence.Instant, keys []string, revision uint64, body store.Body,
) {
	// Most updates change the body alone, and then the lists stay as they are.
	if r.At != at || !slices.Equal(r.keys, keys) {
		k.leave(r)
		r.At, r.keys = at, slices.Clone(keys)
		k.enter(r)
	}
	r.revision, r.body = revision, body
}

// remove takes a row out of the kind.
func (k *kind) remove(r *row) {
	delete(k.rows, r.id)
	k.leave(r)
}

// enter has a row found by its moment and its keys.
func (k *kind) enter(r *row) {
	k.all = k.all.with(r)
	// A key that a record has twice is in one list once, or a loop would meet the record twice.
	for i, key := range r.keys {
		if !slices.Contains(r.keys[:i], key) {
			k.keyed[key] = k.keyed[key].with(r)
		}
	}
}

// leave undoes what enter did. The row must still have the moment and the keys by which it entered.
func (k *kind) leave(r *row) {
	k.all = k.all.without(r)
	for i, key := range r.keys {
		if slices.Contains(r.keys[:i], key) {
			continue
		}
		if k.keyed[key] = k.keyed[key].without(r); len(k.keyed[key]) == 0 {
			delete(k.keyed, key)
		}
	}
}

// trim drops the oldest rows of a kind that has more than it may, in the commit that added them or
// with the declaration that lowered the limit. So the number holds without a sweep.
func (k *kind) trim() {
	for k.limits.Most > 0 && !k.limits.Refuse && len(k.all) > k.limits.Most {
		k.remove(k.all[0])
		k.version++
	}
}

// A dueRow is a row that is past the time of its kind.
type dueRow struct {
	*row
	kind *kind
}

// dueRows returns the rows that are past the time of their kinds. They are at the beginning of the
// list of the kind, so the search ends at the first row that is not.
func (s *state) dueRows(now evidence.Instant) (due []dueRow) {
	for _, k := range s.kinds {
		for _, r := range k.all {
			if !k.expired(r, now) {
				break
			}
			due = append(due, dueRow{r, k})
		}
	}
	return due
}

// expired reports whether a row is older than its kind is kept.
func (k *kind) expired(r *row, now evidence.Instant) bool {
	return k.limits.For > 0 && r.At < before(now, k.limits.For)
}

// drop removes the row, unless it was changed and is not past its time any more. The version rises,
// because a process that keeps records in memory must see that one is gone.
func (d dueRow) drop(now evidence.Instant) {
	k := d.kind
	if k.rows[d.id] == d.row && k.expired(d.row, now) {
		k.remove(d.row)
		k.version++
	}
}

// Rows are in the order of their positions. Most are added at the end and removed at the beginning.
type rows []*row

// seek returns the place of the first row that is at a position or behind it.
func (rs rows) seek(p stores.Position) int {
	compare := func(r *row, p stores.Position) int { return r.Compare(p) }
	i, _ := slices.BinarySearchFunc(rs, p, compare)
	return i
}

// with returns the rows and one more, at its place.
func (rs rows) with(r *row) rows {
	if n := len(rs); n == 0 || rs[n-1].Compare(r.Position) < 0 {
		return append(rs, r)
	}
	return slices.Insert(rs, rs.seek(r.Position), r)
}

// without returns the rows without one. Most go at the beginning, which costs nothing.
func (rs rows) without(r *row) rows {
	i := rs.seek(r.Position)
	if i == 0 {
		rs[0] = nil
		return rs[1:]
	}
	return slices.Delete(rs, i, i+1)
}

// within yields the rows of a range, the oldest or the newest first. The range is found by
// bisection, so a page deep in a list costs no more than the first one. Both bounds are exclusive.
func (rs rows) within(in stores.Range, oldest bool) iter.Seq[*row] {
	from := rs.seek(stores.Position{At: in.After.At, Seq: in.After.Seq + 1})
	part := rs[from:max(from, rs.seek(in.Before))]
	if oldest {
		return slices.Values(part)
	}
	return func(yield func(*row) bool) {
		for _, r := range slices.Backward(part) {
			if !yield(r) {
				return
			}
		}
	}
}

// A search is a query on its way, with the positions between which it finds rows. The positions are
// fixed when the query is checked, so records that come later than a bound are left out.
type search struct {
	store.Query
	stores.Range
}

// newSearch checks a query, and returns it with the range of positions that it selects.
func newSearch(q store.Query) (search, error) {
	in, err := stores.RangeOf(q)
	return search{q, in}, err
}

// most returns how many records the query may find.
func (s *search) most() int { return cmp.Or(s.Limit, math.MaxInt) }

// selects reports whether the query selects a row.
func (s *search) selects(r *row) bool {
	lacks := func(key string) bool { return !slices.Contains(r.keys, key) }
	return r.Compare(s.Range.After) > 0 && r.Compare(s.Before) < 0 &&
		!slices.ContainsFunc(s.Keys, lacks)
}

// record returns a row that was found, with the place from which a later query can go on.
func (s *search) record(r *row) store.Record {
	record := r.record(s.Kind)
	record.Place = r.Position.String()
	return record
}

// candidates yields the rows that a query looks at, in its order. It walks along the shortest of
// the lists that all selected rows are in: of a key, or of the kind.
func (s *state) candidates(q *search) iter.Seq[*row] {
	k := s.kinds[q.Kind]
	if k == nil {
		return func(func(*row) bool) {}
	}
	fewest := k.all
	for _, key := range q.Keys {
		if rows := k.keyed[key]; len(rows) < len(fewest) {
			fewest = rows
		}
	}
	return fewest.within(q.Range, q.Oldest)
}

// gather returns the records that a query selects.
func (s *state) gather(q *search) (found []store.Record) {
	for r := range s.candidates(q) {
		if q.selects(r) {
			found = append(found, q.record(r))
		}
		if len(found) == q.most() {
			break
		}
	}
	return found
}

// A walk is how far a loop over records has come.
type walk struct {
	search
	begun bool
	last  int64         // the number of the last row when it began: later ones are left out
	left  int           // how many records it may still find
	page  int           // how many rows it notes next
	had   map[*row]bool // noted before; a pointer identifies a row, because updates keep it
	noted []*row        // and not found yet
}

// copied is how many rows a walk copies at once.
const copied = 32

// newWalk checks a query, and returns a walk that was not begun.
func newWalk(q store.Query) (*walk, error) {
	search, err := newSearch(q)
	w := &walk{search: search, left: search.most(), page: copied, had: make(map[*row]bool)}
	return w, err
}

// next returns the next few records of a walk. Without any, the walk is over. A row that was noted
// is looked at again: it may have changed or gone since.
func (s *state) next(w *walk) (found []store.Record) {
	if !w.begun {
		w.begun, w.last = true, s.seq
	}
	for most := min(copied, w.left); len(found) < most; {
		if len(w.noted) == 0 && !s.turn(w) {
			break
		}
		r := w.noted[0]
		w.noted = w.noted[1:]
		if k := s.kinds[w.Kind]; k != nil && k.rows[r.id] == r && w.selects(r) {
			found = append(found, w.record(r))
		}
	}
	w.left -= len(found)
	return found
}

// turn notes the next page of a walk, and reports whether there is one. It looks from the beginning
// on, because an update may have moved a row behind the place where the walk is. Pages double, so
// that all of them cost no more than twice the last one.
func (s *state) turn(w *walk) bool {
	for r := range s.candidates(&w.search) {
		if len(w.noted) == w.page {
			break
		}
		if r.Seq <= w.last && !w.had[r] && w.selects(r) {
			w.noted, w.had[r] = append(w.noted, r), true
		}
	}
	w.page *= 2
	return len(w.noted) > 0
}
