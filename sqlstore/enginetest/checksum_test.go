package enginetest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

// A column of a table, and whether it belongs to the key by which rows are found.
type column struct {
	table, name string
	key         bool
}

// TestEveryColumnIsChecked flips bits in every column of every table. The deep check has to name the table each time, and nothing that
// reads serve may differ from the truth. A new column that no check covers fails.
func TestEveryColumnIsChecked(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		if at.dialect == sqlstore.SQLite {
			skipRaced(t)
		}
		handle := at.handle(t)
		fillTables(t, handle, at, 5)
		truth := serve(t, handle, at)
		handle = ungenerated(t, handle, at)
		faults, err := sqlstore.Check(ctx, handle, at.dialect, true)
		require.NoError(t, err)
		known := make(map[string]bool) // the definitions that the test has changed
		for _, fault := range faults {
			require.Contains(t, fault, "the definition of")
			known[fault] = true
		}
		columns := columnsOf(t, handle, at)
		byTable := make(map[string][]column)
		for _, c := range columns {
			byTable[c.table] = append(byTable[c.table], c)
		}
		require.Len(t, byTable, len(tables)+1, "each table has rows")
		flips := 0
		// Rows of the second group belong to rows of the first, which would be named, too.
		for _, group := range [][]string{
			{"heed_tally", "heed_id", "heed_observation", "heed_lost", "heed_kind", "heed_record", "heed_inbox"}, {"heed_cell"}, {"heed_key"}, {"heed_store"},
		} {
			for i := range 30 {
				for bit := range rounds(1, 6) {
					bit = (bit + i) % 6
					var back []func()
					var flipped []column
					for _, name := range group {
						if i < len(byTable[name]) {
							c := byTable[name][i]
							if undo := flip(t, handle, at, c, byTable[name], bit); undo != nil {
								flipped, back = append(flipped, c), append(back, undo)
							}
						}
					}
					if len(flipped) == 0 {
						continue
					}
					flips += len(flipped)
					faults, err := sqlstore.Check(ctx, handle, at.dialect, true)
					for _, c := range flipped {
						named := func(fault string) bool { return !known[fault] && strings.Contains(fault, "the table "+c.table+" ") }
						assert.True(t, err != nil || slices.ContainsFunc(faults, named), "bit %d of %s.%s", bit, c.table, c.name)
					}
					if bit%2 == 0 {
						for what, value := range serve(t, handle, at) {
							assert.Equal(t, truth[what], value, "%s after flips in %v", what, flipped)
						}
					}
					for _, undo := range back {
						undo()
					}
				}
			}
		}
		t.Log(flips, "flips in", len(columns), "columns")
	})
}

// fillTables has every table hold something: as many outcomes and records of them, and others in another cell.
func fillTables(t testing.TB, handle *sql.DB, at place, outcomes int) {
	now := time.Now()
	st, err := sqlstore.Open(ctx, handle, at.dialect, sqlstore.Config{NoCache: true, HistoryPerCell: outcomes - 2})
	require.NoError(t, err)
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "note", Versioned: true}))
	var batches []store.Batch
	for i := range outcomes {
		b := noted(fmt.Sprint(i))
		other := observe(fmt.Sprint("other", i), now.Add(time.Duration(i)*time.Second))
		other.Cell.Item, other.Source, other.Channel, other.Session, other.Reward = "other", "ann", "chat", "s1", 0.25
		b.Observations = append(b.Observations, other)
		b.Policies = map[string]evidence.Policy{"arm": {HalfLife: 90 * time.Hour, ByOrigin: true}}
		batches = append(batches, b)
	}
	_, err = st.Commit(ctx, batches...)
	require.NoError(t, err)
	inbox, err := sqlstore.NewInbox(ctx, st, sqlstore.InboxConfig{Name: "inbox", Holder: "me"})
	require.NoError(t, err)
	require.NoError(t, inbox.Publish(ctx, stream.Event{ID: "e", Topic: "t", At: now, Payload: []byte(`{"x":1}`)}))
	_, err = inbox.Receive(ctx)
	require.NoError(t, err)
	require.NoError(t, st.Sweep(ctx, time.Time{})) // loses two of the history
}

