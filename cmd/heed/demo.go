package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/web"
)

type demoCommand struct {
	Listen string        `default:"127.0.0.1:0" placeholder:"ADDRESS" help:"Where to listen on this machine. Port 0 takes any free one."`
	Every  time.Duration `default:"1.5s" help:"How often something happens, once the first days are over."`
}

// Run serves a store that a simulated agent fills, until a signal ends it.
func (cmd *demoCommand) Run(s *session) (err error) {
	l := listening{Listen: cmd.Listen, As: []string{"ann", "kim"}}
	if !s.Now.IsZero() {
		return &usageError{"--now is for looking"}
	}
	if err := l.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "heed-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s.DB = filepath.Join(dir, "demo.db")
	return s.within(true, func() error {
		w, lessons, err := newDemoWorld(cmd.Every)
		if err != nil {
			return err
		}
		live := &web.Live{}
		agent, err := loop.New(s.ctx, loop.Config{
			DB: s.at.handle, Name: "desk", Model: w, Lessons: lessons,
			Testing:  loop.Testing{Now: w.now, Seed: w.dice},
			Tuning:   loop.Tuning{Patterns: patterns.Config{Approaches: w.approaches(), Warnings: true}},
			Observer: observing(live),
		})
		if err != nil {
			return err
		}
		return alongside(s, func(ctx context.Context) error { return w.live(ctx, agent) },
			func(s *session) error {
				return l.pages(s, web.Config{
					Store: s.at.store, Agent: agent, Live: live, Now: w.now, Observer: tellFailure,
				}, "a simulated agent")
			})
	})
}

//go:embed demo.json
var demoData []byte

// A demoWorld is a desk that answers requests, and the people who make them. Its first days pass at
// once. It is safe for concurrent use.
type demoWorld struct {
	Lessons json.RawMessage
	Domains []struct {
		Name, Answer string
		About, Texts []string
		Good         map[string]float64 // the share of good answers, by arm
	}
	Heuristics map[string][2]float64 // the share of good answers at first, and later
	Ways       []struct {
		Name, Text string
		Phrases    []string
		Good       float64
	}
	People, Reviewers []string
	Habits            []demoHabit

	mu    sync.Mutex
	dice  *rand.Rand
	every time.Duration
	past  atomic.Int64 // how far the clock is behind
	due   int          // the request from which on reviewers speak again
}

// A demoHabit is one of the model, which reviewers speak against. The model drops it once that is a
// rule.
type demoHabit struct {
	Shows, Instead string   // in answers, before and after
	Rules          []string // words of a rule
	Says           []string // each by another reviewer; those that say the same become a proposal
	said           int
}

const (
	demoPast  = 240 // requests of the first days
	demoStep  = 12 * time.Minute
	demoTurn  = 150 // the request from which on a heuristic is good as later
	demoSweep = 5   // requests between two sweeps
	demoPause = 15  // requests from one correction to the next
)

func newDemoWorld(every time.Duration) (*demoWorld, loop.Lessons, error) {
	w := &demoWorld{dice: rand.New(rand.NewPCG(1, 23)), every: every}
	err := json.Unmarshal(demoData, w)
	if err != nil {
		return nil, loop.Lessons{}, err
	}
	lessons, err := loop.ReadLessons(bytes.NewReader(w.Lessons))
	for i := range lessons.Arms {
		lessons.Arms[i].InputPrice, lessons.Arms[i].OutputPrice = 1, 4
	}
	return w, lessons, err
}

func (w *demoWorld) approaches() (all []patterns.Approach) {
	for _, way := range w.Ways {
		all = append(all, patterns.Approach{Name: way.Name, Phrases: way.Phrases})
	}
	return all
}

// now is the clock of the world.
func (w *demoWorld) now() time.Time { return time.Now().Add(-time.Duration(w.past.Load())) }

func (w *demoWorld) chance(p float64) bool { return w.pick(1000) < int(1000*p) }

func (w *demoWorld) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(n)
}

func (w *demoWorld) oneOf(all []string) string { return all[w.pick(len(all))] }

