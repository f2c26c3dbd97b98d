package partition_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/strategy/partition"
)

// A text has the same vector in every version of the layout: cells that were made of other vectors
// would not fit. Each text here is about one of the traits.
func TestVectorsStayTheSame(t *testing.T) {
	for text, want := range map[string]float64{
		"":                     1.0595695,
		"an Error is an error": 0.9052039,
		"A Zoo, a zoo, 0 or 9": 0.3115316,
		"ÜBER Größe":           0.7145441,
		"Почему сервер не отвечает?": 0.3116562,
		"שלום עולם":                                             0.5892495,
		"日本語のテキスト":                                              0.9251772,
		"한국어 텍스트":                                               1.5526113,
		"ภาษาไทย":                                               0.5741015,
		"12 + 30 = ? 10 % of 4 * 5":                             0.2992967,
		"٣ and 4":                                               0.3927634,
		"do not, never, don't, without":                         0.4615629,
		"- one\n  * two\n\n# three\n> 4 - 5 x > y":              0.8872782,
		"see https://a.example and http://b.example/x, ftp://c": -0.0351089,
		"f(x) { return x[0]; } a_b <c> `d` \\ | $ & @":          1.1753859,
		"Dots. Commas, colons: marks! \"Quotes\" 'and' a-dash":  0.7447228,
		"1": 0.4594485, "* a": 0.5740155, "# a": 1.0603103, "> a": 1.4578037, "  - a": 0.7834354,
		"without": 0.7217783, "ab😀cd": 1.3353110, "ab\x7fcd": 1.3353110, "日a": 0.7402887,
		"\u024f": 0.8600246, "\u0250": 0.5217221, "\u052f": 0.1310798, // where scripts end
		strings.Repeat("long text ", 819) + "z?":                 0.5954417, // the last that is read
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
		learn(t, p, append(all, all...))
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

func TestTheLongestVector(t *testing.T) {
	v := make([]float32, 1<<16)
	v[0] = 1
	_, err := newPartition(t, partition.Config{}).Of(v)
	require.NoError(t, err)
}
