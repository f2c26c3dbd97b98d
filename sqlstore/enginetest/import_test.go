package enginetest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/strategy"
)

// importInto reads what a database exports into stores in memory.
func importInto(t require.TestingT, db *sqlstore.DB, into memstore.Stores) {
	var out bytes.Buffer
	require.NoError(t, db.Export(ctx, &out))
	require.NoError(t, memstore.Import(ctx, &out, &into))
}

// TestImportedEvidenceAgrees gives random batches to a store in a database, with and without a history, has one in memory import
// what it exports, and goes on with both: they say the same of every batch, and the same can be read of them. Time passes, so
// that history grows old, before the export and after it.
func TestImportedEvidenceAgrees(t *testing.T) {
	skipRaced(t)
	at := sqliteFile(t, "sqlite")
	handle := at.handle(t)
	rapid.Check(t, func(t *rapid.T) {
		wipe(t, handle)
		c := &clock{now: start}
		kept := rapid.SampledFrom([]int{1, 3, 10_000}).Draw(t, "history")
		cfg := sqlstore.EvidenceConfig{Now: c.time, HistoryPerCell: kept, HistoryFor: 2 * time.Hour, IDsFor: 1000 * time.Hour, MaxAudit: 2, NoCache: true}
		db, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		store, err := sqlstore.NewEvidence(db, cfg)
		require.NoError(t, err)
		cfg.NoHistory = true
		oblivious, err := sqlstore.NewEvidence(db, cfg)
		require.NoError(t, err)
		later := func() { c.advance(time.Duration(rapid.IntRange(0, 40).Draw(t, "minutes later")) * time.Minute) }

		for range rapid.IntRange(1, 12).Draw(t, "batches before") {
			by := store
			if rapid.IntRange(0, 7).Draw(t, "without history") == 0 {
				by = oblivious
			}
			_, err := by.Commit(ctx, someBatch(t))
			require.True(t, expected(err), "%v", err)
			if rapid.IntRange(0, 3).Draw(t, "sweep") == 0 {
				require.NoError(t, store.Sweep(ctx))
			}
			later()
		}
		copied, err := memstore.NewEvidence(memstore.EvidenceConfig{
			Now: c.time, HistoryPerCell: kept, HistoryFor: 2 * time.Hour, IDsFor: 1000 * time.Hour, MaxAudit: 2,
		})
		require.NoError(t, err)
		importInto(t, db, memstore.Stores{Evidence: copied})
		want, err := store.Read(ctx, nil, cells...)
		require.NoError(t, err)
		got, err := copied.Read(ctx, nil, cells...)
		require.NoError(t, err)
		require.Equal(t, want, got, "to the last bit")

		swept := func() {
			require.NoError(t, errors.Join(store.Sweep(ctx), copied.Sweep(ctx)))
			requireSame(t, store, copied)
		}
		swept()
		begunAnew := false // whether a cell was
		for range rapid.IntRange(1, 8).Draw(t, "batches after") {
			b := someBatch(t)
			got, gotErr := copied.Commit(ctx, b)
			if begunAnew && len(b.Retract) > 0 && errors.Is(gotErr, evidence.ErrForgotten) {
				continue // see docs/rough_edges.md: what no longer counts, memory may refuse to retract
			}
			begunAnew = begunAnew || len(b.Reset)+len(b.Rebuild)+len(b.Restart) > 0
			want, wantErr := store.Commit(ctx, b)
			require.Equal(t, wantErr == nil, gotErr == nil, "%v, %v", wantErr, gotErr)
			require.True(t, expected(gotErr), "%v", gotErr)
			require.Equal(t, want, got)
			swept() // what is over the number goes at once in memory, before anything grows old
			later()
			swept()
		}
	})
}

// everything is one store of each sort but evidence.
type everything struct {
	choices    strategy.Choices
	heuristics learning.Store
	patterns   patterns.Store
	errors     patterns.ErrorStore
	stream     strategy.Sink
}

