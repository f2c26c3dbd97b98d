// Package rulemodel checks the gate of package feedback: it does what people might do in two services over one store, and
// compares what then is with a plain model of the rules. Tests of feedback and of stores use it.
package rulemodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/failing"
	"github.com/heedhq/heed/store"
)

var (
	ctx    = context.Background()
	people = []string{"ann", "bob", "cleo", "dan", "eve"}
	// The first two contradict each other. The evidence says the third.
	texts   = []string{"Name the database", "Do not name the database", "Be brief"}
	authors = []string{"ann", "bob"}
)

const (
	day = 24 * time.Hour
	ttl = 7 // days
)

// A Model is two services over one store, with what should be there.
type Model struct {
	now      time.Time
	days     int
	gate     feedback.Gate
	services []*feedback.Service
	stores   []*failing.Store
	state    state
}

// New returns a model without a store.
func New() *Model {
	return &Model{now: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), state: state{rules: map[int]rule{}}}
}

// Now is the clock of the stores and of the services. It moves on whenever it is read.
func (m *Model) Now() time.Time {
	m.now = m.now.Add(time.Microsecond)
	return m.now
}

// state is what should be there. Proposals are named by their order, and rules by their proposals.
type state struct {
	proposals []proposal
	rules     map[int]rule
}

type proposal struct {
	text                     string
	change                   feedback.RuleChange
	of, supersedes, previous int // -1: none
	evidence                 bool
	writers, authors         []string
	proposer, decider        string
	approvals                []approval
	status                   feedback.State
	created                  int // the day
}

type approval struct {
	who  string
	over []int
}

type rule struct {
	text             string
	status           feedback.State
	pinned           bool
	writers, authors []string
}

func (s state) clone() state {
	s.proposals = slices.Clone(s.proposals)
	for i := range s.proposals {
		s.proposals[i].approvals = slices.Clone(s.proposals[i].approvals)
	}
	s.rules = maps.Clone(s.rules)
	return s
}

