package looptest

import (
	"fmt"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
)

// propose has a person propose a rule.
func (f *fixture) propose(d feedback.Draft) feedback.Proposal {
	proposal, err := f.agent.Feedback().Rules().Propose(background, feedback.Submission{
		Draft: d, Actor: "proposer", Reason: "the suite needs it",
	})
	f.Must("Propose", err)
	return proposal
}

// forAll returns the draft of a rule for all agents.
func forAll(text string) feedback.Draft { return feedback.Draft{Text: text, AllAgents: true} }

// approve has people propose a rule and approve it, and returns its id.
func (f *fixture) approve(d feedback.Draft) string {
	proposal := f.propose(d)
	f.review(proposal, feedback.Approved, "lead-1")
	f.review(proposal, feedback.Approved, "lead-2")
	return proposal.ID
}

func (f *fixture) review(p feedback.Proposal, decision feedback.Decision, lead string) {
	_, err := f.agent.Feedback().Rules().Review(background, feedback.Review{
		Proposal: p.ID, Decision: decision, Actor: lead, Reason: "so it is", Hash: p.Hash(),
	})
	f.Must("Review", err)
}

// wantInRequests checks how often each request contains each text.
func (f *fixture) wantInRequests(times int, texts ...string) {
	for i, r := range f.model.requests() {
		for _, text := range texts {
			f.Equal(fmt.Sprintf("how often request %d has the text %q", i+1, text), r.count(text), times)
		}
	}
}

// addedOnce looks at every request: the first one of a turn, the one after a tool, and the requests
// of a second turn in the session.
func addedOnce(f *fixture) {
	rule := f.approve(forAll(ruleText))
	for range 2 {
		f.model.will(calls(lookUp, databaseHost, 1, "Done."))
		account := f.account(f.ask(shopText))
		f.Equal("the requests of a turn with one call of a tool", len(f.model.requests()), 2)
		f.wantInRequests(1, ruleText, noteText, armPrompt, shownAction, hostPrompt)
		f.Check(len(account.Rules) == 1 && account.Rules[0].ID == rule,
			"the prompt had the rule %s, and heed has on record %+v", rule, account.Rules)
		f.Equal("the notes on record", account.Notes, []string{noteID})
		f.Equal("the heuristics on record", account.Shown, []string{shownID})
		f.Check(account.Choice != nil && account.Choice.Arm == "short", "the arm is not on record")
	}
}

func userText(f *fixture) {
	for _, text := range []string{shopText, plainText, `Is "é < ü" right, and 2 * 3?`} {
		f.model.will(calls(lookUp, databaseHost, 1, "Done."))
		f.wantTrace(f.ask(text))
		f.wantInRequests(1, text, hostPrompt)
		for _, r := range f.model.requests() {
			for _, line := range r {
				f.Check(line.Role == User || (Request{line}).count(text) == 0,
					"a request has the text of the person as the %s's", line.Role)
			}
		}
	}
	f.wantTrace(f.ask("  And  what of\tit? "))
}

// onlyApproved looks at two turns, because rules come and go while an agent runs.
func onlyApproved(f *fixture) {
	const (
		refused   = "Greet everybody in Latin."
		waiting   = "Sign with your full name."
		others    = "Speak of the weather at first."
		corrected = "Mention the bank holiday on Monday."
		later     = "Give numbers with their units."
	)
	approved := f.approve(forAll(ruleText))
	f.review(f.propose(forAll(refused)), feedback.Rejected, "lead-1")
	f.propose(forAll(waiting))
	f.approve(feedback.Draft{Text: others, Agents: []string{"another agent"}})
	turn := func(in, out string) heard {
		f.model.will(says("Look at the logs."))
		h := f.ask(plainText)
		f.wantInRequests(1, in)
		f.wantInRequests(0, refused, waiting, others, corrected, out)
		return h
	}
	h := turn(ruleText, later)
	_, err := f.agent.Correct(background, h.ID, loop.Correction{Reviewer: "kim", Text: corrected})
	f.Must("Correct", err)
	outdated := feedback.Act{ID: approved, Actor: "lead-1", Reason: "it is outdated"}
	_, err = f.agent.Feedback().Rules().Move(background, outdated, feedback.StateRetired)
	f.Must("Move", err)
	f.approve(forAll(later))
	turn(later, ruleText)
}

