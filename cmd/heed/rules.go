package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
)

// rulesCommands carry what was learned from reviewers through its review.
type rulesCommands struct {
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

The gate is that of the application, which leaves its settings in the store: the quorum among them. Who proposed or edited a
rule can't approve it. Who somebody is, the application's Authorizer knows and this command does not: whoever can write to the
store can give any --actor, so give its DSN to those alone who may decide.`
}

// A desk is the rules of an open store.
type desk struct {
	*opened
	*feedback.Service
}

// at does something at the desk of a store.
func (c *rulesCommands) at(s *session, do func(*desk) error) error {
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	d, err := st.desk(s)
	if err != nil {
		return st.explain(err)
	}
	return st.explain(refused(do(d)))
}

var errNoRules = errors.New("no host has opened a service of package feedback")

// desk opens the rules of a store, with the settings of its application.
func (st *opened) desk(s *session) (*desk, error) {
	service, err := feedback.Open(s.ctx, feedback.Config{Store: st.store, Now: s.now})
	if errors.Is(err, heed.ErrNotFound) {
		err = fmt.Errorf("%w in %s: check --db or HEED_DB", errNoRules, st.place)
	}
	return &desk{st, service}, err
}

// refused says of what a gate has refused why, and what to do.
func refused(err error) error {
	why := (*feedback.RefusedError)(nil)
	switch {
	case !errors.As(err, &why):
		return err
	case why.State != "":
		return fmt.Errorf("%s: %s", strings.ToLower(why.Reason), nextOf[strings.ToLower(why.State)])
	case len(why.Conflicts) > 0:
		return fmt.Errorf("%w: retire those, or have it approved with --override", why)
	case why.Err == nil:
		return fmt.Errorf("%w: have somebody else approve it", why)
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
	return pick("proposal", id, all, func(p feedback.Proposal) string { return p.ID })
}

// rule finds a rule likewise.
func (d *desk) rule(s *session, id string) (feedback.Rule, error) {
	all, err := d.Rules().List(s.ctx, feedback.RuleQuery{})
	if err != nil {
		return feedback.Rule{}, err
	}
	return pick("rule", id, all, func(r feedback.Rule) string { return r.ID })
}

// pick returns the one that is meant by an id or by the start of it.
func pick[T any](what, id string, all []T, idOf func(T) string) (meant T, err error) {
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
		return meant, unknown(what, id, ids, "heed rules list names them")
	case slices.ContainsFunc(all[first+1:], begin):
		ids = slices.DeleteFunc(ids, func(one string) bool { return !strings.HasPrefix(one, id) })
		return meant, fmt.Errorf("%d ids begin with %q: give more of it (%s)", len(ids), id, few(ids))
	}
	return all[first], nil
}
