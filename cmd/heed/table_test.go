package main

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/strategy"
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

// Values are printed so that people can read them, and no text of the store controls a terminal.
func TestValuesForPeople(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 501)
	at := time.Date(2026, 1, 31, 16, 4, 5, 6, time.FixedZone("", 3600))
	for want, got := range map[string]plain{
		`as is`: say("%v", "as is"), `""`: say("%v", ""), `"a\x1b[m"`: say("%v", "a\x1b[m"),
		`"\n" and a b`: say("%v and %v", "\n", []string{"a b"}), `a, b`: say("%v", []string{"a", "b"}),
		`0.250`: say("%v", 0.25), `7`: say("%v", 7), `2026-01-31 15:04:05`: say("%v", at),
		`-`: say("%v", time.Time{}), "arm": say("%v", strategy.ArmID("arm")),
		`"\u202e"`: say("%v", strategy.ArmID("\u202e")), "\x1b": say("%v", plain("\x1b")),
		long[2:]: say("%v", long[2:]), long[2:] + "…": say("%v", long),
		"all requests": segmentName("", ""), `a / ""`: segmentName("a", ""),
		`"" / b`: segmentName("", "b"), "1 row": plural(1, "row", "rows"),
		"0 rows": plural(0, "row", "rows"), "2 rows": plural(2, "row", "rows"),
		"33 %": percent(0.333), "100 %": percent(1), "none": list(nil, "none"),
		"x": list([]string{"x"}, "none"), "name": alt("name", "other"), "other": alt("", "other"),
		"in full":      counts(learning.Share{For: 1, Against: 2, CountsFor: 1, CountsAgainst: 2}),
		"2.50 of 3.00": counts(learning.Share{For: 1, Against: 2, CountsFor: 1, CountsAgainst: 1.5}),
		"80 %":         measured(loop.Measured{Outcomes: 0.5, Success: 0.8})[0],
		"12":           measured(loop.Measured{Outcomes: 12.4, Success: 0.8})[1],
		"proposed":     plain(view.Deed("feedback.propose")),
		"tried to approve": plain(
			view.Deed("feedback.approve.refused")),
	} {
		assert.Equal(t, want, string(got))
	}
	assert.Equal(t, plain("-"), alt(""))
	assert.Equal(t, plain("-"), measured(loop.Measured{Outcomes: 0.49})[0])
	assert.Equal(t, "2026-01-31 15:04", cell(at))
	assert.Equal(t, "-", cell(time.Time{}))
	assert.Equal(t, "0.500", cell(0.5))
}

// A tree has one line for each line of its texts, joined to what it belongs to.
func TestTrees(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	p := &printer{w: &text}
	p.branch(loop.Branch{Text: "a", On: []loop.Branch{
		{Text: "b", On: []loop.Branch{{Text: "c"}}},
		{Text: "x\ny"}, {Text: "d", On: []loop.Branch{{Text: "e"}, {Text: "f"}}},
	}}, "", "")
	require.NoError(t, p.err)
	require.Equal(t, "a\n├─ b\n│  └─ c\n├─ \"x\\ny\"\n└─ d\n   ├─ e\n   └─ f\n", text.String())
}

// Columns are as wide as their widest cell, and numbers end at one place.
func TestColumns(t *testing.T) {
	t.Parallel()
	l := &listing{titles: []string{"id", ">n", "text"}}
	l.add("a", plain("7"), "x")
	l.add("漢字", plain("1234"), "")
	require.Equal(t, "ID       N  TEXT\na        7  x\n漢字  1234  \"\"\n", l.String())
}

// A store is named by the path of its file, or as PostgreSQL's tools name a database.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.db": "a.db", "sqlite:a.db": "a.db", "file:a.db": "a.db", "sqlite:file:a.db": "a.db",
		"/x/host.db": "/x/host.db",
		"postgres://ann:secret@db.example:6543/agent": `PostgreSQL database "agent" at db.example:6543`,
		"postgresql://db.example/agent":               `PostgreSQL database "agent" at db.example:5432`,
		"host=::1 dbname=agent password=secret":       `PostgreSQL database "agent" at [::1]:5432`,
		" dbname = agent host=h":                      `PostgreSQL database "agent" at h:5432`,
		"postgres://h:port/secret":                    "PostgreSQL",
	} {
		at, err := (&session{commands: &commands{DB: name}}).where()
		require.NoError(t, err)
		assert.Equal(t, want, at.String(), name)
	}
	_, err := (&session{commands: &commands{}}).where()
	require.ErrorAs(t, err, new(*usageError))
}

// Of many names, ten are shown.
func TestSomeOf(t *testing.T) {
	t.Parallel()
	names := strings.Split("abcdefghijkl", "")
	assert.Equal(t, `"a", "b"`, someOf(names[:2]))
	assert.Equal(t, `"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"`, someOf(names[:10]))
	assert.Equal(t, `"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", and 1 more`,
		someOf(names[:11]))
	assert.Equal(t, "none", someOf(nil))
}
