package view_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

var update = flag.Bool("update", false, "write testdata/views.txt")

// A story is an agent with all its parts, to which known things happened.
type story struct {
	*testing.T
	agent *loop.Agent
	world *looptest.World
	store *storetest.Failing
	ids   []string // of the answers, the first first
}

// ask has a person ask something a minute later, and returns the answer's id.
func (s *story) ask(person, session, text, item string) string {
	s.Helper()
	s.world.Advance(time.Minute)
	got, err := s.agent.Answer(s.Context(), loop.Event{
		Text: text, Person: person, Session: session, Item: item, Context: "chat", Task: session,
		Domain: map[bool]string{true: "tls"}[strings.Contains(text, "certificate")],
	})
	require.NoError(s, err)
	s.ids = append(s.ids, got.ID)
	return got.ID
}

// proposes proposes a rule and has people approve it.
func (s *story) proposes(d feedback.Draft, approve ...string) feedback.Proposal {
	s.Helper()
	s.world.Advance(time.Minute)
	rules := s.agent.Feedback().Rules()
	p, err := rules.Propose(s.Context(), feedback.Submission{
		Draft: d, Actor: "wendy", Reason: "seen",
	})
	require.NoError(s, err)
	for _, who := range approve {
		p, err = rules.Review(s.Context(), feedback.Review{
			Proposal: p.ID, Decision: feedback.Approved, Actor: who, Reason: "right", Hash: p.Hash(),
		})
		require.NoError(s, err)
	}
	return p
}

// told has all happen: answers of models, of a heuristic and without learning, praise, blame and
// withdrawals, rules in each state, corrections that agree and that do not, ways of working.
func told(t *testing.T) *story {
	t.Helper()
	var world *looptest.World
	kept, err := memstore.New(memstore.Config{Now: func() time.Time {
		if world == nil {
			return time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
		}
		return world.Now()
	}})
	require.NoError(t, err)
	st := &storetest.Failing{Store: kept}
	var agent *loop.Agent
	agent, world = looptest.New(t, loop.Config{
		Store: st, Name: "ops", Instruments: []string{"ci"}, Control: 0.3,
		Lessons: loop.Lessons{
			Heuristics: []learning.Heuristic{
				{ID: "rotate", Domain: "tls", Condition: "a certificate has expired", Action: "Renew it.",
					Initial: 0.9},
				{ID: "greet", Condition: "good morning to the desk", Action: "Hello.", Initial: 0.75},
				{ID: "shy", Domain: "tls", Condition: "a key is weak", Action: "Ask.", Initial: 0.3},
			},
			Arms: []loop.Arm{{ID: "brief", System: "Be brief."}, {ID: "long", System: "Explain."}},
		},
	}, "Rotate its logs.", "Add a disk.")
	s := &story{T: t, agent: agent, world: world, store: st}
	ctx := t.Context()
	for i := range 12 {
		s.ask([]string{"ann", "bob"}[i%2], fmt.Sprint("s", i), "The disk is full.",
			[]string{"db-1", "db-2", ""}[i%3])
	}
	s.ask("ann", "s20", "Good morning to the desk", "")
	s.ask("bob", "s21", "A certificate has expired", "")
	for i, who := range []string{"ann", "bob", "kim", "lee", "kim"} {
		id := s.ask(who, fmt.Sprint("s3", i), "A certificate has expired", "")
		require.NoError(t, agent.React(ctx, id, loop.Reaction{Person: who, Value: 1 - 0.5*float64(i)}))
	}
	for i, value := range []float64{1, 0.5, -1, 1, -0.25, 0, 1, -1, 1, 0, 1, 1, -1, 1} {
		if value != 0 {
			require.NoError(t, agent.React(ctx, s.ids[i], loop.Reaction{Person: "ann", Value: value}))
		}
	}
	failed := false
	require.NoError(t, agent.Outcome(ctx, s.ids[1], loop.Outcome{Success: &failed, Source: "ci"}))
	require.NoError(t, agent.Undo(ctx, s.ids[3], "bob"))
	world.Advance(24 * time.Hour)
	next := s.ask("ann", "s0", "And the next one?", "db-1")
	require.Equal(t, "event-20", next)
	require.NoError(t, agent.Learning().Pin(ctx, learning.Pin{
		HeuristicID: "shy", Actor: "kim", Reason: "audit",
		Constraints: learning.Constraints{Floor: 0.8, Ceiling: 0.8},
	}))
	s.rules()
	s.ways()
	_, err = agent.Strategy().Select(ctx, strategy.Query{Session: "own", Context: "own"})
	require.NoError(t, err) // a choice without an answer
	s.ask("zoe", "s40", "Which disk is open?", "db-3")
	return s
}

