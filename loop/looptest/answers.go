package looptest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
)

// wantSaid checks what a person saw.
func (f *fixture) wantSaid(h heard, want string) {
	f.Helper()
	if strings.TrimSpace(h.Text) != want {
		f.Errorf("the answer to %q is %q and not %q", h.turn.Text, h.Text, want)
	}
	if f.streaming && strings.TrimSpace(h.pieces) != want {
		f.Errorf("the pieces of the answer to %q are %q and not %q", h.turn.Text, h.pieces, want)
	}
}

func keptOnce(f *fixture) {
	pieces := []string{"Look at ", "the logs:\n\n", "- `db-1`\n- é", "\nin this order."}
	f.model.will(says(pieces...))
	want := strings.Join(pieces, "")
	h := f.ask(plainText)
	f.wantSaid(h, want)
	f.wantAnswers(1, "after one turn")
	for _, trace := range f.traces() {
		if trace.Path != decision.Model || trace.Response != want {
			f.Errorf("heed has the answer %q, by path %q, where the model said %q", trace.Response, trace.Path, want)
		}
	}
}

func reaction(f *fixture) {
	for i, text := range []string{plainText, trustedText, plainText} {
		h := f.ask(text)
		f.praise(h, 1)
		if account := f.account(h); account.Worth != 1 || !account.Known {
			f.Errorf("the praised answer to %q is worth %v", text, account.Worth)
		}
		f.wantAnswers(i+1, "after as many turns")
		f.clock.advance(time.Second)
	}
}

func earnsNothing(f *fixture) {
	for _, text := range []string{plainText, trustedText} {
		before := standing(f, f.agent, trustedID).Confidence
		h := f.ask(text)
		f.pass(0)
		f.wantNothingSaid(h, "after a turn")
		if after := standing(f, f.agent, trustedID).Confidence; after != before {
			f.Errorf("the turn %q moved the trust in a heuristic from %v to %v", text, before, after)
		}
	}
	if n := f.outcomes(); n != 0 {
		f.Errorf("the arm was told of %d outcomes, and nobody said anything", n)
	}
}

func shortCircuit(f *fixture) {
	h := f.ask(trustedText)
	f.wantSaid(h, trustedAction)
	if n := len(f.model.requests()); n != 0 {
		f.Errorf("the model was called %d times, though a heuristic had answered", n)
	}
	if account := f.account(h); account.Heuristic != trustedID {
		f.Errorf("heed has an answer of the heuristic %q and not of %q", account.Heuristic, trustedID)
	}
	f.wantAnswers(1, "after one turn")
	// Once people complain, the model is asked again.
	for range 9 {
		if standing(f, f.agent, trustedID).Confidence < 0.5 {
			break
		}
		f.clock.advance(time.Minute)
		f.praise(f.ask(trustedText), -1)
	}
	f.clock.advance(time.Minute)
	f.model.will(says("Look at ", "the logs."))
	f.wantSaid(f.ask(trustedText), "Look at the logs.")
}

// creditOnce compares the adapter with an agent that is used without one.
func creditOnce(f *fixture) {
	control, err := loop.New(background, config(nil, f.clock))
	f.must("loop.New", err)
	value := 1.
	for range 2 {
		h := f.ask(trustedText)
		f.praise(h, value)
		_, err := control.Prepare(background, loop.Event{ID: h.turn.ID, Text: h.turn.Text, Session: h.turn.Session, Person: h.turn.Person})
		f.must("Prepare", err)
		f.must("React", control.React(background, h.turn.ID, loop.Reaction{Person: h.turn.Person, Value: value}))
		value = -1
		f.clock.advance(time.Second)
	}
	got, want := standing(f, f.agent, trustedID), standing(f, control, trustedID)
	if got.Confidence != want.Confidence || got.Fires != want.Fires || got.Successes != want.Successes || got.Failures != want.Failures {
		f.Errorf("a heuristic has the confidence %v after %d answers, and should have %v after %d", got.Confidence, got.Fires, want.Confidence, want.Fires)
	}
	f.praise(f.ask(plainText), 1)
	if n := f.outcomes(); n != 1 {
		f.Errorf("the arm was told of %d outcomes of one praised answer", n)
	}
}

