package looptest

import (
	"time"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// propose has a person propose a rule for some agents, or for all, and returns its id.
func (f *fixture) propose(text string, agents ...string) string {
	f.Helper()
	return f.draft(feedback.Draft{Text: text, Agents: agents, AllAgents: len(agents) == 0})
}

// draft has a person propose a rule, and returns its id.
func (f *fixture) draft(d feedback.Draft) string {
	f.Helper()
	proposal, err := f.agent.Feedback().Rules().Propose(background, feedback.Submission{Draft: d, Actor: "proposer", Reason: "the suite needs it"})
	f.must("Propose", err)
	return proposal.ID
}

// approve has people approve a rule, and returns its id.
func (f *fixture) approve(text string, agents ...string) string {
	f.Helper()
	id := f.propose(text, agents...)
	f.enact(id)
	return id
}

// enact has people approve a proposal.
func (f *fixture) enact(id string) {
	f.Helper()
	rules := f.agent.Feedback().Rules()
	for _, lead := range []string{"lead-1", "lead-2", "lead-3"} {
		proposal, err := rules.Proposal(background, id)
		f.must("Proposal", err)
		if proposal.Status != feedback.StatePending {
			break
		}
		_, err = rules.Review(background, feedback.Review{
			Proposal: id, Decision: feedback.Approved, Actor: lead, Reason: "it is right",
			Hash: proposal.Hash(),
		})
		f.must("Review", err)
	}
}

// addedOnce looks at every request: the first one of a turn, the one after a tool, and those of a second turn in the session.
func addedOnce(f *fixture) {
	f.approve(ruleText)
	for range 2 {
		f.model.will(calls(lookUp, 1, "Done."))
		h := f.ask(shopText)
		requests := f.model.requests()
		if len(requests) != 2 {
			f.Errorf("the model was called %d times and not twice in a turn with one call of a tool", len(requests))
		}
		for i, r := range requests {
			for _, text := range []string{ruleText, noteText, armPrompt, shownAction} {
				if n := r.count(text); n != 1 {
					f.Errorf("the request %d of the turn %s has the text %q, which heed adds, %d times", i+1, h.turn.ID, text, n)
				}
			}
		}
		f.clock.advance(time.Second)
	}
}

func onRecord(f *fixture) {
	rule := f.approve(ruleText)
	h := f.ask(shopText)
	account := f.account(h)
	if len(account.Rules) != 1 || account.Rules[0].ID != rule {
		f.Errorf("the prompt had the rule %s, and heed has %d rules on record", rule, len(account.Rules))
	}
	if len(account.Notes) != 1 || account.Notes[0] != noteID {
		f.Errorf("the prompt had the note %s, and heed has %v on record", noteID, account.Notes)
	}
	if account.Choice == nil || account.Choice.Arm != "short" {
		f.Errorf("an arm was chosen, and heed has none on record")
	}
	if len(account.Shown) != 1 || account.Shown[0] != shownID {
		f.Errorf("the prompt had the heuristic %s, and heed has %v on record", shownID, account.Shown)
	}
}

func userText(f *fixture) {
	const first, second = `Is "é < ü" right, and 2 * 3?`, "  And  what of\tit? "
	for _, text := range []string{shopText, plainText, first} {
		f.model.will(calls(lookUp, 1, "Done."))
		h := f.ask(text)
		f.wantTrace(h)
		for i, r := range f.model.requests() {
			if n := r.count(text); n != 1 {
				f.Errorf("the request %d of the turn %q has its text %d times", i+1, text, n)
			}
			for _, line := range r {
				if line.Role != User && (Request{line}).count(text) > 0 {
					f.Errorf("the request %d of the turn %q has its text as the %s's", i+1, text, line.Role)
				}
			}
		}
		f.clock.advance(time.Second)
	}
	f.wantTrace(f.ask(second))
}

func hostSystem(f *fixture) {
	for _, text := range []string{shopText, plainText} {
		f.model.will(calls(lookUp, 1, "Done."))
		f.ask(text)
		for i, r := range f.model.requests() {
			if n := r.count(hostPrompt); n != 1 {
				f.Errorf("the request %d of the turn %q has the host's system prompt %d times", i+1, text, n)
			}
		}
		f.clock.advance(time.Second)
	}
}

// onlyApproved looks at two turns, as rules come and go while an agent runs.
func onlyApproved(f *fixture) {
	const (
		refused   = "Greet everybody in Latin."
		waiting   = "Sign with your full name."
		others    = "Speak of the weather at first."
		corrected = "Mention the bank holiday on Monday."
		later     = "Give numbers with their units."
	)
	rules := f.agent.Feedback().Rules()
	approved := f.approve(ruleText)
	_, err := rules.Review(background, feedback.Review{
		Proposal: f.propose(refused), Decision: feedback.Rejected, Actor: "lead-1",
		Reason: "it is wrong",
	})
	f.must("Review", err)
	f.propose(waiting)
	f.approve(others, "another agent")
	var last heard
	check := func(in, out string) {
		f.Helper()
		f.model.will(says("Look at the logs."))
		last = f.ask(plainText)
		for _, r := range f.model.requests() {
			if r.count(in) == 0 {
				f.Errorf("the model was not told the rule %q, which people approved", in)
			}
			for _, text := range []string{refused, waiting, others, corrected, out} {
				if r.count(text) > 0 {
					f.Errorf("the model was told the rule %q, which is not in force", text)
				}
			}
		}
		f.clock.advance(time.Second)
	}
	check(ruleText, later)
	_, err = f.agent.Correct(background, last.ID, loop.Correction{Reviewer: "kim", Text: corrected})
	f.must("Correct", err)
	_, err = rules.Move(background, feedback.Order{ID: approved, Actor: "lead-1", Reason: "it is outdated"}, feedback.StateRetired)
	f.must("Move", err)
	f.approve(later)
	check(later, ruleText)
}

// echo has the model say what heed added to its prompt: a note whose text would take an answer back if a person said it, a rule,
// and a heuristic.
func echo(f *fixture) {
	f.approve(ruleText)
	first := f.ask(trustedText)
	before := standing(f, f.agent, shownID).Confidence
	echoes := []heard{first}
	for _, say := range []struct{ text, echo string }{
		{baitText, bait}, {shopText, ruleText}, {shopText, shownAction}, {plainText, "Look at the logs."},
	} {
		f.clock.advance(time.Second)
		f.model.will(says(say.echo))
		h := f.ask(say.text)
		f.wantTrace(h)
		echoes = append(echoes, h)
		for _, h := range echoes {
			f.wantNothingSaid(h, "after the model said "+say.echo)
		}
	}
	if after := standing(f, f.agent, shownID).Confidence; after != before {
		f.Errorf("the trust in a heuristic went from %v to %v when the model repeated it", before, after)
	}
	if n := f.outcomes(); n != 0 {
		f.Errorf("the arm was told of %d outcomes when the model repeated what heed added", n)
	}
	f.wantBait(echoes[len(echoes)-1])
}

// wantBait checks that the suite's bait is one: that heed would have believed it if a person had said it.
func (f *fixture) wantBait(h heard) {
	f.Helper()
	_, err := f.agent.Hear(background, learning.Message{Session: h.turn.Session, Person: h.turn.Person, Text: bait})
	f.must("Hear", err)
	if f.account(h).Worth != -1 {
		f.Errorf("heed does not know that the answer to %q was given to %s in the session %s", h.turn.Text, h.turn.Person, h.turn.Session)
	}
}
