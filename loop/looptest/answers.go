package looptest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
)

// saying makes the model answer with pieces. The person must see a text of them, and heed must get
// it.
func saying(want string, say script) func(*fixture) {
	return func(f *fixture) {
		f.model.will(say)
		h := f.ask(plainText)
		f.wantSaid(h, want)
		f.wantTrace(h)
		f.wantAnswers(1)
		for _, trace := range f.traces() {
			f.Equal("the path of the answer", trace.Path, decision.Model)
		}
	}
}

func earnsNothing(f *fixture) {
	for _, text := range []string{plainText, trustedText} {
		before := f.trust(trustedID)
		h := f.ask(text)
		f.pass(0)
		f.wantNothingSaid(h)
		f.Equal("the trust in a heuristic", f.trust(trustedID), before)
	}
	f.wantOutcomes(0)
}

func shortCircuit(f *fixture) {
	h := f.ask(trustedText)
	f.wantSaid(h, trustedAction)
	f.Equal("the requests that the model got", len(f.model.requests()), 0)
	f.Equal("the heuristic that answered", f.account(h).Heuristic, trustedID)
	f.wantAnswers(1)
}

// creditOnce has a heuristic answer twice, and people praise it once and blame it once.
func creditOnce(f *fixture) {
	for _, value := range []float64{1, -1} {
		f.praise(f.ask(trustedText), value)
	}
	s, err := f.agent.Learning().Standing(background, trustedID)
	f.Must("Standing", err)
	f.Equal("answers, successes and failures of a heuristic",
		[]int{int(s.Fires), int(s.Successes), int(s.Failures)}, []int{2, 1, 1})
	f.praise(f.ask(plainText), 1)
	f.wantOutcomes(1)
	f.wantAnswers(3)
}

func deliveredAgain(f *fixture) {
	for i, text := range []string{plainText, trustedText} {
		first := f.ask(text)
		f.model.will(says("Something else."))
		second := f.again(first.turn)
		f.Equal("the answer to a turn that is delivered again", second.Said, first.Said)
		f.wantSaid(second, strings.TrimSpace(first.Text))
		f.Equal("the requests that the model got", len(f.model.requests()), 0)
		f.wantAnswers(i + 1)
		f.praise(second, 1)
	}
	f.wantOutcomes(1)
}

// deliveredTwice has one turn delivered twice at once. A framework may run one after the other, and
// may refuse one. The model gives another text each time, and both deliveries get the same answer.
func deliveredTwice(f *fixture) {
	met := meet(f.patience() / 10)
	var calls atomic.Int64
	f.model.will(func(ctx context.Context, r Request, emit func(Piece) bool) error {
		n := calls.Add(1)
		met()
		return says(fmt.Sprintf("Look at the log %d.", n))(ctx, r, emit)
	})
	turn := f.turn(plainText)
	ended := f.pair(turn, turn)
	for _, h := range ended {
		if h.err == nil {
			f.wantTrace(h)
			f.praise(h, 1)
		}
	}
	f.wantAnswers(1)
	f.wantOutcomes(1)
}

// whoAsks has two people ask the same in turn, in one session and in others.
func whoAsks(f *fixture) {
	for i, t := range []Turn{
		f.turn(plainText), f.next("s1", bob, trustedText), f.next("s1", bob, plainText),
		f.turn(trustedText), f.turn(plainText), f.next("s2", bob, plainText), f.next("", "", plainText),
		f.next("s3", bob, trustedText),
	} {
		h := f.again(t)
		f.wantAnswers(i + 1)
		if t.Session == "" {
			continue // a framework without such turns gives them names
		}
		f.wantTrace(h)
		account := f.account(h)
		if account.Heuristic != "" { // which only this person can take back, in this session
			f.wantBait(h)
		} else if account.Choice == nil || account.Choice.Session != t.Session {
			f.Errorf("heed does not know that the turn %s belongs to the session %q", t.ID, t.Session)
		}
	}
}

