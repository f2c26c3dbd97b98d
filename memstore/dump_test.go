package memstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// full returns a store that has something of everything, and its dump.
func full(t testing.TB) (*memstore.Store, []byte) {
	st := newStore(t,
		memstore.Config{Now: newClock().time, Retention: store.Retention{HistoryPerCell: 2}}, notes)
	for i := range 4 {
		o := observe(fmt.Sprint("plain", i), start.Add(time.Duration(i)*time.Second))
		apart := o
		apart.ID, apart.Cell.Kind, apart.Channel, apart.Source = fmt.Sprint("apart", i), "apart",
			"spoken", fmt.Sprint("source", i%2)
		apart.Reward, apart.Weight = 0.25, float64(i)
		put(t, st, store.Batch{
			ID: fmt.Sprint("batch", i), Policies: map[string]evidence.Policy{
				"apart": {HalfLife: time.Hour, ByOrigin: true}},
			Observations: []evidence.Observation{o, apart},
			Records: []store.Record{record(fmt.Sprint(i), 0, start, note{Text: "<é>", By: "Ann"},
				store.PersonKey("Ann"), "k=1")},
		})
	}
	r, _ := get(t, st, "1")
	restarted := cell
	restarted.Item = "restarted"
	put(t, st, store.Batch{
		Retract: []string{"plain3"}, Restart: []store.Restart{{Cell: restarted, At: start}},
		Records: []store.Record{{Ref: r.Ref, Revision: r.Revision}},
	})
	var file bytes.Buffer
	require.NoError(t, st.Dump(ctx, &file))
	return st, file.Bytes()
}

func TestDumpRoundTrip(t *testing.T) {
	st, file := full(t)
	loaded := newStore(t, memstore.Config{Now: newClock().time})
	require.NoError(t, loaded.Load(ctx, bytes.NewReader(file)))
	for _, scope := range []string{"kind", "apart"} {
		want, got := listed(t, st, scope), listed(t, loaded, scope)
		require.NotEmpty(t, want)
		assert.Equal(t, want, got)
	}
	assert.Equal(t, history(t, st, cell), history(t, loaded, cell))
	q := store.Query{Kind: "note", Oldest: true}
	assert.Equal(t, []string{"0", "2", "3"}, found(t, loaded, q))
	receipt := put(t, loaded, store.Batch{Observations: []evidence.Observation{observe("plain0",
		start), observe("plain3", start)}})[0]
	assert.Equal(t, []string{"plain0", "plain3"}, receipt.Duplicates)
	assert.True(t, put(t, loaded, store.Batch{ID: "batch2"})[0].Duplicate)
	_, err := loaded.Commit(ctx, store.Batch{Retract: []string{"plain0"}})
	require.ErrorIs(t, err, evidence.ErrForgotten, "the history no longer had it")
	put(t, loaded, store.Batch{Retract: []string{"plain3"}}) // once more
	removed := record("1", 0, start, note{})
	before := put(t, st, store.Batch{Records: []store.Record{removed}})[0].Revision
	assert.Equal(t, before, put(t, loaded, store.Batch{Records: []store.Record{removed}})[0].Revision,
		"no revision comes again")
	run(t, loaded, store.Job{Forget: []string{"Ann"}})
	_, n := get(t, loaded, "2")
	assert.Regexp(t, "^forgotten-", n.By, "the kind was loaded, too")
}

func listed(t testing.TB, st store.Store, kind string) (parts []evidence.Part) {
	for part, err := range st.List(ctx, store.CellQuery{Kind: kind, Scope: "scope"}) {
		require.NoError(t, err)
		parts = append(parts, part)
	}
	return parts
}

