package looptest

import (
	"fmt"
	"time"

	"github.com/heedhq/heed/feedback"
)

// armModels asks in session after session until both arms were chosen, as an arm stays for its session. Each turn is the arm's model's
// alone.
func armModels(f *fixture) {
	const most = 30
	chosen := make(map[string]int)
	for i := range most {
		f.model.will(says("Look at ", "the logs."))
		f.second.will(says("Ask ", "the operator."))
		h := f.again(f.next(fmt.Sprint("s", i/2), ann, plainText))
		choice := f.account(h).Choice
		if choice == nil {
			f.Fatalf("an arm was chosen, and heed has none on record")
			return
		}
		arm := string(choice.Arm)
		of, other, want := f.model, f.second, "Look at the logs."
		if arm == second {
			of, other, want = f.second, f.model, "Ask the operator."
		}
		if n, none := len(of.requests()), len(other.requests()); n != 1 || none != 0 {
			f.Errorf("the model of the arm %q was called %d times and not once, and the other one %d times and not at all", arm, n, none)
		}
		f.wantSaid(h, want)
		f.clock.advance(time.Second)
		if chosen[arm]++; len(chosen) == 2 && min(chosen[arm], chosen[second]) > 1 {
			return
		}
	}
	f.Errorf("of two arms, %v were chosen in %d turns", chosen, most)
}

// armTools has the model call a tool that its arm has, and one that it has not. The framework may end the turn then.
func armTools(f *fixture) {
	f.model.will(calls(lookUp, 1, "It is up."))
	f.wantSaid(f.ask(plainText), "It is up.")
	if n := f.runs.Load(); n != 1 {
		f.Errorf("a tool of the arm was called once, and ran %d times", n)
	}
	f.clock.advance(time.Second)
	f.model.will(calls(deploy, 1, "It can't be done."))
	h := f.run(background, f.next("s1", ann, plainText))
	if n := f.runs.Load(); n != 1 {
		f.Errorf("a tool ran that the arm has not")
	}
	if h.err == nil {
		f.wantSaid(h, "It can't be done.")
	}
}

// enforced has the model call a tool against a rule, with arguments in several spellings, and then as the rule allows. The framework may end a
// turn in which a call is refused, or in which nobody says anything.
func enforced(f *fixture) {
	f.enact(f.draft(feedback.Draft{Text: "Leave that alone.", AllAgents: true, Check: feedback.Check{Tool: lookUp, Forbid: "db-1|a > b"}}))
	for _, text := range []string{plainText, ""} {
		for _, input := range []string{`{"host":"db-1"}`, `{"host":"db\u002d1"}`, `{"host":"a > b"}`, `{"host":"a \u003e b"}`} {
			f.model.will(callsWith(input, lookUp, 1, "It is up."))
			f.run(background, f.next("s1", ann, text))
			if n := f.runs.Swap(0); n != 0 {
				f.Errorf("a call of a tool with %s breaks a rule, and was made after the message %q", input, text)
			}
			f.clock.advance(time.Second)
		}
	}
	f.model.will(callsWith(`{"host":"web-1"}`, lookUp, 1, "It is up."))
	f.wantSaid(f.ask(plainText), "It is up.")
	if n := f.runs.Load(); n != 1 {
		f.Errorf("a call of a tool that breaks no rule was made %d times and not once", n)
	}
}

// streamEnds has an answer end with what could begin a tag.
func streamEnds(f *fixture) {
	for i, pieces := range [][]string{{"The sign for less is ", "<"}, {"It is written ", "<th"}} {
		f.model.will(says(pieces...))
		h := f.ask(plainText)
		f.wantSaid(h, pieces[0]+pieces[1])
		f.wantTrace(h)
		f.wantAnswers(i+1, "after as many turns")
		f.clock.advance(time.Second)
	}
}

// groupChat has two people speak in turn in one session.
func groupChat(f *fixture) {
	for i, person := range []string{ann, bob, bob, ann, ann, bob} {
		text := plainText
		if i%2 == 1 {
			text = trustedText
		}
		f.wantTrace(f.again(f.next("s1", person, text)))
		f.clock.advance(time.Second)
	}
}