func deliveredAgain(f *fixture) {
	for i, text := range []string{plainText, trustedText} {
		first := f.ask(text)
		f.model.will(says("Something else."))
		second := f.again(first.turn)
		if second.ID != first.ID || second.Text != first.Text {
			f.Errorf("the turn %q was delivered again, and has the answer %q %q after %q %q", text, second.ID, second.Text, first.ID, first.Text)
		}
		f.wantSaid(second, strings.TrimSpace(first.Text))
		if n := len(f.model.requests()); n != 0 {
			f.Errorf("the turn %q was delivered again, and the model was called again", text)
		}
		f.wantAnswers(i+1, "after as many turns, each delivered twice")
		f.praise(second, 1)
	}
	if n := f.outcomes(); n != 1 {
		f.Errorf("the arm was told of %d outcomes of one praised answer", n)
	}
}

// sameText asks the same in one conversation and in another one.
func sameText(f *fixture) {
	ids := make(map[string]string)
	for i, t := range []Turn{
		f.next("s1", ann, plainText), f.next("s1", ann, plainText), f.next("s2", bob, plainText), f.next("", "", plainText),
		f.next("s1", ann, trustedText), f.next("s2", bob, trustedText),
	} {
		h := f.again(t)
		if other, is := ids[h.ID]; is {
			f.Errorf("the messages %s and %s share the answer %q", other, t.ID, h.ID)
		}
		ids[h.ID] = t.ID
		f.wantAnswers(i+1, "after as many messages with the same text")
	}
}

func whoAsks(f *fixture) {
	for _, t := range []Turn{f.next("s1", ann, plainText), f.next("s2", bob, plainText), f.next("s3", bob, trustedText)} {
		h := f.again(t)
		account := f.account(h)
		if c := account.Choice; account.Heuristic == "" && (c == nil || c.Session != t.Session) {
			f.Errorf("heed does not know that the turn %s belongs to the session %q", t.ID, t.Session)
		}
		for _, trace := range f.traces() {
			if trace.EventID == h.ID && (trace.Source != t.Person || trace.Text != t.Text) {
				f.Errorf("heed has %q of %q where %q said %q", trace.Text, trace.Source, t.Person, t.Text)
			}
		}
		// Only somebody in this session says something of this answer.
		f.clock.advance(time.Second)
		_, err := f.agent.Hear(background, learning.Message{Session: t.Session, Person: t.Person, Text: bait})
		f.must("Hear", err)
		if account.Heuristic != "" && f.account(h).Worth != -1 {
			f.Errorf("%s said %q in the session %s, and the answer there still stands", t.Person, bait, t.Session)
		}
	}
}

func takesBack(f *fixture) {
	before := f.ask(trustedText)
	f.clock.advance(time.Second)
	first := f.ask(trustedText)
	f.clock.advance(time.Second)
	f.model.will(says("It is undone."))
	second := f.ask(bait)
	if account := f.account(first); account.Worth != -1 {
		f.Errorf("a person said %q, and the answer before it still stands", bait)
	}
	f.wantNothingSaid(second, "after a person took back the answer before it")
	f.wantNothingSaid(before, "after a person took back one later answer")
}

const annAsks, bobAsks = "How high is the tower?", "Where do the trains go?"

// asked returns which of two texts a request ends with, as the earlier one of a session may be in it, too.
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

// meet returns a function that waits until it was called twice, at most so long, and reports whether it was.
func meet(wait time.Duration) func() bool {
	var came atomic.Int64
	met := make(chan struct{})
	return func() bool {
		if came.Add(1) == 2 {
			close(met)
		}
		select {
		case <-met:
			return true
		case <-time.After(wait):
			return false
		}
	}
}

// atOnce runs two turns at once: of two sessions, of one person in two sessions, and of two people in one session. A framework may
// run those of one session one after the other.
func atOnce(f *fixture) {
	f.turnsAtOnce(f.next("s1", ann, annAsks), f.next("s2", bob, bobAsks))
	each(f.tb, f.subject, f.streaming, func(f *fixture) {
		f.turnsAtOnce(f.next("s1", ann, annAsks), f.next("s2", ann, bobAsks))
	})
	each(f.tb, f.subject, f.streaming, func(f *fixture) {
		f.turnsAtOnce(f.next("s1", ann, annAsks), f.next("s1", bob, bobAsks))
	})
}

