package loop_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

var update = flag.Bool("update", false, "write docs/stores.md and testdata/trees.txt")

// A counting store counts round trips, and keeps what is committed.
type counting struct {
	store.Store

	mu           sync.Mutex
	reads        int
	commits      int
	records      []string // the kinds that were written
	observations int
	takenBack    int
}

func (c *counting) Read(
	ctx context.Context, into *store.Snapshot, cells []evidence.Cell, refs []store.Ref,
	finds ...store.Query,
) error {
	c.mu.Lock()
	c.reads++
	c.mu.Unlock()
	return c.Store.Read(ctx, into, cells, refs, finds...)
}

func (c *counting) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	c.mu.Lock()
	c.commits++
	for _, b := range batches {
		for _, r := range b.Records {
			c.records = append(c.records, r.Kind)
		}
		c.observations += len(b.Observations)
		c.takenBack += len(b.Retract) + len(b.Withdraw)
	}
	c.mu.Unlock()
	return c.Store.Commit(ctx, batches...)
}

// row returns what was counted as a row of a table, and begins to count again.
func (c *counting) row(call string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.records)
	var kinds []string
	for _, kind := range slices.Compact(slices.Clone(c.records)) {
		n := 0
		for _, k := range c.records {
			if k == kind {
				n++
			}
		}
		text := "`" + kind + "`"
		if n > 1 {
			text = fmt.Sprintf("%d %s", n, text)
		}
		kinds = append(kinds, text)
	}
	row := fmt.Sprintf("| %s | %d | %d | %s | %d | %d |",
		call, c.reads, c.commits, strings.Join(kinds, ", "), c.observations, c.takenBack)
	c.reads, c.commits, c.records, c.observations, c.takenBack = 0, 0, nil, 0, 0
	return row
}

// TestWhatACallReadsAndWrites compares the table of docs/stores.md with what is counted. `go test
// ./loop -run WhatACall -update` writes it.
func TestWhatACallReadsAndWrites(t *testing.T) {
	clock := &clock{now: start}
	st, err := memstore.New(memstore.Config{Now: clock.Now})
	require.NoError(t, err)
	c := &counting{Store: st}
	w := newWorld(t, loop.Config{Store: c, Arms: []loop.Arm{{ID: "a"}, {ID: "b"}}})
	_, err = w.Teach(ctx, loop.Lessons{Heuristics: []learning.Heuristic{rotating}})
	require.NoError(t, err)
	// Afterwards the process has what does not depend on the event.
	w.answer(loop.Event{Text: full, Item: "disk", Person: "ann"})
	table := callsOf(t, w, c)

	const begins, ends = "<!-- calls -->\n", "<!-- end of calls -->"
	page, err := os.ReadFile("../docs/stores.md")
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), begins)
	require.True(t, ok, "docs/stores.md has no %q", begins)
	old, after, ok := strings.Cut(rest, ends)
	require.True(t, ok, "docs/stores.md has no %q", ends)
	if *update {
		require.NoError(t, os.WriteFile("../docs/stores.md", []byte(before+begins+table+ends+after),
			0o600))
		return
	}
	assert.Equal(t, table, old, "run go test ./loop -run WhatACall -update")
}

// callsOf makes each call once and returns the table of what it read and wrote.
func callsOf(t *testing.T, w *world, c *counting) string {
	rows := []string{
		"| call | reads | commits | records written | observations | taken back |",
		"|---|---|---|---|---|---|",
	}
	c.row("")
	count := func(call string, do func() error) {
		require.NoError(t, do(), call)
		rows = append(rows, c.row(call))
	}
	said := func(name string) func() error {
		return func() error {
			_, err := w.Answer(ctx, loop.Event{ID: name, Text: full, Item: "disk", Person: "ann"})
			return err
		}
	}
	count("`Answer`, by the model", said("m1"))
	count("`Answer`, the first of a session", func() error {
		_, err := w.Answer(ctx, loop.Event{
			ID: "s1", Text: full, Item: "disk", Person: "ann", Session: "s",
		})
		return err
	})
	count("`Answer`, a further one of the session", func() error {
		_, err := w.Answer(ctx, loop.Event{
			ID: "s2", Text: full, Item: "disk", Person: "ann", Session: "s",
		})
		return err
	})
	count("`React`", func() error {
		return w.React(ctx, "m1", loop.Reaction{Person: "ann", Value: 1})
	})
	count("`React`, by somebody else", func() error {
		return w.React(ctx, "m1", loop.Reaction{Person: "bob", Value: -1})
	})
	count("`Outcome` after that", func() error {
		return w.Outcome(ctx, "m1", loop.Outcome{Success: new(bool), Source: "ci"})
	})
	count("`Undo`", func() error { return w.Undo(ctx, "s1", "ann") })
	count("`Correct`", func() error {
		_, err := w.Correct(ctx, "s2", loop.Correction{
			Reviewer: "cid", Text: "Look at the disk first.",
		})
		return err
	})
	h := trusted(rotating)
	h.ID, h.Domain = "sure", "sure"
	_, err := w.Learning().Put(ctx, h)
	require.NoError(t, err)
	_, err = w.Answer(ctx, loop.Event{Text: full, Domain: "sure"})
	require.NoError(t, err)
	c.row("")
	heuristic := func(name string) func() error {
		return func() error {
			_, err := w.Answer(ctx, loop.Event{ID: name, Text: full, Domain: "sure", Person: "ann"})
			return err
		}
	}
	count("`Answer`, by a heuristic", heuristic("h1"))
	count("`React` on it", func() error {
		return w.React(ctx, "h1", loop.Reaction{Person: "ann", Value: 1})
	})
	count("`Outcome` after that", func() error {
		return w.Outcome(ctx, "h1", loop.Outcome{Success: new(bool), Source: "ci"})
	})
	require.NoError(t, heuristic("h2")())
	c.row("")
	count("`Undo` of another", func() error { return w.Undo(ctx, "h2", "ann") })
	_, err = w.Answer(ctx, loop.Event{ID: "m2", Text: full, Item: "disk", Person: "ann"})
	require.NoError(t, err)
	w.clock.Advance(time.Minute)
	c.row("")
	count("`Sweep`, silence about one answer", func() error { return w.Sweep(ctx, time.Time{}) })
	return strings.Join(rows, "\n") + "\n"
}
