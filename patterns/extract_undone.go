package patterns

import (
	"slices"
	"strings"
)

// This file finds the words of a text about something that was not done: an intention, a
// suggestion, another time, or what was given up for something else. Each of these has a scope,
// which ends where the text turns to what happened.

var (
	sentenceEnds = setOf(". ; ! ?")
	turns        = setOf("but — – however because although though")
	subjects     = setOf("we i he she they you it there everyone everybody nobody somebody this " +
		"that")
	finite = setOf("was were is are had did has have got went ended became took turned used " +
		"made ran wrote rewrote chose started began gave built kept left came found broke")
	facts = setOf("ended eventually finally actually fact reality practice settled instead " +
		"ultimately")

	intents = setOf("planned intended meant wanted hoped wished thought contemplated debated " +
		"discussed talked spoke argued dreamed toyed supposed expected wondered")
	intentNouns = setOf("plan plans idea ideas intention intent proposal suggestion " +
		"recommendation hope wish ambition advice temptation")
	advice = setOf("suggest propose recommend advise advocate urge")
	unsure = setOf("maybe perhaps ideally theoretically supposedly might would undecided " +
		"wishes")
	sources = setOf("ticket description plan issue spec specification instructions summary " +
		"brief prompt story reviewer reviewers lead manager customer client boss colleague user")
	demands = setOf("says said say asks asked ask calls called wants demands demanded " +
		"requests requested requires required told insisted")
	givesUp    = setOf("gave failed abandoned without")
	opinions   = setOf("mentioned argued claimed felt believed said saying noted")
	modalVerbs = setOf("could should would")
	denials    = setOf("nobody never none didn't not wasn't weren't")
	carriedOut = setOf("did do done kept keep followed follow happened happen came come stuck " +
		"stick it so")
	periods = setOf("time sprint iteration release round week month quarter project ticket " +
		"attempt refactoring")
	moves = setOf("switched moved changed went migrated shifted turned converted switching " +
		"moving changing shifting")
	replacements = setOf("replaced replacing swapped swapping traded trading exchanged exchanging")
	preferences  = setOf("chose chosen choose choosing prefer preferred preferring preference " +
		"picked favoured favored favour favor")
	asSaid  = setOf("as than like well carefully")
	did     = setOf("did done")
	fillers = setOf("so that it this exactly just precisely too as well")
)

// unreal reports for each word whether it describes something that was not done. One pass over the
// text is enough, because each scope lies between two turns of the text.
func unreal(text []string) []bool {
	marked := make([]bool, len(text))
	for from := 0; from < len(text); {
		to := from
		for to < len(text) && !turnsAt(text, to) {
			to++
		}
		switch {
		case denied(text, to):
			for i := from; i < to; i++ {
				marked[i] = true
			}
		case at(text, to) == "but" || !confirmed(text, to):
			mark(text, marked, from, to)
		}
		from = to + 1
	}
	return marked
}

// mark marks what is unreal between two turns.
func mark(text []string, marked []bool, from, to int) {
	for i := from; i < to; i++ {
		begin, end, found := scope(text, from, i, to)
		if !found {
			continue
		}
		for j := begin; j < end; j++ {
			marked[j] = true
		}
	}
}

// scope returns what the word at i makes unreal between from and to.
func scope(text []string, from, i, to int) (begin, end int, found bool) {
	before, after := at(text, i-1), at(text, i+1)
	switch t := text[i]; {
	case elsewhen(text, i):
		return from, to, true
	case intends(text, from, i):
		return i, until(text, i, to, "turned", "became", "ended"), true
	case (t == "was" || t == "were") && after == "to" &&
		(at(text, i+2) == "be" || at(text, i+2) == "have"):
		return from, to, true
	case (t == "tried" || t == "attempted") && after == "to" &&
		(turns[at(text, to)] || givesUp[at(text, to+1)]):
		return i, to, true
	case t == "from" && slices.ContainsFunc(text[max(from, i-4):i], moves.has):
		return i, until(text, i, to, "to", "towards", "into"), true
	case replacements[t] && until(text, i, to, "with", "by", "for") < to && after != "by" &&
		after != "with":
		return i, until(text, i, to, "with", "by", "for"), true
	case t == "over" && slices.ContainsFunc(text[max(from, i-reach):i], preferences.has):
		return i, to, true
	case t == "of" && before == "place" && at(text, i-2) == "in", t == "of" &&
		before == "lieu", t == "to" && before == "opposed":
		return i, until(text, i, to, ","), true
	}
	return 0, 0, false
}

