// Package review tells what a person needs to know to decide about a proposal or a rule: for the command and for the pages.
package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store"
)

// A Report is a proposal with the rule that it became. A rule that was imported has no proposal.
type Report struct {
	Proposal *feedback.Proposal  `json:"proposal,omitempty"`
	Rule     *feedback.Rule      `json:"rule,omitempty"`
	Hash     string              `json:"hash"`              // of the words that are approved
	Quorum   *Quorum             `json:"quorum,omitempty"`  // of a pending proposal
	Sources  []feedback.Feedback `json:"sources,omitempty"` // the evidence that is left
	Now      []Against           `json:"conflicts_now"`     // what stands against it now, while it is pending or its rule is active
	Before   []feedback.Proposal `json:"before,omitempty"`  // the proposals that it follows, the latest first
	History  []store.AuditEntry  `json:"history,omitempty"` // who did what to it, the first first
}

// An Against is a conflict with the words of the other side.
type Against struct {
	feedback.Conflict
	Text string `json:"text,omitempty"` // "" if they are not kept
}

// opposite reads what a conflict is with.
func opposite(ctx context.Context, f *feedback.Service, c feedback.Conflict) (Against, error) {
	text := ""
	var err error
	switch {
	case c.Correction:
		var k feedback.Feedback
		k, err = f.Feedback(ctx, c.ID)
		text = strings.TrimSpace(k.Summary + " " + k.Comment)
	case c.Pending:
		var p feedback.Proposal
		p, err = f.Rules().Proposal(ctx, c.ID)
		text = p.Text
	default:
		var r feedback.Rule
		r, err = f.Rules().Rule(ctx, c.ID)
		text = r.Text
	}
	if errors.Is(err, heed.ErrNotFound) {
		err = nil
	}
	return Against{c, text}, err
}

// OfProposal reads all about a proposal.
func OfProposal(ctx context.Context, f *feedback.Service, p feedback.Proposal) (r Report, err error) {
	r = Report{Proposal: &p, Hash: p.Draft.Hash(), Now: []Against{}}
	if p.Status == feedback.StatePending {
		q := QuorumOf(&p, f.Config().Gate)
		r.Quorum = &q
	}
	if r.Sources, err = f.Rules().Sources(ctx, p.ID); err != nil {
		return r, err
	}
	switch made, err := f.Rules().Rule(ctx, p.ID); {
	case err == nil:
		r.Rule = &made
	case !errors.Is(err, heed.ErrNotFound):
		return r, fmt.Errorf("rule %s: %w", p.ID, err)
	}
	if p.Status == feedback.StatePending || r.Rule != nil && r.Rule.Status == feedback.StateActive {
		conflicts, err := f.Rules().Conflicts(ctx, p.Draft)
		if err != nil {
			return r, err
		}
		for _, c := range conflicts {
			if c.ID == p.ID {
				continue
			}
			one, err := opposite(ctx, f, c)
			if err != nil {
				return r, err
			}
			r.Now = append(r.Now, one)
		}
	}
	return r, r.readHistory(ctx, f)
}

// OfRule reads all about a rule without a proposal.
func OfRule(ctx context.Context, f *feedback.Service, rule feedback.Rule) (Report, error) {
	r := Report{Rule: &rule, Hash: rule.Draft.Hash(), Now: []Against{}}
	return r, r.readHistory(ctx, f)
}

const mostBefore = 20

// readHistory reads what came before, and who did what.
func (r *Report) readHistory(ctx context.Context, f *feedback.Service) error {
	id := ""
	if r.Rule != nil {
		id = r.Rule.ID
	}
	if r.Proposal != nil {
		id = r.Proposal.ID
		for previous := r.Proposal.Previous; previous != "" && len(r.Before) < mostBefore; {
			p, err := f.Rules().Proposal(ctx, previous)
			switch {
			case errors.Is(err, heed.ErrNotFound):
				previous = "" // the store has dropped it
				continue
			case err != nil:
				return fmt.Errorf("proposal %s: %w", previous, err)
			}
			r.Before, previous = append(r.Before, p), p.Previous
		}
	}
	for entry, err := range store.AuditEntries(ctx, f.Config().Store, store.AuditQuery{Name: id}) {
		if err != nil {
			return err
		}
		if entry.Subject == id {
			r.History = append(r.History, entry)
		}
	}
	slices.Reverse(r.History)
	return nil
}

// A Quorum says how far the approvals of a pending proposal have come.
type Quorum struct {
	Approvals int      `json:"approvals"` // of what it says now
	Of        int      `json:"of"`
	Missing   int      `json:"missing"`             // how many more people must approve
	Outsiders int      `json:"missing_others"`      // how many of those must not be reviewers of its evidence
	Not       []string `json:"not,omitempty"`       // people whose approval does not count, or counts already
	Reviewers []string `json:"reviewers,omitempty"` // of the evidence, who are no outsiders
}

