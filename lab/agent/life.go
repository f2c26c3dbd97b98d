package agent

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/lab/agent/assistant"
	"github.com/heedhq/heed/lab/agent/world"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// A way is how a stream of events is met.
type way string

const (
	learns way = "learning"
	off    way = "no learning" // the same assistant: the model answers, and gets the notes
	oracle way = "oracle"      // the best answer to everything
)

// A stream is what comes in, and who answers where no heuristic does.
type stream struct {
	seed     uint64
	events   int
	fit      float64                                  // AnswerFit; 0: the default
	database string                                   // the file of the one that learns; "": memory
	model    func(scripted decision.LLM) decision.LLM // nil: the script itself
}

// A life is one way through one stream of events.
type life struct {
	way     way
	answers []answered
	agent   *assistant.Assistant
	close   func() error
}

// answered is an event with its answer, what that was worth in truth, and what it cost, up to the
// next event.
type answered struct {
	event loop.Event
	loop.Answer
	world.Verdict
	calls, tokens int
}

// store opens where what is learned is kept.
func (s *stream) store(ctx context.Context, how way, now func() time.Time) (st store.Store,
	end func() error) {
	if how != learns || s.database == "" {
		return kit.Must(memstore.New(memstore.Config{Now: now})), func() error { return nil }
	}
	file := kit.Must(filepath.Abs(s.database))
	handle := kit.Must(sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()))
	kept := kit.Must(sqlstore.Open(ctx, handle, sqlstore.SQLite, sqlstore.Config{Now: now}))
	if len(kit.Must(kept.Status(ctx)).Cells) > 0 {
		kit.Check(errors.New("-db names a store that has evidence: its events would come again"))
	}
	return kept, handle.Close
}

// live lets an assistant live through a stream of events, and keeps the score. The caller closes
// the life.
func live(ctx context.Context, how way, s stream) *life {
	w := world.New(s.seed, s.events)
	bill := &meter{model: w.Model()}
	if s.model != nil {
		bill.model = s.model(bill.model)
	}
	l := &life{way: how}
	kept, end := s.store(ctx, how, w.Now)
	l.close = end
	l.agent = kit.Must(assistant.New(ctx, assistant.Config{
		Model: bill, Store: kept, Lessons: lessons(), Now: w.Now, Seed: s.seed, Off: how == off,
		AnswerFit: s.fit,
	}))
	pay := func() {
		if n := len(l.answers); n > 0 {
			calls, tokens := bill.take()
			l.answers[n-1].calls += calls
			l.answers[n-1].tokens += tokens
		}
	}
	l.through(ctx, w, func(e loop.Event) {
		pay()
		l.answer(ctx, w, e)
	})
	pay()
	return l
}

// through lets everything happen that a world has. The function answers the events.
func (l *life) through(ctx context.Context, w *world.World, answer func(e loop.Event)) {
	for happening := w.Next(); happening != nil; happening = w.Next() {
		switch h := happening.(type) {
		case loop.Event:
			answer(h)
		case assistant.Morning:
			l.morning(ctx, w, h)
		default:
			l.take(ctx, h)
		}
	}
}

// lessons are what an assistant begins with.
func lessons() (l loop.Lessons) {
	l.Heuristics = world.Runbooks()
	for _, n := range world.Notes() {
		l.Notes = append(l.Notes, loop.Note{ID: n.ID, Domain: assistant.Requests, Category: n.Sort,
			Topic: n.Topic, Text: n.Text})
	}
	return l
}

func (l *life) answer(ctx context.Context, w *world.World, e loop.Event) {
	answer := loop.Answer{ID: e.ID, Text: w.Best(e)}
	if l.way != oracle {
		answer = kit.Must(l.agent.Answer(ctx, e))
	}
	verdict := w.Answered(e, answer.Text, answer.Result.Path == decision.Model)
	l.answers = append(l.answers, answered{event: e, Answer: answer, Verdict: verdict})
}

func (l *life) take(ctx context.Context, happening any) {
	if l.way != oracle {
		kit.Check(l.agent.Take(ctx, happening))
	}
}

// morning lets the leads look at what is proposed.
func (l *life) morning(ctx context.Context, w *world.World, m assistant.Morning) {
	l.take(ctx, m)
	rules := l.agent.Feedback().Rules()
	pending, _, err := rules.Proposals(ctx, feedback.ProposalQuery{Status: feedback.StatePending}, 0)
	kit.Check(err)
	for _, p := range pending {
		for _, lead := range world.Leads {
			if kit.Must(rules.Review(ctx, w.Review(lead, p))).Status != feedback.StatePending {
				break
			}
		}
	}
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

// A score sums up a part of a life.
type score struct {
	success    float64 // the share of events that were answered well
	heuristics float64 // the share that heuristics answered
	model      float64 // the share that the model answered
	calls      float64 // of the model, for an event
	tokens     float64 // in and out, for an event
}

func scoreOf(answers []answered) (s score) {
	for _, a := range answers {
		if a.Good {
			s.success++
		}
		if a.Result.Path == decision.Heuristic {
			s.heuristics++
		}
		if a.Result.Path == decision.Model {
			s.model++
		}
		s.calls += float64(a.calls)
		s.tokens += float64(a.tokens)
	}
	for _, figure := range []*float64{&s.success, &s.heuristics, &s.model, &s.calls, &s.tokens} {
		*figure /= float64(max(len(answers), 1))
	}
	return s
}

// last returns the answers of the last quarter.
func (l *life) last() []answered { return l.answers[3*len(l.answers)/4:] }
