// Package prompt is the only place of heed that brings untrusted text into a prompt: what happened, what a user or a model
// wrote, rules, comments, error messages. It gives such a text no way to look like a part of the prompt itself.
//
// [Line] makes one line of a text, to be put behind a heading or a list marker. [Quote] makes a JSON string literal of it,
// for where a prompt has more than one text in a line. [Check] says whether a text would be changed, for texts that people
// approve, which are better refused than cleaned.
//
// # What is changed
//
// Characters that nobody sees are dropped: control and format characters (bidirectional controls, zero-width characters,
// tags), surrogates, private and unassigned code points, variation selectors and fillers. What script and emoji need stays:
// the joiners between emoji, behind a virama, and between Arabic letters, and the emoji selector behind what can be an
// emoji. A letter keeps at most four combining marks. Line breaks and tabs become spaces, and at most two spaces stand
// together. What is no valid UTF-8 becomes U+FFFD. Which code points are assigned is what package [unicode] says.
//
// Beyond that, Line takes their effect from the beginnings of tags and of chat markers ("<b", "<|", "[INST]": the bracket
// becomes "‹" or "("), from code fences, and, by a backslash, from what would make a heading, a list item, a quotation, a
// table or a rule of the line. Quote needs none of this: it writes the characters in question as JSON's \u escapes.
//
// This keeps the form of a prompt, and not its sense: a sentence that asks the model for something still asks for it.
package prompt

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultMax is how many characters a text may have where no other number is given.
const DefaultMax = 1000

// Line returns the text as one line of at most max characters (runes), cut with "…" where it is longer. A max of 0 or
// less means [DefaultMax].
func Line(text string, max int) string {
	max = orDefault(max)
	return cut(disarm(clean(text, max+slack)), max)
}

// Quote returns the text as a JSON string literal in one line, of at most max characters (runes) between the quotes before
// they are escaped, cut with "…" where it is longer. A max of 0 or less means [DefaultMax]. The characters <, >, &, [, {
// and ` are always escaped.
func Quote(text string, max int) string {
	max = orDefault(max)
	text = cut(clean(text, max+slack), max)
	var b strings.Builder
	b.Grow(len(text) + 2)
	b.WriteByte('"')
	for _, r := range text {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '<', '>', '&', '[', '{', '`':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Check returns an error that names the first character that [Line] would drop or change, and nil where it would leave the
// text as it is, however long.
func Check(text string) error {
	got := disarm(clean(text, math.MaxInt))
	for i, r := range text {
		rest, width := utf8.DecodeRuneInString(got)
		if bad := r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)); bad || r != rest {
			return fmt.Errorf("character %d (%U) %s", utf8.RuneCountInString(text[:i])+1, r, fault(r, bad))
		}
		got = got[width:]
	}
	return nil
}

// fault says what is wrong with a character that would not stay.
func fault(r rune, bad bool) string {
	switch {
	case bad:
		return "is no valid UTF-8"
	case unicode.Is(unicode.Zs, r):
		return "is a space too many"
	case breaks(r):
		return "is not allowed in one line"
	case !unicode.IsGraphic(r), unicode.Is(unseen, r):
		return "is invisible, or no character"
	case unicode.IsMark(r):
		return "is a combining mark too many"
	default:
		return "begins what reads as markup"
	}
}

// orDefault returns a maximum that can be added to: no text has half as many characters as there are numbers.
func orDefault(max int) int {
	if max <= 0 {
		return DefaultMax
	}
	return min(max, math.MaxInt/2)
}

// slack is how many runes more than its maximum a text is read to, so that it shows whether there is more to it than the
// spaces that are trimmed, and where a chat marker ends.
const slack = 20

// cut cuts a text to max runes, and leaves nothing dangling before the "…".
func cut(text string, max int) string {
	if len(text) <= max || utf8.RuneCountInString(text) <= max {
		return text
	}
	end, n := 0, 0
	for i := range text {
		if n == max-1 {
			end = i
			break
		}
		n++
	}
	return strings.TrimRightFunc(text[:end], func(r rune) bool {
		return r == zwj || r == zwnj || unicode.Is(unicode.Zs, r)
	}) + "…"
}

// Drawn from Unicode: the joiners, and the selectors of an emoji's two forms.
const (
	zwnj    = '\u200c'
	zwj     = '\u200d'
	asText  = '\ufe0e'
	asEmoji = '\ufe0f'
	keycap  = '\u20e3'
)

// unseen are the graphic characters that nobody sees.
var unseen = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x034f, 0x034f, 1}, // combining grapheme joiner
		{0x115f, 0x1160, 1}, // Hangul fillers
		{0x17b4, 0x17b5, 1}, // Khmer inherent vowels
		{0x180b, 0x180f, 1}, // Mongolian variation selectors
		{0x2800, 0x2800, 1}, // Braille blank
		{0x3164, 0x3164, 1}, // Hangul filler
		{0xfe00, 0xfe0f, 1}, // variation selectors
		{0xffa0, 0xffa0, 1}, // Hangul filler of half width
		{0xfffc, 0xfffc, 1}, // object replacement
	},
	R32: []unicode.Range32{
		{0x1d159, 0x1d159, 1}, // null note head
		{0xe0100, 0xe01ef, 1}, // variation selectors
	},
}

