package enginetest_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// stateError is an error of PostgreSQL's server.
type stateError string

func (e stateError) Error() string    { return "ERROR " + string(e) }
func (e stateError) SQLState() string { return string(e) }

// safeError is an error of pgx as it is if the connection was closed before the server's reply.
type safeError struct{}

func (safeError) Error() string     { return "conn closed" }
func (safeError) SafeToRetry() bool { return true }

// on returns a hook that fails the first statement of a text.
func on(text string, failure error) func(string) error {
	return func(statement string) error {
		if statement != text || failure == nil {
			return nil
		}
		err := failure
		failure = nil
		return err
	}
}

// onHooked runs a test with each driver that can be hooked.
func onHooked(t *testing.T, test func(*testing.T, place)) {
	t.Run("sqlite", func(t *testing.T) { test(t, madeFile(t)) })
	t.Run("ncruces", func(t *testing.T) { test(t, sqliteFile(t, "sqlite3")) })
	t.Run("postgres", func(t *testing.T) { test(t, postgresSchema(t)) })
}

// Whether a commit was applied is unknown if COMMIT was sent and its reply is lost, and only then.
func TestOutcomeUnknown(t *testing.T) {
	onHooked(t, func(t *testing.T, at place) {
		hooks, handle := hookedAt(t, at)
		t.Cleanup(func() { require.NoError(t, handle.Close()) })
		st := open(t, handle, at.dialect)
		require.NoError(t, commits(noted("warm"))(st))
		cut := errors.New("read tcp: connection reset by peer")
		unknown := map[error]bool{cut: true, driver.ErrBadConn: true}
		if at.dialect == sqlstore.Postgres {
			for _, state := range []stateError{"08006", "40003", "57P01", "58030", "XX000"} {
				unknown[state] = true
			}
			for _, state := range []stateError{"40001", "40P01", "23505", "57014"} {
				unknown[state] = false
			}
			unknown[safeError{}] = true
		} else {
			unknown[errors.New("database or disk is full")] = false
		}
		for failure, want := range unknown {
			hooks.set(on("COMMIT", failure))
			b := noted("before " + failure.Error())
			_, err := st.Commit(ctx, b)
			hooks.set(nil)
			require.ErrorIs(t, err, failure, "the cause is kept")
			assert.Equal(t, want, errors.Is(err, heed.ErrOutcomeUnknown), "%v", failure)
			deadlock := errors.Is(failure, stateError("40P01"))
			assert.Equal(t, deadlock, errors.Is(err, heed.ErrConflict), "%v", failure)
		}
		applied := notedIn(t, st)
		hooks.set(on("COMMITTED", cut))
		_, err := st.Commit(ctx, noted("after"))
		hooks.set(nil)
		require.ErrorIs(t, err, cut)
		require.ErrorIs(t, err, heed.ErrOutcomeUnknown)
		assert.Equal(t, applied+1, notedIn(t, st))

		within, cancel := context.WithCancel(ctx)
		hooks.set(func(statement string) error {
			if statement == "COMMITTED" {
				cancel()
				return context.Canceled // as a driver returns it that no longer waits
			}
			return nil
		})
		_, err = st.Commit(within, noted("not waited for"))
		hooks.set(nil)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, heed.ErrOutcomeUnknown)
		assert.Equal(t, applied+2, notedIn(t, st))
	})
}

// A step goes on after a COMMIT whose reply was lost, and counts once.
func TestAStepAfterALostReply(t *testing.T) {
	numbers := store.View[int]{Kind: store.Kind{Name: "note"}}
	onHooked(t, func(t *testing.T, at place) {
		hooks, handle := hookedAt(t, at)
		t.Cleanup(func() { require.NoError(t, handle.Close()) })
		st := open(t, handle, at.dialect)
		for i, lost := range []string{"COMMIT", "COMMITTED"} { // before it took effect, and after
			hooks.set(on(lost, errors.New("connection reset by peer")))
			runs := 0
			require.NoError(t, store.Do(ctx, st, func(tx *store.Tx) error {
				runs++
				row, err := numbers.In(tx, "n")
				if err != nil {
					return err
				}
				o := observe("step "+lost, time.Now())
				r := store.Record{
					Ref: numbers.Ref("n"), Revision: row.Revision, At: o.At, Body: store.Of(row.Value + 1),
				}
				tx.Add(store.Batch{
					ID: "batch " + lost, Observations: []evidence.Observation{o}, Records: []store.Record{r},
				})
				return nil
			}))
			hooks.set(nil)
			assert.Equal(t, 2-i, runs)
			row, err := numbers.Get(ctx, st, "n")
			require.NoError(t, err)
			assert.Equal(t, i+1, row.Value, lost)
			var s store.Snapshot
			require.NoError(t, st.Read(ctx, &s, []evidence.Cell{arm}, []store.Ref{numbers.Ref("n")}))
			require.Len(t, s.Parts, 1)
			assert.EqualValues(t, i+1, s.Parts[0].Tally.N())
		}
	})
}
