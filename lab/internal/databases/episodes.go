package databases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// errPartly is the answer of a call that says what it could not do, and does the rest.
var errPartly = errors.New("partly done")

type call func(context.Context, store.Store) error

// An episode is a call in the life of a store. before makes ready for it. Both are deterministic: a fixed clock, seeds and ids.
type episode struct {
	name         string
	before, call call
	// steps tells that the call makes several commits, such as a sweep that takes one thing after the other. It may then
	// stop between two of them; called again, it comes to the same end.
	steps bool
}

var (
	fixedNow = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	noteKind = store.Kind{Name: "note", Limits: store.Limits{For: time.Hour}, Caused: []string{"Of"}, Decided: []string{"By"}}
)

func serviceEpisodes() []episode {
	return slices.Concat(strategyEpisodes(), learningEpisodes(), patternEpisodes(), feedbackEpisodes(), loopEpisodes())
}

func calls(all ...call) call {
	return func(ctx context.Context, st store.Store) error {
		for _, do := range all {
			if err := do(ctx, st); err != nil {
				return err
			}
		}
		return nil
	}
}

func commits(batches ...store.Batch) call {
	return func(ctx context.Context, st store.Store) error {
		_, err := st.Commit(ctx, batches...)
		return err
	}
}

func declares(ctx context.Context, st store.Store) error { return st.Declare(ctx, noteKind) }

func note(id string, revision uint64, keys ...string) store.Record {
	return store.Record{
		Ref: store.Ref{Kind: "note", ID: id}, Revision: revision, At: fixedNow, Keys: append(keys, "k", store.PersonKey("ann")),
		Body: store.Of(map[string]string{"Of": "ann", "By": "ann", "Text": strings.Repeat("x", 300)}),
	}
}

func seen(ids ...string) (b store.Batch) {
	for _, id := range ids {
		o := observed(id, fixedNow)
		o.Source = "ann"
		b.Observations = append(b.Observations, o)
	}
	return b
}

// revised commits what a function makes of the revision of a note.
func revised(id string, do func(revision uint64) store.Batch) call {
	return func(ctx context.Context, st store.Store) error {
		var s store.Snapshot
		if err := st.Read(ctx, &s, nil, []store.Ref{{Kind: "note", ID: id}}); err != nil {
			return err
		}
		return calls(declares, commits(do(s.Records[0].Revision)))(ctx, st)
	}
}

func storeEpisodes() []episode {
	filled := calls(declares, commits(seen("1"), seen("2"), store.Batch{Records: []store.Record{note("a", 0), note("b", 0, "other")}}))
	var many []string
	for i := range 10 {
		many = append(many, fmt.Sprint("more", i))
	}
	dumped, empty := dumpOf(filled)
	one := func(b store.Batch) call { return calls(declares, commits(b)) }
	return []episode{
		{name: "Store.Declare", call: declares},
		{name: "Store.Commit", before: filled, call: revised("a", func(revision uint64) store.Batch {
			return store.Batch{
				ID: "batch", Observations: seen("3").Observations,
				PartsOf: store.CellsOf(seen("3").Observations...),
				Records: []store.Record{note("a", revision, "new"), note("c", store.Once), note("b", store.Once)},
			}
		})},
		{name: "Store.Commit of two batches", before: filled, call: calls(declares, commits(
			store.Batch{ID: "x", Observations: seen("3").Observations, Records: []store.Record{note("c", store.Once)}},
			store.Batch{ID: "y", Observations: seen("4").Observations, Records: []store.Record{note("d", store.Once)}}))},
		{name: "Store.Commit of a batch that is known in part", before: calls(filled, commits(store.Batch{ID: "x"})), call: commits(
			store.Batch{ID: "x", Observations: seen("3").Observations}, seen("4"))},
		{name: "Store.Commit, retract", before: filled, call: one(store.Batch{Retract: []string{"1"}})},
		{name: "Store.Commit, withdraw", before: filled, call: one(store.Batch{Withdraw: []string{"1", "unknown"}})},
		{name: "Store.Commit, reset", before: filled, call: one(store.Batch{Reset: []store.Selection{{Kind: cell.Kind, Scope: cell.Scope}}})},
		{name: "Store.Commit, rebuild", before: filled, call: one(store.Batch{
			Rebuild: []evidence.Cell{cell}, Policies: map[string]evidence.Policy{cell.Kind: {ByOrigin: true}},
		})},
		{name: "Store.Commit, restart", before: filled, call: one(store.Batch{Restart: []store.Restart{{Cell: cell, At: fixedNow.Add(-time.Hour)}}})},
		{name: "Store.Commit, expunge", before: filled, call: one(store.Batch{Expunge: []string{"ann"}})},
		{name: "Store.Commit, forget", before: filled, call: one(store.Batch{Forget: []string{"ann"}})},
		{name: "Store.Sweep", before: calls(filled, commits(seen(many...))), steps: true, call: func(ctx context.Context, st store.Store) error {
			return st.Sweep(ctx, time.Time{})
		}},
		{name: "Store.Load", call: func(ctx context.Context, st store.Store) error {
			if empty != nil {
				return empty
			}
			return st.(*sqlstore.Store).Load(ctx, bytes.NewReader(dumped))
		}},
	}
}

