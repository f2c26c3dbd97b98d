package feedback

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// Gate sets what a proposal needs to become a rule.
type Gate struct {
	// Quorum is how many distinct people must approve, from 1 to 10. People who proposed or edited it
	// can't approve. 0 means 2. Raise it if a bad rule is expensive. With 1, a single person can
	// change prompts.
	Quorum int
	// Outsiders is how many of them must not be reviewers of the evidence; from 1 to Quorum. 0 means
	// 1. If it is Quorum, reviewers of the evidence may not approve at all. Raise it if reviewers of
	// one team should not decide among themselves.
	Outsiders int
	// Pending limits how many proposals wait at the same time. One person's are at most a twentieth
	// of them (the evaluator counts as a person), and one agent's a tenth. One more is refused, or is
	// proposed by a later [Service.Flush], so that one person cannot fill the approvers' inbox. 0
	// means 200. Raise it if more proposals than that are reviewed at a time.
	Pending int
}

// pendingFor is how long a proposal waits to be decided.
const pendingFor = 7 * 24 * time.Hour

// A Review is what one person decides about a proposal. A proposal keeps the reviews that are for
// it, and so does the rule that is made of it.
type Review struct {
	// Proposal is the id, and Actor the person who decides, whom the host has signed in. What is kept
	// has the actor in canonical form, and neither Proposal nor Decision.
	Proposal string   `json:"-"`
	Decision Decision `json:"-"` // Approved or Rejected
	Actor    string   `json:"actor"`
	Reason   string   `json:"reason"` // never empty
	// Hash is Draft.Hash of what the person saw, for an approval. A draft that was edited since is
	// not approved, nor is one whose evidence was taken out or erased in part.
	Hash string `json:"approved_hash"`
	// Override are the ids of active rules that the draft may contradict. An approval counts only if
	// it overrides all rules that the draft contradicts when the rule is made.
	Override []string `json:"override,omitempty"`
	// Withhold are the ids of heuristics that an approver found to break the rule: see [Rules.Reach].
	// While the rule is active, they do not answer by themselves. One approver is enough.
	Withhold []string `json:"withhold,omitempty"`
	// At is when it was decided. [Rules.Review] ignores it and sets it.
	At time.Time `json:"at"`
}

// Review records what a person decides, and returns the changed proposal. If it is still pending,
// its Quorum names who must approve it. One rejection closes it. The approval that completes the
// quorum ([Gate]) makes the rule, or changes one, in the same step: heed checks the
// conflicts with active rules again and supersedes the rules that the draft names. Either all of it
// is stored or no part of it. A repeated approval has no effect.
//
// A refusal is a [*RefusedError] and changes only the audit log. These are refused:
//
//   - a review of a proposal that is not pending, and an approval of another draft; both are a
//     [heed.ErrConflict];
//   - an approval by a proposer or an editor, also of a rule that the draft changes or supersedes;
//   - if the gate demands it, an approval by a reviewer of the evidence;
//   - an approval that does not override a rule that the draft contradicts;
//   - whatever Config.Authorize refuses.
//
// Input that is not valid is a [*heed.InputError], and is not in the audit log.
func (r *Rules) Review(ctx context.Context, review Review) (Proposal, error) {
	kind, err := review.validate()
	if err != nil {
		return Proposal{}, wrap("review", err)
	}
	s := r.s
	seen, err := proposalKind.in(s.reading(ctx), review.Proposal)
	if err != nil {
		return Proposal{}, wrap("review", err)
	}
	a := Act{ID: review.Proposal, Actor: review.Actor, Reason: review.Reason, Kind: kind,
		Draft: &seen.Draft}
	return act(ctx, s, a, func(c *change) (p Proposal, err error) {
		c.Want(seen.wants())
		p, err = proposalKind.in(c.Tx, review.Proposal)
		if err != nil {
			return p, err
		}
		if p.decided(review, c.who, c.people()) {
			return p, nil
		}
		if err := p.decidable(c.now); err != nil {
			return p, err
		}
		if review.Decision == Rejected {
			p.closeAs(c, StateRejected, review.Reason)
			return p, nil
		}
		err = s.approve(c, &p, review)
		return p, err
	})
}

