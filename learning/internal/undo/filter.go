package undo

import (
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed/internal/text"
)

// A filter finds the languages in which a text may have a command. Most texts have no command, and
// the filter is many times faster than the grammars. It looks at the words of a text, and not at
// their order: where it leaves a language out, the text contains no command in it.
//
// A key is a sequence of words of a phrase. The filter first looks for keys that every command
// needs. In a language with such a key, it then finds out whether a root has a phrase with all its
// keys in the text.
type filter struct {
	// needed has the keys that every command of a language needs, with the numbers of the languages.
	needed keyIndex
	// sketches are the grammars without their order, by language.
	sketches []*sketch
	// spelling corrects slips in the words of keys before they are looked up.
	spelling *speller
}

// roots are the rules that the clauses of a command follow. A text without any of them has no
// command, whatever else it has. They are names of rules of grammar.txt.
var roots = []string{"command", "loose", "free", "sure", "dependent", "again"}

// newFilter sketches each grammar, and collects the keys of each root. Only keys of roots are
// needed, because a language can't accept a text that has no key of its roots.
func newFilter(all []*grammar) *filter {
	f := &filter{needed: make(keyIndex)}
	for i, g := range all {
		s := newSketch(g)
		for _, number := range s.roots {
			for _, k := range s.rules[number].need.keys {
				f.needed.add(k, i)
			}
		}
		f.sketches = append(f.sketches, s)
	}
	f.spelling = newSpeller(all, f.sketches)
	return f
}

// languages returns the numbers of the languages in which a text may have a command. normalise made
// the text. Most texts end with the first look-up, which finds no key of any language. The arrays
// are on the stack for texts of up to 64 words, and there are fewer than 64 languages. A language
// is one bit of the look-up, so all languages are looked for in one pass.
func (f *filter) languages(normal string) (may []int) {
	var few [64]string
	var found [1]uint64
	words := f.spelling.wordsOf(few[:0], normal)
	f.needed.find(words, found[:])
	for set := found[0]; set != 0; set &= set - 1 {
		if i := bits.TrailingZeros64(set); f.sketches[i].mayHave(words) {
			may = append(may, i)
		}
	}
	return may
}

