package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback/internal/oppose"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
)

// Evaluate classifies a feedback, unless it was classified before, and returns it as it then is.
// The first that holds counts:
//
//  1. A Private feedback is "archived", and an approval "positive".
//  2. A rejection without a text that can be compared is an [EdgeCase], and another correction
//     without one [Ambiguous].
//  3. A correction is [Ambiguous] if its output was approved unchanged at the same gate before. It
//     is also ambiguous if it contradicts an earlier text there, until another reviewer gives the
//     same correction, or until a person resolved one of the same two texts. From then on all
//     corrections with its text count, and [Rules.Conflicts] shows what they contradict. Words seem
//     to contradict each other more often than people do: if there is a Config.Evaluator, it is
//     asked first, and its verdict counts.
//  4. Any other correction joins the most similar cluster without a member that it contradicts, and
//     [Config].Evaluator decides. Earlier members of the cluster are promoted with it.
//
// A [GeneralizableHigh] cluster with a confidence from 0.7 on is then proposed as a
// rule. Corrections that were brought together in other words ([Evaluation].Worded) don't count for
// that: they wait for [Service.Flush]. If that fails, the feedback is classified all the same, and
// [Service.Flush] will propose it. If the evaluation fails, the feedback stays as it was, and
// [Service.Sweep] evaluates it again. If the evaluator gave no answer that can be used, the
// feedback records this: see [Unanswered].
func (s *Service) Evaluate(ctx context.Context, id string) (Feedback, error) {
	var r Feedback
	mine := false // this call classifies it
	revision, err := s.step(ctx, s.evaluating, func(c *change) (err error) {
		c.Want(peopleWants)
		if agent, known := s.agents.Get(id); known {
			c.Want(store.Wants{Refs: []store.Ref{markKind.Ref(agentMark(agent))},
				Queries: []store.Query{s.recentOf(agent)}})
		}
		if r, err = feedbackIn(c.Tx, id); err != nil || r.Class != "" {
			return err
		}
		if err := c.raise(agentMark(r.Agent)); err != nil {
			return err
		}
		if err = s.classify(c, &r); err == nil {
			mine = true
			evaluated(c, r)
		}
		return err
	})
	if err != nil {
		return Feedback{}, wrap("evaluate", errors.Join(err, s.unanswered(ctx, id, err)))
	}
	r.Revision = max(r.Revision, revision)
	if !mine {
		r.Proposal, err = s.proposalFor(ctx, &r)
		return r, wrap("evaluate", err)
	}
	if r.Class == GeneralizableHigh && r.Confidence >= expedite && !r.Worded {
		err = s.propose(ctx, &r, true)
	}
	if err != nil {
		return r, fmt.Errorf("feedback: evaluate: it is classified, but not proposed: %w", err)
	}
	return r, nil
}

// unanswered stores why the evaluator of a feedback gave no answer that can be used, if it did not.
// The pause before the next try doubles up to a day, so a model that is broken is not asked about
// the same feedback every hour.
func (s *Service) unanswered(ctx context.Context, id string, why error) error {
	var unusable *unansweredError
	if !errors.As(why, &unusable) {
		return nil
	}
	_, err := s.step(ctx, s.evaluating, func(c *change) error {
		r, err := feedbackIn(c.Tx, id)
		if err != nil || r.Class != "" {
			return err
		}
		pause := min(longestPause, time.Minute<<min(r.Unanswered.Times, 20))
		r.Unanswered = Unanswered{
			Reason: prompt.Line(unusable.Error(), maxSummary), Times: r.Unanswered.Times + 1,
			Next: c.now.Add(pause),
		}
		c.write(feedbackKind.record(r))
		return nil
	})
	return err
}

// longestPause is after how long an evaluator is asked again at the latest.
const longestPause = 24 * time.Hour

// propose proposes the cluster of a feedback, if there is room, and names the proposal in it.
func (s *Service) propose(ctx context.Context, r *Feedback, sure bool) error {
	p, err := s.proposeCluster(ctx, r.Agent, r.Cluster, sure)
	switch {
	case errors.Is(err, errFull):
		return nil
	case p != nil:
		r.Proposal = p.ID
	}
	return err
}

// proposalFor returns the id of the pending proposal that has a feedback among its evidence, or "".
func (s *Service) proposalFor(ctx context.Context, r *Feedback) (id string, err error) {
	if r.Cluster == "" || r.Class == EdgeCase {
		return "", nil
	}
	pending, err := allProposals(s.reading(ctx),
		ProposalQuery{Status: StatePending, Cluster: r.Cluster})
	for i := range pending {
		if slices.Contains(pending[i].Evidence, r.ID) {
			id = pending[i].ID
		}
	}
	return id, err
}

