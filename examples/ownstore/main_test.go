package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/patterns/patternstest"
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
	patternstest.RunErrorStore(t, func() (patterns.ErrorStore, error) {
		store, err := Open(filepath.Join(t.TempDir(), "errors.log"))
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		return store, nil
	})
}

// TestFileStoreSurvives is about what the contract does not ask for: what was written is there after a crash.
func TestFileStoreSurvives(t *testing.T) {
	ctx := context.Background()
	name := filepath.Join(t.TempDir(), "errors.log")
	entry := func(id, task string) patterns.ErrorEntry {
		return patterns.ErrorEntry{ID: id, Task: task, Type: patterns.Timeout, At: time.Unix(1, 0).UTC()}
	}
	first, err := Open(name)
	require.NoError(t, err)
	for _, e := range []patterns.ErrorEntry{entry("a", "t"), entry("b", "u"), entry("c", "t")} {
		require.NoError(t, first.Add(ctx, e))
	}
	require.NoError(t, first.Resolve(ctx, "c"))
	require.NoError(t, first.Forget(ctx, "u"))
	require.NoError(t, first.Close())

	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	_, err = file.WriteString(`{"add":{"id":"d","ta`) // the power fails
	require.NoError(t, err)
	require.NoError(t, file.Close())

	for range 2 { // the second one reads what the first one left
		again, err := Open(name)
		require.NoError(t, err)
		resolved := entry("c", "t")
		resolved.Resolved = true
		var all []patterns.ErrorEntry
		for e, err := range again.Errors(ctx, "") {
			require.NoError(t, err)
			all = append(all, e)
		}
		assert.Equal(t, []patterns.ErrorEntry{entry("a", "t"), resolved}, all)
		require.NoError(t, again.Add(ctx, entry("a", "again")), "it counts once after a restart too")
		require.NoError(t, again.Close())
	}

	require.NoError(t, os.WriteFile(name, []byte("no log\n"), 0o600))
	_, err = Open(name)
	assert.ErrorContains(t, err, "errors.log")
}
