// Package incidents measures what outages of models and of the database cost: how often the best
// arm is chosen after them, how far heuristics and ways of working are trusted then, and what was
// lost during them.
//
//	go run ./lab incidents [-long] [-seeds N] [-seed S]
//
// An agent answers 300 events, then the events of an outage, and then 500 more. Each life is paired
// with one without the outage: the same events, people and luck, and only the time that passed in
// place of the outage. The control counts each failed call as a failure of the arm, like heed
// before it kept the availability of models apart from the quality of arms. For the outage of the
// database, the control requires the store.
package incidents

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/heedhq/heed/lab/internal/kit"
)

// The ways in which a provider fails.
const (
	dead     = "dead"
	half     = "half of the calls"
	slow     = "slow"
	bursts   = "rate limits in bursts"
	database = "the database"
)

// An outage is one cell of the study. The zero value is no outage.
type outage struct {
	length int
	how    string
	all    bool // three prompts on one model, else one of three models, which the best arm uses
}

func (o outage) String() string {
	switch {
	case o.how == database:
		return fmt.Sprintf("%d events: the database is away", o.length)
	case o.all:
		return fmt.Sprintf("%d events: all arms' model, %s", o.length, o.how)
	}
	return fmt.Sprintf("%d events: the best arm's model, %s", o.length, o.how)
}

// outages returns the cells of a form.
func outages(long bool) (all []outage) {
	lengths := []int{100}
	if long {
		lengths = []int{30, 100, 300}
	}
	for _, length := range lengths {
		for _, of := range []bool{false, true} {
			for _, how := range []string{dead, half, slow, bursts} {
				all = append(all, outage{length, how, of})
			}
		}
	}
	return append(all, outage{length: 100, how: database})
}

// mostWorse is how much worse than without the outage a figure may be in the mean.
const mostWorse = 0.02

// errWorse reports that an outage costs more than mostWorse.
var errWorse = errors.New("an outage has left heed worse than it may")

// Run runs the study: outages of 100 events, and of 30, 100 and 300 in the long form.
func Run(ctx context.Context, call *kit.Call) (err error) {
	defer kit.Catch(&err)
	seeds := call.Count("seeds", 5, 20, "how many lives each outage has")
	seed := call.Uint64("seed", 2026, "the seed of the first life")
	kit.Check(call.Parse())
	s := study{seeds: *seeds, seed: *seed, outages: outages(call.Long)}
	s.play(ctx)
	return s.report(call.Out, call)
}

// A study has the lives of all cells.
type study struct {
	seeds   int
	seed    uint64
	outages []outage
	skip    [2]bool // heed's lives, or the control's

	without map[int][]life // by the length of the time that the outage would have taken
	heed    [][]life       // by outage
	control [][]life
}

// play lets all lives happen.
func (s *study) play(ctx context.Context) {
	var jobs []func()
	add := func(o outage, control bool) []life {
		if o.how != "" && (s.skip[0] && !control || s.skip[1] && control) {
			return nil
		}
		lives := make([]life, s.seeds)
		if control {
			lives = lives[:(s.seeds+3)/4] // its figures differ by far
		}
		for i := range lives {
			jobs = append(jobs, func() { lives[i] = live(ctx, o, control, s.seed+uint64(i)) })
		}
		return lives
	}
	s.without = make(map[int][]life)
	for _, o := range s.outages {
		if s.without[o.length] == nil {
			s.without[o.length] = add(outage{length: o.length}, false)
		}
		s.heed, s.control = append(s.heed, add(o, false)), append(s.control, add(o, true))
	}
	kit.Parallel(ctx, len(jobs), func(i int) { jobs[i]() })
}

// worst returns by how much lives are worse than those without the outage, in the mean and in the
// worst of the hundreds.
func worst(lives, without []life, of func(l *life, hundred int) float64) (e kit.Estimate) {
	for h := range hundreds {
		each := make([]float64, len(lives))
		for i := range lives {
			each[i] = of(&without[i], h) - of(&lives[i], h)
		}
		if m := kit.Mean(each); h == 0 || m.Mean > e.Mean {
			e = m
		}
	}
	return e
}

