package feedback

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback/internal/oppose"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/prompt"
)

// A Draft is what people approve, word by word. Approvals are bound to its hash.
type Draft struct {
	// Action is what an approval leads to. "" means "CREATE_RULE".
	//
	//   - "CREATE_RULE" makes a rule that is injected into prompts.
	//   - "REFINE_PROMPT" and "UPDATE_SKILL" make a rule that is not: the host carries it out in the
	//     prompt or the skill of the agent. It is measured, retired and superseded like the others.
	//   - "DOCUMENT_ONLY" needs no approval and has no further effect.
	Action string `json:"action"`
	// Type is the kind of guidance that the rule gives. "" means "GUIDELINE". Without a
	// [Config].Drafter, the first that fits is selected.
	//
	//   - "POSITIVE_EXAMPLE": the evidence are approvals without changes.
	//   - "CONSTRAINT": a correction was critical, or the text contains "must", "never" or the like.
	//   - "NEGATIVE_EXAMPLE": all of the evidence was rejected.
	//   - "GUIDELINE" is everything else.
	Type string `json:"rule_type"`
	// Text is the rule: one line of at most 500 characters, of those that [prompt.Check] accepts.
	Text string `json:"rule_content"`
	// Agents names the agents that it is for, sorted. It is empty if AllAgents is set.
	Agents []string `json:"affected_agents,omitempty"`
	// AllAgents makes it a rule for every agent, also for ones that come later.
	AllAgents bool `json:"all_agents,omitempty"`
	// Place is where in the agent's prompt or skill it belongs, in the host's words. "" is the
	// section of learned rules.
	Place string `json:"insertion_point,omitempty"`
	// Check enforces the rule: see [Rules.CheckIn].
	Check Check `json:"check,omitzero"`
	// Supersedes are the ids of the active rules that it replaces, sorted.
	Supersedes []string `json:"supersedes,omitempty"`
	// Change is what an approval does with the rule Of, whose words the draft repeats: take the
	// [Rule].Draft that you have seen, and set both.
	//
	//   - "" makes a rule. Of is then "".
	//   - "RESTORE" puts a retired rule back into prompts. Its effect is measured from then on.
	//   - "PIN" ranks an active rule before all that are not pinned: see [Rules.Inject]. Without Of,
	//     it makes a rule that is pinned.
	//   - "UNPIN" ends that.
	Change string `json:"change,omitempty"`
	Of     string `json:"of,omitempty"`
	// Withdrawn is how much feedback was taken out from behind the proposal, or erased, since it was
	// opened. heed counts it. Because it is part of the Hash, an approval by somebody who saw the
	// earlier evidence is refused. New feedback that means the same does not invalidate an approval.
	Withdrawn int `json:"withdrawn,omitempty"`
}

// The changes of a rule: see [Draft].Change.
const (
	restore = "RESTORE"
	pin     = "PIN"
	unpin   = "UNPIN"
)

// The actions: see [Draft].Action.
const (
	createRule   = "CREATE_RULE"
	refinePrompt = "REFINE_PROMPT"
	updateSkill  = "UPDATE_SKILL"
	documentOnly = "DOCUMENT_ONLY"
)

// actions are all of them.
var actions = []string{createRule, refinePrompt, updateSkill, documentOnly}

// The types of rules: see [Draft].Type.
const (
	positiveExample = "POSITIVE_EXAMPLE"
	constraint      = "CONSTRAINT"
	negativeExample = "NEGATIVE_EXAMPLE"
	guideline       = "GUIDELINE"
)

// Hash returns the SHA-256, in hex, of the draft's JSON, with defaults and sorted lists. It changes
// with any change of the draft.
func (d Draft) Hash() string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(d.normal()) // texts and numbers, which can be encoded
	return hex.EncodeToString(h.Sum(nil))
}

// words is the hash of the text that an agent gets, and where.
func (d Draft) words() string {
	d.Change, d.Of, d.Supersedes, d.Withdrawn = "", "", nil, 0
	return d.Hash()
}

// affects reports whether it is for the agent.
func (d Draft) affects(agent string) bool { return d.AllAgents || slices.Contains(d.Agents, agent) }

// overlaps reports whether an agent may see both.
func (d *Draft) overlaps(o *Draft) bool {
	return d.AllAgents || o.AllAgents || slices.ContainsFunc(d.Agents, o.affects)
}

// normal is the draft with its defaults, and its lists sorted.
func (d *Draft) normal() Draft {
	n := *d
	n.Action, n.Type = cmp.Or(d.Action, createRule), cmp.Or(d.Type, guideline)
	n.Agents, n.Supersedes = text.Distinct(d.Agents), text.Distinct(d.Supersedes)
	return n
}

// checked returns a draft in its normal form, or its first fault.
func (s *Service) checked(d Draft) (Draft, error) {
	d = d.normal()
	return d, s.validateDraft(&d)
}

