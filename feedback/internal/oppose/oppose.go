// Package oppose finds out whether two texts contradict each other, which a measure of similarity
// can't find, and whether a text is directed against instructions. Its lists of words are in
// words.txt.
package oppose

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed/internal/text"
)

// A Way is one in which two texts may contradict each other, in words for people.
type Way string

// The ways that [Find] recognises.
const (
	Polarity Way = "one demands it, the other denies it"
	Numbers  Way = "they have other numbers"
	Meaning  Way = "they have words of opposite meaning"
	Order    Way = "they have the same words in another order" // "A before B", "B before A"
	Names    Way = "they name other things"                    // "PostgreSQL", "MySQL"
	// a few words make them differ, and it may be anything: "in", "out", "only"
	Words Way = "one word is another"
)

// Contradicts reports whether both texts can't hold at once. With other numbers, names and words
// they may.
func (w Way) Contradicts() bool { return w == Polarity || w == Meaning || w == Order }

// Find returns how two texts may contradict each other, and "" without a hint of it. Call it before
// two texts are treated as the same, because texts that contradict each other share more words than
// texts that mean the same.
//
// It has lists of rules and words, and is cautious. It prefers a false alarm, for example between
// "do not log passwords" and "log everything but passwords", to a missed contradiction. Its lists
// contain the negations and the commonest opposites of six languages: English, German, French,
// Spanish, Chinese and Japanese. It does not see a contradiction in meaning alone. A text of more
// than 250 words, or with very many relations between things, is only the same as itself. Find is
// symmetric, and no text opposes itself.
func Find(a, b string) Way { return Read(a).Opposes(Read(b)) }

// Opposes is [Find] for texts that were read. The order of the cases decides which way is named if
// there are several.
func (x Reading) Opposes(y Reading) Way {
	switch {
	// The surest and cheapest signs come first. A text with another number is not the same,
	// whatever its words are, and that needs no list.
	case !slices.Equal(x.numbers, y.numbers):
		return Numbers
	case x.deniesOf(y) || y.deniesOf(x) || x.negations != y.negations:
		return Polarity
	// What follows compares words with words, which takes the square of their number. So a long
	// text is compared as a whole.
	case tooLong(x, y):
		if slices.Equal(x.tokens, y.tokens) {
			return ""
		}
		return Words
	case antonymous(x, y) || antonymous(y, x):
		return Meaning
	case swapped(x, y):
		return Order
	case otherNames(x.names, y.names):
		return Names
	// Last, because it says the least: something differs, and no list knows what.
	case reworded(x, y), x.turning != y.turning:
		return Words
	}
	return ""
}

// tooLong reports whether two texts have too many words, or relations, to compare them word with
// word.
func tooLong(x, y Reading) bool {
	const longest, pairs = 250, 200
	if max(len(x.tokens), len(y.tokens)) > longest {
		return true
	}
	n := 0
	for _, i := range x.related {
		n += len(y.positions(x.tokens[i].word))
	}
	return n > pairs
}

// antonymous reports whether x has a word whose opposite only y has, or whether both texts have
// both words but about other things. The caller asks in both directions.
func antonymous(x, y Reading) bool {
	for _, root := range x.opposable {
		// A text that has both opposites speaks about both, for example "enable or disable", so it
		// does not take a side.
		if !y.roots[root] && slices.ContainsFunc(antonyms[root],
			func(o string) bool { return y.roots[o] && !x.roots[o] }) {
			return true
		}
	}
	return affixed(x, y) || len(x.opposable) > 0 && bindsOther(x, y)
}

// affixed reports whether x has a word that only y has with a negative prefix or with "less". For
// example, x has "safe" and y "unsafe", or x has "careful" and y "careless".
func affixed(x, y Reading) bool {
	if len(y.prefixed)+len(y.less) == 0 {
		return false
	}
	for word := range x.words {
		if y.words[word] {
			continue
		}
		for _, negative := range y.prefixed[word] {
			// If x has the negative word as well, it is about both.
			if !x.words[negative] {
				return true
			}
		}
		if y.less[word] || y.less[strings.TrimSuffix(word, "ful")] {
			return true
		}
	}
	return false
}

