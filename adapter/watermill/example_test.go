package watermill_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/heedhq/heed/adapter/watermill"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
)

func wire(
	ctx context.Context, subscriber message.Subscriber, publisher message.Publisher,
	learner *strategy.Learner,
) (*attribution.Consumer, error) {
	source, err := watermill.NewSource(ctx, watermill.SourceConfig{Subscriber: subscriber,
		Topic: attribution.Topic})
	if err != nil {
		return nil, err
	}
	dead, err := watermill.NewSink(publisher)
	if err != nil {
		return nil, err
	}
	return attribution.New(attribution.Config{Learner: learner, Stream: source, DeadLetters: dead})
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// Example is the program of README.md.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	broker := gochannel.NewGoChannel(gochannel.Config{}, nil)
	learner := must(strategy.New(ctx, strategy.Config{Store: &memstore.Store{},
		Arms: []strategy.Arm{{ID: "short"}, {ID: "long"}}}))
	must(learner.Select(ctx, strategy.Query{Session: "s1", Item: "reply"}))
	consumer := must(wire(ctx, broker, broker, learner))

	report := attribution.Report{Session: "s1", Items: []attribution.Worth{{Item: "reply",
		Activated: true, Value: 0.8}}}
	sink := must(watermill.NewSink(broker)) // where the reports come from
	event := must(report.Event("event 1", time.Now()))
	for range 2 { // brokers deliver some events twice
		if err := sink.Publish(ctx, event); err != nil {
			log.Fatal(err)
		}
	}
	go func() {
		for consumer.Counts().Applied < 2 {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	if err := consumer.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("outcomes:", consumer.Counts().Outcomes, "duplicates:", consumer.Counts().Duplicates)
	// Output:
	// outcomes: 1 duplicates: 1
}