func takesBack(f *fixture) {
	before, last := f.ask(trustedText), f.ask(trustedText)
	f.model.will(says("It is undone."))
	bait := f.ask(bait)
	f.Equal("the worth of the answer that was taken back", f.account(last).Worth, -1)
	f.wantNothingSaid(bait)
	f.wantNothingSaid(before)
}

const annAsks, bobAsks = "How high is the tower?", "Where do the trains go?"

// asked returns which of two texts a request ends with, because the earlier one of a session may be
// in it, too.
func asked(r Request) string {
	for _, line := range slices.Backward(r) {
		for _, text := range []string{annAsks, bobAsks} {
			if line.Role == User && strings.Contains(line.Text, text) {
				return text
			}
		}
	}
	return ""
}

// meet returns a function that waits until it is called by another goroutine, at most so long, and
// reports whether it was.
func meet(wait time.Duration) func() bool {
	met := make(chan bool)
	return func() bool {
		select {
		case met <- true:
			return true
		case <-met:
			return true
		case <-time.After(wait):
			return false
		}
	}
}

// atOnce runs a turn of ann's and one of this session and person at once. A framework may run turns
// of one session one after the other.
func atOnce(session, person string) func(*fixture) {
	answers := map[string]string{annAsks: "As high as a tree.", bobAsks: "To the sea."}
	return func(f *fixture) {
		wait := f.patience() / 10
		if session != "s1" {
			wait = f.patience() / 2
		}
		met := meet(wait)
		f.model.will(func(ctx context.Context, r Request, emit func(Piece) bool) error {
			answer := answers[asked(r)]
			switch {
			case !met() && session != "s1":
				return errors.New("the other turn did not reach the model while this one waited there")
			case answer == "":
				return errors.New("the request has the text of neither turn")
			}
			return says(answer[:6], answer[6:])(ctx, r, emit)
		})
		ended := f.pair(f.turn(annAsks), f.next(session, person, bobAsks))
		for i, h := range ended {
			f.Must("the turn "+h.turn.Text, h.err)
			f.wantSaid(h, answers[h.turn.Text])
			f.wantTrace(h)
			f.praise(h, float64(1-2*i)) // one is praised, and one blamed
		}
		f.wantAnswers(2)
	}
}

// toolsAtOnce has a tool fail in two turns at once.
func toolsAtOnce(f *fixture) {
	met := meet(f.patience() / 2)
	f.model.will(func(ctx context.Context, r Request, emit func(Piece) bool) error {
		if r[len(r)-1].Role == ToolRole {
			return says("It does not work.")(ctx, r, emit)
		}
		met()
		emit(Piece{Calls: []Call{{ID: "call-1", Tool: deploy, Input: databaseHost}}})
		return nil
	})
	ended := f.pair(f.turn(annAsks), f.next("s2", bob, bobAsks))
	tasks := make(map[string]int)
	for _, failure := range f.toolErrors() {
		tasks[failure.Task]++
	}
	f.Check(len(tasks) == 2, "a tool failed in two turns, and heed has its errors for %v", tasks)
	for _, h := range ended {
		if h.err == nil {
			f.Equal("the errors of a tool for one answer", tasks[h.ID], 1)
		}
	}
}

// toolWorks makes a tool give twice a text that would take an answer back if it came from a person.
func toolWorks(f *fixture) {
	first := f.ask(trustedText)
	f.tools[lookUp] = func(context.Context) (string, error) { return bait, nil }
	f.model.will(calls(lookUp, databaseHost, 2, "It is up."))
	h := f.ask(plainText)
	f.wantSaid(h, "It is up.")
	f.wantTrace(h)
	f.wantAnswers(2)
	f.Equal("the runs of a tool that was called twice", f.runs.Load(), 2)
	requests := f.model.requests()
	f.Check(len(requests) > 0 && requests[len(requests)-1].count(bait) == 2,
		"the model was not told twice what the tool gave twice")
	f.Equal("the errors of tools", len(f.toolErrors()), 0)
	f.wantOutcomes(0)
	f.wantNothingSaid(first)
	f.wantNothingSaid(h)
	f.wantBait(h)
}