// bindsOther reports whether both texts have the same two opposites, but about other things.
func bindsOther(x, y Reading) bool {
	both := func(root string) bool { return x.roots[root] && y.roots[root] }
	for i, t := range x.tokens {
		root := stem(t.word)
		if !both(root) || !slices.ContainsFunc(antonyms[root], both) {
			continue
		}
		// "Open the door, close the window" and "close the door, open the window" have the same
		// words. What differs is the word behind each.
		object := x.next(i)
		if object != "" && !slices.ContainsFunc(y.positions(t.word),
			func(j int) bool { return y.next(j) == object }) {
			return true
		}
	}
	return false
}

// next is the first word with a meaning behind a place. It may be in the next clause, because a
// list such as "open, then close the door" shares its object.
func (r *Reading) next(i int) string {
	if after := stems(r.tokens[i+1:]); len(after) > 0 {
		return after[0]
	}
	return ""
}

// positions returns where a word is among the tokens.
func (r *Reading) positions(word string) (all []int) {
	for i, t := range r.tokens {
		if t.word == word {
			all = append(all, i)
		}
	}
	return all
}

// swapped reports whether two texts have the same words, in another order that changes their
// meaning.
func swapped(x, y Reading) bool {
	if slices.Equal(x.stems, y.stems) {
		return false
	}
	// A relation such as "before" has two sides. If a word stands on one side here and on the other
	// side there, and the same is true of a word of the other side, the relation is reversed.
	for _, i := range x.related {
		left, right := x.around(i)
		for _, j := range y.positions(x.tokens[i].word) {
			otherLeft, otherRight := y.around(j)
			if crosses(left, otherRight, otherLeft, right) &&
				crosses(right, otherLeft, otherRight, left) {
				return true
			}
		}
	}
	// "X must name Y" is "name Y in X", and "give X to Y" is "give Y X"
	// The passive and a modal verb change the order of words without changing the meaning, so an
	// order that differs is no proof there.
	if x.passive || y.passive || x.modal != y.modal || !x.relatesAs(y) {
		return false
	}
	return slices.Equal(x.sorted, y.sorted)
}

// relatesAs reports whether two texts have the same relations. Otherwise, a relation may mean the
// same as the order of words in the other text.
func (r *Reading) relatesAs(o Reading) bool {
	all := func(r *Reading) (found []string) {
		for _, i := range r.related {
			found = append(found, r.tokens[i].word)
		}
		return text.Distinct(found)
	}
	return slices.Equal(all(r), all(&o))
}

// crosses reports whether a word is in both of the first two, and in neither of the others.
func crosses(in, and, not, nor []string) bool {
	return slices.ContainsFunc(in, func(s string) bool {
		return slices.Contains(and, s) && !slices.Contains(not, s) && !slices.Contains(nor, s)
	})
}

// around returns the words before and behind a place. In "before A, B", A counts as behind and B as
// before. The sides are whole, up to the ends of the text, because an object may be several words
// long.
func (r *Reading) around(i int) (left, right []string) {
	left, rest := stems(r.tokens[:i]), r.tokens[i+1:]
	if end := slices.IndexFunc(rest, func(t token) bool { return t.word == "" }); end >= 0 &&
		len(left) == 0 {
		return stems(rest[end:]), stems(rest[:end])
	}
	return left, stems(rest)
}

// stems returns the stems of words with a meaning, in their order.
func stems(tokens []token) (all []string) {
	for _, t := range tokens {
		if t.stem != "" {
			all = append(all, t.stem)
		}
	}
	return all
}

