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

// A row's name is whole if it fits alone, no line is too wide, no column disappears without a word,
// and no text is cut.
func TestTablesShowNamesWholeAndFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l, width := listingsOf.Draw(t, "listing"), rapid.IntRange(2, 200).Draw(t, "width")
		got := drawn(l, width)
		for line := range strings.Lines(got) {
			require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), width, line)
		}
		all := strings.Join(strings.Fields(strings.Map(noBorder, got)), "")
		shown, _ := l.layout(width)
		for _, row := range l.rows {
			if ansi.StringWidth(row[0]) <= width {
				require.Contains(t, got, strings.TrimRight(row[0], " "))
			}
			for i, cell := range row {
				if shown == nil && i > 0 && !valueless(cell) {
					require.Contains(t, all, strings.Join(strings.Fields(cell), ""),
						"each row has all of its values")
				}
			}
		}
		if shown == nil {
			return
		}
		valued, _ := l.widths()
		for _, i := range valued {
			if c := l.columns[i]; !slices.Contains(shown, i) {
				_, note, found := strings.Cut(all, "Leftout:")
				require.True(t, found)
				require.Contains(t, note, strings.Join(strings.Fields(c.title), ""))
				require.True(t, c.extra, c.title)
			}
		}
	})
}

func noBorder(r rune) rune {
	if strings.ContainsRune("│├┤┼─╭╮╰╯┬┴·●", r) {
		return ' '
	}
	return r
}

func TestColumnsAreLeftOutFromTheLastWithAWordAboutIt(t *testing.T) {
	t.Parallel()
	l := newTable("id", ">mean", "?>low", "?>high", "?note")
	l.add("0123456789", "0.5", "0.1", "0.9", "something")
	assert.Equal(t, `id          mean  low  high
0123456789   0.5  0.1   0.9
Left out: note. A wider
terminal or --json shows
all.
`, drawn(l, 27))
	assert.Contains(t, drawn(l, 22), "id          mean  low\n")
	assert.Equal(t, "id:\n0123456789\nmean: 0.5\nlow: 0.1\nhigh: 0.9\nnote:\nsomething\n",
		drawn(l, 10))
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
