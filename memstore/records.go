package memstore

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// records keeps the records of all kinds. A record lies in the shard of its id, which has a lock. Each kind has an index
// with a lock of its own, which is taken after those of shards.
type records struct {
	seed          maphash.Seed
	revision, seq atomic.Uint64 // the last ones that were given
	versions      uint64        // where the versions of kinds begin
	locks         [shardCount]sync.Mutex
	limits        map[string]store.Limits // of the configuration
	declaring     sync.Mutex
	kinds         atomic.Pointer[map[string]*kind] // never changed in place
}

// A kind holds the records of one kind.
type kind struct {
	name  string
	rule  atomic.Pointer[store.Kind]  // as declared
	fixed *store.Limits               // those of the configuration, or nil
	rows  [shardCount]map[string]*row // each under the lock of its shard
	size  atomic.Int64                // how many rows there are, or will be when the commits have ended that are under way
	// version is raised after each change of rows, and before the change is acknowledged.
	version atomic.Uint64
	index
}

// A row is a record. It is changed under the locks of its shard and of its kind's index, and so read under either.
type row struct {
	position
	id       string
	keys     []string  // never changed in place
	few      [3]string // has the first keys of a row, if they are few
	revision uint64
	body     store.Body
	gone     bool
}

// newRow returns a row with copies of the keys.
func newRow(at position, id string, keys []string) *row {
	r := &row{position: at, id: id}
	if len(keys) <= len(r.few) {
		r.keys = r.few[:copy(r.few[:], keys)]
	} else {
		r.keys = slices.Clone(keys)
	}
	return r
}

// rekeyed returns a copy of keys that the row is to have. It may share the memory of those that it has.
func (r *row) rekeyed(keys []string) []string {
	if n := len(keys); n <= len(r.keys) && slices.Equal(keys, r.keys[:n]) {
		return r.keys[:n:n]
	}
	return slices.Clone(keys)
}

func (r *row) record(kind string) store.Record {
	return store.Record{
		Ref: store.Ref{Kind: kind, ID: r.id}, Revision: r.revision, At: r.at.Time(), Keys: slices.Clone(r.keys), Body: r.body,
	}
}

// lives counts the states that there were, so that no version of one is a version of another.
var lives atomic.Uint64

func (r *records) start(limits map[string]store.Limits) {
	r.seed, r.limits, r.versions = maphash.MakeSeed(), limits, lives.Add(1)<<32
	r.kinds.Store(&map[string]*kind{})
}

func (r *records) kind(name string) *kind { return (*r.kinds.Load())[name] }

func (r *records) shard(id string) int { return int(maphash.String(r.seed, id) % shardCount) }

// declare makes kinds known, or changes how they are kept, unless the store has another state by now.
func (s *state) declare(kinds []store.Kind) bool {
	s.records.declaring.Lock()
	defer s.records.declaring.Unlock()
	if s.left.Load() {
		return false
	}
	s.records.declare(kinds)
	return true
}

// declare adds declarations. The caller has the lock of declarations.
func (r *records) declare(kinds []store.Kind) {
	all := maps.Clone(*r.kinds.Load())
	for _, rule := range kinds {
		k := all[rule.Name]
		if k == nil {
			k = &kind{name: rule.Name}
			k.version.Store(r.versions)
			if limits, ok := r.limits[rule.Name]; ok {
				k.fixed = &limits
			}
			all[rule.Name] = k
		} else {
			before := k.rule.Load()
			if rule.Limits == (store.Limits{}) {
				rule.Limits = before.Limits
			}
			rule.Caused = union(before.Caused, rule.Caused)
			rule.Decided = union(before.Decided, rule.Decided)
			rule.Whole = rule.Whole || before.Whole
			rule.History = cmp.Or(rule.History, before.History)
			rule.Versioned = rule.Versioned || before.Versioned
		}
		rule.Caused, rule.Decided = slices.Clone(rule.Caused), slices.Clone(rule.Decided)
		k.rule.Store(&rule)
	}
	r.kinds.Store(&all)
}

// history returns how many observations a kind wants to be kept of each cell.
func (r *records) history(name string) int {
	if k := r.kind(name); k != nil {
		return k.rule.Load().History
	}
	return 0
}