// rules has proposals and rules in all states, and corrections that wait, agree and contradict.
func (s *story) rules() {
	ops := []string{"ops"}
	first := s.proposes(feedback.Draft{Text: "Name the server.", Agents: ops}, "ann", "bob")
	s.proposes(feedback.Draft{
		Text: "Never run rm.", AllAgents: true, Type: "CONSTRAINT",
		Check: feedback.Check{Tool: "*", Forbid: "rm"},
	}, "ann", "bob")
	other := feedback.Draft{Text: "Greet first.", Agents: []string{"night"}}
	retired := s.proposes(other, "ann", "bob")
	rules := s.agent.Feedback().Rules()
	_, err := rules.Move(s.Context(), feedback.Act{
		ID: retired.ID, Actor: "kim", Reason: "old",
	}, feedback.StateRetired)
	require.NoError(s, err)
	edited := first.Draft
	edited.Change, edited.Of = "PIN", first.ID
	s.proposes(edited, "ann", "bob")
	s.proposes(feedback.Draft{Text: "Do not name the server.", Agents: ops})
	s.proposes(feedback.Draft{Text: "Say which disk.", Agents: ops}, "ann")
	s.proposes(feedback.Draft{
		Text: "Let the desk renew.", Agents: ops, Check: feedback.Check{Forbid: "Renew"},
	})
	no := s.proposes(feedback.Draft{Text: "Answer in verse.", Agents: ops})
	shorter := feedback.Draft{Text: "Say the disk.", Agents: ops}
	old := s.proposes(feedback.Draft{Text: "Say which disk it is.", Agents: ops})
	s.world.Advance(time.Minute)
	_, err = rules.Propose(s.Context(), feedback.Submission{
		Draft: shorter, Replaces: old.ID, Actor: "kim", Reason: "shorter",
	})
	require.NoError(s, err)
	_, err = rules.Review(s.Context(), feedback.Review{
		Proposal: no.ID, Decision: feedback.Rejected, Actor: first.ID, Reason: "no",
	})
	require.NoError(s, err)
	for i, c := range []feedback.Feedback{
		{Reviewer: "ann", Summary: "Give every time with its time zone"},
		{Reviewer: "bob", Summary: "Give every time with its time zone"},
		{Reviewer: "kim", Summary: "Never give a time with its time zone"},
		{Reviewer: "lee", Summary: "Give times with their time zones, please"},
		{Reviewer: "ann", Summary: "Cite the runbook", Comment: "by its number"},
		{Reviewer: "bob", Summary: "Cite the runbook"},
		{Reviewer: "kim", Summary: "Draw a picture"},
	} {
		s.world.Advance(time.Minute)
		c.ID, c.Gate, c.Agent, c.At = fmt.Sprint("c", i), "desk", "ops", s.world.Now()
		c.Decision, c.OutputSHA, c.ApprovedSHA = feedback.ApprovedWithChanges, c.ID, c.ID+"x"
		_, err := s.agent.Feedback().Record(s.Context(), c)
		require.NoError(s, err)
		if i == 6 {
			continue // it is not evaluated yet
		}
		_, err = s.agent.Feedback().Evaluate(s.Context(), c.ID)
		require.NoError(s, err)
	}
	_, _, err = s.agent.Feedback().Flush(s.Context())
	require.NoError(s, err)
}

