// Package prompt is the only place of heed that brings untrusted text into a prompt: events, the
// words of users and models, rules, comments, error messages. Such a text can't look like a part of
// the prompt itself.
//
// [Line] makes one line of a text, for a place behind a heading or a list marker. [Quote] makes a
// JSON string literal, for a line with several texts. [Code] puts a text of several lines into a
// fence and keeps its characters. [Check] reports whether Line would change a text. Use it for
// texts that people approve: refuse those instead of changing them.
//
// # What is changed
//
// Invisible characters are dropped: control and format characters (bidirectional controls,
// zero-width characters, tags), surrogates, private and unassigned code points, variation selectors
// and fillers. Joiners that a script or an emoji needs stay: between emoji, after a virama, and
// between Arabic letters. So does the emoji selector after a character that can be an emoji. A
// letter keeps at most four combining marks. Line breaks and tabs become spaces, and runs of spaces
// are cut to two. Invalid UTF-8 becomes U+FFFD. Package [unicode] defines which code points are
// assigned.
//
// Line also disarms tags and chat markers ("<b", "<|", "[INST]", "[THINK]", "<0x0A>": the bracket
// becomes "‹" or "("), and code fences. It puts a backslash before the beginning of a heading, a
// list item, a quotation, a table or a rule. Quote does not need that. It writes such characters as
// JSON's \u escapes.
//
// This keeps the form of a prompt, not its sense. A sentence that asks the model for something
// still asks for it. The packages decide which texts go in: see feedback.Rules.Inject,
// patterns.Plan and decision.Config.
package prompt

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultMax is the greatest length of a text in characters, if no other is given.
const DefaultMax = 1000

// Line returns the text as one line of at most max characters (runes). A longer text is cut and
// ends with "…". A max of 0 or less means [DefaultMax].
func Line(text string, max int) string {
	max = orDefault(max)
	return cut(disarm(clean(text, max+slack)), max)
}

// Quote returns the text as a JSON string literal in one line. It has at most max characters
// (runes) between the quotes, counted before they are escaped. A longer text is cut and ends with
// "…". A max of 0 or less means [DefaultMax]. The characters <, >, &, [, { and ` are always
// escaped.
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

// Code returns the text as a fenced block of Markdown, to be put at the beginning of a line. The
// fence is longer than any run of backticks in the text, so the text can't end it. The text keeps
// its lines, blanks, tabs, brackets and signs. Only invisible characters are dropped, and chat
// markers disarmed, because a fence does not hold those. A text of more than max characters (runes)
// is cut and ends with "…". A max of 0 or less means [DefaultMax].
func Code(text string, max int) string {
	max = orDefault(max)
	text = strings.Trim(cut(copied(text, max+slack, true), max), "\n")
	text = strings.TrimRight(disarmTags(text), " \t\n")
	longest := 2
	for run := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '`' }) {
		if len(run) > longest {
			longest = len(run)
		}
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + text + "\n" + fence
}

// chatTags are the markers of chat templates: those that no other text has, and the words in angle
// brackets that models were trained on.
var chatTags = regexp.MustCompile("<[|｜][^<>`\\s]{1,40}[|｜]>|<0x[0-9A-F]{2}>|\\[[^\\[\\]`\\s]{1,20}\\]|\\]~b\\]" +
	"|</?(?:s|bos|eos|think|thinking|start_of_turn|end_of_turn|tool_calls?|tool_response)>")

// disarmTags disarms all markers of chat templates, also one that another began in: "<|<|end|>".
func disarmTags(text string) string {
	for {
		next := chatTags.ReplaceAllStringFunc(text, disarm)
		if next == text {
			return text
		}
		text = next
	}
}

// Check returns an error that names the first character that [Line] would drop or change. It
// returns nil if Line would leave the text as it is. The length does not matter.
func Check(text string) error {
	got := disarm(clean(text, math.MaxInt))
	for i, r := range text {
		rest, width := utf8.DecodeRuneInString(got)
		if bad := r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)); bad ||
			r != rest {
			return fmt.Errorf("character %d (%U) %s", utf8.RuneCountInString(text[:i])+1, r,
				fault(r, bad))
		}
		got = got[width:]
	}
	return nil
}

// fault returns why a character would not stay.
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

// orDefault returns a maximum that can be added to: no text has half as many characters as there
// are numbers.
func orDefault(max int) int {
	if max <= 0 {
		return DefaultMax
	}
	return min(max, math.MaxInt/2)
}

// slack is how many runes are read beyond the maximum. They show whether more than trimmed spaces
// follows, and where a chat marker ends.
const slack = 20

