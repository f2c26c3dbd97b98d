package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
)

// TestImportWantsEmptyStores: one that holds something, whatever it is, keeps all others from being filled.
func TestImportWantsEmptyStores(t *testing.T) {
	good := exportFile(t)
	commits := func(b evidence.Batch) func(*memstore.Stores) error {
		return func(s *memstore.Stores) error {
			_, err := s.Evidence.Commit(ctx, b)
			return err
		}
	}
	noEvidence := func(s *memstore.Stores) { s.Evidence = nil }
	event := evidence.Event{ID: "x", Topic: "t", At: exported}
	for name, tt := range map[string]struct {
		do      func(*memstore.Stores) error
		without func(*memstore.Stores)
	}{
		"a sum":     {commits(evidence.Batch{Observations: []evidence.Observation{observe("x", exported)}}), noEvidence},
		"an id":     {commits(evidence.Batch{ID: "x"}), noEvidence},
		"a restart": {commits(evidence.Batch{Restart: []evidence.Restart{{Cell: cell, At: exported}}}), noEvidence},
		"an entry":  {commits(evidence.Batch{Audit: []evidence.AuditEntry{{ID: "x", Action: "did", At: exported}}}), noEvidence},
		"an event":  {commits(evidence.Batch{Events: []evidence.Event{event}}), noEvidence},
		"a choice": {
			func(s *memstore.Stores) error { return s.Choices.Add(ctx, choiceOf(99, exported)) },
			func(s *memstore.Stores) { s.Choices = nil },
		},
		"a heuristic": {
			func(s *memstore.Stores) error {
				_, err := s.Heuristics.Put(ctx, learning.Heuristic{ID: "x"})
				return err
			},
			func(s *memstore.Stores) { s.Heuristics = nil },
		},
		"a transition": {
			func(s *memstore.Stores) error {
				return s.Patterns.Commit(ctx, patterns.Changes{Transitions: []patterns.Transition{{ID: "x", Pattern: "x"}}})
			},
			func(s *memstore.Stores) { s.Patterns = nil },
		},
		"an error": {
			func(s *memstore.Stores) error {
				return s.Errors.Add(ctx, patterns.ErrorEntry{ID: "x", Task: "x", Type: patterns.Timeout, At: exported})
			},
			func(s *memstore.Stores) { s.Errors = nil },
		},
		"a delivery": {
			func(s *memstore.Stores) error { return s.Streams["inbox"].Publish(ctx, event) },
			func(s *memstore.Stores) { s.Streams = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			into := emptyStores(t)
			require.NoError(t, tt.do(&into))
			require.ErrorIs(t, importText(good, into), heed.ErrConflict)
			tt.without(&into)
			require.NoError(t, importText(good, into), "the others are as empty as before")
			require.ErrorIs(t, importText(good, into), heed.ErrConflict)
		})
	}
}

