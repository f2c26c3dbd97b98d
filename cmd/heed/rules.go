package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/sqlstore"
)

// rulesCommands carry what was learned from reviewers through its review.
type rulesCommands struct {
	Quorum    int `default:"2" env:"HEED_QUORUM" placeholder:"N" help:"How many people must approve, as the host has it."`
	Outsiders int `default:"1" env:"HEED_OUTSIDERS" placeholder:"N" help:"How many of them must not be reviewers of the evidence, as the host has it."`

	List    rulesList    `cmd:"" help:"List proposals that wait, and rules."`
	Show    rulesShow    `cmd:"" help:"Show a proposal or a rule, with what speaks for it."`
	Approve rulesApprove `cmd:"" help:"Approve a proposal."`
	Reject  rulesReject  `cmd:"" help:"Reject a proposal: one person is enough."`
	Retire  rulesRetire  `cmd:"" help:"Take an active rule out of use."`
	Audit   rulesAudit   `cmd:"" help:"List who decided what about rules, refusals among it."`
}

func (rulesCommands) Help() string {
	return `Examples:

    heed --db agent.db rules list
    heed --db agent.db rules approve 7d0c2b1a --actor maria --reason "seen it three times"

The gate holds here as it does in the host, with two approvals unless --quorum says otherwise: who proposed or edited a rule
can't approve it. Who somebody is, the host's Authorizer knows and this command does not: whoever can write to the store can
give any --actor, so give its DSN to those alone who may decide.`
}

// A desk is the rules of an open store.
type desk struct {
	*store
	*feedback.Service
}

func (c *rulesCommands) open(s *session) (*desk, error) {
	st, err := s.open()
	if err != nil {
		return nil, err
	}
	service, err := feedback.New(feedback.Config{
		Store: sqlstore.NewFeedback(st.db), Gate: feedback.Gate{Quorum: c.Quorum, Outsiders: c.Outsiders}, Now: s.now,
	})
	if err != nil {
		st.close()
		return nil, err
	}
	return &desk{st, service}, nil
}

// proposal finds a proposal by its id, or by the start of it if no other begins so.
func (d *desk) proposal(s *session, id string) (feedback.Proposal, error) {
	all, _, err := d.Rules().Proposals(s.ctx, feedback.ProposalQuery{}, 0)
	if err != nil {
		return feedback.Proposal{}, d.explain(err)
	}
	var ids []string
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	i, err := pick("proposal", id, ids)
	if err != nil {
		return feedback.Proposal{}, err
	}
	return all[i], nil
}

// rule finds a rule likewise.
func (d *desk) rule(s *session, id string) (feedback.Rule, error) {
	all, err := d.Rules().List(s.ctx, feedback.RuleQuery{})
	if err != nil {
		return feedback.Rule{}, d.explain(err)
	}
	var ids []string
	for _, r := range all {
		ids = append(ids, r.ID)
	}
	i, err := pick("rule", id, ids)
	if err != nil {
		return feedback.Rule{}, err
	}
	return all[i], nil
}

// pick returns the place of the id that is meant.
func pick(what, id string, ids []string) (int, error) {
	if i := slices.Index(ids, id); i >= 0 {
		return i, nil
	}
	var found []int
	for i := range ids {
		if id != "" && strings.HasPrefix(ids[i], id) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return 0, unknown(what, id, ids, "heed rules list names them")
	case 1:
		return found[0], nil
	}
	return 0, fmt.Errorf("%d ids begin with %q: give more of it", len(found), id)
}

type rulesList struct {
	Status string `placeholder:"STATUS" help:"Those alone of this status: pending, active, retired, revoked, superseded, rejected, expired. Without it: pending and active."`
	Agent  string `placeholder:"NAME" help:"Those alone that affect this agent."`
}

func (rulesList) Help() string {
	return `Examples:

    heed --db agent.db rules list
    heed --db agent.db rules list --agent coder --status retired`
}

