package enginetest_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// A call is what a test does with a store.
type call func(*sqlstore.Store) error

func calls(all ...call) call {
	return func(st *sqlstore.Store) error {
		for _, do := range all {
			if err := do(st); err != nil {
				return err
			}
		}
		return nil
	}
}

func commits(batches ...store.Batch) call {
	return func(st *sqlstore.Store) error {
		_, err := st.Commit(ctx, batches...)
		return err
	}
}

func declares(kinds ...store.Kind) call {
	return func(st *sqlstore.Store) error { return st.Declare(ctx, kinds...) }
}

var noteKind = store.Kind{Name: "note", Limits: store.Limits{For: time.Hour}, Caused: []string{"Of"}, Decided: []string{"By"}}

func noteOf(id string, revision uint64, keys ...string) store.Record {
	return store.Record{
		Ref: store.Ref{Kind: "note", ID: id}, Revision: revision, At: time.Now(), Keys: append(keys, "k", store.PersonKey("ann")),
		Body: store.Of(map[string]string{"Of": "ann", "By": "ann", "Text": strings.Repeat("x", 300)}),
	}
}

func ofAnn(id string) evidence.Observation {
	o := observe(id, time.Now())
	o.Source = "ann"
	return o
}

// A deed is a call of a store. prepare runs first, without faults. After the call, the tables must be as before it or as after it, and
// nothing between. A call of several transactions can fail between them. keeps then names what it must never change.
type deed struct {
	name          string
	prepare, call call
	keeps         func(*sqlstore.Store) (any, error)
}

// revised calls a function with the revision of a note.
func revised(id string, do func(revision uint64) store.Batch) call {
	return func(st *sqlstore.Store) error {
		var s store.Snapshot
		if err := st.Read(ctx, &s, nil, []store.Ref{{Kind: "note", ID: id}}); err != nil {
			return err
		}
		return commits(do(s.Records[0].Revision))(st)
	}
}

// tallies is what the sums are.
func tallies(st *sqlstore.Store) (any, error) { return gather(st.List(ctx, arm.Kind, arm.Scope)) }

