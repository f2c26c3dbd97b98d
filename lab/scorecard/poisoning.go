package scorecard

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/poison"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

const (
	beyond      = "coalitions beyond f(k)"
	byOne       = "moved by one clicker"
	byThree     = "moved by three clickers"
	bySilence   = "confidence by silence alone"
	worstArm    = "% of choices for the worst arm after one false account"
	worstArmOf3 = "% after three"
)

func poisoning() []card.Line {
	line := func(name, promise, attack string, run func(guarded bool) card.Attempt, short, long int64, bars ...card.Bar) card.Line {
		return card.Line{
			Name: "S13 " + name, Promise: promise, Attack: attack,
			Short: card.Form{Bars: bars, Work: short, Budget: 10 * time.Minute}, Long: card.Form{Bars: bars, Work: long, Budget: 2 * time.Hour},
			Run: run(true), Controls: []card.Control{{Name: "no caps", Run: card.Brief(run(false))}},
		}
	}
	return []card.Line{
		line("coalitions", "With caps, k sources move a mean by at most f(k).",
			"Random honest sources, and up to six that conspire in many channels, with one opinion and huge masses.",
			coalitions, 20_000, 200_000, card.AtMost(beyond, 0)),
		line("clicks", "With learning.Guarded, thousands of clicks by one person hardly move a heuristic that twenty others have judged.",
			"One person, then three, praise or blame thousands of answers of one heuristic.",
			clicks, 4*2_000, 4*10_000, card.AtMost(byOne, 0.05), card.AtMost(byThree, 0.15)),
		line("silence", "With learning.Guarded, silence alone never brings a heuristic to where it answers by itself.",
			"Heuristics fail in 30 to 80 % of their answers, and 5 to 30 % of the failures are complained about. Every other answer meets silence.",
			silence, 3_000, 1_000_000, card.AtMost(bySilence, 0.7)),
		line("arms", "With strategy.Guarded, a few false accounts do not bring the worst arm to the top.",
			"After 200 honest outcomes a false account praises the worst arm fifty times, or three "+
				"do it twenty times each (lab/poison).",
			arms, 10, 200, card.AtMost(worstArm, 2), card.AtMost(worstArmOf3, 5)),
	}
}

// coalitions pools random evidence with and without a coalition.
func coalitions(guarded bool) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		r.Values = map[string]float64{beyond: 0}
		rng := s.Rand(0)
		for range card.Pick(s, 20_000, 200_000) {
			caps := evidence.Caps{
				SourceMass:  pick(rng, 1e-3, 0.5, 1, 4, 100),
				SourceShare: pick(rng, 0, 0.01, 0.05, 0.2, 1./3, 0.9),
			}
			var parts []evidence.Part
			h := 0.
			for i := range 1 + rng.IntN(60) {
				mass := math.Exp(6*rng.Float64() - 3)
				parts = append(parts, said(fmt.Sprint("h", i), "explicit", mass, rng.Float64()))
				h += min(mass, caps.SourceMass)
			}
			honest, k, mind := slices.Clone(parts), 1+rng.IntN(6), float64(rng.IntN(2))
			for i := range k {
				for c := range 1 + rng.IntN(2) {
					parts = append(parts, said(fmt.Sprint("mallory", i), fmt.Sprint(c), math.Exp(20*rng.Float64()-6), mind))
				}
			}
			rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			flood := float64(k) * caps.SourceMass
			bound := max(float64(k)*caps.SourceShare, flood/(flood+h))
			if !guarded {
				caps = evidence.Caps{}
			}
			moved := math.Abs(caps.Pool(parts, 0).Mean() - caps.Pool(honest, 0).Mean())
			if r.Work++; !(moved <= bound+1e-9) {
				r.Values[beyond]++
				r.Note("%d of %d sources move the mean by %v, not %v: %+v", k, len(parts), moved, bound, caps)
			}
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
		}
		r.Faults = r.Work
		return r, nil
	}
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func said(source, channel string, mass, reward float64) evidence.Part {
	return evidence.Part{
		Cell: evidence.Cell{Kind: "k", Item: "i"}, Source: source, Channel: channel,
		Tally: evidence.Tally{Mass: mass, Squares: mass, Reward: mass * reward, RewardSquares: mass * reward * reward, Positive: evidence.Count{N: 1}},
	}
}

// A pupil is a learning module with a clock of its own.
type pupil struct {
	*learning.Module
	now time.Time
}

