package looptest

import (
	"context"
	"errors"
	"strings"
	"time"
)

var (
	errAlone   = errors.New("the other turn did not reach the model while this one waited there")
	errUnknown = errors.New("the request has the text of neither turn")
)

func toolOutput(f *fixture) {
	first := f.ask(trustedText)
	f.clock.advance(time.Second)
	f.tool = func(context.Context) (string, error) { return bait, nil }
	f.model.will(calls(lookUp, 1, "It is up."))
	second := f.ask(plainText)
	f.wantTrace(second)
	for _, h := range []heard{first, second} {
		f.wantNothingSaid(h, "after a tool gave "+bait)
	}
	f.wantAnswers(2, "after two turns")
	f.wantBait(second)
}

func toolWorks(f *fixture) {
	f.model.will(calls(lookUp, 2, "It is up."))
	h := f.ask(plainText)
	f.wantSaid(h, "It is up.")
	if n := f.runs.Load(); n != 2 {
		f.Errorf("the tool ran %d times and not twice", n)
	}
	requests := f.model.requests()
	if len(requests) == 0 || requests[len(requests)-1].count("The disk is half full.") != 2 {
		f.Errorf("the model was not told twice what the tool gave twice")
	}
	f.wantAnswers(1, "after one turn with two calls of a tool")
	f.wantTrace(h)
	if n := len(f.toolErrors()); n != 0 {
		f.Errorf("heed counts %d errors of tools, and there was none", n)
	}
	if n := f.outcomes(); n != 0 {
		f.Errorf("the arm was told of %d outcomes, and nobody said anything", n)
	}
}

// toolFails has a tool fail twice in the same way. A framework may end the turn after the first error.
func toolFails(f *fixture) {
	f.model.will(calls(deploy, 2, "It does not work."))
	h := f.run(background, f.next("s1", ann, plainText))
	want := int(f.runs.Load())
	if want == 0 {
		f.Fatalf("the tool that the model called was not run")
	}
	failures := f.toolErrors()
	if len(failures) != want {
		f.Errorf("heed counts %d errors of a tool that failed %d times", len(failures), want)
	}
	for _, failure := range failures {
		if failure.Tool != deploy {
			f.Errorf("heed has an error of the tool %q and not of %q", failure.Tool, deploy)
		}
		if h.err == nil && failure.Task != h.ID {
			f.Errorf("heed has an error of a tool for %q and not for the answer %q", failure.Task, h.ID)
		}
	}
	if h.err != nil {
		f.wantAnswers(0, "after a turn that a tool's error ended")
		return
	}
	f.wantSaid(h, "It does not work.")
	f.wantAnswers(1, "after one turn in which a tool failed")
	f.wantNothingSaid(h, "after a tool failed")
}

// wantNoAnswer checks that nothing is left of a turn that came to nothing, now and when silence would count.
func (f *fixture) wantNoAnswer(h heard, when string) {
	f.Helper()
	if h.err == nil {
		f.Errorf("%s, the turn has no error, and the answer %q", when, h.Text)
	}
	f.wantNoneKept(h, when)
}

func (f *fixture) wantNoneKept(h heard, when string) {
	f.Helper()
	if h.ID != "" {
		f.Errorf("%s, the host is given the id %q of an answer", when, h.ID)
	}
	f.wantAnswers(0, when)
	f.pass(time.Hour)
	for _, r := range f.results() {
		if r.Value > 0 {
			f.Errorf("%s, the arm was told of an outcome of %v (%s)", when, r.Value, r.Channel)
		}
	}
}

// wantWhole has the same turn delivered again, now that nothing is in its way.
func (f *fixture) wantWhole(t Turn, when string) {
	f.Helper()
	f.model.will(says("Look at ", "the logs."))
	h := f.again(t)
	f.wantSaid(h, "Look at the logs.")
	f.wantAnswers(1, "once the turn was delivered again "+when)
	f.praise(h, 1)
}

// wantToldOnce checks that the arm was told once of a failure of its model.
func (f *fixture) wantToldOnce() {
	f.Helper()
	results := f.results()
	if len(results) != 1 || results[0].Value != -1 || f.outcomes() != 1 {
		f.Errorf("the model failed once, and the arm was told of %v", results)
	}
}

func modelFails(f *fixture) {
	f.model.will(fails())
	h := f.run(background, f.next("s1", ann, plainText))
	f.wantNoAnswer(h, "after the model failed")
	f.wantToldOnce()
	if n := len(f.toolErrors()); n != 0 {
		f.Errorf("the model failed, and heed counts %d errors of tools", n)
	}
	f.wantWhole(h.turn, "after the model failed")
}

func modelBreaksOff(f *fixture) {
	f.model.will(fails("Look at"))
	h := f.run(background, f.next("s1", ann, plainText))
	f.wantNoAnswer(h, "after the model broke off")
	f.wantToldOnce()
	f.wantWhole(h.turn, "after the model broke off")
}

