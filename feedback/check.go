package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A Check finds out whether an answer, or the call of a tool, breaks a rule. It is part of the
// [Draft], so that people approve it with the words. The zero Check checks no text. Otherwise one
// of Forbid and Require is set.
type Check struct {
	// Tool selects which texts are checked: answers if it is "", the arguments of every tool if it is
	// "*", else calls of the tool of this name.
	Tool string `json:"tool,omitempty"`
	// Forbid and Require are regular expressions of package regexp, of at most 500 characters. A text
	// that Forbid matches breaks the rule, and so does one that Require does not match. Arguments
	// that are JSON are decoded and encoded again, with sorted keys, without blanks, and without
	// escapes of "<", ">" and "&". Forbid is compared with that, with each string in it, and with the
	// arguments as they came; Require with that alone.
	Forbid  string `json:"forbid,omitempty"`
	Require string `json:"require,omitempty"`
}

// Checked is an answer, or the call of a tool, that [Rules.CheckIn] looks at.
type Checked struct {
	// ID names the answer or call. It counts once for the effect of a rule. "" does not count.
	ID string
	// Agent is whose rules are asked. It is never empty.
	Agent string
	// Tool is the name of the tool that is called, and "" if Text is an answer.
	Tool string
	// Text is the answer, or the arguments.
	Text string
	// Heuristic is the id of the heuristic whose action the text is, if it is one. It is also asked
	// which rules the text contradicts in words, whether they have a check or not, and of which rules
	// an approver found that the heuristic breaks them (Review.Withhold). That calls no model.
	Heuristic string
}

// A Violation reports that a rule was broken, or could not be checked.
type Violation struct {
	// Rule is the rule's id, and Text its words.
	Rule string `json:"rule"`
	Text string `json:"text"`
	// Reason is how the rule was broken, or why that is not known.
	Reason string `json:"reason"`
	// Unchecked reports that heed could not find out whether the rule was broken, because the text is
	// too long for an expression.
	Unchecked bool `json:"unchecked"`
}

// The limits of a check.
const (
	maxChecked = 64 << 10 // bytes that an expression looks at
	maxProgram = 500      // instructions of an expression
)

// CheckIn asks the rules that are active for an agent whether an answer, or the call of a tool,
// breaks them, in their order, as a part of a step. The caller decides what to do then. Each check
// counts for the [Effect] of its rule when the step is committed. A text of more than 64 KiB is not
// compared with expressions, and reported as unchecked.
func (r *Rules) CheckIn(tx *store.Tx, c Checked) ([]Violation, error) {
	violations, err := r.check(tx, c)
	return violations, wrap("check", err)
}

// check compares a text with each rule of the agent. It adds one observation for each expression
// that looked at the text, so that [Effect] can count how often a rule is kept. The id of an
// observation follows from the rule and the text's ID, so a text that is checked twice counts once.
func (r *Rules) check(tx *store.Tx, c Checked) (violations []Violation, err error) {
	if err := errors.Join(evidence.CheckText("ID", c.ID),
		evidence.CheckText("Tool", c.Tool)); err != nil {
		return nil, err
	}
	lines, err := r.lines(tx, c.Agent)
	if err != nil {
		return nil, err
	}
	now, text := r.s.now(), checkedOf(&c)
	for _, line := range lines {
		if reason := r.s.overrules(&line, &c); reason != "" {
			violations = append(violations, Violation{Rule: line.id, Text: line.words, Reason: reason})
		}
		if !line.check.looksAt(c.Tool) {
			continue
		}
		reason, err := line.check.compare(&text)
		kept := 1.
		switch {
		case err != nil:
			violations = append(violations, Violation{Rule: line.id, Text: line.words,
				Reason: err.Error(), Unchecked: true})
			continue
		case reason != "":
			kept = 0
			violations = append(violations, Violation{Rule: line.id, Text: line.words, Reason: reason})
		}
		if c.ID != "" {
			tx.Observe(evidence.Observation{
				ID: store.IDOf("feedback.check", line.id, c.Tool, c.ID), Cell: checks(line.id),
				Channel: "check", Reward: kept, Weight: 1, At: now,
			})
		}
	}
	return violations, nil
}

// overrules returns why a heuristic does not answer by itself because of a rule, apart from the
// rule's check, or "".
func (s *Service) overrules(l *line, c *Checked) string {
	switch {
	case c.Heuristic == "":
	case slices.Contains(l.withheld, c.Heuristic):
		return "a person who approved the rule found that the heuristic breaks it"
	case s.contradicts(c.Text, l.words):
		return contradictory
	}
	return ""
}

const contradictory = "the words contradict each other"

// withheld returns the heuristics that the approvers of a rule found to break it.
func (r *Rule) withheld() (ids []string) {
	for i := range r.Approvals {
		ids = append(ids, r.Approvals[i].Withhold...)
	}
	return text.Distinct(ids)
}

