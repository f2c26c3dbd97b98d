package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/examples/agent/assistant"
	"github.com/heedhq/heed/examples/agent/world"
	"github.com/heedhq/heed/feedback"
)

// A way is how a stream of events is met.
type way string

const (
	learns way = "learning"
	off    way = "no learning"    // the same assistant, which learns nothing: the model answers, and is told the notes
	told   way = "trust is known" // the same heuristics, each trusted as far as it works in truth; all else is learned
	oracle way = "oracle"         // the best answer to everything
)

// A life is one way through one stream of events.
type life struct {
	Way     way
	Answers []answered
	Agent   *assistant.Assistant
	// ByHeuristic and WithNote explain the last answers of these two sorts.
	ByHeuristic, WithNote *assistant.Why

	explained int // from this answer on
}

// answered is an event with its answer, what that was worth in truth, and what it cost, up to the next event.
type answered struct {
	*assistant.Account
	world.Verdict
	Calls, Tokens int
}

// A stream is what comes in, and who answers where no heuristic does.
type stream struct {
	seed  uint64
	span  world.Span
	run   int                                      // how many spans were lived before
	home  *shelter                                 // of the one that learns; nil: it lives in memory too
	model func(scripted decision.LLM) decision.LLM // nil: the script itself
}

// stores returns where what is learned is kept.
func (s *stream) stores(ctx context.Context, how way, now func() time.Time) (assistant.Stores, error) {
	if how == learns && s.home != nil {
		return s.home.stores(ctx, now)
	}
	return assistant.InMemory(now)
}

// live lets an assistant live through a stream of events, and keeps the score.
func live(ctx context.Context, how way, s stream, progress func(done, of int)) (*life, error) {
	w := world.New(s.seed, s.span)
	bill := &meter{model: w.Model()}
	if s.model != nil {
		bill.model = s.model(bill.model)
	}
	kept, err := s.stores(ctx, how, w.Now)
	if err != nil {
		return nil, err
	}
	cfg := assistant.Config{Model: bill, Stores: kept, Now: w.Now, Seed: s.seed, Run: s.run, Off: how == off}
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
	l := &life{Way: how, Agent: agent, explained: s.span.Events * 9 / 10}
	for happening := w.Next(); happening != nil; happening = w.Next() {
		switch h := happening.(type) {
		case assistant.Event:
			progress(len(l.Answers), s.span.Events)
			account, err := l.answer(ctx, w, h)
			if err != nil {
				return nil, err
			}
			verdict := w.Answered(h, account.Result.Text, account.Result.Path == decision.Model, account.Briefing.Rules)
			l.Answers = append(l.Answers, answered{Account: account, Verdict: verdict})
		case assistant.Morning:
			err = l.morning(ctx, w, h)
		default:
			err = l.hear(ctx, h)
		}
		if err != nil {
			return nil, err
		}
		if n := len(l.Answers); n > 0 {
			calls, tokens := bill.take()
			l.Answers[n-1].Calls += calls
			l.Answers[n-1].Tokens += tokens
		}
	}
	progress(s.span.Events, s.span.Events)
	if how == learns && s.home != nil {
		err = s.home.end(ctx, s.run, w.Now())
	}
	return l, err
}

func (l *life) answer(ctx context.Context, w *world.World, e assistant.Event) (*assistant.Account, error) {
	if l.Way == oracle {
		return &assistant.Account{Event: e, Result: decision.Result{Text: w.Best(e)}}, nil
	}
	account, err := l.Agent.Answer(ctx, e)
	if err != nil || l.Way != learns || len(l.Answers) < l.explained {
		return account, err
	}
	last := &l.ByHeuristic
	switch {
	case account.Briefing.Used != nil:
		last = &l.WithNote
	case account.Result.Path != decision.Heuristic:
		return account, nil
	}
	why, err := l.Agent.Explain(ctx, account)
	if err == nil {
		*last = why
	}
	return account, err
}

func (l *life) hear(ctx context.Context, happening any) error {
	if l.Way == oracle {
		return nil
	}
	return l.Agent.Hear(ctx, happening)
}

// morning lets the leads look at what is proposed.
func (l *life) morning(ctx context.Context, w *world.World, m assistant.Morning) error {
	if err := l.hear(ctx, m); err != nil {
		return err
	}
	pending, err := l.Agent.Proposals(ctx)
	if err != nil {
		return err
	}
	for _, p := range pending {
		for _, lead := range world.Leads {
			decided, err := l.Agent.Decide(ctx, w.Review(lead, p))
			if err != nil {
				return err
			}
			if decided.Status != feedback.StatePending {
				break
			}
		}
	}
	return nil
}

// A meter counts what a model costs. It is safe for concurrent use.
type meter struct {
	model         decision.LLM
	calls, tokens atomic.Int64
}

// Generate implements [decision.LLM].
func (m *meter) Generate(ctx context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	reply, err := m.model.Generate(ctx, r)
	m.calls.Add(1)
	m.tokens.Add(int64(reply.InputTokens + reply.OutputTokens))
	return reply, err
}

// take returns what was counted since it was last asked.
func (m *meter) take() (calls, tokens int) { return int(m.calls.Swap(0)), int(m.tokens.Swap(0)) }
