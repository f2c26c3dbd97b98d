package thoughts_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/thoughts"
)

func TestSplit(t *testing.T) {
	for name, tt := range map[string]struct{ text, answer, thoughts string }{
		"none": {"Turn it off.", "Turn it off.", ""},
		"none, with signs": {"a < b, x->y, <b>bold</b>, 1 <thinker>",
			"a < b, x->y, <b>bold</b>, 1 <thinker>", ""},
		"before the answer": {"<think>hm</think>Turn it off.", "Turn it off.", "hm"},
		"each name": {"<think>a</think><thinking>b</thinking><reasoning>c</reasoning>d",
			"d", "a\n\nb\n\nc"},
		"any case, and blanks":      {"<Think >a</THINK >b", "b", "a"},
		"in the middle":             {"One. <think>a</think>Two.", "One. Two.", "a"},
		"nested":                    {"<think>a<think>b</think>c</think>d", "d", "abc"},
		"nested, of two names":      {"<think>a<reasoning>b</reasoning>c</think>d", "d", "abc"},
		"a mention inside":          {"<think>I write <reasoning> then</think>d", "d", "I write  then"},
		"a mention in code inside":  {"<think>The tag `<think>` is meant.</think>d", "d", "The tag `<think>` is meant."},
		"closed by another name":    {"<thinking>a</think>b", "b", "a"},
		"not closed":                {"One. <think>a", "One. ", "a"},
		"not closed, cut in a tag":  {"<think>a</thi", "", "a</thi"},
		"nested and not closed":     {"<think>a<think>b</think>c", "", "abc"},
		"not opened":                {"a\nb</think>\nTurn it off.", "\nTurn it off.", "a\nb"},
		"not opened, then more":     {"a</think>b<think>c</think>d", "bd", "a\n\nc"},
		"closed twice":              {"<think>a</think>b</think>c", "c", "a\n\nb"},
		"nothing but thoughts":      {"<think>a</think>", "", "a"},
		"empty thoughts":            {"<think>\n\n</think>\n\nb", "\n\nb", ""},
		"code span":                 {"Write `<think>a</think>` first.", "Write `<think>a</think>` first.", ""},
		"code span of two":          {"Write ``a ` <think>`` first.", "Write ``a ` <think>`` first.", ""},
		"a single backtick":         {"It's a ` <think>a</think>b", "It's a ` b", "a"},
		"a span ends with its line": {"It's a `\n<think>a</think>`b", "It's a `\n`b", "a"},
		"fence":                     {"See:\n```xml\n<think>a</think>\n```\nDone.", "See:\n```xml\n<think>a</think>\n```\nDone.", ""},
		"fence of tildes": {"~~~\n<think>\n~~~\n<think>a</think>b", "~~~\n<think>\n~~~\nb",
			"a"},
		"a longer fence":            {"````\n```\n<think>\n````\nb", "````\n```\n<think>\n````\nb", ""},
		"two tildes are no fence":   {"~~\n<think>a</think>b", "~~\nb", "a"},
		"two backticks, no fence":   {"``\n<think>a</think>b", "``\nb", "a"},
		"a fence in a list":         {"- a\n  ```\n  <think>\n  ```\n<think>a</think>b", "- a\n  ```\n  <think>\n  ```\nb", "a"},
		"a fence that does not end": {"```\n<think>a</think>", "```\n<think>a</think>", ""},
		"no fence within a line":    {"a ```\n<think>a</think>b", "a ```\nb", "a"},
		"a fence in thoughts":       {"<think>\n```\n<think>\n```\n</think>b", "b", "```\n<think>\n```"},
		"thoughts end in a fence":   {"<think>\n```\na</think>b <think>c</think>", "b ", "```\na\n\nc"},
		"a fence behind thoughts":   {"<think>a</think>```\n<think>\n```", "```\n<think>\n```", "a"},
		"a name that is too long":   {"<think                >", "<think                >", ""},
		"a self-closing tag":        {"a<think/>b", "a<think/>b", ""},

		"seed":     {"<seed:think>a</seed:think>b", "b", "a"},
		"brackets": {"[THINK]a[/THINK]b", "b", "a"},
		"brackets in lower case": {
			"a [think] [x](y) [/think] [T", "a [think] [x](y) [/think] [T", "",
		},
		"brackets, not opened": {"a[/THINK]b", "b", "a"},
		"brackets, not closed": {"[THINK]a[/THIN", "", "a[/THIN"},
		"brackets in code": {
			"Write `[THINK]a[/THINK]` so.", "Write `[THINK]a[/THINK]` so.", "",
		},
		"triangles":             {"◁think▷a◁/think▷b", "b", "a"},
		"triangles, blanks":     {"◁think ▷a ◁ b◁/Think▷c", "c", "a ◁ b"},
		"triangles, not closed": {"a◁think▷b◁/thin", "a", "b◁/thin"},
		"other signs": {
			"a ◁ b, “c”, d…, ◁x▷, ▷◁", "a ◁ b, “c”, d…, ◁x▷, ▷◁", "",
		},
		"half a sign": {"a\xe2\x97", "a\xe2\x97", ""},
		"two forms": {
			"[THINK]a<think>b</think>c[/THINK]d◁think▷e◁/think▷", "d", "abc\n\ne",
		},
		"a fence with bracket end": {"[THINK]\n```\na[/THINK]b", "b", "```\na"},
		"a span over an end":       {"[THINK]a `b[/THINK]c`d", "c`d", "a `b"},

		"harmony": {
			"<|channel|>analysis<|message|>a<|end|>" +
				"<|start|>assistant<|channel|>final<|message|>b<|return|>", "b", "a",
		},
		"harmony from the start": {
			"<|start|>assistant<|channel|>analysis<|message|>a<|end|>" +
				"<|start|>assistant<|channel|>final<|message|>b", "b", "a",
		},
		"harmony, a call": {
			"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary " +
				"to=functions.x <|constrain|>json<|message|>{}<|call|>",
			"", "a\n\n{}",
		},
		"harmony, constrained": {"<|channel|>final <|constrain|>JSON<|message|>{}<|return|>", "{}", ""},
		"harmony without ends": {
			"<|channel|>analysis<|message|>a<|channel|>final<|message|>b", "b", "a",
		},
		"harmony, not closed": {"<|channel|>analysis<|message|>a<|en", "", "a<|en"},
		"harmony, a fence in thoughts": {
			"<|channel|>analysis<|message|>\n```\na<|end|>" +
				"<|start|>assistant<|channel|>final<|message|>```\n<|end|>\n```",
			"```\n<|end|>\n```", "```\na",
		},
		"harmony, tags in thoughts": {
			"<|channel|>analysis<|message|>a</think>b<think>c<|end|><|channel|>final<|message|>d",
			"d", "a</think>bc",
		},
		"harmony, a span in thoughts": {"<|channel|>analysis<|message|>`a<|end|>b`", "b`", "`a"},
		"no harmony": {
			"a <|end|> <| <|x|> b <|channel|> of\nit", "a <|end|> <| <|x|> b <|channel|> of\nit", "",
		},
		"harmony in code": {
			"`<|channel|>analysis<|message|>` b", "`<|channel|>analysis<|message|>` b", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, inside := thoughts.Split(tt.text)
			assert.Equal(t, tt.answer, answer)
			assert.Equal(t, tt.thoughts, inside)
			for size := 1; size < 5; size++ {
				shown, inside := inChunks(tt.text, func(left int) int { return size })
				assert.Equal(t, []string{tt.answer, tt.thoughts}, []string{shown, inside}, "chunks of %d",
					size)
			}
		})
	}
}