func everythingIn(t require.TestingT, db *sqlstore.DB, now func() time.Time) (all everything) {
	var err [5]error
	all.heuristics = sqlstore.NewHeuristics(db)
	all.choices, err[0] = sqlstore.NewChoices(db, sqlstore.ChoicesConfig{Now: now})
	all.patterns, err[2] = sqlstore.NewPatterns(db, sqlstore.PatternsConfig{})
	all.errors, err[3] = sqlstore.NewErrors(db, sqlstore.ErrorsConfig{})
	all.stream, err[4] = sqlstore.NewStream(ctx, db, sqlstore.StreamConfig{Name: "inbox"})
	require.NoError(t, errors.Join(err[:]...))
	return all
}

func everythingInMemory(t require.TestingT, now func() time.Time) (all everything, into memstore.Stores) {
	choices, err := memstore.NewChoices(memstore.ChoicesConfig{Now: now})
	require.NoError(t, err)
	inbox := &memstore.Stream{}
	into = memstore.Stores{
		Choices: choices, Heuristics: &memstore.Heuristics{}, Patterns: &memstore.Patterns{},
		Errors: &memstore.Errors{}, Streams: map[string]*memstore.Stream{"inbox": inbox},
	}
	return everything{choices, into.Heuristics, into.Patterns, into.Errors, inbox}, into
}

// An operation does something to stores and returns what it was told.
type operation func(all everything) (any, error)

// someOperation draws any operation, at a moment.
func someOperation(t *rapid.T, now time.Time) operation {
	n := rapid.IntRange(0, 3).Draw(t, "number")
	id, text := fmt.Sprint(n), rapid.SampledFrom([]string{"", "a", "é\"\\\x01"}).Draw(t, "text")
	ago := now.Add(-time.Duration(rapid.IntRange(0, 48).Draw(t, "hours ago")) * time.Hour)
	right := rapid.IntRange(0, 5).Draw(t, "wrong revision") > 0
	revision := func(stored uint64) uint64 {
		if right {
			return stored
		}
		return stored + 1
	}
	switch rapid.IntRange(0, 11).Draw(t, "what") {
	case 0, 1:
		choice := learnersChoice(t, n, ago)
		return func(all everything) (any, error) { return nil, all.choices.Add(ctx, choice) }
	case 2:
		result := strategy.Result{ID: text, Value: 0.5, Source: text, At: ago}
		return func(all everything) (any, error) { return all.choices.Settle(ctx, choiceOf(n).ID, result) }
	case 3:
		return func(all everything) (any, error) { return all.choices.Expire(ctx, choiceOf(n).ID) }
	case 4:
		return func(all everything) (any, error) { return nil, all.choices.EndSession(ctx, "models", "s") }
	case 5:
		return func(all everything) (any, error) {
			h, _ := all.heuristics.Get(ctx, id)
			return all.heuristics.Put(ctx, learning.Heuristic{ID: id, Condition: text, Initial: 0.3, CreatedAt: ago, Revision: revision(h.Revision)})
		}
	case 6:
		return func(all everything) (any, error) { return nil, all.heuristics.Delete(ctx, id) }
	case 7, 8:
		return func(all everything) (any, error) {
			stored, _ := all.patterns.Pattern(ctx, patterns.PatternID(id))
			changes := patterns.Changes{Patterns: []patterns.Pattern{{
				ID: patterns.PatternID(id), Kind: patterns.Positive, Content: "c", Tags: []string{"t"}, State: patterns.Candidate,
				Override: &patterns.Override{State: patterns.Proven, At: ago}, CreatedAt: ago, Revision: revision(stored.Revision),
			}}}
			if n > 1 {
				changes.Transitions = []patterns.Transition{{ID: "t" + id, Pattern: patterns.PatternID(id), At: ago, Cause: text}}
				changes.Entries = []patterns.Entry{{Outcome: patterns.Outcome{ID: "o" + id, Task: "t" + id, At: ago, Files: []string{text}}}}
			}
			return nil, all.patterns.Commit(ctx, changes)
		}
	case 9:
		e := patterns.ErrorEntry{ID: id, Task: fmt.Sprint("t", n/2), Type: patterns.Timeout, Message: "m", At: ago}
		return func(all everything) (any, error) { return nil, all.errors.Add(ctx, e) }
	case 10:
		return func(all everything) (any, error) {
			return nil, errors.Join(all.errors.Resolve(ctx, id), all.errors.Forget(ctx, fmt.Sprint("t", n/3)))
		}
	default:
		return func(all everything) (any, error) {
			return nil, all.stream.Publish(ctx, evidence.Event{ID: id, Topic: "t", At: ago, Payload: []byte(text)})
		}
	}
}

