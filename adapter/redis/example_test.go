package redis_test

import (
	"context"
	"fmt"
	"log"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/heedhq/heed/adapter/redis"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
)

func wire(ctx context.Context, client goredis.UniversalClient, process string,
	learner *strategy.Learner) (*attribution.Consumer, error) {
	source, err := redis.NewSource(ctx, redis.SourceConfig{Client: client, Stream: attribution.Topic,
		Group: "learner", Consumer: process})
	if err != nil {
		return nil, err
	}
	dead, err := redis.NewSink(client)
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

// program returns what the program of the page prints, on a server.
func program(client goredis.UniversalClient) string {
	ctx, stop := context.WithCancel(context.Background())
	learner := must(strategy.New(ctx, strategy.Config{Store: &memstore.Store{},
		Arms: []strategy.Arm{{ID: "short"}, {ID: "long"}}}))
	must(learner.Select(ctx, strategy.Query{Session: "s1", Item: "reply"}))
	consumer := must(wire(ctx, client, "process-1", learner))

	report := attribution.Report{Session: "s1", Items: []attribution.Worth{{Item: "reply",
		Activated: true, Value: 0.8}}}
	sink := must(redis.NewSink(client)) // where the reports come from
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
	return fmt.Sprintln("outcomes:", consumer.Counts().Outcomes, "duplicates:",
		consumer.Counts().Duplicates)
}
