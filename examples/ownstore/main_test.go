package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

func Example() {
	main()
	// Output:
	// before this attempt: 0 failures of tools
	// before this attempt: 1 failures of tools
	// before this attempt: 2 failures of tools
}

// TestFileStoreKeepsTheContract is all that a store of one's own needs to be held to it.
func TestFileStoreKeepsTheContract(t *testing.T) {
	open := func(name string, o storetest.Options) (store.Store, error) {
		st, err := Open(context.Background(), name,
			memstore.Config{Now: o.Now, Retention: store.Retention{Limits: o.Limits}})
		if err == nil {
			st.sync = func(*os.File) error { return nil } // no power is cut here
		}
		return st, err
	}
	storetest.Run(t, storetest.Subject{
		New: func(o storetest.Options) (store.Store, error) {
			return open(filepath.Join(t.TempDir(), "heed.jsonl"), o)
		},
		Reopen: func(s store.Store, o storetest.Options) (store.Store, error) {
			return open(s.(*FileStore).name, o)
		},
	})
}

// TestADiskThatFails is about what the contract does not ask for: where a commit can't be written,
// it did not happen.
func TestADiskThatFails(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.Mkdir(dir, 0o700))
	name := filepath.Join(dir, "heed.jsonl")
	st, err := Open(ctx, name, memstore.Config{})
	require.NoError(t, err)
	kind := store.Kind{Name: "note"}
	require.NoError(t, st.Declare(ctx, kind))
	cell := evidence.Cell{Kind: "seen", Item: "it"}
	note := func(id string) store.Batch {
		return store.Batch{
			Observations: []evidence.Observation{{ID: id, Cell: cell, Reward: 1, Weight: 1,
				At: time.Unix(1, 0)}},
			Records: []store.Record{{Ref: store.Ref{Kind: kind.Name, ID: id}, At: time.Unix(1, 0),
				Body: store.Of("text")}},
		}
	}
	_, err = st.Commit(ctx, note("1"))
	require.NoError(t, err)

	away := dir + ".away"
	require.NoError(t, os.Rename(dir, away))
	_, err = st.Commit(ctx, note("2"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.Rename(away, dir))
	_, err = st.Commit(ctx, note("3"))
	require.NoError(t, err)

	for _, st := range []*FileStore{st, reopened(t, name)} {
		var ids []string
		for r, err := range st.Find(ctx, store.Query{Kind: kind.Name, Oldest: true}) {
			require.NoError(t, err)
			ids = append(ids, r.ID)
		}
		assert.Equal(t, []string{"1", "3"}, ids)
		var s store.Snapshot
		require.NoError(t, st.Read(ctx, &s, []evidence.Cell{cell}, nil))
		assert.EqualValues(t, 2, s.Parts[0].Tally.N())
	}

	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, text[:len(text)/2], 0o600))
	_, err = Open(ctx, name, memstore.Config{})
	assert.ErrorContains(t, err, "heed.jsonl", "a file that was cut off is refused")
}

func reopened(t *testing.T, name string) *FileStore {
	st, err := Open(context.Background(), name, memstore.Config{})
	require.NoError(t, err)
	return st
}
