package enginetest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// Sums of a person that are kept apart go as a whole, damaged or not, and those of others stay as they are.
func TestForgetDamagedSumsOfAPerson(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		st := open(t, handle, at.dialect)
		ann, bob := observe("1", time.Now()), observe("2", time.Now())
		ann.Source, bob.Source = "ann", "bob"
		_, err := st.Commit(ctx, store.Batch{
			Observations: []evidence.Observation{ann, bob}, Policies: map[string]evidence.Policy{arm.Kind: {ByOrigin: true}},
		})
		require.NoError(t, err)
		damage(t, handle, "UPDATE heed_tally SET named = named + 1 WHERE source = 'ann'")
		receipts, err := st.Commit(ctx, store.Batch{Forget: []string{"ann"}})
		require.NoError(t, err)
		require.NoError(t, receipts[0].Damaged)
		parts, err := gather(st.List(ctx, arm.Kind, arm.Scope))
		require.NoError(t, err)
		require.Len(t, parts, 1)
		assert.Equal(t, "bob", parts[0].Source)
	})
}

// To forget somebody goes on beside damage. To expunge another source in the same batch does not, and then nothing of the batch is done.
func TestExpungeBesideForget(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		st := open(t, handle, at.dialect)
		ann, bob := observe("1", time.Now()), observe("2", time.Now())
		ann.Source, bob.Source = "ann", "bob"
		_, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{ann, bob}})
		require.NoError(t, err)
		damage(t, handle, "UPDATE heed_observation SET happened = happened + 1 WHERE source = 'bob'")
		_, err = st.Commit(ctx, store.Batch{Expunge: []string{"bob"}, Forget: []string{"ann"}})
		require.ErrorIs(t, err, heed.ErrDamaged)
		var n int
		require.NoError(t, handle.QueryRow("SELECT count(*) FROM heed_observation WHERE source <> ''").Scan(&n))
		assert.Equal(t, 2, n)
	})
}

// A restart that can't drop the old sums is an error, and changes nothing.
func TestARestartThatFails(t *testing.T) {
	at := madeFile(t)
	driver, handle := hookedAt(t, at)
	st := open(t, handle, at.dialect)
	now := time.Now()
	first := observe("1", now)
	require.NoError(t, commits(store.Batch{Observations: []evidence.Observation{first}})(st))
	lost := errors.New("the disk is gone")
	driver.set(func(text string) error {
		if strings.HasPrefix(text, "DELETE FROM heed_tally WHERE cell") {
			return lost
		}
		return nil
	})
	restart := commits(store.Batch{Restart: []store.Restart{{Cell: first.Cell, At: now.Add(time.Second)}}})
	require.ErrorIs(t, restart(st), lost)
	driver.set(nil)
	parts, err := gather(st.List(ctx, arm.Kind, arm.Scope))
	require.NoError(t, err)
	require.Len(t, parts, 1)
	assert.EqualValues(t, 1, parts[0].Tally.N())
}

// Without a history, no observation that counts can be left out later, also if it came in a batch with one that was known.
func TestNoHistoryIsLost(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		st := at.store(t, sqlstore.Config{NoHistory: true})
		now := time.Now()
		first, second := observe("1", now.Add(-time.Hour)), observe("2", now)
		for _, all := range [][]evidence.Observation{{first}, {first, second}} {
			require.NoError(t, commits(store.Batch{Observations: all})(st))
		}
		restart := commits(store.Batch{Restart: []store.Restart{{Cell: first.Cell, At: now.Add(-time.Minute)}}})
		require.ErrorIs(t, restart(st), evidence.ErrForgotten)
	})
}
