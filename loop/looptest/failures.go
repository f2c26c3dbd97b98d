package looptest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/llm"
)

// notices are the failures that the observer received.
type notices struct {
	mu                sync.Mutex
	outages, restored []string
	failed            int
}

func (n *notices) observe(_ context.Context, notice heed.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch notice := notice.(type) {
	case heed.Outage:
		n.outages = append(n.outages, notice.What+": "+string(llm.FailureOf(notice.Err)))
	case heed.Restored:
		n.restored = append(n.restored, notice.What)
	case heed.Failed:
		n.failed++
	}
}

// of returns what the observer received: outages, what was restored, and the number of failures.
func (n *notices) of() (outages, restored string, failed int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprint(n.outages), fmt.Sprint(n.restored), n.failed
}

// fails has the model fail after some text.
func fails(err error, texts ...string) script {
	return func(ctx context.Context, r Request, emit func(Piece) bool) error {
		_ = says(texts...)(ctx, r, emit) // which has no error
		return err
	}
}

// failing has the model fail after some text, with an error that heed does not recognise.
func failing(texts ...string) func(*fixture) {
	return func(f *fixture) {
		f.model.will(fails(errors.New("the model's client has a bug"), texts...))
		f.wantFailure(background)
		outages, _, failed := f.notices.of()
		f.Check(failed > 0, "the model failed, and the observer was not told")
		f.Equal("the outages after an error that heed does not recognise", outages, "[]")
		f.wantPraise()
		f.Equal("the errors of tools", len(f.toolErrors()), 0)
	}
}

// wantPraise checks that an arm was credited with exactly one reaction.
func (f *fixture) wantPraise() {
	outcomes := f.outcomes()
	f.Check(len(outcomes) == 1 && outcomes[0].Value == 1,
		"an answer was praised once, and the arm was told of %v", outcomes)
}

// unavailable has the model fail three times in a row, and come back.
func unavailable(failure llm.Failure) func(*fixture) {
	return func(f *fixture) {
		f.model.will(fails(fmt.Errorf("the client of the model: %w", &llm.Error{Failure: failure})))
		for range 3 {
			f.fail(background)
		}
		f.wantOutcomes(0)
		outages, _, _ := f.notices.of()
		f.Equal("the outages that the observer was told of", outages,
			fmt.Sprintf("[model: %s models: %[1]s]", string(failure)))

		f.clock.advance(time.Second)
		f.wantWhole(f.turn(plainText))
		_, restored, _ := f.notices.of()
		f.Equal("the outages that have ended", restored, "[model models]")
		f.wantPraise()
	}
}

// unusable has the model give an answer that cannot be used.
func unusable(f *fixture) {
	f.model.will(fails(fmt.Errorf("the client of the model: %w", llm.Unusable)))
	h := f.fail(background)
	f.wantNoneKept(h)
	outcomes := f.outcomes()
	f.Check(len(outcomes) == 1 && outcomes[0].Value == -1,
		"the answer could not be used, and the arm was told of %v", outcomes)
	f.wantWhole(h.turn)
}

// stopped has the person stop four answers while the model gives them.
func stopped(f *fixture) {
	for range 4 {
		f.fail(f.cutShort())
	}
	f.pass(time.Hour)
	f.wantOutcomes(0)
	outages, _, _ := f.notices.of()
	f.Equal("the outages of a model that was stopped", outages, "[]")
}
