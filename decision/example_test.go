package decision_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

// A heuristic that is trusted answers. Where there is none, the model does.
func Example() {
	llm := decision.LLMFunc(func(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse,
		error) {
		// in a host: call the provider's client with r.System, r.Prompt and r.MaxTokens
		return decision.LLMResponse{Text: "Have a look at the sensor."}, nil
	})
	strategy, err := decision.New(ctx, decision.Config{LLM: llm, Store: &memstore.Store{}})
	if err != nil {
		panic(err)
	}
	oven := decision.Candidate{
		HeuristicID: "oven", Condition: "the oven is on and nobody is there",
		Action: "Turn the oven off.", Confidence: 0.92,
	}
	for _, event := range []decision.Request{
		{EventID: "1", Text: "The oven is on, and nobody is in.",
			Candidates: []decision.Candidate{oven}},
		{EventID: "2", Text: "The oven says that it is -273 °C."},
		{EventID: "3", Text: "The oven was cleaned.", CanWait: true},
	} {
		result, err := strategy.Decide(context.Background(), event)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%s: %q %q\n", result.Path, result.Text, result.Reason)
	}
	// Output:
	// heuristic: "Turn the oven off." ""
	// llm: "Have a look at the sensor." ""
	// rejected: "" "not_immediate"
}

// A host keeps its own record of an answer in the same step as the trace. A reaction returns which
// heuristic earns it, and changes the record.
func ExampleDecider_Feedback() {
	ctx := context.Background()
	st := &memstore.Store{}
	decider, err := decision.New(ctx, decision.Config{Store: st})
	if err != nil {
		panic(err)
	}
	event := decision.Request{EventID: "e1", Candidates: []decision.Candidate{
		{HeuristicID: "oven", Action: "Turn the oven off.", Confidence: 0.9},
	}}
	result, ok := decider.Trusted(event)
	if !ok {
		panic("the model would be asked")
	}
	record := answer.Answer{ID: event.EventID, Reply: &answer.Reply{Heuristic: result.CreditID}}
	if err := store.Do(ctx, st, func(tx *store.Tx) error {
		// in a host: add the record to tx as well
		return decider.TraceIn(tx, event, &result)
	}); err != nil {
		panic(err)
	}
	factors := decision.Factors{Channels: map[string]float64{"user_explicit": 0.5}}
	for _, mark := range []int{5, 1} { // of five; Ann changes her mind
		said, trace, err := decider.Feedback(ctx, result.ResponseID, answer.Statement{
			By: "Ann", Channel: "user_explicit", Value: decision.Score(mark, 5),
		})
		if err != nil {
			panic(err)
		}
		said.Weight = factors.Weight(said, string(trace.Path), trace.At, 0, 0)
		on, replaced, effect := answers.Say(&record, said)
		fmt.Printf("%s: %+.0f weighs %.1f, %s, replaces %d\n",
			trace.CreditID, on.Value, on.Weight, effect, len(replaced))
	}
	// Output:
	// oven: +1 weighs 0.5, holds, replaces 0
	// oven: -1 weighs 0.5, holds, replaces 1
}

// Ask returns the prompt as a value, and a framework asks its own model. Reply makes a result of
// the answer that is already there.
func ExampleDecider_Reply() {
	ctx := context.Background()
	decider, err := decision.New(ctx, decision.Config{Bare: true})
	if err != nil {
		panic(err)
	}
	event := decision.Request{
		EventID: "e1", Text: "The oven is on.",
		Candidates: []decision.Candidate{{
			HeuristicID: "oven", Condition: "the oven is on", Action: "Turn the oven off.",
			Confidence: 0.4,
		}},
	}
	ask, err := decider.Ask(event)
	if err != nil {
		panic(err)
	}
	fmt.Println(ask.Prompt, ask.Shown, ask.Withheld)
	given := decision.LLMFunc(func(
		context.Context, decision.LLMRequest,
	) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: "<think>Is anybody in?</think>Turn off the oven."}, nil
	})
	result, err := decider.Reply(ctx, event, ask, given)
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Text, result.Compared[0].HeuristicID, result.Compared[0].Agrees)
	// Output:
	// The oven is on. [] [oven]
	// Turn off the oven. oven true
}

