package patterns

import (
	"slices"
	"strings"
)

// This file decides whether a text follows an approach that it mentions, or rejects it, judges it,
// or asks about it.

// reach is how many words before or after a phrase may reject it.
const reach = 14

var (
	negators = setOf(`not never no nothing none avoid avoids avoiding avoided without cannot dont
		stop stops stopped stopping quit against refuse refused forbid
		forbidden neither nor nobody hardly barely rarely seldom refrain resist abandon abandoned
		dropped reject rejected skip skipped discourage
		discouraged regret regretted dislike considered whether unless if impossible pointless
		senseless useless unwise foolish wrong mistake
		mistaken overkill dangerous risky tempting instead forgot neglected overlooked scrapped
		shelved vetoed ditched declined cancelled postponed
		lacks lacked lacking ignored ignoring`)
	// pairs reject with the word after them.
	pairs = map[string]set{
		"rather": setOf("than"), "away": setOf("from"), "gave": setOf("up"), "ruled": setOf("out"),
		"used": setOf("to"), "problem": setOf("with"),
		"trouble": setOf("with"), "failed": setOf("to at with when because by"),
		"little": setOf("sense point reason use value"),
		"bad":    setOf("idea"), "last": setOf("time"), "should": setOf("have"),
		"could": setOf("have"), "would": setOf("have"),
	}
	// speakers begin a clause of their own, unless a word that compares is before them: "instead of
	// what we did".
	speakers = setOf("i we he she they")
	compares = setOf("what as how that which than where when")
	stops    = setOf(". , ; ! ? but — –")

	clauseEnds = setOf(". , ; : ! ? — – but and or so because since although though while " +
		"whereas " +
		"after instead rather before when if unless until to")
	resumes  = setOf(". , ; : ! — – but and")
	pronouns = setOf("it this that which they these those")
	linking  = setOf("is was are were be been being would will seems seemed looks looked proved " +
		"turned has have had got did does do can could should")
	bad = setOf(`mistake mistaken wrong bad terrible poor disaster disastrous abandoned rejected
		dropped discarded reverted regretted pointless
		useless overkill unnecessary error blunder flop fiasco nightmare waste replaced scrapped
		shelved vetoed cancelled postponed impossible impractical unwise forbidden banned
		discouraged harmful counterproductive failure`)
	failing = setOf("failed fails backfired backfires broke hurt hurts")
	good    = setOf(`work worked help helped pay paid scale fit go succeed good great worth
		worthwhile wise right option viable feasible useful possible
		appropriate advisable recommended needed necessary allowed wanted done used chosen smart
		sense way apply happen again`)
	causes = setOf("caused causes led leads created creates brought brings meant " +
		"means")
	infinitive, agreement = setOf("to"), setOf("yes yep yeah sure definitely absolutely")

	reports = setOf("showed shows told said found proved revealed")
	agrees  = setOf("objected minded doubted complained opposed disagreed regretted")
	// unmet follow "was" where something was only meant.
	unmet = setOf("planned proposed suggested considered discussed debated intended supposed " +
		"contemplated plan idea intention proposal suggestion recommendation")
	// referents refer to what came before, like pronouns.
	referents = setOf("idea approach split strategy attempt experiment decision choice")

	trouble = setOf("trouble problems conflicts chaos rework delays confusion")
)

// soon reports whether one of the next four words, before any mark or negation, is among these.
func soon(text []string, from int, words set) bool {
	for i := from; i < len(text) && i < from+4 && !isMark(text[i]); i++ {
		if words[text[i]] {
			return true
		}
		if negators[text[i]] || text[i] == "no" {
			return false
		}
	}
	return false
}

// negates reports whether the word at a place rejects what comes after it.
func negates(text []string, i int) bool {
	next := ""
	if i+1 < len(text) {
		next = text[i+1]
	}
	switch t := text[i]; {
	case next == "forget" || next == "hesitate" || next == "fail", next == "only" ||
		next == "just" || next == "merely" || next == "doubt", agrees[next]:
		return false
	case t == "instead":
		return next == "of"
	case t == "too":
		return soon(text, i+1, infinitive)
	default:
		return negators[t] || pairs[t][next] || strings.HasSuffix(t, "n't")
	}
}