// validateDraft reports the first fault of a draft in its normal form. The text becomes a line of a
// prompt, so it must not be able to pass for another part of the prompt.
func (s *Service) validateDraft(d *Draft) error {
	switch n := utf8.RuneCountInString(d.Text); {
	case !slices.Contains(actions, d.Action):
		return valid.Input("Action", "is not one of the actions")
	case labels[d.Type] == "":
		return valid.Input("Type", "is not one of the types")
	case strings.TrimSpace(d.Text) == "":
		return valid.Input("Text", "must not be empty")
	case n > maxText:
		return valid.Input("Text", "has %d characters, may have %d", n, maxText)
	case d.AllAgents == (len(d.Agents) > 0):
		return valid.Input("Agents", "must name agents, or be empty where AllAgents is set")
	}
	if err := prompt.Check(d.Text); err != nil {
		return valid.Input("Text", "%v", err)
	}
	if err := prompt.Check(d.Place); err != nil {
		return valid.Input("Place", "%v", err)
	}
	if err := cmp.Or(evidence.CheckText("Place", d.Place), checkList("Agents", d.Agents),
		checkList("Supersedes", d.Supersedes), d.Check.validate(d.Action),
		d.validateChange()); err != nil {
		return err
	}
	for i, agent := range d.Agents {
		if len(s.cfg.Agents) > 0 && !slices.Contains(s.cfg.Agents, agent) {
			return valid.Input(fmt.Sprintf("Agents[%d]", i), "is not one of Config.Agents")
		}
	}
	return nil
}

// validateChange reports a change that names no rule, or a rule without a change.
func (d *Draft) validateChange() error {
	switch d.Change {
	case "":
		if d.Of != "" {
			return valid.Input("Of", "must be empty, because there is no Change")
		}
	case restore, pin, unpin:
		if d.Action == documentOnly {
			return valid.Input("Change", "must be empty, because the draft makes no rule")
		}
		if d.Of != "" || d.Change != pin {
			return valid.Names(evidence.MaxText, "Of", d.Of)
		}
	default:
		return valid.Input("Change", "is not one of the changes")
	}
	return nil
}

// replaces are the active rules that an approval takes out of use.
func (d *Draft) replaces() []string {
	if d.makes() {
		return d.Supersedes
	}
	return nil // the rule that it repeats replaced them already
}

// speaks reports whether an approval puts the draft's words into prompts, or could. Pinning a rule
// does not.
func (d *Draft) speaks() bool { return d.makes() || d.Change == restore }

// makes reports whether the draft makes a rule. Otherwise it changes one.
func (d *Draft) makes() bool { return d.Of == "" }

// representative is the default of [Config].Drafter, which needs no model. The text of the feedback
// that is most like the others becomes the rule, word for word, and its type follows the rules of
// [Draft].Type. Of a large cluster, the latest 200 are compared. The text with the greatest sum of
// similarities to all others is in the middle of the cluster.
func representative(_ context.Context, cluster []Feedback) (Draft, error) {
	const compared = 200 // each with each
	if len(cluster) == 0 {
		return Draft{}, valid.Input("cluster", "must not be empty")
	}
	cluster = cluster[max(len(cluster)-compared, 0):]
	texts := make([]string, len(cluster))
	sets := make([][]uint64, len(cluster))
	for i := range cluster {
		texts[i] = ruleText(&cluster[i])
		sets[i] = text.Trigrams(texts[i])
	}
	best, most := 0, -1.
	for i := range sets {
		var sum float64
		for j := range sets {
			sum += text.Jaccard(sets[i], sets[j])
		}
		if texts[i] != "" && sum > most {
			best, most = i, sum
		}
	}
	line := prompt.Line(texts[best], maxText)
	return Draft{Type: selectType(cluster, line), Text: line}, nil
}

// ruleText is what a rule is made of: the summary, or the first line of the comment that contains
// words.
func ruleText(f *Feedback) string {
	text := strings.TrimSpace(unforged(f.Summary))
	if text == "" {
		text, _, _ = strings.Cut(strings.TrimSpace(unforged(f.Comment)), "\n")
	}
	return text
}

// selectType returns the first type that fits: see [Draft].Type. A correction that was critical
// makes a constraint even if its words do not demand anything.
func selectType(cluster []Feedback, text string) string {
	all := func(d Decision) bool {
		return !slices.ContainsFunc(cluster, func(r Feedback) bool { return r.Decision != d })
	}
	switch {
	case all(Approved):
		return positiveExample
	case slices.ContainsFunc(cluster, func(r Feedback) bool { return r.Severity == critical }),
		oppose.Read(text).Binds():
		return constraint
	case all(Rejected):
		return negativeExample
	default:
		return guideline
	}
}

// draft asks the drafter, survives what it does, and completes its answer from the evidence. The
// drafter gets copies. An answer that is no valid draft is an error.
func (s *Service) draft(ctx context.Context, cluster []Feedback) (d Draft, err error) {
	err = host.Call("the drafter", func() error {
		d, err = s.cfg.Drafter(ctx, copies(cluster))
		return err
	})
	if err != nil {
		return Draft{}, err
	}
	if !d.AllAgents && len(d.Agents) == 0 {
		for i := range cluster {
			d.Agents = append(d.Agents, cluster[i].Agent)
		}
	}
	if d.Action == "" {
		d.Action = cluster[len(cluster)-1].Action
	}
	return s.checked(d)
}
