package feedback_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store"
)

func TestQuorum(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Be brief"))
	p = w.approve(p, "cleo", "cleo", "CLEO")
	assert.Equal(t, feedback.StatePending, p.Status, "one person is one, in whatever spelling")
	assert.Len(t, p.Approvals, 1)
	assert.NotContains(t, w.inject("prd", "").Prompt, "Be brief")
	p = w.approve(p, "dan")
	assert.Equal(t, feedback.StateApproved, p.Status)
	assert.Equal(t, "dan", p.Decider)
	r := w.rule(p.ID)
	assert.Equal(t, feedback.StateActive, r.Status)
	assert.Equal(t, p.Draft, r.Draft)
	assert.Equal(t, p.Approvals, r.Approvals)
	assert.Contains(t, w.inject("prd", "").Prompt, "Be brief")
	assert.Equal(t, []string{"propose:paul", "approve:cleo", "approve:dan", "activate:dan"},
		w.audit(p.ID))
}

func TestNobodyApprovesTheirOwn(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Be brief"))
	for _, alias := range []string{"paul", "Paul", "PAUL"} {
		_, err := w.review(p, approve, alias)
		assert.Equal(t, "ineligible", feedback.Refusal(err))
	}
	for _, alias := range []string{"", " paul", "paul\u200b", "pаul", "ｐaul"} {
		_, err := w.review(p, approve, alias)
		assert.ErrorAs(t, err, new(*heed.InputError), "%q", alias)
	}
	assert.Equal(t, "approve.refused:paul", w.audit(p.ID)[1])
	_, err := w.review(p, reject, "paul")
	assert.NoError(t, err, "but may take it back")
}

func TestAuthorsOfTheEvidenceAloneAreNotEnough(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", long)
	w.says("bob", long)
	p := w.approve(w.pending(), "ann", "bob")
	assert.Equal(t, feedback.StatePending, p.Status)
	p = w.approve(p, "cleo")
	assert.Equal(t, feedback.StateApproved, p.Status)

	w = newWorld(t, feedback.Config{Gate: feedback.Gate{Outsiders: 2}})
	w.says("ann", long)
	w.says("bob", long)
	p = w.pending()
	_, err := w.review(p, approve, "ann")
	assert.Equal(t, "ineligible", feedback.Refusal(err))
	assert.Equal(t, feedback.StatePending, w.approve(p, "cleo").Status)
	assert.Equal(t, feedback.StateApproved, w.approve(p, "dan").Status)

	// Somebody who adds evidence after they approved is an author as well.
	w = newWorld(t, feedback.Config{})
	w.says("ann", long)
	w.says("bob", long)
	p = w.approve(w.pending(), "cleo")
	w.says("cleo", long)
	p = w.approve(w.pending(), "ann")
	assert.Equal(t, feedback.StatePending, p.Status)
}

func TestQuorumOfOneAndOfThree(t *testing.T) {
	w := newWorld(t, feedback.Config{Gate: feedback.Gate{Quorum: 1}})
	assert.Equal(t, feedback.StateApproved, w.approve(w.propose("paul", rule("Be brief")),
		"cleo").Status)
	w = newWorld(t, feedback.Config{Gate: feedback.Gate{Quorum: 3}})
	p := w.propose("paul", rule("Be brief"))
	assert.Equal(t, feedback.StatePending, w.approve(p, "cleo", "dan").Status)
	assert.Equal(t, feedback.StateApproved, w.approve(p, "eve").Status)
}

