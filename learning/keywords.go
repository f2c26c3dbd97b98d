package learning

import (
	"slices"
	"strings"
	"unicode"

	lexical "github.com/heedhq/heed/internal/text"
)

// specKeywords are the keywords of the Learning Strategy Interface design.
const specKeywords = "undo,revert,cancel,rollback,nevermind,never mind"

// Keywords returns a function that reports whether one of these words, or rows of words, is in a
// text. Case, blanks and punctuation do not matter. A word is found as a whole: "undo" is in "Undo
// that!" but not in "undoubtedly". In a script without blanks between words it may be anywhere.
// Blank keywords are left out.
func Keywords(keywords ...string) func(text string) bool {
	var wanted []string
	for _, k := range keywords {
		if k = words(k); k != " " {
			wanted = append(wanted, k)
		}
	}
	return func(text string) bool {
		text = words(text)
		return slices.ContainsFunc(wanted, func(k string) bool { return strings.Contains(text, k) })
	}
}

// words returns the words of a text in lower case with one blank before, between and after them. In
// a script without blanks between words, each character is a word.
func words(s string) string {
	var b strings.Builder
	b.WriteByte(' ')
	last := ' '
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		if last != ' ' && (r == ' ' || lexical.Dense(r) || lexical.Dense(last)) {
			b.WriteByte(' ')
			last = ' '
		}
		if r != ' ' {
			b.WriteRune(unicode.ToLower(r))
			last = r
		}
	}
	if last != ' ' {
		b.WriteByte(' ')
	}
	return b.String()
}

// thanked and but are words of thanks and praise, and words that take them back, in English,
// German, French, Spanish, Italian, Portuguese, Japanese and Chinese.
var (
	thanked = Keywords("thanks", "thank you", "thx", "perfect", "great", "awesome", "brilliant",
		"excellent", "well done", "nice", "cheers",
		"danke", "dankeschön", "super", "perfekt", "toll", "prima", "merci", "parfait", "génial",
		"gracias", "perfecto", "genial", "grazie",
		"perfetto", "ottimo", "obrigado", "obrigada", "perfeito", "ótimo", "valeu", "ありがとう", "完璧",
		"助かりました", "谢谢", "感谢", "太好了", "完美")
	but = Keywords("not", "no", "but", "nothing", "never", "isn't", "wasn't", "kein", "keine",
		"nicht", "nichts", "aber", "pas", "mais", "rien", "pero",
		"nada", "ma", "non", "niente", "não", "mas", "でも", "ない", "不", "但", "没")
)

// isThanks reports whether a text is short, has a word of thanks or praise, and does not take any
// of it back. A longer text may thank and ask for something else.
func isThanks(s string) bool {
	const most = 60 // bytes: about ten words, or twenty characters of Chinese
	return len(s) <= most && thanked(s) && !but(s) && !strings.ContainsAny(s, "?？")
}
