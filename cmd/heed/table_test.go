package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// cells are texts as a store may have them: with wide, combining and joined characters.
var cells = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "b-", " ", "id", "surely", "漢", "字", "e\u0301", "👍🏽", "👨‍👩‍👧", "🇩🇪", "ｗ", "\u0e01\u0e33",
		"ß", "…",
	}), 1, 30).Draw(t, "parts")
	return show(strings.Join(parts, ""))
})

// listingsOf are tables with all kinds of columns.
var listingsOf = rapid.Custom(func(t *rapid.T) *listing {
	columns := []string{"id"}
	for n := range rapid.IntRange(0, 7).Draw(t, "columns") {
		mark := rapid.SampledFrom([]string{"", ">", "~", "?", "?>", "?~", "?~long title of "}).Draw(t,
			"mark")
		columns = append(columns, mark+string(rune('p'+n)))
	}
	l := newTable(columns...)
	bars := rapid.Bool().Draw(t, "bars")
	for range rapid.IntRange(1, 5).Draw(t, "rows") {
		var row []any
		for range columns {
			row = append(row, plain(cells.Draw(t, "cell")))
		}
		l.add(row...)
		if bars {
			l.intervals = append(l.intervals, interval{0.2, 0.5, 0.9})
		}
	}
	return l
})

// drawn returns what a terminal of a width shows of a table.
func drawn(l *listing, width int) string {
	var b strings.Builder
	l.print(&printer{w: &b, terminal: true, width: width})
	return b.String()
}

// No text is cut, columns that are not extra are shown, and a table is not wider than the terminal
// unless its names are.
func TestTablesShowNamesWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l, width := listingsOf.Draw(t, "listing"), rapid.IntRange(2, 200).Draw(t, "width")
		shown, widths := l.widths(width)
		need := 0
		for _, i := range shown {
			need += widths[i] + len(between)
		}
		got := drawn(l, width)
		for line := range strings.Lines(got) {
			require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), max(width, need))
		}
		for i, c := range l.columns {
			require.True(t, c.extra || slices.Contains(shown, i))
		}
		for _, row := range l.rows {
			require.Contains(t, got, strings.TrimRight(row[0], " "))
		}
	})
}

func TestColumnsAreLeftOutFromTheLast(t *testing.T) {
	t.Parallel()
	l := newTable("id", "~rule", ">mean", "?>low", "?>high", "?note")
	l.add("0123456789", "ask before you delete anything", "0.5", "0.1", "0.9", "something")
	assert.Equal(t, `id          rule                      mean  low  high
0123456789  ask before you delete      0.5  0.1   0.9
            anything
`, drawn(l, 56))
	assert.Contains(t, drawn(l, 50), "mean  low\n")
}

func TestWordsStayWhole(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "heed rules approve\nfa0a5a1c-b1cd-4460-a58a-ed5c3c248e07\n--yes",
		wrap("heed rules approve fa0a5a1c-b1cd-4460-a58a-ed5c3c248e07 --yes", 36))
	assert.Equal(t, "abcd\ne f", wrap("abcde f", 4), "a word that is wider than a line is broken")
}

func TestBar(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		i    interval
		want string
	}{
		{interval{0, 0.5, 1}, "├────●────┤"},
		{interval{0.25, 0.5, 0.75}, "···├─●──┤··"},
		{interval{0.5, 0.5, 0.5}, "·····●·····"},
		{interval{0.9, 1, 1}, "·········├●"},
		{interval{-1, 0.1, 2}, "├●────────┤"},
	} {
		assert.Equal(t, test.want, test.i.bar(11))
	}
	assert.Equal(t, "0    0.5    1", scale(13))
	for width := minBar; width <= maxBar; width++ {
		assert.Len(t, scale(width), width)
		assert.Len(t, []rune(interval{0.2, 0.3, 0.4}.bar(width)), width)
	}
}
