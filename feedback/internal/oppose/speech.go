package oppose

import (
	"regexp"
	"slices"
	"strings"
)

// Binds reports whether a text demands or forbids something. A text that does not, for example a
// plain fact, makes no rule.
func (r Reading) Binds() bool {
	return slices.ContainsFunc(obligations, func(word string) bool { return r.words[word] })
}

// AgainstInstructions reports whether a text reads like an instruction against a model's
// instructions: it has one of some phrases, or a verb of setting aside, or "not" and a verb of
// obeying, together with a word for instructions.
func AgainstInstructions(text string) bool {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	return takeover.MatchString(text) || setsAside.MatchString(text) && wasTold.MatchString(text)
}

var (
	// The lists are compiled when the program starts, because each proposal is checked against them.
	obligations = wordsOf("obligations")
	// takeover matches a phrase that suffices. setsAside and wasTold must both match: a verb such as
	// "ignore", and a word such as "instructions".
	takeover  = regexp.MustCompile(`\b` + anyOf("takeovers"))
	setsAside = regexp.MustCompile(`\b` + anyOf("setsAside") + `|(?:\b(?:not|never|stop)|n't) ` + anyOf("obeys"))
	wasTold   = regexp.MustCompile(`\b` + anyOf("wasTold"))
)

// anyOf matches an entry of a list.
func anyOf(list string) string {
	var entries []string
	for _, entry := range wordsOf(list) {
		// Blanks in the list are written as underscores, because a line has several entries.
		beginning, open := strings.CutSuffix(entry, "-")
		entry = regexp.QuoteMeta(strings.ReplaceAll(beginning, "_", " "))
		if !open {
			entry += `\b`
		}
		entries = append(entries, entry)
	}
	return `(?:` + strings.Join(entries, "|") + `)`
}