// limits returns how long records of the kind are kept.
func (k *kind) limits() store.Limits {
	if k.fixed != nil {
		return *k.fixed
	}
	return k.rule.Load().Limits
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, text := range b {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

func (r *records) read(ref store.Ref) (store.Record, error) {
	k := r.kind(ref.Kind)
	switch {
	case ref.ID == "" && (k == nil || !k.rule.Load().Versioned):
		return store.Record{}, unversioned(ref.Kind)
	case ref.ID == "":
		return store.Record{Ref: ref, Revision: k.version.Load()}, nil
	case k == nil:
		return store.Record{Ref: ref}, nil
	}
	shard := r.shard(ref.ID)
	r.locks[shard].Lock()
	defer r.locks[shard].Unlock()
	if row := k.rows[shard][ref.ID]; row != nil {
		return row.record(ref.Kind), nil
	}
	return store.Record{Ref: ref}, nil
}

func unversioned(kind string) error {
	return &heed.InputError{Field: "Refs", Reason: fmt.Sprintf("asks for the version of %q, which is not declared with one", kind)}
}

// insert writes a new row. The caller has the lock of the shard.
func (k *kind) insert(shard int, r *row) {
	if k.rows[shard] == nil {
		k.rows[shard] = make(map[string]*row)
	}
	k.rows[shard][r.id] = r
	k.mu.Lock()
	defer k.mu.Unlock()
	k.enter(r)
}

// update changes a row. The caller has the lock of the shard.
func (k *kind) update(r *row, at evidence.Instant, keys []string, revision uint64, body store.Body) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.at == at {
		k.rekey(r, keys)
		r.keys = keys
	} else {
		k.leave(r)
		r.at, r.keys = at, keys
		k.enter(r)
	}
	r.revision, r.body = revision, body
}

// remove removes a row. The caller has the lock of the shard.
func (k *kind) remove(shard int, r *row) {
	delete(k.rows[shard], r.id)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leave(r)
	r.gone = true
}

// trim drops the first rows of a kind that has more than it may.
func (r *records) trim(k *kind) {
	limits := k.limits()
	for limits.Most > 0 && !limits.Refuse {
		over := int(k.size.Load()) - limits.Most
		if over <= 0 {
			return
		}
		for _, old := range k.due(math.MinInt64, min(over, 64)) {
			r.drop(k, old, math.MinInt64, limits.Most)
		}
	}
}

// sweep drops rows that are past the limits at a moment, a few at a time.
func (r *records) sweep(ctx context.Context, k *kind, now evidence.Instant) error {
	r.trim(k)
	limits := k.limits()
	if limits.For == 0 {
		return ctx.Err()
	}
	oldest := now - evidence.Instant(limits.For.Microseconds())
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		due := k.due(oldest, 0)
		if len(due) == 0 {
			return nil
		}
		for _, old := range due {
			r.drop(k, old, oldest, math.MaxInt)
		}
	}
}

// drop removes a row that is before a moment, or the first of too many.
func (r *records) drop(k *kind, old *row, oldest evidence.Instant, most int) {
	shard := r.shard(old.id)
	r.locks[shard].Lock()
	defer r.locks[shard].Unlock()
	if !old.gone && (old.at < oldest || k.size.Load() > int64(most)) {
		k.remove(shard, old)
		k.size.Add(-1)
		k.version.Add(1)
	}
}

// An index finds the rows of a kind.
type index struct {
	mu   sync.RWMutex
	all  timeline
	keys map[string]chain
}

// A chain has the rows of a key. Most keys have one.
type chain struct {
	one  *row
	many *timeline // nil: there is one
}

func (c chain) size() int {
	if c.many == nil {
		return 1
	}
	return c.many.size
}

// timeline returns the rows in order.
func (c chain) timeline() *timeline {
	if c.many == nil {
		return &timeline{blocks: [][]*row{{c.one}}, size: 1}
	}
	return c.many
}

func (x *index) enter(r *row) {
	x.all.add(r)
	x.rekeyFrom(r, nil, r.keys)
}

func (x *index) leave(r *row) {
	x.all.remove(r)
	x.rekeyFrom(r, r.keys, nil)
}

// rekey changes the keys by which a row is found.
func (x *index) rekey(r *row, keys []string) {
	if !slices.Equal(r.keys, keys) {
		x.rekeyFrom(r, r.keys, keys)
	}
}

func (x *index) rekeyFrom(r *row, before, after []string) {
	for i, key := range before {
		if slices.Contains(before[:i], key) || slices.Contains(after, key) {
			continue
		}
		rows := x.keys[key]
		if rows.many != nil {
			rows.many.remove(r)
		}
		if rows.many == nil || rows.many.size == 0 {
			delete(x.keys, key)
		}
	}
	for i, key := range after {
		if slices.Contains(after[:i], key) || slices.Contains(before, key) {
			continue
		}
		switch rows := x.keys[key]; {
		case rows.many != nil:
			rows.many.add(r)
		case rows.one != nil:
			rows.many = rows.timeline()
			rows.many.add(r)
			x.keys[key] = chain{many: rows.many}
		default:
			if x.keys == nil {
				x.keys = make(map[string]chain)
			}
			x.keys[key] = chain{one: r}
		}
	}
}

