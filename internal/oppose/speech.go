package oppose

import (
	"regexp"
	"slices"
	"strings"
)

// Binds reports whether a text says that something must or must not be.
func (r Reading) Binds() bool {
	return slices.ContainsFunc(obligations, func(word string) bool { return r.words[word] })
}

// AgainstInstructions reports whether a text reads like an instruction against what a model was told: it has one of some
// phrases, or a verb of setting aside together with a word for instructions.
func AgainstInstructions(text string) bool {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	return slices.ContainsFunc(lists["takeovers"], func(phrase string) bool { return strings.Contains(text, phrase) }) ||
		setsAside.MatchString(text) && wasTold.MatchString(text)
}

var (
	obligations = wordsOf("obligations")
	setsAside   = anyOf("setsAside")
	wasTold     = anyOf("wasTold")
)

// anyOf matches an entry of a list. A hyphen at its end stands for any ending.
func anyOf(list string) *regexp.Regexp {
	var entries []string
	for _, entry := range lists[list] {
		beginning, open := strings.CutSuffix(entry, "-")
		entry = regexp.QuoteMeta(beginning)
		if !open {
			entry += `\b`
		}
		entries = append(entries, entry)
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(entries, "|") + `)`)
}