// saysNothing has the model say nothing but blanks, and then only think. A framework may take that for an empty answer.
func saysNothing(f *fixture) {
	turn := f.next("s1", ann, plainText)
	for _, say := range []Piece{{Text: " \n"}, {Thought: thought}} {
		f.model.will(func(_ context.Context, _ Request, emit func(Piece) bool) error {
			emit(say)
			return nil
		})
		h := f.run(background, turn)
		if h.err == nil && strings.TrimSpace(h.Text) != "" || strings.TrimSpace(h.pieces) != "" {
			f.Errorf("the model said nothing, and the answer is %q, streamed as %q", h.Text, h.pieces)
		}
		f.wantNoneKept(h, "after the model said nothing")
	}
	f.wantWhole(turn, "after the model said nothing")
}

// contextEnds ends the context before the turn, while the model speaks, while a tool runs, and when the model has said all.
func contextEnds(f *fixture) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	f.model.will(func(ctx context.Context, _ Request, emit func(Piece) bool) error {
		emit(Piece{Text: "Look at"})
		cancel()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.patience() / 2):
			f.Errorf("the context of the turn ended, and that of its model did not")
			return context.Canceled
		}
	})
	h := f.run(ctx, f.next("s1", ann, plainText))
	f.wantNoAnswer(h, "after the context ended while the model spoke")
	f.wantWhole(h.turn, "after the context ended while the model spoke")

	each(f.tb, f.subject, f.streaming, func(f *fixture) {
		ctx, cancel := context.WithCancel(background)
		cancel()
		h := f.run(ctx, f.next("s1", ann, plainText))
		f.wantNoAnswer(h, "after a turn whose context had ended")
		f.wantWhole(h.turn, "after a turn whose context had ended")
	})
	each(f.tb, f.subject, f.streaming, func(f *fixture) {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		f.tool = func(ctx context.Context) (string, error) {
			cancel()
			select {
			case <-ctx.Done():
			case <-time.After(f.patience() / 2):
				f.Errorf("the context of the turn ended, and that of its tool did not")
			}
			return "", context.Canceled
		}
		f.model.will(calls(lookUp, 1, "It is up."))
		h := f.run(ctx, f.next("s1", ann, plainText))
		f.wantNoAnswer(h, "after the context ended while a tool ran")
		f.wantWhole(h.turn, "after the context ended while a tool ran")
	})
	each(f.tb, f.subject, f.streaming, func(f *fixture) {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		f.model.will(func(ctx context.Context, r Request, emit func(Piece) bool) error {
			defer cancel()
			return says("Look at ", "the logs.")(ctx, r, emit)
		})
		h := f.run(ctx, f.next("s1", ann, plainText))
		if h.err == nil { // the person has all of it, and it may be kept
			f.praise(h, 1)
			f.wantAnswers(1, "after the context ended with the answer")
			return
		}
		f.wantNoneKept(h, "after the context ended with the answer")
	})
}

// panics has the model's client, a tool and the receiver of a stream panic.
func panics(f *fixture) {
	f.model.will(panicking("Look at"))
	h := f.run(background, f.next("s1", ann, plainText))
	f.wantNoAnswer(h, "after a panic in the model")
	f.wantWhole(h.turn, "after a panic in the model")

	each(f.tb, f.subject, f.streaming, func(f *fixture) {
		f.tool = func(context.Context) (string, error) { panic("the tool has a bug") } //nolint:forbidigo // that is what the suite checks
		f.model.will(calls(lookUp, 1, "It is up."))
		h := f.run(background, f.next("s1", ann, plainText))
		if n := len(f.toolErrors()); n > 1 || n == 0 && h.err == nil {
			f.Errorf("heed counts %d errors of a tool that panicked once", n)
		}
		if h.err == nil { // the framework made an error of it
			f.wantAnswers(1, "after a turn in which a tool panicked")
			f.wantNothingSaid(h, "after a panic in a tool")
			return
		}
		f.wantNoneKept(h, "after a panic in a tool")
		f.tool = func(context.Context) (string, error) { return "The disk is half full.", nil }
		f.wantWhole(h.turn, "after a panic in a tool")
	})
	if !f.streaming {
		return
	}
	each(f.tb, f.subject, true, func(f *fixture) {
		turn := f.next("s1", ann, plainText)
		turn.Stream = func(string) { panic("the receiver has a bug") } //nolint:forbidigo // that is what the suite checks
		h := f.run(background, turn)
		f.wantNoAnswer(h, "after a panic in the receiver of the stream")
		turn.Stream = nil // the fixture's own
		f.wantWhole(turn, "after a panic in the receiver of the stream")
	})
	each(f.tb, f.subject, true, func(f *fixture) {
		turn := f.next("s1", ann, trustedText)
		turn.Stream = func(string) { panic("the receiver has a bug") } //nolint:forbidigo // that is what the suite checks
		if h := f.run(background, turn); h.err == nil {
			f.Errorf("the receiver of the stream panicked, and the turn has no error")
		}
		turn.Stream = nil
		f.wantSaid(f.again(turn), trustedAction)
		f.wantAnswers(1, "after a panic while a heuristic's answer was shown")
	})
}

// notKept has the store fail when the model was asked.
func notKept(f *fixture) {
	f.model.will(func(ctx context.Context, r Request, emit func(Piece) bool) error {
		f.store.fails.Store(true)
		return says("Look at the logs.")(ctx, r, emit)
	})
	h := f.run(background, f.next("s1", ann, plainText))
	f.store.fails.Store(false)
	f.wantNoneKept(h, "after the store failed")
	f.wantWhole(h.turn, "after the store failed")
}
