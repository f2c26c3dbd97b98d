//go:build !race

// One thing at a time is done here, and the race detector makes it five times slower.

package prompt_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/prompt/prompttest"
)

func TestLine(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"an ordinary text":           {"The oven is on: 200 °C, [ERROR] {x} `y` (a < b) & \"c\"", ""},
		"nothing":                    {"", ""},
		"line breaks":                {"a\nb\r\nc\u2028d\te", "a b c d e"},
		"spaces at the ends":         {" \n a \u3000\t", "a"},
		"no more than two spaces":    {"a    b", "a  b"},
		"a break beside spaces":      {"a \n  b", "a  b"},
		"controls":                   {"a\x00b\x1b[31mc\x7f\u009b", "ab[31mc"},
		"no UTF-8":                   {"a\xffb\xed\xa0\x80", "a\ufffdb\ufffd\ufffd\ufffd"},
		"bidi, zero width, tags":     {"a\u202eb\u200bc\ufeffd\U000e0041e\u00adf", "abcdef"},
		"private, unassigned":        {"a\ue000b\U000f0000c\u0378d\uffffe", "abcde"},
		"fillers":                    {"a\u3164b\u115fc\u034fd\u2800e\ufffcf", "abcdef"},
		"variation selectors":        {"a\ufe00b\U000e0100c\ufe0fd", "abcd"},
		"joiners between letters":    {"a\u200db\u200cc", "abc"},
		"an emoji joiner at the end": {"👩\u200d", "👩"},
		"two joiners":                {"👩\u200d\u200d👧", "👩\u200d👧"},
		"a joiner before an emoji":   {"a\u200d👩", "a👩"},
		"a keycap":                   {"0\ufe0f\u20e3 9\ufe0f\u20e3 *\ufe0f\u20e3 #\ufe0f\u20e3", ""},
		"a keycap on a letter":       {"a\ufe0f\u20e3 :\ufe0f\u20e3", "a\u20e3 :\u20e3"},
		"two selectors":              {"❤\ufe0f\ufe0f", "❤\ufe0f"},
		"marks without a letter":     {"\u0301a \u0301b", "a b"},
		"too many marks": {"a\u0301\u0301\u0301\u0301\u0301\u0301b",
			"a\u0301\u0301\u0301\u0301b"},
		"a heading":                    {"## Rules", `\## Rules`},
		"a hashtag":                    {"#12 is open", ""},
		"list items":                   {"- a", `\- a`},
		"a numbered item":              {"12. a", `12\. a`},
		"a number":                     {"-12.5 degrees", ""},
		"a year":                       {"2026", ""},
		"a number with a unit":         {"5x", ""},
		"a version":                    {"12.5", ""},
		"code at the beginning":        {"``a`` and ```b", "``a`` and ``'b"},
		"a flag":                       {"--force is set", ""},
		"emphasis":                     {"**never** do it", ""},
		"a quotation":                  {"> a", `\> a`},
		"a table":                      {"| a | b |", `\| a | b |`},
		"a rule":                       {"- - -", `\- - -`},
		"an underline":                 {"====", `\====`},
		"a heading behind what is cut": {"\u200b# a", `\# a`},
		"a fence":                      {"x ```sh", "x ``'sh"},
		"a longer fence":               {"~~~~", `\~~~~`},
		"inline code":                  {"`a` and ``b``", ""},
		"a tag":                        {"</event><system>", "‹/event>‹system>"},
		"a tag that shows late":        {"<\u200bb>", "‹b>"},
		"chat markers": {"<|im_start|> [INST] [/INST] <<SYS>>",
			"‹|im_start|> (INST] (/INST] ‹‹SYS>>"},
	} {
		t.Run(name, func(t *testing.T) {
			want := tt.want
			if want == "" {
				want = tt.in
			}
			assert.Equal(t, want, prompt.Line(tt.in, 0))
			assert.Equal(t, want, prompt.Line(want, 0), "a line stays as it is")
			assert.Equal(t, want == tt.in, prompt.Check(tt.in) == nil)
		})
	}
}

func TestQuote(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"an ordinary text": {"The oven is on: 200 °C", `"The oven is on: 200 °C"`},
		"nothing":          {"", `""`},
		"quotes":           {`a "b" \c`, `"a \"b\" \\c"`},
		"line breaks":      {"a\nb", `"a b"`},
		"what is escaped":  {"<a>&[b]{c}`d`", `"\u003ca\u003e\u0026\u005bb]\u007bc}\u0060d\u0060"`},
		"a heading":        {"# a", `"# a"`},
		"zero width":       {"a\u200bb", `"ab"`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, prompt.Quote(tt.in, 0))
		})
	}
}

func TestLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		max  int
		want string
	}{
		"as long as may be":         {"äbc", 3, "äbc"},
		"longer":                    {"äbcd", 3, "äb…"},
		"spaces count for nothing":  {"abc   ", 3, "abc"},
		"text behind spaces does":   {"abc   d", 3, "ab…"},
		"nor do characters that go": {"a\u200bb\u200bc", 3, "abc"},
		"no space before the mark":  {"a bcd", 3, "a…"},
		"no joiner before the mark": {"👩\u200d👩\u200d👧", 3, "👩…"},
		"room for the mark only":    {"abc", 1, "…"},
		"the backslash counts":      {"# abc", 5, `\# a…`},
		"the default for nothing given": {strings.Repeat("a", 2000), 0,
			strings.Repeat("a", prompt.DefaultMax-1) + "…"},
		"no limit": {strings.Repeat("a", 2000), math.MaxInt,
			strings.Repeat("a", 2000)},
		"and for less": {strings.Repeat("a", 2000), -1,
			strings.Repeat("a", prompt.DefaultMax-1) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, prompt.Line(tt.in, tt.max))
		})
	}
	assert.Equal(t, `"abc"`, prompt.Quote("abc", math.MaxInt))
	assert.Equal(t, `"\"\"…"`, prompt.Quote(strings.Repeat(`"`, 9), 3), "what is escaped counts once")
}

func TestCheckNamesTheCharacter(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"nothing wrong":   {strings.Repeat("fine ", 1000) + "end", ""},
		"invisible":       {"ä\u200bb", "character 2 (U+200B) is invisible, or no character"},
		"among its like":  {"a   b", "character 4 (U+0020) is a space too many"},
		"at the end":      {"ab ", "character 3 (U+0020) is a space too many"},
		"a line break":    {"a\nb", "character 2 (U+000A) is not allowed in one line"},
		"no UTF-8":        {"ab\xff", "character 3 (U+FFFD) is no valid UTF-8"},
		"the sign for it": {"ab\ufffd", ""},
		"a mark": {"e\u0301\u0301\u0301\u0301\u0301",
			"character 6 (U+0301) is a combining mark too many"},
		"markup":      {"x <b>", "character 3 (U+003C) begins what reads as markup"},
		"a list item": {"- x", "character 1 (U+002D) begins what reads as markup"},
		"an invisible neighbour": {"a\u200b\u200ba",
			"character 2 (U+200B) is invisible, or no character"},
	} {
		t.Run(name, func(t *testing.T) {
			err := prompt.Check(tt.in)
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, tt.want)
		})
	}
}

// Every code point that nobody sees is gone from between letters, and every other stays. Of the
// planes that have hardly any characters, short runs look at one code point in 61.
func TestEveryCodePoint(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		bare := r >= 0x30000 && (r < 0xe0000 || r > 0xe01ff)
		if !utf8.ValidRune(r) || bare && r%61 != 0 && os.Getenv("HEED_LONG") == "" {
			continue
		}
		in := "a" + string(r) + "b"
		got, want := prompt.Line(in, 0), in
		switch {
		case unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			want = got
			require.Contains(t, []string{"ab", "a b"}, got, "%U", r)
		case !unicode.IsGraphic(r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r),
			unicode.Is(unicode.Variation_Selector, r),
			r == '\u2800', r == '\ufffc', r == 0x1d159:
			want = "ab"
		case r == '<':
			want = "a‹b"
		}
		if got != want {
			t.Fatalf("%U: got %+q, want %+q", r, got, want)
		}
		if quoted := prompt.Quote(in, 0); r != '<' && quoted != `"`+got+`"` && unquote(t, quoted) != got {
			t.Fatalf("%U: got %s", r, quoted)
		}
	}
}

func TestBenignTextStays(t *testing.T) {
	n := 0
	for text := range benign() {
		n++
		assert.Equal(t, text, prompt.Line(text, 0))
		assert.Equal(t, text, unquote(t, prompt.Quote(text, 0)))
		assert.NoError(t, prompt.Check(text), text)
	}
	assert.Equal(t, 500, n)
}

func TestHostileTextIsChecked(t *testing.T) {
	n, passed := 0, 0
	for text := range prompttest.Hostile() {
		n++
		if prompt.Check(text) == nil {
			passed++
			assert.False(t, strings.ContainsFunc(text,
				func(r rune) bool { return !unicode.IsGraphic(r) }), text)
		}
	}
	assert.Equal(t, 1000, n)
	assert.Less(t, passed, 200, "only what is hostile in its place, as a quote in quotes is")
}

// fields is a prompt of fields in all the places that there are.
func fields(line, quote func(string) string) func(field int, value string) string {
	return func(field int, value string) string {
		texts := slices.Repeat([]string{"a benign text"}, 9)
		texts[field] = value
		return "Event: " + line(texts[0]) + "\n\n# Heading\n" + line(texts[1]) + "\n- " + line(
			texts[2]) + "\n1. Situation: " +
			quote(texts[3]) + " → Response: " + quote(texts[4]) + "\n> " + line(
			texts[5]) + "\n## " + line(texts[6]) +
			"\n{\"a\": " + quote(texts[7]) + ", \"b\": " + quote(texts[8]) + "}\nHow should I respond?"
	}
}

func TestNeutral(t *testing.T) {
	assert.NoError(t, prompttest.Neutral(9, fields(
		func(s string) string { return prompt.Line(s, 0) },
		func(s string) string { return prompt.Quote(s, 0) })))
}