func TestReviewRefusesWhatIsNotValid(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Be brief"))
	good := feedback.Review{Proposal: p.ID, Decision: feedback.Approved, Actor: "cleo",
		Reason: "yes", Hash: p.Hash()}
	for field, change := range map[string]func(*feedback.Review){
		"Proposal":    func(r *feedback.Review) { r.Proposal = "" },
		"Actor":       func(r *feedback.Review) { r.Actor = "" },
		"Reason":      func(r *feedback.Review) { r.Reason = " \n" },
		"Hash":        func(r *feedback.Review) { r.Hash = "" },
		"Override[0]": func(r *feedback.Review) { r.Override = []string{""} },
	} {
		review := good
		change(&review)
		_, err := w.rules.Review(ctx, review)
		var fault *heed.InputError
		if assert.ErrorAs(t, err, &fault, field) {
			assert.Equal(t, field, fault.Field)
		}
	}
	_, err := w.rules.Review(ctx, feedback.Review{Proposal: p.ID, Decision: feedback.Rejected,
		Actor: "cleo"})
	assert.ErrorAs(t, err, new(*heed.InputError), "a rejection needs a reason")
	unknown := good
	unknown.Proposal = "unknown"
	_, err = w.rules.Review(ctx, unknown)
	assert.ErrorIs(t, err, heed.ErrNotFound)
	stale := good
	stale.Hash = strings.Repeat("0", 64)
	_, err = w.rules.Review(ctx, stale)
	assert.Equal(t, "stale", feedback.Refusal(err))
	assert.ErrorIs(t, err, heed.ErrConflict)
	assert.Equal(t, p, w.pending(), "nothing has changed")
	assert.Equal(t, []string{"propose:paul", "approve.refused:cleo"}, w.audit(p.ID))
}

func TestFinalStatesAreFinal(t *testing.T) {
	for status, end := range map[feedback.State]func(*world, feedback.Proposal){
		feedback.StateApproved: func(w *world, p feedback.Proposal) { w.approve(p, "cleo", "dan") },
		feedback.StateRejected: func(w *world, p feedback.Proposal) {
			_, err := w.review(p, reject, "cleo")
			require.NoError(t, err)
		},
		feedback.StateExpired: func(w *world, _ feedback.Proposal) { w.clock.advance(7 * day) },
		feedback.StateSuperseded: func(w *world, p feedback.Proposal) {
			_, err := w.rules.Propose(ctx, feedback.Submission{Replaces: p.ID, Draft: rule("Be terse"),
				Actor: "cleo", Reason: "shorter"})
			require.NoError(t, err)
		},
	} {
		t.Run(string(status), func(t *testing.T) {
			w := newWorld(t, feedback.Config{})
			p := w.propose("paul", rule("Be brief"))
			end(w, p)
			for i := range 100 {
				_, approved := w.review(p, approve, fmt.Sprint("late", i))
				_, rejected := w.review(p, reject, fmt.Sprint("late", i))
				_, modified := w.rules.Propose(ctx, feedback.Submission{Replaces: p.ID, Draft: rule("x"),
					Actor: "eve", Reason: "y"})
				for _, err := range []error{approved, rejected, modified} {
					var state *feedback.RefusedError
					require.ErrorAs(t, err, &state)
					assert.Equal(t, string(status), state.State)
				}
			}
			require.NoError(t, w.Sweep(ctx, time.Time{}))
			got, err := w.rules.Proposal(ctx, p.ID)
			require.NoError(t, err)
			assert.Equal(t, status, got.Status)
			if status == feedback.StateRejected {
				assert.Equal(t, "it is right", got.Reason)
			}
		})
	}
}

func TestModifyVoidsApprovals(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	d := rule("Be brief")
	d.Place = "style"
	p := w.approve(w.propose("paul", d), "cleo")
	d = p.Draft
	d.Text = "Be terse"
	edited, err := w.rules.Propose(ctx, feedback.Submission{Replaces: p.ID, Draft: d, Actor: "Eve",
		Reason: "shorter"})
	require.NoError(t, err)
	assert.NotEqual(t, p.ID, edited.ID)
	assert.Equal(t, p.ID, edited.Previous)
	assert.Empty(t, edited.Approvals)
	assert.Equal(t, []string{"paul", "eve"}, edited.Writers)
	assert.Equal(t, "style", edited.Place, "what is not edited stays")
	assert.Empty(t, edited.Conflicts, "the old version is none")
	assert.Equal(t, edited, w.pending())
	for _, writer := range edited.Writers {
		_, err := w.review(edited, approve, writer)
		assert.Equal(t, "ineligible", feedback.Refusal(err), writer)
	}
	w.approve(edited, "cleo", "dan")
	assert.Equal(t, "Be terse", w.rule(edited.ID).Text)
	_, err = w.rules.Rule(ctx, p.ID)
	assert.ErrorIs(t, err, heed.ErrNotFound)

	p = w.propose("paul", rule("Say why"))
	_, err = w.rules.Propose(ctx, feedback.Submission{Replaces: p.ID, Draft: rule("a\nb"),
		Actor: "eve", Reason: "x"})
	assert.ErrorAs(t, err, new(*heed.InputError))
	d = p.Draft
	d.Action = feedback.DocumentOnly
	_, err = w.rules.Propose(ctx, feedback.Submission{Replaces: p.ID, Draft: d, Actor: "eve",
		Reason: "x"})
	assert.ErrorAs(t, err, new(*heed.InputError))
}