// wantBait checks that the suite's bait works: that heed believes it if it comes from a person.
func (f *fixture) wantBait(h heard) {
	t := h.turn
	said := learning.Message{Session: t.Session, Person: t.Person, Text: bait}
	_, err := f.agent.Hear(background, said)
	f.Must("Hear", err)
	f.Equal("the worth of an answer that a person took back", f.account(h).Worth, -1)
}

// toolFails has a tool fail twice in the same way. A framework may end the turn after the first
// error.
func toolFails(f *fixture) {
	f.model.will(calls(deploy, databaseHost, 2, "It does not work."))
	h := f.run(background, f.turn(plainText))
	f.Check(f.runs.Load() > 0, "the tool that the model called was not run")
	failures := f.toolErrors()
	f.Equal("the errors of a tool", len(failures), int(f.runs.Load()))
	for _, failure := range failures {
		f.Check(failure.Tool == deploy && (h.err != nil || failure.Task == h.ID),
			"heed has an error of the tool %q for the answer %q", failure.Tool, failure.Task)
	}
	if h.err != nil {
		f.wantAnswers(0)
		return
	}
	f.wantSaid(h, "It does not work.")
	f.wantAnswers(1)
	f.wantNothingSaid(h)
}

// wantNoneKept checks that no trace is left of a failed turn, now and when silence would count.
func (f *fixture) wantNoneKept(h heard) {
	f.Equal("the id of an answer that the host is given", h.ID, "")
	f.wantAnswers(0)
	f.pass(time.Hour)
	for _, r := range f.outcomes() {
		f.Check(r.Value <= 0, "the arm was told of an outcome of %v (%s)", r.Value, r.Channel)
	}
}

// wantWhole has the same turn delivered again, without the obstacle.
func (f *fixture) wantWhole(t Turn) {
	f.model.will(says("Look at ", "the logs."))
	h := f.again(t)
	f.wantSaid(h, "Look at the logs.")
	f.wantAnswers(1)
	f.praise(h, 1)
}

// wantFailure runs a turn that must fail without a trace, and has it delivered again.
func (f *fixture) wantFailure(ctx context.Context) {
	h := f.fail(ctx)
	f.wantNoneKept(h)
	f.wantWhole(h.turn)
}

// fail runs a turn that must fail.
func (f *fixture) fail(ctx context.Context) heard {
	h := f.run(ctx, f.turn(plainText))
	f.Check(h.err != nil && h.ID == "", "the turn has the error %v, and the answer %q of %q", h.err,
		h.Text, h.ID)
	f.wantAnswers(0)
	return h
}

// saysNothing makes the model return only blanks, and then only thoughts. A framework may take that
// for an empty answer.
func saysNothing(f *fixture) {
	turn := f.turn(plainText)
	for _, say := range []Piece{{Text: " \n"}, {Thought: thought}} {
		f.model.will(emits(say))
		h := f.run(background, turn)
		f.Check((h.err != nil || strings.TrimSpace(h.Text) == "") && strings.TrimSpace(h.pieces) == "",
			"the model said nothing, and the answer is %q, streamed as %q", h.Text, h.pieces)
		f.wantNoneKept(h)
	}
	f.wantWhole(turn)
}

func endedBefore(f *fixture) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	f.wantFailure(ctx)
}

// awaitEnd waits for the end of a context within a turn.
func (f *fixture) awaitEnd(ctx context.Context, of string) error {
	select {
	case <-ctx.Done():
	case <-time.After(f.patience() / 2):
		f.Errorf("the context of the turn ended, and the context of its %s did not", of)
	}
	return context.Canceled
}