func gather[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

func onlyObserve(id string) store.Batch {
	return store.Batch{Observations: []evidence.Observation{ofAnn(id)}}
}

func takes(change func(*store.Batch)) call {
	var b store.Batch
	change(&b)
	return commits(b)
}

var (
	filledStore = calls(declares(noteKind), commits(onlyObserve("1"), onlyObserve("2"), store.Batch{
		Records: []store.Record{noteOf("a", 0), noteOf("b", 0, "other")},
	}))
	deeds = []deed{
		{name: "Declare", call: declares(noteKind)},
		{name: "Commit", prepare: filledStore, call: revised("a", func(revision uint64) store.Batch {
			return store.Batch{
				ID: "batch", Observations: []evidence.Observation{ofAnn("3")}, Parts: true,
				Records: []store.Record{noteOf("a", revision, "new"), noteOf("c", 0), noteOf("b", store.Once)},
			}
		})},
		{name: "Commit of two batches", prepare: filledStore, call: commits(
			store.Batch{ID: "x", Observations: []evidence.Observation{ofAnn("3")}, Records: []store.Record{noteOf("c", 0)}},
			store.Batch{ID: "y", Observations: []evidence.Observation{ofAnn("4")}, Records: []store.Record{noteOf("d", store.Once)}})},
		{name: "Commit of a removal", prepare: filledStore, call: revised("a", func(revision uint64) store.Batch {
			return store.Batch{Records: []store.Record{{Ref: store.Ref{Kind: "note", ID: "a"}, Revision: revision}}}
		})},
		{name: "Commit of a batch that is known in part", prepare: calls(filledStore, commits(store.Batch{ID: "x"})), call: commits(
			store.Batch{ID: "x", Observations: []evidence.Observation{ofAnn("3")}}, onlyObserve("4"))},
		{name: "Retract", prepare: filledStore, call: takes(func(b *store.Batch) { b.Retract = []string{"1"} })},
		{name: "Withdraw", prepare: filledStore, call: takes(func(b *store.Batch) { b.Withdraw = []string{"1", "unknown"} })},
		{name: "Reset", prepare: filledStore, call: takes(func(b *store.Batch) {
			b.Reset = []store.Selection{{Kind: arm.Kind, Scope: arm.Scope}}
		})},
		{name: "Rebuild", prepare: filledStore, call: takes(func(b *store.Batch) {
			b.Rebuild, b.Policies = []evidence.Cell{arm}, map[string]evidence.Policy{arm.Kind: {ByOrigin: true}}
		})},
		{name: "Restart", prepare: filledStore, call: takes(func(b *store.Batch) {
			b.Restart = []store.Restart{{Cell: arm, At: time.Now()}}
		})},
		{name: "Expunge", prepare: filledStore, call: takes(func(b *store.Batch) { b.Expunge = []string{"ann"} })},
		{name: "Forget", prepare: filledStore, call: takes(func(b *store.Batch) { b.Forget = []string{"ann"} })},
		{name: "Sweep", prepare: calls(filledStore, func(st *sqlstore.Store) error {
			for i := range 10 {
				if err := commits(onlyObserve(fmt.Sprint("more", i)))(st); err != nil {
					return err
				}
			}
			return nil
		}), call: func(st *sqlstore.Store) error { return st.Sweep(ctx, time.Time{}) }, keeps: tallies},
		{name: "Load", call: func(st *sqlstore.Store) error { return st.Load(ctx, bytes.NewReader(dumped)) }},
	}
	dumped []byte
)

// dumpText is what a store holds, but for moments and what is random.
func dumpText(t testing.TB, st *sqlstore.Store) string {
	return randomName.ReplaceAllString(strings.Join(lines(t, st), "\n"), "#")
}

var randomName = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|\d{15,}|forgotten-\w+`)

// storeOn opens the store of the database of a disk.
func (d *disk) storeOn(t testing.TB) (st *sqlstore.Store, handle *sql.DB, done func()) {
	handle, done = d.on(t)
	st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{NoCache: true, HistoryPerCell: 3})
	require.NoError(t, err)
	return st, handle, done
}

// sweep has the first operation of the file system fail in a call, then the second, and so on until none is left, each time on
// a new copy of a disk. It returns how many failed the call, and what is wrong with one of them.
func (m *deed) sweep(t testing.TB, base *disk) (failed int, err error) {
	undisturbed, err := m.try(t, base.snapshot(nil), 0)
	for n := 1; err == nil; n += stride(n) {
		var one trial
		one, err = m.try(t, base.snapshot(nil), n)
		switch {
		case err == nil && one.left != undisturbed.left:
			err = errors.New("it leaves something else than without a fault")
		case err == nil && !one.hit:
			return failed, one.failure
		case one.failure != nil:
			failed++
		}
		if err != nil {
			err = errors.Join(fmt.Errorf("when operation %d failed: %w", n, err), one.failure)
		}
	}
	return failed, err
}

// stride is how far it is to the next operation that fails. Of the long calls, which write the whole file anew, each fourth is
// tried, and all of them with HEED_LONG.
func stride(n int) int {
	if n < 60 || os.Getenv("HEED_LONG") != "" {
		return 1
	}
	return 4
}

// try makes a call whose n-th operation fails, or none if n is 0. If the call then fails, it makes the call again.
func (m *deed) try(t testing.TB, d *disk, n int) (trial, error) {
	st, handle, done := d.storeOn(t)
	defer done()
	if m.prepare != nil {
		require.NoError(t, m.prepare(st))
	}
	keeps := m.keeps
	if keeps == nil {
		keeps = func(st *sqlstore.Store) (any, error) { return lines(t, st), nil }
	}
	before, err := keeps(st)
	require.NoError(t, err)
	d.arm(t, handle, n)
	failure := m.call(st)
	one := trial{hit: d.disarm(), failure: failure}
	after, err := keeps(st)
	require.NoError(t, err)
	changed := !reflect.DeepEqual(before, after)
	switch {
	case failure != nil && changed:
		return one, errors.New("there is something of it")
	case m.keeps != nil && changed:
		return one, errors.New("it has changed what it must keep")
	case failure == nil && m.keeps == nil && !changed:
		return one, errors.New("there is nothing of it")
	case failure != nil:
		if err := m.call(st); err != nil {
			return one, fmt.Errorf("the store does not go on: %w", err)
		}
	}
	one.left = dumpText(t, st)
	var sound string
	require.NoError(t, handle.QueryRow("PRAGMA integrity_check").Scan(&sound))
	require.Equal(t, "ok", sound)
	return one, nil
}

// TestStoreFaults: whatever operation of the file system fails in a call, the store has done all or nothing, says which, and can
// be called again.
func TestStoreFaults(t *testing.T) {
	skipRaced(t)
	base := newDisk(t, 512)
	st, _, done := base.snapshot(nil).storeOn(t)
	require.NoError(t, filledStore(st))
	var out bytes.Buffer
	require.NoError(t, st.Dump(ctx, &out))
	done()
	dumped = out.Bytes()
	for _, m := range deeds {
		t.Run(m.name, func(t *testing.T) {
			failed, err := m.sweep(t, base)
			require.NoError(t, err)
			t.Logf("%d operations failed the call", failed)
			require.Greater(t, failed, 2)
		})
	}
}

// TestStoreFaultsAreSeen: calls that are not as they should be are found.
func TestStoreFaultsAreSeen(t *testing.T) {
	skipRaced(t)
	base := newDisk(t, 512)
	swallowed := func(do call) call { return func(st *sqlstore.Store) error { _ = do(st); return nil } }
	for _, wrong := range []deed{
		{"there is something of it", nil, calls(commits(onlyObserve("1")), commits(onlyObserve("2"))), nil},
		{"there is nothing of it", nil, swallowed(commits(onlyObserve("1"))), nil},
		{"it leaves something else", nil, calls(swallowed(commits(onlyObserve("1"))), commits(onlyObserve("2"))), nil},
		{"it has changed what it must keep", nil, commits(onlyObserve("1")), tallies},
	} {
		_, err := wrong.sweep(t, base)
		require.ErrorContains(t, err, wrong.name)
	}
}

// storeReads are all ways to read. Each returns the results.
var storeReads = map[string]func(*sqlstore.Store) (any, error){
	"Read": func(st *sqlstore.Store) (any, error) {
		var s store.Snapshot
		err := st.Read(ctx, &s, []evidence.Cell{arm, {Kind: "none", Item: "i"}}, []store.Ref{{Kind: "note", ID: "3"}, {Kind: "note", ID: "none"}})
		return s, err
	},
	"Read of a cell": func(st *sqlstore.Store) (any, error) {
		var s store.Snapshot
		err := st.Read(ctx, &s, []evidence.Cell{arm}, nil)
		return s, err
	},
	"Find": func(st *sqlstore.Store) (any, error) { return gather(st.Find(ctx, store.Query{Kind: "note"})) },
	"Find by a key": func(st *sqlstore.Store) (any, error) {
		return gather(st.Find(ctx, store.Query{Kind: "note", Keys: []string{"k"}, Oldest: true}))
	},
	"Find by two keys": func(st *sqlstore.Store) (any, error) {
		return gather(st.Find(ctx, store.Query{Kind: "note", Keys: []string{"n=3", "k"}}))
	},
	"List":    tallies,
	"Scopes":  func(st *sqlstore.Store) (any, error) { return gather(st.Scopes(ctx, arm.Kind)) },
	"Status":  func(st *sqlstore.Store) (any, error) { return st.Status(ctx) },
	"History": func(st *sqlstore.Store) (any, error) { return gather(st.History(ctx, arm)) },
	"Dump": func(st *sqlstore.Store) (any, error) {
		var out bytes.Buffer
		err := st.Dump(ctx, &out)
		return out.String(), err
	},
}

// TestStoreReadFaults: whatever operation of the file system fails, a read gets all or an error.
func TestStoreReadFaults(t *testing.T) {
	skipRaced(t)
	d := newDisk(t, 512)
	st, handle, done := d.storeOn(t)
	defer done()
	require.NoError(t, st.Declare(ctx, noteKind))
	for i := range 120 {
		require.NoError(t, commits(store.Batch{
			Observations: []evidence.Observation{ofAnn(fmt.Sprint(i))}, Records: []store.Record{noteOf(fmt.Sprint(i), 0, fmt.Sprint("n=", i%7))},
		})(st))
	}
	for name, read := range storeReads {
		t.Run(name, func(t *testing.T) {
			all, err := read(st)
			require.NoError(t, err)
			failed := 0
			for n := 1; ; n++ {
				d.arm(t, handle, n)
				got, failure := read(st)
				hit := d.disarm()
				if failure != nil {
					failed++
				} else {
					require.Equal(t, all, got, "operation %d failed, and it does not say so", n)
				}
				if !hit {
					require.NoError(t, failure)
					break
				}
			}
			t.Logf("%d operations failed the read", failed)
			require.Positive(t, failed)
		})
	}
}