// cut cuts a text to max characters, so that one long text can't push the others out of a prompt.
// It cuts to max runes, and leaves no loose sign before the "…".
func cut(text string, max int) string {
	if utf8.RuneCountInString(text) <= max {
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

// unseen are graphic characters that are invisible.
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

// viramas are signs after which a joiner changes the form of an Indic letter.
var viramas = &unicode.RangeTable{R16: []unicode.Range16{
	{0x094d, 0x09cd, 0x80}, {0x0a4d, 0x0acd, 0x80}, {0x0b4d, 0x0bcd, 0x80}, {0x0c4d, 0x0ccd, 0x80},
	{0x0d4d, 0x0d4d, 1},
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

// A cleaner copies a text. It counts spaces and marks in a row, because long runs of either can
// hide what follows, or make a line unreadable. It copies a text without its invisible characters.
type cleaner struct {
	out    strings.Builder
	runes  int
	last   rune // the last that was kept; 0 at the beginning
	spaces int  // how many of the last that were kept are spaces
	marks  int  // how many of the last that were kept are marks
}

// clean returns at most n runes of the cleaned text in one line, without spaces at its ends.
func clean(text string, n int) string {
	return strings.TrimRightFunc(copied(text, n, false),
		func(r rune) bool { return unicode.Is(unicode.Zs, r) })
}

// copied returns at most n runes of a text without its invisible characters. With lines, line
// breaks, tabs and all spaces stay, else they become single spaces.
func copied(text string, n int, lines bool) string {
	var c cleaner
	for i, r := range text {
		if c.runes >= n {
			break
		}
		_, width := utf8.DecodeRuneInString(text[i:])
		next, _ := utf8.DecodeRuneInString(text[i+width:])
		switch {
		case lines && r == '\r' && next == '\n':
		case lines && (r == '\t' || unicode.Is(unicode.Zs, r)):
			c.keep(r)
			c.spaces = 1
		case lines && breaks(r):
			c.keep('\n')
			c.spaces = 1
		case breaks(r):
			if c.spaces == 0 {
				c.space(' ')
			}
		case unicode.Is(unicode.Zs, r):
			c.space(r)
		case r == zwj || r == zwnj || r == asText || r == asEmoji:
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
	return c.out.String()
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
	}
}

// mark keeps a combining mark that has something to combine with.
func (c *cleaner) mark(r rune) {
	if c.last != 0 && c.spaces == 0 && c.marks < maxMarks {
		c.keep(r)
		c.marks++
	}
}

// joins reports whether a joiner or a selector has a use between the last character that was kept
// and the next one.
func (c *cleaner) joins(r, next rune) bool {
	switch r {
	case asText, asEmoji:
		return pictographic(c.last) || next == keycap &&
			(c.last >= '0' && c.last <= '9' || c.last == '#' || c.last == '*')
	case zwj:
		if (pictographic(c.last) || c.last == asEmoji) && pictographic(next) &&
			!unicode.Is(unseen, next) {
			return true
		}
	case zwnj:
		if unicode.Is(unicode.Arabic, c.last) && unicode.IsLetter(c.last) &&
			unicode.Is(unicode.Arabic, next) && unicode.IsLetter(next) {
			return true
		}
	}
	return unicode.Is(viramas, c.last) && unicode.IsLetter(next) && !unicode.Is(unseen, next)
}

// pictographic reports whether a character can be an emoji. It reports true for every symbol.
func pictographic(r rune) bool {
	switch r {
	case '\u203c', '\u2049', '\u2139', '\u3030':
		return true
	default:
		return r > unicode.MaxASCII && unicode.IsSymbol(r) && r != utf8.RuneError
	}
}

// chatMarkers follow a square bracket in the chat templates of models, up to the closing bracket.
var chatMarkers = []string{
	"INST]", "/INST]", "SYSTEM_PROMPT]", "/SYSTEM_PROMPT]", "AVAILABLE_TOOLS]", "/AVAILABLE_TOOLS]",
	"TOOL_CALLS]", "TOOL_RESULTS]", "/TOOL_RESULTS]", "TOOL_CONTENT]", "THINK]", "/THINK]", "ARGS]",
	"CALL_ID]",
	"IMG]", "IMG_BREAK]", "IMG_END]", "PREFIX]", "MIDDLE]", "SUFFIX]", "gMASK]", "sMASK]", "MASK]",
	"CLS]", "SEP]", "BOS]", "EOS]", "@BOS@]", "@EOS@]", "PAD]", "UNK]", "AUDIO]", "BEGIN_AUDIO]",
	"|system|]", "|user|]", "|assistant|]", "|tool|]", "|endofturn|]",
}

// disarm replaces single characters of markup in a clean text by characters that look alike, so
// that a person reads the same text, and neither a chat template nor a renderer of Markdown acts on
// it.
func disarm(text string) string {
	marker := blockMarker(text)
	if marker < 0 && !strings.ContainsAny(text, "<[]`") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 4)
	ticks := 0 // length of the run of backticks
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
		case r == ']' && strings.HasPrefix(rest, "~b]"):
			r = ')'
		case r == '`':
			if ticks++; ticks > 2 {
				r = '\''
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// opensTag reports whether what follows a "<" makes it the beginning of a tag or a token. A "<"
// before a blank or a digit is a sign of comparison, and stays.
func opensTag(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return strings.HasPrefix(rest, "0x") || unicode.IsLetter(r) || strings.ContainsRune("/|｜!?<", r)
}

// opensChatMarker reports whether what follows a "[" makes it a marker of a chat template. Other
// words in brackets are common in logs, and stay.
func opensChatMarker(rest string) bool {
	return slices.ContainsFunc(chatMarkers,
		func(marker string) bool { return strings.HasPrefix(rest, marker) })
}

// blockMarker returns the place for a backslash that keeps the line from being a block of Markdown.
// It returns -1 if the line is not a block.
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
