package storetest_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// A reference is a store without any cleverness. It keeps everything in plain lists and maps under
// one lock, copies all of it before each commit, and adds up all observations when it is asked.
type reference struct {
	options storetest.Options
	perCell int // observations of a cell in the history
	file    *file
	kinds   map[string]store.Kind // as all handles have declared them
}

// A file is what remains of a reference that is closed.
type file struct {
	mu sync.Mutex
	state
}

type state struct {
	seen     []seen
	known    map[string]bool
	cells    map[evidence.Cell]evidence.Policy
	restarts map[evidence.Cell]time.Time
	records  map[store.Ref]written
	revision uint64
	order    int
	versions map[string]uint64
}

// A seen is an observation that counts, or would but for its weight or a restart.
type seen struct {
	evidence.Observation
	order   int
	history bool
}

type written struct {
	store.Record
	order int
}

func newReference(o storetest.Options, perCell int) *reference {
	return &reference{options: o, perCell: perCell, kinds: make(map[string]store.Kind),
		file: &file{state: state{
			known: make(map[string]bool), cells: make(map[evidence.Cell]evidence.Policy),
			restarts: make(map[evidence.Cell]time.Time),
			records:  make(map[store.Ref]written), versions: make(map[string]uint64),
		}}}
}

// reopen returns the same store as another program has it.
func (r *reference) reopen() *reference {
	return &reference{
		options: r.options, perCell: r.perCell, kinds: r.kinds, file: r.file,
	}
}

func (s *state) clone() state {
	c := *s
	c.seen, c.known, c.cells = slices.Clone(s.seen), maps.Clone(s.known), maps.Clone(s.cells)
	c.restarts, c.records, c.versions = maps.Clone(s.restarts), maps.Clone(s.records),
		maps.Clone(s.versions)
	return c
}

func (s *state) next() int {
	s.order++
	return s.order
}

func (r *reference) Declare(ctx context.Context, kinds ...store.Kind) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, k := range kinds {
		if err := k.Validate(); err != nil {
			return err
		}
	}
	r.file.mu.Lock()
	defer r.file.mu.Unlock()
	for _, k := range kinds {
		before := r.kinds[k.Name]
		if k.Limits == (store.Limits{}) {
			k.Limits = before.Limits
		}
		if limits, ok := r.options.Limits[k.Name]; ok {
			k.Limits = limits
		}
		k.Caused, k.Decided = union(before.Caused, k.Caused), union(before.Decided, k.Decided)
		k.Whole, k.Versioned = k.Whole || before.Whole, k.Versioned || before.Versioned
		r.kinds[k.Name] = k
	}
	return nil
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, path := range b {
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

func (r *reference) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := store.Validate(r.options.Now(), batches...); err != nil {
		return nil, err
	}
	r.file.mu.Lock()
	defer r.file.mu.Unlock()
	before := r.file.clone()
	receipts := make([]store.Receipt, len(batches))
	for i := range batches {
		if err := r.apply(&r.file.state, &batches[i], &receipts[i]); err != nil {
			r.file.state = before
			return nil, err
		}
	}
	if err := r.checkRoom(&before); err != nil {
		r.file.state = before
		return nil, err
	}
	for i, b := range batches {
		if !receipts[i].Duplicate {
			receipts[i].Parts = r.file.parts(b.PartsOf)
		}
	}
	return receipts, nil
}

func (r *reference) checkRoom(before *state) error {
	count := func(s *state, kind string) (n int) {
		for ref := range s.records {
			if ref.Kind == kind {
				n++
			}
		}
		return n
	}
	names := make(map[string]bool)
	for ref := range r.file.records {
		names[ref.Kind] = true
	}
	for name := range names {
		k, n := r.kept(name), count(&r.file.state, name)
		if k.Limits.Refuse && k.Limits.Most > 0 && n > k.Limits.Most && n > count(before, name) {
			return evidence.ErrFull
		}
	}
	return nil
}