// ways has ways of working that succeed, fail, and are warned of.
func (s *story) ways() {
	recorder := s.agent.Patterns()
	for _, p := range []patterns.Pattern{
		{ID: "edits", Anti: true, Content: "Edit before reading.", Reason: "It broke the build."},
		{ID: "tests", Content: "Write the test first.", Tags: []string{"go"}},
	} {
		s.world.Advance(time.Minute)
		_, err := recorder.Define(s.Context(), p)
		require.NoError(s, err)
	}
	for i, way := range []patterns.PatternID{
		"tests", "tests", "tests", "tests", "tests", "bad", "bad", "bad", "bad", "bad", "bad",
	} {
		s.world.Advance(time.Minute)
		_, err := recorder.Record(s.Context(), patterns.Outcome{
			ID: fmt.Sprint("o", i), Task: fmt.Sprint("t", i), Description: "Mend " + string(way),
			Success: way == "tests", Strategy: way, At: s.world.Now(),
		})
		require.NoError(s, err)
	}
}

// A reading reads something that is shown.
type reading struct {
	name string
	read func() (any, error)
}

// All that is shown of an agent, of another one in the same store, of one without any event, and
// of a tenant, is as testdata/views.txt has it. After a change, run the test with -update and read
// the difference.
func TestAllThatIsShown(t *testing.T) {
	s := told(t)
	var b strings.Builder
	see := func(of *view.Source, name string) {
		fmt.Fprintf(&b, "\n# %s\n", name)
		for _, r := range s.readings(of) {
			fmt.Fprintf(&b, "\n## %s\n", r.name)
			got, err := r.read()
			if err != nil {
				fmt.Fprintln(&b, "error:", err)
			} else {
				b.WriteString(show(reflect.ValueOf(got), "") + "\n")
			}
		}
	}
	see(view.Of(s.agent, s.world.Now), "ops")
	cfg := s.world.Config
	cfg.Name, cfg.Control = "night", 0
	night, err := loop.New(t.Context(), cfg)
	require.NoError(t, err)
	_, err = night.Answer(t.Context(), loop.Event{Text: "The disk is full.", Person: "zoe"})
	require.NoError(t, err)
	see(view.Of(night, s.world.Now), "night, in the same store")
	acme, err := s.agent.Tenant(t.Context(), "acme")
	require.NoError(t, err)
	see(view.Of(acme, s.world.Now), "a tenant without events")
	isAsIn(t, "testdata/views.txt", b.String())
}

// isAsIn compares what was written with a file.
func isAsIn(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	for i, line := range strings.Split(got, "\n") {
		lines := strings.Split(string(want), "\n")
		require.Less(t, i, len(lines), file)
		require.Equal(t, lines[i], line, "%s:%d", file, i+1)
	}
	require.Len(t, got, len(want))
}

// Whichever call of the store fails, its error is returned, and no part of what is shown.
func TestAFailingStoreShowsNothing(t *testing.T) {
	s := told(t)
	of := view.Of(s.agent, s.world.Now)
	failed := 0
	for _, r := range s.readings(of) {
		for at := 1; ; at++ {
			s.store.Fail(at, false)
			_, err := r.read()
			if !s.store.Failed() {
				break
			}
			failed++
			require.ErrorIs(t, err, storetest.ErrFailed, "%s, call %d", r.name, at)
		}
	}
	assert.Greater(t, failed, 100)
}

// readings are all that is shown of an agent.
func (s *story) readings(of *view.Source) []reading {
	ctx := s.Context()
	return slices.Concat(s.ofAnswers(ctx, of), s.ofChanges(ctx, of), ofHeuristics(ctx, of),
		ofArms(ctx, of), ofWays(ctx, of), ofRules(ctx, of), ofReviews(ctx, of))
}

// named makes a reading of a query, which it is named after.
func named[Q, T any](of string, q Q, read func(Q) (T, error)) reading {
	return reading{of + " " + show(reflect.ValueOf(q), ""), func() (any, error) { return read(q) }}
}

