package enginetest_test

import (
	"database/sql"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// counted returns how many observations a read of the arm counts.
func counted(t testing.TB, st *sqlstore.Store) (n uint64) {
	var s store.Snapshot
	require.NoError(t, st.Read(ctx, &s, []evidence.Cell{arm}, nil))
	for _, p := range s.Parts {
		n += p.Tally.N()
	}
	return n
}

// A store sees commits of another store within a second, and in reads of records at once. It sees
// its own at once.
func TestOthersAreSeenInTime(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		here, there := at.store(t, sqlstore.Config{}), at.store(t, sqlstore.Config{})
		fresh := at.store(t, sqlstore.Config{NoCache: true})
		began := time.Now()
		assert.Zero(t, counted(t, here))
		require.NoError(t, commits(onlyObserve("1"))(there))
		assert.EqualValues(t, 1, counted(t, there))
		if n := counted(t, here); time.Since(began) < time.Second {
			assert.Zero(t, n, "it remembers what it has read")
		}
		assert.EqualValues(t, 1, counted(t, fresh))
		var s store.Snapshot
		require.NoError(t, here.Read(ctx, &s, []evidence.Cell{arm},
			[]store.Ref{{Kind: "note", ID: "none"}}))
		assert.Len(t, s.Parts, 1, "beside records parts are fresh")
		require.NoError(t, commits(onlyObserve("2"))(there))
		require.Eventually(t, func() bool { return counted(t, here) == 2 }, time.Minute,
			20*time.Millisecond)
		require.NoError(t, commits(onlyObserve("3"))(here))
		assert.EqualValues(t, 3, counted(t, here))
		require.NoError(t, commits(store.Batch{Reset: []evidence.Cell{arm}})(here))
		assert.Zero(t, counted(t, here))
	})
}

// A read that begins after a commit sees it, whatever others read meanwhile.
func TestReadsRaceWithCommits(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		st := at.store(t, sqlstore.Config{})
		stop := make(chan struct{})
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						var s store.Snapshot
						assert.NoError(t, st.Read(ctx, &s,
							[]evidence.Cell{arm, {Kind: "other", Item: arm.Item}}, nil))
					}
				}
			})
		}
		for i := range 50 {
			assert.NoError(t, commits(onlyObserve(fmt.Sprint(i)))(st))
			assert.EqualValues(t, i+1, counted(t, st))
		}
		close(stop)
		wait.Wait()
	})
}

// TestHostileTexts puts hostile texts into every field. They come back as they were, and none is
// taken for a part of a statement.
func TestHostileTexts(t *testing.T) {
	skipRaced(t)
	// @ precedes the name of a tenant.
	kindOf := func(text string) string { return strings.ReplaceAll(text, "@", "at ") }
	texts := []string{
		"'", "''", `"`, `\`, `\'`, "`", ";", "--", "/*", "%", "_", "?", "$1", ":a", "@a", "x'00'", "\\x00", "{}", "[]", `"]]`, "\u2028",
		"'; DROP TABLE heed_cell; --", "' OR '1'='1", "1); DELETE FROM heed_id", "\n", "\t", "\x01",
		"\x7f", "é", "e\u0301", "日本", "🦉",
		"\u202e", "\ufeff", "null", "true", "1e999", "NaN", " ", "  a", "a  ",
	}
	onEach(t, func(t *testing.T, at place) {
		st := at.store(t, sqlstore.Config{NoCache: true})
		for i, text := range texts {
			kind := kindOf(text)
			require.NoError(t, st.Declare(ctx, store.Kind{Name: kind}))
			o := evidence.Observation{
				ID: text, Cell: evidence.Cell{Kind: kind, Scope: text, Item: text, Name: text},
				Channel: text, Source: text, Session: text, Reward: 0.1, Weight: 0.3,
				At: time.Unix(int64(i+1), 0).UTC(),
			}
			r := store.Record{Ref: store.Ref{Kind: kind, ID: text}, Revision: store.Once, At: o.At,
				Keys: []string{text, "k"}, Body: store.Of(text)}
			b := store.Batch{Policies: map[string]evidence.Policy{kind: {ByOrigin: true}},
				Observations: []evidence.Observation{o}, Records: []store.Record{r}}
			require.NoError(t, commits(b)(st))
			receipts, err := st.Commit(ctx, b)
			require.NoError(t, err)
			require.Equal(t, []string{text}, receipts[0].Duplicates)
			require.Equal(t, []store.Ref{r.Ref}, receipts[0].Left)
			parts, err := gather(st.List(ctx, store.CellQuery{Kind: kind, Scope: text}))
			require.NoError(t, err)
			require.Len(t, parts, 1)
			require.Equal(t, o.Cell, parts[0].Cell)
			require.Equal(t, [2]string{text, text}, [2]string{parts[0].Channel, parts[0].Source})
			require.Equal(t, 0.3, parts[0].Tally.Mass, "to the last bit")
			require.Equal(t, 0.3*0.1, parts[0].Tally.Reward)
			history, err := gather(st.History(ctx, o.Cell))
			require.NoError(t, err)
			require.Equal(t, []evidence.Observation{o}, history)
			found, err := gather(st.Find(ctx, store.Query{Kind: kind, Keys: []string{text, "k"}}))
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Equal(t, r.Ref, found[0].Ref)
			require.Equal(t, r.Keys, found[0].Keys)
			got, err := store.Decode[string](found[0].Body)
			require.NoError(t, err)
			require.Equal(t, text, got)
		}
		require.NoError(t, commits(store.Batch{Retract: texts[:5]})(st))
		job := store.Job{Expunge: texts[5:10], Forget: texts[10:12]}
		require.NoError(t, store.Run(ctx, st, job))
		for i, text := range texts {
			found, err := gather(st.Scopes(ctx, kindOf(text)))
			require.NoError(t, err)
			require.Equal(t, i >= 12, len(found) == 1, "%q", text)
		}
	})
}

