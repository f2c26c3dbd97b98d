package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/view"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// decisions are the commands that change what was learned, or what comes of it, in an order in
// which each has something to change. An approval is among them as a rule has to be there before it
// can be retired.
var decisions = []struct{ name, command, reason string }{
	{"rules-approve", "rules approve 7d0c2b13-rule --hash HASH", "I saw it too"},
	{"rules-retire", "rules retire 7d0c2b13-rule", "it is checked by a hook now"},
	{"rules-revoke", "rules revoke 7d0c2b13-rule", "it does harm"},
	{"rules-reject", "rules reject 7d0c2b11-rule", "the bot does it"},
	{"confidence-pin", "confidence pin greet-by-name", "it is right as it is"},
	{"confidence-pin-at", "confidence pin greet-by-name --at 0.2", "it upsets visitors"},
	{"confidence-unpin", "confidence unpin greet-by-name", "its text was rewritten"},
	{"strategy-reset-item", "strategy --agent strategy reset-learning prefer-tabs",
		"its text is new"},
	{"strategy-reset", "strategy --agent strategy reset correction --context interactive",
		"the model was exchanged"},
	{"forget", "store forget ann", "they asked for it"},
}

// randomID is the id of a proposal that the command made.
var randomID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// stillOpen is a statement under which the fixture's proposals do not expire.
var stillOpen = keepOpen("2026-01-15")

// keepOpen is one for proposals that would expire on a day.
func keepOpen(day string) string {
	return `UPDATE heed_record SET body = replace(body, '"expires_at":"` + day +
		`', '"expires_at":"` + longAfter(day) + `') WHERE kind = 'feedback.proposal'`
}

// longAfter is the same day of a year that the tests do not live to see.
func longAfter(day string) string { return "2096" + day[len("2026"):] }

// undecided is a filled store whose proposals have not expired, and the hash of the words that are
// approved in tests.
func undecided(t *testing.T) (db, hash string) {
	db = sqliteFile(t)
	statement(t, db, stillOpen)
	return db, read[struct{ Hash string }](t, "--db", db, "rules", "show", "7d0c2b13-rule").Hash
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	plain, hash := undecided(t)
	var said strings.Builder
	for _, d := range decisions {
		args := strings.Fields(strings.ReplaceAll(d.command, "HASH", hash))
		of := func(db string, more ...string) []string {
			return append(append([]string{"--db", db}, args...), more...)
		}
		if long || d.name == "forget" { // the others take the same way
			r := call{args: of(plain, "--reason", d.reason)}.run(t)
			assert.Equal(t, misuse, r.code, r.err)
			assert.Empty(t, r.out)
			assert.Contains(t, r.err, "say --yes")
			assertFails(t, call{args: of(plain, "--yes")}.run(t), misuse, "--reason")
			assertFails(t, call{args: of(plain, "--now", asOf, "--yes", "--reason", d.reason)}.run(t),
				misuse, "--now")
		}
		r := call{args: of(plain, "--yes", "--reason", d.reason)}.run(t)
		require.Zero(t, r.code, r.err)
		assert.Empty(t, r.err)
		fmt.Fprintf(&said, "$ heed %s\n%s", d.command, r.out)
	}
	golden(t, "decisions.txt", randomID.ReplaceAllString(said.String(), "ID"))
	var reasons []string
	for _, entry := range read[[]store.AuditEntry](t, "--db", plain, "store", "audit", "--limit",
		"100") {
		if entry.Actor == "olive" {
			reason, _, _ := strings.Cut(entry.Reason, "; ") // the evidence is added after it
			reasons = append(reasons, reason)
		}
	}
	for _, d := range decisions {
		assert.Contains(t, reasons, d.reason, d.name)
	}
}

func TestWhatCannotBeDecided(t *testing.T) {
	t.Parallel()
	db, hash := undecided(t)
	of := func(command string) []string {
		return append([]string{"--db", db}, append(strings.Fields(command), "--yes", "--reason",
			"x")...)
	}
	require.Zero(t, call{args: of("rules approve 7d0c2b13-rule --hash " + hash)}.run(t).code)
	require.Zero(t, call{args: of("rules revoke 7d0c2b13-rule")}.run(t).code)
	for command, says := range map[string]string{
		"rules retire 7d0c2b13-rule":      "heed: 7d0c2b13-rule is revoked: that is for good",
		"rules reject 7d0c2b13-rule":      "heed: 7d0c2b13-rule is approved: ",
		"rules revoke 7d0c2b11-rule":      `there is no rule "7d0c2b11-rule": heed rules list`,
		"confidence unpin greet-by-name":  "is not pinned",
		"confidence pin greet-by-anme":    `there is no heuristic "greet-by-anme"`,
		"store forget Ann":                "no row of the store has that name",
		"store forget nobody-of-the-kind": "no row of the store has that name",
	} {
		assertFails(t, call{args: of(command)}.run(t), failed, says)
	}
	for _, command := range []string{"rules show", "rules retire", "confidence pin"} {
		assertFails(t, call{args: append([]string{"--db", db}, append(strings.Fields(command),
			"")...)}.run(t), misuse, "The id is empty")
	}
	for _, command := range []string{"confidence pin greet-by-name --at 0",
		"confidence pin greet-by-name --at 1.5", "confidence pin greet-by-name --at NaN"} {
		assertFails(t, call{args: of(command)}.run(t), misuse, "--at")
	}
	require.Zero(t, call{args: of("confidence pin greet-by-name --at 1")}.run(t).code)
	assertFails(t, call{args: append(of("store forget"), "")}.run(t), misuse, "Name the person")
}