// reworded reports whether two texts are the same sentence except for some words that no list
// contains as opposites. Words are compared by their places, so both texts must have as many.
func reworded(x, y Reading) bool {
	a, b := x.stems, y.stems
	if len(a) != len(b) {
		return false
	}
	replaced := 0
	for i := range a {
		switch {
		case kin(a[i], b[i]):
		// The word only moved, so this is another sentence and not one with a word replaced.
		case slices.Contains(b, a[i]) || slices.Contains(a, b[i]):
			return false
		default:
			replaced++
		}
	}
	// If every word differs, the texts have nothing in common, and are no variants of one sentence.
	return replaced > 0 && replaced < len(a)
}

// marks are the small words of a text that change its meaning: "keep it in", "keep it out"; "only
// you", "all but you".
func (r *Reading) marks() string {
	var found []string
	for _, mark := range turningWords {
		if r.words[mark] {
			found = append(found, mark)
		}
	}
	return strings.Join(found, " ")
}

// Exchanged reports whether each of two texts has a word that the other lacks in all its forms.
// Such texts may mean the same, but no list can show it, so they are not joined by themselves.
func Exchanged(x, y Reading) bool {
	if tooLong(x, y) {
		return !slices.Equal(x.tokens, y.tokens)
	}
	return x.hasMoreThan(y) && y.hasMoreThan(x)
}

// hasMoreThan reports whether a text has a word that the other one lacks in all its forms. Single
// characters of dense scripts do not count, because a word has several. Words of place and time,
// such as "under", count in their exact form, because they change what is demanded.
func (r *Reading) hasMoreThan(o Reading) bool {
	return slices.ContainsFunc(r.tokens, func(t token) bool {
		switch {
		case placing.has(t.word):
			return !o.words[t.word]
		case t.stem == "" || utf8.RuneCountInString(t.stem) == 1:
			return false
		}
		return !slices.ContainsFunc(o.tokens, func(other token) bool {
			return other.stem != "" && kin(t.stem, other.stem)
		})
	})
}

// SameWords reports whether two texts have the same words, each as often and in any form and order.
// One form must begin with the other, because "dessus" and "dessous" only look like forms of one
// word.
// In addition, a text may contain words without a meaning of their own, and words that stress
// others. Any other extra word may turn the meaning, for example "far from clear" or
// "non-blocking", and no list contains all of those words.
func SameWords(x, y Reading) bool {
	if tooLong(x, y) {
		return slices.Equal(x.tokens, y.tokens)
	}
	left := y.content()
	for _, stem := range x.content() {
		at := slices.Index(left, stem)
		// The same stem is preferred, so that a word does not use up a form which another word needs.
		if at < 0 {
			at = slices.IndexFunc(left, func(other string) bool {
				return kin(stem, other) &&
					(strings.HasPrefix(stem, other) || strings.HasPrefix(other, stem))
			})
		}
		if at < 0 {
			return false
		}
		left = slices.Delete(left, at, at+1)
	}
	return len(left) == 0
}

// content returns the words of a text that have a meaning, without the words that only stress
// others. Words of place are among them as they are written.
func (r *Reading) content() (all []string) {
	for _, t := range r.tokens {
		switch {
		case placing.has(t.word):
			all = append(all, t.word)
		case t.stem != "" && !stressing.has(t.word):
			all = append(all, t.stem)
		}
	}
	return all
}

// kin reports whether two stems look like forms of one word. They share at least four letters from
// the beginning, and at most three letters differ after that.
func kin(a, b string) bool {
	const beginning = 4 // of each, in bytes: as many letters at least must be the same
	if a == b || len(a) < beginning || len(b) < beginning || a[:beginning] != b[:beginning] {
		return a == b
	}
	// The bytes above are a quick look. Letters are compared here, because one may have several
	// bytes.
	x, y := []rune(a), []rune(b)
	common := 0
	for common < min(len(x), len(y)) && x[common] == y[common] {
		common++
	}
	return a == b || common >= 4 && max(len(x), len(y))-common <= 3
}

// otherNames reports whether each text contains a name that the other lacks.
func otherNames(a, b []string) bool {
	lacks := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(name string) bool { return !slices.Contains(b, name) })
	}
	return lacks(a, b) && lacks(b, a)
}
