package feedbacktest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
)

var (
	start = time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC)
	ctx   = context.Background()
)

// A fixture is a store under test.
type fixture struct {
	tb
	store feedback.Store
}

func newFixture(t tb, newStore NewStore) *fixture {
	t.Helper()
	store, err := newStore()
	if err != nil {
		t.Fatalf("the store can't be made: %v", err)
	}
	return &fixture{t, store}
}

func (f *fixture) apply(c feedback.Change) {
	f.Helper()
	if err := f.store.Apply(ctx, c); err != nil {
		f.Fatalf("Apply: %v", err)
	}
}

func (f *fixture) conflicts(c feedback.Change) {
	f.Helper()
	if err := f.store.Apply(ctx, c); !errors.Is(err, heed.ErrConflict) {
		f.Fatalf("Apply gave %v, not a heed.ErrConflict", err)
	}
}

func (f *fixture) equal(got, want any) {
	f.Helper()
	if !reflect.DeepEqual(got, want) {
		f.Errorf("got %+v, want %+v", got, want)
	}
}

func (f *fixture) revision(name string) uint64 {
	f.Helper()
	revisions, err := f.store.Revisions(ctx, name)
	if err != nil || len(revisions) != 1 {
		f.Fatalf("Revisions: %v, %v", revisions, err)
	}
	return revisions[0]
}

func (f *fixture) record(id string) feedback.Record {
	f.Helper()
	r, err := f.store.Record(ctx, id)
	if err != nil {
		f.Fatalf("Record: %v", err)
	}
	return r
}

func all[T any](f *fixture, seq iter.Seq2[T, error]) (all []T) {
	f.Helper()
	for one, err := range seq {
		if err != nil {
			f.Fatalf("the loop ended with %v", err)
		}
		all = append(all, one)
	}
	return all
}

func ids[T any](f *fixture, seq iter.Seq2[T, error], id func(T) string) (names []string) {
	f.Helper()
	for _, one := range all(f, seq) {
		names = append(names, id(one))
	}
	return names
}

func (f *fixture) recordIDs(q feedback.Query) []string {
	f.Helper()
	return ids(f, f.store.Records(ctx, q), func(r feedback.Record) string { return r.ID })
}

func record(id string) feedback.Record {
	return feedback.Record{
		Feedback: feedback.Feedback{
			ID: id, Gate: "gate", Agent: "agent", Epic: "epic", Task: "task", Decision: feedback.ApprovedWithChanges,
			Reviewer: "ann", At: start, Duration: 90 * time.Second, OutputSHA: "1", ApprovedSHA: "2", DiffPath: "a.diff",
			Summary: "too long", Comment: "much", Severity: feedback.High, Tags: []string{"scope", "style"}, Rules: []string{"r"},
		},
		Evaluation: feedback.Evaluation{
			Class: feedback.EdgeCase, Confidence: 0.25, Rationale: "alone", Similar: []string{"x"}, Cluster: id, Link: 0.5,
			Action: feedback.DocumentOnly, Resolution: "so", Resolver: "cleo",
		},
		Recorded: start.Add(time.Second),
	}
}

func draft() feedback.Draft {
	return feedback.Draft{
		Action: feedback.CreateRule, Type: feedback.Guideline, Text: "be short", Agents: []string{"agent", "other"},
		Place: "style", Supersedes: []string{"old"},
	}
}

func approvals() []feedback.Approval {
	return []feedback.Approval{{Actor: "cleo", Reason: "yes", Hash: "h", Override: []string{"o"}, At: start}}
}

func proposal(id string) feedback.Proposal {
	return feedback.Proposal{
		ID: id, Draft: draft(), Cluster: "c", Evidence: []string{"d"}, Occurrences: 3, Reviewers: 2, Summary: "three",
		Confidence: 0.75, Authors: []string{"ann"}, Writers: []string{"bob"}, Warnings: []string{"w"},
		Conflicts: []feedback.Conflict{{Kind: feedback.Overlap, ID: "r", Score: 0.5, Explanation: "alike"}},
		Status:    feedback.StatusPending, Approvals: approvals(), Previous: "p", Created: start, Expires: start.Add(time.Hour),
	}
}

