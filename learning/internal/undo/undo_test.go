package undo_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/learning/internal/undo"
)

type example struct {
	Text string
	Undo bool
}

func corpus(t testing.TB, file string) (all []example) {
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(written, &all))
	return all
}

// score counts the commands of a corpus and those that are found, and the other texts and those
// that are taken for commands.
func score(t testing.TB, file string) (commands, found, others, mistaken int) {
	for _, e := range corpus(t, file) {
		got := undo.Command(e.Text)
		if got != e.Undo {
			t.Logf("%q is a command: %v, read: %v", e.Text, e.Undo, got)
		}
		switch {
		case e.Undo && got:
			commands, found = commands+1, found+1
		case e.Undo:
			commands++
		case got:
			others, mistaken = others+1, mistaken+1
		default:
			others++
		}
	}
	return commands, found, others, mistaken
}

// seen.json was there before the grammar, and more.json grew with it. Each of the others is by
// another author who did not know the grammar. docs/trust.md has their first scores.
// fifth_open.json and fifth_held.json are two halves of one: the grammar was made better with the
// first half, and fifth_held.json has its score after that here. coding.json has texts of hosts
// about software, and grew with the rules for them.
func TestCorpora(t *testing.T) {
	for file, want := range map[string]struct{ commands, found, others, mistaken int }{
		"seen.json":       {80, 80, 96, 0},
		"more.json":       {914, 901, 1044, 3},
		"fresh.json":      {80, 79, 96, 0},
		"third.json":      {80, 79, 96, 0},
		"fourth.json":     {80, 71, 96, 0},
		"fifth_open.json": {48, 47, 48, 0},
		"fifth_held.json": {48, 44, 48, 0},
		"coding.json":     {16, 16, 40, 0},
	} {
		commands, found, others, mistaken := score(t, "testdata/"+file)
		t.Logf("%s: found %d of %d, and took %d of %d others for one", file, found, commands,
			mistaken, others)
		assert.Equal(t, []int{want.commands, want.others}, []int{commands, others}, file)
		assert.GreaterOrEqual(t, found, want.found, file)
		assert.LessOrEqual(t, mistaken, want.mistaken, file)
	}
}

func TestCommand(t *testing.T) {
	for text, want := range map[string]bool{
		"undo": true, "Undo!": true, "(undo)": true, "CANCEL!": true, "rollback": true,
		"roll back": true, "roll-back": true, "roll\u2010back": true, "roll\u2011back": true,
		"> undo that\nundo that": true, "It reads:\n> undo that": false,
		"don't wait, it's ann's, undo that, the users' data": true,
		"never mind": true, "nevermind": true,
		"Please undo that": true, "No, undo that!": true, "Undo that, I am cold.": true,
		"undo that reminder":              true,
		"please revert, it made it worse": true, "ctrl+z": true,
		"don\u2019t leave it like that, undo it": true, "Fatto male, annulla": true,
		"ｕｎｄｏ　ｔｈａｔ": true, "annule c\u0327a": true, "annule ca": true,
		"mach das ru\u0308ckgängig": true, "ｷｬﾝｾﾙして": true, "もと\u3099に戻して": false,
		"取り消して\u304Fた\u3099さい": true, "@bot undo that": true, "**undo that**": true,
		"undo that 🙏": true, "請復原剛才的更改": true,
		"undo?": false, "How do I undo that?": false, "what if you undo that": false,
		"undoubtedly good": false, "reverted": false,
		"undo it if the tests fail": false, "if it fails, undo it": false,
		"Undo it? No, keep it.": false, "please explain git revert": false,
		"How do I cancel my subscription?": false, "cancel my subscription": false,
		"Cut, copy, paste, undo": false, "Translate: undo that": false,
		"She said: undo that": false, "undo that, she said": false, "undo()": false, "x.undo that": false, "> undo that": false, "`undo that`": false,
		"Never mind, I found it.": false, "never undo that": false, "he wants to undo that": false,
		"I undid that":             false,
		"— undo that! — she cried": false, "she said, undo that": false,
		"my boss says it looks odd, so please undo that": true,
		"ops 😅 undo that":                                true,
		"kannst du das rückgänig machen?":                false, "rückgangig machen": false,
		"Wir mussten die Änderung zurücknehmen": false, "Ya lo dejé como estaba": false,
		"“say “this” now” is wrong, undo that": true, "revret that": false,
		"reevrt that":   false,
		"one step back": true, "pretend nothing happened": true, "pretend you are a pirate": false,
		"fais comme si de rien n'était": true, "fais comme si tu étais un pirate": false,
		"the old version was better": false, "the old version was better, back to that": true,
		"OK, back to that.": false, "undo undo undo": true, "restore the settings": false,
		"remove the last comma":         false,
		"add undo buttons, then revert": false, "nicht rückgängig machen": false,
		"no deshagas eso": false, "não desfaz isso": false,
		"不要撤销": false, "元に戻さないで": false, "": false, " ": false, "?": false, "mind": false,
		"hello": false,
	} {
		assert.Equal(t, want, undo.Command(text), "%q", text)
	}
}

