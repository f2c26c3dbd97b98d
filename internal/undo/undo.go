// Package undo finds out whether a text is a command to take the last answer back.
package undo

import "slices"

// A longer text is not read, nor is one of more clauses: a command is short.
const (
	longest     = 1000 // bytes
	mostClauses = 24
)

// Command reports whether a text commands or asks to take the last answer back, in English, German, French, Spanish, Italian,
// Portuguese, Japanese or Chinese: "undo that", "can you undo that?", "never mind".
//
// A question about undoing is no command, nor is a quotation, a report, a condition, a negation, code, or a task that names
// a thing of its own: "How do I undo it?", "don't undo it", "undo it if it rains", "cancel my subscription". Command prefers
// a missed command to a false one. It knows the phrases of grammar.txt and no others. It is safe for concurrent use.
func Command(text string) bool {
	if len(text) > longest {
		return false
	}
	clauses := read(text)
	if len(clauses) > mostClauses {
		return false
	}
	verdicts := make([]verdict, len(clauses))
	for _, g := range languages {
		readers := g.readers(clauses)
		for i := range readers {
			verdicts[i] = max(verdicts[i], judge(readers, i))
		}
	}
	return slices.Contains(verdicts, accepted) && !slices.Contains(verdicts, refused)
}

// A verdict is what a clause says in one language.
type verdict int

const (
	unrelated verdict = iota // no command
	refused                  // the words of a command, but the text around them says otherwise
	accepted                 // a command
)

// judge reads one clause of a text in a language, with the clauses around it.
func judge(all []*reader, i int) verdict {
	c := all[i]
	switch {
	case c.whole("command"):
	case !c.whole("loose"):
		return unrelated
	case c.begins("ask"), c.begins("task"), c.has("mention"), c.has("condition"):
		return refused
	}
	if c.whole("bare") && c.question || c.whole("dependent") && (i == 0 || !all[i-1].whole("courtesy")) {
		return refused
	}
	for j := range all {
		if j != i && spoils(all, i, j) {
			return refused
		}
	}
	return accepted
}

// spoils reports whether the clause j makes the command i none. A bare command may be an item of a list, and a dismissal like
// "never mind" may be about what comes next.
func spoils(all []*reader, i, j int) bool {
	c, other := all[i], all[j]
	switch {
	case j > i && other.whole("keep"):
		return true
	case other.whole("courtesy"), other.whole("command"), other.whole("loose"):
		return false
	case c.whole("dismissal"), other.has("mention"):
		return true
	case other.sentence != c.sentence:
		return false
	case j == i-1 && (other.colon || other.finishes("speech")), j == i+1 && other.whole("speaking"), other.begins("ask"), j < i && other.begins("task"):
		return true
	}
	return c.whole("bare") && !other.has("complaint")
}
