// Package assistant is an operations assistant that learns, by package loop. It defines which ways
// there are of using a note, and its persona. Of the world it sees only what a host sees: texts,
// clicks and reviews.
package assistant

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/injection"
)

// Name is the assistant's name among the agents that reviewers look at. The domains are the
// events'.
const (
	Name     = "operations"
	Alerts   = "alerts"   // the runbook is about them
	Requests = "requests" // and the notes about these: what is asked for is not answered off a shelf
	Changes  = "changes"  // tasks that need a plan. Their results are known later
)

// An input is a [loop.Event] that wants an answer, a [learning.Message] of somebody who had one, or
// one of these.
type (
	// A Thumb is a click next to an answer.
	Thumb struct {
		Event string
		loop.Reaction
	}
	// Done reports that a task came to an end.
	Done struct {
		Event string
		loop.Outcome
	}
	// A Review is a reviewer's verdict on an answer.
	Review struct {
		Event string
		loop.Correction
	}
	// Closed is the end of a conversation.
	Closed struct{ At time.Time }
	// Morning is the hour of daily work.
	Morning struct{ At time.Time }
)

// Config configures an [Assistant].
type Config struct {
	Model   decision.LLM
	Store   store.Store
	Lessons loop.Lessons // the runbook and the notes
	Now     func() time.Time
	Seed    uint64
	Off     bool // it does not learn: it answers with what it began with
	Control float64
	// AnswerFit is in [loop.Tuning].
	AnswerFit float64
	// Instruments report outcomes.
	Instruments []string
}

// An Assistant answers events. It is safe for concurrent use.
type Assistant struct {
	*loop.Agent
	model   decision.LLM
	mu      sync.Mutex
	earlier map[string]string // the advice that subagents gave in the background, by note
}

const systemPrompt = "You assist the people who run a data centre. Answer each event in a few " +
	"sentences: what to do, and what " +
	"to look at afterwards. A task is answered with a plan that says how the task is split."

// New returns an assistant, which continues from what its store holds.
func New(ctx context.Context, cfg Config) (a *Assistant, err error) {
	a = &Assistant{model: cfg.Model, earlier: make(map[string]string)}
	a.Agent, err = loop.New(ctx, loop.Config{
		Store: cfg.Store, Name: Name, Model: cfg.Model, System: systemPrompt,
		Lessons: cfg.Lessons,
		// the world is simulated, and a busy machine must not cost a plan its rules
		Budget:      loop.Budget{Notes: 1, Time: time.Minute},
		Control:     cfg.Control,
		Instruments: cfg.Instruments,
		Testing:     loop.Testing{Now: cfg.Now, Seed: rand.NewPCG(cfg.Seed, 0)},
		Arms: []loop.Arm{
			{ID: string(injection.MainContext), ForNotes: true},
			{ID: string(injection.Subagent), ForNotes: true, Brief: a.subagent},
			{ID: string(injection.BackgroundSubagent), ForNotes: true, Brief: a.background},
			{ID: string(injection.Deferred), ForNotes: true,
				Brief: func(context.Context, loop.Event, []loop.Note) (string, error) { return "", nil }},
		},
		Tuning: loop.Tuning{
			Extract: []string{Alerts}, AnswerFit: cfg.AnswerFit,
			Strategy: strategy.Config{Default: injection.MainContext, Disabled: cfg.Off},
			Feedback: feedback.Config{NewID: numbered()},
		},
	})
	if err == nil {
		err = a.Freeze(ctx, cfg.Off)
	}
	return a, err
}

// Ask asks the model by a plan that is not ready, and does not record the answer.
func (a *Assistant) Ask(ctx context.Context, p loop.Plan) (string, error) {
	reply, err := a.model.Generate(ctx, decision.LLMRequest{
		System: systemPrompt + "\n\n" + p.System, Prompt: p.Prompt,
	})
	return reply.Text, err
}

// numbered makes ids in order, by which rules of one moment are ordered.
func numbered() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("rule-%03d", n.Add(1)) }
}

// The headings of notes in a prompt, and the instructions of a subagent.
const (
	NotesHeading   = "## Notes"
	AdviceHeading  = "## Advice of a subagent"
	EarlierHeading = "## Advice from the last time"
	SubagentPrompt = "You are a subagent. Say in a sentence or two what the note means for the event."
	NoteMark       = "Note: "
)

func (a *Assistant) subagent(ctx context.Context, e loop.Event, notes []loop.Note) (string, error) {
	reply, err := a.model.Generate(ctx, decision.LLMRequest{
		System: SubagentPrompt, MaxTokens: 256, Prompt: "Event: " + prompt.Line(e.Text,
			0) + "\n\n" + NoteMark + prompt.Line(notes[0].Text, 0),
	})
	return AdviceHeading + "\n\n- " + prompt.Line(reply.Text, 0), err
}

// background has a subagent read the note for the next time.
func (a *Assistant) background(ctx context.Context, e loop.Event, notes []loop.Note) (text string,
	err error) {
	advice, err := a.subagent(ctx, e, notes)
	a.mu.Lock()
	defer a.mu.Unlock()
	text = a.earlier[notes[0].ID]
	a.earlier[notes[0].ID] = strings.Replace(advice, AdviceHeading, EarlierHeading, 1)
	return text, err
}

// Take takes in whatever is no event to be answered.
func (a *Assistant) Take(ctx context.Context, happening any) (err error) {
	switch h := happening.(type) {
	case learning.Message:
		_, err = a.Hear(ctx, h)
	case Thumb:
		err = a.React(ctx, h.Event, h.Reaction)
	case Done:
		err = a.Outcome(ctx, h.Event, h.Outcome)
	case Review:
		_, err = a.Correct(ctx, h.Event, h.Correction)
	case Closed:
		err = a.Sweep(ctx, h.At)
	case Morning:
		if err = a.Sweep(ctx, h.At); err == nil {
			_, err = a.Feedback().Rules().Consolidate(ctx)
		}
	default:
		err = fmt.Errorf("the assistant does not know what a %T is", happening)
	}
	return err
}
