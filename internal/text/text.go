// Package text compares texts by their letter trigrams, by their words and by their embeddings,
// derives ids from them, and has the words for the channels of statements.
package text

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// letters are the characters that words are made of. Marks are among them, because a vowel sign of
// Hindi or Thai is a part of a word.
var letters = []*unicode.RangeTable{unicode.L, unicode.N, unicode.M}

// Comparable reports whether a text contains a letter or a digit. Other texts cannot be compared.
func Comparable(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, letters...) })
}

// Dense reports whether a character belongs to a script without blanks between words. The first
// comparison lets nearly all characters pass without a table.
func Dense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// Trigrams returns the letter trigrams of a text's words in lower case, sorted, each once. Each
// word has two blanks before it and one behind, like in PostgreSQL's pg_trgm. In a script without
// blanks between words, single characters and pairs of them take the place of trigrams. A trigram
// is packed into a number, because a character has 21 bits. For example "cat" has "  c", " ca",
// "cat" and "at ".
func Trigrams(text string) []uint64 {
	all := make([]uint64, 0, len(text)+8)
	var last [2]rune // 0 before a word
	blank := true    // the last character ended a word
	end := func() {
		if !blank && !Dense(last[1]) {
			all = append(all, pack(last[0], last[1], ' '))
		}
		blank = true
	}
	for _, r := range text {
		if !unicode.In(r, letters...) {
			end()
			continue
		}
		r = unicode.ToLower(r)
		dense := Dense(r)
		if !blank && dense != Dense(last[1]) {
			end()
		}
		switch {
		case dense && blank:
			all = append(all, pack(0, 0, r))
		case dense:
			all = append(all, pack(0, 0, r), pack(0, last[1], r))
		case blank:
			all = append(all, pack(' ', ' ', r))
			last[1] = ' '
		default:
			all = append(all, pack(last[0], last[1], r))
		}
		last, blank = [2]rune{last[1], r}, false
	}
	end()
	slices.Sort(all)
	return slices.Compact(all)
}

// pack puts three characters into one number, so that trigrams are compared and sorted fast.
func pack(a, b, c rune) uint64 { return uint64(a)<<42 | uint64(b)<<21 | uint64(c) } //nolint:gosec // runes are not negative

// Jaccard returns the share of elements that two sorted sets have in common, in [0, 1]: the size of
// the intersection by the size of the union (Jaccard 1901). Two empty sets have 0. Both sets are
// walked once, in time linear in their sizes.
func Jaccard[T cmp.Ordered](a, b []T) float64 {
	all, common := len(a)+len(b), 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			common++
			i, j = i+1, j+1
		}
	}
	if common == 0 {
		return 0
	}
	return float64(common) / float64(all-common)
}

// Distinct returns the texts sorted, each once, in its own slice. Without texts it returns nil.
func Distinct(texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}
