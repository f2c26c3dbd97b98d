package attribution_test

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

// A consumer lets a learner learn from events that come at least once, in any process: each counts
// once.
func ExampleConsumer() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{}, Arms: []strategy.Arm{{ID: "short-prompt"}, {ID: "long-prompt"}},
	})
	if err != nil {
		panic(err)
	}
	events, dead := &streamtest.Stream{}, &streamtest.Stream{} // in a host: topics of its broker
	consumer, err := attribution.New(attribution.Config{Learner: learner, Stream: events,
		DeadLetters: dead})
	if err != nil {
		panic(err)
	}

	if _, err := learner.Select(ctx, strategy.Query{Session: "monday",
		Item: "release notes"}); err != nil {
		panic(err)
	}
	event, err := attribution.Report{
		Session: "monday",
		Items:   []attribution.Worth{{Item: "release notes", Activated: true, Value: 0.8}},
		Signals: []attribution.DirectSignal{{Kind: attribution.BuildStatus, Passed: true}},
	}.Event("event 1", time.Now())
	if err != nil {
		panic(err)
	}
	poison := stream.Event{ID: "event 2", Topic: attribution.Topic, At: time.Now(),
		Payload: []byte("no JSON")}
	for _, e := range []stream.Event{event, poison} {
		if err := events.Publish(ctx, e); err != nil {
			panic(err)
		}
	}
	events.Close() // in a host, Run ends with its context
	if err := consumer.Run(ctx); err != nil {
		panic(err)
	}
	counts := consumer.Counts()
	fmt.Println("outcomes:", counts.Outcomes, "dead:", counts.Dead)
	for record, err := range learner.History(ctx, strategy.ChoiceFilter{Item: "release notes"}) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %.2f, confidence %.1f\n", record.Stage, record.Result.Value,
			record.Result.Confidence)
	}
	// Output:
	// outcomes: 1 dead: 1
	// observed: 0.86, confidence 0.9
}

// A hook is told of each outcome that was counted, and of the end of each session.
func ExampleHook() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{}, Arms: []strategy.Arm{{ID: "short-prompt"}, {ID: "long-prompt"}},
	})
	if err != nil {
		panic(err)
	}
	consumer, err := attribution.New(attribution.Config{
		Learner: learner, Stream: &streamtest.Stream{}, DeadLetters: &streamtest.Stream{},
		Hook: attribution.Hook{
			Outcome: func(_ context.Context, o strategy.Outcome) error {
				if o.Value < -0.3 {
					fmt.Println("novel:", o.Choice.Item, "in", o.Choice.Session)
				}
				return nil
			},
			SessionEnd: func(_ context.Context, session string) error {
				fmt.Println(session, "has ended")
				return nil
			},
		},
	})
	if err != nil {
		panic(err)
	}
	if _, err := learner.Select(ctx, strategy.Query{Session: "monday",
		Item: "release notes"}); err != nil {
		panic(err)
	}
	event, err := attribution.Report{
		Session: "monday", Ended: true,
		Items: []attribution.Worth{{Item: "release notes", Activated: true, Value: -0.9}},
	}.Event("event 1", time.Now())
	if err != nil {
		panic(err)
	}
	// in a loop of one's own; Run does so for each event
	if err := consumer.Handle(ctx, event); err != nil {
		panic(err)
	}
	// Output:
	// novel: release notes in monday
	// monday has ended
}

// The worth attributed to a learning and the signals of its session make one outcome.
func ExampleRouter() {
	outcome, ok, err := attribution.Router{}.Route("monday",
		&attribution.Worth{Activated: true, Value: 0.5}, []attribution.DirectSignal{
			{Session: "monday", Kind: attribution.Negative, Confidence: 0.7},
			{Session: "monday", Kind: attribution.ToolFailure},
			// of another session, so it does not count
			{Session: "sunday", Kind: attribution.Positive, Confidence: 1},
		})
	if err != nil || !ok {
		panic(err)
	}
	fmt.Printf("%.2f with confidence %.1f, from %s\n", outcome.Value, outcome.Confidence,
		outcome.Channel)
	// Output: 0.05 with confidence 0.9, from both
}
