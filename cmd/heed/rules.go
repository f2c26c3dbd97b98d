package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/sqlstore"
)

// rulesCommands carry what was learned from reviewers through its review.
type rulesCommands struct {
	Config    string `type:"path" placeholder:"FILE" help:"The TOML file that has the host's gate: its section [feedback]."`
	Quorum    *int   `env:"HEED_QUORUM" placeholder:"N" help:"How many people must approve, as the host has it: 2 unless --config says otherwise."`
	Outsiders *int   `env:"HEED_OUTSIDERS" placeholder:"N" help:"How many of them must not be reviewers of the evidence, as the host has it: 1 unless --config says otherwise."`

	List    rulesList    `cmd:"" default:"withargs" help:"List proposals that wait, and rules. It is what heed rules does by itself."`
	Show    rulesShow    `cmd:"" help:"Show a proposal or a rule, with what speaks for it."`
	Approve rulesApprove `cmd:"" help:"Approve a proposal."`
	Reject  rulesReject  `cmd:"" help:"Reject a proposal: one person is enough."`
	Pin     rulesPin     `cmd:"" help:"Put an active rule before all that are not pinned."`
	Unpin   rulesUnpin   `cmd:"" help:"Let a pinned rule take its turn again."`
	Retire  rulesRetire  `cmd:"" help:"Take an active rule out of use, until it is restored."`
	Restore rulesRestore `cmd:"" help:"Bring a retired rule back."`
	Revoke  rulesRevoke  `cmd:"" help:"Withdraw a rule for good."`
	Audit   rulesAudit   `cmd:"" help:"List who decided what about rules, refusals among it."`
}

func (rulesCommands) Help() string {
	return `Examples:

    heed --db agent.db rules
    heed --db agent.db rules approve 7d0c2b1a --actor maria --reason "seen it three times"
    heed --db agent.db rules retire 7d0c2b1a --reason "nobody makes that mistake any more"

The gate holds here as it does in the host, with two approvals unless --quorum or --config says otherwise: who proposed or edited
a rule can't approve it. Who somebody is, the host's Authorizer knows and this command does not: whoever can write to the store
can give any --actor, so give its DSN to those alone who may decide. Of --config it reads, with any of these, which are the defaults:

    [feedback.gate]
    quorum = 2
    outsiders = 1`
}

// feedbackSection is what a TOML file has of a [feedback.Config], under its names.
type feedbackSection struct {
	Gate struct {
		Quorum    whole `toml:"quorum"`
		Outsiders whole `toml:"outsiders"`
	} `toml:"gate"`
}

// Validate implements kong's interface.
func (c *rulesCommands) Validate() error {
	switch {
	case c.Quorum != nil && (*c.Quorum < 1 || *c.Quorum > 10):
		return errors.New("--quorum must be from 1 to 10")
	case c.Outsiders != nil && *c.Outsiders < 1:
		return errors.New("--outsiders must be 1 or more")
	}
	return nil
}

// gate returns what it takes to become a rule: what a flag says goes before what the file says.
func (c *rulesCommands) gate(s *session) (feedback.Gate, error) {
	var section feedbackSection
	if _, err := readSection(s, c.Config, "feedback", &section); err != nil {
		return feedback.Gate{}, err
	}
	gate := feedback.Gate{Quorum: int(section.Gate.Quorum), Outsiders: int(section.Gate.Outsiders)}
	if c.Quorum != nil {
		gate.Quorum = *c.Quorum
	}
	if c.Outsiders != nil {
		gate.Outsiders = *c.Outsiders
	}
	return gate, nil
}

// A desk is the rules of an open store.
type desk struct {
	*opened
	*feedback.Service
}

// at does something at the desk of a store.
func (c *rulesCommands) at(s *session, do func(*desk) error) error {
	gate, err := c.gate(s)
	if err != nil {
		return err
	}
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	service, err := feedback.New(feedback.Config{Store: sqlstore.NewFeedback(st.db), Gate: gate, Now: s.now})
	if err != nil {
		return keyFaults(c.Config, "feedback", feedbackSection{}, err)
	}
	return st.explain(refused(do(&desk{st, service})))
}

// refused says of what a gate has refused why, and what to do.
func refused(err error) error {
	var state *feedback.StateError
	var conflict *feedback.ConflictError
	var ineligible *feedback.IneligibleError
	switch {
	case errors.As(err, &state):
		status := strings.ToLower(state.State)
		return fmt.Errorf("the %s is %s: %s", state.What, status, nextOf[status])
	case errors.As(err, &conflict):
		return fmt.Errorf("%w: retire those, or have it approved with --override", conflict)
	case errors.As(err, &ineligible):
		return fmt.Errorf("%w: have somebody else approve it", ineligible)
	}
	return err
}

// nextOf has what can be done with a proposal or a rule of a status that is not the one it takes.
var nextOf = map[string]string{
	"pending":    "heed rules approve or reject closes it",
	"active":     "it is in prompts as it is, and heed rules retire takes it out",
	"retired":    "heed rules restore brings it back",
	"revoked":    "that is for good, and it has to be proposed anew",
	"superseded": "another rule has taken its place, which heed rules lists",
	"documented": "it is written down elsewhere, and in no prompt any more",
	"approved":   "it is a rule now, which heed rules show shows",
	"rejected":   "that is for good, and it has to be proposed anew",
	"expired":    "nobody has decided in time, and it has to be proposed anew",
}

// proposal finds a proposal by its id, or by the start of it if no other begins so.
func (d *desk) proposal(s *session, id string) (feedback.Proposal, error) {
	all, _, err := d.Rules().Proposals(s.ctx, feedback.ProposalQuery{}, 0)
	if err != nil {
		return feedback.Proposal{}, err
	}
	return pick(s, d.opened, "proposal", id, all, func(p feedback.Proposal) string { return p.ID })
}

// rule finds a rule likewise.
func (d *desk) rule(s *session, id string) (feedback.Rule, error) {
	all, err := d.Rules().List(s.ctx, feedback.RuleQuery{})
	if err != nil {
		return feedback.Rule{}, err
	}
	return pick(s, d.opened, "rule", id, all, func(r feedback.Rule) string { return r.ID })
}

// pick returns the one that is meant by an id or by the start of it.
func pick[T any](s *session, st *opened, what, id string, all []T, idOf func(T) string) (meant T, err error) {
	var ids []string
	for _, one := range all {
		if idOf(one) == id {
			return one, nil
		}
		ids = append(ids, idOf(one))
	}
	begin := func(one T) bool { return id != "" && strings.HasPrefix(idOf(one), id) }
	first := slices.IndexFunc(all, begin)
	switch {
	case first < 0:
		return meant, st.missing(s, what, id, ids, "heed rules list names them")
	case slices.ContainsFunc(all[first+1:], begin):
		ids = slices.DeleteFunc(ids, func(one string) bool { return !strings.HasPrefix(one, id) })
		return meant, fmt.Errorf("%d ids begin with %q: give more of it (%s)", len(ids), id, few(ids))
	}
	return all[first], nil
}