// wordsOf returns the words of a text in their order. The words of its clauses are among them. A
// quotation hides some, but has a word in their place, so that words that follow each other in a
// clause do so here. It divides the text as clausesOf does, without clauses.
func (s *speller) wordsOf(words []string, normal string) []string {
	start := -1
	end := func(at int) {
		if start >= 0 {
			words = append(words, s.meant(normal[start:at]))
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

// A keyIndex holds the numbers of keys by their first words, so that a text is looked through once,
// whatever the number of keys.
type keyIndex map[string][]numbered

// A numbered is a key in an index: what must follow its first word, and its number.
type numbered struct {
	rest []word // the words of the key behind its first one
	// number is the number that find reports: of a key, or of a language.
	number int
}

// add enters a key under its first word, with and without accents. A key without accents is entered
// once.
func (x keyIndex) add(key []word, number int) {
	n := numbered{key[1:], number}
	same := func(other numbered) bool {
		return other.number == number &&
			slices.Equal(other.rest, n.rest)
	}
	for _, first := range []string{key[0].exact, key[0].plain} {
		if !slices.ContainsFunc(x[first], same) {
			x[first] = append(x[first], n)
		}
	}
}

// find sets the bits of the keys that are in a text.
func (x keyIndex) find(words []string, found bitSet) {
	for i, w := range words {
		for _, n := range x[w] {
			if follow(words[i+1:], n.rest) {
				found[n.number/64] |= 1 << (n.number % 64)
			}
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

// A sketch is a grammar without the order of words: for each rule, which keys a text must have so
// that the rule may hold somewhere in it. It may say yes where the grammar says no, and never the
// reverse.
type sketch struct {
	*grammar
	roots   []int       // their numbers; no language must have all
	rules   []*sketched // by number
	index   keyIndex    // of all keys
	numbers int         // how many keys have one
}

// A sketched rule holds for a text that has what one of its phrases needs.
type sketched struct {
	single  bitSet   // keys that are all a phrase needs
	phrases [][]need // the other phrases
	need    need     // of the rule itself
}

// A need is an item of a phrase that is not optional.
//
// A phrase may hold only if all its needs are met. The need with the fewest texts comes first, so
// that most phrases are refused by one comparison.
type need struct {
	keys [][]word // the text contains one of them; nil for a rule that may hold for any words
	bits bitSet   // the keys
	cost int      // how many texts have one of them, by and large
	rule int      // holds for the text, too; 0 for no rule
}

// newSketch sketches the rules that the roots need. Other rules are only read by judge, which the
// filter does not decide. The rules of the sketch have the grammar's numbers, so a number means the
// same in both.
func newSketch(g *grammar) *sketch {
	s := &sketch{grammar: g, rules: make([]*sketched, len(g.rules)), index: make(keyIndex)}
	numbers := make(map[string]int)
	for _, name := range roots {
		if number := g.names[name]; number != 0 {
			s.roots = append(s.roots, number)
			s.add(number, numbers)
		}
	}
	s.numbers = len(numbers)
	return s
}

// add sketches a rule and those that it needs.
//
// If every phrase has a need with keys, the rule needs one of all these keys, and a rule that needs
// it can be refused by them. If a phrase has no keys, the rule may hold for any words. A rule
// within itself has no keys yet, so the sketch can't refuse a text by it.
func (s *sketch) add(number int, numbers map[string]int) *sketched {
	if s.rules[number] != nil {
		return s.rules[number] // without keys as yet, if the rule has itself in it
	}
	r := &sketched{}
	s.rules[number] = r
	var all need
	known := true // whether each phrase has keys
	for _, p := range s.grammar.rules[number].phrases {
		needs := s.needs(p, numbers)
		if len(needs) == 1 && needs[0].rule == 0 {
			r.single.join(needs[0].bits)
		} else {
			r.phrases = append(r.phrases, needs)
		}
		if known = known && len(needs) > 0 && needs[0].keys != nil; known {
			all.keys = append(all.keys, needs[0].keys...)
			all.bits.join(needs[0].bits)
			all.cost += needs[0].cost
		}
	}
	if known {
		all.rule = number
		r.need = all
	} else {
		r.need = need{rule: number}
	}
	return r
}

// needs returns what a phrase needs. It begins with what the fewest texts have. Optional items and
// builtin rules need no words. Equal keys of different phrases have one number. An item whose rule
// has no keys goes to the end, because to test it means to look at other rules.
func (s *sketch) needs(p phrase, numbers map[string]int) (all []need) {
	for _, it := range p {
		switch {
		case it.optional || it.words == nil && it.rule < builtin:
		case it.words == nil:
			all = append(all, s.add(it.rule, numbers).need)
		default:
			n := need{keys: it.words}
			for _, key := range it.words {
				var name strings.Builder
				for _, w := range key {
					name.WriteString(w.exact + " ")
				}
				number, ok := numbers[name.String()]
				if !ok {
					number = len(numbers)
					numbers[name.String()] = number
					s.index.add(key, number)
				}
				n.bits.add(number)
				n.cost += cost(key)
			}
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b need) int {
		if a.keys == nil || b.keys == nil {
			return len(b.keys) - len(a.keys)
		}
		return a.cost - b.cost
	})
	return all
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

// mayHave reports whether words may be a command. It finds the keys of the text once, and then
// works out which roots hold.
func (s *sketch) mayHave(words []string) bool {
	c := &checker{sketch: s, found: make(bitSet, s.numbers/64+1), known: make([]int8, len(s.rules))}
	s.index.find(words, c.found)
	for _, number := range s.roots {
		if c.has(&s.rules[number].need) {
			return true
		}
	}
	return false
}

// A checker finds out which rules hold for a text.
type checker struct {
	*sketch
	found bitSet // the keys of the text
	known []int8 // 1 for rules that hold, -1 for others
}

// has reports whether a text contains what an item needs.
func (c *checker) has(n *need) bool {
	if n.bits != nil && !c.found.meets(n.bits) {
		return false
	}
	return n.rule == 0 || c.holds(n.rule)
}

// holds reports whether a rule may hold for the text. A rule within itself counts as holding, which
// errs on the side of reading the text. Each rule is worked out once for a text.
func (c *checker) holds(number int) bool {
	if c.known[number] == 0 {
		c.known[number] = 1 // within itself
		if !c.oneHolds(c.rules[number]) {
			c.known[number] = -1
		}
	}
	return c.known[number] > 0
}

// oneHolds reports whether one phrase of a rule may hold: one that needs a single key, or one all
// of whose needs are met.
func (c *checker) oneHolds(r *sketched) bool {
	if c.found.meets(r.single) {
		return true
	}
phrases:
	for _, needs := range r.phrases {
		for i := range needs {
			if !c.has(&needs[i]) {
				continue phrases
			}
		}
		return true
	}
	return false
}

// A bitSet is a set of numbers of keys, small enough that two are compared in a few steps.
type bitSet []uint64

func (b *bitSet) add(number int) {
	for len(*b) <= number/64 {
		*b = append(*b, 0)
	}
	(*b)[number/64] |= 1 << (number % 64)
}

// join adds the numbers of another set.
func (b *bitSet) join(other bitSet) {
	for len(*b) < len(other) {
		*b = append(*b, 0)
	}
	for i, bits := range other {
		(*b)[i] |= bits
	}
}

// meets reports whether two sets have a number in common.
func (b bitSet) meets(other bitSet) bool {
	for i := range min(len(b), len(other)) {
		if b[i]&other[i] != 0 {
			return true
		}
	}
	return false
}