// commands draws a command of the corpus.
func commands(t testing.TB) *rapid.Generator[string] {
	var all []string
	for _, e := range corpus(t, "testdata/seen.json") {
		if e.Undo && undo.Command(e.Text) {
			all = append(all, e.Text)
		}
	}
	return rapid.SampledFrom(all)
}

func TestCaseAndSpacesDoNotMatter(t *testing.T) {
	var all []string
	for _, e := range corpus(t, "testdata/seen.json") {
		all = append(all, e.Text)
	}
	texts, spaces := rapid.SampledFrom(all), rapid.StringOfN(
		rapid.SampledFrom([]rune(" \t\n\u00A0\u3000\u200B")), 0, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		other := strings.Map(func(r rune) rune {
			if rapid.Bool().Draw(t, "upper") {
				return unicode.ToUpper(r)
			}
			return unicode.ToLower(r)
		}, text)
		other = spaces.Draw(t, "before") + other + spaces.Draw(t, "after")
		if undo.Command(text) != undo.Command(other) {
			t.Fatalf("%q, %q", text, other)
		}
	})
}

// A quoted command is not given.
func TestQuotedCommands(t *testing.T) {
	texts := commands(t)
	marks := rapid.SampledFrom([]string{`" "`, "“ ”", "„ “", "« »", "» «", "‹ ›", "‘ ’", "' '", "` `", "``` ```", "「 」", "『 』", "＂ ＂"})
	rapid.Check(t, func(t *rapid.T) {
		left, right, _ := strings.Cut(marks.Draw(t, "marks"), " ")
		quoted := left + texts.Draw(t, "text") + right
		if undo.Command(quoted) {
			t.Fatal(quoted)
		}
	})
}

// A command in what was pasted is not given, and one next to it is.
func TestPastedCommands(t *testing.T) {
	for _, pasted := range []string{
		"~~~\nundo that\n~~~", "  ~~~sh\nundo that", "On Mon, Ann <a@b.c> wrote:\nundo that",
		"Am Montag schrieb Ann:\n\nundo that", "From: Ann\nTo: me\n\nundo that",
		"----- Original Message -----\nundo that",
	} {
		assert.False(t, undo.Command(pasted), pasted)
		assert.False(t, undo.Command("Hello,\n\n"+pasted), pasted)
		assert.True(t, undo.Command("Undo that.\n\n"+pasted), pasted)
	}
	for _, own := range []string{"~~~\nls\n~~~\nundo that", "Undo that, please.\nFrom: me"} {
		assert.True(t, undo.Command(own), own)
	}
}

// They make it a question, a condition, a report, a negation or a task. The corpus has ten commands
// of each language, one after the other.
func TestWordsBeforeACommand(t *testing.T) {
	before := [][]string{
		{"How do I ", "don't ", "never ", "he wants to ", "if it rains, ", "Translate: ",
			"write a test for ", "I said nothing about ", "when should I "},
		{"Wie kann ich ", "Er sagte: ", "wenn es regnet, ", "nicht ", "schreib: "},
		{"comment ", "il a dit : ", "s'il pleut, ", "ne ", "traduis : "},
		{"cómo ", "no ", "si llueve, ", "traduce: ", "ella dijo: "},
		{"come ", "non ", "se piove, ", "traduci: ", "ha detto: "},
		{"como ", "não ", "se chover, ", "traduz: ", "ele disse: "},
		{"どうやって", "翻訳して：", "もし", "上司は"},
		{"怎么", "不要", "别", "如果", "翻译：", "他说"},
	}
	place := 0
	for _, e := range corpus(t, "testdata/seen.json") {
		if !e.Undo {
			continue
		}
		for _, words := range before[place/10] {
			if !strings.ContainsAny(e.Text, ",.?!，。、？！…") {
				assert.False(t, undo.Command(words+e.Text), "%q", words+e.Text)
			}
		}
		place++
	}
	assert.Equal(t, 80, place)
}

// hostile are texts that take long to read, or did.
func hostile(length int) map[string]string {
	all := make(map[string]string)
	for _, part := range []string{"please ", "undo ", "undo, ", "no! ", "that ", "'", "“", "“'", "取消",
		"把", "戻して", "e\u0301", "\u0301", "\xff", "a.", "undo that and ", "? ", "the last "} {
		all[part] = strings.Repeat(part, length/len(part))
	}
	return all
}

