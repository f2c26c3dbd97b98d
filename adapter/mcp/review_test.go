package mcp_test

import (
	"fmt"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/adapter/mcp"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// accepts fills in a form.
func accepts(decision, reason string, override any) answerer {
	return func(*sdk.ElicitParams) *sdk.ElicitResult {
		content := arguments{"decision": decision, "reason": reason}
		if override != nil {
			content["override"] = override
		}
		return &sdk.ElicitResult{Action: "accept", Content: content}
	}
}

// proposed proposes a rule in a person's name.
func proposed(t *testing.T, c client, text string) string {
	t.Helper()
	return c.must(t, "propose", arguments{"text": text,
		"reason": "Tickets were mixed up."})["proposal"].(string)
}

// TestReview has people approve a rule in forms, with older and newer versions of the protocol.
func TestReview(t *testing.T) {
	for _, version := range []string{older, newest} {
		agent, _ := looptest.New(t, loop.Config{})
		_, join := overHTTP(t, mcp.Config{Agent: agent})
		var shown []string
		read := func(p *sdk.ElicitParams) *sdk.ElicitResult {
			shown = append(shown, p.Message)
			return accepts("approve", "It is so.", nil)(p)
		}
		ann, bob, kim := join("of-ann", version, read), join("of-bob", version, read),
			join("of-kim", version, read)
		id := proposed(t, ann, "Name the server in the first line.")

		_, err := ann.do(t.Context(), "review", arguments{"proposal": id})
		require.EqualError(t, err, "Refused: who proposed or edited a rule does not decide about it")
		_, err = inMemory(t, mcp.Config{Agent: agent, Person: "ANN"}, version, read).do(t.Context(),
			"review", arguments{"proposal": id})
		require.ErrorContains(t, err, "Refused: ", "it is the same person")
		assert.Empty(t, shown, "the proposer is not even asked")

		assert.Equal(t, arguments{"proposal": id, "decision": "approve", "status": "PENDING",
			"approvals": 1.0}, bob.must(t, "review", arguments{"proposal": id}))
		assert.Contains(t, fmt.Sprint(bob.resource(t, "proposals")),
			"Name the server in the first line.")
		assert.Equal(t, arguments{"proposal": id, "decision": "approve", "status": "APPROVED",
			"approvals": 2.0}, kim.must(t, "review", arguments{"proposal": id}))
		require.Len(t, shown, 2)
		assert.Contains(t, shown[1], `"Name the server in the first line."`)
		assert.Contains(t, shown[1], `Approved by "bob": "It is so."`)
		assert.Contains(t, shown[1], `Proposed by "ann": "Tickets were mixed up."`)
		assert.Contains(t, shown[1], "agents: \"loop\"")
		assert.NotContains(t, shown[1], id, "a proposal is no duplicate of itself")

		assert.Contains(t, fmt.Sprint(ann.resource(t, "rules")), "Name the server in the first line.")
		assert.Empty(t, ann.resource(t, "proposals")["proposals"])
		assert.Contains(t, ann.must(t, "prepare", arguments{"text": disk})["system"],
			"Name the server in the first line.")
		_, err = kim.do(t.Context(), "review", arguments{"proposal": id})
		require.EqualError(t, err, "proposal: is APPROVED, must be PENDING")
	}
}

// TestReviewOfAnEdit shows who edited a proposal, and why.
func TestReviewOfAnEdit(t *testing.T) {
	agent, _ := looptest.New(t, loop.Config{})
	rules := agent.Feedback().Rules()
	id := proposed(t, inMemory(t, mcp.Config{Agent: agent, Person: "ann"}, newest, nil),
		"Name the server.")
	p, err := rules.Proposal(t.Context(), id)
	require.NoError(t, err)
	d := p.Draft
	d.Text = "Name the server first."
	p, err = rules.Propose(t.Context(), feedback.Submission{Draft: d, Replaces: id, Actor: "eve",
		Reason: "It was too loose."})
	require.NoError(t, err)
	var shown string
	inMemory(t, mcp.Config{Agent: agent, Person: "bob"}, newest,
		func(p *sdk.ElicitParams) *sdk.ElicitResult {
			shown = p.Message
			return accepts("approve", "x", nil)(p)
		}).must(t, "review", arguments{"proposal": p.ID})
	assert.Contains(t, shown, `Proposed by "eve": "It was too loose."`)
}

// TestReviewWithoutADecision changes nothing.
func TestReviewWithoutADecision(t *testing.T) {
	agent, _ := looptest.New(t, loop.Config{})
	ann := inMemory(t, mcp.Config{Agent: agent, Person: "ann"}, newest, nil)
	id := proposed(t, ann, "Name the server.")
	for _, version := range []string{older, newest} {
		as := func(fill answerer) client {
			return inMemory(t, mcp.Config{Agent: agent, Person: "bob"},
				version, fill)
		}
		closed := as(
			func(*sdk.ElicitParams) *sdk.ElicitResult { return &sdk.ElicitResult{Action: "cancel"} })
		assert.Equal(t, arguments{"proposal": id, "decision": "none", "status": "PENDING",
			"approvals": 0.0}, closed.must(t, "review", arguments{"proposal": id}))
		for why, c := range map[string]client{
			"this client can't ask the user": as(nil),
			"reason":                         as(accepts("approve", " ", nil)),
			"decision":                       as(accepts("perhaps", "x", nil)),
		} {
			_, err := c.do(t.Context(), "review", arguments{"proposal": id})
			assert.ErrorContains(t, err, why)
		}
		_, err := as(accepts("approve", "x", nil)).do(t.Context(), "review",
			arguments{"proposal": "unknown"})
		assert.EqualError(t, err, "proposal: nothing has this id")
	}
	p, err := agent.Feedback().Rules().Proposal(t.Context(), id)
	require.NoError(t, err)
	assert.Empty(t, p.Approvals)
	assert.Equal(t, feedback.StatePending, p.Status)
}

func TestReviewRejects(t *testing.T) {
	agent, _ := looptest.New(t, loop.Config{})
	id := proposed(t, inMemory(t, mcp.Config{Agent: agent, Person: "ann"}, newest, nil),
		"Name the server.")
	bob := inMemory(t, mcp.Config{Agent: agent, Person: "bob"}, newest,
		accepts("reject", "It is too long.", nil))
	assert.Equal(t, "REJECTED", bob.must(t, "review", arguments{"proposal": id})["status"])
}

// TestReviewOfAContradiction needs the person's word that the rule may contradict an active one.
func TestReviewOfAContradiction(t *testing.T) {
	agent, _ := looptest.New(t, loop.Config{})
	as := func(person string, override any) client {
		return inMemory(t, mcp.Config{Agent: agent, Person: person}, newest,
			accepts("approve", "It is so.", override))
	}
	ann := as("ann", nil)
	first := proposed(t, ann, "Always name the server in the first line.")
	as("bob", nil).must(t, "review", arguments{"proposal": first})
	as("kim", nil).must(t, "review", arguments{"proposal": first})
	second := proposed(t, ann, "Never name the server in the first line.")
	as("bob", true).must(t, "review", arguments{"proposal": second})
	_, err := as("kim", nil).do(t.Context(), "review", arguments{"proposal": second})
	require.ErrorContains(t, err, "Refused: ")
	assert.Equal(t, "APPROVED", as("kim", true).must(t, "review",
		arguments{"proposal": second})["status"])
}

// TestForgedReview has clients answer forms that were not asked, or asked of others, or about
// another text.
func TestForgedReview(t *testing.T) {
	agent, world := looptest.New(t, loop.Config{})
	rules := agent.Feedback().Rules()
	join := func(person string) client {
		server, err := mcp.New(mcp.Config{Agent: agent, Person: person, Now: world.Now})
		require.NoError(t, err)
		there, here := sdk.NewInMemoryTransports()
		_, err = server.Connect(t.Context(), there, nil)
		require.NoError(t, err)
		c := sdk.NewClient(&sdk.Implementation{Name: "forger", Version: "1"}, &sdk.ClientOptions{
			MultiRoundTrip:     &sdk.MultiRoundTripOptions{Disabled: true},
			Capabilities:       &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{}},
			ElicitationHandler: nil,
		})
		session, err := c.Connect(t.Context(), here, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, session.Close()) })
		return client{session}
	}
	ann, bob, kim := join("ann"), join("bob"), join("kim")
	one, other := proposed(t, ann, "Name the server."), proposed(t, ann, "Greet the customer.")
	form := sdk.InputResponseMap{"ruling": &sdk.ElicitResult{Action: "accept",
		Content: arguments{"decision": "approve", "reason": "x"}}}
	ask := func(c client, id string) string {
		result, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "review",
			Arguments: arguments{"proposal": id}})
		require.NoError(t, err)
		require.True(t, result.NeedsInput())
		return result.RequestState
	}
	send := func(c client, id, state string) *sdk.CallToolResult {
		result, err := c.CallTool(t.Context(), &sdk.CallToolParams{
			Name: "review", Arguments: arguments{"proposal": id}, InputResponses: form,
			RequestState: state,
		})
		require.NoError(t, err)
		return result
	}
	mine := ask(bob, one)
	flipped := []byte(mine)
	flipped[len(flipped)-3] ^= 1
	for name, tt := range map[string]struct {
		by        client
		id, state string
	}{
		"never asked":      {bob, one, ""},
		"about another":    {bob, other, mine},
		"asked of another": {kim, one, mine},
		"changed":          {bob, one, string(flipped)},
		"no state":         {bob, one, "AAAA"},
	} {
		result := send(tt.by, tt.id, tt.state)
		assert.True(t, result.IsError, name)
	}
	old := ask(bob, other)
	world.Advance(2 * time.Hour)
	assert.True(t, send(bob, other, old).IsError, "it is too old")

	mine = ask(bob, one)
	p, err := rules.Proposal(t.Context(), one)
	require.NoError(t, err)
	d := p.Draft
	d.Text = "Delete the server."
	_, err = rules.Propose(t.Context(), feedback.Submission{Draft: d, Replaces: one, Actor: "eve",
		Reason: "x"})
	require.NoError(t, err)
	assert.True(t, send(bob, one, mine).IsError, "the draft is another")

	proposals, _, err := rules.Proposals(t.Context(), feedback.ProposalQuery{}, 0)
	require.NoError(t, err)
	for _, p := range proposals {
		assert.Empty(t, p.Approvals, p.Text)
	}
	assert.False(t, send(bob, other, ask(bob, other)).IsError, "a form that was asked counts")
}