// wants names what the gate reads about a draft: the marks, the rules that it is about, and the
// active rules that its agents see.
func (d *Draft) wants() (w store.Wants) {
	w.Refs = append(ruleKind.refs(d.Supersedes), rulesRef())
	if !d.makes() {
		w.Refs = append(w.Refs, ruleKind.Ref(d.Of))
	}
	if d.speaks() {
		w.Queries = ruleKind.queries(d.activeKeys())
	}
	return w
}

// decided reports whether this very review closed the proposal before. Somebody may repeat a review
// whose answer got lost.
func (p *Proposal) decided(review Review, who string, key text.PseudonymKey) bool {
	switch p.Status {
	case StateRejected:
		return review.Decision == Rejected && key.Same(p.Decider, who)
	case StateApproved:
		return review.Decision == Approved && slices.ContainsFunc(p.Approvals,
			func(a Review) bool { return key.Same(a.Actor, who) && a.Hash == review.Hash })
	default:
		return false
	}
}

// validate returns the kind of the act. The zero Review is refused, because it must not approve.
func (v *Review) validate() (kind string, err error) {
	switch kind = "approve"; {
	case v.Decision == Rejected:
		kind = "reject"
	case v.Decision != Approved:
		return "", valid.Input("Decision", "must be APPROVED or REJECTED")
	case v.Hash == "":
		return "", valid.Input("Hash", "must be the hash of the draft that was reviewed")
	}
	return kind, cmp.Or(checkList("Override", v.Override), checkList("Withhold", v.Withhold),
		valid.Names(evidence.MaxText, "Proposal", v.Proposal))
}

// pending returns a proposal that can be decided.
func pending(c *change, id string) (Proposal, error) {
	p, err := proposalKind.in(c.Tx, id)
	return p, cmp.Or(err, p.decidable(c.now))
}

// decidable reports a proposal that can't be decided.
func (p *Proposal) decidable(now time.Time) error {
	switch {
	case p.Status != StatePending:
		return notNow("proposal", p.Status)
	case !now.Before(p.Expires): // which a sweep will store
		return notNow("proposal", stateExpired)
	}
	return nil
}

// expired closes a proposal whose time is over. heed is the decider, so no person is named.
func (p *Proposal) expired(c *change) {
	p.closeAs(c, stateExpired, tooLate)
	c.logAudit("expire", p.ID, p.Reason, nil)
}

// tooLate is why a proposal expired.
const tooLate = "no decision in time"

// closeAs gives a proposal its final state. Its approvals stay, because they show who agreed.
func (p *Proposal) closeAs(c *change, status State, reason string) {
	p.Status, p.Decider, p.Reason, p.Decided, p.Quorum = status, c.who, reason, c.now, nil
	c.write(proposalKind.record(*p))
}

// approve adds an approval, and makes the rule where that completes the quorum. An approval
// replaces an earlier one of the same person, or has no effect if both are the same. The
// contradictions are the ones of this moment, so a rule that was made since is seen.
func (s *Service) approve(c *change, p *Proposal, review Review) error {
	hash := p.Hash()
	key := c.people()
	if err := p.addAuthors(c.Tx, key, c.who); err != nil {
		return err
	}
	switch {
	case review.Hash != hash:
		return &RefusedError{Reason: "since it was reviewed, the proposal was edited, or feedback " +
			"was taken out or erased", Err: heed.ErrConflict}
	case among(p.Writers, c.who, key):
		return ineligible("people cannot approve what they proposed or edited")
	case s.cfg.Gate.Outsiders == s.cfg.Gate.Quorum && among(p.Authors, c.who, key):
		return ineligible("people cannot approve what their own feedback led to")
	}
	if len(review.Withhold) > 0 && (p.Draft.Action != createRule || !p.Draft.speaks()) {
		return valid.Input("Withhold", "needs a proposal that puts a rule into prompts")
	}
	c.Want(p.wants())
	against, err := s.against(c.Tx, &p.Draft)
	if err != nil {
		return err
	}
	approval := Review{
		Actor: c.who, Reason: review.Reason, Hash: hash, Override: text.Distinct(review.Override),
		Withhold: text.Distinct(review.Withhold), At: c.now,
	}
	if open := approval.missing(against); len(open) > 0 {
		return contradicted(open)
	}
	mine := slices.IndexFunc(p.Approvals, func(a Review) bool { return key.Same(a.Actor, c.who) })
	switch {
	case mine < 0:
		p.Approvals = append(p.Approvals, approval)
	case slices.Equal(p.Approvals[mine].Override, approval.Override) &&
		slices.Equal(p.Approvals[mine].Withhold, approval.Withhold):
		return s.count(c.Tx, p, against)
	default:
		p.Approvals[mine] = approval
	}
	if err := cmp.Or(p.checkPeople(), s.count(c.Tx, p, against)); err != nil {
		return err
	}
	if p.Quorum.Missing == 0 {
		return activate(c, p, review.Reason)
	}
	c.notice(s.waitsAt(c, p))
	c.write(proposalKind.record(*p))
	return nil
}