func TestHash(t *testing.T) {
	d := feedback.Draft{Text: "a", Agents: []string{"b", "c"}, Place: "p", Supersedes: []string{"r"}}
	seen := map[string]bool{d.Hash(): true}
	for _, change := range []func(*feedback.Draft){
		func(d *feedback.Draft) { d.Text = "b" },
		func(d *feedback.Draft) { d.Agents = []string{"b"} },
		func(d *feedback.Draft) { d.Agents, d.Supersedes = nil, []string{"b", "c", "r"} },
		func(d *feedback.Draft) { d.Agents, d.AllAgents = nil, true },
		func(d *feedback.Draft) { d.Place = "q" },
		func(d *feedback.Draft) { d.Type = feedback.Constraint },
		func(d *feedback.Draft) { d.Action = feedback.UpdateSkill },
		func(d *feedback.Draft) { d.Supersedes = nil },
		func(d *feedback.Draft) { d.Change, d.Of = feedback.Pin, "r" },
		func(d *feedback.Draft) { d.Change, d.Of = feedback.Unpin, "r" },
		func(d *feedback.Draft) { d.Change, d.Of = feedback.Unpin, "q" },
		func(d *feedback.Draft) { d.Text, d.Place = "ap", "" },
	} {
		c := d
		change(&c)
		assert.False(t, seen[c.Hash()])
		seen[c.Hash()] = true
	}
	same := d
	same.Agents, same.Action, same.Type = []string{"c", "b", "c"}, feedback.CreateRule,
		feedback.Guideline
	assert.Equal(t, d.Hash(), same.Hash(), "order and defaults do not matter")
}

func TestContradictionsHaveToBeOverridden(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Do not name the database"))
	p = w.approve(p, "cleo")
	active := w.activate(rule("Name the database")) // after the first approval
	_, err := w.review(p, approve, "dan")
	var conflict *feedback.RefusedError
	require.ErrorAs(t, err, &conflict)
	require.Len(t, conflict.Conflicts, 1)
	assert.Equal(t, active.ID, conflict.Conflicts[0].ID)
	assert.Equal(t, "approve.refused:dan", w.audit(p.ID)[2])

	p, err = w.review(p, approve, "dan", active.ID)
	require.NoError(t, err)
	assert.Equal(t, feedback.StatePending, p.Status,
		"the first approval knew nothing of the conflict")
	p, err = w.review(p, approve, "cleo", active.ID)
	require.NoError(t, err)
	assert.Equal(t, feedback.StateApproved, p.Status)

	// Or it takes the other's place.
	w = newWorld(t, feedback.Config{})
	active = w.activate(rule("Name the database"))
	d := rule("Do not name the database")
	d.Supersedes = []string{active.ID}
	p = w.approve(w.propose("paul", d), "cleo", "dan")
	assert.Equal(t, feedback.StateApproved, p.Status)
	assert.Equal(t, feedback.StateSuperseded, w.rule(active.ID).Status)
	assert.Equal(t, []string{p.ID}, w.inject("prd", "").Rules)
}