// A dump with a fault changes nothing, and the store can be loaded afterwards.
func TestLoadRefuses(t *testing.T) {
	_, file := full(t)
	st := newStore(t, memstore.Config{Now: newClock().time})
	refused := func(text []byte, want string) {
		t.Helper()
		err := st.Load(ctx, bytes.NewReader(text))
		require.ErrorAs(t, err, new(*heed.InputError))
		require.ErrorContains(t, err, want)
		require.Empty(t, listed(t, st, "kind"))
		require.Empty(t, found(t, st, store.Query{Kind: "note"}))
	}
	refused(nil, "cut off")
	refused(file[:len(file)/2], "cut off")
	refused(file[:len(file)-1], "cut off")
	refused(bytes.Replace(file, []byte(`"plain2"`), []byte(`"plain9"`), 1), "changed")
	for _, other := range []string{"2", "4"} { // an earlier layout, and a newer one
		refused(bytes.Replace(file, []byte(`"version":3`), []byte(`"version":`+other), 1),
			"version "+other)
	}
	failure := errors.New("the disk has gone")
	require.ErrorIs(t, st.Load(ctx, io.MultiReader(bytes.NewReader(file[:500]), failing{failure})),
		failure)
	require.NoError(t, st.Load(ctx, bytes.NewReader(file)))
	for _, b := range []store.Batch{
		{ID: "an id alone"}, {Observations: []evidence.Observation{observe("1", start)}},
		{Records: []store.Record{record("a record", 0, start, note{})}},
	} {
		taken := newStore(t, memstore.Config{Now: newClock().time}, notes)
		put(t, taken, b)
		require.ErrorIs(t, taken.Load(ctx, bytes.NewReader(file)), heed.ErrConflict)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestDumpErrors(t *testing.T) {
	st, _ := full(t)
	failure := errors.New("the disk is full")
	require.ErrorIs(t, st.Dump(ctx, failing{failure}), failure)
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "huge"}))
	text := strings.Repeat("x", dump.MaxLine)
	put(t, st, store.Batch{Records: []store.Record{{Ref: store.Ref{Kind: "huge", ID: "1"}, At: start,
		Body: store.Of(text)}}})
	require.ErrorContains(t, st.Dump(ctx, io.Discard), "huge")
	put(t, st, store.Batch{ID: "not locked"})
}

// A value that only memory keeps, because it is too large, is an error of the dump, and not of the
// load when the dump is needed.
func TestDumpOfALargeValue(t *testing.T) {
	st := &memstore.Store{}
	require.NoError(t, st.Declare(ctx, store.Kind{Name: "note"}))
	commit := func(body store.Body, revision uint64) {
		_, err := st.Commit(ctx, store.Batch{Records: []store.Record{{
			Ref: store.Ref{Kind: "note", ID: "1"}, Revision: revision, At: time.Unix(1, 0), Body: body,
		}}})
		require.NoError(t, err)
	}
	commit(store.Of(strings.Repeat("x", store.MaxBody)), 0)
	var size *heed.SizeError
	require.ErrorAs(t, st.Dump(ctx, io.Discard), &size)
	assert.Contains(t, size.What, `note "1"`)
	commit(store.Of("x"), 1)
	require.NoError(t, st.Dump(ctx, io.Discard))
}

// TestLoadBrokenRows loads rows that are valid by themselves and do not fit together.
func TestLoadBrokenRows(t *testing.T) {
	hash := dump.HashOfCell(cell)
	of := dump.Row{Cell: &dump.Cell{Hash: hash, Kind: cell.Kind, Scope: cell.Scope, Item: cell.Item,
		Name: cell.Name}}
	sums := dump.Row{Tally: &dump.Tally{Cell: hash, Mass: 1, Squares: 1, Reward: 1, RewardSquares: 1,
		Positive: dump.Count{N: 1, Last: 9}}}
	one := dump.Row{Observation: &dump.Observation{Cell: hash, ID: "1", Reward: 1, Weight: 1, At: 9}}
	later, both := *one.Observation, *sums.Tally
	later.At, both.Mass, both.Squares, both.Reward, both.RewardSquares = 10, 2, 2, 2, 2
	both.Positive = dump.Count{N: 2, Last: 10}
	kind := dump.Row{Kind: &store.Kind{Name: "note"}}
	rec := dump.Row{Record: &dump.Record{Kind: "note", ID: "1", Revision: 1, At: 1,
		Body: []byte("{}")}}
	id := dump.Row{ID: &dump.ID{ID: hash}}
	for name, rows := range map[string][]dump.Row{
		"sums of no cell":      {sums},
		"an observation twice": {of, sums, one, one},
		"its id at two times":  {of, {Tally: &both}, one, {Observation: &later}},
		"an id twice":          {id, id},
		"a record twice":       {kind, rec, rec},
	} {
		st := newStore(t, memstore.Config{})
		require.ErrorAs(t, st.Load(ctx, bytes.NewReader(write(t, rows...))), new(*heed.InputError),
			name)
	}
	st := newStore(t, memstore.Config{})
	require.NoError(t, st.Load(ctx, bytes.NewReader(write(t, of, sums, one, kind, rec))))
	receipt := put(t, st, store.Batch{Observations: []evidence.Observation{observe("1", start)}})[0]
	assert.Equal(t, []string{"1"}, receipt.Duplicates, "what is in the history is known")
}

