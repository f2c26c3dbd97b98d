// Package undo finds out whether a text is a command to take the last answer back.
package undo

import (
	"slices"
	"strings"
	"sync"
)

// languages returns the grammars. They are made when the first text is read, because making them
// would delay the start of a program.
var languages = sync.OnceValue(func() []*grammar { return load(grammarFile) })

// A longer text is not read, nor is one of more clauses: a command is short.
const (
	longest     = 1000 // bytes
	mostClauses = 24
)

// Command reports whether a text commands or asks to take the last answer back, in English, German,
// French, Spanish, Italian, Portuguese, Japanese or Chinese: "undo that", "can you undo that?",
// "never mind".
//
// A question about undoing is no command, nor is a quotation, a report, a condition, a negation,
// code, or a task that names its own thing or is for a third person: "How do I undo it?", "don't
// undo it", "undo it if it rains", "cancel my subscription", "undo that for Bob". Command prefers a
// missed command to a false one. It recognises the phrases of grammar.txt and their words, with
// accents or without, and no slips of the pen. It is safe for concurrent use.
//
// A single refusal in any language outweighs every acceptance, because a false command takes back
// an answer that somebody wanted. A clause has the best verdict that a language gives it.
func Command(text string) bool {
	if len(text) > longest {
		return false
	}
	clauses := read(strings.TrimSpace(text))
	if len(clauses) > mostClauses {
		return false
	}
	verdicts := make([]verdict, len(clauses))
	for _, g := range languages() {
		readers := g.readers(clauses)
		for i := range readers {
			verdicts[i] = max(verdicts[i], judge(readers, i))
		}
	}
	return slices.Contains(verdicts, accepted) && !slices.Contains(verdicts, refused)
}

// A verdict is what a clause means in one language.
type verdict int

const (
	unrelated verdict = iota // no command
	refused                  // the words of a command, but the text around them refuses it
	accepted                 // a command
)

// judge reads one clause of a text in a language, with the clauses around it.
//
// The rules are tried from the surest to the most general. "sure" is a command in itself; "command"
// needs no look at single words; "dependent" and "again" are commands only behind another clause,
// for example "please, that one"; "loose" and "free" also need that the clause is not a question, a
// task or a report. The clauses around it can refuse a command, and cannot make one of other words.
func judge(all []*reader, i int) verdict {
	c := all[i]
	sure := c.whole("sure")
	strict := c.whole("command") || i > 0 && (c.whole("dependent") && all[i-1].whole("courtesy") ||
		c.whole("again") && all[i-1].whole("better"))
	loose := !strict && c.whole("loose")
	switch {
	case sure:
	case !strict && !loose && !isFree(all, i), c.has("bar"), c.ofSoftware():
		return unrelated
	case loose && c.speaksOf():
		return refused
	}
	if c.whole("bare") && c.question {
		return refused
	}
	for j := range all {
		switch {
		case j == i || !spoils(all, i, j):
		case c.whole("dismissal"):
			return unrelated // it is no more than a sigh
		default:
			return refused
		}
	}
	return accepted
}

// isFree reports whether a clause, or it and one or two more of its sentence together, are a
// command by their general form. People put commas anywhere: "this answer, could you, please, take
// it back".
func isFree(all []*reader, i int) bool {
	c := all[i]
	for n := i + 1; n < min(i+3, len(all)) && all[n].sentence == c.sentence && !c.whole("free") &&
		!all[i].whole("courtesy"); n++ {
		c = &reader{grammar: c.grammar, clause: clause{words: slices.Concat(c.words, all[n].words)}}
	}
	return c.whole("free") && !c.has("bar") && !c.speaksOf() && !c.ofSoftware()
}

// ofSoftware reports whether a clause is about a thing of software that is not the assistant's
// answer: a task like "undo the last commit".
func (r *reader) ofSoftware() bool { return r.has("software") && !r.has("own") }

// speaksOf reports whether a clause with the words of a command is a question, a condition, a task
// or about words.
func (r *reader) speaksOf() bool {
	return r.begins("ask") || r.begins("task") || r.has("mention") || r.has("condition")
}

// spoils reports whether the clause j makes i not a command. A bare command may be an item of a
// list, and a dismissal like "never mind" may be about what comes next. A clause that is a command
// or a courtesy does not spoil others.
func spoils(all []*reader, i, j int) bool {
	c, other := all[i], all[j]
	switch {
	case j > i && other.whole("keep"):
		return true
	case other.whole("courtesy"), other.whole("command"), other.whole("dependent"),
		other.whole("again"), other.whole("loose"), other.whole("sure"), isFree(all, j):
		return false
	case c.whole("dismissal"), other.has("mention"):
		return true
	case other.sentence != c.sentence:
		return false
	case j == i-1 && (other.colon || other.finishes("speech")), j == i+1 && other.whole("speaking"),
		other.begins("ask"), j < i && other.begins("task"):
		return true
	}
	return c.whole("bare") && !other.has("complaint")
}
