package natsstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/internal/adaptertest"
	"github.com/heedhq/heed/adapter/natsstore"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

var ctx = context.Background()

// opened is a handle with its store's name, so that another one can be opened.
type opened struct {
	*natsstore.Store
	name string
}

func TestStore(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	servers := []jetstream.JetStream{c.connect(t, []int{0}), c.connect(t, []int{1})}
	var made atomic.Int64
	open := func(server int, name string, o storetest.Options) (store.Store, error) {
		st, err := natsstore.Open(ctx, servers[server], natsstore.Config{
			Name: name, Kept: memstore.Config{Now: o.Now, Retention: store.Retention{Limits: o.Limits}},
		})
		return opened{st, name}, err
	}
	storetest.Run(t, storetest.Subject{
		New: func(o storetest.Options) (store.Store, error) {
			n := made.Add(1)
			remove(t, servers[0], fmt.Sprint("suite", n-5)) // which no rule uses any more
			return open(0, fmt.Sprint("suite", n), o)
		},
		Reopen: func(st store.Store, o storetest.Options) (store.Store, error) {
			return open(0, st.(opened).name, o)
		},
		Beside: func(st store.Store, o storetest.Options) (store.Store, error) {
			return open(1, st.(opened).name, o)
		},
	})
}

// remove deletes the streams of a store.
func remove(t *testing.T, js jetstream.JetStream, name string) {
	t.Helper()
	names := js.StreamNames(ctx, jetstream.WithStreamListSubject("heed."+name+".*"))
	for stream := range names.Name() {
		require.NoError(t, js.DeleteStream(ctx, stream))
	}
	require.NoError(t, names.Err())
}

// note is the kind of record of the tests.
type note struct {
	ID     string
	N      int
	Author string
	Text   string
}

var notes = store.View[note]{
	Kind: store.Kind{Name: "note", Caused: []string{"Author"}},
	Place: func(n note) (string, time.Time, []string) {
		return n.ID, time.Unix(1, 0), []string{store.PersonKey(n.Author)}
	},
}

var cell = evidence.Cell{Kind: "test", Scope: "scope", Item: "item", Name: "name"}

func open(t testing.TB, js jetstream.JetStream, cfg natsstore.Config) *natsstore.Store {
	t.Helper()
	st, err := natsstore.Open(ctx, js, cfg)
	require.NoError(t, err)
	require.NoError(t, st.Declare(ctx, notes.Kind))
	return st
}

// count is a step that adds 1 to the number of a note, and an observation.
func count(ctx context.Context, st store.Store, id string) error {
	return store.Do(ctx, st, func(tx *store.Tx) error {
		row, err := notes.In(tx, "counter")
		if err != nil {
			return err
		}
		done, err := notes.In(tx, id)
		if err != nil || done.Revision > 0 {
			return err
		}
		notes.Put(tx, note{ID: "counter", N: row.Value.N + 1}, row.Revision)
		notes.Put(tx, note{ID: id}, 0)
		tx.Observe(evidence.Observation{ID: id, Cell: cell, Reward: 1, Weight: 1, At: time.Now()})
		return nil
	})
}

// counted returns the number of the note, and the number of observations.
func counted(t testing.TB, st store.Store) (n int, observations uint64) {
	t.Helper()
	var s store.Snapshot
	require.NoError(t, st.Read(ctx, &s, []evidence.Cell{cell}, []store.Ref{notes.Ref("counter")}))
	row, err := notes.Of(s.Records[0])
	require.NoError(t, err)
	for _, p := range s.Parts {
		observations += p.Tally.N()
	}
	return row.Value.N, observations
}

// same checks that handles have applied the log alike.
func same(t testing.TB, handles ...*natsstore.Store) {
	t.Helper()
	want, err := handles[0].Dumped()
	require.NoError(t, err)
	for _, st := range handles[1:] {
		got, err := st.Dumped()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestDocs(t *testing.T) {
	t.Parallel()
	adaptertest.Page(t, "README.md")
}