func (s state) String() string {
	var lines []string
	for i, p := range s.proposals {
		lines = append(lines, fmt.Sprintf("%d %q %s of %d supersedes %d writers %v authors %v %s %v", i, p.text, p.change, p.of,
			p.supersedes, sorted(p.writers), sorted(p.authors), p.status, p.approvals))
	}
	for _, i := range slices.Sorted(maps.Keys(s.rules)) {
		lines = append(lines, fmt.Sprint("rule ", i, " ", s.rules[i].status, " pinned ", s.rules[i].pinned))
	}
	return strings.Join(lines, "\n")
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// An act is what a person does, and what should come of it: another state, or a refusal, which may leave another state too.
type act struct {
	do   func(*feedback.Service) error
	want func(s *state) (refused bool)
}

// Run opens the services over one store, which each reaches by a handle of its own, and has people act at random. It fails the
// test where something else is there than the model says, or in prompts.
func (m *Model) Run(t *rapid.T, handles ...store.Store) {
	m.gate.Quorum = rapid.IntRange(1, 3).Draw(t, "quorum")
	m.gate.Outsiders = rapid.IntRange(1, m.gate.Quorum).Draw(t, "outsiders")
	m.gate.PerProposer, m.gate.PerAgent, m.gate.Pending = 1000, 1000, 1000
	n := 0
	for _, handle := range handles {
		st := &failing.Store{Store: handle}
		s, err := feedback.New(ctx, feedback.Config{
			Store: st, Gate: m.gate, Now: m.Now, NewID: func() string { n++; return fmt.Sprint("n", n) },
		})
		require.NoError(t, err)
		m.services, m.stores = append(m.services, s), append(m.stores, st)
	}
	for i, who := range authors {
		_, err := m.services[0].Record(ctx, feedback.Feedback{
			ID: fmt.Sprint("d", i), Gate: "g", Agent: "prd", Decision: feedback.Rejected, Reviewer: who, At: m.now, Summary: texts[2],
		})
		require.NoError(t, err)
	}
	acts := map[string]func(*rapid.T){"wait": func(*rapid.T) { m.now, m.days = m.now.Add(day), m.days+1 }}
	for name, draw := range map[string]func(*rapid.T, ids) act{
		"propose": m.propose, "edit": m.edit, "approve": m.approve, "approve too": m.approve, "approve again": m.approve, "reject": m.reject,
		"take out": m.takeOut, "change": m.changeRule, "change too": m.changeRule,
	} {
		acts[name] = func(t *rapid.T) { m.step(t, draw(t, m.read(t))) }
	}
	for range 2 {
		t.Repeat(acts)
	}
}

// step lets somebody act in one of the services, whose store may fail one call.
func (m *Model) step(t *rapid.T, a act) {
	if a.do == nil {
		return
	}
	at := rapid.IntRange(0, len(m.services)-1).Draw(t, "service")
	st := m.stores[at]
	before, after := m.state.clone(), m.state.clone()
	refused := a.want(&after)
	st.Fail(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).Draw(t, "fails"), rapid.Bool().Draw(t, "late"))
	err := a.do(m.services[at])
	failed := st.Failed()
	st.Fail(0, false)
	there := m.read(t).state.String()
	if failed {
		require.ErrorIs(t, err, failing.ErrFailed, "a failure is never an answer")
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

// checkPrompts checks that each service puts just the active rules into prompts, the pinned ones first.
func (m *Model) checkPrompts(t *rapid.T) {
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

func (s *state) active() (all []int) {
	for i, r := range s.rules {
		if r.status == feedback.StateActive {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return all
}

// ids are the proposals and rules that are there.
type ids struct {
	state     state
	proposals []feedback.Proposal // in their order
	index     map[string]int
	rules     map[int]feedback.Rule
}

// read reads all that is there.
func (m *Model) read(t *rapid.T) ids {
	r := m.services[0].Rules()
	proposals, _, err := r.Proposals(ctx, feedback.ProposalQuery{}, 0)
	require.NoError(t, err)
	slices.SortFunc(proposals, func(a, b feedback.Proposal) int { return a.Created.Compare(b.Created) })
	seen := ids{state: state{rules: map[int]rule{}}, proposals: proposals, index: map[string]int{"": -1}, rules: map[int]feedback.Rule{}}
	for i, p := range proposals {
		seen.index[p.ID] = i
	}
	for _, p := range proposals {
		is := proposal{text: p.Text, change: p.Change, of: seen.index[p.Of], supersedes: -1, writers: p.Writers, authors: p.Authors, status: p.Status}
		if len(p.Supersedes) > 0 {
			is.supersedes = seen.index[p.Supersedes[0]]
		}
		for _, a := range p.Approvals {
			is.approvals = append(is.approvals, approval{a.Actor, seen.all(a.Override)})
		}
		seen.state.proposals = append(seen.state.proposals, is)
	}
	rules, err := r.List(ctx, feedback.RuleQuery{})
	require.NoError(t, err)
	for _, r := range rules {
		seen.rules[seen.index[r.ID]] = r
		seen.state.rules[seen.index[r.ID]] = rule{status: r.Status, pinned: r.Pinned}
	}
	return seen
}

func (s *ids) all(names []string) (all []int) {
	for _, name := range names {
		all = append(all, s.index[name])
	}
	slices.Sort(all)
	return all
}

func who(t *rapid.T) string { return rapid.SampledFrom(people).Draw(t, "who") }

// one draws a proposal or a rule, the latest ones most often, and -1 if there is none.
func one(t *rapid.T, of []int) int {
	if len(of) == 0 {
		return -1
	}
	return of[max(len(of)-1-rapid.IntRange(0, 5).Draw(t, "which"), 0)]
}

func (m *Model) propose(t *rapid.T, seen ids) act {
	by, d := who(t), feedback.Draft{Text: rapid.SampledFrom(texts).Draw(t, "text"), Agents: []string{"prd"}}
	p := proposal{text: d.Text, of: -1, supersedes: -1, previous: -1, proposer: by, writers: []string{by}}
	sub := feedback.Submission{Actor: by, Reason: "x"}
	if p.evidence = rapid.Bool().Draw(t, "evidence"); p.evidence {
		sub.Evidence, p.authors = []string{"d0", "d1"}, authors
	}
	if rapid.Bool().Draw(t, "supersedes") {
		if p.supersedes = one(t, slices.Sorted(maps.Keys(m.state.rules))); p.supersedes >= 0 {
			d.Supersedes = []string{seen.rules[p.supersedes].ID}
		}
	}
	sub.Draft = d
	return m.submit(sub, p)
}

func (m *Model) submit(sub feedback.Submission, p proposal) act {
	return act{
		func(s *feedback.Service) error { _, err := s.Rules().Propose(ctx, sub); return err },
		func(s *state) bool {
			p.status, p.created = feedback.StatePending, m.days
			for _, o := range s.proposals {
				same := o.text == p.text && o.change == p.change && o.of == p.of && o.supersedes == p.supersedes && o.evidence == p.evidence
				if same && o.status == feedback.StatePending && o.proposer == p.proposer && o.previous < 0 && !m.late(o) {
					return false
				}
			}
			return s.open(p)
		},
	}
}

// open opens a proposal whose rules are in the states that it needs.
func (s *state) open(p proposal) (refused bool) {
	if p.supersedes >= 0 && p.of < 0 {
		old := s.rules[p.supersedes]
		if old.status != feedback.StateActive {
			return true
		}
		p.writers = sorted(append(slices.Clone(p.writers), old.writers...))
	}
	if p.of >= 0 && !s.allows(p) {
		return true
	}
	s.proposals = append(s.proposals, p)
	return false
}

// allows reports whether the rule of a change is in the state for it.
func (s *state) allows(p proposal) bool {
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

func (m *Model) late(p proposal) bool { return m.days >= p.created+ttl }

// decidable reports whether a proposal can be decided. One that waited too long expires.
func (m *Model) decidable(s *state, i int) bool {
	if p := &s.proposals[i]; p.status == feedback.StatePending && m.late(*p) {
		p.status = feedback.StateExpired
	}
	return s.proposals[i].status == feedback.StatePending
}

func (m *Model) changeRule(t *rapid.T, seen ids) act {
	of := one(t, slices.Sorted(maps.Keys(m.state.rules)))
	if of < 0 {
		return act{}
	}
	by, r, is := who(t), m.state.rules[of], seen.rules[of]
	d := is.Draft
	d.Of, d.Change = is.ID, rapid.SampledFrom([]feedback.RuleChange{feedback.Restore, feedback.Pin, feedback.Unpin}).Draw(t, "change")
	p := proposal{
		text: d.Text, change: d.Change, of: of, supersedes: -1, previous: -1, proposer: by, writers: sorted(append([]string{by}, r.writers...)), authors: r.authors,
	}
	if len(d.Supersedes) > 0 {
		p.supersedes = seen.index[d.Supersedes[0]]
	}
	return m.submit(feedback.Submission{Draft: d, Actor: by, Reason: "x"}, p)
}

func (m *Model) which(t *rapid.T) int {
	var all []int
	for i := range m.state.proposals {
		all = append(all, i)
	}
	return one(t, all)
}

func (m *Model) edit(t *rapid.T, seen ids) act {
	i := m.which(t)
	if i < 0 {
		return act{}
	}
	by, text := who(t), rapid.SampledFrom(texts).Draw(t, "text")
	d := seen.proposals[i].Draft
	d.Text, d.Change, d.Of = text, "", ""
	return act{
		func(s *feedback.Service) error {
			_, err := s.Rules().Propose(ctx, feedback.Submission{Draft: d, Replaces: seen.proposals[i].ID, Actor: by, Reason: "x"})
			return err
		},
		func(s *state) bool {
			if !m.decidable(s, i) || s.proposals[i].of >= 0 {
				return true
			}
			p := s.proposals[i]
			if text != p.text && text != texts[2] && p.evidence { // which says something else
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

func (m *Model) reject(t *rapid.T, seen ids) act {
	i, by := m.which(t), who(t)
	if i < 0 {
		return act{}
	}
	return act{
		func(s *feedback.Service) error {
			_, err := s.Rules().Review(ctx, feedback.Review{Proposal: seen.proposals[i].ID,
				Decision: feedback.Rejected, Actor: by, Reason: "x"})
			return err
		},
		func(s *state) bool {
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

func (m *Model) takeOut(t *rapid.T, seen ids) act {
	i, by := one(t, slices.Sorted(maps.Keys(m.state.rules))), who(t)
	if i < 0 {
		return act{}
	}
	to := rapid.SampledFrom([]feedback.State{feedback.StateRetired, feedback.StateRevoked}).Draw(t, "to")
	return act{
		func(s *feedback.Service) error {
			_, err := s.Rules().Move(ctx, feedback.Order{ID: seen.rules[i].ID, Actor: by, Reason: "x"}, to)
			return err
		},
		func(s *state) bool {
			r := s.rules[i]
			if r.status != feedback.StateActive && (to == feedback.StateRetired || r.status != feedback.StateRetired) {
				return true
			}
			r.status = to
			s.rules[i] = r
			return false
		},
	}
}

func (m *Model) approve(t *rapid.T, seen ids) act {
	i, by := m.which(t), who(t)
	if i < 0 {
		return act{}
	}
	p := seen.proposals[i]
	review := feedback.Review{Proposal: p.ID, Decision: feedback.Approved, Actor: by, Reason: "x",
		Hash: p.Hash()}
	stale := rapid.IntRange(0, 9).Draw(t, "stale") == 0
	if stale {
		review.Hash = strings.Repeat("0", 64)
	}
	over := approval{who: by}
	if rapid.IntRange(0, 3).Draw(t, "overrides") > 0 {
		over.over = m.state.active()
	}
	for _, r := range over.over {
		review.Override = append(review.Override, seen.rules[r].ID)
	}
	return act{
		func(s *feedback.Service) error { _, err := s.Rules().Review(ctx, review); return err },
		func(s *state) bool { return m.approved(s, i, over, stale) },
	}
}

// approved is what an approval should do.
func (m *Model) approved(s *state, i int, a approval, stale bool) (refused bool) {
	p := &s.proposals[i]
	mine := slices.IndexFunc(p.approvals, func(o approval) bool { return o.who == a.who })
	if p.status == feedback.StateApproved && mine >= 0 && !stale {
		return false
	}
	barred := func() bool {
		return stale || slices.Contains(p.writers, a.who) || m.gate.Outsiders == m.gate.Quorum && slices.Contains(p.authors, a.who)
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

func (a *approval) overrides(against []int) bool {
	return !slices.ContainsFunc(against, func(r int) bool { return !slices.Contains(a.over, r) })
}

// against are the active rules that a proposal contradicts.
func (s *state) against(p *proposal) (all []int) {
	if p.change == feedback.Pin || p.change == feedback.Unpin {
		return nil
	}
	for _, r := range s.active() {
		said := []string{p.text, s.rules[r].text}
		slices.SortFunc(said, func(a, b string) int { return cmp.Compare(slices.Index(texts, a), slices.Index(texts, b)) })
		if slices.Equal(said, texts[:2]) && r != p.of && (p.of >= 0 || r != p.supersedes) {
			all = append(all, r)
		}
	}
	return all
}

// enact makes the rule of a proposal, or its change, if the rules that it is about are in the states for it.
func (s *state) enact(i int) bool {
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
	s.rules[i] = rule{p.text, feedback.StateActive, false, p.writers, p.authors}
	return true
}
