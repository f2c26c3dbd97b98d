package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
)

// A demoWorld is a desk that answers requests, and the people who make them. Its first days pass at once. It is safe for concurrent use.
type demoWorld struct {
	mu    sync.Mutex
	dice  *rand.Rand
	every time.Duration
	past  atomic.Int64 // how far the clock is behind

	said map[string]int // how often reviewers have spoken of a habit
	due  int            // the request from which on they speak again
}

const (
	demoPast  = 240 // requests of the first days
	demoStep  = 12 * time.Minute
	demoTurn  = 150 // the request from which on restarting no longer helps
	demoSweep = 5   // requests between two sweeps
	demoPause = 15  // requests from one correction to the next
)

var demoArms = []loop.Arm{
	{ID: "brief", System: "Answer in one sentence.", InputPrice: 1, OutputPrice: 4},
	{ID: "steps", System: "Answer in numbered steps.", InputPrice: 1, OutputPrice: 4},
	{ID: "careful", System: "Think of everything that could go wrong, and say it.", InputPrice: 3, OutputPrice: 12},
}

var demoLessons = loop.Lessons{
	Heuristics: []learning.Heuristic{
		{ID: "rotate-logs", Domain: "servers", Condition: "The disk of a server is full.", Action: "Rotate its logs, then look for what fills it.", Initial: 0.72},
		{ID: "restart", Domain: "servers", Condition: "A service on a server does not answer.", Action: "Restart the service.", Initial: 0.78},
		{ID: "clear-cache", Domain: "servers", Condition: "The pages of a server are slow.", Action: "Clear the cache.", Initial: 0.72},
	},
	Notes: []loop.Note{
		{ID: "db-1", Domain: "servers", Text: "db-1 is the billing database, and its disk is small."},
		{ID: "invoices", Domain: "billing", Text: "An invoice is corrected by a credit note and a new invoice."},
	},
}

var demoWays = []patterns.Approach{
	{Name: "Feature flags", Phrases: []string{"behind flag|flags", "feature flag*"}},
	{Name: "Small steps", Phrases: []string{"small steps"}},
	{Name: "Deploy on Friday", Phrases: []string{"on friday"}},
}

// demoDomain is a field of requests: how good its arms are, and what is asked.
type demoDomain struct {
	name  string
	arms  map[string]float64
	texts []string
}

var demoDomains = []demoDomain{
	{"servers", map[string]float64{"brief": 0.85, "steps": 0.6, "careful": 0.35}, []string{
		"The disk of %s is full.", "A service on %s does not answer.", "The pages of %s are slow.", "The certificate of %s ends next week.",
	}},
	{"billing", map[string]float64{"brief": 0.4, "steps": 0.85, "careful": 0.6}, []string{
		"The invoice %s has the wrong address.", "A payment for %s is missing.", "Customer %s wants to cancel.",
	}},
}

var (
	demoServers   = []string{"db-1", "web-2", "mail-3", "cache-4"}
	demoPeople    = []string{"amy", "bob", "cleo", "dan", "eve"}
	demoSuccess   = map[string]float64{"Feature flags": 0.92, "Small steps": 0.8, "Deploy on Friday": 0.15}
	demoReviewers = []string{"lee", "mia", "noor"}
)

// A demoHabit is one of the model, which a reviewer sees in an answer and speaks against. The model drops it once that is a rule.
type demoHabit struct {
	name  string
	shows func(text, about string) bool
	says  []string // each by another reviewer. Those that say the same become a proposal.
}

const (
	demoDate = "by 15 March"
	demoTime = "at 14:00"
	demoZone = " UTC"
)

var demoHabits = []demoHabit{
	{"server", func(text, about string) bool {
		return slices.Contains(demoServers, about) && !strings.HasPrefix(text, about)
	}, []string{
		"Name the server in the first line.", "Always name the server in the first line.", "Name the server in the first line of the answer.",
	}},
	// The last one contradicts the others, so that a person has to decide.
	{"date", func(text, _ string) bool { return strings.Contains(text, demoDate) }, []string{
		"Never promise a date to a customer.", "Never promise a date to any customer.", "Do not promise customers a date.", "Promise a date to each customer.",
	}},
	{"zone", func(text, _ string) bool {
		return strings.Contains(text, demoTime) && !strings.Contains(text, demoTime+demoZone)
	}, []string{
		"Give every time with its time zone.", "Give each time with its time zone.", "Give times with the time zone.",
	}},
}

// now is the clock of the world.
func (w *demoWorld) now() time.Time { return time.Now().Add(-time.Duration(w.past.Load())) }

func (w *demoWorld) chance(p float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.Float64() < p
}

func (w *demoWorld) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(n)
}

// Generate implements [decision.LLM]: it is the model.
func (w *demoWorld) Generate(_ context.Context, r decision.LLMRequest) (decision.LLMResponse, error) {
	text := demoText(r)
	if strings.Contains(r.Prompt, "Deploy version") {
		text = "Deploy it " + w.way(r.System) + "."
	}
	words := 20
	switch {
	case strings.Contains(r.System, demoArms[1].System):
		text, words = "1. "+text+"\n2. Tell who asked.", 40
	case strings.Contains(r.System, demoArms[2].System):
		text, words = text+" If that does not help, ask the people who run it, and keep a copy before you change anything.", 120
	}
	return decision.LLMResponse{Text: text, Model: "simulated", InputTokens: 200 + len(r.System)/4, OutputTokens: words}, nil
}