func TestWhatIsToBeSupersededMustBeActive(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	active := w.activate(rule("Name the database"))
	d := rule("Name the database and its owner")
	d.Supersedes = []string{active.ID}
	p := w.approve(w.propose("paul", d), "cleo")
	_, err := w.rules.Move(ctx, order(active.ID), feedback.StateRevoked)
	require.NoError(t, err)
	_, err = w.review(p, approve, "dan")
	assert.Equal(t, "state", feedback.Refusal(err))
	assert.Equal(t, feedback.StateRevoked, w.rule(active.ID).Status)
}

// An approver who corrects the same afterwards is no outsider: to the gate, and in what is shown,
// also before the correction is evidence.
func TestTheShownQuorumIsTheGates(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", "tests are missing in the report")
	w.says("bob", "tests in the report are missing")
	require.Len(t, w.flush().Proposed, 1)
	p := w.approve(w.pending(), "cleo")
	assert.Zero(t, p.Quorum.Outsiders)
	w.says("cleo", "the tests are missing in the report")
	listed := w.pending()
	require.NotContains(t, listed.Evidence, "d3", "words alone wait for a flush")
	shown, err := w.rules.Proposal(ctx, p.ID)
	require.NoError(t, err)
	assert.Equal(t, listed.Quorum, shown.Quorum)
	assert.Equal(t, 1, shown.Quorum.Outsiders)
	assert.Equal(t, []string{"ann", "bob", "cleo"}, shown.Quorum.Reviewers)

	after, err := w.review(p, approve, "ann")
	require.NoError(t, err)
	assert.Equal(t, feedback.StatePending, after.Status, "the gate counts neither as an outsider")
	shown, err = w.rules.Proposal(ctx, p.ID)
	require.NoError(t, err)
	assert.Equal(t, after.Quorum, shown.Quorum)

	// An approval that does not override a rule of a later moment does not count.
	d := rule("Name the database")
	p = w.approve(w.propose("paul", d), "cleo")
	d.Text = "Do not name the database"
	other := w.propose("olga", d)
	_, err = w.rules.Review(ctx, feedback.Review{Proposal: other.ID, Decision: feedback.Approved,
		Hash: other.Hash(), Actor: "dan", Reason: "x"})
	require.NoError(t, err)
	w.approve(other, "eve")
	shown, err = w.rules.Proposal(ctx, p.ID)
	require.NoError(t, err)
	assert.Empty(t, shown.Quorum.Approved)
}

func TestRevokeRetireRestore(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	r := w.activate(rule("Be brief"))
	w.clock.advance(time.Hour)
	r, err := w.rules.Move(ctx, order(r.ID), feedback.StateRetired)
	require.NoError(t, err)
	assert.Equal(t, w.rule(r.ID), r)
	assert.Empty(t, w.inject("prd", "").Rules)
	assert.Equal(t, "Be brief", w.rule(r.ID).Text, "it can still be read")
	again, err := w.rules.Move(ctx, order(r.ID), feedback.StateRetired)
	require.NoError(t, err, "somebody repeats a call whose answer got lost")
	assert.Equal(t, r, again)
	_, err = w.asks("olga", r.ID, feedback.Pin)
	assert.Equal(t, "state", feedback.Refusal(err))
	_, err = w.rules.Move(ctx, order(r.ID), feedback.StateActive)
	assert.ErrorAs(t, err, new(*heed.InputError), "nobody brings it back alone")

	back := w.change(r.ID, feedback.Restore)
	assert.Equal(t, r.Activated, back.Activated)
	assert.True(t, back.Since.After(r.Since), "its effect is measured again")
	assert.Equal(t, []string{r.ID}, w.inject("prd", "").Rules)
	_, err = w.asks("olga", r.ID, feedback.Restore)
	assert.Equal(t, "state", feedback.Refusal(err))

	_, err = w.rules.Move(ctx, order(r.ID), feedback.StateRevoked)
	require.NoError(t, err)
	assert.Empty(t, w.inject("prd", "").Rules)
	_, err = w.asks("olga", r.ID, feedback.Restore)
	assert.Equal(t, "state", feedback.Refusal(err), "what was revoked does not come back")
	assert.Equal(t, []string{
		"propose:paul", "approve:cleo", "approve:dan", "activate:dan", "retire:cleo",
		"restore:dan", "revoke:cleo",
	}, w.audit(r.ID))
	_, err = w.rules.Move(ctx, order("unknown"), feedback.StateRevoked)
	assert.ErrorIs(t, err, heed.ErrNotFound)
	_, err = w.rules.Move(ctx, feedback.Act{ID: r.ID, Actor: "cleo"}, feedback.StateRevoked)
	assert.ErrorAs(t, err, new(*heed.InputError))

	// A rule that contradicts one that came since comes back only over it.
	r = w.activate(rule("Name the database"))
	_, err = w.rules.Move(ctx, order(r.ID), feedback.StateRetired)
	require.NoError(t, err)
	since := w.activate(rule("Do not name the database"))
	p, err := w.asks("olga", r.ID, feedback.Restore)
	require.NoError(t, err)
	assert.Equal(t, since.ID, p.Conflicts[0].ID)
	_, err = w.review(p, approve, "cleo")
	assert.Equal(t, "conflict", feedback.Refusal(err))
	for _, by := range []string{"cleo", "dan"} {
		p, err = w.review(p, approve, by, since.ID)
		require.NoError(t, err)
	}
	assert.Equal(t, p.Approvals, w.rule(r.ID).Approvals)
	assert.Equal(t, w.rule(r.ID).Hash(), p.Hash())
	assert.True(t, w.change(r.ID, feedback.Pin).Pinned,
		"pinning changes no words, so that nothing is against it")
}