// inChunks reads a text in chunks.
func inChunks(text string, size func(left int) int) (answer, inside string) {
	var r thoughts.Reader
	for text != "" {
		n := min(size(len(text)), len(text))
		shown, restart := r.Write(text[:n])
		if restart {
			answer = ""
		}
		answer, text = answer+shown, text[n:]
	}
	shown, restart := r.Close()
	if restart {
		answer = ""
	}
	return answer + shown, r.Thoughts()
}

// A stream shows plain text at once.
func TestTextIsNotHeldBack(t *testing.T) {
	var r thoughts.Reader
	for _, chunk := range []string{"Turn ", "it off,", "\n", "now. ", "**Yes** "} {
		shown, restart := r.Write(chunk)
		assert.Equal(t, chunk, shown)
		assert.False(t, restart)
	}
	shown, _ := r.Write("a < b")
	assert.Equal(t, "a < b", shown)
	shown, _ = r.Write("<th")
	assert.Empty(t, shown)
	shown, _ = r.Write("e end>")
	assert.Equal(t, "<the end>", shown)
	shown, restart := r.Write(" and</think>Off.")
	assert.Equal(t, "Off.", shown)
	assert.True(t, restart, "all before was thought")
	assert.Contains(t, r.Thoughts(), "Turn it off")
}

