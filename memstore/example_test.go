package memstore_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// A test asks a learner that stands where the one of a running program stood when its database was exported.
func ExampleImport() {
	text, err := os.ReadFile("testdata/export.jsonl")
	if err != nil {
		panic(err)
	}
	stores := &memstore.Stores{Evidence: &memstore.Evidence{}}
	if err := memstore.Import(context.Background(), bytes.NewReader(text), stores); err != nil {
		panic(err)
	}
	learner, err := strategy.New(strategy.Config{
		Name: "models", Store: stores.Evidence, Arms: []strategy.Arm{{ID: "small-model"}, {ID: "large-model"}},
		Now: func() time.Time { return time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		panic(err)
	}
	law, err := learner.Distribution(context.Background(), "law", "")
	if err != nil {
		panic(err)
	}
	for _, arm := range law.Arms {
		fmt.Printf("%s: %d outcomes, %.2f expected\n", arm.Arm, arm.Outcomes, arm.Mean)
	}
	// Output:
	// small-model: 2 outcomes, 0.37 expected
	// large-model: 3 outcomes, 0.76 expected
}
