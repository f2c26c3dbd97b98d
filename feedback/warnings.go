package feedback

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed/prompt"
)

// The warnings that a proposal may carry for its approvers.
const (
	warnCleaned     = "the evidence has characters that a rule must not have"
	warnVerbatim    = "the text is that of a reviewer, word for word"
	warnInstruction = "the text or its evidence reads like an instruction against other instructions"
	warnSingle      = "a single reviewer is behind it"
)

var instructions = []string{
	"ignore previous", "ignore all", "ignore the above", "disregard", "forget everything", "system prompt", "previous instructions",
	"you are now", "new instructions", "override", "jailbreak", "do not tell", "reveal your",
}

// warnings say what approvers should know of a draft.
func warnings(d *Draft, evidence []Feedback) []string {
	var found []string
	warn := func(ok bool, what string) {
		if ok && !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	suspicious := func(text string) bool {
		text = strings.ToLower(strings.Join(strings.Fields(text), " "))
		return slices.ContainsFunc(instructions, func(i string) bool { return strings.Contains(text, i) })
	}
	reviewers := map[string]bool{}
	warn(suspicious(d.Text), warnInstruction)
	for i := range evidence {
		text := evidence[i].said()
		reviewers[evidence[i].Reviewer] = true
		warn(prompt.Check(strings.Join(strings.Fields(text), " ")) != nil, warnCleaned)
		warn(utf8.RuneCountInString(d.Text) >= 20 && strings.Contains(text, d.Text), warnVerbatim)
		warn(suspicious(text), warnInstruction)
	}
	warn(len(reviewers) == 1, warnSingle)
	slices.Sort(found)
	return found
}
