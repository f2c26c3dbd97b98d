package strategy_test

import (
	"context"
	"fmt"
	"time"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// exampleClock is a clock that examples set. A host leaves Now out.
type exampleClock struct{ now time.Time }

func newExampleClock() *exampleClock {
	return &exampleClock{time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)}
}

func (c *exampleClock) Now() time.Time { return c.now }

// recorded returns the configuration of a learner. In a host, the store outlives the process.
func (c *exampleClock) recorded() strategy.Config {
	st, err := memstore.New(memstore.Config{Now: c.Now})
	if err != nil {
		panic(err)
	}
	return strategy.Config{
		Store: st, Now: c.Now,
		Arms: []strategy.Arm{{ID: "short-prompt"}, {ID: "long-prompt"}},
	}
}

func learnerOf(cfg strategy.Config) *strategy.Learner {
	learner, err := strategy.New(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	return learner
}

// An outcome comes a day later, in another process, and knows of the choice only its session and
// its item.
func ExampleLearner_Find() {
	ctx := context.Background()
	clock := newExampleClock()
	cfg := clock.recorded()

	monday := learnerOf(cfg)
	query := strategy.Query{Session: "monday", Item: "release notes", Category: "writing",
		Arms: []strategy.ArmID{"long-prompt"}}
	if _, err := monday.Select(ctx, query); err != nil {
		panic(err)
	}
	if err := monday.EndSession(ctx, "monday"); err != nil {
		panic(err)
	}

	clock.now = clock.now.Add(24 * time.Hour)
	tuesday := learnerOf(cfg)
	found, err := tuesday.Find(ctx, "monday", "release notes", clock.now)
	if err != nil {
		panic(err)
	}
	fmt.Println(found.Choice.Arm, "in", found.Choice.Category, "is", found.Stage)
	disposition, err := tuesday.Observe(ctx, strategy.Outcome{Choice: found.Choice, ID: "review",
		Value: 0.8, Confidence: 0.9})
	fmt.Println(disposition, err)
	// Output:
	// long-prompt in writing is pending
	// applied <nil>
}

// The history of an item has its choices, the newest first, each with what came of it.
func ExampleLearner_History() {
	ctx := context.Background()
	clock := newExampleClock()
	learner := learnerOf(clock.recorded())
	for n, arm := range []strategy.ArmID{"short-prompt", "long-prompt", "long-prompt"} {
		clock.now = clock.now.Add(time.Hour)
		choice, err := learner.Select(ctx, strategy.Query{
			Session: fmt.Sprint("session ", n), Item: "release notes", Arms: []strategy.ArmID{arm},
		})
		if err != nil {
			panic(err)
		}
		if n == 2 {
			break // its outcome has not come yet
		}
		if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: float64(n) - 0.5,
			Confidence: 0.8}); err != nil {
			panic(err)
		}
	}
	for record, err := range learner.History(ctx,
		strategy.ChoiceFilter{Item: "release notes", Limit: 10}) {
		if err != nil {
			panic(err)
		}
		fmt.Print(record.Choice.At.Format("15:04 "), record.Choice.Session, " ", record.Choice.Arm, " ",
			record.Stage)
		if record.Result != nil {
			fmt.Printf(" %+.1f", record.Result.Value)
		}
		fmt.Println()
	}
	// Output:
	// 12:00 session 2 long-prompt pending
	// 11:00 session 1 long-prompt observed +0.5
	// 10:00 session 0 short-prompt observed -0.5
}

// An operator looks at the segments, and at one item.
func ExampleLearner_Distributions() {
	ctx := context.Background()
	clock := newExampleClock()
	learner := learnerOf(clock.recorded())
	value := map[strategy.ArmID]float64{"short-prompt": -1, "long-prompt": 1}
	for n := range 20 {
		for arm, value := range value {
			choice, err := learner.Select(ctx, strategy.Query{Item: fmt.Sprint("item ", n%4),
				Category: "writing", Arms: []strategy.ArmID{arm}})
			if err != nil {
				panic(err)
			}
			if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: value,
				Confidence: 1}); err != nil {
				panic(err)
			}
		}
	}
	for d, err := range learner.Distributions(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %d items, %d outcomes\n", d.Category, d.Items, d.Outcomes)
		for _, arm := range d.Arms {
			fmt.Printf("%s: %.2f, between %.1f and %.1f, of %d outcomes\n",
				arm.Arm, arm.Mean, arm.Low, arm.High, arm.Outcomes)
		}
		if item, ok := d.Item("item 3"); ok {
			fmt.Println("leading for item 3:", item.Leading)
		}
	}
	// Output:
	// writing: 4 items, 40 outcomes
	// short-prompt: 0.06, between 0.0 and 0.4, of 20 outcomes
	// long-prompt: 0.94, between 0.6 and 1.0, of 20 outcomes
	// leading for item 3: long-prompt
}

