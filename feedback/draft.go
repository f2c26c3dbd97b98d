package feedback

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedhq/heed/prompt"
)

// A Draft is what a proposal proposes: what people approve, word by word. Approvals are bound to its hash.
type Draft struct {
	Action Action   `json:"action"`    // "" means CreateRule
	Type   RuleType `json:"rule_type"` // "" means Guideline
	// Text is the rule: one line of at most [MaxText] characters, of those that [prompt.Check] accepts.
	Text string `json:"rule_content"`
	// Agents are those that it is for, sorted; or AllAgents is set, and Agents is empty.
	Agents    []string `json:"affected_agents,omitempty"`
	AllAgents bool     `json:"all_agents,omitempty"`
	// Place is where in the agent's prompt or skill it belongs, in words of the host's. "" is the section of learned rules.
	Place string `json:"insertion_point,omitempty"`
	// Supersedes are the ids of active rules that it takes the place of, sorted.
	Supersedes []string `json:"supersedes,omitempty"`
}

// MaxText is how many characters the text of a rule may have.
const MaxText = 500

// An Action is what should come of feedback.
type Action string

// The actions. All but the last pass the gate. CreateRule makes a rule that is injected into prompts; RefinePrompt and
// UpdateSkill make a rule that is not: it is an approved change for the host to carry out in the prompt or the skill of its
// target agent, and is measured, retired and superseded as the others are. DocumentOnly is recorded at once, and nothing
// follows from it.
const (
	CreateRule   Action = "CREATE_RULE"
	RefinePrompt Action = "REFINE_PROMPT"
	UpdateSkill  Action = "UPDATE_SKILL"
	DocumentOnly Action = "DOCUMENT_ONLY"
)

// Valid reports whether it is one of the four.
func (a Action) Valid() bool {
	return a == CreateRule || a == RefinePrompt || a == UpdateSkill || a == DocumentOnly
}

// A RuleType says what kind of guidance a rule is.
type RuleType string

// The types of rules, with what [Representative] selects them by, in this order.
const (
	PositiveExample RuleType = "POSITIVE_EXAMPLE" // the evidence are approvals without changes
	Constraint      RuleType = "CONSTRAINT"       // a correction was critical, or the text says "must", "never" or the like
	NegativeExample RuleType = "NEGATIVE_EXAMPLE" // all of the evidence was rejected
	Guideline       RuleType = "GUIDELINE"        // everything else
)

// Valid reports whether it is one of the four.
func (t RuleType) Valid() bool {
	return t == PositiveExample || t == Constraint || t == NegativeExample || t == Guideline
}

// Hash names what is proposed: the SHA-256 of every field, in hex.
func (d *Draft) Hash() string {
	n := d.normal()
	h := sha256.New()
	put := func(parts ...string) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(parts)))
		h.Write(size[:])
		for _, part := range parts {
			binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
			h.Write(size[:])
			h.Write([]byte(part))
		}
	}
	put(string(n.Action), string(n.Type), n.Text, fmt.Sprint(n.AllAgents), n.Place)
	put(n.Agents...)
	put(n.Supersedes...)
	return hex.EncodeToString(h.Sum(nil))
}

// Affects reports whether it is for the agent.
func (d *Draft) Affects(agent string) bool { return d.AllAgents || slices.Contains(d.Agents, agent) }

// overlaps reports whether an agent may see both.
func (d *Draft) overlaps(o *Draft) bool {
	return d.AllAgents || o.AllAgents || slices.ContainsFunc(d.Agents, o.Affects)
}

// normal is the draft with its defaults, and its lists sorted.
func (d *Draft) normal() Draft {
	n := *d
	if n.Action == "" {
		n.Action = CreateRule
	}
	if n.Type == "" {
		n.Type = Guideline
	}
	n.Agents, n.Supersedes = distinct(d.Agents), distinct(d.Supersedes)
	return n
}

// validate reports the first fault of a draft in its normal form.
func (s *Service) validateDraft(d *Draft) error {
	switch n := utf8.RuneCountInString(d.Text); {
	case !d.Action.Valid():
		return invalid("Action", "is none of the actions")
	case !d.Type.Valid():
		return invalid("Type", "is none of the types")
	case strings.TrimSpace(d.Text) == "":
		return invalid("Text", "must not be empty")
	case n > MaxText:
		return invalid("Text", fmt.Sprintf("has %d characters, may have %d", n, MaxText))
	case d.AllAgents == (len(d.Agents) > 0):
		return invalid("Agents", "must name agents, or be empty where AllAgents is set")
	}
	if err := prompt.Check(d.Text); err != nil {
		return invalid("Text", err.Error())
	}
	if err := prompt.Check(d.Place); err != nil {
		return invalid("Place", err.Error())
	}
	if d.Place != "" {
		if err := checkName("Place", d.Place); err != nil {
			return err
		}
	}
	if err := checkNames(list{"Agents", d.Agents}, list{"Supersedes", d.Supersedes}); err != nil {
		return err
	}
	for i, agent := range d.Agents {
		if len(s.cfg.Agents) > 0 && !slices.Contains(s.cfg.Agents, agent) {
			return invalid(fmt.Sprintf("Agents[%d]", i), "is none of Config.Agents")
		}
	}
	return nil
}

