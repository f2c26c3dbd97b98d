package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/decision/llmtest"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
)

// heuristics are two that users have judged.
func (w *world) heuristics() {
	module, err := learning.New(ctx, learning.Config{Store: w.store, Now: w.clock})
	require.NoError(w.t, err)
	for _, h := range []learning.Heuristic{
		{ID: "greet-by-name", Domain: "chat", Condition: "a user says hello", CreatedAt: start},
		{ID: "lights-off-at-ten", Domain: "home", Condition: "it is ten in the evening", Initial: 0.5,
			CreatedAt: start},
	} {
		_, err := module.Put(ctx, h)
		require.NoError(w.t, err)
	}
	for n := range 12 {
		w.now = w.now.Add(10 * time.Minute)
		id := []string{"greet-by-name", "lights-off-at-ten"}[n%2]
		event := fmt.Sprint("event-", n)
		require.NoError(w.t, module.Fire(ctx, learning.Fire{HeuristicID: id, EventID: event,
			Stream: "microphone", Person: "ann", At: w.now}))
		_, err := module.Judge(ctx, learning.Judgement{
			HeuristicID: id, EventID: event, Person: "ann", At: w.now.Add(time.Second),
			Value: map[bool]float64{true: 1, false: -1}[n%2 == 0 || n == 5],
		})
		require.NoError(w.t, err)
	}
}

// ways makes three patterns: a proven one, an inverted one and one that is hardly known.
func (w *world) ways() {
	recorder, err := patterns.New(ctx, patterns.Config{Store: w.store, Now: w.clock,
		NewID: func() string { return w.id().String() }})
	require.NoError(w.t, err)
	for n := range 13 {
		w.now = w.now.Add(5 * time.Minute)
		o := patterns.Outcome{ID: fmt.Sprint("outcome-", n), Task: fmt.Sprint("task-", n),
			Strategy: "split-by-feature", Duration: 2 * time.Minute, Success: true, At: w.now}
		switch {
		case n%3 == 1:
			o.Strategy, o.Success, o.Duration, o.Errors, o.Retries = "split-by-file", false, time.Hour, 6,
				5
		case n == 12:
			o.Strategy, o.Source = "tests-first", "ann"
		}
		_, err := recorder.Record(ctx, o)
		require.NoError(w.t, err)
	}
}

// reviews are two proposals that wait, one with an approval.
func (w *world) reviews() {
	n := 0
	cfg := feedback.Config{
		Store: w.store, Now: w.clock, NewID: func() string {
			n++
			return fmt.Sprintf("%08x-rule",
				0x7d0c2b10+n)
		},
	}
	service, err := feedback.Open(ctx, cfg)
	if errors.Is(err, heed.ErrNotFound) {
		service, err = feedback.New(ctx, cfg)
	}
	require.NoError(w.t, err)
	for _, text := range []string{"Name the ticket in the title of every pull request.",
		"Ask before deleting a migration."} {
		w.now = w.now.Add(time.Minute)
		p, err := service.Rules().Propose(ctx, feedback.Submission{
			Draft: feedback.Draft{Text: text, Agents: []string{"coder"}}, Actor: "wendy",
			Reason: "it came up again",
		})
		require.NoError(w.t, err)
		if text[0] == 'A' {
			_, err = service.Rules().Review(ctx, feedback.Review{
				Proposal: p.ID, Decision: feedback.Approved,
				Actor: "maria", Reason: "we lost one in May", Hash: p.Draft.Hash(),
			})
			require.NoError(w.t, err)
		}
	}
}

// answers are traces of the model and of a heuristic.
func (w *world) answers() {
	n := -1
	decide, err := decision.New(ctx, decision.Config{
		Store: w.store, Now: w.clock, NewID: func() string { return fmt.Sprint("response-", n) },
		Prediction: true,
		Seed:       rand.NewPCG(1, 2),
		LLM:        &llmtest.Model{Answers: llmtest.Say("Hello, Ann."), Predictions: llmtest.Say(`{"success": 0.75, "confidence": 0.8}`)},
	})
	require.NoError(w.t, err)
	for _, confidence := range []float64{0.6, 0.8} {
		w.now = w.now.Add(time.Minute)
		n++
		_, err := decide.Decide(ctx, decision.Request{
			EventID: fmt.Sprint("event-", n), Source: "microphone", Domain: "chat",
			Text: "hello, who is there?",
			Candidates: []decision.Candidate{{HeuristicID: "greet-by-name", Action: "Hello, Ann.",
				Confidence: confidence}},
		})
		require.NoError(w.t, err)
	}
}
