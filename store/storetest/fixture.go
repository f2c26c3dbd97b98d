package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/store"
)

var (
	ctx = context.Background()
	// start is the first time of the suite's clock.
	start = time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC)
)

// A fixture is a store under test with its clock.
type fixture struct {
	conformance.Checker
	subject Subject
	options Options
	store   store.Store
	since   atomic.Int64 // how far the clock is after the start
	where   string       // begins the messages of failures
}

// newFixture makes a fresh store that is opened with limits.
func newFixture(t testing.TB, s Subject, limits map[string]store.Limits) *fixture {
	f := &fixture{Checker: conformance.Checker{TB: t}, subject: s}
	f.options = Options{Now: f.time, Limits: limits}
	f.store = f.opened(s.New(f.options))
	if s.paired {
		f.where = "over two handles: "
		f.Prefix = f.where
		f.store = newPair(f.store, f.opened(s.Beside(f.store, f.options)))
	}
	return f
}

// opened returns a store that was just opened, after it declared the suite's kinds.
func (f *fixture) opened(st store.Store, err error) store.Store {
	f.Must("open the store", err)
	f.Must("Declare", st.Declare(ctx, kinds...))
	return st
}

// fresh returns the fixture of another fresh store.
func (f *fixture) fresh() *fixture { return newFixture(f.TB, f.subject, nil) }

// handles returns the handles that the fixture's store goes through.
func (f *fixture) handles() []store.Store {
	if p, ok := f.store.(*pair); ok {
		return p.handles[:]
	}
	return []store.Store{f.store}
}

func (f *fixture) time() time.Time { return start.Add(time.Duration(f.since.Load())) }

// setTime sets the clock to a time after the start.
func (f *fixture) setTime(after time.Duration) { f.since.Store(int64(after)) }

// after names what was done last. The messages of later failures begin with it.
func (f *fixture) after(format string, args ...any) {
	f.Prefix = f.where + "after " + fmt.Sprintf(format, args...) + ": "
}

// sameJSON compares values by their JSON, so that nil and empty are the same.
func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// repeat returns n values.
func repeat[T any](n int, value func(i int) T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = value(i)
	}
	return all
}

// all collects what a loop yields, which must end without an error.
func all[T any](f *fixture, seq iter.Seq2[T, error]) (all []T) {
	for one, err := range seq {
		f.Must("a loop", err)
		all = append(all, one)
	}
	return all
}

// faultOf returns the field that an error calls invalid, or "" if the error is no InputError.
func faultOf(err error) string {
	var fault *heed.InputError
	if !errors.As(err, &fault) {
		return ""
	}
	return fault.Field
}

// commits commits batches together.
func (f *fixture) commits(batches ...store.Batch) []store.Receipt {
	receipts, err := f.store.Commit(ctx, batches...)
	f.Must("Commit", err)
	if len(receipts) != len(batches) {
		f.Fatalf("Commit of %d batches returns %d receipts", len(batches), len(receipts))
	}
	return receipts
}

func (f *fixture) commit(b store.Batch) store.Receipt { return f.commits(b)[0] }

// run runs a job through a handle.
func (f *fixture) run(job store.Job) { f.Must("Run", store.Run(ctx, f.store, job)) }

// refused commits batches that must be refused, and returns the error.
func (f *fixture) refused(batches ...store.Batch) error {
	_, err := f.store.Commit(ctx, batches...)
	if err == nil {
		f.Fatalf("Commit of %.200s: no error", fmt.Sprintf("%+v", batches))
	}
	return err
}

// refusedBy commits batches that must be refused with this error.
func (f *fixture) refusedBy(want error, batches ...store.Batch) {
	err := f.refused(batches...)
	f.Check(errors.Is(err, want), "Commit: %v, want %v", err, want)
}

func (f *fixture) declare(kinds ...store.Kind) { f.Must("Declare", f.store.Declare(ctx, kinds...)) }

func (f *fixture) sweep(now time.Time) { f.Must("Sweep", f.store.Sweep(ctx, now)) }

func (f *fixture) snapshot(cells []evidence.Cell, refs []store.Ref,
	finds ...store.Query) (s store.Snapshot) {
	f.Must("Read", f.store.Read(ctx, &s, cells, refs, finds...))
	return s
}

// parallel runs the function in many goroutines, and in each as often.
func (f *fixture) parallel(callers, each int, do func(caller, i int) error) {
	failures := make([]error, callers)
	f.AtOnce(callers, func(caller int) {
		for i := 0; i < each && failures[caller] == nil; i++ {
			failures[caller] = do(caller, i)
		}
	})
	f.Must("concurrent calls", errors.Join(failures...))
}

// The kinds of records in the suite.
const (
	notes  = "suite.note"   // kept for good, and name no person
	cases  = "suite.case"   // name people
	wholes = "suite.whole"  // go with the person
	brief  = "suite.brief"  // are kept for an hour
	few    = "suite.few"    // are three
	filled = "suite.filled" // are three, and no more are taken
	rare   = "suite.rare"   // have a version, name people, and are kept for an hour
)

