package oppose

import (
	_ "embed"
	"strings"
)

//go:embed words.txt
var wordFile string

// lists has the lines of each list in words.txt, by its name.
var lists = func() map[string][]string {
	all, name := map[string][]string{}, ""
	for line := range strings.Lines(wordFile) {
		switch line = strings.TrimSpace(line); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			name = strings.Trim(line, "[]")
		default:
			all[name] = append(all[name], line)
		}
	}
	return all
}()

func wordsOf(list string) []string { return strings.Fields(strings.Join(lists[list], " ")) }

func setOf(list string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range wordsOf(list) {
		set[word] = true
	}
	return set
}

// pairsOf returns the values of a list of the form "name=value", by their names.
func pairsOf(list string) map[string]string {
	pairs := make(map[string]string)
	for _, word := range wordsOf(list) {
		name, value, _ := strings.Cut(word, "=")
		pairs[name] = value
	}
	return pairs
}

// The lists of words.txt, which says what each is for.
var (
	negations        = setOf("negations")
	deniedAllow      = setOf("deniedAllow")
	wholeClause      = setOf("wholeClause")
	denseNegations   = wordsOf("denseNegations")
	denseNegation    = setOf("denseNegations")
	auxiliaries      = setOf("auxiliaries")
	modals           = setOf("modals")
	copulas          = setOf("copulas")
	clauseStarts     = setOf("clauseStarts")
	joins            = setOf("joins")
	relations        = setOf("relations")
	turningWords     = wordsOf("turningWords")
	placing          = setOf("placing")
	emptyWords       = setOf("emptyWords")
	numberWords      = pairsOf("numberWords")
	denseNumbers     = pairsOf("denseNumbers")
	negativePrefixes = wordsOf("negativePrefixes")
)

// plainBounds words a bound without a negation, and has one kind of apostrophe.
var plainBounds = strings.NewReplacer("’", "'", "no more than", "at most", "not more than", "at most", "No more than", "at most",
	"no less than", "at least", "no fewer than", "at least", "not less than", "at least", "up to", "at most")

// units has for each spelling of a unit the one under which it is compared.
var units = func() map[string]string {
	all := make(map[string]string)
	for _, line := range lists["units"] {
		names := strings.Fields(line)
		for _, name := range names {
			all[name] = " " + names[0]
		}
	}
	return all
}()

// antonyms has for each word its opposites.
var antonyms = func() map[string][]string {
	all := make(map[string][]string)
	for _, line := range lists["antonyms"] {
		left, right, _ := strings.Cut(line, "|")
		for _, a := range strings.Fields(left) {
			for _, b := range strings.Fields(right) {
				all[a] = append(all[a], b)
				all[b] = append(all[b], a)
			}
		}
	}
	return all
}()
