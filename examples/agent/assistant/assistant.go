// Package assistant is an operations assistant that learns: it shows how the packages of heed are wired into one loop.
//
//	what comes in          what it does                                             which package learns from it
//	an [Event]             answers with a runbook entry, else with the model        decision, by what learning trusts
//	a [Message], a [Thumb] hears praise, complaint, undo, and silence               learning, decision (new entries from praise)
//	a [Closed] channel     says what the notes in the prompt were worth             strategy, through its Consumer
//	a [Done] task          says how the way went in which a plan had cut it         patterns
//	a review               becomes, with others, a rule that two people approve     feedback
//
// It knows of the world what a host knows, and nothing else: texts, clicks and reviews.
package assistant

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/strategy/injection"
)

// Name is the assistant's name among the agents that reviewers look at.
const Name = "operations"

// Config configures an [Assistant]. Model, Stores and Now must be set.
type Config struct {
	Model    decision.LLM
	Stores   Stores
	Runbooks []Heuristic
	Notes    []Note
	Now      func() time.Time
	Seed     uint64
	// Run is how many assistants have used the stores before. The ids and draws of each differ.
	Run int
	// Off has it learn nothing: it answers with what it began with.
	Off bool
	// Trust, where it is set, says how far a heuristic is trusted, whatever was learned of it.
	Trust func(e Event, h Heuristic) float64
}

// An Assistant answers events. Make one with [New]. It must not be used concurrently: its parts may, but it keeps what is
// open in a map of its own.
type Assistant struct {
	Learning *learning.Module
	Decision *decision.Decider
	Strategy *strategy.Learner
	Patterns *patterns.Recorder
	Feedback *feedback.Service

	cfg       Config
	shelf     *shelf
	notes     *notebook
	reactions *decision.Reactions
	extractor *decision.Extractor
	outcomes  *attribution.Consumer
	open      map[string]*Account // conversations and tasks that have not come to an end, by event
}

// New returns an assistant, which goes on from what its stores hold.
func New(ctx context.Context, cfg Config) (*Assistant, error) {
	a := &Assistant{cfg: cfg, open: make(map[string]*Account)}
	kept := cfg.Stores
	var err error
	a.Learning, err = newLearning(ctx, kept.Store, cfg.Now)
	if err != nil {
		return nil, err
	}
	if a.shelf, err = newShelf(ctx, a.Learning, kept.Runbook, cfg.Runbooks); err != nil {
		return nil, err
	}
	a.Decision, err = decision.New(ctx, decision.Config{
		LLM: cfg.Model, Store: kept.Store, Prompts: decision.Prompts{System: systemPrompt},
		Similarity: heed.Trigrams{}, SimilarityThreshold: agreement, Withhold: new(float64), Prediction: decision.SecondCall,
		Now: cfg.Now, Seed: cfg.dice(1), NewID: cfg.numbered("answer"),
	})
	if err != nil {
		return nil, err
	}
	a.reactions, err = decision.NewReactions(ctx, decision.ReactionsConfig{Store: kept.Store, Now: cfg.Now})
	if err != nil {
		return nil, err
	}
	a.extractor, err = decision.NewExtractor(ctx, decision.ExtractorConfig{LLM: cfg.Model, Store: kept.Store, Nearest: a.shelf.nearest})
	if err != nil {
		return nil, err
	}
	a.Strategy, err = strategy.New(ctx, strategy.Config{
		Store: kept.Store, Arms: arms(), Default: injection.MainContext, Disabled: cfg.Off,
		Now: cfg.Now, Seed: cfg.dice(2), NewID: cfg.numberedChoices(),
	})
	if err != nil {
		return nil, err
	}
	a.outcomes, err = attribution.New(attribution.Config{Learner: a.Strategy, Stream: kept.Outcomes, DeadLetters: kept.Outcomes})
	if err != nil {
		return nil, err
	}
	a.notes = newNotebook(cfg.Notes)
	a.Patterns, err = patterns.New(ctx, patterns.Config{Store: kept.Store, Now: cfg.Now, NewID: cfg.numbered("pattern")})
	if err != nil {
		return nil, err
	}
	const day = 24 * time.Hour
	a.Feedback, err = feedback.New(ctx, feedback.Config{
		Store: kept.Store, Window: 200, Now: cfg.Now, NewID: cfg.numbered("rule"),
		Measuring: feedback.Measuring{Before: 7 * day, Stabilise: day / 2, Review: 7 * day},
	})
	return a, err
}

// systemPrompt is what the model is told in every case.
const systemPrompt = "You assist the people who run a data centre. Answer each event in a few sentences: what to do, and what to " +
	"look at afterwards. A task is answered with a plan that says how the task is split."

// Hear takes in whatever is no event to be answered.
func (a *Assistant) Hear(ctx context.Context, happening any) error {
	if a.cfg.Off {
		return nil
	}
	switch h := happening.(type) {
	case Message:
		return a.message(ctx, h)
	case Thumb:
		return a.thumb(ctx, h)
	case Closed:
		return a.closed(ctx, h)
	case Done:
		return a.done(ctx, h)
	case feedback.Feedback:
		return a.reviewed(ctx, h)
	case Morning:
		return a.morning(ctx, h)
	default:
		return fmt.Errorf("the assistant does not know what a %T is", happening)
	}
}

// morning does what a host does once a day.
func (a *Assistant) morning(ctx context.Context, m Morning) error {
	err := heed.Sweep(ctx, m.At, a.Learning, a.Feedback, a.Patterns, a.Strategy, a.cfg.Stores.Store)
	_, merged := a.Feedback.Rules().Consolidate(ctx)
	return errors.Join(err, merged)
}

// dice are what an assistant draws with for a purpose: the same in every process, and others in each run.
func (c *Config) dice(purpose uint64) rand.Source {
	return rand.NewPCG(c.Seed, uint64(c.Run)<<8|purpose)
}

// numbered makes ids of which the same is true.
func (c *Config) numbered(what string) func() string {
	if c.Run > 0 {
		what = fmt.Sprintf("%s-%d", what, c.Run)
	}
	n := 0
	return func() string {
		n++
		return fmt.Sprintf("%s-%d", what, n)
	}
}

func (c *Config) numberedChoices() func() strategy.ChoiceID {
	var n uint64
	return func() (id strategy.ChoiceID) {
		n++
		binary.BigEndian.PutUint64(id[:8], uint64(c.Run))
		binary.BigEndian.PutUint64(id[8:], n)
		return id
	}
}
