package nats_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/heedhq/heed/adapter/nats"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
)

func wire(ctx context.Context, js jetstream.JetStream,
	learner *strategy.Learner) (*attribution.Consumer, error) {
	source, err := nats.NewSource(ctx, nats.SourceConfig{
		JetStream: js, Stream: "HEED", Consumer: "learner", Subject: attribution.Topic,
	})
	if err != nil {
		return nil, err
	}
	dead, err := nats.NewSink(js)
	if err != nil {
		return nil, err
	}
	return attribution.New(attribution.Config{Learner: learner, Stream: source, DeadLetters: dead})
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Panic(err)
	}
	return value
}

// Example is the program of README.md.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	dir := must(os.MkdirTemp("", ""))
	defer os.RemoveAll(dir)
	broker := must(server.NewServer(&server.Options{DontListen: true, JetStream: true,
		StoreDir: dir}))
	broker.Start()
	defer broker.Shutdown()
	connection := must(natsgo.Connect("", natsgo.InProcessServer(broker), natsgo.MaxReconnects(-1)))
	defer connection.Close()
	js := must(jetstream.New(connection))
	must(js.CreateStream(ctx, jetstream.StreamConfig{Name: "HEED", Subjects: []string{"heed.>"}}))

	learner := must(strategy.New(ctx, strategy.Config{Store: &memstore.Store{},
		Arms: []strategy.Arm{{ID: "short"}, {ID: "long"}}}))
	must(learner.Select(ctx, strategy.Query{Session: "s1", Item: "reply"}))
	consumer := must(wire(ctx, js, learner))

	report := attribution.Report{Session: "s1", Items: []attribution.Worth{{Item: "reply",
		Activated: true, Value: 0.8}}}
	sink := must(nats.NewSink(js)) // where the reports come from
	event := must(report.Event("event 1", time.Now()))
	for range 2 { // brokers deliver some events twice
		if err := sink.Publish(ctx, event); err != nil {
			log.Panic(err)
		}
	}
	go func() {
		for consumer.Counts().Applied < 2 {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	if err := consumer.Run(ctx); err != nil {
		log.Panic(err)
	}
	fmt.Println("outcomes:", consumer.Counts().Outcomes, "duplicates:", consumer.Counts().Duplicates)
	// Output:
	// outcomes: 1 duplicates: 1
}