func write(t testing.TB, rows ...dump.Row) []byte {
	var file bytes.Buffer
	w, err := dump.NewWriter(&file, 7)
	require.NoError(t, err)
	for _, row := range rows {
		require.NoError(t, w.Write(row))
	}
	require.NoError(t, w.Close())
	return file.Bytes()
}

// TestLoadKeepsLess loads into stores that keep less than the one that was dumped.
func TestLoadKeepsLess(t *testing.T) {
	whole := newStore(t, memstore.Config{Now: newClock().time}, notes)
	for i := range 5 {
		o := observe(fmt.Sprint(i), start.Add(time.Duration(i)*time.Second))
		put(t, whole, store.Batch{Observations: []evidence.Observation{o},
			Records: []store.Record{record(fmt.Sprint(i), 0, o.At, note{})}})
	}
	var file bytes.Buffer
	require.NoError(t, whole.Dump(ctx, &file))
	few := newStore(t, memstore.Config{Retention: store.Retention{HistoryPerCell: 2,
		Limits: map[string]store.Limits{"note": {Most: 3}}}, Now: newClock().time})
	require.NoError(t, few.Load(ctx, bytes.NewReader(file.Bytes())))
	assert.Equal(t, []string{"4", "3"}, history(t, few, cell))
	assert.Equal(t, []string{"4", "3", "2"}, found(t, few, store.Query{Kind: "note"}))
	_, err := few.Commit(ctx, store.Batch{Retract: []string{"1"}})
	require.ErrorIs(t, err, evidence.ErrForgotten)
	put(t, few, store.Batch{Retract: []string{"3"}})
	none := newStore(t,
		memstore.Config{Retention: store.Retention{NoHistory: true}, Now: newClock().time})
	require.NoError(t, none.Load(ctx, bytes.NewReader(file.Bytes())))
	assert.EqualValues(t, 5, listed(t, none, "kind")[0].Tally.N())
	_, err = none.Commit(ctx, store.Batch{Rebuild: []evidence.Cell{cell}})
	require.ErrorIs(t, err, evidence.ErrForgotten)
	again := reload(t, none,
		memstore.Config{Retention: store.Retention{NoHistory: true}, Now: newClock().time})
	_, err = again.Commit(ctx, store.Batch{Retract: []string{"1"}})
	require.ErrorIs(t, err, evidence.ErrForgotten)
	// A store that keeps a history can't take back what came to one that kept none.
	again = reload(t, none, memstore.Config{Now: newClock().time})
	_, err = again.Commit(ctx, store.Batch{Retract: []string{"1"}})
	require.ErrorIs(t, err, evidence.ErrForgotten)
}

// TestLoadBesideCommits commits while a store is loaded: either the commit is in the store that was
// loaded, or the load was refused.
func TestLoadBesideCommits(t *testing.T) {
	_, file := full(t)
	for range 50 {
		st := newStore(t, memstore.Config{Now: newClock().time})
		var wait sync.WaitGroup
		var failure error
		wait.Go(func() { failure = st.Load(ctx, bytes.NewReader(file)) })
		wait.Go(func() {
			_, err := st.Commit(ctx, store.Batch{ID: "beside"})
			assert.NoError(t, err)
			assert.NoError(t, st.Declare(ctx, store.Kind{Name: "beside"}))
		})
		wait.Wait()
		if failure != nil {
			require.ErrorIs(t, failure, heed.ErrConflict)
		}
		require.Equal(t, failure == nil, len(listed(t, st, "kind")) > 0)
		require.True(t, put(t, st, store.Batch{ID: "beside"})[0].Duplicate)
		put(t, st, store.Batch{Records: []store.Record{{Ref: store.Ref{Kind: "beside", ID: "1"},
			At: start, Body: store.Of(1)}}})
	}
}