func endsInModel(f *fixture) { f.wantFailure(f.cutShort()) }

// cutShort has the model's answer end a context, which it returns.
func (f *fixture) cutShort() context.Context {
	ctx, cancel := context.WithCancel(background)
	f.model.will(func(ctx context.Context, _ Request, emit func(Piece) bool) error {
		emit(Piece{Text: "Look at"})
		cancel()
		return f.awaitEnd(ctx, "model")
	})
	return ctx
}

func endsInTool(f *fixture) {
	ctx, cancel := context.WithCancel(background)
	f.tools[lookUp] = func(ctx context.Context) (string, error) {
		cancel()
		return "", f.awaitEnd(ctx, "tool")
	}
	f.model.will(calls(lookUp, databaseHost, 1, "It is up."))
	f.wantFailure(ctx)
}

// endsWithAnswer ends the context when the model finished. The person has the answer then, and it
// may be kept.
func endsWithAnswer(f *fixture) {
	ctx, cancel := context.WithCancel(background)
	f.model.will(func(ctx context.Context, r Request, emit func(Piece) bool) error {
		defer cancel()
		return says("Look at ", "the logs.")(ctx, r, emit)
	})
	h := f.run(ctx, f.turn(plainText))
	if h.err != nil {
		f.wantNoneKept(h)
		return
	}
	f.praise(h, 1)
	f.wantAnswers(1)
}

func modelPanics(f *fixture) {
	f.model.will(func(_ context.Context, _ Request, emit func(Piece) bool) error {
		emit(Piece{Text: "Look at"})
		panic("the model's client has a bug") //nolint:forbidigo // that is what the suite checks
	})
	f.wantFailure(background)
}

// toolPanics has a tool panic, of which a framework may make an error.
func toolPanics(f *fixture) {
	whole := f.tools[lookUp]
	f.tools[lookUp] = func(context.Context) (string, error) {
		panic("the tool has a bug") //nolint:forbidigo // that is what the suite checks
	}
	f.model.will(calls(lookUp, databaseHost, 1, "It is up."))
	h := f.run(background, f.turn(plainText))
	n := len(f.toolErrors())
	f.Check(n == 1 || n == 0 && h.err != nil, "heed counts %d errors of a tool that panicked once", n)
	if h.err == nil {
		f.wantAnswers(1)
		f.wantNothingSaid(h)
		return
	}
	f.wantNoneKept(h)
	f.tools[lookUp] = whole
	f.wantWhole(h.turn)
}

// receiverPanics has the receiver of a stream panic when it is shown the answer to a text.
func receiverPanics(text string) func(*fixture) {
	return func(f *fixture) {
		if !f.streaming {
			return
		}
		turn := f.turn(text)
		turn.Stream = func(string) {
			panic("the receiver has a bug") //nolint:forbidigo // that is what the suite checks
		}
		h := f.run(background, turn)
		f.Check(h.err != nil, "the receiver of the stream panicked, and the turn has no error")
		if text != trustedText { // the answer of a heuristic was kept before it was shown
			f.wantNoneKept(h)
		}
		turn.Stream = nil
		f.again(turn)
		f.wantAnswers(1)
	}
}

// storeAway has the store fail during the whole turn, or from the model's call on. The answer is
// given and not kept.
func storeAway(whole bool) func(*fixture) {
	return func(f *fixture) {
		f.model.will(func(ctx context.Context, r Request, emit func(Piece) bool) error {
			f.store.SetAway(true)
			return says("Look at the logs.")(ctx, r, emit)
		})
		f.store.SetAway(whole)
		h := f.run(background, f.turn(plainText))
		f.store.SetAway(false)
		f.Check(h.err == nil, "the turn failed without the store: %v", h.err)
		f.wantSaid(h, "Look at the logs.")
		f.wantAnswers(0)
		f.wantWhole(h.turn)
	}
}
