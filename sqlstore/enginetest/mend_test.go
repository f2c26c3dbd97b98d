package enginetest_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/mending"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// A cell is mended as the check names it. The store that is open sees that at once, and other cells and damaged rows stay as they are.
func TestMend(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		st := open(t, handle, at.dialect)
		require.NoError(t, st.Declare(ctx, store.Audit, store.Kind{Name: "broken"}))
		b := store.Batch{Policies: map[string]evidence.Policy{arm.Kind: {HalfLife: time.Hour}}}
		for _, id := range []string{"1", "2", "3", "4"} {
			o := observe(id, time.Now())
			if id > "2" {
				o.Cell.Item = "other"
			}
			b.Observations = append(b.Observations, o)
		}
		require.NoError(t, commits(b)(st))
		list := func() map[string]uint64 {
			all := make(map[string]uint64)
			for _, item := range []string{arm.Item, "other"} {
				var s store.Snapshot
				c := arm
				c.Item = item
				require.NoError(t, st.Read(ctx, &s, []evidence.Cell{c}, nil))
				for _, p := range s.Parts {
					all[item] += p.Tally.N()
				}
			}
			return all
		}
		whole := list()
		require.Equal(t, map[string]uint64{arm.Item: 2, "other": 2}, whole)
		of := ` WHERE cell = (SELECT cell FROM heed_cell WHERE item = '` + arm.Item + `')`
		damage(t, handle, map[bool]string{
			false: "UPDATE heed_tally SET n_positive = 7" + of, // SQLite generates the checksum
			true:  "UPDATE heed_tally SET n_positive = 7, checksum = checksum + 7 - n_positive" + of,
		}[at.dialect == sqlstore.Postgres])
		damage(t, handle, "UPDATE heed_kind SET kind = 'x' WHERE name = 'broken'")
		faults, err := sqlstore.Check(ctx, handle, at.dialect, true)
		require.NoError(t, err)
		require.Len(t, faults, 2)
		key := regexp.MustCompile(`--cell=(\S+)$`).FindStringSubmatch(faults[0])[1]
		mend := func(reset bool, id string) error {
			why := store.AuditEntry{ID: id, Action: "mend", Actor: "olive", At: time.Now()}
			return mending.Mend(ctx, st, mending.Cell{Key: key, Reset: reset, Why: why})
		}
		require.NoError(t, mend(false, "a"))
		assert.Equal(t, whole, list())

		damage(t, handle, "UPDATE heed_tally SET named = named + 1"+of)
		require.ErrorIs(t, mend(false, "b"), heed.ErrDamaged)
		require.NoError(t, mend(true, "b"))
		assert.Equal(t, map[string]uint64{"other": 2}, list())
		require.ErrorIs(t, mend(true, "c"), heed.ErrNotFound)
		require.ErrorIs(t, mend(false, "c"), heed.ErrNotFound)
		entries, err := gather(store.AuditEntries(ctx, st, store.AuditQuery{}))
		require.NoError(t, err)
		assert.Len(t, entries, 2, "what failed is not in the audit")
		memory, err := memstore.New(memstore.Config{})
		require.NoError(t, err)
		require.ErrorAs(t, mending.Mend(ctx, memory, mending.Cell{}), new(*heed.InputError))
	})
}

// Sums whose history the store never had can't be made anew.
func TestMendNeedsTheHistory(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		st := at.store(t, sqlstore.Config{NoHistory: true})
		require.NoError(t, st.Declare(ctx, store.Audit))
		require.NoError(t, commits(onlyObserve("1"))(st))
		var key string
		require.NoError(t, at.handle(t).QueryRow("SELECT cell FROM heed_cell").Scan(&key))
		err := mending.Mend(ctx, st, mending.Cell{Key: key, Why: store.AuditEntry{ID: "a", Action: "mend", At: time.Now()}})
		require.ErrorIs(t, err, evidence.ErrForgotten)
	})
}

// A cell's own row is gone, and its sums and observations are there. Mend does not say that the cell has no rows.
func TestMendWithoutTheCell(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		st := open(t, handle, at.dialect)
		require.NoError(t, st.Declare(ctx, store.Audit))
		require.NoError(t, commits(onlyObserve("1"))(st))
		damage(t, handle, "UPDATE heed_cell SET cell = 'another'")
		mend := func(key string) error {
			why := store.AuditEntry{ID: "a", Action: "mend", At: time.Now()}
			return mending.Mend(ctx, st, mending.Cell{Key: key, Why: why})
		}
		var key string
		for _, table := range []string{"heed_tally", "heed_observation"} {
			require.NoError(t, handle.QueryRow("SELECT cell FROM heed_observation").Scan(&key))
			require.ErrorIs(t, mend(key), heed.ErrDamaged)
			damage(t, handle, "DELETE FROM "+table)
		}
		require.ErrorIs(t, mend(key), heed.ErrNotFound)
	})
}

// A bit of a row flips in the file. SQLite then does not find the row's entry in an index, and refuses to delete the row.
func TestMendBesideAnIndex(t *testing.T) {
	for _, driver := range []string{"sqlite", "sqlite3"} {
		for what, flip := range map[string]func(key, id string) (text string, place int){
			"the item of the cell":         func(key, _ string) (string, int) { return key + "arms" + "i", len(key) + 4 },
			"the id of an observation":     func(key, id string) (string, int) { return key + id, len(key) },
			"the source of an observation": func(string, string) (string, int) { return `ann{"id":"1"`, 2 },
		} {
			t.Run(driver+"/"+what, func(t *testing.T) {
				at := sqliteFile(t, driver)
				handle := at.handle(t)
				st := open(t, handle, at.dialect)
				require.NoError(t, st.Declare(ctx, store.Audit))
				other := onlyObserve("2")
				other.Observations[0].Cell.Item = "other"
				require.NoError(t, commits(onlyObserve("1"), other)(st))
				var key, id string
				require.NoError(t, handle.QueryRow("SELECT cell, id FROM heed_observation WHERE seq = 1").Scan(&key, &id))
				_, err := handle.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
				require.NoError(t, err)
				require.NoError(t, handle.Close())
				text, place := flip(key, id)
				flipIn(t, strings.TrimPrefix(at.dsn, "file:"), text, place)

				handle = at.handle(t)
				st = open(t, handle, at.dialect)
				require.NoError(t, st.Declare(ctx, store.Audit))
				faults, err := sqlstore.Check(ctx, handle, at.dialect, true)
				require.NoError(t, err)
				require.NotEmpty(t, faults)
				why := store.AuditEntry{ID: "a", Action: "mend", Actor: "olive", At: time.Now()}
				require.NoError(t, mending.Mend(ctx, st, mending.Cell{Key: key, Reset: true, Why: why}))
				faults, err = sqlstore.Check(ctx, handle, at.dialect, true)
				require.NoError(t, err)
				assert.Empty(t, faults)
				parts, err := gather(st.List(ctx, arm.Kind, arm.Scope))
				require.NoError(t, err)
				require.Len(t, parts, 1)
				assert.Equal(t, "other", parts[0].Cell.Item)
			})
		}
	}
}

// flipIn flips a bit at a place in a text that a file has once.
func flipIn(t *testing.T, file, text string, place int) {
	all, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(all, []byte(text)))
	all[bytes.Index(all, []byte(text))+place] ^= 1
	require.NoError(t, os.WriteFile(file, all, 0o600))
}
