package patterns

import (
	_ "embed"
	"strings"

	"github.com/heedhq/heed/internal/text"
)

// wordFile has the lists. It explains what each list is for.
//
//go:embed words.txt
var wordFile string

// lists has the lines of each list in words.txt, by its name.
var lists = text.Lists(wordFile)

// A set is a set of words.
type set map[string]bool

// setOf returns the words of a list as a set.
func setOf(list string) set {
	set := make(set)
	for _, line := range lists[list] {
		for _, w := range strings.Fields(line) {
			set[w] = true
		}
	}
	return set
}

// Approaches returns the twelve strategies of decomposition that the learning-systems design
// detects. Append your own.
func Approaches() (all []Approach) {
	var synonyms []string
	for _, line := range lists["synonyms"] {
		name, words, _ := strings.Cut(line, " ")
		synonyms = append(synonyms, name, words)
	}
	filled := strings.NewReplacer(synonyms...)
	for _, name := range lists["approaches"] {
		a := Approach{Name: name}
		for _, phrase := range lists[name] {
			a.Phrases = append(a.Phrases, filled.Replace(phrase))
		}
		all = append(all, a)
	}
	return all
}