// serve returns the results of reads, by name. Rows that can't be read are left out.
func serve(t testing.TB, handle *sql.DB, at place) map[string]string {
	all := make(map[string]string)
	put := func(name string, value any) {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		all[name] = string(text)
	}
	st, err := sqlstore.Open(ctx, handle, at.dialect, sqlstore.Config{NoCache: true, Existing: true})
	if err != nil {
		return all
	}
	other := arm
	other.Item = "other"
	for _, cell := range []evidence.Cell{arm, other} {
		var s store.Snapshot
		if st.Read(ctx, &s, []evidence.Cell{cell}, nil) == nil {
			for _, p := range s.Parts {
				put("read "+cell.Item+p.Channel+p.Source, p)
			}
		}
		for o, err := range st.History(ctx, cell) {
			if err == nil {
				put("history "+o.ID, o)
			}
		}
	}
	for p, err := range st.List(ctx, arm.Kind, arm.Scope) {
		if err == nil {
			put("list "+p.Cell.Item+p.Channel+p.Source, p)
		}
	}
	for _, q := range []store.Query{{Kind: "note"}, {Kind: "note", Keys: []string{"k"}}} {
		for r, err := range st.Find(ctx, q) {
			if err == nil {
				r.Place = ""
				text, err := r.Body.JSON()
				require.NoError(t, err)
				put(fmt.Sprint("find ", q.Keys, r.ID), []any{r.Ref, r.Revision, r.At, r.Keys, string(text)})
			}
		}
	}
	if kinds, err := st.Status(ctx); err == nil {
		put("kinds", kinds.Kinds)
	}
	return all
}

var (
	generated = regexp.MustCompile(`(?s) GENERATED ALWAYS AS \((?:[^()]|\([^()]*\))*\) STORED`)
	onlyOne   = regexp.MustCompile(` CHECK \(one = 1\)`)
)

// ungenerated makes the columns that the database keeps by itself plain ones, which have the same place in their rows, so that a test can
// flip bits of each column alone.
func ungenerated(t testing.TB, handle *sql.DB, at place) *sql.DB {
	if at.dialect == sqlstore.Postgres {
		for _, c := range columnsOf(t, handle, at) {
			var kept, identity string
			require.NoError(t, handle.QueryRow(`SELECT attgenerated, attidentity FROM pg_attribute
				WHERE attrelid = to_regclass($1) AND attname = $2`, c.table, c.name).Scan(&kept, &identity))
			if kept != "" {
				_, err := handle.Exec("ALTER TABLE " + c.table + " ALTER COLUMN " + c.name + " DROP EXPRESSION")
				require.NoError(t, err)
			}
			if identity != "" {
				_, err := handle.Exec("ALTER TABLE " + c.table + " ALTER COLUMN " + c.name + " DROP IDENTITY")
				require.NoError(t, err)
			}
		}
		_, err := handle.Exec("ALTER TABLE heed_store DROP CONSTRAINT heed_store_one_check")
		require.NoError(t, err)
		return handle
	}
	conn, err := handle.Conn(ctx)
	require.NoError(t, err)
	_, err = conn.ExecContext(ctx, "PRAGMA writable_schema = ON")
	require.NoError(t, err)
	for _, table := range append([]string{"heed_store"}, tables...) {
		var text string
		require.NoError(t, conn.QueryRowContext(ctx, "SELECT sql FROM sqlite_master WHERE name = $1", table).Scan(&text))
		text = onlyOne.ReplaceAllString(generated.ReplaceAllString(text, ""), "")
		_, err = conn.ExecContext(ctx, "UPDATE sqlite_master SET sql = $1 WHERE name = $2", text, table)
		require.NoError(t, err)
	}
	_, err = conn.ExecContext(ctx, "PRAGMA schema_version = 1000")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, handle.Close())
	handle, err = at.open()
	require.NoError(t, err)
	t.Cleanup(func() { _ = handle.Close() })
	return handle
}