// dumpOf returns the file of a store in which something was done.
func dumpOf(do call) ([]byte, error) {
	ctx := context.Background()
	d, err := newDisk(ctx, 512)
	if err != nil {
		return nil, err
	}
	st, _, done, err := d.store(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var out bytes.Buffer
	if err := do(ctx, st); err != nil {
		return nil, err
	}
	err = st.Dump(ctx, &out)
	return out.Bytes(), err
}

func strategyEpisodes() []episode {
	over := func(first byte, do func(context.Context, *strategy.Learner) error) call {
		return func(ctx context.Context, st store.Store) error {
			ids := first
			l, err := strategy.New(ctx, strategy.Config{
				Store: st, Seed: rand.NewPCG(1, 2), Now: func() time.Time { return fixedNow }, Topic: "heed.strategy", BySource: true,
				NewID:   func() strategy.ChoiceID { ids++; return strategy.ChoiceID{15: ids} },
				Arms:    []strategy.Arm{{ID: "short", Parameters: []strategy.Parameter{{Name: "n", Values: []string{"1", "2"}}}}, {ID: "long"}},
				Silence: strategy.Silence{After: time.Hour, Confidence: 0.5},
			})
			if err != nil {
				return err
			}
			return do(ctx, l)
		}
	}
	opened := over(0, func(context.Context, *strategy.Learner) error { return nil })
	query := strategy.Query{Session: "ticket 7", Item: "billing", Arms: []strategy.ArmID{"short"}}
	chosen := over(0, func(ctx context.Context, l *strategy.Learner) error { _, err := l.Select(ctx, query); return err })
	credited := func(id string, value float64) func(context.Context, *strategy.Learner, strategy.Choice) error {
		return func(ctx context.Context, l *strategy.Learner, c strategy.Choice) error {
			_, err := l.Observe(ctx, strategy.Outcome{Choice: c, ID: id, Value: value, Confidence: 1, Source: "ann"})
			return err
		}
	}
	later := func(do func(context.Context, *strategy.Learner, strategy.Choice) error) call {
		return over(100, func(ctx context.Context, l *strategy.Learner) error {
			c, err := l.Find(ctx, "ticket 7", "billing", fixedNow)
			if err != nil {
				return err
			}
			return do(ctx, l, c.Choice)
		})
	}
	resolved := calls(chosen, later(credited("resolved", 1)))
	return []episode{
		{name: "Learner.Select", before: opened, call: chosen},
		{name: "Learner.Record", before: opened, call: over(0, func(ctx context.Context, l *strategy.Learner) error {
			_, err := l.Record(ctx, query, "short", 0.5)
			return err
		})},
		{name: "Learner.Observe", before: chosen, call: later(credited("resolved", 1))},
		{name: "Learner.Retract", before: resolved, call: later(func(ctx context.Context, l *strategy.Learner, c strategy.Choice) error {
			return l.Retract(ctx, c, []string{"resolved"}, "bob", "it was another ticket's")
		})},
		{name: "Learner.Revise", before: resolved, call: later(func(ctx context.Context, l *strategy.Learner, c strategy.Choice) error {
			_, err := l.Revise(ctx, []string{"resolved"}, []strategy.Outcome{{Choice: c, ID: "open again", Value: -1, Confidence: 1, Source: "bob"}}, "bob")
			return err
		})},
		{name: "Learner.EndSession", before: resolved, call: over(100, func(ctx context.Context, l *strategy.Learner) error {
			return l.EndSession(ctx, "ticket 7")
		})},
	}
}

func learningEpisodes() []episode {
	over := func(do func(context.Context, *learning.Module) error) call {
		return func(ctx context.Context, st store.Store) error {
			m, err := learning.New(ctx, learning.Config{Store: st, Now: func() time.Time { return fixedNow }})
			if err != nil {
				return err
			}
			return do(ctx, m)
		}
	}
	opened := over(func(context.Context, *learning.Module) error { return nil })
	put := over(func(ctx context.Context, m *learning.Module) error {
		_, err := m.Put(ctx, learning.Heuristic{ID: "h", Condition: "the disk is full", Action: "Rotate the logs.", Initial: 0.5, CreatedAt: fixedNow})
		return err
	})
	fire := over(func(ctx context.Context, m *learning.Module) error {
		return m.Fire(ctx, learning.Fire{HeuristicID: "h", EventID: "e", Session: "s", Person: "ann", At: fixedNow})
	})
	return []episode{
		{name: "Module.Put", before: opened, call: put},
		{name: "Module.Fire", before: put, call: fire},
		{name: "Module.Judge", before: calls(put, fire), call: over(func(ctx context.Context, m *learning.Module) error {
			_, err := m.Judge(ctx, learning.Judgement{
				EventID: "e", HeuristicID: "h", Person: "ann", Value: -1, At: fixedNow,
			})
			return err
		})},
		{name: "Module.Undo", before: calls(put, fire), call: over(func(ctx context.Context, m *learning.Module) error {
			_, err := m.Undo(ctx, learning.Undo{EventID: "e", Person: "ann", At: fixedNow})
			return err
		})},
		{name: "Module.Delete", before: calls(put, fire), call: over(func(ctx context.Context, m *learning.Module) error {
			return m.Delete(ctx, "h")
		})},
	}
}

func patternEpisodes() []episode {
	over := func(prefix string, do func(context.Context, *patterns.Recorder) error) call {
		return func(ctx context.Context, st store.Store) error {
			n := 0
			r, err := patterns.New(ctx, patterns.Config{
				Store: st, Now: func() time.Time { return fixedNow }, NewID: func() string { n++; return fmt.Sprint(prefix, n) },
			})
			if err != nil {
				return err
			}
			return do(ctx, r)
		}
	}
	record := func(id string) func(context.Context, *patterns.Recorder) error {
		return func(ctx context.Context, r *patterns.Recorder) error {
			_, err := r.Record(ctx, patterns.Outcome{
				ID: id, Task: "t", Description: "write the page", Strategy: "plan first", Duration: time.Minute, Success: true, Source: "bob", At: fixedNow,
			})
			return err
		}
	}
	return []episode{
		{name: "Recorder.Record", before: over("a", record("1")), call: over("b", record("2"))},
		{name: "Recorder.Rate", before: over("a", record("1")), call: over("b", func(ctx context.Context, r *patterns.Recorder) error {
			_, err := r.Rate(ctx, patterns.Rating{ID: "f", Pattern: "plan first", Class: patterns.Helpful, Strength: 0.3, Source: "bob"})
			return err
		})},
		{name: "Recorder.Reset", before: over("a", record("1")), call: over("b", func(ctx context.Context, r *patterns.Recorder) error {
			_, err := r.Reset(ctx, patterns.Reset{Pattern: "plan first", By: patterns.By{Actor: "ann", Reason: "new tools"}})
			return err
		})},
	}
}

func loopEpisodes() []episode {
	says := func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: "Look at the logs."}, nil
	}
	over := func(first byte, do func(context.Context, *loop.Agent) error) call {
		return func(ctx context.Context, st store.Store) error {
			ids := first
			a, err := loop.New(ctx, loop.Config{
				Store: st, Model: decision.LLMFunc(says), Arms: []loop.Arm{{ID: "only"}}, Seed: rand.NewPCG(1, 2), Now: func() time.Time { return fixedNow },
				NewID:    func() string { ids++; return fmt.Sprint("id", ids) },
				Strategy: strategy.Config{NewID: func() strategy.ChoiceID { ids++; return strategy.ChoiceID{15: ids} }},
			})
			if err != nil {
				return err
			}
			return do(ctx, a)
		}
	}
	answer := over(0, func(ctx context.Context, a *loop.Agent) error {
		said, err := a.Answer(ctx, loop.Event{ID: "e", Text: "Why?", Session: "s", Person: "ann", Task: "t", At: fixedNow})
		if err == nil && (len(said.Plan.LeftOut) > 0 || said.Plan.Choice.Fallback()) {
			return errPartly
		}
		return err
	})
	opened := over(0, func(context.Context, *loop.Agent) error { return nil })
	return []episode{
		{name: "Agent.Answer", before: opened, call: answer, steps: true},
		{name: "Agent.React", before: answer, steps: true, call: over(50, func(ctx context.Context, a *loop.Agent) error {
			return a.React(ctx, "e", loop.Reaction{Person: "ann", Value: 1, At: fixedNow})
		})},
		{name: "Agent.Undo", before: answer, steps: true, call: over(50, func(ctx context.Context, a *loop.Agent) error { return a.Undo(ctx, "e", "ann") })},
		{name: "Agent.Outcome", before: answer, steps: true, call: over(50, func(ctx context.Context, a *loop.Agent) error {
			worked := true
			return a.Outcome(ctx, "e", loop.Outcome{Success: &worked, Source: "ann", At: fixedNow})
		})},
		{name: "Agent.Correct", before: answer, steps: true, call: over(50, func(ctx context.Context, a *loop.Agent) error {
			_, err := a.Correct(ctx, "e", loop.Correction{Reviewer: "ann", Text: "too long", At: fixedNow})
			return err
		})},
	}
}