// The rule's writer and the one who asks don't count, and the words and the state are looked at
// again.
func TestAChangeOfARuleIsGated(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", long)
	w.says("bob", long)
	authored := w.rule(w.approve(w.pending(), "cleo", "dan").ID)
	pin, err := w.asks("olga", authored.ID, feedback.Pin)
	require.NoError(t, err)
	assert.Equal(t, []string{"ann", "bob"}, pin.Authors)
	assert.Equal(t, feedback.StatePending, w.approve(pin, "ann", "bob").Status,
		"the reviewers of its evidence alone are not enough")
	assert.False(t, w.rule(authored.ID).Pinned)
	assert.Equal(t, feedback.StateApproved, w.approve(pin, "cleo").Status)
	assert.True(t, w.rule(authored.ID).Pinned)
	assert.Equal(t, authored.Hash(), w.rule(authored.ID).Hash(), "the words are what they were")
	assert.Equal(t, authored.Approvals, w.rule(authored.ID).Approvals)
	assert.Equal(t, authored.Since, w.rule(authored.ID).Since)

	r := w.activate(rule("Be brief"))
	_, err = w.rules.Move(ctx, order(r.ID), feedback.StateRetired)
	require.NoError(t, err)
	p, err := w.asks("olga", r.ID, feedback.Restore)
	require.NoError(t, err)
	assert.Equal(t, []string{"olga", "paul"}, p.Writers)
	for _, who := range []string{"olga", "Paul"} {
		_, err = w.review(p, approve, who)
		assert.Equal(t, "ineligible", feedback.Refusal(err), who)
	}
	_, err = w.rules.Propose(ctx, feedback.Submission{Replaces: p.ID, Draft: rule("Be rude"),
		Actor: "eve", Reason: "x"})
	assert.Equal(t, "ineligible", feedback.Refusal(err), "it is not edited into something else")
	again, err := w.asks("Olga", r.ID, feedback.Restore)
	require.NoError(t, err)
	assert.Equal(t, p.ID, again.ID)
	w.approve(p, "cleo")
	_, err = w.rules.Move(ctx, order(r.ID), feedback.StateRevoked)
	require.NoError(t, err)
	_, err = w.review(p, approve, "dan")
	assert.Equal(t, "state", feedback.Refusal(err), "it was revoked meanwhile")
	assert.NotContains(t, w.inject("prd", "").Rules, r.ID)
}

