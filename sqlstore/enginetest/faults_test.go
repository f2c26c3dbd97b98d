package enginetest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

// stores are all stores of one database. Their clock is ahead of the machine's by what a test says.
type stores struct {
	handle     *sql.DB
	db         *sqlstore.DB
	ahead      time.Duration
	evidence   *sqlstore.Evidence
	choices    *sqlstore.Choices
	stream     *sqlstore.Stream
	heuristics *sqlstore.Heuristics
	patterns   *sqlstore.Patterns
	errors     *sqlstore.Errors
	exported   string
	delivery   strategy.Delivery // in hand
}

func newStores(t testing.TB, handle *sql.DB, db *sqlstore.DB) *stores {
	s := &stores{handle: handle, db: db, heuristics: sqlstore.NewHeuristics(db)}
	now := func() time.Time { return time.Now().Add(s.ahead) }
	s.evidence = newEvidence(t, db, sqlstore.EvidenceConfig{Now: now, NoCache: true, HistoryPerCell: 3, MaxAudit: 3})
	var err error
	s.choices, err = sqlstore.NewChoices(db, sqlstore.ChoicesConfig{Now: now})
	require.NoError(t, err)
	s.stream, err = sqlstore.NewStream(ctx, db, sqlstore.StreamConfig{Name: "inbox"})
	require.NoError(t, err)
	s.patterns, err = sqlstore.NewPatterns(db, sqlstore.PatternsConfig{MaxTransitions: 2, MaxEntries: 2})
	require.NoError(t, err)
	s.errors, err = sqlstore.NewErrors(db, sqlstore.ErrorsConfig{Max: 2})
	require.NoError(t, err)
	return s
}

func choiceOf(i int) strategy.Choice {
	return strategy.Choice{ID: strategy.ChoiceID{15: byte(i), 14: byte(i >> 8)}, Session: "s", Item: "i", At: time.Now()}
}

// A method is what a store does. prepare makes ready for a call, without faults, and call makes it: what the tables hold is to
// be as before or as after, and nothing between. A method that works in several transactions can fail between them: keeps is
// then what it must never change.
type method struct {
	name          string
	prepare, call step
	keeps         func(*stores) (any, error)
}

// sweep has the first operation of the file system fail in a call, then the second, and so on until none is left, each time on
// a new copy of a disk. It returns how many failed the call, and what is wrong with one of them.
func (m *method) sweep(t testing.TB, base *disk) (failed int, err error) {
	undisturbed, err := m.try(t, base.snapshot(nil), 0)
	for n := 1; err == nil; n++ {
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

// A trial is how a call went.
type trial struct {
	hit     bool   // whether there was the operation that was to fail
	failure error  // that the call returned
	left    string // what the tables hold afterwards, but for moments and what is random
}

var accidental = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|\d{15,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// try makes a call of which the n-th operation fails, or none if n is 0, and makes it again if that has failed it.
func (m *method) try(t testing.TB, d *disk, n int) (trial, error) {
	s, done := d.stores(t)
	defer done()
	if m.prepare != nil {
		require.NoError(t, m.prepare(s))
	}
	keeps := m.keeps
	if keeps == nil {
		keeps = func(s *stores) (any, error) { return export(t, s.db), nil }
	}
	before, err := keeps(s)
	require.NoError(t, err)

	d.arm(t, s.handle, n)
	failure := m.call(s)
	one := trial{hit: d.disarm(), failure: failure}
	after, err := keeps(s)
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
		if err := m.call(s); err != nil {
			return one, fmt.Errorf("the store does not go on: %w", err)
		}
	}
	one.left = accidental.ReplaceAllString(export(t, s.db), "#")
	var sound string
	require.NoError(t, s.handle.QueryRow("PRAGMA integrity_check").Scan(&sound))
	require.Equal(t, "ok", sound)
	return one, nil
}

// stores opens all stores of the database of a disk.
func (d *disk) stores(t testing.TB) (s *stores, done func()) {
	handle, done := d.on(t)
	db, err := sqlstore.New(ctx, handle, sqlstore.SQLite)
	require.NoError(t, err)
	return newStores(t, handle, db), done
}

// arm has the n-th operation from now on fail, or none if n is 0, when the database has forgotten what it has read.
func (d *disk) arm(t testing.TB, handle *sql.DB, n int) {
	_, err := handle.Exec("PRAGMA cache_size = 0; PRAGMA shrink_memory")
	require.NoError(t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops, d.fail = 0, n
}

// disarm reports whether the operation that was to fail has come.
func (d *disk) disarm() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	hit := d.fail > 0 && d.ops >= d.fail
	d.ops, d.fail = 0, 0
	return hit
}

// TestFaults: whatever operation of the file system fails in a method, the method has done all or nothing, says which, and can
// be called again.
func TestFaults(t *testing.T) {
	skipRaced(t)
	base := newDisk(t, 512)
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			failed, err := m.sweep(t, base)
			require.NoError(t, err)
			t.Logf("%d operations failed the method", failed)
			require.Greater(t, failed, 2)
		})
	}
}

// TestFaultsAreSeen: methods that are not as they should be are found.
func TestFaultsAreSeen(t *testing.T) {
	skipRaced(t)
	base := newDisk(t, 512)
	for _, wrong := range []method{
		{"there is something of it", nil, steps(commit(outcome("o")), publish), nil},
		{"there is nothing of it", nil, func(s *stores) error { _ = publish(s); return nil }, nil},
		{"it leaves something else", nil, func(s *stores) error { _ = fail("1")(s); return fail("2")(s) }, nil},
		{"it has changed what it must keep", nil, commit(outcome("o")), sums},
	} {
		_, err := wrong.sweep(t, base)
		require.ErrorContains(t, err, wrong.name)
	}
}

// TestReadFaults: whatever operation of the file system fails, who reads gets all or an error.
func TestReadFaults(t *testing.T) {
	skipRaced(t)
	d := newDisk(t, 512)
	s, done := d.stores(t)
	defer done()
	require.NoError(t, steps(annDoes("e"), many(20, func(id string) step {
		return steps(commit(anns(id)), put(learning.Heuristic{ID: id}), commitPattern(id, 0), fail(id))
	}))(s))
	for _, r := range readers {
		t.Run(r.name, func(t *testing.T) {
			all, err := r.read(s)
			require.NoError(t, err)
			failed := 0
			for n := 1; ; n++ {
				d.arm(t, s.handle, n)
				got, failure := r.read(s)
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
			t.Logf("%d operations failed the reading", failed)
			require.Positive(t, failed)
		})
	}
}
