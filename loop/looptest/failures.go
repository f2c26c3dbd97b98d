package looptest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/llm"
)

// notices are what the observer received about failures.
type notices struct {
	mu  sync.Mutex
	all []string
}

func (n *notices) observe(_ context.Context, notice heed.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch notice := notice.(type) {
	case heed.Outage:
		n.all = append(n.all, "outage: "+notice.What+": "+string(llm.FailureOf(notice.Err)))
	case heed.Restored:
		n.all = append(n.all, "restored: "+notice.What)
	case heed.Failed:
		n.all = append(n.all, "failed: ")
	}
}

// of returns the notices of a sort.
func (n *notices) of(sort string) (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, text := range n.all {
		if what, is := strings.CutPrefix(text, sort+": "); is {
			all = append(all, what)
		}
	}
	return all
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
		f.Check(len(f.notices.of("failed")) > 0, "the model failed, and the observer got no notice")
		f.Equal("the outages after an error that heed does not recognise", f.notices.of("outage"), nil)
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
		f.Equal("the outages in the observer's notices", f.notices.of("outage"),
			[]string{"model: " + string(failure), "models: " + string(failure)})

		f.clock.advance(time.Second)
		f.wantWhole(f.turn(plainText))
		f.Equal("the outages that have ended", f.notices.of("restored"), []string{"model", "models"})
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
	f.Equal("the outages of a model that was stopped", f.notices.of("outage"), nil)
}