// due returns rows that are before a moment, and at least this number of the first.
func (x *index) due(oldest evidence.Instant, least int) (due []*row) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for r := range x.all.up(position{}) {
		if len(due) >= least && (r.at >= oldest || len(due) >= 64) {
			break
		}
		due = append(due, r)
	}
	return due
}

// A search is a query on its way.
type search struct {
	store.Query
	from, before position // the bounds, the second exclusive
}

func newSearch(q store.Query) (*search, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	s := &search{Query: q, before: position{math.MaxInt64, math.MaxUint64}}
	if !q.Since.IsZero() {
		s.from.at = instantFrom(q.Since)
	}
	if !q.Until.IsZero() {
		s.before = position{at: instantFrom(q.Until)}
	}
	if q.After == "" {
		return s, nil
	}
	after, err := parsePlace(q.After)
	if err != nil {
		return nil, err
	}
	if next := (position{after.at, after.seq + 1}); q.Oldest && next.compare(s.from) > 0 {
		s.from = next
	}
	if !q.Oldest && after.compare(s.before) < 0 {
		s.before = after
	}
	return s, nil
}

// instantFrom returns the first moment, in whole microseconds, that is not before a time.
func instantFrom(t time.Time) evidence.Instant {
	return evidence.InstantOf(t.Add(time.Microsecond - 1))
}

func (p position) place() string {
	text := strconv.AppendInt(make([]byte, 0, 32), int64(p.at), 36)
	return string(strconv.AppendUint(append(text, '.'), p.seq, 36))
}

func parsePlace(place string) (p position, err error) {
	at, seq, _ := strings.Cut(place, ".")
	moment, err := strconv.ParseInt(at, 36, 64)
	if err == nil {
		p.at = evidence.Instant(moment)
		p.seq, err = strconv.ParseUint(seq, 36, 64)
	}
	if err != nil {
		return p, &heed.InputError{Field: "After", Reason: "must be the Place of a record"}
	}
	return p, nil
}

// selects reports whether the query selects a row. The caller has the lock of the index.
func (s *search) selects(r *row) bool {
	return !r.gone && r.compare(s.from) >= 0 && r.compare(s.before) < 0 &&
		!slices.ContainsFunc(s.Keys, func(key string) bool { return !slices.Contains(r.keys, key) })
}

// gather returns the next rows that a query selects, at most n, without those that it had before.
func (x *index) gather(s *search, n int, had map[*row]bool) (rows []*row) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	least := &x.all
	for _, key := range s.Keys {
		of, ok := x.keys[key]
		if !ok {
			return nil
		}
		if of.size() < least.size {
			least = of.timeline()
		}
	}
	all := least.down(s.before)
	if s.Oldest {
		all = least.up(s.from)
	}
	for r := range all {
		if len(rows) == n || s.Oldest && r.compare(s.before) >= 0 || !s.Oldest && r.compare(s.from) < 0 {
			break
		}
		if s.selects(r) && !had[r] {
			rows = append(rows, r)
		}
	}
	return rows
}

// find yields the rows that a query selects. It gathers a few rows first, as the loop may end early, then more, then the rest. A
// row that moves meanwhile is neither missed nor met twice.
func (r *records) find(ctx context.Context, q store.Query, yield func(store.Record, error) bool) error {
	query, err := newSearch(q)
	if err != nil {
		return fmt.Errorf("memstore: find: %w", err)
	}
	k := r.kind(q.Kind)
	if k == nil {
		return nil
	}
	left := q.Limit
	if left == 0 {
		left = math.MaxInt
	}
	var had map[*row]bool
	for _, n := range []int{32, 1024, math.MaxInt} {
		n = min(n, left)
		rows := k.gather(query, n, had)
		for _, row := range rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			record, ok := k.copy(query, row)
			if !ok {
				continue
			}
			if left--; !yield(record, nil) {
				return nil
			}
		}
		if len(rows) < n || left == 0 {
			break
		}
		if had == nil {
			had = make(map[*row]bool)
		}
		for _, row := range rows {
			had[row] = true
		}
	}
	return nil
}

// copy returns a row as it is now, if the query still selects it.
func (k *kind) copy(query *search, r *row) (store.Record, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if !query.selects(r) {
		return store.Record{}, false
	}
	record := r.record(k.name)
	record.Place = r.place()
	return record, true
}
