package looptest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/loop/looptest"
)

// A test of a host's own agent needs one line for the store, the clock, the seed and the model.
func ExampleNew() {
	test := func(t testing.TB) {
		agent, world := looptest.New(t, loop.Config{Arms: []loop.Arm{{ID: "brief"}}},
			"Rotate its logs.", "Call Ann.")
		for range 2 {
			answer, err := agent.Answer(t.Context(), loop.Event{Text: "The disk of db-1 is full."})
			fmt.Println(answer.ID, answer.Text, err)
		}
		world.Advance(time.Minute) // silence is heard after 30 seconds
		account, err := agent.Explain(t.Context(), "event-1")
		fmt.Println(account.Worth, account.Channel, err)
	}
	test(demonstration{})
	// Output:
	// event-1 Rotate its logs. <nil>
	// event-2 Call Ann. <nil>
	// 0.8 silence <nil>
}

// A demonstration stands in for the test.
type demonstration struct{ testing.TB }

func (demonstration) Context() context.Context { return context.Background() }
func (demonstration) Helper()                  {}
