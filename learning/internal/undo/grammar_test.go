package undo

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// phrasesOf returns all phrases of a rule.
func phrasesOf(r *rule) []phrase {
	return append(slices.Concat(slices.Collect(maps.Values(r.byFirst))...), r.others...)
}

// TestGrammar holds that each language has the rules that the code asks for, that each rule that is
// named has phrases, and that none follows from no words.
func TestGrammar(t *testing.T) {
	require.Len(t, languages(), 8)
	for _, g := range languages() {
		named := map[int]bool{g.names["dependent"]: true, g.names["again"]: true}
		for _, name := range []string{"command", "loose", "free", "sure", "bar", "bare", "dismissal",
			"courtesy", "complaint", "keep", "ask", "task", "condition", "mention", "speech", "speaking",
			"software", "own"} {
			assert.Contains(t, g.names, name, g.name)
			named[g.names[name]] = true
		}
		for _, r := range g.rules {
			for _, p := range phrasesOf(&r) {
				for _, it := range p {
					named[it.rule] = true
					for _, words := range it.words {
						assert.NotContains(t, words, word{foreign, foreign}, g.name)
					}
				}
			}
		}
		reader := g.readers([]clause{{words: []string{foreign}}})[0]
		for name, number := range g.names {
			if number < builtin {
				continue
			}
			assert.True(t, named[number], "%s: <%s> is in no rule", g.name, name)
			assert.NotEmpty(t, phrasesOf(&g.rules[number]), "%s: <%s> has no phrases", g.name, name)
			assert.Zero(t, reader.ends(number, 0)&1, "%s: <%s> is nothing", g.name, name)
		}
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string][]clause{
		"Undo THAT, please!": {{words: []string{"undo", "that"}}, {words: []string{"please"}}},
		"Annule-le. C’est ça": {{words: []string{"annule", "le"}},
			{words: []string{"c", "est", "ça"}, sentence: 1}},
		"Say: undo?": {{words: []string{"say"}, colon: true},
			{words: []string{"undo"}, question: true}},
		"ｕｎｄｏ　ｉｔ":            {{words: []string{"undo", "it"}}},
		"c\u0327a est ﾓﾄﾞｼて": {{words: []string{"ça", "est", "モ", "ド", "シ", "て"}}},
		"か\u3099ーは\u309A":    {{words: []string{"が", "ぱ"}}},
		"(undo)":             {{words: []string{"undo"}}},
		"undo() or x.undo": {{words: []string{"undo", foreign}},
			{words: []string{"or", "x", foreign, "undo"}}},
		`say "undo" now`: {{words: []string{"say", string(foreignRune), "now"}}},
		"> undo\nno": {{words: []string{string(foreignRune)}},
			{words: []string{"no"}, sentence: 1}},
		"undo that ?!": {{words: []string{"undo", "that"}, question: true}},
		"no, undo that ?!": {{words: []string{"no"}},
			{words: []string{"undo", "that"}, question: true}},
		"undo that .:":   {{words: []string{"undo", "that"}, colon: true}},
		"'undo it's":     {{words: []string{"undo", "it", "s"}}},
		"'undo it' s":    {{words: []string{string(foreignRune), "s"}}},
		"undo\ue000that": {{words: []string{"undo", foreign, "that"}}},
		"undo\xffthat":   {{words: []string{"undo", foreign, "that"}}},
		"":               nil,

		"undo that, ?!": {{words: []string{"undo", "that"}, question: true}},
		"0 to 9":        {{words: []string{"0", "to", "9"}}},
		"> undo":        {{words: []string{string(foreignRune)}}},
		"– undo":        {{words: []string{string(foreignRune)}}},
		"― undo":        {{words: []string{string(foreignRune)}}},
		"a > b":         {{words: []string{"a", foreign, "b"}}},
		"no\n> undo": {{words: []string{"no"}},
			{words: []string{string(foreignRune)}, sentence: 1}},
		"say “undo that": {{words: []string{"say", string(foreignRune)}}},
		"undo that \"":   {{words: []string{"undo", "that"}}},
		"‘undo it’s":     {{words: []string{"undo", "it", "s"}}},
		"it´s itʼs":      {{words: []string{"it", "s", "it", "s"}}},
		"a…b・c、d": {{words: []string{"a"}}, {words: []string{"b"}}, {words: []string{"c"}},
			{words: []string{"d"}}},
	} {
		assert.Equal(t, want, read(text), "%q", text)
	}
}

// readerOf returns a reader of words for a grammar of these rules.
func readerOf(rules string, words ...string) *reader {
	return load("[xx]\n" + rules)[0].readers([]clause{{words: words}})[0]
}

// A rule that asks for itself at the same place ends, also if another one asks for it.
func TestLeftRecursionEnds(t *testing.T) {
	for _, rules := range []string{"a: <a> x | x", "a: <b> x | x\nb: <c>\nc: <a>\n"} {
		r := readerOf(rules, "x", "y")
		assert.False(t, r.whole("a"))
		assert.True(t, r.begins("a"))
	}
}

// What is known of a rule at the end of a clause is not taken for another rule at its begin.
func TestRulesAreKnownByThemselves(t *testing.T) {
	r := readerOf("a: <any> y\nb: x", "x")
	assert.Zero(t, r.ends(r.names["a"], 1))
	assert.True(t, r.whole("b"))
}

// A word that begins a phrase behind an optional item may be written without its accents.
func TestAPhraseBeginsWithoutAccents(t *testing.T) {
	for _, word := range []string{"ça", "ca"} {
		assert.True(t, readerOf("a: oh? ça", word).whole("a"), word)
	}
}

// A clause of up to 62 words is read. A longer one is no command, and may be all that refuses one.
func TestTheLongestClause(t *testing.T) {
	for n, short := range map[int]bool{62: true, 63: false, 126: false} {
		words := slices.Repeat([]string{"x"}, n)
		assert.Equal(t, short, readerOf("a: x*", words...).whole("a"), n)
		r := readerOf("a: y", words...)
		for _, holds := range []func(string) bool{r.begins, r.finishes, r.has} {
			assert.Equal(t, !short, holds("a"), n)
		}
	}
}
