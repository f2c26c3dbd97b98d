package looptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// The lessons of the suite's agent, and the questions of people. Each text of the first group
// differs from all others.
const (
	hostPrompt  = "You are the assistant of the suite's host."
	armPrompt   = "Answer in one short sentence."
	ruleText    = "Always name the ticket that the answer is about."
	noteText    = "The shop runs on the machines in room 3."
	shownAction = "Restart the web service of the shop."
	bait        = "Undo that."

	trustedText   = "The disk of db-1 is full and its logs have grown"
	trustedAction = "Rotate the logs of the server."
	shopText      = "Today the shop's web service hangs and answers nothing"
	baitText      = "What does the manual say about broken mirrors?"
	plainText     = "How do I rename a column?"

	diskFull  = "the disk of a server is full and its logs have grown"
	shopHangs = "the shop's web service hangs"

	ann, bob = "ann", "bob"

	lookUp, deploy = "look_up", "deploy"

	second = "second" // the name of an arm and of its model
)

const shownID, trustedID, noteID, baitID = "restart", "rotate", "room", "mirrors"

var (
	background = context.Background()
	beginning  = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	errTool    = errors.New("the deployment was refused")
)

// A clock is moved by hand.
type clock struct{ since atomic.Int64 }

func (c *clock) Now() time.Time { return beginning.Add(time.Duration(c.since.Load())) }

func (c *clock) advance(d time.Duration) { c.since.Add(int64(d)) }

// A fixture is an adapter under test, with what is around it.
type fixture struct {
	conformance.Checker
	subject   Subject
	streaming bool
	clock     *clock
	store     *storetest.Failing
	agent     *loop.Agent
	model     *Model
	second    *Model // which an arm may name
	driver    Driver
	turns     int
	notices   notices

	tools map[string]func(context.Context) (string, error)
	runs  atomic.Int64 // of tools
}

// newFixture makes an adapter. The mode is how it answers: as a whole if it is empty.
func newFixture(t testing.TB, s Subject, mode string) *fixture {
	f := &fixture{
		Checker: conformance.Checker{TB: t, Prefix: mode}, subject: s, streaming: mode != "",
		clock: &clock{}, model: &Model{}, second: &Model{},
	}
	f.model.will(says("Look at ", "the logs."))
	f.second.will(says("Ask ", "the operator."))
	f.tools = map[string]func(context.Context) (string, error){
		lookUp: func(context.Context) (string, error) { return "The disk is half full.", nil },
		deploy: func(context.Context) (string, error) { return "", errTool },
	}
	kept, err := memstore.New(memstore.Config{Now: f.clock.Now})
	f.Must("a store", err)
	f.store = &storetest.Failing{Store: kept}
	script := f.script()
	cfg := config(f.store, f.clock)
	if s.Configure != nil {
		s.Configure(&cfg, script)
	}
	if s.arms != nil {
		models := map[string]decision.LLM{second: asLLM(f.second)}
		maps.Copy(models, cfg.Models)
		cfg.Arms, cfg.Models = s.arms, models
	}
	observer := cfg.Observer
	cfg.Observer = func(ctx context.Context, n heed.Notice) {
		f.notices.observe(ctx, n)
		if observer != nil {
			observer(ctx, n)
		}
	}
	f.agent, err = loop.New(background, cfg)
	f.Must("loop.New", err)
	f.Must("New", host.Call("the driver", func() error {
		f.driver, err = s.New(f.agent, script)
		return err
	}))
	if f.driver.Turn == nil {
		f.Fatalf("the driver has no Turn")
	}
	if f.driver.Close == nil {
		f.driver.Close = func() {}
	}
	return f
}

// config returns the configuration of the suite's agents.
func config(st store.Store, c *clock) loop.Config {
	return loop.Config{
		Store: st, Testing: loop.Testing{Now: c.Now, Seed: rand.NewPCG(1, 2)},
		Tuning: loop.Tuning{Decision: decision.Config{Withhold: new(float64)}},
		Arms:   []loop.Arm{{ID: "short", System: armPrompt}},
		Lessons: loop.Lessons{
			Heuristics: []learning.Heuristic{
				{ID: trustedID, Condition: diskFull, Action: trustedAction, Initial: 0.8},
				{ID: shownID, Condition: shopHangs + " and answers nothing", Action: shownAction},
			},
			Notes: []loop.Note{
				{ID: noteID, Topic: shopHangs, Text: noteText},
				{ID: baitID, Topic: "what the manual says about broken mirrors", Text: bait},
			},
		},
	}
}

func (f *fixture) script() Script {
	s := Script{System: hostPrompt, Model: f.model, Models: map[string]*Model{second: f.second}}
	for _, name := range []string{lookUp, deploy} {
		run := func(ctx context.Context, _ string) (string, error) {
			f.runs.Add(1)
			return f.tools[name](ctx)
		}
		s.Tools = append(s.Tools, Tool{Name: name, Description: "Does that to a host.", Run: run})
	}
	return s
}

// A heard turn is one that ended.
type heard struct {
	Said
	turn   Turn
	pieces string // what was streamed
	err    error
	lost   string // why it has not ended as it should; "" if it has
}

// patience is how long the suite waits for what must come.
func (f *fixture) patience() time.Duration { return cmp.Or(f.subject.Patience, 10*time.Second) }

// next returns the next turn, a second after the one before.
func (f *fixture) next(session, person, text string) Turn {
	f.clock.advance(time.Second)
	f.turns++
	return Turn{ID: fmt.Sprint("turn-", f.turns), Session: session, Person: person, Text: text}
}

// turn returns the next turn of ann's.
func (f *fixture) turn(text string) Turn { return f.next("s1", ann, text) }

