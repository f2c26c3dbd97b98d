package feedback_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
)

// checking is a draft with a check.
func checking(text string, c feedback.Check) feedback.Draft {
	d := rule(text)
	d.Check = c
	return d
}

func (w *world) check(c feedback.Checked) (found []string) {
	w.t.Helper()
	if c.Agent == "" {
		c.Agent = "prd"
	}
	violations, err := feedback.CheckWith(ctx, w.rules, c)
	require.NoError(w.t, err)
	for _, v := range violations {
		prefix := ""
		if v.Unchecked {
			prefix = "unchecked: "
		}
		found = append(found, prefix+v.Text+": "+v.Reason)
	}
	return found
}

func TestChecks(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	for _, d := range []feedback.Draft{
		checking("Name no database", feedback.Check{Forbid: `(?i)\b(postgres|mysql)`}),
		checking("Greet", feedback.Check{Require: "^Hello "}),
		checking("No deletes", feedback.Check{Tool: "sql", Forbid: "(?i)delete|drop"}),
		checking("No secrets in calls", feedback.Check{Tool: "*", Forbid: "secret"}),
		checking("Short mails", feedback.Check{Tool: "mail", Require: "^.{0,20}$"}),
		rule("Be kind"),
	} {
		w.activate(d)
	}
	for _, test := range []struct {
		tool, text string
		broken     []string
	}{
		{"", "Hello Ann, use the store", nil},
		{"", `Hello Ann, read \u0050ostgres`, nil}, // because only arguments are decoded
		{"", "Use Postgres", []string{"Greet: it does not match ^Hello ",
			`Name no database: it matches (?i)\b(postgres|mysql)`}},
		{"sql", "select * from postgres", nil},
		{"sql", "drop table secret", []string{"No secrets in calls: it matches secret",
			"No deletes: it matches (?i)delete|drop"}},
		{"mail", "Hello Ann", nil},
		{"mail", "Hello Ann, how are you today?", []string{"Short mails: it does not match ^.{0,20}$"}},
		{"shell", "secret", []string{"No secrets in calls: it matches secret"}},
	} {
		assert.Equal(t, test.broken, w.check(feedback.Checked{Tool: test.tool, Text: test.text}),
			"%s %s", test.tool, test.text)
	}
	assert.Empty(t, w.check(feedback.Checked{Agent: "coder", Text: "Use Postgres"}),
		"the rules are another agent's")
	assert.Len(t, w.inject("prd", "").Checked, 5)
	assert.Equal(t, []string{
		"unchecked: Greet: the text is 65537 bytes long, and 65536 can be compared with an expression"},
		w.check(feedback.Checked{ID: "long", Text: strings.Repeat("x", 65537)})[:1],
		"nothing passes silently")
	assert.Equal(t, []string{"Greet: it does not match ^Hello "},
		w.check(feedback.Checked{Text: strings.Repeat("x", 65536)}))
	for _, p := range w.proposals(feedback.StateApproved) {
		assert.Zero(t, w.effect(p.ID).Checks, "and nothing is counted")
	}
	for field, c := range map[string]feedback.Checked{"Agent": {}, "ID": {Agent: "prd", ID: "\x00"},
		"Tool": {Agent: "prd", Tool: "\x00"}} {
		_, err := feedback.CheckWith(ctx, w.rules, c)
		var fault *heed.InputError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, field, fault.Field)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err := feedback.CheckWith(done, w.rules, feedback.Checked{Agent: "prd", Tool: "sql"})
	assert.ErrorIs(t, err, context.Canceled)
}

