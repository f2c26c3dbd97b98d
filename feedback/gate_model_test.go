//go:build !race

package feedback_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
)

// Several people act in two services over one store, with failures in between. The result is that
// of the table in docs/rules.md.
func TestTheGateIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &reviewModel{now: start, state: reviewState{rules: map[int]ruleModel{}}}
		st, err := memstore.New(memstore.Config{Now: m.time})
		require.NoError(t, err)
		m.run(t, st)
	})
}

var (
	modelPeople = []string{"ann", "bob", "cleo", "dan", "eve"}
	// The first two contradict each other. The evidence says the third.
	modelTexts   = []string{"Name the database", "Do not name the database", "Be brief"}
	modelAuthors = []string{"ann", "bob"}
)

// A reviewModel is two services over one store, with what should be there.
type reviewModel struct {
	now      time.Time
	days     int
	gate     feedback.Gate
	services []*feedback.Service
	stores   []*storetest.Failing
	state    reviewState
}

// time is the clock of the stores and of the services. It moves on whenever it is read.
func (m *reviewModel) time() time.Time {
	m.now = m.now.Add(time.Microsecond)
	return m.now
}

// A reviewState is what should be there. Proposals are named by their order, and rules by their
// proposals.
type reviewState struct {
	proposals []proposalModel
	rules     map[int]ruleModel
}

type proposalModel struct {
	text                     string
	change                   string
	of, supersedes, previous int // -1: none
	evidence                 bool
	writers, authors         []string
	proposer, decider        string
	approvals                []approvalModel
	status                   feedback.State
	created                  int // the day
}

type approvalModel struct {
	who  string
	over []int
}

type ruleModel struct {
	text             string
	status           feedback.State
	pinned           bool
	writers, authors []string
}

func (s reviewState) clone() reviewState {
	s.proposals = slices.Clone(s.proposals)
	for i := range s.proposals {
		s.proposals[i].approvals = slices.Clone(s.proposals[i].approvals)
	}
	s.rules = maps.Clone(s.rules)
	return s
}