// An answer of the model that was praised may become a heuristic.
func ExampleDecider_Extract() {
	ctx := context.Background()
	st := &memstore.Store{}
	model := &llmtest.Model{
		Answers: llmtest.Say("Turn the oven off."),
		Predictions: llmtest.Say(`{
			"condition": "the oven or the stove is on and there is nobody in the kitchen",
			"action": {"type": "warn", "message": "Turn the oven off, and tell whoever is in that it had been left on."}}`),
	}
	strategy, err := decision.New(ctx, decision.Config{LLM: model, Store: st})
	if err != nil {
		panic(err)
	}
	result, err := strategy.Decide(ctx, decision.Request{EventID: "e1",
		Text: "The oven is on, and nobody is in."})
	if err != nil {
		panic(err)
	}
	extraction, err := strategy.Extract(ctx, result.ResponseID, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(extraction.ActionType, extraction.Confidence, extraction.Condition)
	// Output: warn 0.3 the oven or the stove is on and there is nobody in the kitchen
}

// Two strategies share the traffic, and the host counts what becomes of their answers. Make the
// variants arms of package strategy/best to end the experiment as soon as one is better.
func ExampleExperiment() {
	ctx := context.Background()
	model := &llmtest.Model{Answers: llmtest.Say("Have a look.")}
	first, err := decision.New(ctx, decision.Config{LLM: model})
	if err != nil {
		panic(err)
	}
	always, err := decision.New(ctx, decision.Config{Strategy: "always_llm", LLM: model})
	if err != nil {
		panic(err)
	}
	experiment, err := decision.NewExperiment("do we need the model", nil,
		decision.Variant{Name: "heuristics first", Strategy: first},
		decision.Variant{Name: "always the model", Strategy: always})
	if err != nil {
		panic(err)
	}
	// in a host: unknown
	works := map[decision.Path]float64{decision.Heuristic: 0.9, decision.Model: 0.7}
	dice := rand.New(rand.NewPCG(1, 2))
	answers, successes := make(map[string]int), make(map[string]int)
	for i := range 1000 {
		result, err := experiment.Decide(ctx, decision.Request{
			EventID: fmt.Sprint(i), Candidates: []decision.Candidate{
				{HeuristicID: "h", Action: "Turn it off.", Confidence: 0.8},
			},
		})
		if err != nil {
			panic(err)
		}
		answers[result.Variant]++
		if dice.Float64() < works[result.Path] {
			successes[result.Variant]++
		}
	}
	for _, name := range []string{"heuristics first", "always the model"} {
		fmt.Printf("%s: %d of %d succeeded\n", name, successes[name], answers[name])
	}
	// Output:
	// heuristics first: 479 of 529 succeeded
	// always the model: 322 of 471 succeeded
}

// A variant with no share answers nobody. It decides about the same requests in the shadow of the
// one that answers, so that the host can compare them.
func ExampleExperiment_Shadow() {
	ctx := context.Background()
	current, err := decision.New(ctx, decision.Config{})
	if err != nil {
		panic(err)
	}
	bolder, err := decision.New(ctx, decision.Config{Threshold: 0.5})
	if err != nil {
		panic(err)
	}
	experiment, err := decision.NewExperiment("is bolder better", nil,
		decision.Variant{Name: "current", Strategy: current, Share: 1},
		decision.Variant{Name: "bolder", Strategy: bolder})
	if err != nil {
		panic(err)
	}
	request := decision.Request{EventID: "e1", Candidates: []decision.Candidate{
		{HeuristicID: "fan", Action: "Turn the fan up.", Confidence: 0.6},
	}}
	result, err := experiment.Decide(ctx, request)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s\n", result.Variant, result.Path) // the answer is sent
	for _, shadow := range experiment.Shadow(ctx, request, result) {
		fmt.Printf("%s: %s %q, error %v\n", shadow.Variant, shadow.Path, shadow.Text, shadow.Err)
	}
	// Output:
	// current: rejected
	// bolder: heuristic "Turn the fan up.", error <nil>
}

// Candidates come from a host's search, and are put in order: by similarity, and those that are
// close by confidence.
func ExampleRank() {
	for _, c := range decision.Rank([]decision.Candidate{
		{HeuristicID: "trusted", Similarity: 0.6, Confidence: 0.7},
		{HeuristicID: "fits", Similarity: 0.9, Confidence: 0.3},
		{HeuristicID: "fits about as well", Similarity: 0.88, Confidence: 0.5},
	}, 0.05) {
		fmt.Println(c.HeuristicID)
	}
	// Output:
	// fits about as well
	// fits
	// trusted
}

// While nothing else is to be done, a host puts the situation of each heuristic to the model,
// without candidates. The model does not know what the heuristic says, so its agreement is
// evidence: package learning counts it as an answer that people accept by their silence.
func ExampleDecider_Decide_sleepCycle() {
	ctx, now := context.Background(), time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st, err := memstore.New(memstore.Config{Now: clock})
	if err != nil {
		panic(err)
	}
	module, err := learning.New(ctx, learning.Config{Store: st, Now: clock})
	if err != nil {
		panic(err)
	}
	if _, err := module.Put(ctx, learning.Heuristic{
		ID: "oven", Condition: "the oven is on and nobody is there", Action: "Turn the oven off.",
	}); err != nil {
		panic(err)
	}
	decider, err := decision.New(ctx, decision.Config{
		LLM: &llmtest.Model{Answers: llmtest.Say("Turn off the oven.")}, // in a host: a client
	})
	if err != nil {
		panic(err)
	}
	for h, err := range module.Heuristics(ctx) {
		if err != nil {
			panic(err)
		}
		id := "sleep/" + h.ID + now.Format("/2006-01-02")
		result, err := decider.Decide(ctx, decision.Request{EventID: id, Text: h.Condition})
		if err != nil {
			panic(err)
		}
		if result.Path != decision.Model || result.Cut {
			continue // there was no answer to compare
		}
		like, err := heed.Trigrams{}.Similar(ctx, result.Text, []string{h.Action})
		if err != nil {
			panic(err)
		}
		c := answer.Comparison{HeuristicID: h.ID, Similarity: like[0], Agrees: like[0] >= 0.75}
		if err := module.Fire(ctx, learning.Fire{
			EventID: id, Path: "sleep", Compared: []answer.Comparison{c}, At: now,
		}); err != nil {
			panic(err)
		}
		fmt.Printf("%s: the model agrees: %t\n", h.ID, c.Agrees)
	}
	before, err := module.Standing(ctx, "oven")
	if err != nil {
		panic(err)
	}
	now = now.Add(time.Minute)
	if err := module.Sweep(ctx, now); err != nil {
		panic(err)
	}
	after, err := module.Standing(ctx, "oven")
	if err != nil {
		panic(err)
	}
	fmt.Printf("confidence: %.2f, then %.2f\n", before.Confidence, after.Confidence)
	// Output:
	// oven: the model agrees: true
	// confidence: 0.30, then 0.38
}
