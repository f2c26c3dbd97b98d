package view

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/text"
)

// A Rule is a rule or a proposal in a list.
type Rule struct {
	ID        string         `json:"id"`
	Status    string         `json:"status"` // in lower case
	Type      string         `json:"type"`   // in lower case
	Text      string         `json:"text"`
	AllAgents bool           `json:"all_agents"`
	Agents    []string       `json:"agents"`
	Pinned    bool           `json:"pinned"`
	Check     feedback.Check `json:"check"`
	Approvals int            `json:"approvals"`        // of its present words
	Quorum    int            `json:"quorum,omitempty"` // that a pending proposal needs
	// Missing lists who still must approve a pending proposal.
	Missing  string    `json:"missing,omitempty"`
	Since    time.Time `json:"since"`
	Effect   string    `json:"effect"`      // of a rule; see [feedback.Effect]
	Improved float64   `json:"improvement"` // of a rule, in [-1, 1]
	Evidence string    `json:"evidence,omitempty"`
	Expires  time.Time `json:"expires,omitzero"` // of a pending proposal
	Decider  string    `json:"decided_by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// NextOf explains what to do with a proposal or a rule in a state that an action does not fit.
var NextOf = map[feedback.State]string{
	feedback.StatePending:  "somebody has to approve or reject it",
	feedback.StateActive:   "it is in prompts until somebody retires it",
	feedback.StateRetired:  "it is in no prompt, and the pages propose to restore it",
	feedback.StateRevoked:  "that is for good, and it has to be proposed again",
	"SUPERSEDED":           "it was edited, or another rule took its place",
	"DOCUMENTED":           "it is written down elsewhere, and in no prompt any more",
	feedback.StateApproved: "it became a rule",
	feedback.StateRejected: "somebody was against it, and it has to be proposed again",
	"EXPIRED":              "it was not decided in time, and it has to be proposed again",
}

// A RuleQuery selects rules or proposals.
type RuleQuery struct {
	Agent string `json:"agent,omitempty" kong:"-"` // empty: every agent
	// Status is one of [NextOf], in any case; empty: every status.
	Status string `json:"status,omitempty" placeholder:"STATUS"`
	Page   `kong:"-"`
}

func (q *RuleQuery) state() feedback.State { return feedback.State(strings.ToUpper(q.Status)) }

// Validate refuses a query with a fault.
func (q *RuleQuery) Validate() error {
	return oneOf("status", q.state(), slices.Sorted(maps.Keys(NextOf))...)
}

// RulesOrProposals lists rules, or the proposals of a status that no rule has.
func (s *Source) RulesOrProposals(ctx context.Context, q RuleQuery) (List[Rule], error) {
	switch q.state() {
	case feedback.StatePending, feedback.StateRejected, "EXPIRED", "DOCUMENTED":
		return s.Proposals(ctx, q)
	default:
		return s.Rules(ctx, q)
	}
}

func draftOf(d *feedback.Draft) Rule {
	return Rule{
		Type: strings.ToLower(d.Type), Text: d.Text, AllAgents: d.AllAgents,
		Agents: arrayOf(d.Agents), Check: d.Check}
}

func ruleOf(r *feedback.Rule) Rule {
	one := draftOf(&r.Draft)
	one.ID, one.Status, one.Since = r.ID, strings.ToLower(string(r.Status)), r.Since
	one.Pinned, one.Approvals = r.Pinned, len(r.Approvals)
	one.Effect, one.Improved = r.Effect.Status, r.Effect.Improvement
	return one
}

func proposalTexts(p *feedback.Proposal) []string {
	return append([]string{p.Text, p.ID}, p.Agents...)
}

func proposalID(p *feedback.Proposal) string { return p.ID }

// Rules lists rules, the newest first. Active ones are listed in the order of prompts.
func (s *Source) Rules(ctx context.Context, q RuleQuery) (l List[Rule], err error) {
	if err := q.Validate(); err != nil {
		return l, err
	}
	found, err := s.Feedback.Rules().List(ctx, feedback.RuleQuery{
		Agent: q.Agent, Status: q.state(), Ranked: q.state() == feedback.StateActive})
	id := func(r *feedback.Rule) string { return r.ID }
	texts := func(r *feedback.Rule) []string { return append([]string{r.Text, r.ID}, r.Agents...) }
	return listed(q.Page, found, err, id, texts, each(ruleOf))
}

func proposalRow(p *feedback.Proposal) Rule {
	one := draftOf(&p.Draft)
	one.ID, one.Status, one.Since = p.ID, strings.ToLower(string(p.Status)), p.Created
	one.Approvals, one.Evidence = len(p.Approvals), p.Summary
	one.Decider, one.Reason = p.Decider, p.Reason
	if q := p.Quorum; q != nil {
		one.Approvals, one.Quorum, one.Missing, one.Expires = q.Approvals, q.Of, q.String(), p.Expires
	}
	return one
}

// Proposals lists proposals, the newest first. Approved ones are left out unless they are asked
// for, because they are rules.
func (s *Source) Proposals(ctx context.Context, q RuleQuery) (l List[Rule], err error) {
	if err := q.Validate(); err != nil {
		return l, err
	}
	found, _, err := s.Feedback.Rules().Proposals(ctx, feedback.ProposalQuery{
		Agent: q.Agent, Status: q.state(),
	}, 0)
	if q.Status == "" {
		found = slices.DeleteFunc(found, func(p feedback.Proposal) bool {
			return p.Status == feedback.StateApproved
		})
	}
	return listed(q.Page, found, err, proposalID, proposalTexts, each(proposalRow))
}

// Pending lists the proposals that wait for people, with their whole content: those first that are
// for the reader, and of these the newest first.
func (s *Source) Pending(
	ctx context.Context, p Page, mine func(*feedback.Proposal) bool,
) (l List[feedback.Proposal], err error) {
	found, _, err := s.Feedback.Rules().Proposals(ctx,
		feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	first := func(p feedback.Proposal) bool { return mine(&p) }
	found = slices.Concat(slices.DeleteFunc(slices.Clone(found), func(p feedback.Proposal) bool {
		return !first(p)
	}), slices.DeleteFunc(found, first))
	return listed(p, found, err, proposalID, proposalTexts,
		each(func(p *feedback.Proposal) feedback.Proposal { return *p }))
}

// Yours returns why a person's approval of a proposal does not count, or "" if it would.
func Yours(p *feedback.Proposal, person string) string {
	me, err := text.CanonicalName(person)
	switch q := p.Quorum; {
	case err != nil:
		return "Your name can't be used for approvals."
	case q == nil:
	case slices.Contains(q.Approved, me):
		return "You have approved this."
	case slices.Contains(q.Writers, me):
		return "You proposed or edited this, so others approve it."
	case q.Outsiders == q.Missing && slices.Contains(q.Reviewers, me):
		return "You gave evidence for this. Somebody who did not has to approve it."
	}
	return ""
}

// An Inbox is what waits for people.
type Inbox struct {
	Pending   int             // proposals
	Disputed  []Disputed      // corrections that may contradict others, not all
	Unsettled int             // all of them, counted to 1,000
	Unfit     []feedback.Rule // that have no effect, or a bad one
}

// Inbox counts what waits, and reads at most a number of corrections.
func (s *Source) Inbox(ctx context.Context, most int) (in Inbox, _ error) {
	errs, rules := make([]error, 3), s.Feedback.Rules()
	pending := feedback.ProposalQuery{Status: feedback.StatePending}
	_, in.Pending, errs[0] = rules.Proposals(ctx, pending, 1)
	in.Unfit, errs[1] = rules.List(ctx, feedback.RuleQuery{Unfit: true})
	var found []feedback.Feedback
	found, in.Unsettled, errs[2] = s.Feedback.List(ctx,
		feedback.Listing{Class: feedback.Ambiguous, Limit: most})
	for i := range found {
		other, err := s.Rival(ctx, &found[i])
		errs = append(errs, err)
		in.Disputed = append(in.Disputed, Disputed{found[i], other})
	}
	return in, errors.Join(errs...)
}

// A Disputed is a correction that may contradict another one, so that a person decides.
type Disputed struct {
	feedback.Feedback
	Other *feedback.Feedback
}

// Rival returns the correction that another one may contradict, as heed found, or nil.
func (s *Source) Rival(ctx context.Context, c *feedback.Feedback) (*feedback.Feedback, error) {
	if c.Dispute == "" || len(c.Contradicts) == 0 {
		return nil, nil
	}
	other, err := s.Feedback.Feedback(ctx, c.Contradicts[0])
	switch {
	case err == nil:
		return &other, nil
	case errors.Is(err, heed.ErrNotFound):
		return nil, nil
	}
	return nil, err
}

// mostWaiting is how many corrections of each class are read.
const mostWaiting = 1000

// Waiting returns the corrections that are in no proposal, the newest first: too few people have
// given the same correction, they are ambiguous and wait to be resolved, or the evaluator gave no
// answer that can be used. At most 1,000 of each class are read.
func (s *Source) Waiting(ctx context.Context) (all []feedback.Feedback, _ error) {
	proposals, _, err := s.Feedback.Rules().Proposals(ctx, feedback.ProposalQuery{}, 0)
	errs := []error{err}
	proposed := map[string]bool{}
	for i := range proposals {
		proposed[proposals[i].Cluster] = true
	}
	for _, class := range []feedback.Classification{
		feedback.EdgeCase, feedback.GeneralizableLow, feedback.GeneralizableHigh, feedback.Ambiguous,
		"unclassified",
	} {
		found, _, err := s.Feedback.List(ctx, feedback.Listing{Class: class, Limit: mostWaiting})
		errs = append(errs, err)
		for _, c := range found {
			waits := c.Class != "" || c.Unanswered.Times > 0
			if waits && (c.Cluster == "" || !proposed[c.Cluster]) {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b feedback.Feedback) int { return b.At.Compare(a.At) })
	return all, errors.Join(errs...)
}

// Similar is a correction with others that may mean the same, to be read next to each other.
type Similar struct {
	feedback.Feedback
	Others []feedback.Feedback
}

// Similar returns the corrections among these for which another correction may mean the same, at
// most a number of them.
func (s *Source) Similar(
	ctx context.Context, waiting []feedback.Feedback, most int,
) (all []Similar, err error) {
	for i := 0; i < len(waiting) && len(all) < most; i++ {
		b := Similar{Feedback: waiting[i]}
		if b.Others, err = s.Near(ctx, &waiting[i]); err != nil {
			return nil, err
		}
		if len(b.Others) > 0 {
			all = append(all, b)
		}
	}
	return all, nil
}

// Near returns the corrections that one may be joined with: corrections that heed kept apart
// because it cannot decide.
func (s *Source) Near(
	ctx context.Context, c *feedback.Feedback,
) (all []feedback.Feedback, _ error) {
	for _, id := range c.Near {
		other, err := s.Feedback.Feedback(ctx, id)
		if errors.Is(err, heed.ErrNotFound) || errors.Is(err, heed.ErrDamaged) {
			continue // it was erased since, or lists name it
		}
		if err != nil {
			return nil, err
		}
		is := func(o feedback.Feedback) bool { return o.ID == id }
		if joins(c, &other) && !slices.ContainsFunc(all, is) {
			all = append(all, other)
		}
	}
	return all, nil
}

// joins reports whether a person can join a correction with another one.
func joins(c, other *feedback.Feedback) bool {
	return c.ID != other.ID && other.Cluster != "" && other.Cluster != c.Cluster &&
		c.Agent == other.Agent && (joinable(c.Class) || c.Class == feedback.Ambiguous) &&
		joinable(other.Class)
}

func joinable(class feedback.Classification) bool {
	return class == feedback.EdgeCase || class == feedback.GeneralizableLow ||
		class == feedback.GeneralizableHigh
}

// Together returns the other corrections of the cluster of a correction, the newest first.
func (s *Source) Together(
	ctx context.Context, c *feedback.Feedback,
) (all []feedback.Feedback, err error) {
	if c.Cluster == "" || !joinable(c.Class) {
		return nil, nil
	}
	all, _, err = s.Feedback.List(ctx, feedback.Listing{Agent: c.Agent, Cluster: c.Cluster})
	return slices.DeleteFunc(all, func(o feedback.Feedback) bool {
		return o.ID == c.ID || !joinable(o.Class)
	}), err
}