func TestAChangeOfARuleHasItsWords(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	r := w.activate(rule("Be brief"))
	for name, test := range map[string]struct {
		change func(*feedback.Draft)
		err    any
	}{
		"other words": {func(d *feedback.Draft) { d.Text = "Be rude" },
			new(*feedback.RefusedError)},
		"another agent": {func(d *feedback.Draft) { d.Agents = []string{"qa"} },
			new(*feedback.RefusedError)},
		"no such rule": {func(d *feedback.Draft) { d.Of = "n99" }, nil},
		"active already": {func(d *feedback.Draft) { d.Change = feedback.Restore },
			new(*feedback.RefusedError)},
		"not pinned": {func(d *feedback.Draft) { d.Change = feedback.Unpin },
			new(*feedback.RefusedError)},
		"no such change": {func(d *feedback.Draft) { d.Change = "PAINT" }, new(*heed.InputError)},
		"no change":      {func(d *feedback.Draft) { d.Change = "" }, new(*heed.InputError)},
		"restores nothing": {func(d *feedback.Draft) { d.Change, d.Of = feedback.Restore, "" },
			new(*heed.InputError)},
		"makes no rule": {func(d *feedback.Draft) { d.Action = feedback.DocumentOnly },
			new(*heed.InputError)},
	} {
		d := r.Draft
		d.Change, d.Of = feedback.Pin, r.ID
		test.change(&d)
		_, err := w.rules.Propose(ctx, feedback.Submission{Draft: d, Actor: "olga", Reason: "x"})
		if test.err == nil {
			assert.ErrorIs(t, err, heed.ErrNotFound, name)
			continue
		}
		assert.ErrorAs(t, err, test.err, name)
	}
	assert.Empty(t, w.proposals(feedback.StatePending))

	d := rule("Say why")
	d.Change = feedback.Pin
	p := w.approve(w.propose("paul", d), "cleo", "dan")
	assert.True(t, w.rule(p.ID).Pinned, "a rule may be proposed as a pinned one")
	assert.Equal(t, p.ID, w.inject("prd", "").Rules[0])
	assert.False(t, w.change(p.ID, feedback.Unpin).Pinned)
	d = rule("Say why, and when")
	d.Supersedes = []string{p.ID}
	w.change(p.ID, feedback.Pin)
	assert.False(t, w.rule(w.approve(w.propose("eve", d), "cleo", "dan").ID).Pinned,
		"a pin is not inherited unsaid")
}

// Authorize is not called for a caller who has left, because its answer would not be used.
func TestACallerWhoLeftIsNotAuthorized(t *testing.T) {
	asked := 0
	w := newWorld(t, feedback.Config{Authorize: func(context.Context, feedback.Act) error {
		asked++
		return nil
	}})
	left, leave := context.WithCancel(ctx)
	leave()
	_, err := w.rules.Propose(left, feedback.Submission{Draft: rule("Be brief"), Actor: "paul",
		Reason: "x"})
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, asked)
}

func TestAuthorizer(t *testing.T) {
	var asked []string
	denied := errors.New("not an admin")
	w := newWorld(t, feedback.Config{Authorize: func(_ context.Context, act feedback.Act) error {
		text := ""
		if act.Draft != nil {
			text = act.Draft.Text
		}
		asked = append(asked, fmt.Sprint(act.Kind, " ", act.Actor, " ", text))
		switch act.Actor {
		case "mallory":
			return denied
		case "oscar":
			panic("bad day")
		}
		return nil
	}})
	p := w.propose("paul", rule("Be brief"))
	for _, actor := range []string{"Mallory", "oscar"} {
		_, approved := w.review(p, approve, actor)
		_, rejected := w.review(p, reject, actor)
		_, modified := w.rules.Propose(ctx, feedback.Submission{Replaces: p.ID, Draft: rule("x"),
			Actor: actor, Reason: "y"})
		for _, err := range []error{approved, rejected, modified} {
			assert.Equal(t, "unauthorized", feedback.Refusal(err))
		}
	}
	_, err := w.review(p, approve, "mallory")
	assert.ErrorIs(t, err, denied)
	assert.Equal(t, p, w.pending())
	assert.Equal(t, []string{
		"propose:paul", "approve.refused:mallory", "reject.refused:mallory", "modify.refused:mallory",
		"approve.refused:oscar", "reject.refused:oscar", "modify.refused:oscar",
		"approve.refused:mallory",
	}, w.audit(p.ID))
	r := w.rule(w.approve(p, "cleo", "dan").ID)
	mallory := feedback.Act{ID: r.ID, Actor: "mallory", Reason: "because"}
	for _, to := range []feedback.State{feedback.StateRetired, feedback.StateRevoked} {
		_, err := w.rules.Move(ctx, mallory, to)
		assert.ErrorIs(t, err, denied)
	}
	_, err = w.asks("mallory", r.ID, feedback.Pin)
	assert.ErrorIs(t, err, denied)
	w.says("ann", "x")
	assert.ErrorIs(t, w.Erase(ctx, feedback.Act{ID: "d1", Actor: "mallory", Reason: "because"}),
		denied)
	_, err = w.Resolve(ctx, feedback.Act{ID: "d1", Actor: "mallory", Reason: "because"},
		feedback.Archived)
	assert.ErrorIs(t, err, denied)
	_, err = w.Import(ctx, tree(t, w.export()), "mallory", "because")
	assert.ErrorIs(t, err, denied)
	assert.Equal(t, r, w.rule(r.ID))
	assert.Contains(t, asked, "propose paul Be brief")
	assert.Contains(t, asked, "approve mallory Be brief")
	assert.Contains(t, asked, "revoke mallory Be brief")
}