func (s *story) ofAnswers(ctx context.Context, of *view.Source) (all []reading) {
	some := view.Page{Limit: 50}
	for i, q := range []view.AnswerQuery{
		{Page: some}, {Sort: view.Worst, Page: view.Page{Limit: 2}}, {Outcome: view.Bad, Page: some},
		{Person: "bob", Page: some}, {Arm: "brief", Outcome: view.Good, Page: some},
		{Since: "2026-01-06", Page: some}, {Until: "2026-01-05", Page: some},
		{Until: "2026-01-05T09:05:00Z", Page: some}, {Page: view.Page{Limit: 2}},
		{Outcome: view.Open, Page: some}, {Outcome: "fine"}, {Since: "soon"}, {Until: "soon"},
		{Sort: "best"},
	} {
		all = append(all, named("answers", q, func(q view.AnswerQuery) (view.List[view.Answer], error) {
			l, err := of.Answers(ctx, q)
			if i == 0 {
				for i := range l.Items {
					short(l.Items[i].Asked)
				}
				return l, err
			}
			for i := range l.Items { // the other queries only select
				l.Items[i] = view.Answer{ID: l.Items[i].ID, Worth: l.Items[i].Worth}
			}
			return l, err
		}))
	}
	for _, id := range []string{s.ids[2], s.ids[13], s.ids[19], s.ids[20], "unknown"} {
		all = append(all, named("answer", id, func(id string) (view.Answer, error) {
			a, err := of.Answer(ctx, id)
			short(a.Asked)
			return a, err
		}), named("explanation", id, func(id string) (view.Explanation, error) {
			e, err := of.Explain(ctx, id)
			e.Account, e.Tree.On = loop.Account{ID: e.ID}, nil // which are package loop's
			short(e.Asked)
			return e, err
		}), named("explanation without the agent", id, func(id string) (string, error) {
			alone := *of
			alone.Agent = nil
			e, err := alone.Explain(ctx, id)
			return e.Tree.Text, err
		}))
	}
	return append(all, reading{"gain", func() (any, error) {
		g, err := of.Gain(ctx)
		g.Gain = loop.Gain{}
		return g, err
	}})
}

// short keeps the first line of a prompt.
func short(a *view.Asked) {
	if a != nil {
		a.System, _, _ = strings.Cut(a.System, "\n")
	}
}

func (s *story) ofChanges(ctx context.Context, of *view.Source) (all []reading) {
	some := view.Page{Limit: 100}
	for _, q := range []view.ChangeQuery{
		{Page: some}, {Kind: "heuristic", Page: some}, {Kind: "statement", Page: some},
		{Action: "learning.", Page: some}, {Name: "kim", Page: some}, {Page: view.Page{Limit: 2}},
		{Since: "2026-01-06T09:22:00Z", Page: some}, {Until: "2026-01-05", Page: some},
		{Domain: "tls", Page: some}, {Domain: "desk", Page: some}, {Kind: "other"}, {Since: "x"},
		{Until: "x"},
	} {
		all = append(all, named("changes", q, func(q view.ChangeQuery) (view.List[string], error) {
			l, err := of.Changes(ctx, q)
			rows := view.List[string]{Next: l.Next}
			for i := range l.Items {
				c := &l.Items[i]
				category, segment, ok := c.Segment()
				rows.Items = append(rows.Items, fmt.Sprint(c.Kind, " ", c.Action, " ", c.Subject, " ",
					c.Actor, " ", category, " ", segment, " ", ok))
			}
			return rows, err
		}))
	}
	return all
}

func ofHeuristics(ctx context.Context, of *view.Source) (all []reading) {
	all = append(all, reading{"heuristics", func() (any, error) {
		return of.Heuristics(ctx, view.HeuristicQuery{})
	}}, reading{"heuristics of a domain", func() (any, error) {
		l, err := of.Heuristics(ctx, view.HeuristicQuery{
			Domain: "tls", Page: view.Page{Search: "key ask", Limit: 1},
		})
		return len(l.Items), err
	}})
	for _, id := range []string{"greet", "rotate", "shy", "unknown"} {
		all = append(all, named("heuristic", id, func(id string) (view.HeuristicDetail, error) {
			d, err := of.Heuristic(ctx, id, 100)
			for i := range d.History {
				d.History[i] = evidence.Observation{Channel: view.ChannelOf(&d.History[i])}
			}
			return d, err
		}))
	}
	return all
}