func newPupil(ctx context.Context, guarded bool, heuristics ...string) (*pupil, error) {
	p := &pupil{now: deskStart}
	clock := func() time.Time { return p.now }
	st, err := memstore.New(memstore.Config{
		Now: clock, NoHistory: true, Limits: map[string]store.Limits{"learning.answer": {Most: 1000}},
	})
	if err != nil {
		return nil, err
	}
	cfg := learning.Config{Store: st, Now: clock}
	if guarded {
		cfg.Caps = learning.Guarded()
	} else { // the silence of the documents, which counts as a click
		cfg.Strategy, err = learning.NewBayesian(learning.BayesianConfig{Silence: 1, Ignore: 1})
		cfg.Caps.Silence = []string{}
	}
	if err != nil {
		return nil, err
	}
	if p.Module, err = learning.New(ctx, cfg); err != nil {
		return nil, err
	}
	for _, id := range heuristics {
		if _, err := p.Put(ctx, learning.Heuristic{ID: id, Initial: 0.5}); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *pupil) judge(ctx context.Context, heuristic, event, person string, value float64) error {
	_, err := p.Judge(ctx, learning.Judgement{
		HeuristicID: heuristic, EventID: event, Person: person, Value: value,
	})
	return err
}

// clicks has a few people click on thousands of answers of a heuristic that twenty others have judged.
func clicks(guarded bool) card.Attempt {
	moved := func(ctx context.Context, clickers, clicks int, value float64) (float64, error) {
		p, err := newPupil(ctx, guarded, "h")
		if err != nil {
			return 0, err
		}
		for i := range 20 {
			if err := p.judge(ctx, "h", "e", fmt.Sprint("honest ", i), float64(1-2*(i%2))); err != nil {
				return 0, err
			}
		}
		before, err := p.Standing(ctx, "h")
		for i := 0; i < clicks && err == nil; i++ {
			err = p.judge(ctx, "h", fmt.Sprint(i), fmt.Sprint("clicker ", i%clickers), value)
		}
		if err != nil {
			return 0, err
		}
		after, err := p.Standing(ctx, "h")
		return math.Abs(after.Confidence - before.Confidence), err
	}
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		r.Values = make(map[string]float64)
		n := card.Pick(s, 2_000, 10_000)
		for _, value := range []float64{1, -1} {
			for name, clickers := range map[string]int{byOne: 1, byThree: 3} {
				far, err := moved(ctx, clickers, n, value)
				if err != nil {
					return r, err
				}
				r.Values[name] = max(r.Values[name], far)
				r.Work += int64(n)
			}
		}
		r.Faults = r.Work
		return r, nil
	}
}

// silence fires heuristics that nobody praises.
func silence(guarded bool) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		const heuristics = 50
		rng, peak := s.Rand(0), 0.
		var ids []string
		fails := make([]float64, heuristics)
		for i := range fails {
			ids = append(ids, strconv.Itoa(i))
			fails[i] = (0.3 + 0.5*rng.Float64()) * (0.05 + 0.25*rng.Float64())
		}
		p, err := newPupil(ctx, guarded, ids...)
		if err != nil {
			return r, err
		}
		for n := range card.Pick(s, 3_000, 1_000_000) {
			i := rng.IntN(heuristics)
			event := fmt.Sprint(n)
			person := fmt.Sprint("p", rng.IntN(200))
			if err := p.Fire(ctx, learning.Fire{HeuristicID: ids[i], EventID: event, Person: person, Session: "room"}); err != nil {
				return r, err
			}
			if rng.Float64() < fails[i] {
				if err := p.judge(ctx, ids[i], event, person, -1); err != nil {
					return r, err
				}
				r.Faults++
			}
			p.now = p.now.Add(time.Hour)
			changes, err := p.Timeouts(ctx, p.now)
			if err != nil {
				return r, err
			}
			for _, c := range changes {
				peak = max(peak, c.New)
			}
			r.Work++
		}
		r.Values = map[string]float64{bySilence: peak}
		return r, nil
	}
}

// arms runs the study of lab/poison, which has learners with and without limits.
func arms(guarded bool) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		runs := card.Pick(s, 10, 200)
		one, three, err := poison.Worst(ctx, guarded, runs, 2025+s.Seed)
		if err != nil {
			return r, err
		}
		r.Values = map[string]float64{worstArm: 100 * one, worstArmOf3: 100 * three}
		r.Work, r.Faults = int64(runs), int64(2*runs)
		return r, nil
	}
}