// viramas are the signs behind which a joiner changes the form of an Indic letter.
var viramas = &unicode.RangeTable{R16: []unicode.Range16{
	{0x094d, 0x09cd, 0x80}, {0x0a4d, 0x0acd, 0x80}, {0x0b4d, 0x0bcd, 0x80}, {0x0c4d, 0x0ccd, 0x80}, {0x0d4d, 0x0d4d, 1},
	{0x0dca, 0x0dca, 1}, {0x1039, 0x103a, 1}, {0x17d2, 0x17d2, 1},
}}

// breaks reports whether a character ends a line or moves within it.
func breaks(r rune) bool {
	return r >= '\t' && r <= '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

const (
	maxSpaces = 2
	maxMarks  = 4
)

// A cleaner copies a text without what nobody sees.
type cleaner struct {
	out    strings.Builder
	runes  int
	last   rune // the last that was kept; 0 at the beginning
	spaces int  // how many of the last that were kept are spaces
	marks  int  // how many of the last that were kept are marks
}

// clean returns at most n runes of the cleaned text, without spaces at its ends.
func clean(text string, n int) string {
	var c cleaner
	for i, r := range text {
		if c.runes >= n {
			break
		}
		switch {
		case breaks(r):
			if c.spaces == 0 {
				c.space(' ')
			}
		case unicode.Is(unicode.Zs, r):
			c.space(r)
		case r == zwj || r == zwnj || r == asText || r == asEmoji:
			next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
			if c.joins(r, next) {
				c.keep(r)
			}
		case !unicode.IsGraphic(r) || unicode.Is(unseen, r):
		case unicode.IsMark(r):
			c.mark(r)
		default:
			c.keep(r)
			c.spaces, c.marks = 0, 0
		}
	}
	return strings.TrimRightFunc(c.out.String(), func(r rune) bool { return unicode.Is(unicode.Zs, r) })
}

func (c *cleaner) keep(r rune) {
	c.out.WriteRune(r)
	c.last = r
	c.runes++
}

func (c *cleaner) space(r rune) {
	if c.last != 0 && c.spaces < maxSpaces {
		c.keep(r)
		c.spaces++
		c.marks = 0
	}
}

// mark keeps a combining mark that has something to combine with.
func (c *cleaner) mark(r rune) {
	if c.last != 0 && c.spaces == 0 && c.marks < maxMarks {
		c.keep(r)
		c.marks++
	}
}

// joins reports whether a joiner or a selector has its use between what was kept last and the next character.
func (c *cleaner) joins(r, next rune) bool {
	switch r {
	case asText, asEmoji:
		return pictographic(c.last) || next == keycap && (c.last >= '0' && c.last <= '9' || c.last == '#' || c.last == '*')
	case zwj:
		if (pictographic(c.last) || c.last == asEmoji) && pictographic(next) && !unicode.Is(unseen, next) {
			return true
		}
	case zwnj:
		if unicode.Is(unicode.Arabic, c.last) && unicode.IsLetter(c.last) && unicode.Is(unicode.Arabic, next) && unicode.IsLetter(next) {
			return true
		}
	}
	return unicode.Is(viramas, c.last) && unicode.IsLetter(next) && !unicode.Is(unseen, next)
}

// pictographic reports whether a character is, or can be, an emoji. It takes every symbol for one.
func pictographic(r rune) bool {
	switch r {
	case '\u203c', '\u2049', '\u2139', '\u3030':
		return true
	default:
		return r > 0x7f && unicode.IsSymbol(r) && r != utf8.RuneError
	}
}

// chatMarkers are what may follow a square bracket in the chat templates of models, up to the bracket's end.
var chatMarkers = []string{
	"INST]", "/INST]", "SYSTEM_PROMPT]", "/SYSTEM_PROMPT]", "AVAILABLE_TOOLS]", "/AVAILABLE_TOOLS]",
	"TOOL_CALLS]", "TOOL_RESULTS]", "/TOOL_RESULTS]", "TOOL_CONTENT]",
}

// disarm takes the effect from what reads as markup in a clean text.
func disarm(text string) string {
	marker := blockMarker(text)
	if marker < 0 && !strings.ContainsAny(text, "<[`") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 4)
	ticks := 0 // how many backticks stand together
	for i, r := range text {
		if i == marker {
			b.WriteByte('\\')
		}
		if r != '`' {
			ticks = 0
		}
		switch rest := text[i+utf8.RuneLen(r):]; {
		case r == '<' && opensTag(rest):
			r = '‹'
		case r == '[' && opensChatMarker(rest):
			r = '('
		case r == '`':
			if ticks++; ticks > 2 {
				r = '\''
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

func opensTag(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return unicode.IsLetter(r) || strings.ContainsRune("/|｜!?<", r)
}

func opensChatMarker(rest string) bool {
	for _, marker := range chatMarkers {
		if strings.HasPrefix(rest, marker) {
			return true
		}
	}
	return false
}

// blockMarker returns where a backslash has to be put so that the line is none of Markdown's blocks, and -1 where it is
// none anyway.
func blockMarker(line string) int {
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	switch rest := line[digits:]; {
	case rest == "":
		return -1
	case digits > 0:
		if strings.ContainsRune(".)", rune(rest[0])) && endsMarker(rest[1:]) {
			return digits
		}
	case rest[0] == '>' || rest[0] == '|',
		rest[0] == '#' && endsMarker(strings.TrimLeft(rest, "#")),
		strings.ContainsRune("-+*", rune(rest[0])) && endsMarker(rest[1:]),
		strings.HasPrefix(rest, "~~~"), strings.Trim(rest, "-*_= ") == "":
		return 0
	}
	return -1
}

func endsMarker(after string) bool { return after == "" || after[0] == ' ' }