// Without --yes, a command does not describe what the gate would refuse, but why it would.
func TestARefusalIsForeseen(t *testing.T) {
	t.Parallel()
	db, hash := undecided(t)
	of := func(command string) result {
		return call{args: append([]string{"--db", db, "rules"}, strings.Fields(command)...)}.run(t)
	}
	const id, why = "7d0c2b13-rule", " --yes --reason x"
	approval := "approve " + id + " --hash " + hash
	assertFails(t, of(approval+" --actor wendy"), failed,
		"an approval by wendy would not count: You proposed or edited this")
	require.Zero(t, of(approval+why).code)
	assertFails(t, of("retire "+id), misuse, "This retires", "Nothing was changed")
	require.Zero(t, of("retire "+id+why).code)
	require.Zero(t, of("retire "+id+why).code, "the answer may have been lost")
	assertFails(t, of("retire "+id), failed, id+" is retired: it is in no prompt")
	assertFails(t, of("revoke "+id), misuse, "This revokes", "Nothing was changed")
	require.Zero(t, of("revoke "+id+why).code)
	assertFails(t, of("revoke "+id), failed, id+" is revoked: that is for good")
	assertFails(t, of("retire "+id), failed, id+" is revoked: that is for good")
}

// So are the rules that a proposal contradicts, unless the approval overrides them.
func TestAContradictionIsForeseen(t *testing.T) {
	t.Parallel()
	file := sqliteFile(t)
	w := host(t, file)
	service, err := feedback.New(ctx, feedback.Config{Store: w.store,
		Gate: feedback.Gate{Quorum: 1}})
	require.NoError(t, err)
	propose := func(text string) feedback.Proposal {
		p, err := service.Rules().Propose(ctx, feedback.Submission{Actor: "eve", Reason: "it was said",
			Draft: feedback.Draft{Text: text, Agents: []string{"tester"}}})
		require.NoError(t, err)
		return p
	}
	approve := func(p feedback.Proposal, more string) result {
		return call{args: append([]string{"--db", file, "rules", "approve", p.ID, "--hash", p.Hash()},
			strings.Fields(more)...)}.run(t)
	}
	const yes = " --yes --reason x"
	always := propose("Always run the tests before the commit")
	never := propose("Never run the tests before the commit")
	assertFails(t, approve(always, ""), misuse, "This approves") // the other one is only proposed
	require.Zero(t, approve(always, yes).code)
	refusal := "it contradicts active rules: " + always.ID +
		": retire those, or have it approved with --override"
	assertFails(t, approve(never, ""), failed, "an approval would not count: "+refusal)
	assertFails(t, approve(never, yes), failed, refusal)
	override := "--override " + always.ID
	assertFails(t, approve(never, override), misuse, "This approves", "Nothing was changed")
	require.Zero(t, approve(never, override+yes).code)
	rule, err := service.Rules().Rule(ctx, never.ID)
	require.NoError(t, err)
	rule.Draft.Of, rule.Draft.Change = rule.ID, "PIN" // which puts no more words into prompts
	pin, err := service.Rules().Propose(ctx, feedback.Submission{Actor: "eve", Reason: "x",
		Draft: rule.Draft})
	require.NoError(t, err)
	assertFails(t, approve(pin, ""), misuse, "This approves", " to pin ", "Nothing was changed")
	require.Zero(t, approve(pin, yes).code)
}