// kept returns how records of a kind are kept, also of a tenant.
func (r *reference) kept(name string) store.Kind {
	kind, _ := store.KindOf(name)
	return r.kinds[kind]
}

func (r *reference) apply(s *state, b *store.Batch, receipt *store.Receipt) error {
	if b.ID != "" && s.known[b.ID] {
		receipt.Duplicate = true
		return nil
	}
	if err := r.takeAway(s, b, receipt); err != nil {
		return err
	}
	if err := r.observe(s, b, receipt); err != nil {
		return err
	}
	if b.ID != "" {
		s.known[b.ID] = true
	}
	for _, e := range b.Expect {
		if s.records[e.Ref].Revision != e.Revision {
			return heed.ErrConflict
		}
	}
	return r.write(s, b, receipt)
}

func (r *reference) takeAway(s *state, b *store.Batch, receipt *store.Receipt) error {
	if len(b.Reset)+len(b.Rebuild)+len(b.Restart)+len(b.Expunge) > 0 {
		for tenant := range stores.TenantsOf(b) {
			for kind := range r.kinds {
				s.versions[store.KindIn(kind, tenant)]++
			}
		}
		for kind := range s.versions {
			s.versions[kind]++
		}
	}
	for _, c := range b.Reset {
		s.drop(func(o *seen) bool { return o.Cell == c })
		delete(s.restarts, c)
		delete(s.cells, c)
	}
	for _, c := range b.Rebuild {
		if s.lost(func(o *seen) bool { return o.Cell == c }) {
			return evidence.ErrForgotten
		}
		if _, known := s.cells[c]; known {
			s.cells[c] = b.Policies[c.Kind]
		}
	}
	for _, restart := range b.Restart {
		c, at := restart.Cell, restart.At.Truncate(time.Microsecond)
		if !at.After(s.restarts[c]) {
			continue
		}
		if s.lost(func(o *seen) bool { return o.Cell == c && !o.At.Before(at) }) {
			return evidence.ErrForgotten
		}
		if _, open := s.policy(c); !open {
			s.cells[c] = b.Policies[c.Kind]
		}
		s.restarts[c] = at
	}
	for _, id := range b.Retract {
		if err := s.retract(id); err != nil {
			return err
		}
	}
	for _, id := range b.Withdraw {
		if s.retract(id) != nil && !slices.Contains(receipt.Kept, id) {
			receipt.Kept = append(receipt.Kept, id)
		}
	}
	for _, e := range b.Expunge {
		if err := s.expunge(e); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) retract(id string) error {
	if !s.known[id] {
		return heed.ErrNotFound
	}
	if s.lost(func(o *seen) bool { return o.ID == id }) {
		return evidence.ErrForgotten
	}
	s.drop(func(o *seen) bool { return o.ID == id })
	return nil
}

func (s *state) expunge(of store.SourceOf) error {
	c := of.Cell
	if s.lost(func(o *seen) bool {
		return o.Cell == c && o.Source != "" && !s.cells[c].ByOrigin
	}) {
		return evidence.ErrForgotten
	}
	s.drop(func(o *seen) bool { return o.Cell == c && o.Source == of.Source })
	rest := slices.ContainsFunc(s.seen, func(o seen) bool { return o.Cell == c })
	if !rest && named(c, of.Source) {
		delete(s.restarts, c)
		delete(s.cells, c)
	}
	return nil
}

func named(c evidence.Cell, source string) bool {
	return c.Scope == source || c.Item == source || c.Name == source
}

// observe adds the observations of a batch, and drops of the history what is too much.
func (r *reference) observe(s *state, b *store.Batch, receipt *store.Receipt) error {
	before := maps.Clone(s.known)
	for i := range b.Observations {
		o := b.Observations[i]
		o.At = o.At.UTC().Truncate(time.Microsecond)
		if before[o.ID] {
			if !slices.Contains(receipt.Duplicates, o.ID) {
				receipt.Duplicates = append(receipt.Duplicates, o.ID)
			}
			continue
		}
		if slices.ContainsFunc(b.Observations[:i],
			func(p evidence.Observation) bool { return p.ID == o.ID && p.Cell == o.Cell }) {
			continue
		}
		wanted := b.Policies[o.Cell.Kind]
		if stored, open := s.policy(o.Cell); open && stored != wanted {
			return stored.Conflict(o.Cell.Kind, wanted)
		}
		s.cells[o.Cell] = wanted
		s.known[o.ID] = true
		s.seen = append(s.seen, seen{o, s.next(), true})
		r.trim(s, o.Cell)
	}
	return nil
}

func (r *reference) trim(s *state, c evidence.Cell) {
	n, oldest := 0, -1
	for i := range s.seen {
		if o := &s.seen[i]; o.Cell == c && o.history {
			if n++; oldest < 0 || o.At.Before(s.seen[oldest].At) {
				oldest = i
			}
		}
	}
	if r.perCell > 0 && n > r.perCell {
		s.seen[oldest].history = false
	}
}

// write writes the records of a batch.
func (r *reference) write(s *state, b *store.Batch, receipt *store.Receipt) error {
	revision := s.revision + 1
	for _, next := range b.Records {
		before, there := s.records[next.Ref]
		if r.kept(next.Kind).Name == "" {
			return &heed.InputError{Field: "Records", Reason: "are of a kind that is not declared"}
		}
		switch {
		case next.Revision == store.Once && there:
			receipt.Left = append(receipt.Left, next.Ref)
			continue
		case next.Revision != store.Once && next.Revision != before.Revision:
			return heed.ErrConflict
		case next.Body.IsZero():
			delete(s.records, next.Ref)
			s.versions[next.Kind]++
			continue
		default:
			w := written{next, before.order}
			if !there {
				w.order = s.next()
			}
			w.Revision, w.At, w.Keys, w.Place = revision, next.At.UTC().Truncate(time.Microsecond),
				slices.Clone(next.Keys), ""
			s.records[next.Ref] = w
			s.versions[next.Kind]++
		}
		receipt.Revision = revision
	}
	s.revision = revision
	return nil
}

// counts reports whether an observation is in the sums of its cell.
func (s *state) counts(o *seen) bool { return o.Weight > 0 && !o.At.Before(s.restarts[o.Cell]) }

// lost reports whether the sums hold an observation of this sort that the history does not.
func (s *state) lost(is func(*seen) bool) bool {
	return slices.ContainsFunc(s.seen, func(o seen) bool {
		return !o.history && s.counts(&o) &&
			is(&o)
	})
}

func (s *state) drop(gone func(*seen) bool) {
	s.seen = slices.DeleteFunc(s.seen, func(o seen) bool { return gone(&o) })
}

// policy returns the policy of a cell that has evidence, or a restart.
func (s *state) policy(c evidence.Cell) (evidence.Policy, bool) {
	_, restarted := s.restarts[c]
	open := restarted || slices.ContainsFunc(s.seen,
		func(o seen) bool { return o.Cell == c && s.counts(&o) })
	return s.cells[c], open
}

func (s *state) parts(cells []evidence.Cell) (parts []evidence.Part) {
	for _, c := range cells {
		policy := s.cells[c]
		from := len(parts)
		for i := range s.seen {
			o := &s.seen[i]
			if o.Cell != c || !s.counts(o) {
				continue
			}
			part := evidence.Part{Cell: c}
			if policy.ByOrigin {
				part.Channel, part.Source = o.Channel, o.Source
			}
			at := slices.IndexFunc(parts[from:], func(
				p evidence.Part) bool {
				return p.Channel == part.Channel && p.Source == part.Source
			})
			if at < 0 {
				part.Tally.HalfLife = policy.HalfLife
				parts = append(parts, part)
				at = len(parts) - 1 - from
			}
			parts[from+at].Tally.Add(o.Weight, o.Share, o.Reward, evidence.InstantOf(o.At))
		}
		slices.SortFunc(parts[from:], func(a, b evidence.Part) int {
			return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Source, b.Source))
		})
	}
	return parts
}

