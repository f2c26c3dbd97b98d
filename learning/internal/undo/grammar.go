package undo

import (
	_ "embed"
	"math/big"
	"math/bits"
	"strings"
)

// grammarFile has the grammars of all languages.
//
//go:embed grammar.txt
var grammarFile string

// A grammar is the rules of one language. Rules may name rules, also themselves, and all are kept
// by number. A text is read by trying each rule at each place once: see reader.
type grammar struct {
	// name is the language, for example "en". names numbers the rules, and starts numbers the words
	// that an item may begin with, from 1.
	name   string
	names  map[string]int
	starts map[string]int
	rules  []rule
}

// A rule is a list of phrases. Those that begin with a fixed word are found by it. others are those
// that begin with a rule or with an optional item.
type rule struct {
	// byFirst has those that begin with words, by the first word.
	byFirst map[string][]phrase
	others  []phrase
	// first has the bit of each word of starts that a phrase may begin with, and bit 0 if that may be
	// any word. Because of it, few rules are tried at a word.
	first big.Int
}

// A phrase is a sequence of items that follow each other.
type phrase []item

// An item is a part of a phrase: a rule, or one of several sequences of words.
type item struct {
	// rule is the number of a rule, if words is nil. words are alternatives, each a sequence.
	rule  int
	words [][]word
	// optional and repeated are written as "?" and "*": an item with a star may be left out or come
	// often.
	optional bool
	repeated bool
}

// A word is written with its accents, and without.
type word struct{ exact, plain string }

// The numbers of the rules that no file defines. Rule 0 replaces the rules that a language does not
// have, and has no continuation.
const (
	anything = 1 // <any>, one or more words
	oneWord  = 2 // <word>
	builtin  = 3 // how many there are
)

// load reads the rules. grammar.txt explains how they are written.
func load(file string) []*grammar {
	var all []*grammar
	var g *grammar
	for line := range strings.Lines(file) {
		switch line = strings.TrimSpace(line); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			g = &grammar{name: strings.Trim(line, "[]"),
				names: map[string]int{"any": anything, "word": oneWord}, starts: make(map[string]int),
				rules: make([]rule, builtin)}
			all = append(all, g)
		default:
			name, phrases, _ := strings.Cut(line, ":")
			for p := range strings.SplitSeq(phrases, "|") {
				g.add(g.number(name), p)
			}
		}
	}
	for _, g := range all {
		for g.link() {
		}
	}
	return all
}

// link finds the words that each rule may begin with, as far as the rules that it begins with are
// known, and reports whether it found more. An optional item may be left out, so the next one can
// begin, too.
func (g *grammar) link() (more bool) {
	for i := range g.rules {
		r := &g.rules[i]
		var first big.Int
		for word := range r.byFirst {
			first.SetBit(&first, g.starts[word], 1)
		}
		for _, p := range r.others {
			for _, it := range p {
				if it.words == nil {
					first.Or(&first, &g.rules[it.rule].first)
				}
				for _, words := range it.words {
					first.SetBit(&first, g.starts[words[0].exact], 1)
					first.SetBit(&first, g.starts[words[0].plain], 1)
				}
				if !it.optional {
					break
				}
			}
		}
		if i == anything || i == oneWord {
			first.SetBit(&first, 0, 1)
		}
		more = more || first.Cmp(&r.first) != 0
		r.first = first
	}
	return more
}

// number returns the number of a rule, which may be defined later in the file. A rule that is never
// defined has no phrases, and holds for no text.
func (g *grammar) number(name string) int {
	n, ok := g.names[name]
	if !ok {
		n = len(g.rules)
		g.names[name] = n
		g.rules = append(g.rules, rule{byFirst: map[string][]phrase{}})
	}
	return n
}

// numberOf returns the number of the rule <x>, or of one for a/<x>, which has a phrase for each of
// them.
func (g *grammar) numberOf(field string) int {
	if !strings.Contains(field, "/") {
		return g.number(strings.Trim(field, "<>"))
	}
	_, known := g.names[field]
	n := g.number(field)
	for written := range strings.SplitSeq(field, "/") {
		if !known {
			g.add(n, written)
		}
	}
	return n
}

// add adds a phrase to a rule. Words are read by the same tokenizer as texts, so that both are
// divided and normalised in the same way. Alternatives "a/b" that begin a phrase are entered under
// each of their first words. An optional first item may be left out, so its phrase can't be found
// by a word.
func (g *grammar) add(number int, written string) {
	var p phrase
	for field := range strings.FieldsSeq(written) {
		var it item
		it.optional = strings.HasSuffix(field, "?") || strings.HasSuffix(field, "*")
		it.repeated = strings.HasSuffix(field, "*")
		field = strings.TrimRight(field, "?*")
		if strings.Contains(field, "<") {
			it.rule = g.numberOf(field)
		} else {
			for words := range strings.SplitSeq(field, "/") {
				for _, c := range read(words) {
					var sequence []word
					for _, exact := range c.words {
						sequence = append(sequence, word{exact, plain(exact)})
					}
					g.start(sequence[0].exact)
					g.start(sequence[0].plain)
					it.words = append(it.words, sequence)
				}
			}
		}
		p = append(p, it)
	}
	r := &g.rules[number]
	if p[0].words == nil || p[0].optional {
		r.others = append(r.others, p)
		return
	}
	for _, words := range p[0].words {
		first := words[0]
		r.byFirst[first.exact] = append(r.byFirst[first.exact], p)
		if first.plain != first.exact {
			r.byFirst[first.plain] = append(r.byFirst[first.plain], p)
		}
	}
}

