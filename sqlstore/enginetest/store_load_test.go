package enginetest_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// loaders returns an empty store of each sort.
func loaders(t testing.TB) map[string]dumper {
	memory, err := memstore.New(memstore.Config{})
	require.NoError(t, err)
	none, err := memstore.New(memstore.Config{Retention: store.Retention{NoHistory: true}})
	require.NoError(t, err)
	all := map[string]dumper{"memory": memory, "memory without history": none}
	for _, b := range backends {
		all[b.name] = b.place(t).store(t, sqlstore.Config{})
	}
	return all
}

func fileOf(t testing.TB, rows ...dump.Row) []byte {
	var file bytes.Buffer
	w, err := dump.NewWriter(&file, 7)
	require.NoError(t, err)
	for _, row := range rows {
		require.NoError(t, w.Write(row))
	}
	require.NoError(t, w.Close())
	return file.Bytes()
}

// The rows of a small dump.
var (
	loadCell = evidence.Cell{Kind: "kind", Scope: "scope", Item: "item", Name: "name"}
	loadHash = dump.HashOfCell(loadCell)
	loadOf   = dump.Row{Cell: &dump.Cell{Hash: loadHash, Kind: "kind", Scope: "scope", Item: "item",
		Name: "name"}}
	loadSums = dump.Row{Tally: &dump.Tally{Cell: loadHash, Mass: 1, Squares: 1, Reward: 1,
		RewardSquares: 1, Positive: dump.Count{N: 1, Last: 9}}}
	loadOne = dump.Row{Observation: &dump.Observation{Cell: loadHash, ID: "1", Reward: 1, Weight: 1,
		At: 9, Recorded: 9}}
	loadID   = dump.Row{ID: &dump.ID{ID: text.HashOf("1"), Recorded: 9}}
	loadKind = dump.Row{Kind: &store.Kind{Name: "note"}}
)

func loadRecord(id, body string) dump.Row {
	return dump.Row{Record: &dump.Record{Kind: "note", ID: id, Revision: 1, At: 1,
		Keys: []string{"k"}, Body: []byte(body)}}
}

// Each store refuses rows that do not fit together, at the same line, and is empty afterwards.
func TestLoadRefusesAlike(t *testing.T) {
	two, late := *loadOne.Observation, *loadOne.Observation
	two.ID, late.At = "2", 10
	few, source := *loadSums.Tally, *loadSums.Tally
	few.Positive.Lost, source.Source = 9, "s"
	faults := map[string][]dump.Row{ // of the last row
		"a cell twice":                   {loadOf, loadOf},
		"sums of no cell":                {loadSums},
		"sums twice":                     {loadOf, loadSums, loadSums},
		"sums of an origin":              {loadOf, {Tally: &source}},
		"an observation of no cell":      {loadOne},
		"an observation without sums":    {loadOf, loadOne},
		"an observation after the last":  {loadOf, loadSums, {Observation: &late}},
		"more than the sums":             {loadOf, loadSums, loadOne, {Observation: &two}},
		"more than is not lost":          {loadOf, {Tally: &few}, loadOne},
		"evidence after ids":             {loadOf, loadSums, loadID, loadOne},
		"a loss of no cell":              {{Lost: &dump.Lost{ID: text.HashOf("1"), Cell: loadHash}}},
		"an id twice":                    {loadID, loadID},
		"a record of an undeclared kind": {loadRecord("1", "{}")},
		"a record twice": {loadKind, loadRecord("1", "{}"), loadRecord("2", "{}"),
			loadRecord("1", "[]")},
	}
	// far apart, so that they are not written together
	apart := []dump.Row{loadKind, loadRecord("1", "{}")}
	for i := range 1200 {
		apart = append(apart, loadRecord(fmt.Sprint("n", i), "{}"))
	}
	faults["a record again much later"] = append(apart, loadRecord("1", "{}"))

	all := loaders(t)
	empty := make(map[string][]string)
	for name, st := range all {
		empty[name] = lines(t, st)
	}
	for what, rows := range faults {
		file := fileOf(t, rows...)
		for name, st := range all {
			var fault *heed.InputError
			require.ErrorAs(t, st.Load(ctx, bytes.NewReader(file)), &fault, "%s: %s", name, what)
			assert.Equal(t, fmt.Sprint("line ", 1+len(rows)), fault.Field, "%s: %s: %v", name, what,
				fault)
			alike(t, empty[name], lines(t, st), what)
		}
	}
}

// An observation, or the loss of one, whose id has no row of its own does not count again.
func TestLoadKnowsWhatItHas(t *testing.T) {
	sums := *loadSums.Tally
	sums.Positive.N, sums.Positive.Lost = 2, 9
	lost := dump.Row{Lost: &dump.Lost{ID: text.HashOf("lost"), Cell: loadHash, Recorded: 9}}
	kept := dump.Row{Observation: &dump.Observation{Cell: loadHash, ID: "1", Reward: 1, Weight: 1,
		At: 9, Recorded: 9}}
	again := []evidence.Observation{
		{ID: "1", Cell: loadCell, Reward: 1, Weight: 1, At: evidence.Instant(9).Time()},
		{ID: "lost", Cell: loadCell, Reward: 1, Weight: 1, At: evidence.Instant(9).Time()},
	}
	for name, st := range loaders(t) {
		require.NoError(t, st.Load(ctx, bytes.NewReader(fileOf(t, loadOf, dump.Row{Tally: &sums}, kept,
			lost, lost))), name)
		receipts, err := st.Commit(ctx, store.Batch{Observations: again})
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"1", "lost"}, receipts[0].Duplicates, name)
	}
}