func (s reviewState) String() string {
	var lines []string
	for i, p := range s.proposals {
		lines = append(lines, fmt.Sprintf(
			"%d %q %s of %d supersedes %d writers %v authors %v %s %v",
			i, p.text, p.change, p.of, p.supersedes, sorted(p.writers), sorted(p.authors), p.status,
			p.approvals))
	}
	for _, i := range slices.Sorted(maps.Keys(s.rules)) {
		r := s.rules[i]
		lines = append(lines, fmt.Sprint("rule ", i, " ", r.status, " pinned ", r.pinned))
	}
	return strings.Join(lines, "\n")
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// A modelAct is what a person does, and what should come of it: another state, or a refusal, which
// may leave another state too.
type modelAct struct {
	do   func(*feedback.Service) error
	want func(s *reviewState) (refused bool)
}

// run opens two services over a store and has people act at random. It fails the test where
// something else is there than the model says, or in prompts.
func (m *reviewModel) run(t *rapid.T, st store.Store) {
	m.gate.Quorum = rapid.IntRange(1, 3).Draw(t, "quorum")
	m.gate.Outsiders = rapid.IntRange(1, m.gate.Quorum).Draw(t, "outsiders")
	m.gate.Pending = 20_000
	n := 0
	for range 2 {
		st := &storetest.Failing{Store: st}
		s, err := feedback.New(ctx, feedback.Config{
			Store: st, Gate: m.gate, Now: m.time, NewID: func() string { n++; return fmt.Sprint("n", n) },
		})
		require.NoError(t, err)
		m.services, m.stores = append(m.services, s), append(m.stores, st)
	}
	for i, who := range modelAuthors {
		_, err := m.services[0].Record(ctx, feedback.Feedback{
			ID: fmt.Sprint("d", i), Gate: "g", Agent: "prd", Decision: feedback.Rejected,
			Reviewer: who, At: m.now, Summary: modelTexts[2],
		})
		require.NoError(t, err)
	}
	acts := map[string]func(*rapid.T){
		"wait": func(*rapid.T) {
			m.now, m.days = m.now.Add(day), m.days+1
			for i := range m.state.proposals {
				if p := &m.state.proposals[i]; p.status == feedback.StatePending && m.late(*p) {
					p.status = feedback.StateExpired
				}
			}
		},
	}
	for name, draw := range map[string]func(*rapid.T, seenModel) modelAct{
		"propose": m.propose, "edit": m.edit, "approve": m.approve, "approve too": m.approve,
		"approve again": m.approve, "reject": m.reject, "take out": m.takeOut,
		"change": m.changeRule, "change too": m.changeRule,
	} {
		acts[name] = func(t *rapid.T) { m.step(t, draw(t, m.read(t))) }
	}
	for range 2 {
		t.Repeat(acts)
	}
}

// step lets somebody act in one of the services, whose store may fail one call.
func (m *reviewModel) step(t *rapid.T, a modelAct) {
	if a.do == nil {
		return
	}
	at := rapid.IntRange(0, len(m.services)-1).Draw(t, "service")
	st := m.stores[at]
	before, after := m.state.clone(), m.state.clone()
	refused := a.want(&after)
	fails := rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	late := rapid.Bool().Draw(t, "late")
	st.Fail(fails.Draw(t, "fails"), late)
	err := a.do(m.services[at])
	failed := st.Failed()
	st.Fail(0, false)
	there := m.read(t).state.String()
	if failed && (!late || errors.Is(err, storetest.ErrFailed)) { // a lost reply does not fail a step
		require.ErrorIs(t, err, storetest.ErrFailed, "a failure is never an answer")
		require.Contains(t, []string{before.String(), after.String()}, there)
		if there == before.String() {
			after = before
		}
	} else {
		require.Equal(t, after.String(), there)
		require.Equal(t, refused, errors.As(err, new(*feedback.RefusedError)), "%v", err)
		if !refused {
			require.NoError(t, err)
		}
	}
	m.state = after
	m.checkPrompts(t)
}

// checkPrompts checks that each service puts just the active rules into prompts, the pinned ones
// first.
func (m *reviewModel) checkPrompts(t *rapid.T) {
	seen := m.read(t)
	for _, s := range m.services {
		in, err := s.Rules().Inject(ctx, "prd", "", "")
		require.NoError(t, err)
		var got []int
		for _, id := range in.Rules {
			got = append(got, seen.index[id])
		}
		require.True(t, slices.IsSortedFunc(got, func(a, b int) int {
			return rank(m.state.rules[a].pinned) - rank(m.state.rules[b].pinned)
		}))
		require.ElementsMatch(t, m.state.active(), got)
	}
}

func rank(pinned bool) int {
	if pinned {
		return 0
	}
	return 1
}

func (s *reviewState) active() (all []int) {
	for i, r := range s.rules {
		if r.status == feedback.StateActive {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return all
}

// A seenModel has the proposals and rules that are there.
type seenModel struct {
	state     reviewState
	proposals []feedback.Proposal // in their order
	index     map[string]int
	rules     map[int]feedback.Rule
}

// read reads all that is there.
func (m *reviewModel) read(t *rapid.T) seenModel {
	r := m.services[0].Rules()
	proposals, _, err := r.Proposals(ctx, feedback.ProposalQuery{}, 0)
	require.NoError(t, err)
	slices.SortFunc(proposals, func(a, b feedback.Proposal) int {
		return a.Created.Compare(b.Created)
	})
	seen := seenModel{
		state: reviewState{rules: map[int]ruleModel{}}, proposals: proposals,
		index: map[string]int{"": -1}, rules: map[int]feedback.Rule{},
	}
	for i, p := range proposals {
		seen.index[p.ID] = i
	}
	for _, p := range proposals {
		is := proposalModel{
			text: p.Text, change: p.Change, of: seen.index[p.Of], supersedes: -1,
			writers: p.Writers, authors: p.Authors, status: p.Status,
		}
		if len(p.Supersedes) > 0 {
			is.supersedes = seen.index[p.Supersedes[0]]
		}
		for _, a := range p.Approvals {
			is.approvals = append(is.approvals, approvalModel{a.Actor, seen.all(a.Override)})
		}
		seen.state.proposals = append(seen.state.proposals, is)
	}
	rules, err := r.List(ctx, feedback.RuleQuery{})
	require.NoError(t, err)
	for _, r := range rules {
		seen.rules[seen.index[r.ID]] = r
		seen.state.rules[seen.index[r.ID]] = ruleModel{status: r.Status, pinned: r.Pinned}
	}
	return seen
}

func (s *seenModel) all(names []string) (all []int) {
	for _, name := range names {
		all = append(all, s.index[name])
	}
	slices.Sort(all)
	return all
}

func who(t *rapid.T) string { return rapid.SampledFrom(modelPeople).Draw(t, "who") }

// one draws a proposal or a rule, the latest ones most often, and -1 if there is none.
func one(t *rapid.T, of []int) int {
	if len(of) == 0 {
		return -1
	}
	return of[max(len(of)-1-rapid.IntRange(0, 5).Draw(t, "which"), 0)]
}

func (m *reviewModel) propose(t *rapid.T, seen seenModel) modelAct {
	by, text := who(t), rapid.SampledFrom(modelTexts).Draw(t, "text")
	d := feedback.Draft{Text: text, Agents: []string{"prd"}}
	p := proposalModel{
		text: text, of: -1, supersedes: -1, previous: -1, proposer: by, writers: []string{by},
	}
	sub := feedback.Submission{Actor: by, Reason: "x"}
	if p.evidence = rapid.Bool().Draw(t, "evidence"); p.evidence {
		sub.Evidence, p.authors = []string{"d0", "d1"}, modelAuthors
	}
	if rapid.Bool().Draw(t, "supersedes") {
		if p.supersedes = one(t, slices.Sorted(maps.Keys(m.state.rules))); p.supersedes >= 0 {
			d.Supersedes = []string{seen.rules[p.supersedes].ID}
		}
	}
	sub.Draft = d
	return m.submit(sub, p)
}

func (m *reviewModel) submit(sub feedback.Submission, p proposalModel) modelAct {
	return modelAct{
		func(s *feedback.Service) error { _, err := s.Rules().Propose(ctx, sub); return err },
		func(s *reviewState) bool {
			p.status, p.created = feedback.StatePending, m.days
			for _, o := range s.proposals {
				same := o.text == p.text && o.change == p.change && o.of == p.of &&
					o.supersedes == p.supersedes && o.evidence == p.evidence &&
					o.proposer == p.proposer && o.previous < 0
				if same && o.status == feedback.StatePending && !m.late(o) {
					return false
				}
			}
			return s.open(p)
		},
	}
}

// open opens a proposal whose rules are in the states that it needs.
func (s *reviewState) open(p proposalModel) (refused bool) {
	if p.supersedes >= 0 && p.of < 0 {
		old := s.rules[p.supersedes]
		if old.status != feedback.StateActive {
			return true
		}
		p.writers = sorted(append(slices.Clone(p.writers), old.writers...))
		p.authors = sorted(append(slices.Clone(p.authors), old.authors...))
	}
	if p.of >= 0 && !s.allows(p) {
		return true
	}
	s.proposals = append(s.proposals, p)
	return false
}

// allows reports whether the rule of a change is in the state for it.
func (s *reviewState) allows(p proposalModel) bool {
	r := s.rules[p.of]
	switch p.change {
	case feedback.Restore:
		return r.status == feedback.StateRetired
	case feedback.Pin:
		return r.status == feedback.StateActive && !r.pinned
	default:
		return r.status == feedback.StateActive && r.pinned
	}
}

func (m *reviewModel) late(p proposalModel) bool { return m.days >= p.created+7 }

// decidable reports whether a proposal can be decided. One that waited too long is expired, also
// before a sweep closes it.
func (m *reviewModel) decidable(s *reviewState, i int) bool {
	p := &s.proposals[i]
	return p.status == feedback.StatePending && !m.late(*p)
}

func (m *reviewModel) changeRule(t *rapid.T, seen seenModel) modelAct {
	of := one(t, slices.Sorted(maps.Keys(m.state.rules)))
	if of < 0 {
		return modelAct{}
	}
	by, r, is := who(t), m.state.rules[of], seen.rules[of]
	d := is.Draft
	changes := []string{feedback.Restore, feedback.Pin, feedback.Unpin}
	d.Of, d.Change = is.ID, rapid.SampledFrom(changes).Draw(t, "change")
	p := proposalModel{
		text: d.Text, change: d.Change, of: of, supersedes: -1, previous: -1, proposer: by,
		writers: sorted(append([]string{by}, r.writers...)), authors: r.authors,
	}
	if len(d.Supersedes) > 0 {
		p.supersedes = seen.index[d.Supersedes[0]]
	}
	return m.submit(feedback.Submission{Draft: d, Actor: by, Reason: "x"}, p)
}

func (m *reviewModel) which(t *rapid.T) int {
	var all []int
	for i := range m.state.proposals {
		all = append(all, i)
	}
	return one(t, all)
}

func (m *reviewModel) edit(t *rapid.T, seen seenModel) modelAct {
	i := m.which(t)
	if i < 0 {
		return modelAct{}
	}
	by, text := who(t), rapid.SampledFrom(modelTexts).Draw(t, "text")
	d := seen.proposals[i].Draft
	d.Text, d.Change, d.Of = text, "", ""
	return modelAct{
		func(s *feedback.Service) error {
			sub := feedback.Submission{Draft: d, Replaces: seen.proposals[i].ID, Actor: by, Reason: "x"}
			_, err := s.Rules().Propose(ctx, sub)
			return err
		},
		func(s *reviewState) bool {
			for j, p := range s.proposals { // the same edit, made again
				if m.decidable(s, j) && p.previous == i && p.proposer == by && p.text == text {
					return false
				}
			}
			if !m.decidable(s, i) || s.proposals[i].of >= 0 {
				return true
			}
			p := s.proposals[i]
			if text != p.text && text != modelTexts[2] && p.evidence { // which says something else
				p.evidence = false
			}
			p.text, p.previous, p.proposer, p.approvals = text, i, by, nil
			p.writers = sorted(append(slices.Clone(p.writers), by))
			if s.open(p) {
				return true
			}
			s.proposals[i].status, s.proposals[i].decider = feedback.StateSuperseded, by
			return false
		},
	}
}

func (m *reviewModel) reject(t *rapid.T, seen seenModel) modelAct {
	i, by := m.which(t), who(t)
	if i < 0 {
		return modelAct{}
	}
	return modelAct{
		func(s *feedback.Service) error {
			_, err := s.Rules().Review(ctx, feedback.Review{Proposal: seen.proposals[i].ID,
				Decision: feedback.Rejected, Actor: by, Reason: "x"})
			return err
		},
		func(s *reviewState) bool {
			p := &s.proposals[i]
			if p.status == feedback.StateRejected && p.decider == by {
				return false
			}
			if !m.decidable(s, i) {
				return true
			}
			p.status, p.decider = feedback.StateRejected, by
			return false
		},
	}
}

func (m *reviewModel) takeOut(t *rapid.T, seen seenModel) modelAct {
	i, by := one(t, slices.Sorted(maps.Keys(m.state.rules))), who(t)
	if i < 0 {
		return modelAct{}
	}
	states := []feedback.State{feedback.StateRetired, feedback.StateRevoked}
	to := rapid.SampledFrom(states).Draw(t, "to")
	return modelAct{
		func(s *feedback.Service) error {
			o := feedback.Act{ID: seen.rules[i].ID, Actor: by, Reason: "x"}
			_, err := s.Rules().Move(ctx, o, to)
			return err
		},
		func(s *reviewState) bool {
			r := s.rules[i]
			revoked := to == feedback.StateRevoked && r.status == feedback.StateRetired
			if r.status == to {
				return false
			}
			if r.status != feedback.StateActive && !revoked {
				return true
			}
			r.status = to
			s.rules[i] = r
			return false
		},
	}
}

func (m *reviewModel) approve(t *rapid.T, seen seenModel) modelAct {
	i, by := m.which(t), who(t)
	if i < 0 {
		return modelAct{}
	}
	p := seen.proposals[i]
	review := feedback.Review{Proposal: p.ID, Decision: feedback.Approved, Actor: by, Reason: "x",
		Hash: p.Hash()}
	stale := rapid.IntRange(0, 9).Draw(t, "stale") == 0
	if stale {
		review.Hash = strings.Repeat("0", 64)
	}
	over := approvalModel{who: by}
	if rapid.IntRange(0, 3).Draw(t, "overrides") > 0 {
		over.over = m.state.active()
	}
	for _, r := range over.over {
		review.Override = append(review.Override, seen.rules[r].ID)
	}
	return modelAct{
		func(s *feedback.Service) error { _, err := s.Rules().Review(ctx, review); return err },
		func(s *reviewState) bool { return m.approved(s, i, over, stale) },
	}
}

// approved is what an approval should do.
func (m *reviewModel) approved(s *reviewState, i int, a approvalModel, stale bool) (refused bool) {
	p := &s.proposals[i]
	mine := slices.IndexFunc(p.approvals, func(o approvalModel) bool { return o.who == a.who })
	if p.status == feedback.StateApproved && mine >= 0 && !stale {
		return false
	}
	barred := func() bool {
		return stale || slices.Contains(p.writers, a.who) ||
			m.gate.Outsiders == m.gate.Quorum && slices.Contains(p.authors, a.who)
	}
	if !m.decidable(s, i) || barred() {
		return true
	}
	against := s.against(p)
	if !a.overrides(against) {
		return true
	}
	before := slices.Clone(p.approvals)
	switch {
	case mine < 0:
		p.approvals = append(p.approvals, a)
	case slices.Equal(p.approvals[mine].over, a.over):
		return false
	default:
		p.approvals[mine] = a
	}
	people, outsiders := 0, 0
	for _, a := range p.approvals {
		if a.overrides(against) {
			people++
			if !slices.Contains(p.authors, a.who) {
				outsiders++
			}
		}
	}
	if people < m.gate.Quorum || outsiders < m.gate.Outsiders {
		return false
	}
	if !s.enact(i) {
		p.approvals = before
		return true
	}
	p.status, p.decider = feedback.StateApproved, a.who
	return false
}

func (a *approvalModel) overrides(against []int) bool {
	return !slices.ContainsFunc(against, func(r int) bool { return !slices.Contains(a.over, r) })
}

// against are the active rules that a proposal contradicts.
func (s *reviewState) against(p *proposalModel) (all []int) {
	if p.change == feedback.Pin || p.change == feedback.Unpin {
		return nil
	}
	for _, r := range s.active() {
		content := []string{p.text, s.rules[r].text}
		slices.SortFunc(content, func(a, b string) int {
			return cmp.Compare(slices.Index(modelTexts, a), slices.Index(modelTexts, b))
		})
		if slices.Equal(content, modelTexts[:2]) && r != p.of && (p.of >= 0 || r != p.supersedes) {
			all = append(all, r)
		}
	}
	return all
}

// enact makes the rule of a proposal, or its change, if the rules that it is about are in the
// states for it.
func (s *reviewState) enact(i int) bool {
	p := s.proposals[i]
	if p.of >= 0 {
		if !s.allows(p) {
			return false
		}
		r := s.rules[p.of]
		r.pinned = p.change == feedback.Pin || r.pinned && p.change != feedback.Unpin
		r.status = feedback.StateActive
		s.rules[p.of] = r
		return true
	}
	if p.supersedes >= 0 {
		old := s.rules[p.supersedes]
		if old.status != feedback.StateActive {
			return false
		}
		old.status = feedback.StateSuperseded
		s.rules[p.supersedes] = old
	}
	s.rules[i] = ruleModel{p.text, feedback.StateActive, false, p.writers, p.authors}
	return true
}