// TestChecksSeeWhatAToolSees, however the arguments of its call are written.
func TestChecksSeeWhatAToolSees(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.activate(checking("Write no disk", feedback.Check{Tool: "sh", Forbid: "^cat.*> ?/dev/sd[ab]$"}))
	w.activate(checking("Leave db-1 alone", feedback.Check{Tool: "*", Forbid: "db-1"}))
	w.activate(checking("Keep it small", feedback.Check{Tool: "*", Forbid: ":1000$|:1000[,}]"}))
	w.activate(checking("Pipe nothing", feedback.Check{Tool: "pipe", Require: "^[^|]*$"}))
	w.activate(checking("Dry runs alone", feedback.Check{Tool: "dry", Require: `"dry":true`}))
	for _, test := range []struct {
		tool, text string
		broken     bool
	}{
		{"sh", `{"command":"cat x > /dev/sda"}`, true},
		{"sh", `{"command":"cat x \u003e /dev/sda"}`, true},
		{"sh", `{"command":["ls",{"then":"cat x \u003e\u002fdev\/sdb"}]}`, true},
		{"sh", `{"command":"cat x"}`, false},
		{"drop", `{"name":"db\u002d1"}`, true},
		{"drop", `{"db\u002d1":null}`, true},
		{"drop", `{"name":"db\u002d1","name":"db-2"}`, true}, // some tools take the first one
		// no JSON, but some tools read it
		{"drop", "{\"name\":\"db\\u002d1\",\"why\":\"a line\n\"}", true},
		{"drop", `{"name":"db\u002d1"} {}`, true},
		{"drop", `db\u002d1`, true},
		{"drop", `"db\u002d1"`, true},
		{"drop", `{"name":"db-2"}`, false},
		{"drop", `{"n":1e3}`, true},
		{"drop", `{"n":1000.0}`, true},
		{"drop", `{"n":10000000000000000001}`, false},
		{"pipe", `{"command":"a \u007c b"}`, true},
		{"pipe", "{\"command\":\"a \\u007c b\n\"}", true},
		{"pipe", `{"command":"a < b"}`, false},
		{"dry", `{ "dry" : true }`, false},
		{"dry", `{"text":"\"dry\":true"}`, true},
	} {
		assert.Equal(t, test.broken, w.check(feedback.Checked{Tool: test.tool, Text: test.text}) != nil,
			"%s %s", test.tool, test.text)
	}
}

func (w *world) effect(id string) feedback.Effect {
	w.t.Helper()
	e, err := feedback.Measure(ctx, w.Service, id, w.clock.Now())
	require.NoError(w.t, err)
	return e
}

// TestABadCheckIsRefused where it is proposed.
func TestABadCheckIsRefused(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	long := strings.Repeat("x", 501)
	for field, checks := range map[string][]feedback.Check{
		"Check.Forbid": {
			{Forbid: "("}, {Forbid: `(a)\1`}, {Forbid: "(?=a)"}, {Forbid: long},
			{Forbid: "((a{50}){50}){2}"}, {Forbid: "(a{100}){10}"}, {Forbid: "a\x00"},
		},
		"Check.Require": {{Require: "["}},
		"Check.Tool":    {{Tool: "\x00", Forbid: "a"}},
		"Check":         {{Tool: "sql"}, {Forbid: "a", Require: "b"}},
	} {
		for _, c := range checks {
			_, err := w.rules.Propose(ctx, feedback.Submission{Draft: checking("Be brief", c),
				Actor: "paul", Reason: "x"})
			var fault *heed.InputError
			require.ErrorAs(t, err, &fault, "%+v", c)
			assert.Equal(t, field, fault.Field, "%+v", c)
		}
	}
	d := checking("Be brief", feedback.Check{Forbid: "a"})
	d.Action = feedback.RefinePrompt
	_, err := w.rules.Propose(ctx, feedback.Submission{Draft: d, Actor: "paul", Reason: "x"})
	assert.ErrorAs(t, err, new(*heed.InputError))
	assert.Empty(t, w.proposals(""))
}