// A row that can't be decoded is a typed error wherever it is read or would have to change. A
// commit or a sweep that meets it leaves it as it is, and other rows are read and swept as before.
func TestUndecodableRows(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle, now := at.handle(t), time.Now()
		st, err := sqlstore.Open(ctx, handle, at.dialect,
			sqlstore.Config{Now: func() time.Time { return now }})
		require.NoError(t, err)
		require.NoError(t, st.Declare(ctx, store.Kind{Name: "note",
			Limits: store.Limits{For: time.Hour}}))
		for i := range 3 {
			require.NoError(t, commits(noted(fmt.Sprint(i)))(st))
		}
		damage(t, handle, `UPDATE heed_observation SET observation = '{"id":' WHERE observation LIKE '%"1"%'`)
		damage(t, handle, `UPDATE heed_record SET keys = '[' WHERE id = '1'`)
		isDamaged := func(err error, named string) {
			t.Helper()
			require.ErrorIs(t, err, heed.ErrDamaged)
			assert.ErrorContains(t, err, named)
		}
		_, err = gather(st.History(ctx, arm))
		isDamaged(err, "observation 2 in the history of a cell")
		_, err = gather(st.Find(ctx, store.Query{Kind: "note"}))
		isDamaged(err, `the keys of record "1" of kind "note"`)
		var s store.Snapshot
		isDamaged(st.Read(ctx, &s, nil, []store.Ref{{Kind: "note", ID: "1"}}),
			`record "1" of kind "note"`)
		require.NoError(t, st.Read(ctx, &s, []evidence.Cell{arm}, []store.Ref{{Kind: "note", ID: "2"}}))
		isDamaged(commits(store.Batch{Retract: []string{"1"}})(st), "observation 2")
		isDamaged(st.Dump(ctx, io.Discard), "observation 2")
		damage(t, handle, `UPDATE heed_record SET keys = '[]', body = '[' WHERE id = '1'`)
		notes, err := gather(st.Find(ctx, store.Query{Kind: "note", Oldest: true}))
		require.NoError(t, err)
		_, err = store.Decode[string](notes[1].Body)
		require.ErrorIs(t, err, heed.ErrDamaged)

		now = now.Add(40 * 24 * time.Hour)
		for range 2 {
			isDamaged(st.Sweep(ctx, now), "observation 2")
			for table, left := range map[string]int{"heed_observation": 1, "heed_id": 0,
				"heed_record WHERE kind = 'note'": 0} {
				var n int
				require.NoError(t, handle.QueryRow("SELECT count(*) FROM "+table).Scan(&n))
				assert.Equal(t, left, n, table)
			}
		}
		damage(t, handle, "UPDATE heed_kind SET kind = 'x' WHERE name = 'note'")
		_, err = st.Status(ctx)
		isDamaged(err, `how records of kind "note" are kept`)
	})
}