// TestImportKeepsWhatFits: the stores' own bounds hold, and what goes is what would have gone.
func TestImportKeepsWhatFits(t *testing.T) {
	good := exportFile(t)
	large := armCells[0] // three outcomes, of which the first was forgotten before

	t.Run("history over its number", func(t *testing.T) {
		store := newEvidence(t, memstore.EvidenceConfig{Now: atExport, HistoryPerCell: 1})
		require.NoError(t, importText(good, memstore.Stores{Evidence: store}))
		assert.Len(t, history(t, store, large), 1)
		assert.Equal(t, 3., read(t, store, large).Mass)
		_, err := store.Commit(ctx, evidence.Batch{Retract: []string{"models:00000000-0000-0000-0000-000000000002:"}})
		require.ErrorIs(t, err, evidence.ErrForgotten)
		_, err = store.Commit(ctx, evidence.Batch{Expunge: []string{"ann"}})
		require.ErrorIs(t, err, evidence.ErrForgotten)
		commit(t, store, evidence.Batch{Retract: []string{"models:00000000-0000-0000-0000-000000000003:"}})
		assert.Equal(t, 2., read(t, store, large).Mass)
		// The last that is left was forgotten by the import.
		assert.Equal(t, evidence.InstantOf(start.Truncate(time.Hour).Add(2*time.Minute)), read(t, store, large).Positive.Last)
	})

	t.Run("history past its time", func(t *testing.T) {
		store := newEvidence(t, memstore.EvidenceConfig{Now: atExport, HistoryFor: 7 * time.Minute})
		require.NoError(t, importText(good, memstore.Stores{Evidence: store}))
		assert.Len(t, history(t, store, large), 1) // which was recorded at three minutes past
		assert.Equal(t, 3., read(t, store, large).Mass)
		_, err := store.Commit(ctx, evidence.Batch{Rebuild: []evidence.Cell{armCells[1]}})
		require.ErrorIs(t, err, evidence.ErrForgotten)
	})

	t.Run("no history", func(t *testing.T) {
		store := newEvidence(t, memstore.EvidenceConfig{Now: atExport, NoHistory: true})
		require.NoError(t, importText(good, memstore.Stores{Evidence: store}))
		assert.Empty(t, history(t, store, large))
		assert.Equal(t, 3., read(t, store, large).Mass)
		for _, b := range []evidence.Batch{
			{Retract: []string{"3"}}, {Rebuild: []evidence.Cell{armCells[1]}}, {Expunge: []string{"ann"}},
			{Restart: []evidence.Restart{{Cell: armCells[1], At: start.Truncate(time.Hour).Add(time.Minute)}}},
			{Restart: []evidence.Restart{{Cell: large, At: start.Truncate(time.Hour).Add(2 * time.Minute)}}},
		} {
			_, err := store.Commit(ctx, b)
			require.ErrorIs(t, err, evidence.ErrForgotten, "%+v", b)
		}
		commit(t, store, evidence.Batch{Retract: []string{"5"}}) // again
		commit(t, store, evidence.Batch{Restart: []evidence.Restart{{Cell: armCells[1], At: exported}}})
		assert.Zero(t, read(t, store, armCells[1]).Mass)
	})

	t.Run("ids past their time", func(t *testing.T) {
		clock := &clock{now: exported}
		store := newEvidence(t, memstore.EvidenceConfig{Now: clock.time, HistoryFor: time.Minute, IDsFor: 7 * time.Minute})
		require.NoError(t, importText(good, memstore.Stores{Evidence: store}))
		again := func(n int) bool {
			o := observe(fmt.Sprintf("models:00000000-0000-0000-0000-00000000000%d:", n), exported)
			return len(add(t, store, o).Duplicates) > 0
		}
		assert.False(t, again(2), "it was recorded eight minutes ago")
		assert.True(t, again(3))
		clock.advance(time.Minute - 1)
		assert.True(t, again(4))
		clock.advance(6*time.Minute + 1)
		assert.False(t, again(4), "twice its time is the most")
	})

	t.Run("ids of a clock that was ahead", func(t *testing.T) {
		clock := &clock{now: exported.Add(-24 * time.Hour)}
		store := newEvidence(t, memstore.EvidenceConfig{Now: clock.time, HistoryFor: time.Minute, IDsFor: 7 * time.Minute})
		require.NoError(t, importText(good, memstore.Stores{Evidence: store}))
		clock.advance(24*time.Hour - time.Minute)
		assert.Equal(t, []string{"6"}, add(t, store, observe("6", start)).Duplicates)
	})

	t.Run("the audit log", func(t *testing.T) {
		var rows []string
		for i := range 3 {
			rows = append(rows, fmt.Sprintf(`{"table":"audit","row":{"entry":"{\"id\":\"%d\",\"at\":\"2026-05-04T03:00:00Z\",\"action\":\"did\"}"}}`, i))
		}
		store := newEvidence(t, memstore.EvidenceConfig{Now: atExport, MaxAudit: 2})
		require.NoError(t, importText(exportOf(rows...), memstore.Stores{Evidence: store}))
		var ids []string
		for entry, err := range store.Audit(ctx) {
			require.NoError(t, err)
			ids = append(ids, entry.ID)
		}
		assert.Equal(t, []string{"2", "1"}, ids)
	})

	t.Run("choices", func(t *testing.T) {
		store := newChoices(t, memstore.ChoicesConfig{Now: atExport, Max: 5})
		require.NoError(t, importText(good, memstore.Stores{Choices: store}))
		assert.Equal(t, []int{6, 5, 4, 3, 2}, numbers(t, store, strategy.ChoiceFilter{}))
		require.NoError(t, store.Add(ctx, choiceOf(7, exported)))
		assert.Equal(t, []int{7, 6, 5, 4, 3}, numbers(t, store, strategy.ChoiceFilter{}))
		store = newChoices(t, memstore.ChoicesConfig{Now: atExport, Max: 2})
		sixthFirst := strings.Replace(good, `\"at\":\"2026-05-04T03:06:00Z\"`, `\"at\":\"2026-05-04T03:00:00Z\"`, 1)
		require.NoError(t, importText(sixthFirst, memstore.Stores{Choices: store}))
		assert.Equal(t, []int{5, 4}, numbers(t, store, strategy.ChoiceFilter{}), "not the last in the file, but the last that were made")
		store = newChoices(t, memstore.ChoicesConfig{Now: atExport, For: 6 * time.Minute})
		require.NoError(t, importText(good, memstore.Stores{Choices: store}))
		assert.Equal(t, []int{6, 5, 4}, numbers(t, store, strategy.ChoiceFilter{}))
	})

	t.Run("transitions, entries and errors", func(t *testing.T) {
		var rows []string
		for i := range 3 {
			id := fmt.Sprint(i)
			rows = append(rows, documentRow("transition", id, 0, patterns.Transition{ID: id, Pattern: "p"}),
				documentRow("entry", id, 0, patterns.Entry{Outcome: patterns.Outcome{ID: id, Task: "t"}}),
				documentRow("error", id, 0, patterns.ErrorEntry{ID: id, Task: fmt.Sprint(min(i, 1)), Type: patterns.Timeout, At: exported}))
		}
		store, err := memstore.NewPatterns(memstore.PatternsConfig{MaxTransitions: 2, MaxEntries: 1})
		require.NoError(t, err)
		of := func(cfg memstore.ErrorsConfig) (ids []string) {
			errs, err := memstore.NewErrors(cfg)
			require.NoError(t, err)
			require.NoError(t, importText(exportOf(rows...), memstore.Stores{Errors: errs}))
			for e, err := range errs.Errors(ctx, "") {
				require.NoError(t, err)
				ids = append(ids, e.ID)
			}
			return ids
		}
		require.NoError(t, importText(exportOf(rows...), memstore.Stores{Patterns: store}))
		n := 0
		for _, err := range store.Transitions(ctx, "p") {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 2, n)
		_, err = store.Entry(ctx, "1")
		require.ErrorIs(t, err, heed.ErrNotFound)
		_, err = store.Entry(ctx, "2")
		require.NoError(t, err)
		assert.Equal(t, []string{"0", "2"}, of(memstore.ErrorsConfig{PerTask: 1}))
		assert.Equal(t, []string{"1", "2"}, of(memstore.ErrorsConfig{MaxTasks: 1}))
	})
}