func (f *fixture) turnsAtOnce(one, other Turn) {
	f.Helper()
	answers := map[string]string{annAsks: "As high as a tree.", bobAsks: "To the sea."}
	alone := one.Session != other.Session // one after the other is a fault
	wait := f.patience() / 10
	if alone {
		wait = f.patience() / 2
	}
	met := meet(wait)
	f.model.will(func(ctx context.Context, r Request, emit func(Piece) bool) error {
		if !met() && alone {
			return errAlone
		}
		answer := answers[asked(r)]
		if answer == "" {
			return errUnknown
		}
		return says(answer[:6], answer[6:])(ctx, r, emit)
	})
	began := []<-chan heard{f.start(background, one), f.start(background, other)}
	ended := []heard{f.end(began[0]), f.end(began[1])}
	for _, h := range ended {
		if h.err != nil {
			f.Fatalf("the turn %q failed beside another one: %v", h.turn.Text, h.err)
		}
		f.wantSaid(h, answers[h.turn.Text])
		f.wantTrace(h)
	}
	f.wantAnswers(2, "after two turns at once")
	f.praise(ended[0], 1)
	f.praise(ended[1], -1)
	if a, b := f.account(ended[0]).Worth, f.account(ended[1]).Worth; a != 1 || b != -1 {
		f.Errorf("two answers were praised and blamed, and are worth %v and %v", a, b)
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
		emit(Piece{Calls: []Call{{ID: "call-1", Tool: deploy, Input: `{"host":"db-1"}`}}})
		return nil
	})
	one, other := f.start(background, f.next("s1", ann, annAsks)), f.start(background, f.next("s2", bob, bobAsks))
	ended := []heard{f.end(one), f.end(other)}
	tasks := make(map[string]int)
	for _, failure := range f.toolErrors() {
		tasks[failure.Task]++
	}
	if len(tasks) != 2 {
		f.Errorf("a tool failed in two turns at once, and heed has its errors for %v", tasks)
	}
	for _, h := range ended {
		if h.err == nil && tasks[h.ID] != 1 {
			f.Errorf("a tool failed once for the answer %q, and heed has %d errors for it", h.ID, tasks[h.ID])
		}
	}
}

// wantTrace checks that heed has the turn as it was.
func (f *fixture) wantTrace(h heard) {
	f.Helper()
	for _, trace := range f.traces() {
		if trace.EventID != h.ID {
			continue
		}
		if trace.Text != h.turn.Text || trace.Source != h.turn.Person || trace.Response != strings.TrimSpace(h.Text) {
			f.Errorf("heed has %q of %q, answered by %q, where %q said %q and saw %q",
				trace.Text, trace.Source, trace.Response, h.turn.Person, h.turn.Text, h.Text)
		}
		return
	}
	f.Errorf("heed has no answer %q", h.ID)
}

const thought = "The user must never read this."

// thoughts has the model think in parts of their own, and in tags within its text.
func thoughts(f *fixture) {
	const want = "Look at the logs."
	for i, pieces := range [][]Piece{
		{{Thought: thought}, {Text: "Look at "}, {Thought: thought}, {Text: "the logs."}},
		{{Text: "<thi"}, {Text: "nk>" + thought[:9]}, {Text: thought[9:] + "</thi"}, {Text: "nk>Look at "}, {Text: "the logs."}},
	} {
		f.model.will(func(_ context.Context, _ Request, emit func(Piece) bool) error {
			for _, p := range pieces {
				if !emit(p) {
					break
				}
			}
			return nil
		})
		f.wantSaid(f.ask(plainText), want)
		for _, trace := range f.traces() {
			if trace.Response != want {
				f.Errorf("heed has the answer %q, and the model said %q beside its thoughts", trace.Response, want)
			}
		}
		f.wantAnswers(i+1, "after as many turns with thoughts")
		f.clock.advance(time.Second)
	}
}

// deliveredTwice has one turn delivered twice at once. A framework may run one after the other, and may refuse one. The model says
// something else each time, and the person who is told second is told the same.
func deliveredTwice(f *fixture) {
	met := meet(f.patience() / 10)
	var calls atomic.Int64
	f.model.will(func(ctx context.Context, r Request, emit func(Piece) bool) error {
		n := calls.Add(1)
		met()
		return says(fmt.Sprintf("Look at the log %d.", n))(ctx, r, emit)
	})
	turn := f.next("s1", ann, plainText)
	began := []<-chan heard{f.start(background, turn), f.start(background, turn)}
	ended := []heard{f.end(began[0]), f.end(began[1])}
	for _, h := range ended {
		if h.err == nil {
			f.wantTrace(h)
			f.praise(h, 1)
		}
	}
	if ended[0].err != nil && ended[1].err != nil {
		f.Errorf("a turn was delivered twice at once, and has no answer: %v", ended[0].err)
	}
	f.wantAnswers(1, "after a turn that was delivered twice at once")
	if n := f.outcomes(); n != 1 {
		f.Errorf("the arm was told of %d outcomes of one praised answer", n)
	}
}
