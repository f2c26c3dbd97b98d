package feedback_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
)

// large is a world with 10,000 active rules, 20 of each of 500 agents, and 10,000 corrections of
// one agent.
func large(t testing.TB) *world {
	w := newWorld(t, feedback.Config{Gate: feedback.Gate{Pending: 1 << 30}})
	for agent := range 500 {
		for i := range 20 {
			w.put(feedback.Rule{
				ID: fmt.Sprintf("r%d-%d", agent, i), Draft: rule(sentence(agent*20+i),
					fmt.Sprint("agent", agent)), Status: feedback.StateActive, Activated: start,
			})
		}
	}
	for i := range 10_000 {
		f := w.correction(fmt.Sprint("person", i%50), sentence(i))
		f.Agent, f.Severity, f.Recorded = "agent7", "medium", f.At
		f.Class, f.Cluster, f.Link, f.Action = feedback.EdgeCase, f.ID, 1, feedback.DocumentOnly
		w.put(f)
	}
	return w
}

// sentence is one of many that share some words.
func sentence(i int) string {
	verbs := strings.Fields(
		"name check write keep move drop add show hide read test build ship lock open close sort mark")
	nouns := strings.Fields(
		"table index schema report summary header footer token secret branch release version module " +
			"handler worker queue topic")
	return fmt.Sprintf("%s the %s of the %s in part %s%s", verbs[i%len(verbs)], nouns[i/3%len(nouns)],
		nouns[i/7%len(nouns)],
		string(rune('a'+i/26%26)), nouns[i/11%len(nouns)])
}

func BenchmarkLarge(b *testing.B) {
	w := large(b)
	consolidated := newWorld(b, feedback.Config{Gate: feedback.Gate{Pending: 1_000_000}})
	for i := range 1000 {
		consolidated.put(feedback.Rule{ID: fmt.Sprintf("r%d", i), Draft: rule(sentence(i)),
			Status: feedback.StateActive, Activated: start})
	}
	waiting := make([]feedback.Proposal, 0, 100)
	for i := range cap(waiting) {
		waiting = append(waiting, w.propose(fmt.Sprint("paula", i),
			rule(fmt.Sprint("Count down from ", i), fmt.Sprint("agent", i))))
	}
	for name, call := range map[string]func(i int) error{
		"Inject": func(i int) error {
			_, err := w.rules.Inject(ctx, fmt.Sprint("agent", i%500), "base", "")
			return err
		},
		"Propose": func(i int) error {
			_, err := w.rules.Propose(ctx, feedback.Submission{Draft: rule(fmt.Sprint("Count up to ", i),
				fmt.Sprint("agent", i%500)), Actor: fmt.Sprint("paul", i), Reason: "x"})
			return err
		},
		"Review": func(i int) error { // each person approves once; the quorum is not reached
			p := waiting[i%len(waiting)]
			_, err := w.rules.Review(ctx, feedback.Review{Proposal: p.ID, Actor: "ann",
				Reason: fmt.Sprint(i), Hash: p.Hash(), Override: []string{fmt.Sprint(i)}})
			return err
		},
		"Evaluate": func(i int) error {
			f := w.correction("eve", "say where the "+sentence(i))
			f.Agent = "agent7"
			if _, err := w.Record(ctx, f); err != nil {
				return err
			}
			_, err := w.Evaluate(ctx, f.ID)
			return err
		},
		"Evaluate/long": func(i int) error {
			f := w.correction("eve", "")
			f.Agent, f.Comment = "agent7", strings.Repeat(sentence(i)+" ", 9_000/len(sentence(i)))
			if _, err := w.Record(ctx, f); err != nil {
				return err
			}
			_, err := w.Evaluate(ctx, f.ID)
			return err
		},
		"Consolidate": func(int) error {
			_, err := consolidated.rules.Consolidate(ctx)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				require.NoError(b, call(i))
			}
		})
	}
}

// BenchmarkEvaluateAll evaluates one correction more of an agent that has 500.
func BenchmarkEvaluateAll(b *testing.B) {
	w := newWorld(b, feedback.Config{Gate: feedback.Gate{Pending: 1 << 30}})
	record := func(person string, i int) {
		f := w.correction(person, "say where the "+sentence(i))
		f.Agent = "agent7"
		_, err := w.Record(ctx, f)
		require.NoError(b, err)
	}
	evaluate := func() {
		_, err := w.EvaluateAll(ctx)
		require.NoError(b, err)
	}
	for i := range 500 {
		record(fmt.Sprint("person", i%50), i)
	}
	evaluate()
	for i := 0; b.Loop(); i++ {
		record("eve", i)
		evaluate()
	}
}