var kinds = []store.Kind{
	{Name: notes},
	{
		Name: cases, Caused: []string{"of", "sources"},
		Decided: []string{"by", "approvals.*.actor", "payload.~.by"},
	},
	{Name: wholes, Caused: []string{"of"}, Whole: true},
	{Name: brief, Limits: store.Limits{For: time.Hour}},
	{Name: few, Limits: store.Limits{Most: 3}},
	{Name: filled, Limits: store.Limits{Most: 3, Refuse: true}},
	{Name: rare, Limits: store.Limits{For: time.Hour}, Caused: []string{"of"}, Versioned: true},
}

// A value is what the suite keeps in records.
type value struct {
	Text    string            `json:"text,omitempty"`
	N       int64             `json:"n,omitempty"`
	X       float64           `json:"x,omitempty"`
	Flag    bool              `json:"flag,omitempty"`
	When    time.Time         `json:"when,omitzero"`
	Of      string            `json:"of,omitempty"`
	By      string            `json:"by,omitempty"`
	Sources []string          `json:"sources,omitempty"`
	Payload []byte            `json:"payload,omitempty"`
	Details map[string]string `json:"details,omitempty"`
}

type records = []store.Record

func ref(kind, id string) store.Ref { return store.Ref{Kind: kind, ID: id} }

// record returns a record to write, that is new and of the start.
func record(kind, id string, v value, keys ...string) store.Record {
	return store.Record{Ref: ref(kind, id), At: start, Keys: keys, Body: store.Of(v)}
}

// note returns a record of the kind that most rules use.
func note(id string, v value, keys ...string) store.Record { return record(notes, id, v, keys...) }

// over returns the record with the revision that it shall be written over.
func over(revision uint64, r store.Record) store.Record {
	r.Revision = revision
	return r
}

func once(r store.Record) store.Record { return over(store.Once, r) }

// at returns the record with a time after the start.
func at(after time.Duration, r store.Record) store.Record {
	r.At = start.Add(after)
	return r
}

func removal(kind, id string, revision uint64) store.Record {
	return store.Record{Ref: ref(kind, id), Revision: revision}
}

func expect(id string, revision uint64) store.Precondition {
	return store.Precondition{Ref: ref(notes, id), Revision: revision}
}

// write commits records and returns the revision that they got.
func (f *fixture) write(records ...store.Record) uint64 {
	revision := f.commit(store.Batch{Records: records}).Revision
	if revision == 0 || revision == store.Once {
		f.Fatalf("a receipt of a batch that writes has the revision %d", revision)
	}
	return revision
}

// remove removes a record of any revision.
func (f *fixture) remove(kind, id string) {
	f.commit(store.Batch{Records: records{removal(kind, id, f.get(kind, id).Revision)}})
}

// get reads one record.
func (f *fixture) get(kind, id string) store.Record {
	found := f.snapshot(nil, []store.Ref{ref(kind, id)}).Records
	if len(found) != 1 || found[0].Ref != ref(kind, id) {
		f.Fatalf("Read of record %q of kind %q returns %+v", id, kind, found)
	}
	return found[0]
}

func (f *fixture) decode(r store.Record) value {
	v, err := store.Decode[value](r.Body)
	f.Must(fmt.Sprintf("decode record %q of kind %q", r.ID, r.Kind), err)
	return v
}

// has checks that a record is there and has this value, and returns it.
func (f *fixture) has(kind, id string, want value) store.Record {
	r := f.get(kind, id)
	if r.Revision == 0 {
		f.Errorf("record %q of kind %q is not there", id, kind)
		return r
	}
	got := f.decode(r)
	f.Check(sameJSON(got, want), "record %q of kind %q: %+v, want %+v", id, kind, got, want)
	return r
}

// gone checks that records are not there.
func (f *fixture) gone(kind string, ids ...string) {
	found := f.ids(by(kind))
	for _, id := range ids {
		r := f.get(kind, id)
		f.Check(r.Revision == 0 && r.Body.IsZero() && !slices.Contains(found, id),
			"record %q of kind %q is there, with revision %d, or found", id, kind, r.Revision)
	}
}

// by returns the query of a kind by keys.
func by(kind string, keys ...string) store.Query { return store.Query{Kind: kind, Keys: keys} }

// find returns what a query selects.
func (f *fixture) find(q store.Query) records { return all(f, f.store.Find(ctx, q)) }

// ids returns the ids that a query selects.
func (f *fixture) ids(q store.Query) (ids []string) {
	for _, r := range f.find(q) {
		ids = append(ids, r.ID)
	}
	return ids
}

// finds checks which ids a query selects, in which order.
func (f *fixture) finds(q store.Query, want ...string) {
	f.Equal(fmt.Sprintf("Find of %+v", q), f.ids(q), want)
}

// both checks what a query finds, oldest first, and the reverse.
func (f *fixture) both(q store.Query, oldest ...string) {
	q.Oldest = true
	f.finds(q, oldest...)
	q.Oldest = false
	f.finds(q, reversed(oldest)...)
}

func reversed(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}