func TestTheAuditLogSaysWhoWhatWhenAndWhy(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Be brief"))
	_, err := w.rules.Review(ctx, feedback.Review{Proposal: p.ID, Decision: feedback.Rejected,
		Actor: "Cleo", Reason: "too vague"})
	require.NoError(t, err)
	entries, err := w.Audit(ctx, 1)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	e := entries[0]
	assert.Equal(t, []string{"cleo", "feedback.reject", p.ID, "too vague"},
		[]string{e.Actor, e.Action, e.Subject, e.Reason})
	assert.WithinDuration(t, start, e.At, time.Second)
}

// TestQuorumSaysWhoIsMissing and why, as the gate counts: who wrote a rule never approves it, and
// one at least gave no evidence.
func TestQuorumSaysWhoIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		gate     feedback.Gate
		approves []string
		want     string
	}{
		"nobody yet": {feedback.Gate{}, nil, "0 of 2; 2 more people must approve, other than wendy " +
			"(wrote it), and at least 1 other than ann, bob or joe (gave evidence)"},
		"a reviewer": {feedback.Gate{}, []string{"ann"}, "1 of 2; one more person must approve, " +
			"who gave no evidence, other than ann (approved it), wendy (wrote it), bob or joe (gave " +
			"evidence)"},
		"an outsider": {feedback.Gate{}, []string{"olga"}, "1 of 2; one more person must approve, " +
			"other than olga (approved it), wendy (wrote it)"},
		"all its authors": {feedback.Gate{}, []string{"ann", "bob", "joe"}, "3 approved; one more " +
			"person must approve, who gave no evidence, other than ann, bob or joe (approved it), " +
			"wendy (wrote it)"},
		"outsiders alone": {feedback.Gate{Outsiders: 2}, []string{"olga"}, "1 of 2; one more person " +
			"must approve, who gave no evidence, other than olga (approved it), wendy (wrote it), " +
			"ann, bob or joe (gave evidence)"},
		"done": {feedback.Gate{}, []string{"olga", "ann"}, ""},
	} {
		w := newWorld(t, feedback.Config{Gate: test.gate})
		w.says("ann", paraphrased)
		w.says("bob", paraphrase)
		_, err := w.Join(ctx, by("joe", "d2"), "d1")
		require.NoError(t, err)
		p := w.approve(w.propose("wendy", rule("Keep it short"), "d1", "d2"), test.approves...)
		if test.want == "" {
			assert.Nil(t, p.Quorum, name)
			continue
		}
		assert.Equal(t, test.want, p.Quorum.String(), name)
		read, err := w.rules.Proposal(ctx, p.ID)
		require.NoError(t, err)
		assert.Equal(t, p.Quorum, read.Quorum, name)
		assert.Equal(t, p.Quorum, w.pending().Quorum, name)
	}
}