func ofArms(ctx context.Context, of *view.Source) []reading {
	return []reading{
		{"segments", func() (any, error) { return of.Segments(ctx, view.Page{}) }},
		{"segments that are searched", func() (any, error) {
			l, err := of.Segments(ctx, view.Page{Search: "other"})
			return l.Total, err
		}},
		{"names of segments", func() (any, error) { return of.SegmentNames(ctx) }},
		{"segment", func() (any, error) {
			return of.Segment(ctx, strategy.Query{Context: "chat"}, 100)
		}},
		{"another segment", func() (any, error) {
			return of.Segment(ctx, strategy.Query{Category: "other", Context: "chat"}, 100)
		}},
		{"items", func() (any, error) {
			return of.Items(ctx, "db-1", []strategy.Query{{Context: "chat"}, {Category: "other"}})
		}},
		{"choices", func() (any, error) {
			choices, err := of.Choices(ctx, view.ChoiceQuery{Item: "db-1"}, 2)
			for i := range choices {
				choices[i].Choice.ID = strategy.ChoiceID{} // it is drawn
			}
			return choices, err
		}},
		{"status", func() (any, error) {
			status, err := of.Status(ctx)
			for i := range status.Leading {
				status.Leading[i] = view.Segment{Leading: status.Leading[i].Leading}
			}
			return status, err
		}},
	}
}

func ofWays(ctx context.Context, of *view.Source) (all []reading) {
	all = append(all, reading{"ways", func() (any, error) {
		return of.Ways(ctx, view.WayQuery{})
	}})
	for _, q := range []view.WayQuery{
		{Tag: "go"}, {State: "inverted"}, {Warned: true},
		{Page: view.Page{Search: "go"}},
	} {
		all = append(all, named("ways", q, func(q view.WayQuery) (string, error) {
			l, err := of.Ways(ctx, q)
			var ids []string
			for i := range l.Items {
				ids = append(ids, string(l.Items[i].ID))
			}
			return strings.Join(ids, " "), err
		}))
	}
	for _, id := range []string{"tests", "bad", "unknown"} {
		all = append(all, named("way", id, func(id string) (view.WayDetail, error) {
			way, err := of.Way(ctx, id)
			for i := range way.Transitions {
				way.Transitions[i].ID = "" // it is drawn
			}
			return way, err
		}))
	}
	return all
}

func ofRules(ctx context.Context, of *view.Source) (all []reading) {
	for _, q := range []view.RuleQuery{
		{}, {Status: "active", Agent: "ops"}, {Status: "pending"}, {Status: "REJECTED"},
		{Status: "expired"}, {Status: "documented"}, {Status: "retired"},
		{Page: view.Page{Search: "night"}},
	} {
		all = append(all, named("rules or proposals", q,
			func(q view.RuleQuery) (view.List[view.Rule], error) { return of.RulesOrProposals(ctx, q) }))
	}
	for _, q := range []view.RuleQuery{
		{}, {Page: view.Page{Limit: 1, Search: "server"}}, {Status: "approved"},
	} {
		all = append(all, named("proposals", q, func(q view.RuleQuery) (string, error) {
			l, err := of.Proposals(ctx, q)
			ids := fmt.Sprint(l.Total, " ", l.Next, " ")
			for i := range l.Items {
				ids += " " + l.Items[i].ID
			}
			return ids, err
		}))
	}
	return all
}