// count sets what a pending proposal lacks, as the gate counts it: for an approval, and for what is
// shown.
func (s *Service) count(tx *store.Tx, p *Proposal, against []Conflict) error {
	if p.Status != StatePending {
		return nil
	}
	key, err := stores.PseudonymKeyIn(tx)
	if err == nil {
		err = p.addAuthors(tx, key, actors(p.Approvals)...)
	}
	p.Quorum = s.cfg.Gate.quorum(p, against, key)
	return err
}

// givenBy are the keys of what people gave in the proposal's cluster, for each of them.
func (p *Proposal) givenBy(who ...string) (keys [][]string) {
	for _, name := range who {
		keys = append(keys, []string{store.PersonKey(name), store.Key("cluster", p.Cluster)})
	}
	return keys
}

// addAuthors makes approvers authors if feedback of theirs is in the cluster, but not yet evidence,
// because no flush came since. The [Gate] counts no author as an outsider.
func (p *Proposal) addAuthors(tx *store.Tx, key text.PseudonymKey, approvers ...string) error {
	for _, who := range approvers {
		if p.Cluster == "" || among(p.Authors, who, key) {
			continue
		}
		gave, err := feedbackKind.union(tx, p.givenBy(who), func(f *Feedback) bool {
			return f.Class.generalizable() && among([]string{f.Reviewer, f.Joiner}, who, key)
		})
		if err != nil {
			return err
		}
		if len(gave) > 0 {
			p.Authors = append(p.Authors, who)
		}
	}
	return nil
}

// missing returns the contradictions that an approval does not override.
func (v *Review) missing(against []Conflict) []Conflict {
	return slices.DeleteFunc(slices.Clone(against),
		func(c Conflict) bool { return slices.Contains(v.Override, c.ID) })
}

// A Quorum reports how many approvals of a pending proposal count, and who can't add to them. It is
// immutable.
type Quorum struct {
	Approvals int `json:"approvals"` // that count
	Of        int `json:"of"`        // the gate's quorum
	// Missing is how many more people must approve. Outsiders is how many of them must not be among
	// the Reviewers.
	Missing   int      `json:"missing"`
	Outsiders int      `json:"missing_outsiders"`
	Approved  []string `json:"approved,omitempty"`  // whose approvals count already
	Writers   []string `json:"writers,omitempty"`   // wrote it, or a rule that it changes
	Reviewers []string `json:"reviewers,omitempty"` // gave evidence for it, or joined what they gave
}

// quorum counts the approvals that are of the proposal's draft and override what it contradicts.
// Each person counts once. If an approval does not override what the draft contradicts by now, its
// person may approve again.
func (g *Gate) quorum(p *Proposal, against []Conflict, key text.PseudonymKey) *Quorum {
	hash, outsiders := p.Hash(), 0
	q := &Quorum{Of: g.Quorum, Writers: slices.Clone(p.Writers), Reviewers: slices.Clone(p.Authors)}
	for i := range p.Approvals {
		a := &p.Approvals[i]
		if a.Hash != hash || len(a.missing(against)) > 0 || among(q.Approved, a.Actor, key) {
			continue
		}
		q.Approved = append(q.Approved, a.Actor)
		if !among(p.Authors, a.Actor, key) {
			outsiders++
		}
	}
	q.Approvals, q.Outsiders = len(q.Approved), max(g.Outsiders-outsiders, 0)
	q.Missing = max(g.Quorum-q.Approvals, q.Outsiders)
	return q
}

