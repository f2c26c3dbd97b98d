package adaptertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

// patience is how long EachCounts waits for anything.
const patience = 30 * time.Second

// EachCounts publishes reports, each twice, while four workers of an [attribution.Consumer] read
// them, and checks that each counts exactly once. before is called with the number of the
// publication that comes next, and may stop the broker and start it again. A publication that fails
// is tried again.
func EachCounts(
	t *testing.T, source stream.Source, sink stream.Sink, reports int,
	before func(publication int),
) {
	t.Helper()
	learner, err := strategy.New(t.Context(), strategy.Config{
		Store: &memstore.Store{}, Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := attribution.New(attribution.Config{
		Learner: learner, Stream: source, DeadLetters: &streamtest.Stream{}, Workers: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	defer stop()

	for i := range 2 * reports {
		before(i)
		session := fmt.Sprint("session ", i%reports)
		if i < reports {
			_, err := learner.Select(ctx, strategy.Query{Session: session, Item: "reply"})
			if err != nil {
				t.Fatal(err)
			}
		}
		publish(t, sink, session)
	}
	settled := func(c attribution.Counts) bool {
		return c.Outcomes == uint64(reports) && c.Duplicates >= uint64(reports)
	}
	waited := time.NewTimer(patience) // a broker has its own clock
	defer waited.Stop()
	for late := false; !late && !settled(consumer.Counts()); {
		select {
		case <-waited.C:
			late = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the consumer ends with %v", err)
	}
	if c := consumer.Counts(); !settled(c) || c.Dead > 0 || c.Unmatched > 0 {
		t.Errorf("of %d reports, each published twice: %+v", reports, c)
	}
}

// publish publishes the report of a session, until that succeeds.
func publish(t *testing.T, sink stream.Sink, session string) {
	t.Helper()
	event, err := attribution.Report{
		Session: session, Items: []attribution.Worth{{Item: "reply", Activated: true, Value: 0.5}},
	}.Event(session, time.Now()) //nolint:forbidigo // the learner made the choice by its own clock
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, 500*time.Millisecond)
		err := sink.Publish(attempt, event)
		done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("nothing can be published: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