func rule(id string) feedback.Rule {
	return feedback.Rule{
		ID: id, Draft: draft(), Clusters: []string{"c"}, Authors: []string{"ann"}, Writers: []string{"bob"},
		Approvals: approvals(), Status: feedback.RuleActive, Pinned: true, Activated: start, Since: start,
		Effect: feedback.Effect{Status: feedback.Effective, Basis: "recurrence", Improvement: 0.5, Measured: start},
	}
}

func entry(id string) evidence.AuditEntry {
	return evidence.AuditEntry{
		ID: id, At: start, Actor: "cleo", Action: "feedback.approve", Subject: "p", Reason: "yes",
		Details: map[string]string{"hash": "h"},
	}
}

func readsBack(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	r, p, u := record("d"), proposal("p"), rule("r")
	f.apply(feedback.Change{Records: []feedback.Record{r}, Proposals: []feedback.Proposal{p}, Rules: []feedback.Rule{u}})
	r.Revision, p.Revision, u.Revision = 1, 1, 1
	f.equal(f.record("d"), r)
	f.equal(all(f, f.store.Records(ctx, feedback.Query{})), []feedback.Record{r})
	f.equal(all(f, f.store.Proposals(ctx, feedback.ProposalQuery{})), []feedback.Proposal{p})
	f.equal(all(f, f.store.Rules(ctx, feedback.RuleQuery{})), []feedback.Rule{u})
	gotP, err := f.store.Proposal(ctx, "p")
	f.equal(err, nil)
	f.equal(gotP, p)
	gotU, err := f.store.Rule(ctx, "r")
	f.equal(err, nil)
	f.equal(gotU, u)

	r.Summary, p.Status, u.Status = "changed", feedback.StatusRejected, feedback.RuleRetired
	p.Decided, p.Decider, p.Reason, u.Left, u.SupersededBy = start, "dan", "no", start, "s"
	f.apply(feedback.Change{Records: []feedback.Record{r}, Proposals: []feedback.Proposal{p}, Rules: []feedback.Rule{u}})
	r.Revision, p.Revision, u.Revision = 2, 2, 2
	f.equal(all(f, f.store.Records(ctx, feedback.Query{})), []feedback.Record{r})
	f.equal(all(f, f.store.Proposals(ctx, feedback.ProposalQuery{})), []feedback.Proposal{p})
	f.equal(all(f, f.store.Rules(ctx, feedback.RuleQuery{})), []feedback.Rule{u})
}

func notFound(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	_, record := f.store.Record(ctx, "x")
	_, proposal := f.store.Proposal(ctx, "x")
	_, rule := f.store.Rule(ctx, "x")
	for _, err := range []error{record, proposal, rule} {
		if !errors.Is(err, heed.ErrNotFound) {
			f.Errorf("got %v, not a heed.ErrNotFound", err)
		}
	}
	f.equal(f.revision("x"), uint64(0))
}

func revisionHolds(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	r, p, u := record("d"), proposal("p"), rule("r")
	for _, revision := range []uint64{1, 7} { // of what is not there
		r.Revision, p.Revision, u.Revision = revision, revision, revision
		f.conflicts(feedback.Change{Records: []feedback.Record{r}})
		f.conflicts(feedback.Change{Proposals: []feedback.Proposal{p}})
		f.conflicts(feedback.Change{Rules: []feedback.Rule{u}})
	}
	r.Revision, p.Revision, u.Revision = 0, 0, 0
	c := feedback.Change{Records: []feedback.Record{r}, Proposals: []feedback.Proposal{p}, Rules: []feedback.Rule{u}}
	f.apply(c)
	f.conflicts(feedback.Change{Records: c.Records})
	f.conflicts(feedback.Change{Proposals: c.Proposals})
	f.conflicts(feedback.Change{Rules: c.Rules})
	r.Revision, p.Revision, u.Revision = 2, 2, 2
	f.conflicts(feedback.Change{Records: []feedback.Record{r}})
	f.conflicts(feedback.Change{Proposals: []feedback.Proposal{p}})
	f.conflicts(feedback.Change{Rules: []feedback.Rule{u}})
	f.equal(f.record("d").Revision, uint64(1))
}