// Generate implements [decision.LLM]: it is the model. It follows the rules in its prompt.
func (w *demoWorld) Generate(_ context.Context, r decision.LLMRequest) (
	decision.LLMResponse, error,
) {
	system := strings.ToLower(r.System)
	ways := w.Ways
	if strings.Contains(system, "friday") && w.chance(0.8) {
		ways = ways[:2] // mostly it heeds a warning
	}
	text := "Deploy it " + ways[w.pick(len(ways))].Text + "."
	for _, d := range w.Domains {
		for _, about := range d.About {
			if strings.Contains(r.Prompt, about) {
				text = d.Answer
				for i := range w.Habits {
					text = w.Habits[i].follow(system, text, about)
				}
			}
		}
	}
	words := 20
	switch {
	case strings.Contains(system, "numbered steps"):
		text, words = "1. "+text+"\n2. Tell who asked.", 40
	case strings.Contains(system, "could go wrong"):
		text, words = text+" If that does not help, ask the people who run it.", 120
	}
	return decision.LLMResponse{
		Text: text, Model: "simulated", InputTokens: 200 + len(r.System)/4, OutputTokens: words,
	}, nil
}

// follow drops the habit from an answer if a rule is against it.
func (h *demoHabit) follow(system, text, about string) string {
	against := func(rule string) bool { return strings.Contains(system, rule) }
	if slices.ContainsFunc(h.Rules, against) {
		text = strings.ReplaceAll(text, h.Shows, strings.ReplaceAll(h.Instead, "ABOUT", about))
	}
	return text
}

// live has the agent answer requests, and people judge the answers, until the context ends.
func (w *demoWorld) live(ctx context.Context, agent *loop.Agent) error {
	for i := 0; ; i++ {
		w.past.Store(int64(max(0, demoPast-i) * int(demoStep)))
		if i > demoPast {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(w.every):
			}
		}
		request := w.request
		if i%6 == 5 {
			request = w.deployment
		}
		err := request(ctx, agent, i)
		if err == nil && i%demoSweep == 0 {
			err = agent.Sweep(ctx, time.Time{})
		}
		if err != nil {
			return err
		}
	}
}

// request is one request, and what comes of its answer.
func (w *demoWorld) request(ctx context.Context, agent *loop.Agent, i int) error {
	d := &w.Domains[w.pick(len(w.Domains))]
	about, person := w.oneOf(d.About), w.oneOf(w.People)
	answer, err := agent.Answer(ctx, loop.Event{
		Text: fmt.Sprintf(w.oneOf(d.Texts), about), Domain: d.Name, Person: person, Item: about,
	})
	if err != nil || answer.Text == "" {
		return err
	}
	good := d.Good[answer.Plan.Arm.ID]
	shares, byHeuristic := w.Heuristics[answer.Result.CreditID]
	if byHeuristic {
		if good = shares[0]; i > demoTurn {
			good = shares[1]
		}
	}
	if w.chance(0.6) {
		value := -1.0
		if w.chance(good) {
			value = 1
		}
		err := agent.React(ctx, answer.ID, loop.Reaction{Person: person, Value: value})
		if err != nil {
			return err
		}
	}
	if byHeuristic || i < w.due {
		return nil
	}
	var worst *demoHabit // that was spoken of least
	for k := range w.Habits {
		h := &w.Habits[k]
		shows := h.said < len(h.Says) && strings.Contains(answer.Text, h.Shows)
		if shows && (worst == nil || h.said < worst.said) {
			worst = h
		}
	}
	if worst == nil {
		return nil
	}
	says, reviewer := worst.Says[worst.said], w.Reviewers[worst.said%len(w.Reviewers)]
	worst.said, w.due = worst.said+1, i+demoPause
	_, err = agent.Correct(ctx, answer.ID, loop.Correction{Reviewer: reviewer, Text: says})
	return err
}

// deployment is a task, whose way of working the model chooses.
func (w *demoWorld) deployment(ctx context.Context, agent *loop.Agent, i int) error {
	answer, err := agent.Answer(ctx, loop.Event{
		Text: fmt.Sprintf("Deploy version %d of the shop.", i), Domain: "deployments",
		Task: fmt.Sprint("deploy-", i), Person: w.People[0],
	})
	if err != nil {
		return err
	}
	for _, way := range w.Ways {
		if !strings.Contains(answer.Text, way.Text) {
			continue
		}
		success := w.chance(way.Good)
		o := loop.Outcome{
			Success: &success, Duration: time.Duration(5+w.pick(20)) * time.Minute, Source: "pipeline",
		}
		if !success {
			o.Errors, o.Failure = 1, "the shop was down"
		}
		return agent.Outcome(ctx, answer.ID, o)
	}
	return nil
}
