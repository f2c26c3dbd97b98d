package main

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
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

// If a limit holds, the page of a heuristic lists how much of each person's evidence counts.
func TestConfidenceWithLimits(t *testing.T) {
	var text strings.Builder
	p := &printer{w: &text}
	require.NoError(t, p.render("confidence", &view.HeuristicDetail{
		Heuristic: view.Heuristic{ID: "rotate", Limits: []string{"people"},
			Held: view.Held{Ceiling: 1, Weight: 1}},
		People: 3,
		Shares: []learning.Share{
			{Channel: "response", Said: true, Source: "ann", For: 20, CountsFor: 4, Count: 25},
			{Channel: "response", Said: true, Source: "bob", For: 1, CountsFor: 1, Count: 1},
		},
	}))
	require.Regexp(t, `(?m)^.*ann\s+20.*25 .*4.*$`, text.String())
	require.Regexp(t, `(?m)^.*bob\s+1.*in full$`, text.String())
}

// On a terminal, texts and trees continue on another line. Elsewhere they are one line.
func TestTextsFitATerminal(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("a word ", 30)
	for width, lines := range map[int]int{0: 3, 40: 13} {
		var out strings.Builder
		p := &printer{w: &out, width: width}
		p.line("%v", words)
		p.branch(loop.Branch{Text: "x", On: []loop.Branch{{Text: words, On: nil}}}, "", "")
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		for _, line := range got {
			require.True(t, width == 0 || ansi.StringWidth(line) <= width, line)
		}
		require.Len(t, got, lines, out.String())
	}
}

func TestWhatIsAModelsServer(t *testing.T) {
	for text, want := range map[string]bool{
		"http://localhost:11434/v1": true, "https://openrouter.ai/api/v1": true,
		"http://[::1]:80": true,
		"localhost:11434": false, "ftp://host/v1": false, "http://": false, "http://[::1": false,
		"http:// host": false, "http://kim:secret@host/v1": false,
		"http://host/v1?api-version=1": false,
		"http://host/v1#x":             false, "http://host/v1/chat/completions": false,
	} {
		require.Equal(t, want, isServer(text), text)
	}
}
