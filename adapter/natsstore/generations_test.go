package natsstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/adapter/natsstore"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// TestGenerations writes through three handles while the log begins again after each few commits.
func TestGenerations(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	defer natsstore.SetLongLog(4 << 10)()
	var handles []*natsstore.Store
	for i := range 3 {
		st := open(t, c.connect(t, []int{i}), natsstore.Config{Name: "many"})
		handles = append(handles, st)
	}
	var l load
	until := make(chan struct{})
	wait := l.run(until, handles, 6)
	require.Eventually(t, func() bool { return l.done() >= 200 }, time.Minute, 10*time.Millisecond)
	close(until)
	wait.Wait()
	require.Empty(t, l.failed)
	for _, st := range handles {
		n, observations := counted(t, st)
		assert.Equal(t, len(l.acked), n)
		assert.EqualValues(t, n, observations)
		assert.Greater(t, st.Generation(), uint64(5))
	}
	require.NoError(t, handles[0].Sweep(ctx, time.Time{}))
	same(t, append(handles, open(t, c.connect(t, []int{0}), natsstore.Config{Name: "many"}))...)
	names := c.connect(t, []int{0}).StreamNames(ctx)
	var left []string
	for name := range names.Name() {
		if name != "KEEP" {
			left = append(left, name)
		}
	}
	require.Len(t, left, 2, "streams of before are left: %v", left)
}

// TestPagesGoOn reads pages and versions while the log begins again.
func TestPagesGoOn(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	js := c.connect(t, []int{0})
	st := open(t, js, natsstore.Config{Name: "pages"})
	rare := store.Kind{Name: "rare", Versioned: true}
	require.NoError(t, st.Declare(ctx, rare))
	write := func(id string) uint64 {
		t.Helper()
		receipts, err := st.Commit(ctx, store.Batch{Records: []store.Record{
			notes.Record(note{ID: id}, 0),
			{Ref: store.Ref{Kind: "rare", ID: id}, At: time.Unix(1, 0), Body: store.Of(id)},
		}})
		require.NoError(t, err)
		return receipts[0].Revision
	}
	version := func() uint64 {
		t.Helper()
		var s store.Snapshot
		require.NoError(t, st.Read(ctx, &s, nil, []store.Ref{{Kind: "rare"}}))
		return s.Records[0].Revision
	}
	last := write("removed")
	for i := range 6 {
		last = write(fmt.Sprint(i))
	}
	_, err := st.Commit(ctx, store.Batch{Records: []store.Record{notes.Removal("removed", 1)}})
	require.NoError(t, err)
	place, seen, generation := "", version(), st.Generation()
	var ids []string
	for range 3 {
		for row, err := range notes.Find(ctx, st, store.Query{Oldest: true, After: place, Limit: 2}) {
			require.NoError(t, err)
			ids, place = append(ids, row.ID), row.Place
		}
		require.NoError(t, st.Rotate())
		require.Greater(t, st.Generation(), generation)
		generation = st.Generation()
		next := write("later " + place)
		require.Greater(t, next, last)
		last = next
		require.Greater(t, version(), seen)
		seen = version()
	}
	require.Equal(t, strings.Split("012345", ""), ids, "records of one moment")
}

// TestConfiguration opens a store with other limits, which all handles then have.
func TestConfiguration(t *testing.T) {
	c := startCluster(t)
	js := c.connect(t, []int{0})
	first := open(t, js, natsstore.Config{Name: "configured"})
	for i := range 5 {
		require.NoError(t, count(ctx, first, fmt.Sprint(i)))
	}
	limits := map[string]store.Limits{notes.Name: {Most: 3}}
	second := open(t, js, natsstore.Config{Name: "configured",
		Kept: memstore.Config{Retention: store.Retention{Limits: limits}}})
	require.NoError(t, first.Sweep(ctx, time.Time{}))
	for _, st := range []*natsstore.Store{first, second} {
		n := 0
		for _, err := range notes.Find(ctx, st, store.Query{}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 3, n)
	}

	_, err := natsstore.Open(ctx, nil, natsstore.Config{Name: "a.b", Replicas: 6, Timeout: -1,
		Kept: memstore.Config{Retention: store.Retention{HistoryPerCell: -1}}})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	require.Equal(t, []string{"JetStream", "Name", "Replicas", "Timeout", "HistoryPerCell"}, fields)
}

// TestLargeCommits commits more than one message of the server holds, and more than a log holds.
func TestLargeCommits(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	st := open(t, c.connect(t, []int{0}), natsstore.Config{Name: "large"})
	other := open(t, c.connect(t, []int{1}), natsstore.Config{Name: "large"})
	text := strings.Repeat("long ", store.MaxBody/5-100)
	for i := range 3 {
		_, err := st.Commit(ctx, store.Batch{
			Records: []store.Record{notes.Record(note{ID: fmt.Sprint(i), Text: text}, 0)}})
		require.NoError(t, err)
		row, err := notes.Get(ctx, other, fmt.Sprint(i))
		require.NoError(t, err)
		require.Equal(t, text, row.Value.Text)
	}
	require.NoError(t, st.Rotate()) // the state takes several messages, too
	row, err := notes.Get(ctx, other, "2")
	require.NoError(t, err)
	require.Equal(t, text, row.Value.Text)
	require.EqualValues(t, 2, other.Generation())
}