// Forget takes a person out of all records that name them, or changes nothing and names the record
// that can't be decoded.
func TestForgetUndecodable(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		st := open(t, handle, at.dialect)
		require.NoError(t, st.Declare(ctx, store.Kind{Name: "note", Decided: []string{"by"}}))
		for _, id := range []string{"1", "2"} {
			require.NoError(t, commits(store.Batch{Records: []store.Record{{
				Ref: store.Ref{Kind: "note", ID: id}, At: time.Now(),
				Keys: []string{store.PersonKey("ann")},
				Body: store.Of(map[string]string{"by": "ann"}),
			}}})(st))
		}
		naming := func() (n int) {
			require.NoError(t,
				handle.QueryRow("SELECT count(*) FROM heed_record WHERE body LIKE '%ann%'").Scan(&n))
			return n
		}
		damage(t, handle, `UPDATE heed_record SET body = '{"by":"ann"' WHERE id = '2'`)
		err := store.Run(ctx, st, store.Job{Forget: []string{"ann"}})
		require.ErrorIs(t, err, heed.ErrDamaged)
		require.ErrorContains(t, err, `note: record "2"`)
		assert.Equal(t, 2, naming())
		damage(t, handle, `UPDATE heed_record SET body = '{"by":"ann"}' WHERE id = '2'`)
		require.NoError(t, store.Run(ctx, st, store.Job{Forget: []string{"ann"}}))
		assert.Zero(t, naming())
	})
}

func damage(t testing.TB, handle *sql.DB, statement string) {
	result, err := handle.Exec(statement)
	require.NoError(t, err)
	n, err := result.RowsAffected()
	require.NoError(t, err)
	require.EqualValues(t, 1, n, statement)
}

// A database in memory would be another for each connection.
func TestMemoryIsRefused(t *testing.T) {
	for _, driver := range lites {
		handle, err := sql.Open(driver, ":memory:")
		require.NoError(t, err)
		t.Cleanup(func() { _ = handle.Close() })
		_, err = sqlstore.Open(ctx, handle, sqlstore.SQLite)
		require.ErrorContains(t, err, "in memory")
	}
}

// Status lists the kinds of records of tenants.
func TestStatusOfTenants(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		st := open(t, at.handle(t), at.dialect)
		acme, err := store.Tenant(st, "acme")
		require.NoError(t, err)
		require.NoError(t, acme.Declare(ctx, store.Kind{Name: "note"}))
		_, err = acme.Commit(ctx, store.Batch{Records: []store.Record{{
			Ref: store.Ref{Kind: "note", ID: "1"}, At: time.Now(), Body: store.Of("x"),
		}}})
		require.NoError(t, err)
		status, err := st.Status(ctx)
		require.NoError(t, err)
		assert.Equal(t, []string{"note@acme"}, status.Records)
	})
}

// Status lists kinds in order, each once, and of cells only those that have evidence.
func TestStatusListsKinds(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		st := open(t, at.handle(t), at.dialect)
		status, err := st.Status(ctx)
		require.NoError(t, err)
		assert.Empty(t, status.Cells)
		assert.Empty(t, status.Records)
		require.NoError(t, st.Declare(ctx, store.Kind{Name: "note"}, store.Kind{Name: "Note"}))
		var b store.Batch
		for i, kind := range []string{"b", "a@acme", "a", "é", "a@acme", "empty", "a"} {
			o := observe(fmt.Sprint(i), time.Now())
			o.Cell = evidence.Cell{Kind: kind, Scope: fmt.Sprint(i), Item: "i"}
			b.Observations = append(b.Observations, o)
		}
		for i, kind := range []string{"note@b", "note", "Note", "note@b", "note@a"} {
			b.Records = append(b.Records, store.Record{
				Ref: store.Ref{Kind: kind, ID: fmt.Sprint(i)}, At: time.Now(), Body: store.Of(i),
			})
		}
		require.NoError(t, commits(b)(st))
		empty := evidence.Cell{Kind: "empty", Scope: "5", Item: "i"}
		restart := store.Restart{Cell: empty, At: time.Now().Add(time.Minute)}
		require.NoError(t, commits(store.Batch{Restart: []store.Restart{restart}})(st))
		status, err = st.Status(ctx)
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "a@acme", "b", "é"}, status.Cells)
		assert.Equal(t, []string{"Note", "note", "note@a", "note@b"}, status.Records)
	})
}