// ofReviews reads what people need to decide.
func ofReviews(ctx context.Context, of *view.Source) (all []reading) {
	all = append(all, named("report", "other", func(id string) (view.Report, error) {
		return of.Report(ctx, id)
	}))
	for i := range 45 { // the ids in between are of entries in the log
		id := fmt.Sprint("proposal-", i+1)
		if _, err := of.Feedback.Rules().Proposal(ctx, id); err != nil {
			continue
		}
		all = append(all, named("report", id, func(id string) (view.Report, error) {
			r, err := of.Report(ctx, id)
			if r.Proposal != nil {
				r.Proposal = &feedback.Proposal{ID: r.Proposal.ID}
			}
			if r.Rule != nil {
				r.Rule = &feedback.Rule{ID: r.Rule.ID}
			}
			for i := range r.Before {
				r.Before[i] = feedback.Proposal{ID: r.Before[i].ID}
			}
			for i := range r.History {
				r.History[i] = store.AuditEntry{Action: r.History[i].Action, Actor: r.History[i].Actor}
			}
			r.Sources = idsOf(r.Sources)
			return r, err
		}))
	}
	return append(all, reading{"pending", func() (any, error) {
		mine := func(p *feedback.Proposal) bool { return len(p.Approvals) > 0 }
		pending, err := of.Pending(ctx, view.Page{}, mine)
		for i, p := range pending.Items {
			pending.Items[i] = feedback.Proposal{ID: p.ID}
		}
		return pending, err
	}}, reading{"inbox", func() (any, error) {
		inbox, err := of.Inbox(ctx, 1)
		if err != nil {
			return nil, err
		}
		for i := range inbox.Disputed {
			d := &inbox.Disputed[i]
			*d = view.Disputed{
				Feedback: feedback.Feedback{ID: d.ID}, Other: &feedback.Feedback{ID: d.Other.ID},
			}
		}
		return inbox, err
	}}, reading{"waiting", func() (any, error) {
		waiting, err := of.Waiting(ctx)
		return idsOf(waiting), err
	}}, reading{"similar", func() (any, error) {
		waiting, err := of.Waiting(ctx)
		if err != nil {
			return nil, err
		}
		similar, err := of.Similar(ctx, waiting, 2)
		for i := range similar {
			similar[i].Feedback = feedback.Feedback{ID: similar[i].ID}
			similar[i].Others = idsOf(similar[i].Others)
		}
		return similar, err
	}}, reading{"together", func() (any, error) {
		var found [][]feedback.Feedback
		for i := range 6 {
			c, err := of.Feedback.Feedback(ctx, fmt.Sprint("c", i))
			if errors.Is(err, heed.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			together, err := of.Together(ctx, &c)
			if err != nil {
				return nil, err
			}
			found = append(found, idsOf(together))
		}
		return found, nil
	}})
}

// idsOf returns corrections with their ids alone.
func idsOf(all []feedback.Feedback) (short []feedback.Feedback) {
	for i := range all {
		short = append(short, feedback.Feedback{ID: all[i].ID})
	}
	return short
}

// show writes a value with all fields that are not zero, on one line if that is short. Numbers have
// six digits, because processors round differently.
func show(v reflect.Value, indent string) string {
	if v.IsValid() && v.Type() == reflect.TypeFor[time.Time]() {
		return v.Interface().(time.Time).UTC().Format("01-02T15:04:05.999999")
	}
	var parts []string
	open, end := "{", "}"
	deeper := indent + "  "
	switch v.Kind() {
	case reflect.Invalid:
		return "nil"
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return show(v.Elem(), indent)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', 6, 64)
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Slice:
		open, end = "[", "]"
		for i := range v.Len() {
			parts = append(parts, show(v.Index(i), deeper))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			parts = append(parts, fmt.Sprint(key)+": "+show(v.MapIndex(key), deeper))
		}
		slices.Sort(parts)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				parts = append(parts, f.Name+": "+show(v.Field(i), deeper))
			}
		}
	default:
		return fmt.Sprint(v)
	}
	line := open + strings.Join(parts, ", ") + end
	if len(indent)+len(line) <= 140 {
		return line
	}
	return open + "\n" + deeper + strings.Join(parts, ",\n"+deeper) + "\n" + indent + end
}