// evaluated stores a classified feedback. Its rationale stays out of the audit log: it may be a
// model's, and name people.
func evaluated(c *change, r Feedback) {
	c.write(feedbackKind.record(r))
	c.logAudit("evaluate", r.ID, "", map[string]string{
		"classification": string(r.Class), "confidence": fmt.Sprintf("%.4f", r.Confidence),
		"cluster": r.Cluster,
	})
	if r.Class == Ambiguous {
		c.notice(heed.Changed{What: "ambiguous", Component: component, At: c.now, Subject: r.ID})
	}
}

// classify fills in the evaluation, and promotes the feedback of the cluster. The cases are in the
// order that Evaluate documents.
func (s *Service) classify(c *change, r *Feedback) error {
	content := r.content()
	r.Unanswered = Unanswered{}
	switch {
	case r.Private:
		r.Evaluation = Evaluation{Class: archived, Confidence: 1, Rationale: "kept out of learning"}
		return nil
	case !r.corrects():
		return s.classifyPositive(c.Tx, r)
	case !text.Comparable(content):
		r.Evaluation = Evaluation{Class: Ambiguous,
			Rationale: "insufficient detail: there is no text to compare"}
		if r.Decision == Rejected {
			r.Evaluation = Evaluation{Class: EdgeCase, Confidence: 0.1,
				Rationale: "a rejection without a reason", Action: documentOnly}
		}
		return nil
	}
	known, err := s.recent(c.Tx, r)
	if err != nil {
		return err
	}
	matches, err := s.compare(c.Context(), content, known, s.cfg.Evaluator != nil)
	if err != nil {
		return err
	}
	return s.classifyCorrection(c, r, known, matches)
}

// classifyCorrection classifies a correction whose text was compared with what is known. If the
// words seem to contradict an earlier correction, the evaluator is asked first. Its verdict changes
// the matches, and then the contradiction is looked for again.
func (s *Service) classifyCorrection(
	c *change, r *Feedback, known []Feedback, matches []Match,
) (err error) {
	key := c.people()
	r.Near = s.nearTo(matches)
	against, why, dispute := s.contradiction(r, known, matches, key)
	var v Evaluation
	if s.cfg.Evaluator != nil && (why == "" || len(against) > 0) {
		if v, err = s.assess(c.Context(), r, matches, against); err != nil {
			return err
		}
		against, why, dispute = s.contradiction(r, known, matches, key)
	}
	if why != "" {
		r.Evaluation = Evaluation{
			Class: Ambiguous, Rationale: why, Similar: s.alikeTo(matches), Near: r.Near,
			Contradicts: against[:min(len(against), maxList)], Dispute: dispute,
		}
		return nil
	}
	if len(against) > 0 {
		c.release(matches)
	}
	r.Contradicts = against[:min(len(against), maxList)]
	if err := s.judge(c, r, matches, v); err != nil {
		return err
	}
	switch {
	case r.Class == Ambiguous: // for another reason
		r.Contradicts = nil
	case len(against) > 0:
		r.Rationale += "; it contradicts " + against[0]
	}
	return nil
}

// classifyPositive classifies an approval. An approval with a text joins approvals that mean the
// same, because together they may become an example.
func (s *Service) classifyPositive(tx *store.Tx, r *Feedback) error {
	r.Evaluation = Evaluation{Class: positive, Confidence: 1, Rationale: "approved without changes"}
	if r.Summary == "" {
		return nil
	}
	matches, err := s.matches(tx, r)
	if err != nil {
		return err
	}
	_, err = s.join(tx, r, matches, Classification.positive, false)
	return err
}

func (c Classification) positive() bool { return c == positive }

// correction reports whether a feedback of this class may be in a cluster with a correction.
func (c Classification) correction() bool { return c == EdgeCase || c.generalizable() }