// QuorumOf counts the approvals of a proposal as its gate does.
func QuorumOf(p *feedback.Proposal, g feedback.Gate) Quorum {
	hash := p.Hash()
	var people, outsiders []string
	for _, a := range p.Approvals {
		if a.Hash == hash && !slices.Contains(people, a.Actor) {
			if people = append(people, a.Actor); !slices.Contains(p.Authors, a.Actor) {
				outsiders = append(outsiders, a.Actor)
			}
		}
	}
	q := Quorum{Approvals: len(people), Of: g.Quorum, Outsiders: max(g.Outsiders-len(outsiders), 0)}
	q.Missing = max(g.Quorum-len(people), q.Outsiders)
	q.Not = slices.Concat(people, p.Writers)
	if q.Outsiders == q.Missing {
		q.Not = append(q.Not, p.Authors...)
	} else if q.Outsiders > 0 {
		q.Reviewers = p.Authors
	}
	slices.Sort(q.Not)
	q.Not = slices.Compact(q.Not)
	return q
}

// Words says it in words. show makes a name fit to be shown.
func (q Quorum) Words(show func(string) string) string {
	text := fmt.Sprintf("%d of %d", q.Approvals, q.Of)
	switch q.Missing {
	case 0: // what it contradicts now has to be overridden
		return text
	case 1:
		text += "; one more person must approve"
	default:
		text += fmt.Sprintf("; %d more people must approve", q.Missing)
	}
	if len(q.Not) > 0 {
		text += ", other than " + either(q.Not, show)
	}
	if len(q.Reviewers) > 0 {
		text += fmt.Sprintf(", and at least %d other than %s", q.Outsiders, either(q.Reviewers, show))
	}
	return text
}

// either writes names with "or" before the last.
func either(names []string, show func(string) string) string {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = show(name)
	}
	last := len(shown) - 1
	if last == 0 {
		return shown[0]
	}
	return strings.Join(shown[:last], ", ") + " or " + shown[last]
}

// A Part is a field of a draft, in words. It is empty where it has its default.
type Part struct{ Name, Value string }

// Parts are all fields of a draft that people approve, but for what it changes: the text and the agents first. show makes a text fit
// to be shown.
func Parts(d *feedback.Draft, show func(string) string) []Part {
	action, kind := "", ""
	if d.Action != feedback.CreateRule {
		action = strings.ToLower(string(d.Action))
	}
	if d.Type != feedback.Guideline {
		kind = strings.ToLower(string(d.Type))
	}
	place := ""
	if d.Place != "" {
		place = show(d.Place)
	}
	return []Part{
		{"text", show(d.Text)}, {"agents", List(d.Agents, "all", show)}, {"action", action}, {"type", kind}, {"place", place},
		{"supersedes", List(d.Supersedes, "", show)}, {"check", CheckWords(d.Check, show)},
	}
}

// List joins texts with commas. none is said where there are none.
func List(all []string, none string, show func(string) string) string {
	if len(all) == 0 {
		return none
	}
	return show(strings.Join(all, ", "))
}

// CheckWords says what a check looks for.
func CheckWords(c feedback.Check, show func(string) string) string {
	where := "answers"
	switch c.Tool {
	case "":
	case "*":
		where = "calls of all tools"
	default:
		where = "calls of " + show(c.Tool)
	}
	switch {
	case c.Forbid != "":
		return where + " must not match " + show(c.Forbid)
	case c.Require != "":
		return where + " must match " + show(c.Require)
	default:
		return ""
	}
}

// Waiting returns the corrections that are in no proposal, the newest first: nobody else has said the same, or not enough people, or they wait
// to be resolved. At most limit of each class are read.
func Waiting(ctx context.Context, f *feedback.Service, agent string, limit int) (all []feedback.Feedback, err error) {
	proposals, _, err := f.Rules().Proposals(ctx, feedback.ProposalQuery{Agent: agent}, 0)
	if err != nil {
		return nil, err
	}
	proposed := make(map[string]bool)
	for _, p := range proposals {
		proposed[p.Cluster] = true
	}
	for _, class := range []feedback.Classification{feedback.EdgeCase, feedback.GeneralizableLow, feedback.Ambiguous} {
		found, _, err := f.List(ctx, feedback.Listing{Agent: agent, Class: class, Limit: limit})
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			if c.Cluster == "" || !proposed[c.Cluster] {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b feedback.Feedback) int { return b.At.Compare(a.At) })
	return all, nil
}
