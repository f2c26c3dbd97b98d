package incidents

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/llm"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/strategy"
)

// The events of a life before an outage and after it, and the time between two events.
const (
	before   = 300
	hundreds = 5
	pace     = 5 * time.Second
	sweeps   = 24 // events between two sweeps
)

// rates are how many answers of each arm are good.
var rates = map[string]float64{"best": 0.9, "middle": 0.7, "worst": 0.5}

// The heuristics, and how many of their answers are good.
var heuristics = []struct {
	learning.Heuristic
	rate float64
}{
	{learning.Heuristic{
		ID: "good", Condition: "the disk of a server is full", Action: "Rotate its logs.",
		Initial: 0.75,
	}, 0.9},
	{learning.Heuristic{
		ID: "bad", Condition: "nobody can print on this floor", Action: "Buy a printer.", Initial: 0.75,
	}, 0.4},
}

// The ways of working, and how many tasks succeed with each.
var (
	ways     = []patterns.PatternID{"in small steps", "by guessing"}
	wayRates = []float64{0.9, 0.45}
)

// A life is what came of an agent.
type life struct {
	best       [hundreds]float64    // how often the best arm was chosen
	trust      [hundreds][4]float64 // in both heuristics and both ways
	unanswered int                  // events during the outage and after it
}

// A world is an agent with its people, its models and its store.
type world struct {
	outage
	seed    uint64
	control bool
	now     time.Time
	away    bool
	n       int // of the event
	calls   int // of models, during the outage
	sea     *storetest.Failing
	agent   *loop.Agent
}

// live lets one agent live through an outage.
func live(ctx context.Context, o outage, control bool, seed uint64) (l life) {
	w := &world{
		outage: o, seed: seed, control: control,
		now: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC),
	}
	w.open(ctx)
	for range before {
		w.event(ctx, "before")
	}
	w.during(ctx, &l)
	for h := range hundreds {
		best, of := 0, 0
		for range 100 {
			given := w.event(ctx, "after")
			if given.Text == "" {
				l.unanswered++
			}
			if given.Plan.Arm.ID != "" && given.Result.Path == decision.Model && w.kind() > 1 {
				of++
				if given.Plan.Arm.ID == "best" {
					best++
				}
			}
		}
		l.best[h], l.trust[h] = float64(best)/float64(max(of, 1)), w.trust(ctx)
	}
	return l
}

// during lets the outage happen, or the time pass that it would have taken.
func (w *world) during(ctx context.Context, l *life) {
	if w.how == "" {
		w.now = w.now.Add(time.Duration(w.length) * pace)
		w.n = 0
		kit.Check(w.agent.Sweep(ctx, time.Time{}))
		return
	}
	w.away = true
	w.sea.SetAway(w.how == database)
	for range w.length {
		if w.event(ctx, "during").Text == "" {
			l.unanswered++
		}
	}
	w.away, w.n = false, 0
	w.sea.SetAway(false)
}

func (w *world) open(ctx context.Context) {
	clock := func() time.Time { return w.now }
	w.sea = &storetest.Failing{Store: kit.Must(memstore.New(memstore.Config{Now: clock}))}
	cfg := loop.Config{
		Store: w.sea, Testing: loop.Testing{Now: clock, Seed: rand.NewPCG(w.seed, 1)},
		RequireStore: w.control && w.how == database,
		Models:       map[string]decision.LLM{"shared": w.model(true)},
	}
	for _, id := range []string{"best", "middle", "worst"} {
		arm := loop.Arm{ID: id, ModelName: id}
		cfg.Models[id] = w.model(id == "best")
		if w.all {
			arm.ModelName = "shared"
		}
		cfg.Arms = append(cfg.Arms, arm)
	}
	var lessons loop.Lessons
	for i := range heuristics {
		lessons.Heuristics = append(lessons.Heuristics, heuristics[i].Heuristic)
	}
	cfg.Lessons = lessons
	w.agent = kit.Must(loop.New(ctx, cfg))
}

// errRefused is what a client of HTTP returns if no server listens.
var errRefused = fmt.Errorf("dial tcp: connect: %w", syscall.ECONNREFUSED)

// model returns a model, which an outage may hit.
func (w *world) model(hit bool) decision.LLM {
	return decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		if hit && w.away {
			if err := w.fails(); err != nil {
				return decision.LLMResponse{}, err
			}
		}
		return decision.LLMResponse{Text: "I looked into it."}, nil
	})
}