// silent is a value that must not become JSON.
type silent struct{ n int }

func (silent) MarshalJSON() ([]byte, error) { return nil, errors.New("JSON was asked for") }

// TestStoreMakesNoJSON does everything but to dump and to forget: values stay what they are.
func TestStoreMakesNoJSON(t *testing.T) {
	st := newStore(t, memstore.Config{}, store.Kind{Name: "silent",
		Limits: store.Limits{For: time.Hour, Most: 3}})
	var s store.Snapshot
	for i := range 5 {
		r := store.Record{Ref: store.Ref{Kind: "silent", ID: fmt.Sprint(i)}, At: time.Now(),
			Keys: []string{"k=1", "person=bob"}, Body: store.Of(&silent{i})}
		run(t, st, store.Job{Forget: []string{"ann"}})
		r.Revision = put(t, st, store.Batch{Records: []store.Record{r}})[0].Revision
		require.NoError(t, st.Read(ctx, &s, nil, []store.Ref{r.Ref}))
		got, err := store.Decode[*silent](s.Records[i].Body)
		require.NoError(t, err)
		require.Equal(t, i, got.n)
		r.Keys = nil
		put(t, st, store.Batch{Records: []store.Record{r}})
	}
	assert.Len(t, found(t, st, store.Query{Kind: "silent"}), 3)
	require.NoError(t, st.Sweep(ctx, time.Time{}))
	require.ErrorContains(t, st.Dump(ctx, io.Discard), "JSON was asked for")
}

// FuzzLoad loads rows of any kind, in a file that is whole. The loaded store can be used in every
// way, and dumped again.
func FuzzLoad(f *testing.F) {
	_, file := full(f)
	lines := bytes.SplitAfter(bytes.TrimSpace(file), []byte("\n"))
	f.Add(bytes.Join(lines[1:len(lines)-1], nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		var rows []dump.Row
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			var row dump.Row
			if json.Unmarshal(line, &row) == nil {
				rows = append(rows, row)
			}
		}
		var whole bytes.Buffer
		w, err := dump.NewWriter(&whole, 7)
		require.NoError(t, err)
		for _, row := range rows {
			if w.Write(row) != nil {
				return
			}
		}
		require.NoError(t, w.Close())
		cfg := memstore.Config{Now: newClock().time, Retention: store.Retention{HistoryPerCell: 2}}
		st := newStore(t, cfg)
		if err := st.Load(ctx, &whole); err != nil {
			require.ErrorAs(t, err, new(*heed.InputError))
			require.NoError(t, st.Load(ctx, bytes.NewReader(file)), "it is still empty")
			return
		}
		use(t, st, rows)
		use(t, reload(t, st, cfg), rows)
	})
}

// use does to a store whatever rows tell of.
func use(t *testing.T, st *memstore.Store, rows []dump.Row) {
	try := func(b store.Batch) {
		if _, err := st.Commit(ctx, b); err != nil {
			for _, expected := range []error{evidence.ErrForgotten, heed.ErrConflict, heed.ErrNotFound,
				evidence.ErrFull} {
				if errors.Is(err, expected) {
					return
				}
			}
			require.ErrorAs(t, err, new(*heed.InputError))
		}
	}
	cells := make(map[text.Hash]evidence.Cell)
	for _, row := range rows {
		switch {
		case row.Cell != nil:
			c := row.Cell.EvidenceCell()
			cells[row.Cell.Hash] = c
			o := evidence.Observation{ID: "new", Cell: c, Reward: 1, Weight: 1, At: start}
			try(store.Batch{
				Observations: []evidence.Observation{o}, PartsOf: []evidence.Cell{c},
				Policies: map[string]evidence.Policy{c.Kind: row.Cell.Policy()},
			})
			try(store.Batch{Rebuild: []evidence.Cell{c}})
		case row.Observation != nil:
			try(store.Batch{Retract: []string{row.Observation.ID}})
		case row.Tally != nil:
			of := store.SourceOf{Cell: cells[row.Tally.Cell], Source: row.Tally.Source}
			try(store.Batch{Expunge: []store.SourceOf{of}})
		case row.Record != nil:
			try(store.Batch{Records: []store.Record{
				{Ref: store.Ref{Kind: row.Record.Kind, ID: row.Record.ID}, Revision: row.Record.Revision}}})
		}
	}
	require.NoError(t, st.Sweep(ctx, time.Time{}))
}

