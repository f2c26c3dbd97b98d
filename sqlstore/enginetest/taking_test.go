package enginetest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

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
	restart := commits(store.Batch{Restart: []store.Restart{{Cell: first.Cell,
		At: now.Add(time.Second)}}})
	require.ErrorIs(t, restart(st), lost)
	driver.set(nil)
	parts, err := gather(st.List(ctx, store.CellQuery{Kind: arm.Kind, Scope: arm.Scope}))
	require.NoError(t, err)
	require.Len(t, parts, 1)
	assert.EqualValues(t, 1, parts[0].Tally.N())
}

// Without a history, no observation that counts can be left out later, also if it came in a batch
// with one that was known, or if it is of the moment of a restart.
func TestNoHistoryIsLost(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		st := at.store(t, sqlstore.Config{Retention: store.Retention{NoHistory: true}})
		now := time.Now()
		first, second := observe("1", now.Add(-time.Hour)), observe("2", now)
		for _, all := range [][]evidence.Observation{{first}, {first, second}} {
			require.NoError(t, commits(store.Batch{Observations: all})(st))
		}
		for _, from := range []time.Time{now.Add(-time.Minute), now} {
			restart := commits(store.Batch{Restart: []store.Restart{{Cell: first.Cell, At: from}}})
			require.ErrorIs(t, restart(st), evidence.ErrForgotten, from)
		}
		after := store.Restart{Cell: first.Cell, At: now.Add(time.Microsecond)}
		require.NoError(t, commits(store.Batch{Restart: []store.Restart{after}})(st))
	})
}

// A history that is longer than two pages of 500 is read whole, the newest first.
func TestHistoryOfSeveralPages(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		st := at.store(t, sqlstore.Config{})
		now := time.Now().Truncate(time.Microsecond)
		var all []evidence.Observation
		for i := range 1001 {
			all = append(all, observe(fmt.Sprint(i), now.Add(-time.Duration(i)*time.Second)))
		}
		require.NoError(t, commits(store.Batch{Observations: all})(st))
		read, err := gather(st.History(ctx, all[0].Cell))
		require.NoError(t, err)
		require.Len(t, read, len(all))
		assert.Equal(t, all[0].ID, read[0].ID)
		assert.Equal(t, all[1000].ID, read[1000].ID)
	})
}