// A ruleLine is a proposal or a rule.
type ruleLine struct {
	ID        string           `json:"id"`
	Status    string           `json:"status"` // of the proposal, or of the rule that it became
	Since     time.Time        `json:"since"`
	Agents    []string         `json:"agents"` // empty: all
	Approvals int              `json:"approvals"`
	Effect    *feedback.Effect `json:"effect,omitempty"` // of a rule that was measured
	Text      string           `json:"text"`
}

// Run lists proposals and rules.
func (cmd *rulesList) Run(s *session, c *rulesCommands) error {
	d, err := c.open(s)
	if err != nil {
		return err
	}
	defer d.close()
	proposals, _, err := d.Rules().Proposals(s.ctx, feedback.ProposalQuery{Agent: cmd.Agent}, 0)
	if err != nil {
		return d.explain(err)
	}
	rules, err := d.Rules().List(s.ctx, feedback.RuleQuery{Agent: cmd.Agent})
	if err != nil {
		return d.explain(err)
	}
	wanted := func(status string, usual bool) bool {
		return cmd.Status == "" && usual || strings.EqualFold(cmd.Status, status)
	}
	var all []ruleLine
	statuses := []string{"pending", "active", "retired", "revoked", "superseded", "rejected", "expired", "documented"}
	if cmd.Status != "" && !slices.Contains(statuses, strings.ToLower(cmd.Status)) {
		return &usageError{fmt.Sprintf("there is no status %q: it is one of %s", cmd.Status, strings.Join(statuses, ", "))}
	}
	for _, p := range proposals {
		if p.Status != feedback.StatusApproved && wanted(string(p.Status), p.Status == feedback.StatusPending) {
			all = append(all, ruleLine{p.ID, string(p.Status), p.Created, listed(p.Agents), len(p.Approvals), nil, p.Text})
		}
	}
	for _, r := range rules {
		if wanted(string(r.Status), r.Status == feedback.RuleActive) {
			line := ruleLine{r.ID, string(r.Status), r.Since, listed(r.Agents), len(r.Approvals), nil, r.Text}
			if r.Effect.Status != "" {
				line.Effect = &r.Effect
			}
			all = append(all, line)
		}
	}
	return s.answer(listed(all), func(p *printer) { printRules(p, all) })
}

func printRules(p *printer, all []ruleLine) {
	if len(all) == 0 {
		p.line("There are no rules or proposals of that kind here.")
		return
	}
	t := listing{columns: []column{
		{title: "id", soft: true}, {title: "status"}, {title: "for", right: true}, {title: "effect", right: true, extra: true},
		{title: "since", extra: true}, {title: "agents", soft: true}, {title: "rule", soft: true},
	}}
	for _, r := range all {
		effect := "-"
		if r.Effect != nil {
			effect = fmt.Sprintf("%+.0f %%", 100*r.Effect.Improvement)
		}
		t.add(show(r.ID), strings.ToLower(r.Status), count(r.Approvals), effect, moment(r.Since), agents(r.Agents), show(r.Text))
	}
	t.print(p)
}

func agents(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return show(strings.Join(names, ", "))
}

type rulesShow struct {
	ID string `arg:"" help:"The proposal or rule, or the start of its id."`
}

func (rulesShow) Help() string {
	return `Examples:

    heed --db agent.db rules show 7d0c2b1a
    heed --db agent.db --json rules show 7d0c2b1a | jq -r .hash

The hash names the words: an approval is of these words alone.`
}

// A ruleReport is a proposal with the rule that it became.
type ruleReport struct {
	Proposal *feedback.Proposal  `json:"proposal,omitempty"`
	Rule     *feedback.Rule      `json:"rule,omitempty"`
	Hash     string              `json:"hash"`
	Now      []feedback.Conflict `json:"conflicts_now"` // what stands against it now
}