// Another check is another hash, and an edited check has no approvals.
func TestTheCheckIsApprovedWithTheWords(t *testing.T) {
	hashes := map[string]bool{}
	for _, c := range []feedback.Check{
		{}, {Forbid: "a"}, {Require: "a"}, {Tool: "a", Forbid: "a"}, {Tool: "*", Forbid: "a"},
	} {
		hashes[checking("Be brief", c).Hash()] = true
	}
	assert.Len(t, hashes, 5)
	w := newWorld(t, feedback.Config{})
	seen := w.approve(w.propose("paul", checking("Be brief", feedback.Check{Forbid: "a"})), "cleo")
	p, err := w.rules.Propose(ctx, feedback.Submission{Draft: checking("Be brief",
		feedback.Check{Require: "a"}), Replaces: seen.ID, Actor: "mallory", Reason: "x"})
	require.NoError(t, err)
	assert.Equal(t, "a", p.Was.Check.Forbid)
	assert.Empty(t, p.Approvals)
	_, err = w.rules.Review(ctx, feedback.Review{Proposal: p.ID, Decision: feedback.Approved,
		Actor: "dan", Reason: "x", Hash: seen.Hash()})
	assert.Equal(t, "stale", feedback.Refusal(err))
	r := w.approve(p, "cleo", "dan")
	_, err = w.rules.Move(ctx, order(r.ID), feedback.StateRetired)
	require.NoError(t, err)
	d := r.Draft
	d.Check, d.Change, d.Of = feedback.Check{}, feedback.Restore, r.ID
	_, err = w.rules.Propose(ctx, feedback.Submission{Draft: d, Actor: "mallory", Reason: "x"})
	assert.Equal(t, "stale", feedback.Refusal(err), "it is restored with its check or not at all")

	w.activate(checking("The summary is too long", feedback.Check{Forbid: "a"}))
	w.activate(checking("The summary is much too long", feedback.Check{Forbid: "b"}))
	opened, err := w.rules.Consolidate(ctx)
	require.NoError(t, err)
	assert.Empty(t, opened, "two checks are not one")
}

// TestViolationsAreEvidence of the effect, each answer once, since the rule came into effect.
func TestViolationsAreEvidence(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	r := w.activate(checking("Name no database", feedback.Check{Forbid: "SQL"}))
	for i := range 30 {
		text := "Use SQL"
		if i%5 == 0 {
			text = "Use a store"
		}
		for range 2 {
			w.check(feedback.Checked{ID: "a" + string(rune('A'+i)), Text: text})
		}
	}
	w.check(feedback.Checked{Text: "Use SQL"}) // without an id
	e := w.effect(r.ID)
	assert.Equal(t, feedback.Rate{Hits: 24, Of: 30, Mean: 0.8}, e.Checks)
	assert.Equal(t, 24, e.Violations)
	assert.Equal(t, "stabilising", e.Status)
	w.clock.advance(8 * day)
	assert.Equal(t, "ineffective", w.effect(r.ID).Status,
		"a rule that most answers break does not work")
	require.NoError(t, w.Sweep(ctx, w.clock.Now()))
	assert.Equal(t, []string{r.ID}, w.unfit())

	_, err := w.rules.Move(ctx, order(r.ID), feedback.StateRetired)
	require.NoError(t, err)
	assert.Empty(t, w.check(feedback.Checked{ID: "later", Text: "Use SQL"}),
		"a retired rule asks nobody")
	w.change(r.ID, feedback.Restore)
	assert.Zero(t, w.effect(r.ID).Checks, "it begins again")
	w.check(feedback.Checked{ID: "new", Text: "Use SQL"})
	assert.Equal(t, 1, w.effect(r.ID).Violations)
	kept := w.activate(checking("Sign", feedback.Check{Require: "Ann$"}))
	for i := range 30 {
		w.check(feedback.Checked{ID: "k" + string(rune('A'+i)), Text: "Yours, Ann"})
	}
	w.clock.advance(8 * day)
	assert.Equal(t, "insufficient_data", w.effect(kept.ID).Status,
		"that it is kept does not say what it is good for")
}

