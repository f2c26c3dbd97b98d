package strategy_test

import (
	"context"
	"fmt"

	//nolint:staticcheck // hosts that still have it can plug it in, and this shows that they can
	exprand "golang.org/x/exp/rand"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// Any value with a method Uint64 is a source, such as those of golang.org/x/exp/rand. With the same
// seed, a session makes the same choices.
func ExampleConfig_source() {
	for range 2 {
		learner, err := strategy.New(context.Background(), strategy.Config{
			Store: &memstore.Store{},
			Arms:  injection.Arms(),
			Seed:  exprand.NewSource(42),
		})
		if err != nil {
			panic(err)
		}
		choice, err := learner.Select(context.Background(),
			strategy.Query{Session: "monday", Item: "use tabs"})
		if err != nil {
			panic(err)
		}
		fmt.Println(choice.Arm)
	}
	// Output:
	// deferred
	// deferred
}