// Run shows a proposal or a rule.
func (cmd *rulesShow) Run(s *session, c *rulesCommands) error {
	d, err := c.open(s)
	if err != nil {
		return err
	}
	defer d.close()
	var r ruleReport
	p, err := d.proposal(s, cmd.ID)
	switch {
	case err == nil:
		r.Proposal, r.Hash = &p, p.Draft.Hash()
		if r.Now, err = d.Rules().Conflicts(s.ctx, p.Draft); err != nil {
			return d.explain(err)
		}
		r.Now = slices.DeleteFunc(listed(r.Now), func(c feedback.Conflict) bool { return c.ID == p.ID })
		if rule, err := d.Rules().Rule(s.ctx, p.ID); err == nil {
			r.Rule = &rule
		} else if !errors.Is(err, heed.ErrNotFound) {
			return d.explain(err)
		}
	default:
		rule, ruleErr := d.rule(s, cmd.ID) // one that was imported has no proposal
		if ruleErr != nil {
			return err
		}
		r.Rule, r.Hash, r.Now = &rule, rule.Draft.Hash(), []feedback.Conflict{}
	}
	return s.answer(r, r.print)
}

func (r *ruleReport) print(p *printer) {
	if r.Proposal != nil {
		printProposal(p, r.Proposal, r.Now)
	}
	if r.Rule == nil {
		p.line("hash: %s", r.Hash)
		return
	}
	if r.Proposal == nil {
		p.heading("%s", show(r.Rule.Text))
	}
	p.line("rule: %s since %s", strings.ToLower(string(r.Rule.Status)), moment(r.Rule.Since))
	if e := r.Rule.Effect; e.Status != "" {
		p.line("effect: %s, %+.0f %% by %s, certain to %s", e.Status, 100*e.Improvement, e.Basis, percent(certainty(e)))
	}
}

func certainty(e feedback.Effect) float64 {
	if e.Basis == "corrections" {
		return e.Corrections.Certainty
	}
	return e.Recurrence.Certainty
}

func printProposal(p *printer, of *feedback.Proposal, conflicts []feedback.Conflict) {
	p.heading("%s", show(of.Text))
	p.line("proposal: %s, %s, for %s", show(of.ID), strings.ToLower(string(of.Status)), agents(of.Agents))
	p.line("evidence: %s by %s, confidence %s: %s", plural(of.Occurrences, "occurrence", "occurrences"),
		plural(of.Reviewers, "reviewer", "reviewers"), share(of.Confidence), show(of.Summary))
	p.line("proposed by: %s; evidence by: %s", people(of.Writers), people(of.Authors))
	p.line("created %s, expires %s", moment(of.Created), moment(of.Expires))
	for _, a := range of.Approvals {
		p.line("approved by %s on %s: %s", show(a.Actor), moment(a.At), show(a.Reason))
	}
	if of.Decider != "" {
		p.line("closed by %s on %s: %s", show(of.Decider), moment(of.Decided), show(of.Reason))
	}
	for _, w := range of.Warnings {
		p.line("warning: %s", show(w))
	}
	for _, conflict := range conflicts {
		p.line("%s with %s: %s", conflict.Kind, show(conflict.ID), show(conflict.Explanation))
	}
}

func people(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return show(strings.Join(names, ", "))
}

type rulesApprove struct {
	ID       string   `arg:"" help:"The proposal, or the start of its id."`
	Hash     string   `placeholder:"HASH" help:"The hash of the words that are approved, or the start of it. Needed where there is no terminal to show them on."`
	Override []string `placeholder:"ID" help:"An active rule that it may contradict. Can be given more than once."`
	change
}

func (rulesApprove) Help() string {
	return `Examples:

    heed --db agent.db rules approve 7d0c2b1a
    heed --db agent.db rules approve 7d0c2b1a --hash 5b1f0c22 --yes --reason "seen it three times"`
}

// Run approves a proposal.
func (cmd *rulesApprove) Run(s *session, c *rulesCommands) error {
	d, err := c.open(s)
	if err != nil {
		return err
	}
	defer d.close()
	p, err := d.proposal(s, cmd.ID)
	if err != nil {
		return err
	}
	hash := p.Draft.Hash()
	switch {
	case cmd.Hash != "" && (len(cmd.Hash) < 8 || !strings.HasPrefix(hash, cmd.Hash)):
		return fmt.Errorf("the words are not those of hash %s: see heed rules show %s", cmd.Hash, p.ID)
	case cmd.Hash == "" && cmd.Yes:
		return &usageError{"nobody has been shown the words: give their --hash, which heed rules show prints"}
	}
	return cmd.decide(s, d, p, feedback.Review{Verdict: feedback.Approve, Hash: hash, Override: cmd.Override})
}