// TestImportIsRefusedByFullStores: what a store refuses, is refused with all else.
func TestImportIsRefusedByFullStores(t *testing.T) {
	good := exportFile(t)
	refused := func(text string, into memstore.Stores) {
		t.Helper()
		heuristics := &memstore.Heuristics{}
		into.Heuristics = heuristics
		require.ErrorIs(t, importText(text, into), evidence.ErrFull)
		require.NoError(t, importText(good, memstore.Stores{Heuristics: heuristics}))
	}
	refused(good, memstore.Stores{Evidence: newEvidence(t, memstore.EvidenceConfig{Now: atExport, MaxEvents: 4})})
	stream, err := memstore.NewStream(memstore.StreamConfig{Max: 1})
	require.NoError(t, err)
	refused(good, memstore.Stores{Streams: map[string]*memstore.Stream{"inbox": stream}})

	two := exportOf(
		documentRow("pattern", "a", 1, patterns.Pattern{ID: "a", Kind: patterns.Positive, Content: "c", State: patterns.Candidate, Revision: 1}),
		documentRow("pattern", "b", 1, patterns.Pattern{ID: "b", Kind: patterns.Positive, Content: "c", State: patterns.Candidate, Revision: 1}),
	)
	store, err := memstore.NewPatterns(memstore.PatternsConfig{MaxPatterns: 1})
	require.NoError(t, err)
	refused(two, memstore.Stores{Patterns: store})

	rows := make([]string, 1<<16)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"table":"cells","row":{"cell":"%[1]d","kind":"k","scope":"","item":"","name":"%[1]d","half_life":%[2]d,`+
			`"by_origin":0,"restart":1}}`, i, time.Minute.Microseconds()+int64(i))
	}
	policies := newEvidence(t, memstore.EvidenceConfig{Now: atExport})
	refused(exportOf(rows...), memstore.Stores{Evidence: policies})
	require.NoError(t, importText(good, memstore.Stores{Evidence: policies}), "it has given no numbers to them")

	var closed memstore.Stream
	closed.Close()
	err = importText(good, memstore.Stores{Streams: map[string]*memstore.Stream{"inbox": &closed}})
	require.ErrorIs(t, err, strategy.ErrClosed)
}

func TestImportFailures(t *testing.T) {
	good := exportFile(t)
	require.NoError(t, importText(good, memstore.Stores{}), "no stores check an export")
	require.Error(t, importText(good[:len(good)/2], memstore.Stores{}))

	into := emptyStores(t)
	done, cancel := context.WithCancel(ctx)
	half := io.MultiReader(strings.NewReader(good[:len(good)/2]), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, nil
	}), strings.NewReader(good[len(good)/2:]))
	require.ErrorIs(t, memstore.Import(done, half, &into), context.Canceled)
	require.ErrorIs(t, memstore.Import(done, strings.NewReader(good), &into), context.Canceled)

	broken := errors.New("the disk is gone")
	err := memstore.Import(ctx, io.MultiReader(strings.NewReader(good[:1000]), iotest.ErrReader(broken)), &into)
	require.ErrorIs(t, err, broken)
	assert.NotErrorAs(t, err, new(*heed.InputError))
	require.NoError(t, memstore.Import(ctx, iotest.OneByteReader(strings.NewReader(good)), &into))
}

type readerFunc func([]byte) (int, error)

// Read ends at once, after the function was called.
func (f readerFunc) Read(p []byte) (int, error) {
	if n, err := f(p); n > 0 || err != nil {
		return n, err
	}
	return 0, io.EOF
}

// TestImportOnce: of imports at the same time into the same stores, whatever the order in which they name streams, one is made.
func TestImportOnce(t *testing.T) {
	good := exportFile(t)
	into := emptyStores(t)
	a, b := &memstore.Stream{}, &memstore.Stream{}
	var wait sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wait.Go(func() {
			own := into
			own.Streams = map[string]*memstore.Stream{"inbox": a, "other": b, "the same": a, "none": nil}
			if i%2 > 0 {
				own.Streams = map[string]*memstore.Stream{"inbox": b, "other": a}
			}
			results[i] = importText(good, own)
		})
	}
	wait.Wait()
	made := 0
	for _, err := range results {
		if err == nil {
			made++
		} else {
			assert.ErrorIs(t, err, heed.ErrConflict)
		}
	}
	assert.Equal(t, 1, made)
	assert.Equal(t, 2, a.Len()+b.Len())
}

// TestImportAfterAll: stores are empty again when the time of all that they held is over.
func TestImportAfterAll(t *testing.T) {
	clock := &clock{now: exported.Add(-time.Hour)}
	into := memstore.Stores{
		Evidence: newEvidence(t, memstore.EvidenceConfig{Now: clock.time, HistoryFor: time.Minute, IDsFor: time.Minute}),
		Choices:  newChoices(t, memstore.ChoicesConfig{Now: clock.time, For: time.Minute}),
	}
	commit(t, into.Evidence, evidence.Batch{ID: "x"})
	require.NoError(t, into.Choices.Add(ctx, choiceOf(99, clock.time())))
	require.ErrorIs(t, importText(exportFile(t), into), heed.ErrConflict)
	clock.advance(time.Hour)
	require.NoError(t, importText(exportFile(t), into))
}

// TestImportWakes: who waits for a stream is given what is imported.
func TestImportWakes(t *testing.T) {
	good := exportFile(t)
	synctest.Test(t, func(t *testing.T) {
		var inbox memstore.Stream
		var received sync.WaitGroup
		received.Go(func() {
			d, err := inbox.Receive(ctx)
			assert.NoError(t, err)
			assert.Equal(t, "1", d.Event().ID)
		})
		synctest.Wait()
		require.NoError(t, importText(good, memstore.Stores{Streams: map[string]*memstore.Stream{"inbox": &inbox}}))
		received.Wait()
	})
}

// TestImportTwoStreamsInOne: a stream that two names are of holds each id once.
func TestImportTwoStreamsInOne(t *testing.T) {
	row := func(stream, id string) string {
		return fmt.Sprintf(`{"table":"stream","row":{"stream":%q,"id":%q,"topic":"t","happened":"2026-05-04T03:00:00Z","payload":null,"due":0,"deliveries":0,"holder":""}}`, stream, id)
	}
	var s memstore.Stream
	text := exportOf(row("a", "1"), row("b", "1"), row("b", "2"), row("c", "3"))
	require.NoError(t, importText(text, memstore.Stores{Streams: map[string]*memstore.Stream{"a": &s, "b": &s}}))
	assert.Equal(t, 2, s.Len())
}