// TestAPinHoldsWhatItSays has users speak up in between.
func TestAPinHoldsWhatItSays(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	confidenceOf := func() view.HeuristicDetail {
		return read[view.HeuristicDetail](t, at(db, "confidence", "greet-by-name")...)
	}
	before := confidenceOf()
	decide := func(args ...string) {
		t.Helper()
		r := call{args: append([]string{"--db", db, "confidence"}, append(args, "--yes", "--reason",
			"x")...)}.run(t)
		require.Zero(t, r.code, r.err)
	}

	decide("pin", "greet-by-name")
	complain(t, db, "greet-by-name", "1")
	assert.Equal(t, before.Confidence, confidenceOf().Confidence)
	assert.Contains(t, call{args: at(db, "confidence")}.run(t).out, "at 0.794")
	decide("unpin", "greet-by-name")
	assert.Less(t, confidenceOf().Confidence, before.Confidence, "what was heard meanwhile is seen")

	decide("pin", "greet-by-name", "--at", "0.9")
	complain(t, db, "greet-by-name", "2")
	assert.Equal(t, 0.9, confidenceOf().Confidence)
	assert.Contains(t, call{args: at(db, "confidence")}.run(t).out, "at 0.900")
	decide("unpin", "greet-by-name")
	assert.Less(t, confidenceOf().Confidence, before.Confidence)

	details := read[[]store.AuditEntry](t, "--db", db, "store", "audit", "--action", "learning.")
	require.Len(t, details, 4)
	assert.Equal(t, map[string]string{"before": "0.9 to 0.9", "after": "nothing"}, details[0].Details)
	held := fmt.Sprintf("%g to %g", before.Confidence, before.Confidence)
	assert.Equal(t, map[string]string{"before": "nothing", "after": held}, details[3].Details)
}

// TestAPinAndWhatTheHostHasSet pins and unpins a heuristic that has a range and a weight of its
// own.
func TestAPinAndWhatTheHostHasSet(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	w := host(t, db)
	module, err := learning.New(ctx, learning.Config{Store: w.store, Now: w.clock})
	require.NoError(t, err)
	standing, err := module.Standing(ctx, "greet-by-name")
	require.NoError(t, err)
	h := standing.Heuristic
	h.Constraints = learning.Constraints{Floor: 0.1, Ceiling: 0.7,
		FeedbackWeight: 0.5}
	_, err = module.Put(ctx, h)
	require.NoError(t, err)
	heldNow := func() view.Held {
		return read[view.HeuristicDetail](t,
			at(db, "confidence", "greet-by-name")...).Held
	}
	hosts := view.Held{Floor: 0.1, Ceiling: 0.7, Weight: 0.5}
	require.Equal(t, hosts, heldNow())
	for _, step := range []struct {
		command string
		then    view.Held
	}{{"pin", view.Held{Floor: 0.7, Ceiling: 0.7, Weight: 0.5}}, {"unpin", hosts}} {
		r := call{args: []string{"--db", db, "confidence", step.command, "greet-by-name", "--yes",
			"--reason", "x"}}.run(t)
		require.Zero(t, r.code, r.err)
		assert.Equal(t, step.then, heldNow(), step.command)
	}
}

// The settings are in the store.
func TestConfidenceSaysWhatTheHostSays(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	w := host(t, db)
	module, err := learning.New(ctx, learning.Config{
		Store: w.store, Now: w.clock, Name: "apart", Initial: 0.4,
		Trust: evidence.Trust{Instruments: []string{"ci"}}, HalfLife: 30 * day,
		Packs: map[string]learning.Constraints{"p": {Lock: "locked"}},
	})
	require.NoError(t, err)
	_, err = module.Put(ctx, learning.Heuristic{ID: "praised", CreatedAt: w.now})
	require.NoError(t, err)
	_, err = module.Put(ctx, learning.Heuristic{ID: "locked", Pack: "p", CreatedAt: w.now})
	require.NoError(t, err)
	for n := range 8 {
		_, err := module.Judge(ctx, learning.Judgement{
			HeuristicID: "praised", EventID: fmt.Sprint(n), Person: "ann", Value: 1,
		})
		require.NoError(t, err)
	}
	of := func(args ...string) []string {
		return append([]string{"--db", db, "--now", end.Format(time.RFC3339), "confidence", "--agent",
			"apart"}, args...)
	}
	standing, err := module.Standing(ctx, "praised")
	require.NoError(t, err)
	assert.Equal(t, standing.Confidence, read[view.HeuristicDetail](t, of("praised")...).Confidence)
	assert.True(t, read[view.HeuristicDetail](t, of("locked")...).Held.Locked)
}

// TestAPinHoldsWhatFades pins a heuristic long after its evidence, when what it has learned does
// not count any more.
func TestAPinHoldsWhatFades(t *testing.T) {
	t.Parallel()
	db := fading(t)
	of := func(args ...string) []string {
		return append([]string{"--db", db, "confidence", "--agent", "fading"}, args...)
	}
	then := func() float64 {
		return read[view.HeuristicDetail](t, of("praised", "--now",
			asOf)...).Confidence
	}
	require.Greater(t, then(), 0.5)
	r := call{args: of("pin", "praised", "--yes", "--reason", "x")}.run(t)
	require.Zero(t, r.code, r.err)
	assert.Equal(t, "praised is held now: at 0.300. Its confidence is 0.300.\n", r.out)
	assert.Equal(t, "0.300", text(then()))
}