// TestReach lists the heuristics that a draft governs by itself, and those for approvers to decide.
func TestReach(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	d := rule("Ask before you run go mod tidy")
	d.Check = feedback.Check{Forbid: "sudo"}
	actions := map[string]string{
		"against": "Do not ask before you run go mod tidy", "sudo": "Use sudo",
		"near": "Run go mod vendor before you commit", "far": "Name the owner of the invoice",
	}
	for i := range 20 {
		actions[fmt.Sprint("many ", i)] = "Run go in module " + strings.Repeat("x", i)
	}
	all, err := w.rules.Reach(ctx, d, actions)
	require.NoError(t, err)
	require.Len(t, all, 12)
	assert.Equal(t, []string{"against", "the words contradict each other"},
		[]string{all[0].ID, all[0].Explanation})
	assert.Equal(t, []string{"sudo", "it matches sudo"}, []string{all[1].ID, all[1].Explanation})
	near := slices.IndexFunc(all, func(h feedback.Conflict) bool { return h.ID == "near" })
	require.Positive(t, near)
	assert.Empty(t, all[near].Explanation)
	for i := 3; i < len(all); i++ {
		assert.LessOrEqual(t, all[i].Score, all[i-1].Score)
		assert.NotEqual(t, "far", all[i].ID)
	}
	d.Check.Tool = "shell"
	all, err = w.rules.Reach(ctx, d, actions)
	require.NoError(t, err)
	for _, h := range all {
		assert.NotContains(t, h.Explanation, "sudo", "answers are not checked")
	}
	d.Action, d.Check = "UPDATE_SKILL", feedback.Check{}
	all, err = w.rules.Reach(ctx, d, actions)
	require.NoError(t, err)
	assert.Empty(t, all, "no prompt has it")
	_, err = w.rules.Reach(ctx, feedback.Draft{}, actions)
	assert.ErrorAs(t, err, new(*heed.InputError))
}

// TestAnApproverWithholds a heuristic, for as long as the rule is active.
func TestAnApproverWithholds(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Ask the owner before a migration"))
	approves := func(actor string, withhold ...string) {
		t.Helper()
		var err error
		p, err = w.rules.Review(ctx, feedback.Review{
			Proposal: p.ID, Decision: approve, Actor: actor, Reason: "right", Hash: p.Hash(),
			Withhold: withhold,
		})
		require.NoError(t, err)
	}
	broken := func(heuristic string) (reasons []string) {
		t.Helper()
		found, err := feedback.CheckWith(ctx, w.rules, feedback.Checked{
			Agent: "prd", Text: "Migrate at night", Heuristic: heuristic,
		})
		require.NoError(t, err)
		for _, v := range found {
			reasons = append(reasons, v.Rule+": "+v.Reason)
		}
		return reasons
	}
	approves("cleo")
	approves("cleo", "nightly", "hourly")
	require.Len(t, p.Approvals, 1, "she says it again, with what breaks it")
	assert.Empty(t, broken("nightly"), "it is no rule yet")
	approves("dan", "nightly")
	require.Equal(t, feedback.StateApproved, p.Status)
	for _, id := range []string{"nightly", "hourly"} {
		assert.Equal(t, []string{p.ID + ": a person who approved the rule found that the heuristic " +
			"breaks it"}, broken(id))
	}
	assert.Empty(t, broken("weekly"))
	assert.Empty(t, broken(""), "it is no heuristic's")
	_, err := w.rules.Move(ctx, feedback.Act{ID: p.ID, Actor: "eve", Reason: "no more"},
		feedback.StateRetired)
	require.NoError(t, err)
	assert.Empty(t, broken("nightly"))

	_, err = w.rules.Review(ctx, feedback.Review{Proposal: p.ID, Decision: approve, Actor: "eve",
		Reason: "r", Hash: p.Hash(), Withhold: []string{""}})
	var invalid *heed.InputError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "Withhold[0]", invalid.Field)

	d := rule("Write the skill again")
	d.Action = feedback.UpdateSkill
	p = w.propose("paul", d)
	_, err = w.rules.Review(ctx, feedback.Review{Proposal: p.ID, Decision: approve, Actor: "eve",
		Reason: "r", Hash: p.Hash(), Withhold: []string{"nightly"}})
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "Withhold", invalid.Field, "no prompt has it")
}
