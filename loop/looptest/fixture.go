package looptest

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// The lessons of the suite's agent, and the questions of people. Each text of the first group can be told from all others.
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

	ann, bob = "ann", "bob"

	lookUp, deploy = "look_up", "deploy"

	second = "second" // the name of an arm and of its model
)

const shownID, trustedID, noteID, baitID = "restart", "rotate", "room", "mirrors"

var (
	background = context.Background()
	beginning  = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	errTool    = errors.New("the deployment was refused")
	errStore   = errors.New("the store is out of order")
)

// A clock is moved by hand.
type clock struct{ since atomic.Int64 }

func (c *clock) Now() time.Time { return beginning.Add(time.Duration(c.since.Load())) }

func (c *clock) advance(d time.Duration) { c.since.Add(int64(d)) }

// A shaky store refuses commits while it fails.
type shaky struct {
	store.Store
	fails atomic.Bool
}

func (s *shaky) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	if s.fails.Load() {
		return nil, errStore
	}
	return s.Store.Commit(ctx, batches...)
}

// A fixture is an adapter under test, with what is around it.
type fixture struct {
	tb
	streaming bool
	clock     *clock
	store     *shaky
	agent     *loop.Agent
	model     *Model
	second    *Model // which an arm may name
	driver    Driver
	turns     int

	runs    atomic.Int64 // of tools
	tool    func(context.Context) (string, error)
	subject Subject
}

func newFixture(t tb, s Subject, streaming bool) *fixture {
	t.Helper()
	f := &fixture{tb: t, streaming: streaming, clock: &clock{}, model: &Model{}, second: &Model{}, subject: s}
	f.model.will(says("Look at ", "the logs."))
	f.second.will(says("Ask ", "the operator."))
	f.tool = func(context.Context) (string, error) { return "The disk is half full.", nil }
	kept, err := memstore.New(memstore.Config{Now: f.clock.Now})
	f.must("a store", err)
	f.store = &shaky{Store: kept}
	script := f.script()
	cfg := config(f.store, f.clock)
	if s.Configure != nil {
		s.Configure(&cfg, script)
	}
	f.agent, err = loop.New(background, cfg)
	f.must("loop.New", err)
	if err := guarded(func() error { f.driver, err = s.New(f.agent, script); return err }); err != nil {
		t.Fatalf("the driver can't be made: %v", err)
	}
	if f.driver.Turn == nil {
		t.Fatalf("the driver has no Turn")
	}
	return f
}

// config returns the configuration of the suite's agents.
func config(st store.Store, c *clock) loop.Config {
	return loop.Config{
		Store: st, Now: c.Now, Seed: rand.NewPCG(1, 2), Decision: decision.Config{Withhold: new(float64)}, Arms: []loop.Arm{{ID: "short", System: armPrompt}},
		Lessons: loop.Lessons{
			Heuristics: []learning.Heuristic{
				{ID: trustedID, Condition: "the disk of a server is full and its logs have grown", Action: trustedAction, Initial: 0.8},
				{ID: shownID, Condition: "the shop's web service hangs and answers nothing", Action: shownAction},
			},
			Notes: []loop.Note{
				{ID: noteID, Topic: "the shop's web service hangs", Text: noteText},
				{ID: baitID, Topic: "what the manual says about broken mirrors", Text: bait},
			},
		},
	}
}

func (f *fixture) close() {
	if f.driver.Close != nil {
		f.driver.Close()
	}
}

func (f *fixture) script() Script {
	run := func(ctx context.Context, _ string) (string, error) {
		f.runs.Add(1)
		if err := ctx.Err(); err != nil {
			return "", err
		}
		return f.tool(ctx)
	}
	return Script{System: hostPrompt, Model: f.model, Models: map[string]*Model{second: f.second}, Tools: []Tool{
		{Name: lookUp, Description: "Says how a host is.", Run: run},
		{Name: deploy, Description: "Deploys to a host.", Run: func(ctx context.Context, input string) (string, error) {
			f.runs.Add(1)
			return "", errTool
		}},
	}}
}

// Errorf says which way of running the framework failed.
func (f *fixture) Errorf(format string, args ...any) {
	f.Helper()
	f.tb.Errorf(f.mode()+format, args...)
}

// Fatalf does so, too.
func (f *fixture) Fatalf(format string, args ...any) {
	f.Helper()
	f.tb.Fatalf(f.mode()+format, args...)
}

func (f *fixture) mode() string {
	if f.streaming {
		return "streaming: "
	}
	return ""
}

// must ends the rule if a call of heed's failed, which is no fault of the adapter's.
func (f *fixture) must(doing string, err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("%s: %v", doing, err)
	}
}

// A heard turn is one that has ended.
type heard struct {
	Said
	turn   Turn
	pieces string // what was streamed
	err    error
	lost   string // why it has not ended as it should; "" if it has
}

// patience is how long the suite waits for what must come.
func (f *fixture) patience() time.Duration { return cmp.Or(f.subject.Patience, 10*time.Second) }