// learnersChoice is a choice that a learner has made, with all that it has.
func learnersChoice(t *rapid.T, n int, at time.Time) (c strategy.Choice) {
	c = choiceOf(n)
	text, err := json.Marshal(map[string]any{
		"id": c.ID, "arm": "a", "session": "s", "item": fmt.Sprint("i", n%2), "category": "c", "context": "x", "at": at, "learner": "models",
		"parameters": []strategy.Setting{{Name: "p", Value: "1"}}, "draws": []strategy.Draw{{Arm: "a", Sample: 0.1}},
	})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &c))
	return c
}

// seen is all that can be read of stores, as text.
func seen(t require.TestingT, all everything) string {
	var everyone []any
	add := func(one any, err error) {
		require.True(t, expected(err), "%v", err)
		everyone = append(everyone, one)
	}
	lists := []any{
		list(all.choices.List(ctx, strategy.ChoiceFilter{})), list(all.choices.List(ctx, strategy.ChoiceFilter{Learner: "models", Item: "i1", Limit: 2})),
		list(all.heuristics.All(ctx)), list(all.patterns.Patterns(ctx, patterns.PatternQuery{})),
		list(all.patterns.Entries(ctx, patterns.EntryQuery{})), list(all.errors.Errors(ctx, "")), list(all.errors.Errors(ctx, "t1")),
	}
	for _, one := range lists {
		add(one, nil)
	}
	for n := range 4 {
		id := fmt.Sprint(n)
		add(list(all.patterns.Transitions(ctx, patterns.PatternID(id))), nil)
	}
	text, err := json.MarshalIndent(everyone, "", " ")
	require.NoError(t, err)
	return string(text)
}

// list collects what a list has, and the error with which it ends.
func list[T any](seq iter.Seq2[T, error]) (all []any) {
	for one, err := range seq {
		if err != nil {
			return append(all, err.Error())
		}
		all = append(all, one)
	}
	return all
}

