package agent

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/lab/agent/assistant"
	"github.com/heedhq/heed/lab/agent/world"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
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
	ByHeuristic, WithNote *why

	explained int // from this answer on
}

// A why is an answer with the evidence behind it, as it was when the answer was given, and what became of it.
type why struct {
	Plan    loop.Plan
	Account loop.Account
}

// answered is an event with its answer, what that was worth in truth, and what it cost, up to the next event.
type answered struct {
	Event loop.Event
	loop.Answer
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

// store returns where what is learned is kept.
func (s *stream) store(ctx context.Context, how way, now func() time.Time) (store.Store, error) {
	if how == learns && s.home != nil {
		return sqlstore.Open(ctx, s.home.handle, s.home.dialect, sqlstore.Config{Now: now})
	}
	return memstore.New(memstore.Config{Now: now})
}

// live lets an assistant live through a stream of events, and keeps the score.
func live(ctx context.Context, how way, s stream, progress func(done, of int)) (*life, error) {
	w := world.New(s.seed, s.span)
	bill := &meter{model: w.Model()}
	if s.model != nil {
		bill.model = s.model(bill.model)
	}
	kept, err := s.store(ctx, how, w.Now)
	if err != nil {
		return nil, err
	}
	agent, err := assistant.New(ctx, assistant.Config{
		Model: bill, Store: kept, Lessons: lessons(), Now: w.Now, Seed: s.seed, Run: s.run, Off: how == off,
	})
	if err != nil {
		return nil, err
	}
	l := &life{Way: how, Agent: agent, explained: s.span.Events * 9 / 10}
	for happening := w.Next(); happening != nil; happening = w.Next() {
		switch h := happening.(type) {
		case loop.Event:
			progress(len(l.Answers), s.span.Events)
			var answer loop.Answer
			if answer, err = l.answer(ctx, w, h); err == nil {
				verdict := w.Answered(h, answer.Text, answer.Result.Path == decision.Model)
				l.Answers = append(l.Answers, answered{Event: h, Answer: answer, Verdict: verdict})
			}
		case assistant.Morning:
			err = l.morning(ctx, w, h)
		default:
			err = l.take(ctx, h)
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
	for _, w := range []*why{l.ByHeuristic, l.WithNote} {
		if w != nil && err == nil {
			err = l.outcome(ctx, w)
		}
	}
	if err != nil {
		return nil, err
	}
	if how == learns && s.home != nil {
		err = s.home.end(ctx, s.run, w.Now())
	}
	return l, err
}

// lessons are what an assistant begins with.
func lessons() (l loop.Lessons) {
	for _, r := range world.Runbooks() {
		l.Heuristics = append(l.Heuristics, learning.Heuristic{ID: r.ID, Domain: assistant.Alerts, Condition: r.Condition, Action: r.Action})
	}
	for _, n := range world.Notes() {
		l.Notes = append(l.Notes, loop.Note{ID: n.ID, Domain: assistant.Requests, Category: n.Sort, Topic: n.Topic, Text: n.Text})
	}
	return l
}

func (l *life) answer(ctx context.Context, w *world.World, e loop.Event) (loop.Answer, error) {
	if l.Way == oracle {
		return loop.Answer{ID: e.ID, Text: w.Best(e)}, nil
	}
	if l.Way == told {
		if err := l.tell(ctx, w, e); err != nil {
			return loop.Answer{}, err
		}
	}
	answer, err := l.Agent.Answer(ctx, e)
	if err != nil || l.Way != learns || len(l.Answers) < l.explained {
		return answer, err
	}
	last := &l.ByHeuristic
	switch {
	case answer.Plan.Choice != nil:
		last = &l.WithNote
	case answer.Result.Path != decision.Heuristic:
		return answer, nil
	}
	account, err := l.Agent.Explain(ctx, answer.ID)
	*last = &why{answer.Plan, account}
	return answer, err
}

// outcome fills in what became of an answer in the meantime.
func (l *life) outcome(ctx context.Context, w *why) error {
	now, err := l.Agent.Explain(ctx, w.Account.ID)
	w.Account.Worth, w.Account.Channel, w.Account.Known = now.Worth, now.Channel, now.Known
	return err
}

// tell pins the confidence of each heuristic where it works in truth.
func (l *life) tell(ctx context.Context, w *world.World, e loop.Event) error {
	module := l.Agent.Learning()
	for h, err := range module.Heuristics(ctx) {
		if err != nil {
			return err
		}
		works := w.Works(e, h.Action)
		if err := module.Pin(ctx, learning.Pin{
			HeuristicID: h.ID, Actor: "oracle", Constraints: learning.Constraints{Range: learning.Range{Floor: works, Ceiling: works}},
		}); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) take(ctx context.Context, happening any) error {
	if l.Way == oracle {
		return nil
	}
	return l.Agent.Take(ctx, happening)
}

// morning lets the leads look at what is proposed.
func (l *life) morning(ctx context.Context, w *world.World, m assistant.Morning) error {
	if err := l.take(ctx, m); err != nil {
		return err
	}
	rules := l.Agent.Feedback().Rules()
	pending, _, err := rules.Proposals(ctx, feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	if err != nil {
		return err
	}
	for _, p := range pending {
		for _, lead := range world.Leads {
			decided, err := rules.Review(ctx, w.Review(lead, p))
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
