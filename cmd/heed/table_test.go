package main

import (
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

// No text is cut, and a bar is drawn only where it fits.
func TestTablesShowTextsWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &listing{titles: []string{"id", ">n", "text"}}
		width := rapid.IntRange(2, 200).Draw(t, "width")
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			l.add(plain(cells.Draw(t, "id")), plain(cells.Draw(t, "n")), plain(cells.Draw(t, "text")))
			l.intervals = append(l.intervals, interval{0.2, 0.5, 0.9})
		}
		var b strings.Builder
		l.print(&printer{w: &b, terminal: true, width: width})
		for _, row := range l.rows {
			for _, cell := range row {
				require.Contains(t, b.String(), strings.TrimRight(cell, " "))
			}
		}
		for line := range strings.Lines(b.String()) {
			if strings.Contains(line, "●") {
				require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), width)
			}
		}
	})
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
	for width := 11; width <= 41; width++ {
		assert.Len(t, scale(width), width)
		assert.Len(t, []rune(interval{0.2, 0.3, 0.4}.bar(width)), width)
	}
}