// TestImportedStoresAgree does the same as TestImportedEvidenceAgrees for all other stores.
func TestImportedStoresAgree(t *testing.T) {
	skipRaced(t)
	at := sqliteFile(t, "sqlite")
	handle := at.handle(t)
	rapid.Check(t, func(t *rapid.T) {
		wipe(t, handle)
		c := &clock{now: start}
		db, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		stored := everythingIn(t, db, c.time)
		for range rapid.IntRange(5, 30).Draw(t, "operations before") {
			_, _ = someOperation(t, c.now)(stored)
			c.advance(time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes later")) * time.Minute)
		}
		copied, into := everythingInMemory(t, c.time)
		importInto(t, db, into)
		require.Equal(t, seen(t, stored), seen(t, copied))

		for range rapid.IntRange(1, 15).Draw(t, "operations after") {
			do := someOperation(t, c.now)
			want, wantErr := do(stored)
			got, gotErr := do(copied)
			require.Equal(t, wantErr == nil, gotErr == nil, "%v, %v", wantErr, gotErr)
			if wantErr == nil {
				w, err := json.Marshal(want)
				require.NoError(t, err)
				g, err := json.Marshal(got)
				require.NoError(t, err)
				require.JSONEq(t, string(w), string(g))
			}
			require.Equal(t, seen(t, stored), seen(t, copied))
			c.advance(time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes later")) * time.Minute)
		}
		require.Equal(t, drained(t, stored.stream), drained(t, copied.stream))
	})
}

// drained acknowledges all that is in a stream, and returns it.
func drained(t require.TestingT, stream any) (all []evidence.Event) {
	stream.(interface{ Close() }).Close()
	for {
		d, err := stream.(strategy.Source).Receive(ctx)
		if errors.Is(err, strategy.ErrClosed) {
			return all
		}
		require.NoError(t, err)
		require.NoError(t, d.Ack(ctx))
		e := d.Event()
		if len(e.Payload) == 0 { // drivers differ in what they make of none
			e.Payload = nil
		}
		all = append(all, e)
	}
}

// TestImportedDeliveries: what is in hand, or waits for a delay to be over, is delivered again at once.
func TestImportedDeliveries(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		db := at.db(t)
		stream, err := sqlstore.NewStream(ctx, db, sqlstore.StreamConfig{Name: "inbox", Holder: "somebody"})
		require.NoError(t, err)
		other, err := sqlstore.NewStream(ctx, db, sqlstore.StreamConfig{Name: "other"})
		require.NoError(t, err)
		for i := range 4 {
			require.NoError(t, stream.Publish(ctx, evidence.Event{ID: fmt.Sprint(i), Topic: "t", At: start}))
			require.NoError(t, other.Publish(ctx, evidence.Event{ID: fmt.Sprint(i), Topic: "t", At: start}))
		}
		for i := range 3 {
			d, err := stream.Receive(ctx)
			require.NoError(t, err)
			switch i {
			case 0:
				require.NoError(t, d.Ack(ctx))
			case 1:
				require.NoError(t, d.Reject(ctx, time.Hour))
			}
		}
		inbox := &memstore.Stream{}
		importInto(t, db, memstore.Stores{Streams: map[string]*memstore.Stream{"inbox": inbox}})
		var ids []string
		for _, e := range drained(t, inbox) {
			ids = append(ids, e.ID)
		}
		assert.Equal(t, []string{"1", "2", "3"}, ids)
	})
}

// TestImportedIDsAge: ids are known for as long after an import as they would have been, and for twice as long at the most.
func TestImportedIDsAge(t *testing.T) {
	c := &clock{now: start}
	at := sqliteFile(t, "sqlite")
	cfg := sqlstore.EvidenceConfig{Now: c.time, HistoryFor: time.Hour, IDsFor: 4 * time.Hour}
	db := at.db(t)
	store := newEvidence(t, db, cfg)
	for i := range 4 {
		add(t, store, observe(fmt.Sprint(i), start))
		c.advance(2 * time.Hour)
	}
	copied, err := memstore.NewEvidence(memstore.EvidenceConfig{Now: c.time, HistoryFor: time.Hour, IDsFor: 4 * time.Hour})
	require.NoError(t, err)
	importInto(t, db, memstore.Stores{Evidence: copied}) // eight, six, four and two hours after they were recorded
	assert.Equal(t, []string{"2", "3"}, add(t, copied, observe("2", start), observe("3", start)).Duplicates)
	assert.Empty(t, add(t, copied, observe("0", start), observe("1", start)).Duplicates)
	c.advance(2*time.Hour - 1)
	assert.Equal(t, []string{"3"}, add(t, copied, observe("3", start)).Duplicates, "three's time is not yet over")
	c.advance(2*time.Hour + 1)
	assert.Empty(t, add(t, copied, observe("2", start), observe("3", start)).Duplicates)
	assert.EqualValues(t, 8, count(t, copied))
}