// negated reports whether the clause before a place rejects what follows. own are places of the
// phrase itself.
func negated(text []string, end int, own map[int]bool) bool {
	// that the clause has its own subject: "instead of one patch I sent ten"
	clause := false
	for i, n := end-1, 0; i >= 0 && n < reach; i, n = i-1, n+1 {
		switch {
		case own[i]:
		case speakers[text[i]] && !compares[at(text, i-1)]:
			clause = true
		case clause && (text[i] == "instead" || text[i] == "rather"):
			return false
		case text[i] == "by" && strings.HasSuffix(at(text, i+1), "ing") &&
			!(i > 0 && negates(text, i-1)):
			return false
		case text[i] == "and" && turnsAt(text, i):
			return false
		case text[i] == ":":
			return i > 0 && negates(text, i-1) && text[i-1] != "no"
		case stops[text[i]]:
			return false
		case negates(text, i):
			return true
		}
	}
	return false
}

// judged reports whether the clause that begins here finds fault. linked reports that its verb has
// been read.
func judged(text []string, i int, linked bool) bool {
	t := text[i]
	afterArticle := i > 0 && articles[text[i-1]]
	switch {
	case failing[t]:
		return !afterArticle || pronouns[text[i-1]]
	case bad[t]:
		return linked
	case unmet[t]:
		return linked && happened(text, i) && !confirmed(text, nextTurn(text, i))
	case causes[t]:
		return soon(text, i+1, trouble)
	case t == "out" && i+3 < len(text) && text[i+1] == "of" && text[i+3] == "question":
		return true
	case linked && (t == "ruled" && at(text, i+1) == "out" || t == "on" &&
		at(text, i+2) == "table"):
		return true
	case t == "too" && linked:
		return true
	case t == "not", t == "never", t == "hardly", t == "cannot", strings.HasSuffix(t, "n't"):
		return soon(text, i+1, good)
	case t == "makes", t == "made", t == "make":
		return i+2 < len(text) && (text[i+1] == "no" || text[i+1] == "little") &&
			text[i+2] == "sense"
	}
	return false
}

// happened reports whether "was" or "been" is among the four words before a place.
func happened(text []string, i int) bool {
	return slices.ContainsFunc(text[max(0, i-4):i], setOf("was were been").has)
}

// nextTurn returns the place where the text next turns.
func nextTurn(text []string, i int) int {
	for i < len(text) && !turnsAt(text, i) {
		i++
	}
	return i
}

// condemned reports whether the words after a phrase find fault with it: in its own clause, or in
// one that goes on about it.
func condemned(text []string, from int) bool {
	linked, reading := false, true
	for i, n := from, 0; i < len(text) && n < 2*reach; i, n = i+1, n+1 {
		t := text[i]
		switch {
		case clauseEnds[t] && !(t == "to" && linked):
			reading, linked = false, false
			if t == "?" {
				return false
			}
			if resumes[t] {
				next := i + 1
				for next < len(text) && (articles[text[next]] && !pronouns[text[next]] ||
					text[next] == "but" || text[next] == "and") {
					next++
				}
				goesOn := next < len(text) && (pronouns[text[next]] || referents[text[next]])
				reading = next < len(text) && (goesOn || judged(text, next, true))
				linked = reading && !goesOn
			}
			if !reading && (t == "." || t == ";" || t == "!") {
				return false
			}
		case t == "that" && reports[at(text, i-1)]:
			reading = false
		case n == 0 && (t == "would" || t == "might"):
			return true
		case !reading:
		case judged(text, i, linked):
			return true
		case linking[t]:
			linked = true
		}
	}
	return false
}

// asked reports whether the sentence of a place is a question, and is not answered with yes.
func asked(text []string, from int) bool {
	for i := from; i < len(text); i++ {
		switch text[i] {
		case ".", "!":
			return false
		case "?":
			return i+1 == len(text) || !agreement[text[i+1]]
		}
	}
	return false
}

// rejected reports whether a text rejects, judges or asks about the phrase at these places.
func rejected(text []string, places []int) bool {
	first, last := places[0], places[len(places)-1]
	own, turned := make(map[int]bool, len(places)), false
	for _, p := range places {
		own[p] = true
	}
	for _, t := range text[first:last] {
		turned = turned || t == "but" || t == "instead"
	}
	if negated(text, last, own) || !turned && negated(text, first, own) {
		turn := nextTurn(text, last)
		return at(text, turn) != "but" && at(text, turn) != "yet" || !confirmed(text, turn)
	}
	return condemned(text, last+1) || asked(text, last)
}