func (r *reference) Read(ctx context.Context, into *store.Snapshot, cells []evidence.Cell,
	refs []store.Ref, finds ...store.Query) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.read(into, cells, refs); err != nil {
		return err
	}
	for _, q := range finds {
		var all []store.Record
		for found, err := range r.Find(ctx, q) {
			if err != nil {
				return err
			}
			all = append(all, found)
		}
		into.Found = append(into.Found, all)
	}
	return nil
}

func (r *reference) read(into *store.Snapshot, cells []evidence.Cell, refs []store.Ref) error {
	r.file.mu.Lock()
	defer r.file.mu.Unlock()
	for _, ref := range refs {
		if ref.ID == "" && !r.kept(ref.Kind).Versioned {
			return &heed.InputError{Field: "Refs", Reason: "asks for a version that there is not"}
		}
	}
	for _, ref := range refs {
		found := r.file.records[ref].copy()
		found.Ref = ref
		if ref.ID == "" {
			found.Revision = r.file.versions[ref.Kind]
		}
		into.Records = append(into.Records, found)
	}
	into.Parts = append(into.Parts, r.file.parts(cells)...)
	return nil
}

func (w written) copy() store.Record {
	w.Keys = slices.Clone(w.Keys)
	return w.Record
}

func (r *reference) Find(ctx context.Context, q store.Query) iter.Seq2[store.Record, error] {
	return listed(ctx, r, func(s *state) ([]store.Record, error) {
		if q.Kind == store.Declarations {
			return r.declarations(), nil
		}
		if err := q.Validate(); err != nil {
			return nil, err
		}
		var at, order int64
		if q.After != "" {
			if _, err := fmt.Sscanf(q.After, "%d.%d", &at, &order); err != nil {
				return nil, &heed.InputError{Field: "After", Reason: "is no place"}
			}
		}
		var all []store.Record
		for _, w := range slices.SortedFunc(maps.Values(s.records), func(a, b written) int {
			n := cmp.Or(a.At.Compare(b.At), cmp.Compare(a.order, b.order))
			if q.Oldest {
				return n
			}
			return -n
		}) {
			where := cmp.Or(cmp.Compare(w.At.UnixMicro(), at), cmp.Compare(int64(w.order), order))
			if w.Kind != q.Kind || slices.ContainsFunc(q.Keys,
				func(key string) bool { return !slices.Contains(w.Keys, key) }) ||
				w.At.Before(q.Since) || !q.Until.IsZero() && !w.At.Before(q.Until) ||
				q.After != "" && (q.Oldest && where <= 0 || !q.Oldest && where >= 0) || q.Limit > 0 &&
				len(all) == q.Limit {
				continue
			}
			found := w.copy()
			found.Place = fmt.Sprintf("%d.%d", w.At.UnixMicro(), w.order)
			all = append(all, found)
		}
		return all, nil
	})
}

