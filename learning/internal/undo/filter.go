package undo

import (
	"slices"
	"unicode/utf8"

	"github.com/heedhq/heed/internal/text"
)

// A filter finds the languages in which a text may have a command. Most texts have no command, and
// the filter is many times faster than the grammars. It looks for keys. A key is a sequence of
// words, and every command of a language contains at least one key, so if the filter leaves a
// language out, the text contains no command in it.
type filter struct {
	// needed has the keys of each language, with its number.
	needed keyIndex
}

// roots are the rules that the clauses of a command follow. A text without any of them has no
// command, whatever else it has. They are names of rules of grammar.txt.
var roots = []string{"command", "loose", "free", "sure", "dependent", "again"}

// newFilter collects the keys of each root. Only keys of roots are needed, because a language can't
// accept a text that has no key of its roots.
func newFilter(all []*grammar) *filter {
	f := &filter{needed: make(keyIndex)}
	for i, g := range all {
		n := needs{g, make(map[int]need)}
		for _, name := range roots { // no language must have all
			for _, k := range n.rule(g.names[name]).keys {
				f.needed.add(k, i)
			}
		}
	}
	return f
}

// languages returns the numbers of the languages in which a text may have a command. normalise made
// the text. Most texts have no key of any language. The array is on the stack for texts of up to 64
// words.
func (f *filter) languages(normal string) (may []int) {
	var few [64]string
	words := wordsOf(few[:0], normal)
	for i, w := range words {
		for _, n := range f.needed[w] {
			if !slices.Contains(may, n.number) && follow(words[i+1:], n.rest) {
				may = append(may, n.number)
			}
		}
	}
	slices.Sort(may)
	return may
}

// wordsOf returns the words of a text in their order. The words of its clauses are among them. A
// quotation hides some, but has a word in their place, so that words that follow each other in a
// clause do so here. It divides the text as clausesOf does, without clauses.
func wordsOf(words []string, normal string) []string {
	start := -1
	end := func(at int) {
		if start >= 0 {
			words = append(words, normal[start:at])
			start = -1
		}
	}
	for i, r := range normal {
		switch {
		case text.Dense(r):
			end(i)
			words = append(words, normal[i:i+utf8.RuneLen(r)])
		case !isWord(r):
			end(i)
		case start < 0:
			start = i
		}
	}
	end(len(normal))
	return words
}

// A keyIndex holds the keys by their first words, so that a text is looked through once, whatever
// the number of keys.
type keyIndex map[string][]numbered

// A numbered is a key in an index: what must follow its first word, and the number of its language.
type numbered struct {
	rest   []word
	number int
}

// add enters a key under its first word, with and without accents. A key without accents is entered
// once.
func (x keyIndex) add(key []word, number int) {
	n := numbered{key[1:], number}
	same := func(other numbered) bool {
		return other.number == number && slices.Equal(other.rest, n.rest)
	}
	for _, first := range []string{key[0].exact, key[0].plain} {
		if !slices.ContainsFunc(x[first], same) {
			x[first] = append(x[first], n)
		}
	}
}

// follow reports whether a text goes on with the rest of a key.
func follow(words []string, wanted []word) bool {
	if len(words) < len(wanted) {
		return false
	}
	for i, w := range wanted {
		if words[i] != w.exact && words[i] != w.plain {
			return false
		}
	}
	return true
}

// needs finds out which keys the rules of a grammar need.
type needs struct {
	*grammar
	known map[int]need
}

// A need lists keys. If a rule or a phrase holds somewhere in a text, the text contains one of
// these keys. Without keys, the rule may hold for any words.
type need struct {
	keys [][]word
	cost int // how many texts have one of them, by and large
}

// rule returns what a rule needs. If every phrase has a need with keys, that is one of all these
// keys. A rule within itself has no keys yet, so a text can't be refused by it.
func (n *needs) rule(number int) (all need) {
	if known, ok := n.known[number]; ok {
		return known
	}
	n.known[number] = need{}
	for _, p := range n.rules[number].phrases {
		one := n.phrase(p)
		if one.keys == nil {
			return need{}
		}
		all.keys, all.cost = append(all.keys, one.keys...), all.cost+one.cost
	}
	n.known[number] = all
	return all
}

// phrase returns what the fewest texts have of what a phrase needs. Optional items and builtin
// rules need no words.
func (n *needs) phrase(p phrase) (best need) {
	for _, it := range p {
		one := need{keys: it.words}
		switch {
		case it.optional || it.words == nil && it.rule < builtin:
			continue
		case it.words == nil:
			one = n.rule(it.rule)
		}
		for _, key := range it.words {
			one.cost += cost(key)
		}
		if one.keys != nil && (best.keys == nil || one.cost < best.cost) {
			best = one
		}
	}
	return best
}

// cost estimates how many texts have a key. Short words are common. The number halves with each
// letter; only the order matters.
func cost(key []word) int {
	letters := 0
	for _, w := range key {
		letters += len(w.plain)
	}
	return 1 + 1000>>letters
}