func namedRevision(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	f.apply(feedback.Change{Expect: map[string]uint64{"a": 0}, Audit: []evidence.AuditEntry{entry("1")}})
	f.conflicts(feedback.Change{Expect: map[string]uint64{"a": 0}})
	f.apply(feedback.Change{Expect: map[string]uint64{"a": 1, "b": 0}})
	f.apply(feedback.Change{Audit: []evidence.AuditEntry{entry("2")}})
	revisions, err := f.store.Revisions(ctx, "b", "c", "a")
	f.equal(err, nil)
	f.equal(revisions, []uint64{1, 0, 2})
}

func allOrNothing(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	f.apply(feedback.Change{Proposals: []feedback.Proposal{proposal("known")}, Expect: map[string]uint64{"a": 0}})
	good := feedback.Change{
		Expect: map[string]uint64{"a": 1}, Records: []feedback.Record{record("d")}, Proposals: []feedback.Proposal{proposal("p")},
		Rules: []feedback.Rule{rule("r")}, Audit: []evidence.AuditEntry{entry("1")},
	}
	stale := good
	stale.Proposals = []feedback.Proposal{proposal("p"), proposal("known")}
	f.conflicts(stale)
	behind := good
	behind.Expect = map[string]uint64{"a": 1, "b": 1}
	f.conflicts(behind)
	f.equal(f.recordIDs(feedback.Query{}), []string(nil))
	f.equal(len(all(f, f.store.Proposals(ctx, feedback.ProposalQuery{}))), 1)
	f.equal(len(all(f, f.store.Rules(ctx, feedback.RuleQuery{}))), 0)
	f.equal(len(all(f, f.store.Audit(ctx))), 0)
	f.equal(f.revision("a"), uint64(1))
	f.equal(f.revision("b"), uint64(0))
	f.apply(good)
}