// Drafter words the rule of a cluster.
//
// Draft is called by many goroutines at the same time, without a lock that others wait for, and must return when the
// context is done. Its error, an answer that is not valid, and a panic leave the cluster without a proposal until the
// next [Service.Flush].
type Drafter interface {
	// Draft words a rule of what a cluster has in common; the oldest of its feedback comes first. Agents and Action may be
	// left empty: they are then those of the evidence.
	Draft(ctx context.Context, cluster []Record) (Draft, error)
}

// Representative is the drafter that needs no model: the text of the feedback that is most like the others becomes the rule,
// word for word, and its type is selected by the rules of [RuleType].
type Representative struct{}

var _ Drafter = Representative{}

// Draft implements [Drafter].
func (Representative) Draft(_ context.Context, cluster []Record) (Draft, error) {
	texts := make([]string, len(cluster))
	sets := make([]grams, len(cluster))
	for i := range cluster {
		texts[i] = ruleText(&cluster[i].Feedback)
		sets[i] = gramsOf(texts[i])
	}
	best, most := 0, -1.
	for i := range sets {
		var sum float64
		for j := range sets {
			sum += jaccard(sets[i], sets[j])
		}
		if texts[i] != "" && sum > most {
			best, most = i, sum
		}
	}
	text := prompt.Line(texts[best], MaxText)
	return Draft{Type: selectType(cluster, text), Text: text}, nil
}

// ruleText is what a rule is made of: the summary, or the first line of the comment that says something.
func ruleText(f *Feedback) string {
	text := strings.TrimSpace(strip(f.Summary))
	if text == "" {
		text, _, _ = strings.Cut(strings.TrimSpace(strip(f.Comment)), "\n")
	}
	return text
}

// obligations are the words by which a text binds.
var obligations = setOf("must never always shall required mandatory forbidden prohibited cannot muss nie immer verboten doit jamais debe nunca")

func selectType(cluster []Record, text string) RuleType {
	all := func(d Decision) bool {
		return !slices.ContainsFunc(cluster, func(r Record) bool { return r.Decision != d })
	}
	r := read(text)
	binds := func(word string) bool { return r.words[word] }
	switch {
	case all(Approved):
		return PositiveExample
	case slices.ContainsFunc(cluster, func(r Record) bool { return r.Severity == Critical }),
		slices.ContainsFunc(sortedKeys(obligations), binds):
		return Constraint
	case all(Rejected):
		return NegativeExample
	default:
		return Guideline
	}
}

// draft asks the drafter, survives what it does, and completes its answer from the evidence.
func (s *Service) draft(ctx context.Context, cluster []Record) (d Draft, err error) {
	defer contain("the drafter", &err)
	given := make([]Record, len(cluster))
	for i := range cluster {
		given[i] = cluster[i].Clone()
	}
	if d, err = s.cfg.Drafter.Draft(ctx, given); err != nil {
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
	d = d.normal()
	return d, s.validateDraft(&d)
}

// The warnings that a proposal may carry for its approvers.
const (
	WarnCleaned     = "the evidence has characters that a rule must not have"
	WarnVerbatim    = "the text is that of a reviewer, word for word"
	WarnInstruction = "the text or its evidence reads like an instruction against other instructions"
	WarnSingle      = "a single reviewer is behind it"
)

var instructions = []string{
	"ignore previous", "ignore all", "ignore the above", "disregard", "forget everything", "system prompt", "previous instructions",
	"you are now", "new instructions", "override", "jailbreak", "do not tell", "reveal your",
}

// warnings say what approvers should know of a draft.
func warnings(d *Draft, evidence []Record) []string {
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
	warn(suspicious(d.Text), WarnInstruction)
	for i := range evidence {
		text := evidence[i].Text()
		reviewers[evidence[i].Reviewer] = true
		warn(prompt.Check(strings.Join(strings.Fields(text), " ")) != nil, WarnCleaned)
		warn(utf8.RuneCountInString(d.Text) >= 20 && strings.Contains(text, d.Text), WarnVerbatim)
		warn(suspicious(text), WarnInstruction)
	}
	warn(len(reviewers) == 1, WarnSingle)
	slices.Sort(found)
	return found
}