// A line with a backtick is shown as soon as it is longer than a span may be, and a line that would
// begin a fence waits for its end, because a backtick in it makes it text.
func TestHowLongALineIsHeldBack(t *testing.T) {
	var r thoughts.Reader
	line := "`" + strings.Repeat("a", 2000)
	shown, _ := r.Write(line)
	assert.Equal(t, line, shown)

	r = thoughts.Reader{}
	shown, _ = r.Write("```go")
	assert.Empty(t, shown)
	shown, _ = r.Write("`\n<think>secret</think>x")
	assert.Equal(t, "```go`\nx", shown)
	assert.Equal(t, "secret", r.Thoughts())
}

// A character that comes in two chunks is shown whole, with the second one. Bytes that are no
// character are not held back.
func TestPiecesHoldWholeCharacters(t *testing.T) {
	const text = "naïve €5 👩🏽 ◁ 日本, and"
	for first := range len(text) {
		for size := 1; size <= 4; size++ {
			var r thoughts.Reader
			var all string
			for from, to := 0, first; from < len(text); from, to = to, min(to+size, len(text)) {
				shown, _ := r.Write(text[from:to])
				assert.True(t, utf8.ValidString(shown), "%q", shown)
				all += shown
			}
			shown, _ := r.Close()
			assert.Equal(t, text, all+shown)
		}
	}
	for _, broken := range []string{"a\xff", "a\x80\x80\x80", "a\xe2b", "a\xf8\x88\x80"} {
		var r thoughts.Reader
		shown, _ := r.Write(broken)
		assert.Equal(t, broken, shown)
	}
	var r thoughts.Reader
	shown, _ := r.Write("a\xe2\x82")
	assert.Equal(t, "a", shown)
	shown, _ = r.Close()
	assert.Equal(t, "\xe2\x82", shown, "the end of the stream came within a character")
}

// piece draws a part of an answer, and whether it is thought.
func piece(t *rapid.T) (text string, thought bool) {
	words := func() string { return rapid.StringMatching(`[a-zé .,\n>]{0,12}`).Draw(t, "words") }
	name := rapid.SampledFrom([]string{"think", "thinking", "REASONING", "scratchpad"}).Draw(t,
		"name")
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return words() + "SAID", false
	case 1:
		return "`SAID <" + name + ">` ", false
	case 2:
		return "\n```x\nSAID <" + name + ">\n</" + name + ">\n```\n", false
	case 3:
		return "<" + name + ">" + words() + "SECRET<think>SECRET</think>" + words() + "</" + name + ">",
			true
	case 4:
		return "[THINK]" + words() + "SECRET<think>SECRET</think>[/THINK]", true
	case 5:
		return "◁think▷" + words() + "SECRET◁/think▷", true
	case 6:
		return "<|channel|>analysis<|message|>SECRET</think>" + words() +
			"<|end|><|start|>assistant<|channel|>final<|message|>", true
	default:
		return "<" + name + ">\n```\nSECRET\n```\n`<think>`" + words() + "</" + name + ">", true
	}
}

// Thoughts never stay, all else does, and chunks do not matter.
func TestThoughtsNeverStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text, want string
		for range rapid.IntRange(0, 6).Draw(t, "pieces") {
			next, thought := piece(t)
			text += next
			if !thought {
				want += next
			}
		}
		if rapid.Bool().Draw(t, "no opening tag") {
			text = "SECRET, but\nno opening tag</think>" + text
		}
		if rapid.Bool().Draw(t, "not closed") {
			text += "<think>SECRET\n"
		}
		answer, inside := thoughts.Split(text)
		require.Equal(t, want, answer)
		require.Equal(t, strings.Count(text, "SECRET"), strings.Count(inside, "SECRET"))
		shown, again := inChunks(text, func(int) int { return rapid.IntRange(1, 9).Draw(t, "chunk") })
		require.Equal(t, answer, shown)
		require.Equal(t, inside, again)
	})
}

// Any text in any chunks gives the same, and loses nothing but tags.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"<think>a</think>b", "a`<think>`", "```\n<think>\n```", "a</reasoning>b",
		strings.Repeat("`", 1030) + "<think>", "~~~ x\n</think>",
		"[THINK]a[/THINK]b", "◁think▷a◁/think▷b",
		"<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>b<|return|>",
		"<|channel|>a<|message|><think>\n```\n</think>[/THINK]<|end|>",
	} {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		answer, inside := thoughts.Split(text)
		shown, again := inChunks(text, func(int) int { return 1 + int(size)%7 })
		if shown != answer || again != inside {
			t.Fatalf("%q in chunks: %q and %q, want %q and %q", text, shown, again, answer, inside)
		}
		if len(answer) > len(text) || !strings.ContainsAny(text, "<[◁") && answer != text {
			t.Fatalf("%q became %q", text, answer)
		}
	})
}