// Reach returns the heuristics that a draft governs once it is a rule, or may govern, by the ids
// and actions of heuristics. A "contradiction" is one that heed will withhold by itself, because
// its action breaks the check or contradicts the draft in words; the Explanation is how. Then come
// at most ten that are about the same ("overlap"), the most alike first, for which people decide:
// Review.Withhold. It reads no store: the caller gives the actions, for example of all heuristics.
func (r *Rules) Reach(
	ctx context.Context, d Draft, actions map[string]string,
) (all []Conflict, err error) {
	const most = 10
	if d, err = r.s.checked(d); err != nil {
		return nil, wrap("reach", err)
	}
	if d.Action != createRule || !d.speaks() {
		return nil, nil
	}
	ids := slices.Sorted(maps.Keys(actions))
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = actions[id]
	}
	scores, err := r.s.scores(ctx, d.Text, texts)
	if err != nil {
		return nil, wrap("reach", err)
	}
	check, breaks := newChecker(d.Check), 0
	for i, id := range ids {
		one := Conflict{
			Kind: contradiction, ID: id, Score: scores[i], Explanation: r.s.breaks(&d, check, texts[i]),
		}
		switch {
		case one.Explanation != "":
			breaks++
		case one.Score < r.s.leastNear():
			continue
		default:
			one.Kind = overlap
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Score, a.Score))
	})
	return all[:min(len(all), breaks+most)], nil
}

// breaks returns how an answer would break a draft, or "".
func (s *Service) breaks(d *Draft, check *checker, answer string) (reason string) {
	if check.looksAt("") {
		text := checkedOf(&Checked{Text: answer})
		var err error
		if reason, err = check.compare(&text); err != nil {
			return err.Error()
		}
	}
	if reason == "" && s.contradicts(answer, d.Text) {
		reason = contradictory
	}
	return reason
}

// contradicts reports whether two texts about the same topic contradict each other, by their words
// alone.
func (s *Service) contradicts(a, b string) bool {
	return !tooLong(a, b) && s.opposed(a, b).Contradicts() && s.sameTopic(a, b, 0)
}

// checks names the evidence of how often a rule was kept.
func checks(rule string) evidence.Cell { return evidence.Cell{Kind: "feedback.check", Item: rule} }

// A checker is a check with its expression. If the expression can't be used, err is the reason.
type checker struct {
	Check
	expression *regexp.Regexp
	err        error
}

// newChecker compiles a check once for all texts. It returns nil for the zero Check. An expression
// of an older version that no longer compiles makes every text unchecked, because a rule must not
// fail silently.
func newChecker(c Check) *checker {
	if c == (Check{}) {
		return nil
	}
	k := &checker{Check: c}
	k.expression, k.err = compile(c.Forbid + c.Require)
	return k
}

// looksAt reports whether the check is about a tool, or about answers if the tool is "".
func (k *checker) looksAt(tool string) bool {
	return k != nil && (k.Tool == tool || k.Tool == "*" && tool != "")
}

// compare returns how a text breaks a rule, or "" if it does not. Its error is the reason why it
// could not find out.
func (k *checker) compare(text *checkedText) (reason string, err error) {
	switch {
	case k.err != nil:
		return "", k.err
	case len(text.raw) > maxChecked:
		return "", fmt.Errorf("the text is %d bytes long, and %d can be compared with an expression",
			len(text.raw), maxChecked)
	case k.Forbid != "" && text.matches(k.expression):
		return "it matches " + k.Forbid, nil
	case k.Require != "" && !text.has(k.expression):
		return "it does not match " + k.Require, nil
	}
	return "", nil
}

// compile makes an expression whose time is bounded by the length of the text. Package regexp needs
// time in proportion to the text and to the size of the program, so both are bounded.
func compile(expression string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if n := len(program.Inst); n > maxProgram {
		return nil, fmt.Errorf("the expression is too large: it has %d instructions, may have %d", n,
			maxProgram)
	}
	return regexp.Compile(expression)
}

// validate reports the first fault of a check. The expression is compiled here, so that people
// never approve a rule whose expression can't be used.
func (c *Check) validate(action string) error {
	if *c == (Check{}) {
		return nil
	}
	for _, field := range [...]struct{ name, value string }{
		{"Forbid", c.Forbid}, {"Require", c.Require},
	} {
		if field.value == "" {
			continue
		}
		if n := utf8.RuneCountInString(field.value); n > maxText {
			return valid.Input("Check."+field.name, "has %d characters, may have %d", n, maxText)
		}
		if err := evidence.CheckText("Check."+field.name, field.value); err != nil {
			return err
		}
		if _, err := compile(field.value); err != nil {
			return valid.Input("Check."+field.name, "%v", err)
		}
	}
	switch {
	case (c.Forbid == "") == (c.Require == ""):
		return valid.Input("Check", "must have one of Forbid and Require")
	case action != createRule:
		return valid.Input("Check", "must be empty, because the action makes no rule for prompts")
	}
	return evidence.CheckText("Check.Tool", c.Tool)
}
