package feedback

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Opposition names a way in which two texts may contradict each other.
type Opposition string

// The oppositions that [Oppose] knows.
const (
	OpposedPolarity Opposition = "polarity" // one denies what the other says
	OpposedNumbers  Opposition = "number"   // they name other numbers, or other units
	OpposedMeaning  Opposition = "antonym"  // one has a word, and the other its opposite
	OpposedOrder    Opposition = "order"    // they say the same of each other's things: "A before B", "B before A"
	OpposedNames    Opposition = "name"     // they name other things: "PostgreSQL", "MySQL"
	OpposedWords    Opposition = "word"     // a few words make them differ, and it may be anything: "in", "out", "only"
)

// Contradicts reports whether both can't hold at once. Other numbers, names and words make other statements, which may.
func (o Opposition) Contradicts() bool {
	return o == OpposedPolarity || o == OpposedMeaning || o == OpposedOrder
}

// Oppose says how two texts may contradict each other, and "" where nothing hints at it. It stands before everything that
// takes two texts for one, as texts that contradict each other are more alike, to every measure of similarity, than texts
// that say the same.
//
// It is a list of rules and words, and it is cautious: it sees contradictions where there are none, as between "do not log
// passwords" and "log everything but passwords", rather than miss one. It knows the negations of some twenty languages, and
// antonyms mainly of English; what contradicts in meaning alone it does not see. A text of more than 250 words, or that
// relates very many things to each other, says the same as none but itself. It is symmetric, and no text opposes itself.
func Oppose(a, b string) Opposition { return oppose(read(a), read(b)) }

func oppose(x, y reading) Opposition {
	switch {
	case !slices.Equal(x.numbers, y.numbers):
		return OpposedNumbers
	case x.deniesOf(y) || y.deniesOf(x) || x.negations != y.negations:
		return OpposedPolarity
	case tooLong(x, y):
		if slices.Equal(x.tokens, y.tokens) {
			return ""
		}
		return OpposedWords
	case antonymous(x, y) || antonymous(y, x):
		return OpposedMeaning
	case swapped(x, y):
		return OpposedOrder
	case otherNames(x.names, y.names):
		return OpposedNames
	case reworded(x, y), x.marks() != y.marks():
		return OpposedWords
	}
	return ""
}

// tooLong reports whether there is too much in two texts to compare them word with word: that takes the square of their
// words, for each pair of places where both have the same relation.
func tooLong(x, y reading) bool {
	const longest, pairs = 250, 200
	if max(len(x.tokens), len(y.tokens)) > longest {
		return true
	}
	n := 0
	for _, t := range x.tokens {
		if relations[t.word] {
			n += len(y.positions(t.word))
		}
	}
	return n > pairs
}

// antonymous reports whether x has a word whose opposite y has, and neither has both; or whether, where both have both,
// they say them of other things.
func antonymous(x, y reading) bool {
	for word := range x.words {
		if y.words[word] {
			continue
		}
		for _, opposite := range antonyms[word] {
			if y.words[opposite] && !x.words[opposite] {
				return true
			}
		}
		for _, prefix := range negativePrefixes {
			if y.words[prefix+word] && !x.words[prefix+word] {
				return true
			}
		}
		if y.words[word+"less"] || y.words[strings.TrimSuffix(word, "ful")+"less"] {
			return true
		}
	}
	return bindsOther(x, y)
}

// bindsOther reports whether both have the same two opposites, and say them of other things.
func bindsOther(x, y reading) bool {
	for i, t := range x.tokens {
		if len(antonyms[t.word]) == 0 || !y.words[t.word] {
			continue
		}
		if !slices.ContainsFunc(antonyms[t.word], func(o string) bool { return x.words[o] && y.words[o] }) {
			continue
		}
		object := x.next(i)
		if object != "" && !slices.ContainsFunc(y.positions(t.word), func(j int) bool { return y.next(j) == object }) {
			return true
		}
	}
	return false
}

// next is the first word behind a place that says something.
func (r *reading) next(i int) string {
	for _, t := range r.tokens[i+1:] {
		if t.stem != "" {
			return t.stem
		}
	}
	return ""
}

