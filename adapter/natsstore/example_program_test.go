package natsstore_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/heedhq/heed/adapter/natsstore"
	"github.com/heedhq/heed/strategy"
)

func connect(ctx context.Context, servers string, replicas int) (*natsstore.Store, error) {
	nc, err := nats.Connect(servers, nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	return natsstore.Open(ctx, js, natsstore.Config{Name: "heed", Replicas: replicas})
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Panic(err)
	}
	return value
}

func Example() {
	ctx := context.Background()
	dir := must(os.MkdirTemp("", ""))
	defer os.RemoveAll(dir)
	nats := must(server.NewServer(&server.Options{
		Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir,
	}))
	nats.Start()
	defer nats.Shutdown()
	nats.ReadyForConnections(10 * time.Second)

	for range 2 { // two programs on one store
		st := must(connect(ctx, nats.ClientURL(), 1))
		learner := must(strategy.New(ctx, strategy.Config{
			Store: st, Arms: []strategy.Arm{{ID: "short"}, {ID: "long"}},
		}))
		choice := must(learner.Select(ctx, strategy.Query{Item: "reply"}))
		must(learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1, Confidence: 1}))
		n := 0
		for _, err := range learner.History(ctx, strategy.ChoiceFilter{}) {
			must(n, err)
			n++
		}
		fmt.Println("choices:", n)
	}
	// Output:
	// choices: 1
	// choices: 2
}
