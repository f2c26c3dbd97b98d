package learning_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
)

// A heuristic is shown three times: once it is undone, once it is praised, and twice nobody
// objects.
func Example() {
	ctx := context.Background()
	module, err := learning.New(ctx, learning.Config{Store: &memstore.Store{}})
	if err != nil {
		panic(err)
	}
	if _, err := module.Put(ctx, learning.Heuristic{ID: "dim the lights",
		Condition: "a film begins"}); err != nil {
		panic(err)
	}
	began := time.Now().Add(-time.Hour)
	for i, event := range []string{"friday", "saturday", "sunday"} {
		shown := began.Add(time.Duration(i) * time.Minute)
		if err := module.Fire(ctx, learning.Fire{HeuristicID: "dim the lights", EventID: event,
			Session: event, At: shown}); err != nil {
			panic(err)
		}
		if event == "friday" {
			changes, err := module.Hear(ctx, learning.Message{Session: "friday", Text: "No, undo that!",
				At: shown.Add(5 * time.Second)})
			if err != nil {
				panic(err)
			}
			fmt.Printf("%s: %.2f to %.2f\n", changes[0].Signal.Channel, changes[0].Old, changes[0].New)
		}
	}
	praise := learning.Judgement{HeuristicID: "dim the lights", EventID: "saturday", Person: "ann",
		Value: 1}
	if _, err := module.Judge(ctx, praise); err != nil {
		panic(err)
	}
	// a host does this every half minute or so, or has heed.Run do it
	if err := module.Sweep(ctx, time.Time{}); err != nil {
		panic(err)
	}
	standing, err := module.Standing(ctx, "dim the lights")
	if err != nil {
		panic(err)
	}
	fmt.Printf("confidence %.2f, %d fires, %d good, %d bad\n", standing.Confidence, standing.Fires,
		standing.Successes, standing.Failures)
	// Output:
	// implicit_undo: 0.30 to 0.20
	// confidence 0.43, 3 fires, 2 good, 1 bad
}

// newModule makes a module with one heuristic, for the examples below.
func newModule(cfg learning.Config) *learning.Module {
	ctx := context.Background()
	cfg.Store = &memstore.Store{}
	module, err := learning.New(ctx, cfg)
	if err != nil {
		panic(err)
	}
	_, err = module.Put(ctx, learning.Heuristic{ID: "close the window",
		Condition: "it begins to rain", Pack: "home"})
	if err != nil {
		panic(err)
	}
	return module
}

// Scores go through the scale that they are on, and may speak of the rule, of the response, or of
// both. The last word of a person on an answer takes the place of the one before.
func ExampleModule_Judge() {
	ctx := context.Background()
	module := newModule(learning.Config{})
	for _, f := range []learning.Judgement{
		{Person: "ann", Scale: learning.UserScale, Score: 1},
		{Person: "ann", Scale: learning.UserScale, Score: 3},
		{Person: "dev", Channel: learning.ChannelDev, Target: answer.TargetRule,
			Scale: learning.DevScale, Score: 5},
		{Person: "dev", Channel: learning.ChannelDev, Target: answer.TargetResponse,
			Scale: learning.DevScale, Score: 2},
	} {
		f.HeuristicID, f.EventID = "close the window", "rain at noon"
		change, err := module.Judge(ctx, f)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %+.1f, %.3f to %.3f\n", change.Signal.Channel, change.Signal.Worth,
			change.Old, change.New)
	}
	// Output:
	// user_explicit: -0.4, 0.300 to 0.250
	// user_explicit: +0.4, 0.250 to 0.417
	// dev: +0.4, 0.417 to 0.500
	// dev: -0.2, 0.500 to 0.467
}

// A pattern says by which later event it shows that an answer worked.
func ExampleExpectation() {
	ctx := context.Background()
	module := newModule(learning.Config{Expectations: []learning.Expectation{
		{Trigger: "rain", Outcome: "window closed", Timeout: 10 * time.Minute},
	}})
	if err := module.Fire(ctx, learning.Fire{HeuristicID: "close the window",
		EventID: "rain at noon"}); err != nil {
		panic(err)
	}
	changes, err := module.Hear(ctx, learning.Message{Stream: "sensor",
		Text: "Kitchen: window closed"})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%+g %s, %.2f to %.2f\n", changes[0].Signal.Worth, changes[0].Signal.Channel,
		changes[0].Old, changes[0].New)
	// Output: +1 implicit_outcome, 0.30 to 0.53
}

// A heuristic's own constraints go before its pack's, and these before those for all.
func ExampleConstraints() {
	ctx := context.Background()
	module := newModule(learning.Config{
		Packs: map[string]learning.Constraints{
			"home": {Floor: 0.2, Ceiling: 0.5},
			"":     {FeedbackWeight: 0.5},
		},
	})
	for i := range 3 {
		change, err := module.Judge(ctx, learning.Judgement{
			HeuristicID: "close the window", EventID: fmt.Sprint("rain ", i), Channel: "garden_robot",
			Value: 1, Weight: 1.25,
		})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%.2f %v\n", change.New, change.Limits)
	}
	// Output:
	// 0.44 [weight]
	// 0.50 [weight ceiling]
	// 0.50 [weight ceiling]
}

// An explanation lists what a confidence is made of.
func ExampleModule_Explain() {
	ctx := context.Background()
	module := newModule(learning.Config{})
	for _, person := range []string{"ann", "bob", "ann"} {
		f := learning.Judgement{HeuristicID: "close the window", EventID: "rain at noon",
			Person: person, Value: value(person == "ann")}
		if _, err := module.Judge(ctx, f); err != nil {
			panic(err)
		}
	}
	e, err := module.Explain(ctx, "close the window")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f, from %.1f for and %.1f against to begin with\n", e.Standing.Confidence,
		e.Prior.Alpha, e.Prior.Beta)
	for _, share := range e.Shares {
		fmt.Printf("%s of %s: %.1f for, %.1f against\n", share.Channel, share.Source, share.For,
			share.Against)
	}
	// Output:
	// 0.39, from 0.6 for and 1.4 against to begin with
	// user_explicit of ann: 0.8 for, 0.0 against
	// user_explicit of bob: 0.0 for, 0.8 against
}

// In a crowd of ten, a thousand thumbs of one person weigh as much as three of the others.
func ExampleConfig_trust() {
	ctx := context.Background()
	module := newModule(learning.Config{})
	var change learning.Change
	judge := func(event, person string, value float64) {
		var err error
		change, err = module.Judge(ctx, learning.Judgement{
			HeuristicID: "close the window", EventID: event, Person: person, Value: value,
		})
		if err != nil {
			panic(err)
		}
	}
	for i := range 9 {
		judge(fmt.Sprint("own ", i), fmt.Sprint("person ", i), -1)
	}
	fmt.Printf("%.2f\n", change.New)
	for i := range 1000 {
		judge(fmt.Sprint(i), "mallory", 1)
	}
	fmt.Printf("%.2f %v\n", change.New, change.Limits)
	// Output:
	// 0.07
	// 0.25 [people]
}

// To change a heuristic, put it with the revision that was read. Somebody else may have been
// quicker.
func ExampleModule_Put() {
	ctx := context.Background()
	module := newModule(learning.Config{})
	standing, err := module.Standing(ctx, "close the window")
	if err != nil {
		panic(err)
	}
	first := standing.Heuristic
	locked := first
	locked.Constraints.Lock = "locked"
	if _, err := module.Put(ctx, locked); err != nil {
		panic(err)
	}
	_, err = module.Put(ctx, first)
	fmt.Println(errors.Is(err, heed.ErrConflict))
	// Output: true
}