// start runs a turn on its own goroutine.
func (f *fixture) start(ctx context.Context, t Turn) <-chan heard {
	ended := make(chan heard, 1)
	h := heard{turn: t, lost: "ended its goroutine"}
	var mu sync.Mutex
	var pieces strings.Builder
	if stream := t.Stream; f.streaming {
		t.Stream = func(piece string) {
			mu.Lock()
			pieces.WriteString(piece)
			mu.Unlock()
			if stream != nil {
				stream(piece)
			}
		}
	}
	go func() {
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			h.pieces = pieces.String()
			ended <- h
		}()
		panicked := host.Call("the driver", func() error {
			h.Said, h.err = f.driver.Turn(ctx, t)
			h.lost = ""
			return nil
		})
		if panicked != nil {
			h.lost = fmt.Sprintf("let a panic out: %v", panicked)
		}
	}()
	return ended
}

// end waits for a turn.
func (f *fixture) end(ended <-chan heard) (h heard) {
	select {
	case h = <-ended:
	case <-time.After(f.patience()):
		h.lost = "has not ended in time"
	}
	if h.lost != "" {
		f.Fatalf("the turn %q %s", h.turn.Text, h.lost)
	}
	return h
}

// pair runs two turns at once.
func (f *fixture) pair(one, other Turn) []heard {
	first, second := f.start(background, one), f.start(background, other)
	return []heard{f.end(first), f.end(second)}
}

// run runs a turn.
func (f *fixture) run(ctx context.Context, t Turn) heard { return f.end(f.start(ctx, t)) }

// again runs a turn that must give an answer.
func (f *fixture) again(t Turn) heard {
	h := f.run(background, t)
	f.Must("the turn "+t.Text, h.err)
	return h
}

// ask runs a new turn of ann's that must give an answer.
func (f *fixture) ask(text string) heard { return f.again(f.turn(text)) }

// pass lets time pass, and sweeps.
func (f *fixture) pass(d time.Duration) {
	f.clock.advance(d)
	f.Must("Sweep", f.agent.Sweep(background, time.Time{}))
}

// praise has the person of a turn react to its answer.
func (f *fixture) praise(h heard, value float64) {
	err := f.agent.React(background, h.ID, loop.Reaction{Person: h.turn.Person, Value: value})
	f.Must(fmt.Sprintf("React to the answer %q to %q", h.ID, h.turn.Text), err)
	f.Equal("the worth of an answer after a reaction", f.account(h).Worth, value)
}

// account returns heed's account of an answer. Without an account it ends the rule.
func (f *fixture) account(h heard) loop.Account {
	account, err := f.agent.Explain(background, h.ID)
	f.Must(fmt.Sprintf("Explain the answer %q to %q", h.ID, h.turn.Text), err)
	return account
}

// traces returns what heed took for answers.
func (f *fixture) traces() (traces []decision.Trace) {
	for trace, err := range f.agent.Decision().Traces(background) {
		f.Must("Traces", err)
		traces = append(traces, trace)
	}
	return traces
}

// outcomes returns the outcomes that the arms are credited with.
func (f *fixture) outcomes() (outcomes []strategy.Result) {
	learner := f.agent.Strategy()
	for d, err := range learner.Distributions(background) {
		f.Must("Distributions", err)
		for _, s := range d.Standings {
			for r, err := range learner.History(background, strategy.ChoiceFilter{
				Evidence: true, Item: s.Item, Category: d.Category, Context: d.Context,
			}) {
				f.Must("History", err)
				outcomes = append(outcomes, *r.Result)
			}
		}
	}
	return outcomes
}

// toolErrors returns the errors of tools that heed counts.
func (f *fixture) toolErrors() []patterns.TaskError {
	report, err := f.agent.Patterns().Errors(background, patterns.HistoryQuery{})
	f.Must("Errors", err)
	return report.Errors
}

// trust returns the confidence of a heuristic.
func (f *fixture) trust(id string) float64 {
	s, err := f.agent.Learning().Standing(background, id)
	f.Must("Standing", err)
	return s.Confidence
}

// wantSaid checks what a person saw.
func (f *fixture) wantSaid(h heard, want string) {
	f.Equal("the answer to "+h.turn.Text, strings.TrimSpace(h.Text), want)
	if f.streaming {
		f.Equal("the pieces of the answer to "+h.turn.Text, strings.TrimSpace(h.pieces), want)
	}
}

// wantTrace checks that heed has the turn as it was.
func (f *fixture) wantTrace(h heard) {
	for _, trace := range f.traces() {
		if trace.EventID == h.ID {
			f.Equal("person, text and answer of a trace",
				[]string{trace.Source, trace.Text, trace.Response},
				[]string{h.turn.Person, h.turn.Text, strings.TrimSpace(h.Text)})
			return
		}
	}
	f.Errorf("heed has no answer %q", h.ID)
}

// wantAnswers checks how many answers heed has.
func (f *fixture) wantAnswers(want int) {
	f.Equal("the answers that heed has", len(f.traces()), want)
}

// wantOutcomes checks how many outcomes of answers the arms were credited with.
func (f *fixture) wantOutcomes(want int) {
	f.Equal("the outcomes that the arms were told of", len(f.outcomes()), want)
}

// wantNothingSaid checks that heed took no text for a person's judgement of an answer.
func (f *fixture) wantNothingSaid(h heard) {
	f.Check(!f.account(h).Known, "heed has a judgement of the answer to %q", h.turn.Text)
	_, total, err := f.agent.Feedback().List(background, feedback.Listing{})
	f.Must("List", err)
	f.Equal("the corrections", total, 0)
}