// columnsOf returns all columns as the database has them.
func columnsOf(t testing.TB, handle *sql.DB, at place) (all []column) {
	for _, table := range append([]string{"heed_store"}, tables...) {
		query := `SELECT name, pk > 0 FROM pragma_table_xinfo($1) WHERE hidden <> 1 ORDER BY cid`
		if at.dialect == sqlstore.Postgres {
			query = `SELECT a.attname, coalesce(a.attnum = ANY (i.indkey), false) FROM pg_attribute a
				LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
				WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`
		}
		rows, err := handle.Query(query, table)
		require.NoError(t, err)
		for rows.Next() {
			c := column{table: table}
			require.NoError(t, rows.Scan(&c.name, &c.key))
			all = append(all, c)
		}
		require.NoError(t, errorsOf(rows))
	}
	return all
}

func errorsOf(rows *sql.Rows) error {
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

// flip flips one bit of a column of the first row, and returns what takes that back, or nil where the value has no such bit.
func flip(t testing.TB, handle *sql.DB, at place, c column, columns []column, bit int) func() {
	var keys, order []string
	var values []any
	for _, k := range columns {
		if k.key {
			keys = append(keys, k.name)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		order = append(order, key+" DESC") // the tally of the other cell, which has a channel and a source
	}
	into := []any{new(any)}
	for range keys {
		into = append(into, new(any))
	}
	require.NoError(t, handle.QueryRow("SELECT "+c.name+", "+strings.Join(keys, ", ")+" FROM "+c.table+
		" ORDER BY "+strings.Join(order, ", ")+" LIMIT 1").Scan(into...), c.table)
	for _, one := range into {
		values = append(values, *one.(*any))
	}
	before := values[0]
	after := flipped(before, bit)
	if after == nil {
		return nil
	}
	set := func(to any, is any) {
		where, args := "", []any{to}
		for i, key := range keys {
			value := values[i+1]
			if key == c.name {
				value = is
			}
			args = append(args, value)
			where += fmt.Sprintf(" AND %s = $%d", key, i+2)
		}
		result, err := handle.Exec("UPDATE "+c.table+" SET "+c.name+" = $1 WHERE true"+where, args...)
		require.NoError(t, err, "%v", c)
		n, err := result.RowsAffected()
		require.NoError(t, err)
		require.EqualValues(t, 1, n, "%v", c)
	}
	set(after, before)
	return func() { set(before, after) }
}

// flipped returns a value with one other bit: any bit of a number, and the lower bits of a text's bytes.
func flipped(value any, bit int) any {
	switch v := value.(type) {
	case int64:
		return v ^ 1<<[]int{0, 40, 13, 31, 52, 60}[bit]
	case float64:
		after := math.Float64frombits(math.Float64bits(v) ^ 1<<[]int{0, 52, 13, 31, 40, 60}[bit])
		if after == v {
			return nil
		}
		return after
	case string:
		return string(flippedBytes([]byte(v), bit))
	case []byte:
		return flippedBytes(slices.Clone(v), bit)
	}
	return nil
}

func flippedBytes(text []byte, bit int) []byte {
	if len(text) == 0 {
		return []byte{'a'}
	}
	text[[]int{0, len(text) - 1, len(text) / 2, len(text) / 3, len(text) / 4, len(text) / 5}[bit]] ^= []byte{1, 2, 4, 1, 2, 4}[bit]
	return text
}

// Sums that do not fit to their checksum are served to nobody and added to by nobody, and hold up no other cell.
func TestDamagedSums(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		fillTables(t, handle, at, 5)
		st := open(t, handle, at.dialect)
		other := arm
		other.Item = "other"
		damage(t, handle, "UPDATE heed_tally SET named = named + 1 WHERE cell = (SELECT cell FROM heed_cell WHERE item = 'i')")
		var s store.Snapshot
		err := st.Read(ctx, &s, []evidence.Cell{arm}, nil)
		require.ErrorIs(t, err, heed.ErrDamaged)
		require.ErrorContains(t, err, `kind "arm", scope "s", item "i", name "n"`)
		require.NoError(t, st.Read(ctx, &s, []evidence.Cell{other}, nil))
		before := st.Damaged()
		parts, err := gather(st.List(ctx, arm.Kind, arm.Scope))
		require.NoError(t, err)
		require.Len(t, parts, 1)
		assert.Equal(t, "other", parts[0].Cell.Item)
		assert.Greater(t, st.Damaged(), before)
		policies := map[string]evidence.Policy{"arm": {HalfLife: 90 * time.Hour, ByOrigin: true}}
		for _, partsOf := range [][]evidence.Cell{nil, {arm}} {
			_, err = st.Commit(ctx, store.Batch{
				Observations: []evidence.Observation{observe("more", time.Now())}, Policies: policies,
				PartsOf: partsOf,
			})
			require.ErrorIs(t, err, heed.ErrDamaged)
			require.ErrorContains(t, err, `item "i"`)
		}
		more := observe("more", time.Now())
		more.Cell = other
		receipts, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{more}, Policies: policies})
		require.NoError(t, err)
		require.Empty(t, receipts[0].Duplicates, "a commit that was refused has left its id")
		require.ErrorIs(t, st.Dump(ctx, io.Discard), heed.ErrDamaged, "a dump would make the damage look sound")
		_, err = st.Commit(ctx, store.Batch{Rebuild: []evidence.Cell{arm}, Policies: policies})
		require.ErrorIs(t, err, heed.ErrDamaged, "nobody knows whether the history is whole")
		_, err = st.Commit(ctx, store.Batch{Reset: []store.Selection{{Kind: arm.Kind, Scope: arm.Scope, Item: arm.Item}}})
		require.NoError(t, err)
		faults, err := sqlstore.Check(ctx, handle, at.dialect, true)
		require.NoError(t, err)
		require.Empty(t, faults)
		damage(t, handle, "UPDATE heed_cell SET checksum = checksum + 1")
		_, err = st.Commit(ctx, store.Batch{Rebuild: []evidence.Cell{other}, Policies: policies})
		require.ErrorIs(t, err, heed.ErrDamaged)
		require.ErrorContains(t, err, `item "other"`)
		damage(t, handle, "UPDATE heed_cell SET checksum = checksum - 1")
		result, err := handle.Exec("UPDATE heed_tally SET named = named + 1")
		require.NoError(t, err)
		n, err := result.RowsAffected()
		require.NoError(t, err)
		require.Greater(t, n, int64(1))
		faults, err = sqlstore.Check(ctx, handle, at.dialect, true)
		require.NoError(t, err)
		require.Len(t, faults, 1, "once for all tallies of the cell")
		assert.Regexp(t, `^the tally of kind "arm", scope "s", item "other", name "n" in the table heed_tally is damaged: `+
			`restore the store from a copy, or run heed mend --cell=\S+ --reset$`, faults[0])
	})
}