// A thing that is to be put back where it lies is no answer.
func TestThingsAreNoAnswers(t *testing.T) {
	for _, text := range []string{
		"put it back on the shelf", "Put that back on the table, please", "put it back in the drawer",
		"take it back to the shop", "put everything back in the box", "bring it back to my desk",
		"leg das zurück auf den Tisch", "remets-le sur l'étagère", "ponlo de nuevo en el estante",
		"coloca isso de volta na prateleira",
	} {
		assert.False(t, undo.Command(text), text)
	}
	for _, text := range []string{
		"put it back the way it was", "put it back", "bring it back to the previous version",
		"take it back", "leg das zurück",
	} {
		assert.True(t, undo.Command(text), text)
	}
}

func TestLongTextsAreNoCommands(t *testing.T) {
	for part, text := range hostile(1 << 20) {
		assert.False(t, undo.Command(text), "%q", part)
		assert.False(t, undo.Command("undo that. "+text), "%q", part)
	}
	for _, text := range hostile(990) {
		undo.Command(text) // BenchmarkCommand has the time
	}
	for more, is := range []bool{true, false} { // than 1,000 bytes, and than 24 clauses
		assert.Equal(t, is, undo.Command("undo that"+strings.Repeat(" ", 991+more)))
		assert.Equal(t, is, undo.Command(strings.Repeat("please, ", 23+more)+"undo that"))
	}
}

func FuzzCommand(f *testing.F) {
	for _, e := range corpus(f, "testdata/seen.json") {
		f.Add(e.Text)
	}
	f.Add("Déjalo como estaba\"") // a mark of quotation at the end
	f.Add("rollback “")
	f.Fuzz(func(t *testing.T, text string) {
		got := undo.Command(text)
		if got && len(text) > 1000 {
			t.Error("a long text is no command")
		}
		if got && undo.Command(`"`+text+`"`) {
			t.Errorf("%q: quoted it is still a command", text)
		}
		if len(text) < 900 && got != undo.Command("  "+text+"\t") {
			t.Errorf("%q: spaces matter", text)
		}
	})
}

func BenchmarkCommand(b *testing.B) {
	texts := hostile(990)
	texts["a command"] = "Kannst du das bitte rückgängig machen?"
	texts["no command"] = "Write a mail to Ann. It says that we meet on Monday at ten, and that " +
		"she should bring the figures of the last year."
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				undo.Command(text)
			}
		})
	}
}

// A command for a third person is a task: the answer to the one who writes stays. A command for the
// one who writes, for everyone, or for a while takes it back.
func TestWhomACommandIsFor(t *testing.T) {
	for _, text := range []string{
		"undo that for Bob", "Undo that for Bob, please.", "please undo that for her",
		"revert it for my colleague", "can you undo that for the other team?", "undo it for bob",
		"cancel that for Anna and Tom", "undo that for Bob because he left", "UNDO THAT FOR BOB",
		"undo for Bob", "take it back for him", "mach das rückgängig für Bob",
		"mach das für Bob rückgängig", "Bitte nimm das für Anna zurück",
		"mach das für sie rückgängig",
		"annule ça pour Bob", "annule ça pour elle", "annule ça pour mon collègue",
		"deshaz eso para Bob", "cancela eso para Ana", "annulla questo per Bob", "annulla per lei",
		"desfaz isso para o Bob", "desfaz isso para ela",
	} {
		assert.False(t, undo.Command(text), text)
	}
	for _, text := range []string{
		"undo that for me", "undo that for me please, Bob", "undo that for now",
		"please undo that for us",
		"undo that for the moment", "undo that for good", "undo it for a second", "undo that, Bob",
		"undo that for everyone", "revert that for today", "undo that for the third time",
		"undo that for both of us", "undo that for heaven's sake", "undo that for the time being",
		"mach das für mich rückgängig", "mach das rückgängig für heute",
		"mach das rückgängig für uns", "mach das rückgängig für alle",
		"annule ça pour moi", "annule ça pour l'instant", "annule ça pour le moment",
		"annule ça pour tout le monde", "deshaz eso por favor", "deshaz eso por mí",
		"deshaz eso por ahora", "deshaz eso para mí", "deshaz eso para todos", "annulla per favore",
		"annulla questo per ora", "annulla per me", "annulla questo per tutti", "desfaz isso por favor",
		"desfaz isso para mim", "desfaz isso para todos",
	} {
		assert.True(t, undo.Command(text), text)
	}
}