func oneWins(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	const workers, rounds = 8, 25
	var wg sync.WaitGroup
	var mu sync.Mutex
	wins := map[string]int{}
	for worker := range workers {
		wg.Go(func() {
			for round := range rounds {
				p := proposal(fmt.Sprint(round))
				p.Decider = fmt.Sprint(worker)
				byValue := f.store.Apply(ctx, feedback.Change{Proposals: []feedback.Proposal{p}})
				byName := f.store.Apply(ctx, feedback.Change{
					Expect: map[string]uint64{fmt.Sprint("name", round): 0}, Audit: []evidence.AuditEntry{entry(fmt.Sprint(worker, "/", round))},
				})
				mu.Lock()
				if byValue == nil {
					wins[p.ID]++
				}
				if byName == nil {
					wins["name"+p.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for round := range rounds {
		f.equal(wins[fmt.Sprint(round)], 1)
		f.equal(wins[fmt.Sprint("name", round)], 1)
	}
	f.equal(len(all(f, f.store.Audit(ctx))), rounds)
}

func auditKept(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	f.apply(feedback.Change{Audit: []evidence.AuditEntry{entry("1"), entry("2")}})
	again := entry("1")
	again.Reason = "forged"
	f.apply(feedback.Change{Audit: []evidence.AuditEntry{again, entry("3")}})
	f.equal(all(f, f.store.Audit(ctx)), []evidence.AuditEntry{entry("3"), entry("2"), entry("1")})
}

func recordsInOrder(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	for _, at := range []struct {
		id     string
		offset time.Duration
	}{{"b", 1}, {"d", 2}, {"a", 1}, {"c", 3}, {"e", 0}} {
		r := record(at.id)
		r.At = start.Add(at.offset * time.Microsecond)
		f.apply(feedback.Change{Records: []feedback.Record{r}})
	}
	f.equal(f.recordIDs(feedback.Query{}), []string{"c", "d", "a", "b", "e"})
	f.equal(f.recordIDs(feedback.Query{Agent: "agent"}), []string{"c", "d", "a", "b", "e"})
	r := f.record("e")
	r.At = start.Add(time.Minute)
	f.apply(feedback.Change{Records: []feedback.Record{r}})
	f.equal(f.recordIDs(feedback.Query{}), []string{"e", "c", "d", "a", "b"})
}

func recordsSelected(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	for i, change := range []func(*feedback.Record){
		func(*feedback.Record) {},
		func(r *feedback.Record) { r.Agent = "Agent" },
		func(r *feedback.Record) { r.Gate = "other" },
		func(r *feedback.Record) { r.Class = "" },
		func(r *feedback.Record) { r.Cluster = "k" },
	} {
		r := record(fmt.Sprint(i))
		r.Cluster = "c"
		r.At = start.Add(time.Duration(i) * time.Hour)
		change(&r)
		f.apply(feedback.Change{Records: []feedback.Record{r}})
	}
	f.equal(f.recordIDs(feedback.Query{Agent: "agent"}), []string{"4", "3", "2", "0"})
	f.equal(f.recordIDs(feedback.Query{Gate: "gate"}), []string{"4", "3", "1", "0"})
	f.equal(f.recordIDs(feedback.Query{Class: feedback.EdgeCase}), []string{"4", "2", "1", "0"})
	f.equal(f.recordIDs(feedback.Query{Class: feedback.Unclassified}), []string{"3"})
	f.equal(f.recordIDs(feedback.Query{Cluster: "c"}), []string{"3", "2", "1", "0"})
	f.equal(f.recordIDs(feedback.Query{Since: start.Add(time.Hour), Until: start.Add(3 * time.Hour)}), []string{"2", "1"})
	f.equal(f.recordIDs(feedback.Query{Agent: "agent", Cluster: "c", Gate: "gate"}), []string{"3", "0"})
	f.equal(f.recordIDs(feedback.Query{Agent: "nobody"}), []string(nil))

	r := f.record("3")
	r.Class, r.Agent = feedback.EdgeCase, "moved"
	f.apply(feedback.Change{Records: []feedback.Record{r}})
	f.equal(f.recordIDs(feedback.Query{Class: feedback.Unclassified}), []string(nil))
	f.equal(f.recordIDs(feedback.Query{Agent: "agent"}), []string{"4", "2", "0"})
	f.equal(f.recordIDs(feedback.Query{Agent: "moved"}), []string{"3"})
}

func erased(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	f.apply(feedback.Change{Records: []feedback.Record{record("d")}})
	gone := feedback.Record{Feedback: feedback.Feedback{ID: "d"}, Recorded: start, Erased: start, Revision: 1}
	f.apply(feedback.Change{Records: []feedback.Record{gone}})
	gone.Revision = 2
	f.equal(f.record("d"), gone)
	f.equal(f.recordIDs(feedback.Query{}), []string(nil))
	f.equal(f.recordIDs(feedback.Query{Agent: "agent"}), []string(nil))
	f.equal(f.recordIDs(feedback.Query{Class: feedback.Unclassified}), []string(nil))
}

func proposalsSelected(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	for i, change := range []func(*feedback.Proposal){
		func(*feedback.Proposal) {},
		func(p *feedback.Proposal) { p.Status = feedback.StatusRejected },
		func(p *feedback.Proposal) { p.Agents = []string{"third"} },
		func(p *feedback.Proposal) { p.Agents, p.AllAgents = nil, true },
		func(p *feedback.Proposal) { p.Type = feedback.Constraint },
		func(p *feedback.Proposal) { p.Cluster = "k" },
		func(p *feedback.Proposal) { p.Writers = []string{"eve"} },
		func(p *feedback.Proposal) { p.Confidence = 0.7 },
	} {
		p := proposal(fmt.Sprint(i))
		p.Created = start.Add(time.Duration(i) * time.Hour)
		change(&p)
		f.apply(feedback.Change{Proposals: []feedback.Proposal{p}})
	}
	for want, q := range map[string]feedback.ProposalQuery{
		"76543210": {},
		"7654320":  {Status: feedback.StatusPending},
		"7654310":  {Agent: "other"},
		"32":       {Agent: "third"},
		"4":        {Type: feedback.Constraint},
		"5":        {Cluster: "k"},
		"6":        {Proposer: "eve"},
		"6543210":  {MinConfidence: 0.75},
		"":         {Status: feedback.StatusExpired},
	} {
		got := ""
		for _, id := range ids(f, f.store.Proposals(ctx, q), func(p feedback.Proposal) string { return p.ID }) {
			got += id
		}
		f.equal(got, want)
	}
}

func rulesSelected(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	for i, change := range []func(*feedback.Rule){
		func(*feedback.Rule) {},
		func(r *feedback.Rule) { r.Status = feedback.RuleRetired },
		func(r *feedback.Rule) { r.Agents, r.AllAgents = nil, true },
		func(r *feedback.Rule) { r.Agents = []string{"third"} },
	} {
		r := rule(fmt.Sprint(i))
		r.Activated = start.Add(time.Duration(i) * time.Hour)
		change(&r)
		f.apply(feedback.Change{Rules: []feedback.Rule{r}})
	}
	list := func(q feedback.RuleQuery) []string {
		return ids(f, f.store.Rules(ctx, q), func(r feedback.Rule) string { return r.ID })
	}
	f.equal(list(feedback.RuleQuery{}), []string{"3", "2", "1", "0"})
	f.equal(list(feedback.RuleQuery{Status: feedback.RuleActive}), []string{"3", "2", "0"})
	f.equal(list(feedback.RuleQuery{Status: feedback.RuleActive, Agent: "agent"}), []string{"2", "0"})
	f.equal(list(feedback.RuleQuery{Agent: "third"}), []string{"3", "2"})
}

func loopsAreFree(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	for _, id := range []string{"1", "2", "3"} {
		f.apply(feedback.Change{
			Records: []feedback.Record{record(id)}, Proposals: []feedback.Proposal{proposal(id)},
			Rules: []feedback.Rule{rule(id)}, Audit: []evidence.AuditEntry{entry(id)},
		})
	}
	turns, added := 0, 0
	again := func() bool {
		turns++
		added++
		f.apply(feedback.Change{Audit: []evidence.AuditEntry{entry(fmt.Sprint("added", added))}})
		f.recordIDs(feedback.Query{})
		return turns%2 == 1
	}
	for range f.store.Records(ctx, feedback.Query{}) {
		if !again() {
			break
		}
	}
	for range f.store.Proposals(ctx, feedback.ProposalQuery{}) {
		if !again() {
			break
		}
	}
	for range f.store.Rules(ctx, feedback.RuleQuery{}) {
		if !again() {
			break
		}
	}
	for range f.store.Audit(ctx) {
		if !again() {
			break
		}
	}
	f.equal(turns, 8)
}

func copied(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	c := feedback.Change{
		Records: []feedback.Record{record("d")}, Proposals: []feedback.Proposal{proposal("p")},
		Rules: []feedback.Rule{rule("r")}, Audit: []evidence.AuditEntry{entry("1")},
	}
	f.apply(c)
	spoil := func(r *feedback.Record, p *feedback.Proposal, u *feedback.Rule, e *evidence.AuditEntry) {
		r.Tags[0], r.Rules[0], r.Similar[0] = "spoilt", "spoilt", "spoilt"
		p.Agents[0], p.Supersedes[0], p.Evidence[0], p.Authors[0], p.Writers[0] = "spoilt", "spoilt", "spoilt", "spoilt", "spoilt"
		p.Warnings[0], p.Conflicts[0].ID, p.Approvals[0].Actor, p.Approvals[0].Override[0] = "spoilt", "spoilt", "spoilt", "spoilt"
		u.Agents[0], u.Clusters[0], u.Authors[0], u.Writers[0], u.Approvals[0].Override[0] = "spoilt", "spoilt", "spoilt", "spoilt", "spoilt"
		e.Details["hash"] = "spoilt"
	}
	spoil(&c.Records[0], &c.Proposals[0], &c.Rules[0], &c.Audit[0])
	for range 2 {
		r, p, u, e := f.record("d"), proposal("p"), rule("r"), all(f, f.store.Audit(ctx))[0]
		want := record("d")
		want.Revision, p.Revision, u.Revision = 1, 1, 1
		f.equal(r, want)
		gotP, _ := f.store.Proposal(ctx, "p")
		f.equal(gotP, p)
		gotU, _ := f.store.Rule(ctx, "r")
		f.equal(gotU, u)
		f.equal(e, entry("1"))
		spoil(&r, &gotP, &gotU, &e)
		r, gotP = all(f, f.store.Records(ctx, feedback.Query{}))[0], all(f, f.store.Proposals(ctx, feedback.ProposalQuery{}))[0]
		gotU = all(f, f.store.Rules(ctx, feedback.RuleQuery{}))[0]
		f.equal(gotP, p)
		spoil(&r, &gotP, &gotU, &e)
	}
}

func faithful(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	for i, text := range []string{" padded ", "x'; DROP TABLE rules; --", "line\nbreak\ttab\\", "ünïcödé 漢字 👩‍💻", "%_*?[]", "A", "a"} {
		r := record(fmt.Sprint(text))
		r.Agent, r.Gate, r.Summary, r.Comment, r.Cluster, r.Tags = text, text, text, text, text, []string{text}
		r.At = start.Add(time.Duration(i)*time.Microsecond + 24*time.Hour)
		f.apply(feedback.Change{Records: []feedback.Record{r}, Expect: map[string]uint64{text: 0}})
		r.Revision = 1
		f.equal(f.record(text), r)
		f.equal(f.recordIDs(feedback.Query{Agent: text, Gate: text, Cluster: text}), []string{text})
		f.equal(f.revision(text), uint64(1))
	}
	old := record("old")
	old.At, old.Duration, old.Link, old.Confidence = time.Unix(0, 1000).UTC(), 1<<60, 1, 0.1
	f.apply(feedback.Change{Records: []feedback.Record{old}})
	old.Revision = 1
	f.equal(f.record("old"), old)
}

func contextDone(t tb, newStore NewStore) {
	f := newFixture(t, newStore)
	f.apply(feedback.Change{Records: []feedback.Record{record("d")}, Audit: []evidence.AuditEntry{entry("1")}})
	done, cancel := context.WithCancel(ctx)
	cancel()
	errs := []error{f.store.Apply(done, feedback.Change{Records: []feedback.Record{record("e")}})}
	_, err := f.store.Revisions(done, "a")
	errs = append(errs, err)
	_, err = f.store.Record(done, "d")
	errs = append(errs, err)
	_, err = f.store.Proposal(done, "d")
	errs = append(errs, err)
	_, err = f.store.Rule(done, "d")
	errs = append(errs, err, first(f.store.Records(done, feedback.Query{})), first(f.store.Proposals(done, feedback.ProposalQuery{})),
		first(f.store.Rules(done, feedback.RuleQuery{})), first(f.store.Audit(done)))
	for i, err := range errs {
		if !errors.Is(err, context.Canceled) {
			f.Errorf("call %d gave %v", i, err)
		}
	}
	f.equal(f.recordIDs(feedback.Query{}), []string{"d"})
}

// first is the error with which a loop begins, if it does.
func first[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		return err
	}
	return nil
}