// contradiction returns the ids of what the correction contradicts. why is "" if the correction
// counts nevertheless. Otherwise dispute is how it contradicts the first of them. A correction
// counts in spite of a contradiction if a person resolved one between the same two texts, or if
// another reviewer gives the same correction.
func (s *Service) contradiction(
	r *Feedback, known []Feedback, matches []Match, key text.PseudonymKey,
) (against []string, why string, dispute string) {
	for i := range known {
		k := &known[i]
		if !k.corrects() && k.Gate == r.Gate && k.OutputSHA != "" && k.OutputSHA == r.OutputSHA {
			return nil, "it corrects what was approved unchanged in " + k.ID, ""
		}
	}
	for i := range matches {
		m := &matches[i]
		if m.Gate != r.Gate || m.Class == archived || !s.disputes(r.content(), m) {
			continue
		}
		if why == "" && !s.decided(r, m, matches) {
			dispute = cmp.Or(m.Opposed, string(oppose.Words))
			why = fmt.Sprintf("it contradicts %s (%s)", m.ID, dispute)
			against = slices.Insert(against, 0, m.ID)
		} else {
			against = append(against, m.ID)
		}
	}
	if slices.ContainsFunc(matches, func(m Match) bool {
		return !key.Same(m.Reviewer, r.Reviewer) && s.agrees(&m)
	}) {
		why, dispute = "", ""
	}
	return against, why, dispute
}

// disputes reports whether a match contradicts a text on the same topic. The evaluator's verdict
// comes first. Other numbers and other names are no contradiction, because both texts may hold.
func (s *Service) disputes(content string, m *Match) bool {
	way := oppose.Way(m.Opposed)
	switch {
	case m.Opposed == byEvaluator:
		return true
	case m.same || m.cleared:
		return false
	case way == oppose.Words || way == "" && m.reworded:
		// A similarity of meanings finds them alike, but cannot distinguish opposites.
		return !wording(s.cfg.Similarity) && m.Score >= s.cfg.Threshold
	}
	return way.Contradicts() && s.sameTopic(content, m.content(), m.Score)
}

// contested reports whether a feedback is ambiguous only because it contradicts others.
func (f *Feedback) contested() bool { return f.Class == Ambiguous && len(f.Contradicts) > 0 }

// agrees reports whether a match is known to mean the same as a correction.
func (s *Service) agrees(m *Match) bool {
	alike := m.same || s.alike(m) && !wording(s.cfg.Similarity)
	return m.contested() && m.same || m.Class.correction() && alike
}

// decided reports whether a person resolved the contradiction between the texts of a correction and
// a match, in these or in other corrections. A resolution is about two texts, so it holds for all
// corrections with these texts.
func (s *Service) decided(r *Feedback, m *Match, matches []Match) bool {
	text := map[string]string{r.ID: r.content()}
	for i := range matches {
		text[matches[i].ID] = matches[i].content()
	}
	return slices.ContainsFunc(matches, func(k Match) bool {
		if k.Resolver == "" || len(k.Contradicts) == 0 {
			return false
		}
		other := m.content()
		if !s.sameText(k.content(), r.content()) {
			if other = r.content(); !s.sameText(k.content(), m.content()) {
				return false
			}
		}
		return slices.ContainsFunc(k.Contradicts, func(id string) bool {
			content, known := text[id]
			return known && s.sameText(content, other)
		})
	})
}

// release lets the contested matches that mean the same as a correction count, in the cluster that
// the others have.
func (c *change) release(matches []Match) {
	cluster := ""
	clustered := func(m Match) bool { return m.same && m.Cluster != "" && m.Class.correction() }
	if at := slices.IndexFunc(matches, clustered); at >= 0 {
		cluster = matches[at].Cluster
	}
	for i := range matches {
		m := &matches[i]
		if !m.contested() || !m.same {
			continue
		}
		cluster = cmp.Or(cluster, m.ID)
		m.released = true
		m.Class, m.Action, m.Cluster, m.Link, m.Worded = EdgeCase, documentOnly, cluster, 1, false
		m.Confidence = alone
		c.promote(m.Feedback)
	}
}

// sameTopic reports whether two opposed texts have the same topic, by their score or by the words
// that do not oppose each other.
func (s *Service) sameTopic(a, b string, score float64) bool {
	return score >= s.cfg.Threshold || text.Jaccard(s.read(a).topic, s.read(b).topic) >= 0.4
}

