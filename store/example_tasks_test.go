package store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// Forgetting a person removes the name and the person's evidence, everywhere in the store.
func ExampleBatch_forget() {
	ctx := context.Background()
	st := &memstore.Store{}
	learner, err := strategy.New(ctx, strategy.Config{
		Store: st, Arms: []strategy.Arm{{ID: "short"}, {ID: "long"}},
	})
	if err != nil {
		panic(err)
	}
	choice, err := learner.Select(ctx, strategy.Query{Item: "mail"})
	if err != nil {
		panic(err)
	}
	for _, who := range []string{"ann", "bob"} {
		_, err = learner.Observe(ctx, strategy.Outcome{
			Choice: choice, ID: who, Value: 1, Confidence: 1, Source: who, Share: 0.5,
		})
		if err != nil {
			panic(err)
		}
	}
	show := func() {
		beliefs, err := learner.Beliefs(ctx, strategy.Query{Item: "mail"})
		if err != nil {
			panic(err)
		}
		fmt.Println(beliefs[0].Successes + beliefs[1].Successes)
	}
	show()
	if err := store.Run(ctx, st, store.Job{Forget: []string{"ann"}}); err != nil {
		panic(err)
	}
	show()
	// Output:
	// 1
	// 0.5
}

// A record is written with the revision that was read. If somebody else has written it since, the
// commit is refused and changes nothing; store.Do would run the step again.
func ExampleView_Record() {
	ctx := context.Background()
	st := &memstore.Store{}
	if err := st.Declare(ctx, tickets.Kind); err != nil {
		panic(err)
	}
	write := func(revision uint64) error {
		record := tickets.Record(Ticket{ID: "T-1", Opened: morning}, revision)
		_, err := st.Commit(ctx, store.Batch{Records: []store.Record{record}})
		return err
	}
	fmt.Println(write(0))
	fmt.Println(errors.Is(write(0), heed.ErrConflict))
	// Output:
	// <nil>
	// true
}
