package strategy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/stream"
)

// A surprise hook tells of outcomes that are much worse than nothing.
type surprise struct{}

func (surprise) OnOutcome(_ context.Context, o strategy.Outcome) error {
	if o.Value < -0.3 {
		fmt.Println("novel:", o.Choice.Item, "in", o.Choice.Session)
	}
	return nil
}

func (surprise) OnSessionEnd(_ context.Context, session string) error {
	fmt.Println(session, "has ended")
	return nil
}

// A consumer lets a learner learn from events that come at least once, in any process: each counts once.
func ExampleConsumer() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{}, Arms: []strategy.Arm{{ID: "short-prompt"}, {ID: "long-prompt"}},
	})
	if err != nil {
		panic(err)
	}
	events, dead := &memstore.Stream{}, &memstore.Stream{} // in a host: topics of its broker
	consumer, err := strategy.NewConsumer(strategy.ConsumerConfig{Learner: learner, Source: events, DeadLetters: dead})
	if err != nil {
		panic(err)
	}

	if _, err := learner.Select(ctx, strategy.Query{Session: "monday", Item: "release notes"}); err != nil {
		panic(err)
	}
	event, err := strategy.NewAttribution("event 1", time.Now(), strategy.AttributionEvent{
		Session: "monday",
		Records: []strategy.AttributionRecord{{Item: "release notes", Activated: true, Value: 0.8}},
		Signals: []strategy.Signal{{Kind: strategy.SignalBuildStatus, Passed: true}},
	})
	if err != nil {
		panic(err)
	}
	poison := stream.Event{ID: "event 2", Topic: strategy.AttributionTopic, At: time.Now(), Payload: []byte("no JSON")}
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
		fmt.Printf("%s: %.2f, confidence %.1f\n", record.Stage, record.Result.Value, record.Result.Confidence)
	}
	// Output:
	// outcomes: 1 dead: 1
	// observed: 0.86, confidence 0.9
}

// A hook is told of each outcome that was counted, and of the end of each session.
func ExampleNoveltyHook() {
	ctx := context.Background()
	learner, err := strategy.New(ctx, strategy.Config{
		Store: &memstore.Store{}, Arms: []strategy.Arm{{ID: "short-prompt"}, {ID: "long-prompt"}},
	})
	if err != nil {
		panic(err)
	}
	consumer, err := strategy.NewConsumer(strategy.ConsumerConfig{
		Learner: learner, Source: &memstore.Stream{}, DeadLetters: &memstore.Stream{}, Hook: surprise{},
	})
	if err != nil {
		panic(err)
	}
	if _, err := learner.Select(ctx, strategy.Query{Session: "monday", Item: "release notes"}); err != nil {
		panic(err)
	}
	event, err := strategy.NewAttribution("event 1", time.Now(), strategy.AttributionEvent{
		Session: "monday", Ended: true,
		Records: []strategy.AttributionRecord{{Item: "release notes", Activated: true, Value: -0.9}},
	})
	if err != nil {
		panic(err)
	}
	if err := consumer.Handle(ctx, event); err != nil { // in a loop of one's own; Run does so for each event
		panic(err)
	}
	// Output:
	// novel: release notes in monday
	// monday has ended
}

// What a learner tells is kept in its store, in the same commit as what it tells of, until a relay brings it out.
func Example_relay() {
	ctx := context.Background()
	st := &memstore.Store{}
	learner, err := strategy.New(ctx, strategy.Config{Store: st, Arms: []strategy.Arm{{ID: "only"}}, Topic: strategy.DefaultTopic})
	if err != nil {
		panic(err)
	}
	choice, err := learner.Select(ctx, strategy.Query{Item: "release notes"})
	if err != nil {
		panic(err)
	}
	if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 0.9}); err != nil {
		panic(err)
	}
	topic := &memstore.Stream{} // in a host: a topic of its broker
	for range 2 {
		sent, err := stream.Relay(ctx, st, topic)
		fmt.Println(sent, err)
	}
	// Output:
	// 2 <nil>
	// 0 <nil>
}

// From the log of its events, what a learner has learned is rebuilt in an empty store.
func ExampleLearner_Replay() {
	ctx := context.Background()
	st := &memstore.Store{}
	cfg := strategy.Config{
		Store: st, Arms: []strategy.Arm{{ID: "short-prompt"}, {ID: "long-prompt"}}, Topic: strategy.DefaultTopic, Source: rand.NewPCG(1, 2),
	}
	learner, err := strategy.New(ctx, cfg)
	if err != nil {
		panic(err)
	}
	choice, err := learner.Select(ctx, strategy.Query{Item: "release notes", Arms: []strategy.ArmID{"long-prompt"}})
	if err != nil {
		panic(err)
	}
	if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 0.9}); err != nil {
		panic(err)
	}

	cfg.Store = &memstore.Store{}
	rebuilt, err := strategy.New(ctx, cfg)
	if err != nil {
		panic(err)
	}
	for range 2 {
		changed, err := rebuilt.Replay(ctx, stream.Waiting(ctx, st)) // in a host: the topic that the events were relayed to
		fmt.Println(changed, err)
	}
	for _, l := range []*strategy.Learner{learner, rebuilt} {
		beliefs, err := l.Beliefs(ctx, strategy.Query{Item: "release notes"})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%.1f %.1f\n", beliefs[0].Mean(), beliefs[1].Mean())
	}
	// Output:
	// 1 <nil>
	// 0 <nil>
	// 0.5 0.7
	// 0.5 0.7
}