// String returns how many approvals there are, and who must give the others.
func (q *Quorum) String() string {
	text := fmt.Sprintf("%d of %d", q.Approvals, q.Of)
	if q.Missing > 0 && q.Approvals >= q.Of {
		text = fmt.Sprintf("%d approved", q.Approvals)
	}
	switch q.Missing {
	case 0:
		return text + "; an approval has to override what the proposal contradicts by now"
	case 1:
		text += "; one more person must approve"
	default:
		text += fmt.Sprintf("; %d more people must approve", q.Missing)
	}
	outsider := q.Outsiders == q.Missing && len(q.Reviewers) > 0
	if outsider {
		text += ", who gave no evidence"
	}
	var not, named []string
	but := func(why string, people []string) { // each person once
		people = slices.DeleteFunc(slices.Clone(people),
			func(who string) bool { return slices.Contains(named, who) })
		if named = append(named, people...); len(people) > 0 {
			not = append(not, either(people)+" ("+why+")")
		}
	}
	but("approved it", q.Approved)
	but("wrote it", q.Writers)
	if outsider {
		but("gave evidence", q.Reviewers)
	}
	if len(not) > 0 {
		text += ", other than " + strings.Join(not, ", ")
	}
	if q.Outsiders > 0 && q.Outsiders < q.Missing && len(q.Reviewers) > 0 {
		text += fmt.Sprintf(", and at least %d other than %s (gave evidence)", q.Outsiders,
			either(q.Reviewers))
	}
	return text
}

// either writes names with "or" before the last.
func either(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// activate makes a proposal a rule, or makes the change of a rule. The rules that it supersedes
// leave in the same step, so a prompt never has both.
func activate(c *change, p *Proposal, reason string) error {
	p.closeAs(c, StateApproved, reason)
	if !p.makes() {
		return changeRule(c, p, reason)
	}
	rule := Rule{
		ID: p.ID, Draft: p.Draft, Authors: p.Authors, Writers: p.Writers, Approvals: p.Approvals,
		Status: StateActive, Pinned: p.Change == pin, Activated: c.now, Since: c.now,
	}
	if p.Cluster != "" {
		rule.Clusters = []string{p.Cluster}
	}
	c.logAudit("activate", p.ID, reason, p.passed())
	c.notice(heed.Changed{What: "activated", Component: component, At: c.now, Subject: rule.ID})
	for _, id := range p.Supersedes {
		old, err := ruleKind.in(c.Tx, id)
		if err != nil {
			return err
		}
		if old.Status != StateActive {
			return notNow("rule to supersede", old.Status)
		}
		rule.Clusters = append(rule.Clusters, old.Clusters...)
		old.SupersededBy = rule.ID
		old.leave(c, stateSuperseded, "superseded")
		c.logAudit("supersede", id, "by "+rule.ID, nil)
	}
	rule.Clusters = text.Distinct(rule.Clusters)
	c.write(ruleKind.record(rule))
	return c.raise(rulesMark)
}

// passed describes for the audit log what passed the gate.
func (p *Proposal) passed() map[string]string {
	return map[string]string{"hash": p.Hash(), "approvals": fmt.Sprint(len(p.Approvals))}
}

// leave takes a rule out of use.
func (r *Rule) leave(c *change, to State, reason string) {
	r.Status, r.Left = to, c.now
	c.write(ruleKind.record(*r))
	c.notice(heed.Changed{What: "retired",
		Component: component, At: c.now, Subject: r.ID, Reason: reason})
}

// changeRule makes the change of a rule that a proposal asks for. A restored rule is measured from
// zero, so its checks are restarted.
func changeRule(c *change, p *Proposal, reason string) error {
	rule, err := toChange(c.Tx, &p.Draft)
	if err != nil {
		return err
	}
	details := p.passed()
	details["proposal"] = p.ID
	c.logAudit(strings.ToLower(p.Change), rule.ID, reason, details)
	if p.Change == restore {
		rule.Draft, rule.Approvals = p.Draft, p.Approvals
		rule.Status, rule.Since, rule.Effect = StateActive, c.now, Effect{}
		c.Add(store.Batch{Restart: []store.Restart{{Cell: checks(rule.ID), At: c.now}}})
		c.notice(heed.Changed{What: "activated", Component: component, At: c.now, Subject: rule.ID})
	} else {
		rule.Pinned = p.Change == pin
	}
	c.write(ruleKind.record(rule))
	return c.raise(rulesMark)
}
