package enginetest_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// If a sweep can't read the server's clock, the store keeps the time that it read before.
func TestAFailedSweepLeavesTheClock(t *testing.T) {
	at := postgresSchema(t)
	h, handle := hookedAt(t, at)
	defer func() { assert.NoError(t, handle.Close()) }()
	st, err := sqlstore.Open(ctx, handle, at.dialect)
	require.NoError(t, err)
	require.NoError(t, commits(onlyObserve("a"))(st))
	ended, cancel := context.WithCancel(ctx)
	h.set(func(string) error {
		cancel()
		return nil
	})
	require.Error(t, st.Sweep(ended, time.Now()))
	h.set(nil)
	assert.NoError(t, commits(onlyObserve("b"))(st))
}

// If a commit is repeated on another connection, the store counts the records of the kind again,
// because the first try was rolled back. So the kind's limit holds.
func TestALimitHoldsForACommitMadeAgain(t *testing.T) {
	at := postgresSchema(t)
	h, handle := hookedAt(t, at)
	defer func() { assert.NoError(t, handle.Close()) }()
	st, err := sqlstore.Open(ctx, handle, at.dialect)
	require.NoError(t, err)
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "note", Versioned: true,
		Limits: store.Limits{Most: 400}}))
	n, broke := 0, 0
	put := func(k int) error {
		var b store.Batch
		for range k {
			n++
			b.Records = append(b.Records, store.Record{Ref: store.Ref{Kind: "note", ID: fmt.Sprint(n)},
				At: time.Now(), Body: store.Of(n)})
		}
		_, err := st.Commit(ctx, b)
		return err
	}
	require.NoError(t, put(400))
	const insert = "INSERT INTO heed_record (ref, kind, id, at, revision"
	for range 12 {
		deleted, inserts := false, 0
		h.set(func(s string) error {
			deleted = deleted || strings.HasPrefix(s, "DELETE FROM heed_record")
			if !deleted || !strings.Contains(s, insert) {
				return nil
			}
			if inserts++; inserts == 2 {
				broke++
				return driver.ErrBadConn
			}
			return nil
		})
		require.NoError(t, put(15))
		h.set(nil)
	}
	require.Positive(t, broke)
	var all int
	require.NoError(t, handle.QueryRow("SELECT count(*) FROM heed_record WHERE kind = 'note'").Scan(
		&all))
	assert.LessOrEqual(t, all, 400+15)
}

// A kind that is declared again as it was, as each agent of a tenant does, is not counted again. If
// another declaration changes its limit, that holds at once.
func TestADeclarationThatChangesNothing(t *testing.T) {
	h, handle := hookedAt(t, sqliteFile(t, lites[0]))
	defer func() { assert.NoError(t, handle.Close()) }()
	st, err := sqlstore.Open(ctx, handle, sqlstore.SQLite)
	require.NoError(t, err)
	counts, n := 0, 0
	h.set(func(s string) error {
		if strings.HasPrefix(s, "SELECT count(*) FROM heed_record") {
			counts++
		}
		return nil
	})
	step := func(most int) {
		require.NoError(t, st.Declare(ctx, store.Kind{Name: "note", Limits: store.Limits{Most: most}}))
		for _, kind := range []string{"note", store.KindIn("note", "acme")} {
			n++
			_, err := st.Commit(ctx, store.Batch{Records: []store.Record{{
				Ref: store.Ref{Kind: kind, ID: fmt.Sprint(n)}, At: time.Now(), Body: store.Of(n),
			}}})
			require.NoError(t, err)
		}
	}
	for range 20 {
		step(1000)
	}
	assert.Equal(t, 2, counts, "each kind once")
	step(5)
	assert.Equal(t, 4, counts)
	h.set(nil)
	all, err := gather(st.Find(ctx, store.Query{Kind: "note"}))
	require.NoError(t, err)
	assert.Len(t, all, 5)
}