// TestAnOverdueProposalIsExpired before a sweep closes it. Its draft does not conflict with itself.
func TestAnOverdueProposalIsExpired(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Always name the ticket"))
	found, err := w.rules.Conflicts(ctx, p.Draft)
	require.NoError(t, err)
	assert.Empty(t, found)
	w.clock.advance(8 * 24 * time.Hour)
	p, err = w.rules.Proposal(ctx, p.ID)
	require.NoError(t, err)
	assert.Equal(t, feedback.StateExpired, p.Status)
	assert.Nil(t, p.Quorum)
	assert.Empty(t, w.proposals(feedback.StatePending))
	assert.Equal(t, []feedback.Proposal{p}, w.proposals(feedback.StateExpired))
}

// TestQuorumKnowsTheForgotten by their pseudonyms.
func TestQuorumKnowsTheForgotten(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	w.says("ann", "be brief")
	w.says("ann", "Be brief!")
	w.propose("wendy", rule("Be brief"), "d1", "d2")
	err := store.Run(ctx, w.store, store.Job{Forget: []string{"ann"}})
	require.NoError(t, err)
	p := w.approve(w.pending(), "ann")
	assert.Equal(t, []int{1, 1, 1}, []int{p.Quorum.Approvals, p.Quorum.Missing, p.Quorum.Outsiders})
}

// TestACorrectorIsNoOutsider also before a flush makes the correction evidence, whether the person
// approved or corrected first.
func TestACorrectorIsNoOutsider(t *testing.T) {
	// An evaluator that is not sure leaves what it classifies to the next flush.
	unsure := func(context.Context, feedback.Case) (feedback.Evaluation, error) {
		return feedback.Evaluation{Class: feedback.GeneralizableHigh, Confidence: 0.6}, nil
	}
	for _, first := range []string{"correction", "approval"} {
		w := newWorld(t, feedback.Config{Evaluator: unsure})
		w.says("ann", "Be brief!")
		w.says("bob", "Be brief!")
		w.flush()
		p := w.pending()
		require.Equal(t, []string{"ann", "bob"}, p.Authors)
		if first == "approval" {
			p = w.approve(p, "cleo")
			require.Equal(t, []int{1, 1, 0},
				[]int{p.Quorum.Approvals, p.Quorum.Missing, p.Quorum.Outsiders})
		}
		late := w.says("cleo", "Be brief!")
		require.NotContains(t, w.pending().Evidence, late.ID)
		if first == "correction" {
			p = w.approve(p, "cleo")
		}
		p = w.approve(p, "bob")
		assert.Equal(t, []int{2, 1, 1},
			[]int{p.Quorum.Approvals, p.Quorum.Missing, p.Quorum.Outsiders}, first)
		assert.Equal(t, []string{"ann", "bob", "cleo"}, w.pending().Authors, first)
		_, again := w.says("zoe", "Be brief!"), w.pending()
		w.damage("feedback.record", fmt.Sprint("d", w.count))
		_, err := w.review(again, approve, "zoe")
		require.ErrorIs(t, err, heed.ErrDamaged, "whether she gave some is not known")
		assert.Equal(t, feedback.StateApproved, w.approve(p, "dan").Status)
	}
}

// TestQuorumLeavesOutWhatIsNotOverridden by an approval of before the contradiction.
func TestQuorumLeavesOutWhatIsNotOverridden(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	first := w.approve(w.propose("wendy", rule("Never name a customer")), "cleo")
	require.Equal(t, 1, first.Quorum.Missing)
	other := w.approve(w.propose("wendy", rule("Always name a customer")), "cleo", "dan")
	require.Equal(t, feedback.StateApproved, other.Status)
	p, err := w.rules.Review(ctx, feedback.Review{
		Proposal: first.ID, Decision: approve, Hash: first.Hash(), Actor: "dan", Reason: "so",
		Override: []string{other.ID},
	})
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1}, []int{p.Quorum.Approvals, p.Quorum.Missing})
	assert.Equal(t, []string{"dan"}, p.Quorum.Approved)
}
