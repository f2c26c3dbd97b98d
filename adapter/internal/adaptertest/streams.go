package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

// patience is how long EachCounts waits for anything.
const patience = 30 * time.Second

// reports is how many reports EachCounts publishes.
const reports = 100

// EachCounts publishes reports, each twice, while four workers of an [attribution.Consumer] read
// them, and checks that each counts exactly once. fail is called between: it may stop the broker
// and start it again. A publication that fails is tried again.
func EachCounts(t *testing.T, source stream.Source, sink stream.Sink, fail func()) {
	t.Helper()
	learner, err := strategy.New(t.Context(), strategy.Config{
		Store: &memstore.Store{}, Arms: []strategy.Arm{{ID: "a"}, {ID: "b"}},
	})
	must(t, err)
	consumer, err := attribution.New(attribution.Config{
		Learner: learner, Stream: source, DeadLetters: &streamtest.Stream{}, Workers: 4,
	})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	defer stop()

	for i := range 2 * reports {
		if i == 120 || i == 40 && os.Getenv("HEED_LONG") != "" {
			fail()
		}
		session := fmt.Sprint("session ", i%reports)
		if i < reports {
			_, err := learner.Select(ctx, strategy.Query{Session: session, Item: "reply"})
			must(t, err)
		}
		publish(t, sink, session)
	}
	settled := func(c attribution.Counts) bool {
		return c.Outcomes == reports && c.Duplicates >= reports
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
	must(t, err)
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

// Receive returns the next delivery, which must come within seconds.
func Receive(t *testing.T, source stream.Source) stream.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	d, err := source.Receive(ctx)
	must(t, err)
	return d
}

// Refuses checks that a sink refuses events without a topic, with each of these topics, and with a
// time that has no text.
func Refuses(t *testing.T, sink stream.Sink, topics ...string) {
	t.Helper()
	late := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	events := map[*stream.Event]string{{}: "Topic", {Topic: "a", At: late}: "At"}
	for _, topic := range topics {
		events[&stream.Event{Topic: topic}] = "Topic"
	}
	for e, field := range events {
		var fault *heed.InputError
		if err := sink.Publish(t.Context(), *e); !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("%+v: not a fault of %s: %v", *e, field, err)
		}
	}
}
