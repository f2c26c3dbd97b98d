package undo

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heedhq/heed/internal/text"
)

// A clause is a part of a sentence. Its words are in lower case. A character of Chinese or Japanese
// is a word.
type clause struct {
	// words are in the order of the text. foreign replaces a token that is not a word.
	words    []string
	sentence int  // the number of its sentence
	colon    bool // a colon ends it
	question bool // a question mark ends it
}

// foreign is a word that no grammar has. It replaces quotations and code.
const foreign = "\x00"

// A tokenizer splits a text into clauses. It reads rune by rune, with a look at the neighbours.
type tokenizer struct {
	// clauses are the finished ones. open is the clause and word the word that is being read.
	clauses  []clause
	open     clause
	word     strings.Builder
	sentence int
}

// read splits a text into clauses. A quotation or a piece of code becomes one foreign word.
// Quotations are hidden first, because punctuation in them ends no clause of the writer.
func read(written string) []clause {
	written = normalise(written)
	if strings.Contains(written, ":") || strings.Contains(written, "~~~") ||
		strings.Contains(written, "---") {
		written = pasted.ReplaceAllString(written, string(foreignRune)) // slow, and rarely needed
	}
	runes := hideQuotes([]rune(written))
	t := &tokenizer{}
	for i, r := range runes {
		var before, after rune = ' ', ' '
		if i > 0 {
			before = runes[i-1]
		}
		if i+1 < len(runes) {
			after = runes[i+1]
		}
		t.add(before, r, after)
	}
	t.end(true)
	return t.clauses
}

// add reads a rune. A hyphen, an apostrophe or a star ends a word and no clause. A sign between two
// letters, as in "undo.js", makes a name that is foreign to every grammar. A question mark, a full
// stop or a line break ends a sentence, and other punctuation a clause. The cases are in an order:
// a sign inside a name is looked at before the same sign as punctuation.
func (t *tokenizer) add(before, r, after rune) {
	inside := isWord(before) && isWord(after)
	switch {
	case text.Dense(r):
		t.endWord()
		t.open.words = append(t.open.words, string(r))
	case isWord(r):
		t.word.WriteRune(r)
	case r == '\'', r == '-' && !unicode.IsSpace(before), r == '+' && inside, r == '*', r == '~',
		r == '@', r == '/' && isSpace(before):
		t.endWord()
	case inside && strings.ContainsRune(".:_/\\=()[]", r) && !text.Dense(before), r == '(' &&
		isWord(before) && !text.Dense(before):
		t.foreign() // undo.js, revert(list)
	case strings.ContainsRune(".!?。\n", r):
		t.open.question = t.open.question || r == '?'
		t.end(true)
	case unicode.IsPunct(r) && !strings.ContainsRune(`_/\[]{}#%&`, r):
		t.open.colon = r == ':'
		t.end(false)
	case unicode.Is(unicode.So, r):
		t.end(false) // people put an emoji where others put a comma
	case isSpace(r) || unicode.Is(unicode.Sk, r):
		t.endWord()
	default:
		t.foreign()
	}
}

// endWord adds the word that is being read to the clause.
func (t *tokenizer) endWord() {
	if t.word.Len() > 0 {
		t.open.words = append(t.open.words, t.word.String())
		t.word.Reset()
	}
}

// foreign adds a word that no rule matches, except for the builtin ones.
func (t *tokenizer) foreign() {
	t.endWord()
	t.open.words = append(t.open.words, foreign)
}

// end ends a clause, and maybe its sentence. Punctuation behind punctuation belongs to the clause
// before. So "undo that ?!" is a question, although the sign stands apart.
func (t *tokenizer) end(sentence bool) {
	t.endWord()
	if len(t.open.words) > 0 {
		t.open.sentence = t.sentence
		t.clauses = append(t.clauses, t.open)
	} else if last := len(t.clauses) - 1; last >= 0 {
		t.clauses[last].colon = t.clauses[last].colon || t.open.colon
		t.clauses[last].question = t.clauses[last].question || t.open.question
	}
	t.open = clause{}
	if sentence {
		t.sentence++
	}
}

// isSpace reports whether a character separates words. Control characters do.
func isSpace(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// isWord reports whether a character belongs to a word. ASCII is decided without a table, because
// most characters are of it.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return '0' <= r && r <= '9' || 'a' <= r && r <= 'z'
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M) || r == foreignRune
}

// foreignRune replaces a quotation in a text. It is of a private area, and normalise takes it out
// of what people write.
const foreignRune = '\uE000'

