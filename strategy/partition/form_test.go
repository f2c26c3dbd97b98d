package partition_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/strategy/partition"
)

// kinds are texts of five kinds that a person tells apart at a glance.
var kinds = []func(i int) string{
	func(i int) string { return fmt.Sprintf("What is the phone number of customer %d?", 100+i) },
	func(i int) string {
		return fmt.Sprintf("func f%d(x []int) {\n\tfor i := range x {\n\t\tx[i] = y[%d]\n\t}\n}", i, i)
	},
	func(i int) string {
		return fmt.Sprintf("Bitte schreiben Sie dem Kunden Nummer %d eine freundliche Antwort auf "+
			"seine Beschwerde.", i)
	},
	func(i int) string {
		return fmt.Sprintf("Почему сервер %d не отвечает на запросы?", i)
	},
	func(i int) string { return fmt.Sprintf("%d + %d * 3 = ?", i, 7*i) },
}

func texts(n int) (all []string) {
	for i := range n {
		all = append(all, kinds[i%len(kinds)](i))
	}
	return all
}

// TestKindsOfTextsAreToldApart without a model.
func TestKindsOfTextsAreToldApart(t *testing.T) {
	p := newPartition(t, partition.Config{Clusters: len(kinds)})
	learnTexts(t, p, texts(200))
	right := 0
	cells := make(map[string]int)
	for i := range 200 {
		item, _, err := p.Item(ctx, kinds[i%len(kinds)](1000+i))
		require.NoError(t, err)
		if kind, ok := cells[item]; !ok {
			cells[item] = i % len(kinds)
			right++
		} else if kind == i%len(kinds) {
			right++
		}
	}
	assert.Len(t, cells, len(kinds))
	assert.Equal(t, 200, right)
}

// Any text has a vector of one length that is finite and not zero, always the same.
func TestForm(t *testing.T) {
	all := append(texts(10), "", " ", "\x00", "\xff\xfe", "no", "日本語のテキスト", "한국어 텍스트", "ไทย", "😀😀",
		strings.Repeat("long text ", 100_000))
	vectors, err := partition.Form(ctx, all)
	require.NoError(t, err)
	again, err := partition.Form(ctx, all)
	require.NoError(t, err)
	assert.Equal(t, vectors, again)
	for i, v := range vectors {
		require.Len(t, v, len(vectors[0]))
		var squares float64
		for _, x := range v {
			squares += float64(x) * float64(x)
		}
		assert.True(t, squares > 0.5 && !math.IsInf(squares, 0), all[i])
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = partition.Form(over, all)
	require.ErrorIs(t, err, context.Canceled)
}

// Each pair of texts has one difference, and so have their vectors.
func TestFormLooksAt(t *testing.T) {
	for what, pair := range map[string][2]string{
		"digits":     {"order 1 2 3 4 5 6", "order a b c d e f"},
		"capitals":   {"stop it now", "STOP IT NOW"},
		"questions":  {"is it up", "is it up?"},
		"lines":      {"a b c d", "a\nb\nc\nd"},
		"lists":      {"\n- a", "\n. a"},
		"negation":   {"it is not up", "it is ant up"},
		"links":      {"see http://a", "see http a"},
		"code":       {"a{b}", "a.b."},
		"formulas":   {"a=b", "a b"},
		"words":      {"the printer jams", "the invoice jams"},
		"the length": {"go", strings.Repeat("go ", 100)},
	} {
		v, err := partition.Form(ctx, pair[:])
		require.NoError(t, err)
		assert.NotEqual(t, v[0], v[1], what)
	}
}

// TestTheFormCountsMoreThanTheWords, which still count where the form is the same.
func TestTheFormCountsMoreThanTheWords(t *testing.T) {
	v, err := partition.Form(ctx, []string{"Why does the printer jam?", "Why does the invoice jam?",
		"printer, jam: printer=1; jam=1; {printer} {jam} 2 3 4"})
	require.NoError(t, err)
	apart := func(i, j int) (squares float64) {
		for n := range v[i] {
			squares += float64(v[i][n]-v[j][n]) * float64(v[i][n]-v[j][n])
		}
		return squares
	}
	assert.Greater(t, apart(0, 1), 0.01)
	assert.Greater(t, apart(0, 2), 4*apart(0, 1))
}

// Text behind the first characters costs nothing and changes nothing.
func TestFormReadsABoundedText(t *testing.T) {
	long := strings.Repeat("word ", 8192/5+1)
	v, err := partition.Form(ctx, []string{long, long + strings.Repeat("= 17 Кот\n", 1000)})
	require.NoError(t, err)
	assert.Equal(t, v[0], v[1])
}

// BenchmarkItem times a text of 200 characters with 30 cells.
func BenchmarkItem(b *testing.B) {
	text := strings.Repeat("Why does the printer on the second floor jam? ", 5)[:200]
	p := newPartition(b, partition.Config{})
	learnTexts(b, p, texts(400))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.Item(ctx, text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOf times a vector of 1,536 numbers, as models give them, with 30 cells.
func BenchmarkOf(b *testing.B) {
	p := newPartition(b, partition.Config{})
	all := make([][]float32, 300)
	for i := range all {
		all[i] = make([]float32, 1536)
		all[i][i%30*50], all[i][i] = 1, 0.5
	}
	learn(b, p, all)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Of(all[7]); err != nil {
			b.Fatal(err)
		}
	}
}