func (r *reference) declarations() (all []store.Record) {
	for _, k := range r.kinds {
		all = append(all, store.DeclarationOf(k))
	}
	return all
}

// listed reads all results of a function before it yields the first.
func listed[T any](
	ctx context.Context, r *reference, find func(*state) ([]T, error),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []T
		err := ctx.Err()
		if err == nil {
			r.file.mu.Lock()
			all, err = find(&r.file.state)
			r.file.mu.Unlock()
		}
		if err != nil {
			yield(*new(T), err)
			return
		}
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

func (r *reference) List(ctx context.Context, q store.CellQuery) iter.Seq2[evidence.Part, error] {
	return listed(ctx, r, func(s *state) (all []evidence.Part, _ error) {
		wanted, tenant := store.KindOf(q.Kind)
		others := func(c evidence.Cell) bool {
			_, of := store.KindOf(c.Kind)
			return of != tenant
		}
		if q.Naming != "" && s.lost(func(o *seen) bool {
			return o.Source != "" && !s.cells[o.Cell].ByOrigin && !others(o.Cell)
		}) {
			return nil, evidence.ErrForgotten
		}
		cells := make(map[evidence.Cell]bool)
		for c := range s.cells {
			cells[c] = true
		}
		for c := range s.restarts {
			cells[c] = true
		}
		for _, c := range slices.SortedFunc(maps.Keys(cells), evidence.Cell.Compare) {
			if others(c) || wanted != "" && (c.Kind != q.Kind || c.Scope != q.Scope) {
				continue
			}
			all = append(all, s.selected(q, c)...)
		}
		return all, nil
	})
}

// selected returns the parts of a cell that a query wants.
func (s *state) selected(q store.CellQuery, c evidence.Cell) []evidence.Part {
	parts := s.parts([]evidence.Cell{c})
	switch {
	case q.Lost:
		if !s.lost(func(o *seen) bool { return o.Cell == c }) {
			return nil
		}
		return parts
	case q.Naming != "":
		if !named(c, q.Naming) && !slices.ContainsFunc(s.seen,
			func(o seen) bool { return o.Cell == c && o.Source == q.Naming }) {
			return nil
		}
		parts = slices.DeleteFunc(parts, func(p evidence.Part) bool {
			return s.cells[c].ByOrigin && p.Source != q.Naming
		})
	case strings.HasPrefix(q.Kind, "@"):
		parts = nil
	case !q.Empty:
		return parts
	}
	if len(parts) == 0 {
		parts = []evidence.Part{{Cell: c}}
	}
	return parts
}

func (r *reference) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	return listed(ctx, r, func(s *state) ([]string, error) {
		scopes := make(map[string]bool)
		for i := range s.seen {
			if o := &s.seen[i]; o.Cell.Kind == kind && s.counts(o) {
				scopes[o.Cell.Scope] = true
			}
		}
		return slices.Sorted(maps.Keys(scopes)), nil
	})
}