// figures are what is measured in each hundred after the outage. More is better.
var figures = []struct {
	name string
	of   func(l *life, hundred int) float64
}{
	{"best arm", func(l *life, h int) float64 { return l.best[h] }},
	{"good heuristic", func(l *life, h int) float64 { return l.trust[h][0] }},
	{"bad heuristic", func(l *life, h int) float64 { return -l.trust[h][1] }},
	{"good way", func(l *life, h int) float64 { return l.trust[h][2] }},
	{"bad way", func(l *life, h int) float64 { return -l.trust[h][3] }},
}

func points(e kit.Estimate) string { return fmt.Sprintf("%.1f ±%.1f", 100*e.Mean, 100*e.Half) }

// report writes the page, and returns an error if an outage costs too much.
func (s *study) report(w io.Writer, call *kit.Call) error {
	fmt.Fprintf(w, head, call.Command(), s.seeds)
	fmt.Fprint(w, "| outage | unanswered | control |")
	for _, f := range figures {
		fmt.Fprintf(w, " %s | control |", f.name)
	}
	fmt.Fprint(w, "\n|---|---|---|")
	for range figures {
		fmt.Fprint(w, "---|---|")
	}
	fmt.Fprintln(w)
	var failed error
	for i, o := range s.outages {
		heed, control, without := s.heed[i], s.control[i], s.without[o.length]
		lost := func(lives []life) string {
			return fmt.Sprintf("%.0f", kit.MeanOf(lives, func(l *life) float64 {
				return float64(l.unanswered)
			}).Mean)
		}
		fmt.Fprintf(w, "| %s | %s | %s |", o, lost(heed), lost(control))
		for _, f := range figures {
			got := worst(heed, without, f.of)
			fmt.Fprintf(w, " %s | %s |", points(got), points(worst(control, without, f.of)))
			if got.Mean > mostWorse {
				failed = fmt.Errorf("%w: %s: %s by %s points", errWorse, o, f.name, points(got))
			}
		}
		fmt.Fprintln(w)
	}
	s.reportHundreds(w)
	return failed
}

// reportHundreds writes how often the best arm was chosen in each hundred.
func (s *study) reportHundreds(w io.Writer) {
	fmt.Fprint(w, shares)
	row := func(name string, lives []life) {
		fmt.Fprintf(w, "| %s |", name)
		lowest := 1.
		for h := range hundreds {
			share := kit.MeanOf(lives, func(l *life) float64 { return l.best[h] })
			fmt.Fprintf(w, " %.1f |", 100*share.Mean)
		}
		for i := range lives {
			lowest = min(lowest, lives[i].best[0])
		}
		fmt.Fprintf(w, " %.0f |\n", 100*lowest)
	}
	for i, o := range s.outages {
		if i == 0 || s.outages[i-1].length != o.length && o.how != database {
			row(fmt.Sprintf("no outage in the time of %d events", o.length), s.without[o.length])
		}
		row(o.String(), s.heed[i])
		row(o.String()+" (control)", s.control[i])
	}
}

const head = `# Incidents: what outages leave behind

` + "`%s`" + ` wrote this page. An agent with three prompts, whose answers are
good 90, 70 and 50 times of 100, answers 300 events, then the events of an outage,
and then 500 more. Of ten
people six say whether the answer was good. The others are silent, which counts as weak approval.
There are %d lives, and a quarter of them for the control. Each is compared with the same life
without the events of the outage.

A provider that is dead refuses each connection; one that is slow answers no call in its time; one
that limits rates refuses ten calls of twenty. The control is the same agent, with each failed call
counted as a failure of the arm, by the person who asked. For the database, the control sets ` + "`Config.RequireStore`" + `.

A figure is by how many points the agent is worse off than without the outage, in the worst of the
five hundreds after it, ± half of a 95 %% interval of the paired difference: for the best arm, how
much less often it is chosen; for a good heuristic or way of working, how much less it is trusted,
and for a bad one, how much more. At most two points are allowed, and a negative figure is a gain.
"Unanswered" is how many events got no answer, during the outage or before heed noticed its end.

`

const shares = `
How often the best arm is chosen, in percent, in each of the five hundreds after the outage, and in
the first one of the life that is worst off:

| outage | 1st | 2nd | 3rd | 4th | 5th | worst |
|---|---|---|---|---|---|---|
`