// Nothing is added in SQLite to a cell whose row is damaged, in whichever column.
func TestADamagedCell(t *testing.T) {
	at := sqliteFile(t, "sqlite")
	handle := at.handle(t)
	st := open(t, handle, at.dialect)
	run := func(statement string) {
		_, err := handle.Exec(statement)
		require.NoError(t, err, statement)
	}
	require.NoError(t, commits(onlyObserve("1"))(st))
	run("CREATE TABLE kept AS SELECT * FROM heed_cell")
	for _, set := range []string{"kind = 'x'", "scope = 'x'", "item = 'x'", "name = 'x'", "half_life = half_life + 1", "restart = restart + 1", "checksum = checksum + 1"} {
		damage(t, handle, "UPDATE heed_cell SET "+set)
		require.ErrorIs(t, commits(onlyObserve("2"))(st), heed.ErrDamaged, set)
		run("DELETE FROM heed_cell")
		run("INSERT INTO heed_cell SELECT * FROM kept")
	}
	require.NoError(t, commits(onlyObserve("2"))(st))
}

// A sweep does all that it can beside damaged rows, and then names them. A record that is past its time goes, damaged or not.
func TestSweepBesideDamage(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle, now := at.handle(t), time.Now()
		st, err := sqlstore.Open(ctx, handle, at.dialect, sqlstore.Config{Now: func() time.Time { return now }})
		require.NoError(t, err)
		kind := store.Kind{Name: "note", Versioned: true, Limits: store.Limits{For: time.Hour}}
		require.NoError(t, st.Declare(ctx, kind, store.Kind{Name: "broken"}))
		_, err = st.Commit(ctx, noted("1"), noted("2"), noted("3"))
		require.NoError(t, err)
		damage(t, handle, "UPDATE heed_observation SET happened = happened + 1 WHERE seq = (SELECT min(seq) FROM heed_observation)")
		damage(t, handle, "UPDATE heed_kind SET kind = 'x' WHERE name = 'broken'")
		damage(t, handle, "UPDATE heed_record SET keys = '[' WHERE kind = 'note' AND id = '2'")
		now = now.Add(40 * 24 * time.Hour)
		for range 2 {
			err = st.Sweep(ctx, now)
			require.ErrorIs(t, err, heed.ErrDamaged)
			require.ErrorContains(t, err, "observation 1 in the history of a cell")
			require.ErrorContains(t, err, `records of kind "broken"`)
			for table, left := range map[string]int{"heed_observation": 1, "heed_id": 0, "heed_record WHERE kind = 'note'": 0, "heed_key": 0} {
				var n int
				require.NoError(t, handle.QueryRow("SELECT count(*) FROM "+table).Scan(&n))
				assert.Equal(t, left, n, table)
			}
		}
	})
}