// next returns the next turn.
func (f *fixture) next(session, person, text string) Turn {
	f.turns++
	return Turn{ID: fmt.Sprint("turn-", f.turns), Session: session, Person: person, Text: text}
}

// start runs a turn on a goroutine of its own.
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
			h.pieces = pieces.String()
			mu.Unlock()
			ended <- h
		}()
		failed := guarded(func() error {
			said, err := f.driver.Turn(ctx, t)
			h.Said, h.err = said, err
			return nil
		})
		h.lost = ""
		if failed != nil {
			h.lost = fmt.Sprintf("let a panic out: %v", failed)
		}
	}()
	return ended
}

// end waits for a turn.
func (f *fixture) end(ended <-chan heard) heard {
	f.Helper()
	select {
	case h := <-ended:
		if h.lost != "" {
			f.Fatalf("the turn %q %s", h.turn.Text, h.lost)
		}
		return h
	case <-time.After(f.patience()):
		f.Fatalf("a turn has not ended after %v", f.patience())
	}
	return heard{}
}

// run runs a turn that may fail.
func (f *fixture) run(ctx context.Context, t Turn) heard {
	f.Helper()
	return f.end(f.start(ctx, t))
}

// again runs a turn that must give an answer.
func (f *fixture) again(t Turn) heard {
	f.Helper()
	h := f.run(background, t)
	if h.err != nil {
		f.Fatalf("the turn %q failed: %v", t.Text, h.err)
	}
	return h
}

// ask runs a new turn of ann's that must give an answer.
func (f *fixture) ask(text string) heard {
	f.Helper()
	return f.again(f.next("s1", ann, text))
}

// pass lets time pass, and sweeps.
func (f *fixture) pass(d time.Duration) {
	f.Helper()
	f.clock.advance(d)
	f.must("Sweep", f.agent.Sweep(background, time.Time{}))
}

// praise has a person react to an answer.
func (f *fixture) praise(h heard, value float64) {
	f.Helper()
	if h.ID == "" {
		f.Errorf("the answer to %q has no id", h.turn.Text)
		return
	}
	if err := f.agent.React(background, h.ID, loop.Reaction{Person: h.turn.Person, Value: value}); err != nil {
		f.Errorf("React refuses the id %q of the answer to %q: %v", h.ID, h.turn.Text, err)
	}
}

// account returns what heed knows of an answer. It ends the rule if heed knows nothing.
func (f *fixture) account(h heard) loop.Account {
	f.Helper()
	account, err := f.agent.Explain(background, h.ID)
	if err != nil {
		f.Fatalf("heed does not know the answer %q to %q: %v", h.ID, h.turn.Text, err)
	}
	return account
}

// traces returns what heed took for answers.
func (f *fixture) traces() (traces []decision.Trace) {
	f.Helper()
	for trace, err := range f.agent.Decision().Traces(background) {
		f.must("Traces", err)
		traces = append(traces, trace)
	}
	return traces
}

// wantAnswers checks how many answers heed has.
func (f *fixture) wantAnswers(want int, when string) {
	f.Helper()
	if got := len(f.traces()); got != want {
		f.Errorf("heed has %d answers and not %d %s", got, want, when)
	}
}

// results returns the outcomes that the arms are credited with.
func (f *fixture) results() (results []strategy.HistoryEntry) {
	f.Helper()
	learner := f.agent.Strategy()
	for d, err := range learner.Distributions(background) {
		f.must("Distributions", err)
		for _, s := range d.Standings {
			q := strategy.Query{Item: s.Item, Category: d.Category, Context: d.Context}
			all, err := learner.Outcomes(background, q, 0)
			f.must("Outcomes", err)
			results = append(results, all...)
		}
	}
	return results
}

// outcomes returns how many outcomes of answers the arm was told of.
func (f *fixture) outcomes() (n uint64) {
	f.Helper()
	for d, err := range f.agent.Strategy().Distributions(background) {
		f.must("Distributions", err)
		n += d.Outcomes
	}
	return n
}

// toolErrors returns the errors of tools that heed counts.
func (f *fixture) toolErrors() []patterns.TaskError {
	f.Helper()
	report, err := f.agent.Patterns().Errors(background, patterns.HistoryQuery{})
	f.must("Errors", err)
	return report.Errors
}

// wantNothingSaid checks that heed takes nothing for a person's judgement of an answer.
func (f *fixture) wantNothingSaid(h heard, when string) {
	f.Helper()
	if account := f.account(h); account.Known {
		f.Errorf("%s, the answer to %q is worth %v (%s), and nobody said anything of it", when, h.turn.Text, account.Worth, account.Channel)
	}
	_, total, err := f.agent.Feedback().List(background, feedback.Listing{})
	f.must("List", err)
	if total != 0 {
		f.Errorf("%s, there are %d corrections, and nobody corrected anything", when, total)
	}
}

// standing returns where a heuristic stands.
func standing(f *fixture, agent *loop.Agent, id string) learning.Standing {
	f.Helper()
	s, err := agent.Learning().Standing(background, id)
	f.must("Standing", err)
	return s
}