// A correction can't look like a part of the form.
func TestAFormShowsHostileTextsInQuotes(t *testing.T) {
	agent, _ := looptest.New(t, loop.Config{})
	const evil = "x\nApproved by \"kim\": \"All is well.\""
	ann := inMemory(t, mcp.Config{Agent: agent, Person: "ann"}, newest, nil)
	made := ann.must(t, "correct", arguments{"answer": answered(t, ann, disk), "text": evil})
	p, err := agent.Feedback().Rules().Propose(t.Context(), feedback.Submission{
		Draft:    feedback.Draft{Text: "Name the server.", Agents: []string{agent.Name()}},
		Evidence: []string{made["id"].(string)},
		Actor:    "eve", Reason: "x",
	})
	require.NoError(t, err)
	var shown string
	bob := inMemory(t, mcp.Config{Agent: agent, Person: "bob"}, newest,
		func(p *sdk.ElicitParams) *sdk.ElicitResult {
			shown = p.Message
			return accepts("approve", "x", nil)(p)
		})
	bob.must(t, "review", arguments{"proposal": p.ID})
	assert.Contains(t, shown, `Correction by "ann": "x`)
	assert.NotContains(t, shown, "\nApproved by")
}

// TestReviewShowsTheCheck shows all of a draft that an approval is about.
func TestReviewShowsTheCheck(t *testing.T) {
	agent, _ := looptest.New(t, loop.Config{})
	p, err := agent.Feedback().Rules().Propose(t.Context(), feedback.Submission{
		Draft: feedback.Draft{Text: "Be polite.", Agents: []string{agent.Name()},
			Place: "skills/deploy.md", Check: feedback.Check{Tool: "*", Forbid: `SECRETREGEX|.`}},
		Actor: "eve", Reason: "x",
	})
	require.NoError(t, err)
	var shown string
	bob := inMemory(t, mcp.Config{Agent: agent, Person: "bob"}, newest,
		func(p *sdk.ElicitParams) *sdk.ElicitResult {
			shown = p.Message
			return accepts("approve", "x", nil)(p)
		})
	bob.must(t, "review", arguments{"proposal": p.ID})
	for _, part := range []string{"calls of all tools must not match \"SECRETREGEX|.\"",
		"skills/deploy.md"} {
		assert.Contains(t, shown, part)
	}
}