// echo makes the model repeat what heed added to its prompt: a note whose text would take an answer
// back if it came from a person, a rule, and a heuristic.
func echo(f *fixture) {
	f.approve(forAll(ruleText))
	echoes := []heard{f.ask(trustedText)}
	before := f.trust(shownID)
	for _, say := range []struct{ text, echo string }{
		{baitText, bait}, {shopText, ruleText}, {shopText, shownAction},
		{plainText, "Look at the logs."},
	} {
		f.model.will(says(say.echo))
		h := f.ask(say.text)
		f.wantTrace(h)
		echoes = append(echoes, h)
		for _, h := range echoes {
			f.wantNothingSaid(h)
		}
	}
	f.Equal("the trust in a heuristic that the model repeats", f.trust(shownID), before)
	f.wantOutcomes(0)
	f.wantBait(echoes[len(echoes)-1])
}

// armModels asks in session after session until both arms were chosen, because an arm stays for its
// session. Each turn is answered by the arm's model alone.
func armModels(f *fixture) {
	chosen := make(map[string]int)
	for i := 0; min(chosen["short"], chosen[second]) < 2; i++ {
		if i == 30 {
			f.Fatalf("of two arms, %v were chosen in %d turns", chosen, i)
		}
		f.model.will(says("Look at ", "the logs."))
		f.second.will(says("Ask ", "the operator."))
		h := f.again(f.next(fmt.Sprint("s", i/2), ann, plainText))
		choice := f.account(h).Choice
		if choice == nil {
			f.Fatalf("an arm was chosen, and heed has none on record")
		}
		calls, want := []int{1, 0}, "Look at the logs."
		if chosen[string(choice.Arm)]++; choice.Arm == second {
			calls, want = []int{0, 1}, "Ask the operator."
		}
		asked := []int{len(f.model.requests()), len(f.second.requests())}
		f.Equal("the calls of both models", asked, calls)
		f.wantSaid(h, want)
	}
}

// armTools has the model call a tool that its arm has, and one that it has not. The framework may
// end the turn then.
func armTools(f *fixture) {
	f.model.will(calls(lookUp, databaseHost, 1, "It is up."))
	f.wantSaid(f.ask(plainText), "It is up.")
	f.Equal("the runs of a tool of the arm", f.runs.Load(), 1)
	f.model.will(calls(deploy, databaseHost, 1, "It can't be done."))
	h := f.run(background, f.turn(plainText))
	f.Equal("the runs of tools that the arm has", f.runs.Load(), 1)
	if h.err == nil {
		f.wantSaid(h, "It can't be done.")
	}
}

// enforced has the model call a tool against a rule, with arguments in several spellings, and then
// as the rule allows. The framework may end a turn in which a call is refused, or which has no
// words.
func enforced(f *fixture) {
	rule := forAll("Leave that alone.")
	rule.Check = feedback.Check{Tool: lookUp, Forbid: "db-1|a > b"}
	f.approve(rule)
	for _, text := range []string{plainText, ""} {
		for _, input := range []string{
			databaseHost, `{"host":"db\u002d1"}`, `{"host":"a > b"}`, `{"host":"a \u003e b"}`,
		} {
			f.model.will(calls(lookUp, input, 1, "It is up."))
			f.run(background, f.turn(text))
			f.Equal("the calls with "+input+" that break a rule", f.runs.Swap(0), 0)
		}
	}
	f.model.will(calls(lookUp, `{"host":"web-1"}`, 1, "It is up."))
	f.wantSaid(f.ask(plainText), "It is up.")
	f.Equal("the calls that break no rule", f.runs.Load(), 1)
}