func (r *reference) History(
	ctx context.Context, c evidence.Cell,
) iter.Seq2[evidence.Observation, error] {
	return listed(ctx, r, func(s *state) ([]evidence.Observation, error) {
		var kept []seen
		for _, o := range s.seen {
			if o.Cell == c && o.history {
				kept = append(kept, o)
			}
		}
		slices.SortFunc(kept, func(a, b seen) int {
			return cmp.Or(b.At.Compare(a.At),
				cmp.Compare(b.order, a.order))
		})
		var all []evidence.Observation
		for _, o := range kept {
			all = append(all, o.Observation)
		}
		return all, nil
	})
}

func (r *reference) Sweep(ctx context.Context, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if clock := r.options.Now(); now.IsZero() || now.After(clock) {
		now = clock
	}
	if err := store.Resume(ctx, r); err != nil {
		return err
	}
	names := slices.Collect(maps.Keys(r.kinds))
	r.file.mu.Lock()
	for ref := range r.file.records {
		names = append(names, ref.Kind)
	}
	r.file.mu.Unlock()
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		k := r.kept(name)
		var all []store.Record
		for found, err := range r.Find(ctx, store.Query{Kind: name}) {
			if err != nil {
				return err
			}
			all = append(all, found)
		}
		r.file.mu.Lock()
		for i, found := range all {
			late := k.Limits.For > 0 && found.At.Before(now.Add(-k.Limits.For))
			if late || k.Limits.Most > 0 && !k.Limits.Refuse && i >= k.Limits.Most {
				delete(r.file.records, found.Ref)
				r.file.versions[name]++
			}
		}
		r.file.mu.Unlock()
	}
	return nil
}