// start gives a new word the next number.
func (g *grammar) start(word string) {
	if g.starts[word] == 0 {
		g.starts[word] = len(g.starts) + 1
	}
}

// A reader finds out which rules of a language a clause follows.
//
// It remembers what it found for each rule and place (packrat parsing, Ford 2002), so that the time
// is linear in the clause for each rule, however often rules name each other.
type reader struct {
	*grammar
	clause
	known map[int]places // where each rule ends that begins at each place, with the bit done
}

// readers returns a reader for each clause.
func (g *grammar) readers(clauses []clause) []*reader {
	all := make([]*reader, len(clauses))
	for i, c := range clauses {
		all[i] = &reader{grammar: g, clause: c}
	}
	return all
}

// places are the places in a clause at which something can end: bit n is the place before the word
// n.
type places uint64

const (
	// done marks a rule that was tried at a place, also if it ends nowhere.
	done places = 1 << 63
	// A place is a bit, and a clause has one place more than it has words. The highest bit is done.
	// So a clause may have 62 words; a longer one is not read.
	longestClause = 62
)

// whole reports whether all words together follow a rule.
func (r *reader) whole(name string) bool {
	return len(r.words) <= longestClause && r.ends(r.names[name], 0)&(1<<len(r.words)) != 0
}

// begins reports whether the first words follow a rule. A clause that is too long to be read counts
// as one that does: the caller then refuses the command.
func (r *reader) begins(name string) bool {
	return len(r.words) > longestClause || r.ends(r.names[name], 0) != 0
}

// finishes reports whether the last words follow a rule.
func (r *reader) finishes(name string) bool {
	for at := range r.words {
		if len(r.words) > longestClause || r.ends(r.names[name], at)&(1<<len(r.words)) != 0 {
			return true
		}
	}
	return false
}

// has reports whether words anywhere follow a rule.
func (r *reader) has(name string) bool {
	for at := range r.words {
		if len(r.words) > longestClause || r.ends(r.names[name], at) != 0 {
			return true
		}
	}
	return false
}

// ends returns where a rule can end that begins at a place. A rule that is asked for within itself
// at the same place has found no end yet, so left recursion ends instead of going on for ever.
// <any> ends at each later place and <word> at the next one, both without a look at the words.
func (r *reader) ends(number, at int) places {
	end := places(1) << len(r.words)
	switch number {
	case anything:
		return (end<<1 - 1) &^ (1<<(at+1) - 1)
	case oneWord:
		return 1 << (at + 1) & (end<<1 - 1)
	}
	if first := &r.rules[number].first; first.Bit(0) == 0 &&
		(at == len(r.words) || first.Bit(r.starts[r.words[at]]) == 0) {
		return 0
	}
	key := number*(len(r.words)+1) + at
	if known := r.known[key]; known != 0 {
		return known &^ done
	}
	if r.known == nil {
		r.known = make(map[int]places)
	}
	r.known[key] = done
	var found places
	if at < len(r.words) {
		for _, p := range r.rules[number].byFirst[r.words[at]] {
			found |= r.follow(p, at)
		}
	}
	for _, p := range r.rules[number].others {
		found |= r.follow(p, at)
	}
	r.known[key] |= found
	return found
}

// follow returns where a phrase can end that begins at a place. It carries the set of places that
// can be reached through the items, so all readings of an ambiguous phrase are followed at once. A
// repeated item is stepped until it reaches no new place.
func (r *reader) follow(p phrase, at int) places {
	set := places(1) << at
	for _, it := range p {
		var next places
		for fresh := set; fresh != 0; {
			reached := r.step(it, fresh)
			fresh = reached &^ next
			next |= reached
			if !it.repeated {
				break
			}
		}
		if it.optional {
			next |= set
		}
		if set = next; set == 0 {
			break
		}
	}
	return set
}

// step returns where one item can end that begins at one of some places. The loop takes the lowest
// place out of the set each time. Alternatives of words may have different lengths, so one place
// can lead to several.
func (r *reader) step(it item, from places) places {
	var reached places
	for ; from != 0; from &= from - 1 {
		at := bits.TrailingZeros64(uint64(from))
		if it.words == nil {
			reached |= r.ends(it.rule, at)
		}
		for _, words := range it.words {
			if r.at(words, at) {
				reached |= 1 << (at + len(words))
			}
		}
	}
	return reached
}

// at reports whether words are at a place, with or without their accents.
func (r *reader) at(words []word, at int) bool {
	if at+len(words) > len(r.words) {
		return false
	}
	for i, want := range words {
		if got := r.words[at+i]; got != want.exact && got != want.plain {
			return false
		}
	}
	return true
}
