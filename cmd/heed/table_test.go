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
			l.draw(0.2, 0.5, 0.9)
		}
	}
	return l
})

// A row's name is whole if it fits alone, no line is too wide, no column disappears without a word,
// and no text is cut.
func TestTablesShowNamesWholeAndFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l, width := listingsOf.Draw(t, "listing"), rapid.IntRange(2, 200).Draw(t, "width")
		got := ansi.Strip(l.text(width))
		for line := range strings.Lines(got) {
			require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), width, line)
		}
		all := strings.Join(strings.Fields(strings.Map(noBorder, got)), "")
		shown, _ := l.layout(width)
		for _, row := range l.rows {
			if ansi.StringWidth(row[0]) <= width {
				require.Contains(t, got, row[0])
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
	assert.Equal(t, `╭────────────┬──────┬─────┬──────╮
│ id         │ mean │ low │ high │
├────────────┼──────┼─────┼──────┤
│ 0123456789 │  0.5 │ 0.1 │  0.9 │
╰────────────┴──────┴─────┴──────╯
Left out: note. A wider terminal or
--json shows all.
`, ansi.Strip(l.text(36)))
	assert.Contains(t, ansi.Strip(l.text(28)), "│ id         │ mean │ low │\n")
	assert.Equal(t, "id:\n0123456789\nmean: 0.5\nlow: 0.1\nhigh: 0.9\nnote:\nsomething\n", l.text(10))
}

func TestWordsStayWhole(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "heed rules approve\nfa0a5a1c-b1cd-4460-a58a-ed5c3c248e07\n--yes",
		wrap("heed rules approve fa0a5a1c-b1cd-4460-a58a-ed5c3c248e07 --yes", 36))
	assert.Equal(t, "abcd\ne f", wrap("abcde f", 4), "a word that is wider than a line is broken")
}