// assess asks the evaluator about a correction that seems to contradict these, and writes its
// verdict into the matches.
func (s *Service) assess(
	ctx context.Context, r *Feedback, matches []Match, against []string,
) (v Evaluation, err error) {
	c := Case{Feedback: *r}
	for _, m := range matches {
		if m.Class.correction() || m.contested() {
			c.Candidates = append(c.Candidates, m)
		}
		if slices.Contains(against, m.ID) {
			c.Opposing = append(c.Opposing, m)
		}
	}
	if v, err = ask(ctx, s.cfg.Evaluator, c); err != nil {
		return v, err
	}
	for i := range matches {
		switch m := &matches[i]; {
		case slices.Contains(v.Similar, m.ID):
			m.same, m.reworded, m.Opposed, m.Score = true, false, "", 1
		case slices.Contains(v.Contradicts, m.ID):
			m.Opposed = byEvaluator
		case v.Contradicts != nil:
			m.cleared = true
		}
	}
	return v, nil
}

// judge finds the cluster of a correction, and classifies it by the evaluator's verdict. If the
// evaluator named the matches that mean the same, only these count for the cluster.
func (s *Service) judge(c *change, r *Feedback, matches []Match, v Evaluation) error {
	chosen := matches
	if v.Similar != nil {
		chosen = slices.DeleteFunc(slices.Clone(matches),
			func(m Match) bool { return !slices.Contains(v.Similar, m.ID) })
	}
	members, err := s.join(c.Tx, r, chosen, Classification.correction, v.Similar != nil)
	if err != nil {
		return err
	}
	r.Near = slices.DeleteFunc(r.Near, func(id string) bool {
		return slices.ContainsFunc(members, func(f Feedback) bool { return f.ID == id })
	})
	s.settle(r, members, v, c.people())
	c.promoteWith(r, members)
	return nil
}

