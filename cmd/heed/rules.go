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
	List    rulesList    `cmd:"" default:"withargs" help:"List pending proposals and rules. heed rules does the same."`
	Show    rulesShow    `cmd:"" help:"Show a proposal or a rule, with its evidence."`
	Approve rulesApprove `cmd:"" help:"Approve a proposal."`
	Reject  rulesReject  `cmd:"" help:"Reject a proposal. One person is enough."`
	Retire  ruleOrder    `cmd:"" help:"Take an active rule out of use, until it is restored. One person is enough."`
	Revoke  ruleOrder    `cmd:"" help:"Withdraw a rule for good. One person is enough."`
	TakeOut rulesTakeOut `cmd:"" help:"Take a feedback out of a proposal, as it says something else."`
	Resolve rulesResolve `cmd:"" help:"Decide about a correction that contradicts others."`
	Restore ruleChange   `cmd:"" help:"Propose to bring a retired rule back."`
	Pin     ruleChange   `cmd:"" help:"Propose to put an active rule before all that are not pinned."`
	Unpin   ruleChange   `cmd:"" help:"Propose to put a pinned rule back in its place."`
}

// withRules calls a function with the rules of the store, and says what to do about a refusal.
func withRules(s *session, do func(*feedback.Service) error) error {
	return services.with(s, "", func(_ *opened, f *feedback.Service) error { return refused(do(f)) })
}

// refused says why a gate has refused something, and what to do.
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

// nextOf says what to do with a proposal or rule in the wrong state.
var nextOf = map[string]string{
	"edge_case":          "it is not ambiguous, and counts by who agrees with it",
	"generalizable_low":  "it is not ambiguous, and counts by who agrees with it",
	"generalizable_high": "it is not ambiguous, and counts by who agrees with it",
	"archived":           "it is kept out of learning",
	"positive":           "it is an approval",
	"unclassified":       "the next sweep evaluates it",
	"pending":            "close it with heed rules approve or reject",
	"active":             "it is in prompts, and heed rules retire takes it out",
	"retired":            "heed rules restore proposes to bring it back",
	"revoked":            "that is for good, and it has to be proposed anew",
	"superseded":         "another rule has taken its place, which heed rules lists",
	"documented":         "it is written down elsewhere, and in no prompt any more",
	"approved":           "it is a rule now, and heed rules show shows it",
	"rejected":           "that is for good, and it has to be proposed anew",
	"expired":            "nobody has decided in time, and it has to be proposed anew",
}

// stands says why something can't be decided about in its state, before anybody is asked.
func stands(what string, now feedback.State, needed ...feedback.State) error {
	if slices.Contains(needed, now) {
		return nil
	}
	state := strings.ToLower(string(now))
	return fmt.Errorf("the %s is %s: %s", what, state, nextOf[state])
}

// proposal finds a proposal by its id, or by the start of the id if no other begins so.
func proposal(s *session, f *feedback.Service, id string) (feedback.Proposal, error) {
	if err := given("proposal or rule", id); err != nil {
		return feedback.Proposal{}, err
	}
	one, err := f.Rules().Proposal(s.ctx, id)
	if !errors.Is(err, heed.ErrNotFound) {
		return one, damaged("proposal", id, err)
	}
	all, _, err := f.Rules().Proposals(s.ctx, feedback.ProposalQuery{}, 0)
	if err != nil {
		return one, err
	}
	return pick("proposal", id, all, idOfProposal, seeRules)
}

// rule finds a rule likewise.
func rule(s *session, f *feedback.Service, id string) (feedback.Rule, error) {
	if err := given("rule", id); err != nil {
		return feedback.Rule{}, err
	}
	one, err := f.Rules().Rule(s.ctx, id)
	if !errors.Is(err, heed.ErrNotFound) {
		return one, damaged("rule", id, err)
	}
	all, err := f.Rules().List(s.ctx, feedback.RuleQuery{})
	if err != nil {
		return one, err
	}
	found, err := pick("rule", id, all, idOfRule, seeRules)
	if err == nil {
		return found, nil
	}
	pending, _, failure := f.Rules().Proposals(s.ctx, feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	if p, none := pick("proposal", id, pending, idOfProposal, seeRules); failure == nil && none == nil {
		return one, fmt.Errorf("%s is a proposal and no rule yet: decide about it with heed rules approve or heed rules reject", show(p.ID))
	}
	return one, err
}

func idOfProposal(p feedback.Proposal) string { return p.ID }

func idOfRule(r feedback.Rule) string { return r.ID }

const seeRules = "heed rules list names them"

// pick returns the one whose id begins with a text.
func pick[T any](what, id string, all []T, idOf func(T) string, see string) (meant T, err error) {
	begun := slices.DeleteFunc(slices.Clone(all), func(one T) bool { return id == "" || !strings.HasPrefix(idOf(one), id) })
	switch len(begun) {
	case 0:
		return meant, unknown(what, id, texts(all, idOf), see)
	case 1:
		return begun[0], nil
	}
	return meant, fmt.Errorf("%d ids begin with %q: give more of it (%s)", len(begun), id, few(texts(begun, idOf)))
}
