package oppose

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/heedhq/heed/internal/text"
)

// wordFile has the lists. It explains what each list is for.
//
//go:embed words.txt
var wordFile string

// lists has the lines of each list in words.txt, by its name.
var lists = text.Lists(wordFile)

// wordsOf returns the words of lists, in their order.
func wordsOf(names ...string) (words []string) {
	for _, name := range names {
		for _, line := range lists[name] {
			words = append(words, strings.Fields(line)...)
		}
	}
	return words
}

// A vocabulary is a set of words, and of beginnings that match words with any ending.
type vocabulary struct {
	// whole is looked up; beginnings are tried one after the other, because there are few.
	whole      map[string]bool
	beginnings []string
}

// setOf returns the words of lists as a vocabulary. A dash at the end of an entry marks a
// beginning. Several lists may share words.
func setOf(names ...string) vocabulary {
	v := vocabulary{whole: make(map[string]bool)}
	for _, word := range wordsOf(names...) {
		if beginning, open := strings.CutSuffix(word, "-"); open {
			v.beginnings = append(v.beginnings, beginning)
		} else {
			v.whole[word] = true
		}
	}
	return v
}

// has reports whether a word is in the vocabulary, or begins like one of its beginnings.
func (v vocabulary) has(word string) bool {
	return v.whole[word] || slices.ContainsFunc(v.beginnings,
		func(b string) bool { return strings.HasPrefix(word, b) })
}

// The lists of words.txt, which explains what each is for.
var (
	// negations are in clauses of scripts with blanks. denseNegations are the ones without, as a
	// list, longest first, and denseNegation as a set.
	negations      = setOf("negations", "forbidding")
	forbidding     = setOf("forbidding")
	denseNegations = wordsOf("denseNegations")
	denseNegation  = setOf("denseNegations")
	be             = setOf("be")
	auxiliaries    = setOf("be", "auxiliaries", "modals")
	modals         = setOf("modals")
	clauseStarts   = setOf("clauseStarts", "conditions")
	conditions     = setOf("conditions")
	joins          = setOf("joins")
	relations      = setOf("relations", "placing")
	turningWords   = wordsOf("turningWords")
	placing        = setOf("placing")
	stressing      = setOf("stressing")
	emptyWords     = setOf("be", "auxiliaries", "modals", "clauseStarts", "conditions", "joins",
		"relations", "placing", "emptyWords")
	negativePrefixes = wordsOf("negativePrefixes")
)

// plainBounds words a bound without a negation, and has one kind of apostrophe. "No more than 3"
// denies nothing, and must not look like the opposite of "at most 3". A bound may begin a sentence,
// so each is there with a capital as well.
var plainBounds = func() *strings.Replacer {
	pairs := []string{"’", "'"}
	for _, b := range [][2]string{
		{"no more than", "at most"}, {"not more than", "at most"}, {"up to", "at most"},
		{"no less than", "at least"}, {"no fewer than", "at least"}, {"not less than", "at least"},
	} {
		pairs = append(pairs, b[0], b[1], strings.ToUpper(b[0][:1])+b[0][1:], b[1])
	}
	return strings.NewReplacer(pairs...)
}()

// numberWords has the digits of numbers in letters.
var numberWords = func() map[string]string {
	all := make(map[string]string)
	for _, word := range wordsOf("numberWords") {
		name, digits, _ := strings.Cut(word, "=")
		all[name] = digits
	}
	return all
}()

// antonyms maps the stem of each word to the stems of its opposites. A line has the words of one
// side, a bar, and the words of the other; each opposes each.
var antonyms = func() map[string][]string {
	all := make(map[string][]string)
	for _, line := range lists["antonyms"] {
		left, right, _ := strings.Cut(line, "|")
		for _, a := range strings.Fields(left) {
			for _, b := range strings.Fields(right) {
				all[stem(a)] = append(all[stem(a)], stem(b))
				all[stem(b)] = append(all[stem(b)], stem(a))
			}
		}
	}
	return all
}()