// demoText is what the model says to a request. It follows the rules in its prompt.
func demoText(r decision.LLMRequest) string {
	at := demoTime
	if strings.Contains(r.System, "time zone") {
		at += demoZone
	}
	for _, server := range demoServers {
		if !strings.Contains(r.Prompt, server) {
			continue
		}
		text := "Look at the logs of the last hour, and undo what changed. I look again " + at + "."
		if strings.Contains(r.System, "first line") {
			text = server + ":\n" + text
		}
		return text
	}
	reply := "you have a reply " + demoDate
	if rules := strings.ToLower(r.System); strings.Contains(rules, "never promise") || strings.Contains(rules, "not promise") {
		reply = "you hear from us"
	}
	return "Accounting looks at it " + at + ", and " + reply + "."
}

// way is how the model would deploy. Mostly it heeds a warning.
func (w *demoWorld) way(system string) string {
	ways := []string{"behind a feature flag", "in small steps", "on Friday"}
	if strings.Contains(system, "Friday") && w.chance(0.8) {
		ways = ways[:2]
	}
	return ways[w.pick(len(ways))]
}

// live has the agent answer requests, and people say what they think of that, until the context ends.
func (w *demoWorld) live(ctx context.Context, agent *loop.Agent) error {
	for i := 0; ; i++ {
		w.past.Store(int64(max(0, demoPast-i) * int(demoStep)))
		if i > demoPast {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(w.every):
			}
		}
		if err := w.request(ctx, agent, i); err != nil {
			return err
		}
		if i%demoSweep == 0 {
			if err := agent.Sweep(ctx, time.Time{}); err != nil {
				return err
			}
		}
	}
}

// request is one request, and what comes of its answer.
func (w *demoWorld) request(ctx context.Context, agent *loop.Agent, i int) error {
	if i%6 == 5 {
		return w.deployment(ctx, agent, i)
	}
	d := &demoDomains[w.pick(len(demoDomains))]
	about := demoServers[w.pick(len(demoServers))]
	item := about
	if d.name == "billing" {
		about, item = fmt.Sprint("A-", 1000+w.pick(9000)), "letters"
	}
	person := demoPeople[w.pick(len(demoPeople))]
	answer, err := agent.Answer(ctx, loop.Event{
		Text: fmt.Sprintf(d.texts[w.pick(len(d.texts))], about), Domain: d.name, Person: person, Item: item,
	})
	if err != nil || answer.Text == "" {
		return err
	}
	good := d.arms[answer.Plan.Arm.ID]
	switch answer.Result.CreditID {
	case "rotate-logs":
		good = 0.95
	case "restart":
		good = 0.97
		if i > demoTurn {
			good = 0.1
		}
	case "clear-cache":
		good = 0.25
	}
	if w.chance(0.6) {
		value := -1.0
		if w.chance(good) {
			value = 1
		}
		if err := agent.React(ctx, answer.ID, loop.Reaction{Person: person, Value: value}); err != nil {
			return err
		}
	}
	if answer.Result.CreditID != "" {
		return nil
	}
	return w.review(ctx, agent, i, answer, about)
}

// review has a reviewer speak against the habit that was spoken of least.
func (w *demoWorld) review(ctx context.Context, agent *loop.Agent, i int, answer loop.Answer, about string) error {
	if i < w.due {
		return nil
	}
	var worst *demoHabit
	for k := range demoHabits {
		habit := &demoHabits[k]
		n := w.said[habit.name]
		if n < len(habit.says) && habit.shows(answer.Text, about) && (worst == nil || n < w.said[worst.name]) {
			worst = habit
		}
	}
	if worst == nil {
		return nil
	}
	n := w.said[worst.name]
	w.said[worst.name], w.due = n+1, i+demoPause
	_, err := agent.Correct(ctx, answer.ID, loop.Correction{Reviewer: demoReviewers[n%len(demoReviewers)], Text: worst.says[n]})
	return err
}

// deployment is a task, whose way of working the model chooses.
func (w *demoWorld) deployment(ctx context.Context, agent *loop.Agent, i int) error {
	answer, err := agent.Answer(ctx, loop.Event{
		Text: fmt.Sprintf("Deploy version %d of the shop.", i), Domain: "deployments", Task: fmt.Sprint("deploy-", i), Person: "amy",
	})
	if err != nil || answer.Text == "" {
		return err
	}
	ways, err := agent.Patterns().Extract(ctx, answer.Text)
	if err != nil {
		return err
	}
	success := w.chance(0.5)
	for name, p := range demoSuccess {
		if slices.Contains(ways, patterns.IDOf(name)) {
			success = w.chance(p)
		}
	}
	o := loop.Outcome{Success: &success, Duration: time.Duration(5+w.pick(20)) * time.Minute, Source: "pipeline"}
	if !success {
		o.Errors, o.Failure = 1, "the shop was down"
	}
	return agent.Outcome(ctx, answer.ID, o)
}
