package world

import (
	"fmt"
	"strings"
	"time"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/lab/agent/assistant"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// Answered gives the world the answer to an event, which decides what happens next, and returns how
// good it was.
func (w *World) Answered(e loop.Event, answer string, byModel bool) Verdict {
	v := w.Judge(e, answer)
	k := kindOf(e.Text)
	if k.Domain == assistant.Changes {
		w.finish(e, v)
		return v
	}
	if answer != "" {
		w.react(e, v.Good)
	}
	if k.Mistakes != nil && byModel {
		w.review(e, v)
	}
	w.say(e.At.Add(2*time.Minute), assistant.Closed{At: e.At.Add(2 * time.Minute)})
	return v
}

// react plans what the user does after an answer: mostly no reaction.
func (w *World) react(e loop.Event, good bool) {
	m := discontented
	if good {
		m = contented
	}
	at := e.At.Add(time.Duration(5+20*w.draw("after", e.ID)) * time.Second)
	message := learning.Message{Session: e.Session, Stream: e.Stream, Person: e.Person, At: at}
	switch u := w.draw("reaction", e.ID); {
	case u < m.undo:
		message.Text = pick(w.draw("words", e.ID), "Undo that.", "please revert, it made it worse",
			"Cancel that!")
		w.say(at, message)
	case u < m.undo+m.again:
		message.Text = pick(w.draw("words", e.ID), "it is still there", "Anybody?", "same thing again")
		w.say(at, message)
	case u < m.undo+m.again+m.down+m.up:
		value := -1.
		if m.up > 0 {
			value = 1
		}
		w.say(at, assistant.Thumb{Event: e.ID, Reaction: loop.Reaction{Person: e.Person, Value: value,
			At: at}})
	}
}

// finish plans the end of a task: hours later for a good plan, and more for a bad one.
func (w *World) finish(e loop.Event, v Verdict) {
	done := assistant.Done{Event: e.ID, Outcome: loop.Outcome{Success: &v.Good,
		Duration: time.Duration(3+5*w.draw("minutes", e.ID)) * time.Minute}}
	if !v.Good {
		done.Duration *= 6
		done.Errors, done.Retries, done.Failure = v.errors, 2, "rework"
	}
	done.At = e.At.Add(done.Duration)
	w.say(done.At, done)
}

// review plans a reviewer's verdict on an answer: what is wrong with it, or that it is right.
func (w *World) review(e loop.Event, v Verdict) {
	if w.draw("reviewed", e.ID) > reviewed {
		return
	}
	at := e.At.Add(90 * time.Second)
	r := assistant.Review{Event: e.ID, Correction: loop.Correction{
		ID: "review-" + e.ID, At: at, Reviewer: fmt.Sprintf("reviewer-%d",
			int(w.draw("reviewer", e.ID)*reviewers)),
	}}
	wrong := v.Mistakes
	if len(wrong) == 0 && w.draw("nagged", e.ID) < nagged {
		wrong = truth.Mistakes[len(truth.Mistakes)-1:]
	}
	if len(wrong) > 0 {
		r.Text = pick(w.draw("said", e.ID), wrong[0].Said...)
	}
	w.say(at, r)
}

// Leads are the two people who look at proposals.
var Leads = [2]string{"lead-ann", "lead-bob"}

// Review is what a lead makes of a proposed rule: what they want, and why.
func (w *World) Review(lead string, p feedback.Proposal) feedback.Review {
	r := feedback.Review{
		Proposal: p.ID, Decision: feedback.Approved, Actor: lead,
		Reason: "it was missing more than once", Hash: p.Hash(),
	}
	for _, m := range Mistakes() {
		if !m.Wanted && strings.Contains(p.Text, m.Word) {
			r.Decision, r.Reason, r.Hash = feedback.Rejected, "people need the whole answer", ""
		}
	}
	return r
}