// A dump and a load end with their context, whatever the dump has.
func TestDumpsEndWithTheirContext(t *testing.T) {
	many := newStore(t, memstore.Config{Now: newClock().time})
	var b store.Batch
	for i := range 1100 {
		b.Observations = append(b.Observations, observe(fmt.Sprint(i), start))
	}
	put(t, many, b)
	declared := newStore(t, memstore.Config{}, notes)
	id := newStore(t, memstore.Config{})
	put(t, id, store.Batch{ID: "id"})
	for name, st := range map[string]*memstore.Store{"cells": many, "kinds": declared, "ids": id} {
		require.ErrorIs(t, st.Dump(&countdown{ctx, 1}, io.Discard), context.Canceled, name)
	}
	require.ErrorIs(t, many.Dump(&countdown{ctx, 2}, io.Discard), context.Canceled)
	var file bytes.Buffer
	require.NoError(t, many.Dump(ctx, &file))
	loaded := newStore(t, memstore.Config{Now: newClock().time})
	require.ErrorIs(t, loaded.Load(&countdown{ctx, 1}, bytes.NewReader(file.Bytes())),
		context.Canceled)
	require.NoError(t, loaded.Load(ctx, &file))
}

// What is committed while a dump is read stays, and the load is refused.
func TestLoadAfterACommit(t *testing.T) {
	_, file := full(t)
	st := newStore(t, memstore.Config{Now: newClock().time})
	beside := readFunc(func([]byte) (int, error) {
		put(t, st, store.Batch{ID: "beside"})
		return 0, io.EOF
	})
	require.ErrorIs(t, st.Load(ctx, io.MultiReader(bytes.NewReader(file), beside)), heed.ErrConflict)
	assert.True(t, put(t, st, store.Batch{ID: "beside"})[0].Duplicate)
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// A dump for a store of the same kind keeps the places of records, also behind records that went.
func TestDumpWithPlaces(t *testing.T) {
	st := newStore(t, memstore.Config{Now: newClock().time}, notes)
	for i := range 4 {
		put(t, st, store.Batch{Records: []store.Record{record(fmt.Sprint(i), 0, start, note{})}})
	}
	first, _ := get(t, st, "0")
	put(t, st, store.Batch{Records: []store.Record{{Ref: first.Ref, Revision: first.Revision}}})
	var place string
	for r, err := range st.Find(ctx, store.Query{Kind: "note", Oldest: true, Limit: 1}) {
		require.NoError(t, err)
		place = r.Place
	}
	var file bytes.Buffer
	require.NoError(t, st.Dump(ctx, dump.WithPlaces{Writer: &file}))
	loaded := newStore(t, memstore.Config{Now: newClock().time})
	require.NoError(t, loaded.Load(ctx, &file))
	assert.Equal(t, []string{"2", "3"},
		found(t, loaded, store.Query{Kind: "note", Oldest: true, After: place}))
}

// A dump notes which cell lacks an observation of an id that counts in several cells, and which ids
// were taken back.
func TestADumpNotesWhatIsLost(t *testing.T) {
	st := newStore(t,
		memstore.Config{Retention: store.Retention{HistoryPerCell: 1}, Now: newClock().time})
	first, second, next := observe("a", start), observe("a", start), observe("b", start.Add(1e9))
	second.Cell.Name, next.Cell.Name = "other", "other"
	observed(t, st, first, second)
	observed(t, st, next, observe("c", start.Add(-1e9))) // which is not kept
	put(t, st, store.Batch{Retract: []string{"b"}})
	loaded := reload(t, st, memstore.Config{Now: newClock().time})
	for _, id := range []string{"a", "c"} {
		_, err := loaded.Commit(ctx, store.Batch{Retract: []string{id}})
		require.ErrorIs(t, err, evidence.ErrForgotten, id)
	}
	none := reload(t, st,
		memstore.Config{Now: newClock().time, Retention: store.Retention{NoHistory: true}})
	put(t, none, store.Batch{Retract: []string{"b"}}) // again, which has no effect
}
