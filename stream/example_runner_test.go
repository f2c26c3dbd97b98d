package stream_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/stream"
	"github.com/heedhq/heed/stream/streamtest"
)

// A host reads events of its own. What is no JSON is dead at once.
func ExampleRunner() {
	ctx := context.Background()
	events, dead := &streamtest.Stream{}, &streamtest.Stream{}
	for id, payload := range []string{`"hello"`, `{`} {
		e := stream.Event{ID: fmt.Sprint(id), Topic: "greetings", Payload: []byte(payload)}
		if err := events.Publish(ctx, e); err != nil {
			panic(err)
		}
	}
	events.Close()
	runner := &stream.Runner{
		Stream: events, DeadLetters: dead, Topic: "greetings.dead",
		Apply: func(_ context.Context, e stream.Event) (func(context.Context), error) {
			var text string
			if err := json.Unmarshal(e.Payload, &text); err != nil {
				return nil, &heed.InputError{Field: "Payload", Reason: "must be a text"}
			}
			fmt.Println(text)
			return nil, nil
		},
	}
	fmt.Println(runner.Run(ctx))
	fmt.Println(runner.Counts().Applied, runner.Counts().Dead, dead.Len())
	// Output:
	// hello
	// <nil>
	// 1 1 1
}