// pasted is code between lines of tildes, and all that follows the line by which a mail begins the
// one that it answers, such as "On Monday, Ann wrote:" or "From: Ann".
var pasted = regexp.MustCompile(`(?ms)^[ \t]*~~~.*?(?:^[ \t]*~~~|\z)|` +
	`^[^\n]*(?:wrote|schrieb|écrit|escribió|scritto|escreveu)[^\n]*:[ \t]*$.*|` +
	`^[ \t]*(?:from|von|de|da)[ \t]*:.*|^[ \t]*-{3,}[ \t]*original.*`)

// closers has for each opening quotation mark what may close it.
var closers = map[rune]string{
	'"': `"`, '`': "`", '“': "”", '„': "“”", '”': "”", '«': "»", '»': "«", '‹': "›", '›': "‹", '‘': "’", '‚': "‘’", '\'': "'",
	'「': "」", '『': "』", '《': "》", '〈': "〉", '〝': "〞〟",
}

// hideQuotes replaces each quotation, and each line that begins with ">" or with a dash, by one
// rune. A quotation that is not closed goes to the end of the text, but a single quotation mark
// without another one is an apostrophe. A quotation is what others wrote, so a command in it is not
// the writer's. An apostrophe opens a quotation only if no letter is before it, and one that does
// not close again is an apostrophe.
func hideQuotes(runes []rune) []rune {
	var shown []rune
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		end, quoted := i, false
		switch {
		case (r == '>' || r == '—') && strings.TrimRightFunc(lineBefore(runes, i),
			unicode.IsSpace) == "":
			for end = i; end+1 < len(runes) && runes[end+1] != '\n'; {
				end++
			}
			quoted = true
		case closers[r] != "" && (!isApostrophe(r) || i == 0 || !isWord(runes[i-1])):
			end = closing(runes, i)
		}
		switch {
		case end > i || quoted:
			shown = append(shown, ' ', foreignRune, ' ')
			i = end
		case r == '’' || r == '‘':
			shown = append(shown, '\'')
		default:
			shown = append(shown, r)
		}
	}
	return shown
}

// lineBefore returns what is before a place in its line.
func lineBefore(runes []rune, at int) string {
	start := at
	for start > 0 && runes[start-1] != '\n' {
		start--
	}
	return string(runes[start:at])
}

// closing returns where the quotation that begins at a place ends. Quotations may lie in each
// other. An apostrophe within a word does not close a quotation. The opener may be its own closer,
// as with straight quotation marks; then the first one closes.
func closing(runes []rune, start int) int {
	opener, depth := runes[start], 0
	for i := start + 1; i < len(runes); i++ {
		switch r := runes[i]; {
		case strings.ContainsRune(closers[opener], r):
			if isApostrophe(r) && i+1 < len(runes) && isWord(runes[i+1]) {
				continue
			}
			if depth == 0 {
				return i
			}
			depth--
		case r == opener:
			depth++
		}
	}
	if isApostrophe(opener) {
		return start
	}
	return len(runes) - 1
}

// isApostrophe reports whether a character is an apostrophe or a single quotation mark, which
// keyboards do not distinguish.
func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == '‘' }

// normalise lower-cases a text and writes each letter in one way: composed, of normal width, in
// kana of full width. It drops what can't be seen, and the long-vowel mark, which people repeat.
// Later steps then compare runes, and need no table of variants. A private character that someone
// wrote becomes "#", so that no text can pass for a hidden quotation.
func normalise(written string) string {
	out := make([]rune, 0, len(written))
	for _, r := range written {
		if r < utf8.RuneSelf {
			out = append(out, unicode.ToLower(r))
			continue
		}
		switch r = text.Width(r); {
		case r == foreignRune || r == utf8.RuneError:
			r = '#' // no word
		case r == '´' || r == 'ʼ':
			r = '\''
		case r == '–' || r == '―':
			r = '—'
		case r == '‐' || r == '‑':
			r = '-'
		case r == '〜':
			r = '~'
		}
		r = unicode.ToLower(r)
		switch last := len(out) - 1; {
		case r == 'ー' || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r):
		case unicode.Is(unicode.M, r):
			if last >= 0 { // a mark that makes no letter is dropped
				out[last] = text.Compose([]rune{out[last], r})[0]
			}
		default:
			out = append(out, r)
		}
	}
	return string(out)
}

// plain returns a word without accents, because many people type it so. Marks of other scripts than
// Latin make another letter, for example the dots of kana.
func plain(word string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !unicode.Is(unicode.Latin, r) {
			return r
		}
		return text.Base(r)
	}, word)
}
