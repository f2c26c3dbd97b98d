package partition_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy/partition"
)

// A text has the same vector in every version of the layout: cells that were made of other vectors
// would not fit. Each text here is about one of the traits.
func TestVectorsStayTheSame(t *testing.T) {
	for text, want := range map[string]float64{
		"":                     1.0595695,
		"an Error is an error": 0.9052039,
		"ÜBER Größe":           0.7145441,
		"Почему сервер не отвечает?": 0.3116562,
		"שלום עולם":                                              0.5892495,
		"日本語のテキスト":                                               0.9251772,
		"한국어 텍스트":                                                1.5526113,
		"ภาษาไทย":                                                0.5741015,
		"12 + 30 = ? 10 % of 4 * 5":                              0.2992967,
		"٣ and 4":                                                0.3927634,
		"do not, never, don't, without":                          0.4615629,
		"- one\n  * two\n\n# three\n> 4 - 5 x > y":               0.8872782,
		"see https://a.example and http://b.example/x, ftp://c":  -0.0351089,
		"f(x) { return x[0]; } a_b <c> `d` \\ | $ & @":           1.1753859,
		"Dots. Commas, colons: marks! \"Quotes\" 'and' a-dash":   0.7447228,
		"😀 € a sign of no sort":                                  1.3656972,
		strings.Repeat("Averylongwordthatneverends", 3):          0.4354046,
		strings.Repeat("long lines\n", 1000) + "https://a https": -0.1586804,
	} {
		vectors, err := partition.Form(ctx, []string{text})
		require.NoError(t, err)
		got := 0. // of all numbers, each by another weight
		for i, x := range vectors[0] {
			got += float64(x) * math.Sin(float64(i+1))
		}
		assert.InDelta(t, want, got, 1e-6, "%q", text)
	}
}

// A record of cells that another program wrote is taken with what its numbers may be, and refused
// with any other.
func TestRecordsAreChecked(t *testing.T) {
	st := newStore(t)
	p := newPartition(t, partition.Config{Store: st, Clusters: 2})
	require.NoError(t, p.FitVectors(ctx, topics(60, 1, 0, 1)))
	type object = map[string]any
	cells := func(f object) []any { return f["cells"].([]any) }
	cell := func(f object, i int) object { return cells(f)[i].(object) }
	for name, one := range map[string]struct {
		change func(f object)
		good   bool
	}{
		"as it is":            {func(object) {}, true},
		"another format":      {func(f object) { f["format"] = 99 }, false},
		"no version":          {func(f object) { f["version"] = 0 }, false},
		"no origin":           {func(f object) { f["origin"] = "" }, false},
		"the greatest counts": {func(f object) { f["seen"], f["next"] = 1<<53, 1<<53 }, true},
		"too many seen":       {func(f object) { f["seen"] = 1<<53 + 2 }, false},
		"too many ids":        {func(f object) { f["next"] = 1<<53 + 2 }, false},
		"no cell":             {func(f object) { f["cells"] = []any{} }, false},
		"the next id":         {func(f object) { cell(f, 1)["id"] = f["next"] }, false},
		"an id twice":         {func(f object) { cell(f, 1)["id"] = cell(f, 0)["id"] }, false},
		"no mass":             {func(f object) { cell(f, 1)["mass"] = 0 }, true},
		"the greatest mass":   {func(f object) { cell(f, 1)["mass"] = 10_000 }, true},
		"too much mass":       {func(f object) { cell(f, 1)["mass"] = 10_001 }, false},
		"a negative mass":     {func(f object) { cell(f, 1)["mass"] = -1 }, false},
		"a short vector":      {func(f object) { cell(f, 1)["vector"] = "AACAPw==" }, false},
		"no vector":           {func(f object) { cell(f, 1)["vector"] = "" }, false},
		"a part of a number":  {func(f object) { cell(f, 1)["vector"] = "AACA" }, false},
	} {
		var file object
		require.NoError(t, json.Unmarshal([]byte(text(t, p)), &file))
		one.change(file)
		body, err := json.Marshal(object{"name": "partition", "partition": file})
		require.NoError(t, err)
		ref := store.Ref{Kind: "strategy.partition", ID: "partition"}
		var s store.Snapshot
		require.NoError(t, st.Read(ctx, &s, nil, []store.Ref{ref}))
		_, err = st.Commit(ctx, store.Batch{Records: []store.Record{{Ref: ref,
			Revision: s.Records[0].Revision, At: start, Body: store.Raw(body)}}})
		require.NoError(t, err, name)
		if _, err = partition.New(ctx, partition.Config{Store: st}); one.good {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorIs(t, err, heed.ErrDamaged, name)
		}
	}
}

// Vectors of any length are compared in all their numbers.
func TestAllNumbersOfAVectorCount(t *testing.T) {
	for n := 2; n <= 9; n++ {
		p := newPartition(t, partition.Config{Clusters: n})
		var all [][]float32
		for i := range 20 * n {
			v := make([]float32, n)
			v[i%n] = 1
			all = append(all, v)
		}
		require.NoError(t, p.FitVectors(ctx, all))
		seen := make(map[string]bool)
		for i := range n {
			one := make([]float32, n)
			for j := range one {
				one[j] = 0.2
			}
			one[i] = 0.9
			item, err := p.Of(all[i])
			require.NoError(t, err)
			near, err := p.Of(one)
			require.NoError(t, err)
			assert.Equal(t, item, near, "%d of %d", i, n)
			seen[item] = true
		}
		assert.Len(t, seen, n)
	}
}

// Vectors of another length than the last are left out. If too few are left for two cells, all
// texts are one item.
func TestTheLastEmbedderDecides(t *testing.T) {
	p := newPartition(t, partition.Config{Clusters: 4})
	for range 30 {
		see(t, p, [][]float32{{1, 0, 0}})
	}
	see(t, p, [][]float32{axis(0), axis(1)})
	require.NoError(t, p.Sweep(ctx, start))
	assert.Equal(t, []string{"partition:0", "partition:0"}, items(t, p, 0, 1))
}

func TestTheLongestVector(t *testing.T) {
	v := make([]float32, 1<<16)
	v[0] = 1
	_, err := newPartition(t, partition.Config{}).Of(v)
	require.NoError(t, err)
}
