package undo

import (
	"slices"
)

// shortestKnown is how many letters a word must have for a slip in it to be seen. A shorter one may
// well be another word.
const shortestKnown = 6

// A speller finds the word that was meant by a word with a slip. It only knows words of keys. A
// slip in any other word is left, because rules match those by any word.
type speller struct {
	// words are all words of the grammars, which are right as they are.
	words  map[string]bool
	shapes map[shape][][]rune // the keys that every command needs, by their shape
}

// A shape is what a slip leaves: the first letter of a word and the last two.
type shape struct{ first, beforeLast, last rune }

func shapeOf(word []rune) shape { return shape{word[0], word[len(word)-2], word[len(word)-1]} }

// newSpeller collects all words, which are never corrected, and the shapes of the words of keys.
// A slip in a word that no key has does not hide a command from the filter.
func newSpeller(all []*grammar, keys [][]word) *speller {
	s := &speller{words: make(map[string]bool), shapes: make(map[shape][][]rune)}
	for _, g := range all {
		for _, r := range g.rules {
			for _, p := range r.phrases {
				for _, it := range p {
					for _, w := range slices.Concat(it.words...) {
						s.words[w.exact], s.words[w.plain] = true, true
					}
				}
			}
		}
	}
	for _, key := range keys {
		s.add(key)
	}
	return s
}

// add enters the words of a key that are long enough, with and without accents.
func (s *speller) add(key []word) {
	for _, w := range key {
		for _, written := range slices.Compact([]string{w.exact, w.plain}) {
			if letters := []rune(written); len(letters) >= shortestKnown {
				at := shapeOf(letters)
				s.shapes[at] = append(s.shapes[at], letters)
			}
		}
	}
}

// meant returns the word of a grammar that was meant by a word in which a letter is left out, one
// is too many, or two are swapped. The first letter and the last two must be right, because another
// ending makes another word: "ripristino" is not "ripristina". Few known words share a shape, so
// each unknown word is compared with one or two. The bound on the length keeps the letters on the
// stack.
func (s *speller) meant(word string) string {
	if len(word) < shortestKnown-1 || s.words[word] {
		return word
	}
	letters := make([]rune, 0, 32)
	for _, r := range word {
		if letters = append(letters, r); len(letters) == cap(letters) {
			return word // no word is so long
		}
	}
	if len(letters) < shortestKnown-1 {
		return word
	}
	at := shapeOf(letters)
	if bare := plain(word); s.words[bare] && shapeOf([]rune(bare)) == at {
		return bare // it has some of its accents
	}
	for _, known := range s.shapes[at] {
		if slipped(letters, known) {
			return string(known)
		}
	}
	return word
}

// slipped reports whether one letter more, one less or two swapped ones make one word of the other.
// It finds the first difference, and compares the rest with what each kind of slip would leave.
// This is a distance of 1 by Damerau (1964) without replaced letters, which more often make another
// word.
func slipped(written, known []rune) bool {
	at := 0
	for at < min(len(written), len(known)) && written[at] == known[at] {
		at++
	}
	switch len(written) - len(known) {
	case 1:
		return slices.Equal(written[at+1:], known[at:])
	case -1:
		return slices.Equal(written[at:], known[at+1:])
	case 0:
		return at+1 < len(known) && written[at] == known[at+1] && written[at+1] == known[at] &&
			slices.Equal(written[at+2:], known[at+2:])
	}
	return false
}