// nearTo returns the ids of the corrections that may mean the same as a text, or its opposite.
// Words rank other words low, so the nearest count there even if they share little.
func (s *Service) nearTo(matches []Match) (ids []string) {
	const most = 5
	least := s.leastNear()
	for i := range matches {
		m := &matches[i]
		if m.corrects() && !s.alike(m) && m.Score >= least && len(ids) < most {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// leastNear is the similarity from which on people read texts side by side.
func (s *Service) leastNear() float64 {
	const little = 0.1
	if wording(s.cfg.Similarity) {
		return min(s.cfg.Threshold, little)
	}
	return s.cfg.Threshold
}

// settle takes over a verdict as far as the support allows. A verdict may be lower than what the
// support allows, and never higher. Without an evaluator the verdict follows from the support.
func (s *Service) settle(r *Feedback, members []Feedback, v Evaluation, key text.PseudonymKey) {
	all := append(slices.Clone(members), *r)
	support := supportOf(all, key)
	switch {
	case s.cfg.Evaluator == nil:
		v = support.counted()
	case v.Class.generalizable() && support.occurrences < 2:
		v.Class, v.Rationale = EdgeCase, v.Rationale+"; it stands alone"
	case v.Class == GeneralizableHigh && !support.enough():
		v.Class, v.Rationale = GeneralizableLow, v.Rationale+"; too few agree"
	}
	if r.Worded {
		v.Rationale += "; it has other words"
	}
	r.Class, r.Rationale, r.Action = v.Class, v.Rationale, v.Action
	r.Confidence = min(cmp.Or(v.Confidence, support.confidence()), ceiling(all, key))
	switch {
	case r.Class == Ambiguous:
		r.Cluster, r.Link, r.Worded, r.Action, r.Confidence = "", 0, false, "", v.Confidence
	case r.Action != "":
	case r.Class == EdgeCase:
		r.Action = documentOnly
	default:
		r.Action = createRule
	}
}

// weigh sets what follows for a correction that a person put into a cluster with these members.
func weigh(r *Feedback, members []Feedback, key text.PseudonymKey) {
	all := append(slices.Clone(members), *r)
	support := supportOf(all, key)
	r.Confidence = min(support.confidence(), ceiling(all, key))
	if r.Class.generalizable() && support.enough() {
		r.Class = GeneralizableHigh
	}
}

// promoteWith raises earlier members of a cluster to the class of the newest one. A class never
// falls: a member with a higher class keeps it.
func (c *change) promoteWith(r *Feedback, members []Feedback) {
	for _, m := range members {
		if r.Class == GeneralizableHigh && m.Class != GeneralizableHigh ||
			r.Class == GeneralizableLow && m.Class == EdgeCase {
			m.Class, m.Confidence, m.Action = r.Class, max(m.Confidence, r.Confidence), r.Action
			c.promote(m)
		}
	}
}

// EvaluateAll evaluates all feedback that was not evaluated, the oldest first. It returns what it
// classified, like [Service.Evaluate], and all errors, joined. It leaves out what the evaluator
// gave no usable answer to until it is time to ask again ([Unanswered]), and returns no error of
// it: the observer is notified. [Service.Sweep] calls it every hour.
func (s *Service) EvaluateAll(ctx context.Context) (evaluated []Feedback, err error) {
	var waiting []string
	var failures []error
	for r, err := range s.records(ctx, Listing{Class: unclassified}) {
		if err != nil {
			failures = append(failures, wrap("evaluate all", err))
			continue
		}
		// A time that is too far ahead comes from a wrong clock.
		if wait := r.Unanswered.Next.Sub(s.now()); wait <= 0 || wait > 2*longestPause {
			waiting = append(waiting, r.ID)
		}
	}
	slices.Reverse(waiting)
	for _, id := range waiting {
		if err := ctx.Err(); err != nil {
			return evaluated, errors.Join(append(failures, err)...)
		}
		r, err := s.Evaluate(ctx, id)
		if errors.As(err, new(*unansweredError)) {
			s.watch.Failed(ctx, "evaluate", fmt.Errorf("%s: %w", id, err))
			continue // the feedback records it
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", id, err))
		}
		if r.Class != "" {
			evaluated = append(evaluated, r)
		}
	}
	return evaluated, errors.Join(failures...)
}

// ceiling is the highest confidence that these may have. Corrections in other words can't lift it
// to the confidence that expedites.
func ceiling(all []Feedback, key text.PseudonymKey) float64 {
	sure := certain(all)
	if len(sure) == len(all) {
		return 1
	}
	return max(0.9*expedite, supportOf(sure, key).confidence())
}

// certain returns the matches that are known to mean the same.
func certain(all []Feedback) []Feedback {
	return slices.DeleteFunc(slices.Clone(all), func(f Feedback) bool { return f.Worded })
}

// supportOf counts a cluster.
func supportOf(all []Feedback, key text.PseudonymKey) support {
	s, reviewers := support{occurrences: len(all)}, map[string]bool{}
	for i := range all {
		s.strength += all[i].Link
		reviewers[key.Of(all[i].Reviewer)] = true
	}
	s.reviewers = len(reviewers)
	return s
}

// join puts a feedback into the most similar cluster without a member that it opposes, or into a
// new one. It returns the other members of the cluster, the oldest first. vouched reports that
// somebody who understands the texts chose the matches. Clusters are tried in the order of their
// most similar match. If a member is opposed, or a person kept it apart, the next cluster is tried.
func (s *Service) join(tx *store.Tx, r *Feedback, matches []Match, kind func(Classification) bool,
	vouched bool) ([]Feedback, error) {
	r.Similar = s.alikeTo(matches)
	r.Cluster, r.Link, r.Worded = r.ID, 1, false
	tried := map[string]bool{}
	for i := range matches {
		m := &matches[i]
		if !s.alike(m) || !kind(m.Class) || m.Cluster == "" || tried[m.Cluster] {
			continue
		}
		tried[m.Cluster] = true
		members, err := members(tx, r.Agent, m.Cluster, kind)
		if err != nil {
			return nil, err
		}
		members = slices.DeleteFunc(members, func(o Feedback) bool { return o.ID == r.ID })
		for _, o := range matches {
			if o.released && o.Cluster == m.Cluster {
				members = append(members, o.Feedback)
			}
		}
		byTime(members)
		// Where a person joined other words, a text must be like one of the members alone.
		joined := slices.ContainsFunc(members, func(o Feedback) bool { return o.Joiner != "" })
		differs := func(o Feedback) bool {
			same := joined || vouched &&
				slices.ContainsFunc(matches, func(m Match) bool { return m.ID == o.ID })
			return r.apart(&o) || !same && s.differ(r.content(), o.content())
		}
		if slices.ContainsFunc(members, differs) {
			continue
		}
		r.Cluster, r.Link = m.Cluster, m.Score
		r.Worded = !vouched &&
			!slices.ContainsFunc(members, func(o Feedback) bool {
				return !o.Worded && s.sameText(o.content(), r.content())
			})
		return members, nil
	}
	return nil, nil
}

// apart reports whether a person decided that two mean different things.
func (f *Feedback) apart(o *Feedback) bool {
	return slices.Contains(f.Apart, o.ID) || slices.Contains(o.Apart, f.ID)
}

// alike reports whether a match counts as saying the same.
func (s *Service) alike(m *Match) bool { return s.near(m) && !m.reworded }

// near reports whether a match may mean the same.
func (s *Service) near(m *Match) bool { return m.Opposed == "" && m.Score >= s.cfg.Threshold }

// alikeTo returns the ids of what means the same, the most alike first, for Evaluation.Similar.
func (s *Service) alikeTo(matches []Match) (ids []string) {
	for i := range matches {
		if s.alike(&matches[i]) && len(ids) < maxList {
			ids = append(ids, matches[i].ID)
		}
	}
	return ids
}

// members returns a cluster's feedback of a kind, the oldest first.
func members(
	tx *store.Tx, agent, cluster string, kind func(Classification) bool,
) ([]Feedback, error) {
	l := Listing{Agent: agent, Cluster: cluster}
	members, err := feedbackKind.union(tx, [][]string{l.stored().Keys},
		func(f *Feedback) bool { return kind(f.Class) })
	slices.Reverse(members)
	return members, err
}

// Resolve decides an [Ambiguous] feedback: as [GeneralizableLow] (or GeneralizableHigh),
// [EdgeCase], or "archived" to ignore it. A generalizable feedback joins the cluster that it is
// alike to, and a rule is proposed: at once, or with the next [Service.Flush] if only words were
// compared. Feedback of another class is refused: see [RefusedError]. The same resolution again, by
// the same person for the same reason, has no effect.
//
// It also settles the contradiction for good: earlier and later corrections with one of the two
// texts are no longer ambiguous because of the other text. Each is classified by who agrees with
// it, and [Rules.Conflicts] shows the contradiction.
func (s *Service) Resolve(ctx context.Context, o Act, as Classification) (Feedback, error) {
	if !as.generalizable() && as != EdgeCase && as != archived {
		return Feedback{}, wrap("resolve", valid.Input("as",
			"must be generalizable, an edge case or archived"))
	}
	a := Act{ID: o.ID, Actor: o.Actor, Reason: o.Reason, Kind: "resolve"}
	r, err := act(ctx, s, a, func(c *change) (Feedback, error) {
		r, err := feedbackIn(c.Tx, o.ID)
		if err != nil {
			return r, err
		}
		if r.Class != Ambiguous {
			return r, r.unresolvable(c, o.Reason, as)
		}
		c.Want(store.Wants{Queries: []store.Query{s.recentOf(r.Agent)}})
		if err := c.raise(agentMark(r.Agent)); err != nil {
			return r, err
		}
		if err := s.resolve(c, &r, as); err != nil {
			return r, err
		}
		r.Resolution, r.Resolver = o.Reason, c.who
		c.write(feedbackKind.record(r))
		return r, nil
	})
	if err != nil {
		return Feedback{}, err
	}
	if r.Class.generalizable() && !r.Worded {
		err := s.propose(ctx, &r, false)
		if err == nil && r.Proposal == "" {
			r.Proposal, err = s.proposalFor(ctx, &r)
		}
		if err != nil {
			return r, fmt.Errorf("feedback: resolve: it is resolved, but not proposed: %w", err)
		}
	}
	return r, nil
}

// unresolvable refuses to resolve a feedback that is not ambiguous, unless the same person resolved
// it before, for the same reason and with the same result. Somebody may repeat a call whose answer
// got lost.
func (f *Feedback) unresolvable(c *change, reason string, as Classification) error {
	if f.Resolver != "" && c.people().Same(f.Resolver, c.who) && f.Resolution == reason &&
		(f.Class == as || f.Class.generalizable() && as.generalizable()) {
		return nil
	}
	return notNow("feedback", cmp.Or(f.Class, unclassified))
}

// resolve classifies a correction as a person wants, and finds its cluster. Corrections with its
// text that wait for the same decision are released with it, because they ask the same question.
func (s *Service) resolve(c *change, r *Feedback, as Classification) error {
	r.Class, r.Action = as, createRule
	switch as {
	case archived:
		r.Action = ""
	case EdgeCase:
		r.Action = documentOnly
	default:
	}
	if !text.Comparable(r.content()) {
		if as.generalizable() {
			return valid.Input("as", "must not be generalizable, because there is no text")
		}
		return nil
	}
	matches, err := s.matches(c.Tx, r)
	if err != nil {
		return err
	}
	if len(r.Contradicts) > 0 {
		c.release(matches)
	}
	if as == archived {
		return nil
	}
	members, err := s.join(c.Tx, r, matches, Classification.correction, false)
	if err != nil {
		return err
	}
	weigh(r, members, c.people())
	c.promoteWith(r, members) // an edge case promotes no correction
	return nil
}