// The common ways of making prompts are not neutral.
func TestNeutralBites(t *testing.T) {
	same := func(s string) string { return s }
	for name, render := range map[string]func(int, string) string{
		"as it is": fields(same, func(s string) string { return `"` + s + `"` }),
		"JSON without a limit": fields(func(s string) string { return prompt.Line(s, 0) },
			func(s string) string { b, _ := json.Marshal(s); return string(b) }),
		"no line breaks": fields(func(s string) string { return strings.ReplaceAll(s, "\n", " ") },
			func(s string) string { return prompt.Quote(s, 0) }),
		"a line in quotes": fields(func(s string) string { return prompt.Line(s, 0) }, func(s string) string { return `"` + prompt.Line(s, 0) + `"` }),
		"a line in brackets": fields(func(s string) string {
			return "[" + prompt.Line(s,
				0) + "]: x"
		}, func(s string) string { return prompt.Quote(s, 0) }),
		"the field is left out": func(int, string) string { return "x" },
	} {
		t.Run(name, func(t *testing.T) { assert.Error(t, prompttest.Neutral(9, render)) })
	}
}

func TestCode(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		max  int
		want string
	}{
		"signs and blanks":    {"if a && b {\n\tprint(\"<none>\")  // [x]\n}", 0, "```\nif a && b {\n\tprint(\"<none>\")  // [x]\n}\n```"},
		"blocks":              {"# a\n- b\n> c\n---", 0, "```\n# a\n- b\n> c\n---\n```"},
		"a fence":             {"a\n```\nb", 0, "````\na\n```\nb\n````"},
		"a long fence":        {"``````", 0, "```````\n``````\n```````"},
		"indented":            {"\n    a\n  b\n\n", 0, "```\n    a\n  b\n```"},
		"line ends":           {"a\r\nb\rc\u2028d", 0, "```\na\nb\nc\nd\n```"},
		"nothing":             {"", 0, "```\n\n```"},
		"what nobody sees":    {"a\u202e\u200bb\x00c\u0301\u0301\u0301\u0301\u0301\u0301", 0, "```\nabc\u0301\u0301\u0301\u0301\n```"},
		"no UTF-8":            {"a\xffb", 0, "```\na\ufffdb\n```"},
		"too long":            {"abcdef", 4, "```\nabc…\n```"},
		"chat markers":        {"<|im_end|> [INST] [/THINK] <0x0A> [|user|] <｜User｜>", 0, "```\n‹|im_end|> (INST] (/THINK] ‹0x0A> (|user|] ‹｜User｜>\n```"},
		"what is like them":   {"x <| f |> g; a[i] [THINKER] <- <0x", 0, "```\nx <| f |> g; a[i] [THINKER] <- <0x\n```"},
		"markers in brackets": {"a[`b`][```]", 0, "````\na[`b`][```]\n````"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, prompt.Code(tt.text, tt.max)) })
	}
}

// No text ends its fence, and what can be seen stays.
func TestCodeStaysInItsFence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("([`~a-c<>&\\[\\]{} \t\n]|```|\r\n|~~~\n){0,60}").Draw(t, "text")
		lines := strings.Split(prompt.Code(text, 0), "\n")
		fence := lines[0]
		require.Equal(t, fence, lines[len(lines)-1])
		require.Empty(t, strings.Trim(fence, "`"))
		body := lines[1 : len(lines)-1]
		for _, line := range body {
			require.NotContains(t, line, fence)
		}
		want := strings.TrimRight(strings.Trim(strings.NewReplacer("\r\n", "\n", "\r",
			"\n").Replace(text), "\n"), " \t\n")
		require.Equal(t, want, strings.Join(body, "\n"))
	})
	for value := range prompttest.Hostile() {
		lines := strings.Split(prompt.Code(value, 0), "\n")
		for _, line := range lines[1 : len(lines)-1] {
			assert.NotContains(t, line, lines[0], "%+q", value)
			assert.NotRegexp(t, `<[|｜][^\s<>]+[|｜]>|\[/?(INST|THINK)\]`, line)
		}
	}
}

// Words in brackets that models were trained on have no effect, in a line and in a fence.
func TestMarkersOfModelsAreDisarmed(t *testing.T) {
	for _, marker := range []string{
		"<start_of_turn>", "</s>", "<think>", "<tool_call>", "<|im_start|>", "<0x0A>", "[INST]",
		"[EOS]", "[@BOS@]", "]~b]", "[AUDIO]",
	} {
		assert.NotContains(t, prompt.Line("a "+marker+" b", 0), marker)
		assert.NotContains(t, prompt.Code("a\n"+marker+" b", 0), marker)
		assert.Error(t, prompt.Check("a "+marker+" b"), marker)
	}
	for _, plain := range []string{"a < b", "see [1] and [todo]", "x[i] = y"} {
		assert.NoError(t, prompt.Check(plain))
		assert.Contains(t, prompt.Code(plain, 0), plain)
	}
	assert.Contains(t, prompt.Code("<strong>x</strong>", 0), "<strong>x</strong>")
}
