package memstore_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/strategy"
)

// A dump carries what was learned into another store, here another one in memory after a restart.
func ExampleStore_Load() {
	ctx := context.Background()
	learnerOf := func(st *memstore.Store) *strategy.Learner {
		learner, err := strategy.New(ctx, strategy.Config{Store: st,
			Arms: []strategy.Arm{{ID: "small-model"}, {ID: "large-model"}}})
		if err != nil {
			panic(err)
		}
		return learner
	}
	before := &memstore.Store{}
	choice, err := learnerOf(before).Select(ctx,
		strategy.Query{Session: "monday", Category: "law", Arms: []strategy.ArmID{"large-model"}})
	if err != nil {
		panic(err)
	}
	var file bytes.Buffer
	if err := before.Dump(ctx, &file); err != nil {
		panic(err)
	}

	after := &memstore.Store{}
	if err := after.Load(ctx, &file); err != nil {
		panic(err)
	}
	learner := learnerOf(after)
	again, err := learner.Select(ctx, strategy.Query{Session: "monday", Category: "law"})
	if err != nil {
		panic(err)
	}
	fmt.Println(again.Arm, again.ID == choice.ID)
	// Output: large-model true
}
