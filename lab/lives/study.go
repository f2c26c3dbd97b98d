// Package lives measures how far learned confidences are right, and how soon: it lets many
// heuristics live in simulated worlds whose truth is known. The defaults of packages learning and
// decision were chosen with it.
//
//	go run ./lab lives [-long] [-lives N] [-seed S]
//
// A life is a heuristic that fits 2,000 events. It begins with a confidence of 0.3. While its
// confidence is below 0.7 the model answers, mostly without having seen the heuristic, and is
// compared with it. From 0.7 on the heuristic answers. The people of a crowd react to the answers,
// or stay silent. A good heuristic is right for 90 of 100 events, a bad one for 40. A wrong answer
// of the model is the heuristic's wrong one in one of ten cases.
//
// A test holds the arithmetic of this program to what the packages do.
package lives

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/heedhq/heed/lab/internal/kit"
)

// Run runs the study: 40 lives for each figure, and 1,000 in the long form.
func Run(ctx context.Context, call *kit.Call) (err error) {
	defer kit.Catch(&err)
	lives := call.Count("lives", 40, 1000, "the lives of each row and column")
	seed := call.Uint64("seed", 2026, "the seed of the worlds")
	kit.Check(call.Parse())
	s := study{lives: *lives, events: 2000, seed: *seed}
	return s.report(call.Out, s.run(ctx))
}

// defaults are the ones of packages learning and decision.
var defaults = rule{strength: 2, silence: 0.4, agreement: 0.24, disagreement: 0.072,
	rejected: 0.072, mass: 6, withhold: 1}

// A study is what is measured.
type study struct {
	lives, events int
	seed          uint64
}

// A start measures how heuristics start in one crowd with models of one kind. All numbers but the
// model's and the median are shares of lives or of events.
type start struct {
	crowd  string
	model  float64 // how often it is right; 0: drawn from 0.7 to 0.95
	soon   float64 // good ones that answer by the 40th event
	later  float64 // good ones that do by the 80th
	median int     // the event of a good one's first answer; 0: more than half never answer
	stay   float64 // the events of the second half that good ones answer
	false  float64 // bad ones that ever answer
	letIn  float64 // the events of the second half that bad ones answer which began with luck
}

// models are how often they are right; 0: drawn from 0.7 to 0.95.
var models = []float64{0, 0.7, 0.8, 0.95}

// starts are the crowds of the first table. Without a limit on persons, a team does as one person
// does.
func starts() []crowd {
	return []crowd{quiet, talkative, complaining, careless, talkative.spammed()}
}

// run measures the starts in each crowd with each kind of model.
func (s *study) run(ctx context.Context) []start {
	crowds := starts()
	all := make([]start, len(crowds)*len(models))
	kit.Parallel(ctx, len(all), func(i int) {
		all[i] = s.start(&crowds[i/len(models)], models[i%len(models)])
	})
	return all
}

// played returns the lives of a subject.
func (s *study) played(r *rule, c *crowd, sub subject, events int) []life {
	lives := make([]life, s.lives)
	for i := range lives {
		// a book has no errors
		lives[i], _ = play(r.open(c.people), c, &sub, events, s.seed<<20+uint64(i))
	}
	return lives
}

// mean returns the mean over lives.
func mean(lives []life, f func(l *life) float64) float64 { return kit.MeanOf(lives, f).Mean }

// within reports whether the heuristic answered one of the first events.
func within(events int) func(l *life) float64 {
	return func(l *life) float64 {
		if l.began >= 0 && l.began < events {
			return 1
		}
		return 0
	}
}

// median returns the event of the first answer in the middle one of the lives, and 0 if that one
// never answers.
func median(lives []life) int {
	firsts := make([]int, len(lives))
	for i := range lives {
		if firsts[i] = lives[i].began + 1; firsts[i] == 0 {
			firsts[i] = math.MaxInt
		}
	}
	slices.Sort(firsts)
	if middle := firsts[len(firsts)/2]; middle < math.MaxInt {
		return middle
	}
	return 0
}

func (s *study) start(c *crowd, model float64) start {
	with := func(sub subject) []life {
		sub.model = model
		return s.played(&defaults, c, sub, s.events)
	}
	half := func(l *life) float64 { return l.late(s.events) }
	goods := with(good)
	return start{
		crowd: c.name, model: model, soon: mean(goods, within(40)), later: mean(goods, within(80)),
		median: median(goods), stay: mean(goods, half), false: mean(with(bad), within(s.events)),
		letIn: mean(with(letIn), half),
	}
}

func (s *study) report(w io.Writer, starts []start) error {
	fmt.Fprintf(w, "%d lives each, in %%\n", s.lives)
	table := kit.NewTable(w)
	fmt.Fprintln(table,
		"crowd\tmodel is right\tgood by 40\tby 80\tmedian\tstay\tbad ever\tlet in stay\t")
	for _, x := range starts {
		model := "70 to 95"
		if x.model > 0 {
			model = fmt.Sprintf("%.0f", 100*x.model)
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%.1f\t%d\t%.1f\t%.1f\t%.1f\t\n", x.crowd, model, 100*x.soon,
			100*x.later,
			x.median, 100*x.stay, 100*x.false, 100*x.letIn)
	}
	return table.Flush()
}