// Forgetting a person leaves damaged rows as they are, takes the person out of all others, and names the damaged ones.
func TestForgetBesideDamage(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		st := open(t, handle, at.dialect)
		require.NoError(t, st.Declare(ctx, store.Kind{Name: "other", Caused: []string{"by"}}, store.Kind{Name: "note", Decided: []string{"by"}}))
		var b store.Batch
		for i := range 3 {
			id := fmt.Sprint(i)
			mine, shared, others := observe("mine"+id, time.Now()), observe("shared"+id, time.Now()), observe("others"+id, time.Now())
			mine.Cell.Item, mine.Source, shared.Source, others.Source = "mine", "ann", "ann", "bob"
			b.Observations = append(b.Observations, mine, shared, others)
			for _, kind := range []string{"note", "other"} {
				b.Records = append(b.Records, store.Record{
					Ref: store.Ref{Kind: kind, ID: id}, Revision: store.Once, At: time.Now(), Keys: []string{store.PersonKey("ann")},
					Body: store.Of(map[string]string{"by": "ann"}),
				})
			}
		}
		b.Policies = map[string]evidence.Policy{"arm": {}}
		_, err := st.Commit(ctx, b)
		require.NoError(t, err)
		inbox, err := sqlstore.NewInbox(ctx, st, sqlstore.InboxConfig{Name: "inbox"})
		require.NoError(t, err)
		require.NoError(t, st.Declare(ctx, stream.Outbox))
		require.NoError(t, inbox.Publish(ctx, stream.Event{ID: "e", Topic: "t", At: time.Now(), Payload: []byte(`{"by":["ann"]}`)}))

		damage(t, handle, "UPDATE heed_observation SET happened = happened + 1 WHERE seq = 2")                                     // the first of ann's in the shared cell
		damage(t, handle, "UPDATE heed_observation SET happened = happened + 1 WHERE seq = 6")                                     // one of bob's
		damage(t, handle, "UPDATE heed_record SET at = at + 0, body = '{}' WHERE kind = 'note' AND id = '0'")                      // ann's
		damage(t, handle, "UPDATE heed_kind SET kind = 'x' WHERE name = 'other'")                                                  // nobody knows where such records name people
		damage(t, handle, "UPDATE heed_inbox SET topic = 's'")                                                                     // which may name anybody
		damage(t, handle, "UPDATE heed_tally SET named = named + 1 WHERE cell = (SELECT cell FROM heed_cell WHERE item = 'mine')") // sums of ann and others
		receipts, err := st.Commit(ctx, store.Batch{Forget: []string{"ann"}})
		require.NoError(t, err)
		require.ErrorIs(t, receipts[0].Damaged, heed.ErrDamaged)
		for _, name := range []string{"observation 2 in", `record "0" of kind "note"`, `records of kind "other"`, `event "e" in inbox "inbox"`, `the sums of kind "arm", scope "s", item "mine"`} {
			assert.ErrorContains(t, receipts[0].Damaged, name)
		}
		for rows, left := range map[string]int{
			"heed_observation WHERE source = 'ann'": 4, "heed_observation WHERE source = 'bob'": 3,
			"heed_record WHERE kind = 'note' AND body LIKE '%ann%'": 0, "heed_record WHERE kind = 'other' AND body LIKE '%ann%'": 3,
		} {
			var n int
			require.NoError(t, handle.QueryRow("SELECT count(*) FROM "+rows).Scan(&n))
			assert.Equal(t, left, n, rows)
		}
		parts, err := gather(st.List(ctx, arm.Kind, arm.Scope))
		require.NoError(t, err)
		require.Len(t, parts, 1)
		assert.EqualValues(t, 4, parts[0].Tally.N(), "three of bob's, and the damaged one")
	})
}