// fails returns the error of a call during an outage, or nil.
func (w *world) fails() error {
	w.calls++
	switch {
	case w.how == dead, w.how == half && w.luck("call", fmt.Sprint(w.calls)) < 0.5:
		return errRefused
	case w.how == slow:
		return fmt.Errorf("the client's time is over: %w", context.DeadlineExceeded)
	case w.how == bursts && w.n%20 < 10:
		return &llm.Error{Failure: llm.RateLimited, RetryAfter: 10 * time.Second}
	}
	return nil
}

// luck returns a number in [0, 1) that is the same in each life of a seed.
func (w *world) luck(of ...string) float64 {
	h := fnv.New64a()
	for _, s := range of {
		h.Write([]byte(s + "\x00"))
	}
	return rand.New(rand.NewPCG(w.seed, h.Sum64())).Float64()
}

// kind returns what the current event is about: a heuristic, or 2 for a task and 3 for all else.
func (w *world) kind() int {
	switch u := w.luck("kind", fmt.Sprint(w.n)); {
	case u < 0.15:
		return 0
	case u < 0.3:
		return 1
	case u < 0.45:
		return 2
	default:
		return 3
	}
}

// event answers the next event of a time, and lets people react.
func (w *world) event(ctx context.Context, when string) loop.Answer {
	w.n++
	w.now = w.now.Add(pace)
	if w.n%sweeps == 0 {
		w.check(w.agent.Sweep(ctx, time.Time{}))
	}
	id := fmt.Sprint(when, "-", w.n)
	e := loop.Event{
		ID: id, Text: "Where is the parcel " + id + "?",
		Person: fmt.Sprint("person-", int(300*w.luck(id, "person"))),
	}
	switch kind := w.kind(); kind {
	case 0, 1:
		e.Text = heuristics[kind].Condition
	case 2:
		e.Task = id
	}
	given, err := w.agent.Answer(ctx, e)
	if w.check(err); err != nil || given.Text == "" {
		w.blame(ctx, &given)
	} else {
		w.check(w.react(ctx, id, &given))
	}
	return given
}

// check ends the life if there is an error, unless it is what an outage has, or what is noticed of
// it shortly after.
func (w *world) check(err error) {
	if !w.away && !errors.Is(err, loop.ErrNoModel) {
		kit.Check(err)
	}
}

// blame counts a failed call as a failure of the arm, for the control.
func (w *world) blame(ctx context.Context, given *loop.Answer) {
	if c := given.Plan.Choice; w.control && c != nil && w.how != database {
		kit.Must(w.agent.Strategy().Observe(ctx, strategy.Outcome{
			Choice: *c, ID: given.ID + "/failed", Value: -1, Confidence: 1, Channel: "error",
			Source: given.Plan.Event.Person,
		}))
	}
}

// react reports the reaction of a person, or the end of a task, on an answer.
func (w *world) react(ctx context.Context, id string, given *loop.Answer) error {
	rate := rates[given.Plan.Arm.ID]
	for i := range heuristics {
		if given.Result.Path == decision.Heuristic && heuristics[i].ID == given.Result.CreditID {
			rate = heuristics[i].rate
		}
	}
	value := -1.
	if w.luck(id, given.Plan.Arm.ID) < rate {
		value = 1
	}
	if w.kind() == 2 {
		way := int(2 * w.luck(id, "way"))
		success := w.luck(id, "success") < wayRates[way]
		return w.agent.Outcome(ctx, id, loop.Outcome{
			Success: &success, Reward: &value, Ways: ways[way : way+1], Source: "ci",
		})
	}
	if w.luck(id, "thumb") >= 0.6 {
		return nil
	}
	return w.agent.React(ctx, id, loop.Reaction{Person: given.Plan.Event.Person, Value: value})
}

// trust returns the trust in the heuristics and the ways of working.
func (w *world) trust(ctx context.Context) (all [4]float64) {
	for i := range heuristics {
		all[i] = kit.Must(w.agent.Learning().Standing(ctx, heuristics[i].ID)).Confidence
	}
	for i, way := range ways {
		s, err := w.agent.Patterns().Standing(ctx, way)
		if !errors.Is(err, heed.ErrNotFound) {
			kit.Check(err)
		}
		all[2+i] = s.Rate
	}
	return all
}
