package learning

import (
	_ "embed" // thanks.txt
	"regexp"
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
		if k = words(k); k != "  " {
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
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r):
			b.WriteByte(' ')
		case lexical.Dense(r):
			b.WriteString(" " + string(r) + " ")
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return " " + strings.Join(strings.Fields(b.String()), " ") + " "
}

//go:embed thanks.txt
var thanksWords string

// wordsOf returns a list of thanks.txt as a group of a regular expression.
func wordsOf(list string) string {
	_, list, _ = strings.Cut(thanksWords, "\n"+list+": ")
	list, _, _ = strings.Cut(list, "\n")
	return "(?:" + list + ")"
}

var (
	praised = regexp.MustCompile(" " + wordsOf("praise") + "|[👍👏🙌👌💯🎉🥳😍🥰❤♥]")
	booed   = regexp.MustCompile("[👎🙄😒😞😠😡🤬🤦]")
	doubted = regexp.MustCompile(" " + wordsOf("failure") + "| " + wordsOf("no") + " | " +
		wordsOf("but") + " ")
	litotes = regexp.MustCompile(" " + wordsOf("no") + " (?:(?:a|so|too|that|si|de|hay) )?(?:" +
		wordsOf("failure") + "|" + wordsOf("fault") + ")| " + wordsOf("spared"))
)

// IsThanks reports whether a text is short and thanks or praises. doubt is a no or a failure in it,
// as in "thanks, wrong again". A longer text may thank and ask for something else.
func (b *bayesian) IsThanks(text string) (thanks, doubt bool) {
	const most = 60 // bytes: about ten words, or twenty characters of Chinese
	if b.spec || len(text) > most || strings.ContainsAny(text, "?？") {
		return false, false
	}
	clauses := " " // before, between and after them are two blanks
	for clause := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return strings.ContainsRune(",.;:!،、，。；：！\n", r)
	}) {
		clauses += words(clause)
	}
	return praised.MatchString(clauses + " " + text), booed.MatchString(text) ||
		doubted.MatchString(litotes.ReplaceAllString(clauses, " "))
}