type rulesReject struct {
	ID string `arg:"" help:"The proposal, or the start of its id."`
	change
}

func (rulesReject) Help() string {
	return `Examples:

    heed --db agent.db rules reject 7d0c2b1a --reason "the style guide says otherwise"`
}

// Run rejects a proposal.
func (cmd *rulesReject) Run(s *session, c *rulesCommands) error {
	d, err := c.open(s)
	if err != nil {
		return err
	}
	defer d.close()
	p, err := d.proposal(s, cmd.ID)
	if err != nil {
		return err
	}
	return cmd.decide(s, d, p, feedback.Review{Verdict: feedback.Reject})
}

// decide makes a review, if that is confirmed.
func (c *change) decide(s *session, d *desk, p feedback.Proposal, review feedback.Review) error {
	verb := map[feedback.Ruling]string{feedback.Approve: "approves", feedback.Reject: "rejects"}[review.Verdict]
	if err := c.confirm(s, fmt.Sprintf("This %s %q for %s", verb, show(p.Text), agents(p.Agents))); err != nil {
		return err
	}
	review.Proposal, review.Actor, review.Reason = p.ID, c.Actor, c.Reason
	after, err := d.Rules().Review(s.ctx, review)
	if err != nil {
		return d.explain(err)
	}
	return s.answer(after, func(out *printer) {
		switch after.Status {
		case feedback.StatusApproved:
			out.line("Approved. It is rule %s now, and in the next prompts of %s.", show(after.ID), agents(after.Agents))
		case feedback.StatusRejected:
			out.line("Rejected.")
		default:
			still := "It takes somebody who is no reviewer of the evidence"
			if missing := d.Config().Gate.Quorum - len(after.Approvals); missing > 0 {
				still = plural(missing, "more approval is", "more approvals are") + " needed"
			}
			out.line("Approved by %s. %s.", people(approvers(after)), still)
		}
	})
}

func approvers(p feedback.Proposal) (names []string) {
	for _, a := range p.Approvals {
		names = append(names, a.Actor)
	}
	return names
}

type rulesRetire struct {
	ID string `arg:"" help:"The rule, or the start of its id."`
	change
}

func (rulesRetire) Help() string {
	return `Examples:

    heed --db agent.db rules retire 7d0c2b1a --reason "nobody makes that mistake any more"

A retired rule can be restored by the host.`
}

// Run retires a rule.
func (cmd *rulesRetire) Run(s *session, c *rulesCommands) error {
	d, err := c.open(s)
	if err != nil {
		return err
	}
	defer d.close()
	rule, err := d.rule(s, cmd.ID)
	if err != nil {
		return err
	}
	if err := cmd.confirm(s, fmt.Sprintf("This retires %q for %s", show(rule.Text), agents(rule.Agents))); err != nil {
		return err
	}
	after, err := d.Rules().Retire(s.ctx, feedback.Order{Rule: rule.ID, Actor: cmd.Actor, Reason: cmd.Reason})
	if err != nil {
		return d.explain(err)
	}
	return s.answer(after, func(p *printer) { p.line("Retired. It is in no prompt that is built from now on.") })
}

type rulesAudit struct {
	Limit int `default:"20" help:"How many to show, those recorded last."`
}

func (rulesAudit) Help() string {
	return `Examples:

    heed --db agent.db rules audit
    heed --db agent.db --json rules audit --limit 1000`
}

// Run lists the audit of rules.
func (cmd *rulesAudit) Run(s *session, c *rulesCommands) error {
	if cmd.Limit < 1 {
		return &usageError{"--limit must be 1 or more"}
	}
	d, err := c.open(s)
	if err != nil {
		return err
	}
	defer d.close()
	var entries []evidence.AuditEntry
	if entries, err = d.Service.Audit(s.ctx, cmd.Limit); err != nil {
		return d.explain(err)
	}
	return s.answer(listed(entries), func(p *printer) { printAudit(p, entries) })
}