func (r *reading) positions(word string) (all []int) {
	for i, t := range r.tokens {
		if t.word == word {
			all = append(all, i)
		}
	}
	return all
}

// swapped reports whether two texts say the same words, in another order that changes what they say.
func swapped(x, y reading) bool {
	a, b := x.stems(), y.stems()
	if slices.Equal(a, b) {
		return false
	}
	for i, t := range x.tokens {
		if !relations[t.word] {
			continue
		}
		left, right := x.around(i)
		for _, j := range y.positions(t.word) {
			otherLeft, otherRight := y.around(j)
			if crosses(left, otherRight, otherLeft, right) && crosses(right, otherLeft, otherRight, left) {
				return true
			}
		}
	}
	if x.passive || y.passive || x.modal != y.modal { // "X must name Y" is "name Y in X"
		return false
	}
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// crosses reports whether some word is in both of the first, and in none of the others.
func crosses(in, and, not, nor []string) bool {
	return slices.ContainsFunc(in, func(s string) bool {
		return slices.Contains(and, s) && !slices.Contains(not, s) && !slices.Contains(nor, s)
	})
}

// around returns the words before and behind a place. Of "before A, B" A stands behind and B before.
func (r *reading) around(i int) (left, right []string) {
	for _, t := range r.tokens[:i] {
		if t.stem != "" {
			left = append(left, t.stem)
		}
	}
	for j, t := range r.tokens[i+1:] {
		if t.word == "" && len(left) == 0 {
			for _, t := range r.tokens[i+1+j:] {
				if t.stem != "" {
					left = append(left, t.stem)
				}
			}
			break
		}
		if t.stem != "" {
			right = append(right, t.stem)
		}
	}
	return left, right
}

func (r *reading) stems() (all []string) {
	for _, t := range r.tokens {
		if t.stem != "" {
			all = append(all, t.stem)
		}
	}
	return all
}

// reworded reports whether two texts are the same sentence, in which words of the one stand in the place of others that it
// has nowhere. No list says whether "prices are rounded up" and "down" are opposites.
func reworded(x, y reading) bool {
	a, b := x.stems(), y.stems()
	if len(a) != len(b) {
		return false
	}
	replaced := 0
	for i := range a {
		switch {
		case kin(a[i], b[i]):
		case slices.Contains(b, a[i]) || slices.Contains(a, b[i]):
			return false
		default:
			replaced++
		}
	}
	return replaced > 0 && replaced < len(a)
}

// marks are the small words of a text that turn what is said: "keep it in", "keep it out"; "only you", "all but you".
func (r *reading) marks() string {
	var found []string
	for _, mark := range turningWords {
		if r.words[mark] {
			found = append(found, mark)
		}
	}
	return strings.Join(found, " ")
}

// exchanged reports whether each of two texts has a word that the other has not, in no form of it.
func exchanged(x, y reading) bool {
	if tooLong(x, y) {
		return !slices.Equal(x.tokens, y.tokens)
	}
	return x.hasMoreThan(y) && y.hasMoreThan(x)
}

func (r *reading) hasMoreThan(o reading) bool {
	return slices.ContainsFunc(r.tokens, func(t token) bool {
		switch {
		case placing[t.word]:
			return !o.words[t.word]
		case t.stem == "" || utf8.RuneCountInString(t.stem) == 1:
			return false
		}
		return !slices.ContainsFunc(o.tokens, func(other token) bool { return other.stem != "" && kin(t.stem, other.stem) })
	})
}

// kin reports whether two stems look like forms of one word.
func kin(a, b string) bool {
	x, y := []rune(a), []rune(b)
	common := 0
	for common < min(len(x), len(y)) && x[common] == y[common] {
		common++
	}
	return a == b || common >= 4 && max(len(x), len(y))-common <= 3
}

// otherNames reports whether both have names, and each one that the other has not.
func otherNames(a, b []string) bool {
	return lacks(a, b) && lacks(b, a)
}

func lacks(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return !slices.Contains(b, name) })
}
