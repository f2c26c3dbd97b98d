package main

import (
	"strings"
	"testing"

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

// No text is cut.
func TestTablesShowTextsWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &listing{titles: []string{"id", ">n", "text"}}
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			l.add(plain(cells.Draw(t, "id")), plain(cells.Draw(t, "n")), plain(cells.Draw(t, "text")))
		}
		for _, row := range l.rows {
			for _, cell := range row {
				require.Contains(t, l.String(), strings.TrimRight(cell, " "))
			}
		}
	})
}