// A choice whose outcome never comes is weak evidence against its arm here, until the outcome comes
// after all.
func ExampleLearner_Sweep() {
	ctx := context.Background()
	clock := newExampleClock()
	cfg := clock.recorded()
	cfg.Pooling = strategy.Copy{} // in which weights count as they are
	cfg.Silence = strategy.Silence{After: 12 * time.Hour, Confidence: 0.2}
	learner := learnerOf(cfg)
	query := strategy.Query{Item: "release notes", Arms: []strategy.ArmID{"short-prompt"}}
	choice, err := learner.Select(ctx, query)
	if err != nil {
		panic(err)
	}
	show := func(what string) {
		beliefs, err := learner.Beliefs(ctx, query)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %.3f\n", what, beliefs[0].Mean())
	}
	show("chosen")
	clock.now = clock.now.Add(24 * time.Hour)
	if err := learner.Sweep(ctx, clock.now); err != nil { // in a host, heed.Run does so
		panic(err)
	}
	show("expired")
	if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1,
		Confidence: 1}); err != nil {
		panic(err)
	}
	show("observed")
	// Output:
	// chosen: 0.500
	// expired: 0.455
	// observed: 0.667
}

// A learning was reworded: what was learned of it is forgotten, and the store's audit log says who
// wanted it and why.
func ExampleLearner_Reset() {
	ctx := context.Background()
	cfg := newExampleClock().recorded()
	learner := learnerOf(cfg)
	query := strategy.Query{Item: "release notes", Category: "writing",
		Arms: []strategy.ArmID{"long-prompt"}}
	choice, err := learner.Select(ctx, query)
	if err != nil {
		panic(err)
	}
	if _, err := learner.Observe(ctx, strategy.Outcome{Choice: choice, Value: 1,
		Confidence: 1}); err != nil {
		panic(err)
	}
	err = learner.Reset(ctx, strategy.Reset{Category: "writing", Item: "release notes", Actor: "ann",
		Reason: "it was reworded"})
	if err != nil {
		panic(err)
	}
	for d, err := range learner.Distributions(ctx, query) {
		fmt.Println(d, err) // there is none
	}
	for entry, err := range store.AuditEntries(ctx, cfg.Store, store.Query{}) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s %s: %s\n", entry.Actor, entry.Action, entry.Subject, entry.Reason)
	}
	// Output:
	// ann: strategy.reset release notes: it was reworded
}

// A host commits a record of its own together with an outcome. If the ticket was changed by
// somebody else, the step runs again.
func ExampleLearner_ObserveIn() {
	ctx := context.Background()
	clock := newExampleClock()
	cfg := clock.recorded()
	learner := learnerOf(cfg)
	type ticket struct{ ID, State string }
	tickets := store.View[ticket]{
		Kind:  store.Kind{Name: "ticket"},
		Place: func(t ticket) (string, time.Time, []string) { return t.ID, clock.now, nil },
	}
	if err := cfg.Store.Declare(ctx, tickets.Kind); err != nil {
		panic(err)
	}
	choice, err := learner.Select(ctx, strategy.Query{Session: "ticket 7", Item: "billing"})
	if err != nil {
		panic(err)
	}
	for range 2 { // the second delivery changes nothing
		var did *strategy.Disposition
		err = store.Do(ctx, cfg.Store, func(tx *store.Tx) error {
			row, err := tickets.In(tx, "7")
			if err != nil {
				return err
			}
			tickets.Put(tx, ticket{"7", "resolved"}, row.Revision)
			did, err = learner.ObserveIn(tx, strategy.Outcome{
				Choice: choice, ID: "resolved", Value: 1, Confidence: 1,
			})
			return err
		})
		fmt.Println(*did, err)
	}
	// Output:
	// applied <nil>
	// duplicate <nil>
}
