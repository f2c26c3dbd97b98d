package main

import (
	"context"
	"slices"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/examples/agent/assistant"
	"github.com/heedhq/heed/examples/agent/world"
	"github.com/heedhq/heed/feedback"
)

// A way is how a stream of events is met.
type way string

const (
	learning way = "learning"
	off      way = "no learning"    // the same assistant, which learns nothing
	told     way = "trust is known" // the same heuristics, each trusted as far as it works in truth; all else is learned
	oracle   way = "oracle"         // the best answer to everything
)

// A life is one way through one stream of events.
type life struct {
	Way     way
	Answers []answered

	agent *assistant.Assistant
}

// answered is an event with its answer, and what it was worth in truth.
type answered struct {
	*assistant.Account
	world.Verdict
}

// live lets an assistant live through a stream of events, and keeps the score.
func live(ctx context.Context, how way, seed uint64, events int, model decision.LLM, progress func(done, of int)) (*life, error) {
	w := world.New(seed, events)
	if model == nil {
		model = w.Model()
	}
	cfg := assistant.Config{Model: model, Now: w.Now, Seed: seed, Off: how == off}
	for _, r := range world.Runbooks() {
		cfg.Runbooks = append(cfg.Runbooks, assistant.Heuristic(r))
	}
	for _, n := range world.Notes() {
		cfg.Notes = append(cfg.Notes, assistant.Note{ID: n.ID, Category: n.Sort, Topic: n.Topic, Text: n.Text})
	}
	if how == told {
		cfg.Trust = func(e assistant.Event, h assistant.Heuristic) float64 { return w.Works(e, h.Action) }
	}
	agent, err := assistant.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	l := &life{Way: how, agent: agent}
	for {
		switch happening := w.Next().(type) {
		case nil:
			return l, nil
		case assistant.Event:
			account, err := l.answer(ctx, w, happening)
			if err != nil {
				return nil, err
			}
			verdict := w.Answered(happening, account.Result.Text, account.Result.Path == decision.Model, account.Briefing.Rules)
			l.Answers = append(l.Answers, answered{account, verdict})
			progress(len(l.Answers), events)
		case assistant.Morning:
			if err := l.morning(ctx, w, happening); err != nil {
				return nil, err
			}
		default:
			if how == oracle {
				continue
			}
			if err := agent.Hear(ctx, happening); err != nil {
				return nil, err
			}
		}
	}
}

func (l *life) answer(ctx context.Context, w *world.World, e assistant.Event) (*assistant.Account, error) {
	if l.Way == oracle {
		return &assistant.Account{Event: e, Result: decision.Result{Text: w.Best(e)}}, nil
	}
	return l.agent.Answer(ctx, e)
}

// morning lets the leads look at what is proposed.
func (l *life) morning(ctx context.Context, w *world.World, m assistant.Morning) error {
	if l.Way == oracle {
		return nil
	}
	if err := l.agent.Hear(ctx, m); err != nil {
		return err
	}
	pending, err := l.agent.Proposals(ctx)
	if err != nil {
		return err
	}
	for _, p := range pending {
		for _, lead := range world.Leads {
			decided, err := l.agent.Decide(ctx, w.Review(lead, p))
			if err != nil {
				return err
			}
			if decided.Status != feedback.StatusPending {
				break
			}
		}
	}
	return nil
}

// A score sums up a part of a life.
type score struct {
	Events     int     `json:"events"`
	Success    float64 `json:"success"`    // the share of events that were answered well
	Heuristics float64 `json:"heuristics"` // the share that heuristics answered
	Calls      float64 `json:"calls"`      // of the model, for an event
	Tokens     float64 `json:"tokens"`     // in and out, for an event
}

func scoreOf(answers []answered) score {
	s := score{Events: len(answers)}
	for _, a := range answers {
		if a.Good {
			s.Success++
		}
		if a.Result.Path == decision.Heuristic {
			s.Heuristics++
		}
		s.Calls += float64(a.Calls)
		s.Tokens += float64(a.Tokens)
	}
	n := float64(max(s.Events, 1))
	s.Success, s.Heuristics, s.Calls, s.Tokens = s.Success/n, s.Heuristics/n, s.Calls/n, s.Tokens/n
	return s
}

// part returns one of so many equal parts of a life.
func (l *life) part(i, of int) []answered {
	n := len(l.Answers)
	return l.Answers[i*n/of : (i+1)*n/of]
}

// mistakes returns how often a mistake was made where it can be made by the model, before and after a moment.
func (l *life) mistakes(m *world.Mistake, since time.Time) (before, after rate) {
	for _, a := range l.Answers {
		if !slices.Contains(a.Kind.Mistakes, m) {
			continue
		}
		r := &before
		if !a.Event.At.Before(since) {
			r = &after
		}
		r.Of++
		if slices.Contains(a.Verdict.Mistakes, m) {
			r.Hits++
		}
	}
	return before, after
}

// A rate is how many of a number.
type rate struct {
	Hits int `json:"hits"`
	Of   int `json:"of"`
}

func (r rate) share() float64 { return float64(r.Hits) / float64(max(r.Of, 1)) }