// An event that is not as it was published is not delivered, and holds up no other.
func TestADamagedEvent(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		inbox, err := sqlstore.NewInbox(ctx, open(t, handle, at.dialect), sqlstore.InboxConfig{Name: "inbox"})
		require.NoError(t, err)
		for _, id := range []string{"a", "b"} {
			require.NoError(t, inbox.Publish(ctx, stream.Event{ID: id, Topic: "t", At: time.Now(), Payload: []byte("x")}))
		}
		damage(t, handle, "UPDATE heed_inbox SET topic = 's' WHERE id = 'a'")
		d, err := inbox.Receive(ctx)
		require.NoError(t, err)
		assert.Equal(t, "b", d.Event().ID)
	})
}

// Sums that fit to their checksum are found, too, if they do not count what is in the history. While others
// write, the deep check goes on, and it ends with its context.
func TestSumsAgreeWithTheHistory(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		st := open(t, handle, at.dialect)
		require.NoError(t, commits(noted("1"))(st))
		for n := 1; ; n++ {
			_, err := sqlstore.Check(newCounting(n*n), handle, at.dialect, true)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, context.Canceled)
		}
		tx, err := handle.BeginTx(ctx, nil)
		require.NoError(t, err)
		_, err = tx.Exec(map[bool]string{
			false: "UPDATE heed_tally SET n_positive = 2", // SQLite generates the checksum
			true:  "UPDATE heed_tally SET n_positive = 2, checksum = checksum + 2 - n_positive",
		}[at.dialect == sqlstore.Postgres])
		require.NoError(t, err)
		faults, err := sqlstore.Check(ctx, handle, at.dialect, true)
		require.NoError(t, err)
		require.Empty(t, faults)
		require.NoError(t, tx.Commit())
		faults, err = sqlstore.Check(ctx, handle, at.dialect, true)
		require.NoError(t, err)
		require.Len(t, faults, 1)
		assert.Contains(t, faults[0], "do not count the observations of the history: restore the store from a copy, or run heed mend --cell=")
	})
}