// intends reports whether the word at i makes what follows it only meant, advised or thought of.
func intends(text []string, from, i int) bool {
	t, before, after := text[i], at(text, i-1), at(text, i+1)
	switch {
	case asSaid[before]:
		return false
	case intentNouns[t]:
		return after == "was" || after == "were" || after == "had" || at(text, i+2) == "was" ||
			after == "to" && before != "the"
	case t == "meant", t == "supposed", t == "thought":
		return after == "to" || after == "of" || after == "about"
	case t == "expected":
		return after == "to"
	case unsure[t]:
		return !slices.ContainsFunc(text[max(from, i-5):i], setOf("that which who so").has)
	case advises(t):
		return !(before == "i" || before == "we") || !advice[t]
	case modalVerbs[t] && subjects[after]:
		return i == from && slices.Contains(text[i:min(i+5, len(text))], "have")
	case t == "will", strings.HasSuffix(t, "'ll"):
		return slices.Contains(text[sentence(text, i):i], "if")
	case opinions[t]:
		return after == "that"
	case demands[t]:
		return slices.ContainsFunc(text[max(from, i-3):i], sources.has)
	case t == "going":
		return after == "to" && (before == "was" || before == "were")
	case t == "had":
		return i == from && subjects[after]
	case t == "talk", t == "discussion", t == "debate":
		return after == "of" || after == "about"
	case t == "yet":
		return after == "to"
	}
	return intents[t]
}

// advises reports whether a word is a form of a verb of advising.
func advises(t string) bool {
	for verb := range advice {
		stem := strings.TrimSuffix(verb, "e")
		switch strings.TrimPrefix(t, stem) {
		case "", "e", "s", "es", "ed", "ing":
			return strings.HasPrefix(t, stem)
		}
	}
	return false
}

// elsewhen reports whether the words at i refer to another time, for example "next sprint" and "in
// future".
func elsewhen(text []string, i int) bool {
	after := at(text, i+1)
	switch text[i] {
	case "next":
		return periods[after]
	case "future":
		return at(text, i-1) == "in" || at(text, i-2) == "in" || periods[after]
	case "follow":
		return after == "up" && (periods[at(text, i+2)] || at(text, i-1) == "the" ||
			at(text, i-1) == "a")
	case "tomorrow":
		return true
	}
	return false
}

// turnsAt reports whether a text turns at a place: a sentence ends, or another clause begins.
func turnsAt(text []string, i int) bool {
	switch t := text[i]; {
	case sentenceEnds[t], turns[t], t == "yet" && at(text, i+1) != "to":
		return true
	case t == ":":
		return !linking[at(text, i-1)] && !demands[at(text, i-1)] && !advises(at(text, i-1)) &&
			!intentNouns[at(text, i-1)] && !periods[at(text, i-1)]
	case t == "instead":
		return at(text, i+1) != "of"
	case t == "so":
		return at(text, i+1) != "that"
	case t == ",":
		return !turns[at(text, i+1)] && at(text, i+1) != "yet" && opens(text, i+1)
	case t == "and", t == "then":
		next := at(text, i+1)
		return next == "then" || finite[next] || facts[next] || len(next) > 4 &&
			strings.HasSuffix(next, "ed") || subjects[next] && finite[at(text, i+2)]
	}
	return false
}

// opens reports whether a clause with its own subject and verb begins here.
func opens(text []string, i int) bool {
	for i < len(text) && (text[i] == "and" || text[i] == "then" || text[i] == "so" ||
		text[i] == "which" || text[i] == "in" || text[i] == "the" && facts[at(text, i+1)]) {
		i++
	}
	if subjects[at(text, i)] || facts[at(text, i)] || at(text, i) == "end" {
		return true
	}
	for j := i; j < len(text) && j < i+5 && !isMark(text[j]); j++ {
		if finite[text[j]] {
			return true
		}
		if intents[text[j]] || text[j] == "to" {
			return false
		}
	}
	return false
}

// confirmed reports whether the clause after a turn confirms that it was done: "and we did", "that
// is what we did".
func confirmed(text []string, turn int) bool {
	for i := turn + 1; i < len(text) && i < turn+6 && !sentenceEnds[text[i]]; i++ {
		switch {
		case negators[text[i]]:
			return false
		case (text[i] == "what" || text[i] == "how") && linking[at(text, i-1)]:
			return true
		case did[text[i]]:
			for i++; fillers[at(text, i)]; i++ {
			}
			return i >= len(text) || isMark(text[i])
		}
	}
	return false
}

// denied reports whether the clause after a turn denies that it was done: "but it never was", "only
// it never happened".
func denied(text []string, turn int) bool {
	if t := at(text, turn); sentenceEnds[t] || !turns[t] && t != "yet" &&
		at(text, turn+1) != "only" && at(text, turn+1) != "yet" {
		return false
	}
	for i := turn + 1; i < len(text) && i < turn+6 && !isMark(text[i]); i++ {
		if denials[text[i]] {
			next := at(text, i+1)
			return carriedOut[next] && (next != "do" && next != "done" || fillers[at(text, i+2)] ||
				i+2 >= len(text) || isMark(text[i+2])) ||
				i+1 == len(text) || isMark(next)
		}
	}
	return false
}

// sentence returns where the sentence of a place begins.
func sentence(text []string, i int) int {
	for i > 0 && !sentenceEnds[text[i-1]] {
		i--
	}
	return i
}

// until returns the place of the next of these words, or the end.
func until(text []string, from, end int, words ...string) int {
	if n := slices.IndexFunc(text[from:end],
		func(t string) bool { return slices.Contains(words, t) }); n >= 0 {
		return from + n
	}
	return end
}

// at returns the word at a place, or "" outside of the text.
func at(text []string, i int) string {
	if i < 0 || i >= len(text) {
		return ""
	}
	return text[i]
}