// An error that says nothing about the rows ends the deep check, in whichever statement it comes. It is no
// finding.
func TestALostConnectionIsNoDamage(t *testing.T) {
	skipRaced(t)
	at := madeFile(t)
	driver, handle := hookedAt(t, at)
	st := open(t, handle, at.dialect)
	require.NoError(t, commits(noted("1"))(st))
	for _, lost := range []error{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, errors.New("database table is locked"), &shutDown{}} {
		for n, reached := 1, true; reached; n++ {
			count := 0
			reached = false
			driver.set(func(text string) error {
				if !strings.Contains(text, "FROM heed_") || strings.Contains(text, "version FROM") {
					return nil
				}
				if count++; count == n {
					reached = true
					return lost
				}
				return nil
			})
			faults, err := sqlstore.Check(ctx, handle, at.dialect, true)
			if assert.Empty(t, faults); reached {
				require.ErrorIs(t, err, lost, "statement %d", n)
			}
		}
	}
}

// Sums that a lost connection keeps from being scaled are not taken for damaged ones.
func TestALostConnectionBesideSums(t *testing.T) {
	at := madeFile(t)
	driver, handle := hookedAt(t, at)
	st := open(t, handle, at.dialect)
	policies := map[string]evidence.Policy{arm.Kind: {HalfLife: time.Minute}}
	add := func(id string, at time.Time) error {
		_, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{observe(id, at)}, Policies: policies})
		return err
	}
	require.NoError(t, add("1", time.Now().Add(-1000*time.Minute)))
	lost := errors.New("connection reset by peer")
	driver.set(func(text string) error {
		if strings.Contains(text, "excluded.landmark - t.landmark") {
			return lost
		}
		return nil
	})
	require.ErrorIs(t, add("2", time.Now()), lost)
	driver.set(nil)
	require.NoError(t, add("2", time.Now()))
}

// shutDown is PostgreSQL's error when the server stops.
type shutDown struct{}

func (*shutDown) Error() string    { return "terminating connection due to administrator command" }
func (*shutDown) SQLState() string { return "57P01" }

// TestFlippedFiles flips a bit at a random place of a file: in rows, in indexes, in pointers and in what is unused. Nothing that reads
// serve may differ from the truth, unless the deep check tells that the file is damaged.
func TestFlippedFiles(t *testing.T) {
	skipRaced(t)
	for _, b := range files() {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			handle := at.handle(t)
			fillTables(t, handle, at, 200)
			truth := serve(t, handle, at)
			_, err := handle.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
			require.NoError(t, err)
			require.NoError(t, handle.Close())
			whole, err := os.ReadFile(strings.TrimPrefix(at.dsn, "file:"))
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(17, 4))
			var found, wrong, harmless int
			for range rounds(20, 400) {
				bytes := slices.Clone(whole)
				place := random.IntN(len(bytes))
				bytes[place] ^= 1 << random.IntN(8)
				file := filepath.Join(t.TempDir(), "flipped.db")
				require.NoError(t, os.WriteFile(file, bytes, 0o600))
				at.dsn = "file:" + file
				handle, err := at.open()
				require.NoError(t, err)
				faults, err := sqlstore.Check(ctx, handle, at.dialect, true)
				told := err != nil || len(faults) > 0
				served := serve(t, handle, at)
				differs := len(served) != len(truth)
				for what, value := range served {
					differs = differs || truth[what] != value
				}
				switch {
				case differs && !told:
					wrong++
					t.Errorf("a flip at byte %d of %d is served, and not found", place, len(whole))
				case told:
					found++
				default:
					harmless++
				}
				require.NoError(t, handle.Close())
			}
			t.Logf("%d files: %d flips found by the deep check, %d without effect on what is served, %d served and not found",
				found+harmless+wrong, found, harmless, wrong)
		})
	}
}
