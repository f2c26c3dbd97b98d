package lives

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/heedhq/heed/lab/internal/kit"
)

// defaults are those of packages learning and decision.
var defaults = rule{strength: 2, silence: 0.4, agreement: 0.24, disagreement: 0.072, rejected: 0.072, mass: 6, withhold: 1}

// A study is what is measured.
type study struct {
	lives, events int
	seed          uint64
	Starts        []start
	Weights       []weights
	Settings      []setting
}

// A start says how heuristics start in one crowd with models of one kind. All numbers but Model and Median are shares of lives or of events.
type start struct {
	Crowd  string
	Model  float64 // how often it is right; 0: drawn from 0.7 to 0.95
	Soon   float64 // good ones that answer by the 40th event
	Later  float64 // good ones that do by the 80th
	Median int     // the event of a good one's first answer; 0: more than half never answer
	Stay   float64 // the events of the second half that good ones answer
	False  float64 // bad ones that ever answer
	LetIn  float64 // the events of the second half that bad ones answer which began with luck
}

// Weights say how heuristics start with other weights of agreement, by crowd.
type weights struct {
	Name  string
	Soon  []float64
	False []float64
}

// A setting says how heuristics do under one rule, in each crowd.
type setting struct {
	Name   string
	Teach  int     // how many thumbs-ups of one person bring 0.3 to 0.7; 0: no number does
	Median int     // as above, over all crowds
	Stay   float64 // as above, over all crowds
	LetIn  float64
	// the events of the second half that heuristics answer which turned bad at its beginning
	Turned float64
	Regret []float64 // by crowd, for 1,000 events
	Mean   float64   // of the regrets
}

// models are how often they are right; 0: drawn from 0.7 to 0.95.
var models = []float64{0, 0.7, 0.8, 0.95}

// starts are the crowds of the first table. Without a limit on persons, a team does as one person does.
func starts() []crowd { return []crowd{quiet, talkative, complaining, careless, talkative.spammed()} }

func crowds() []crowd {
	return []crowd{quiet, talkative, complaining, careless, quiet.team(), talkative.team(), complaining.team(), talkative.spammed()}
}

// mix has the number of heuristics of each kind in 100, for sums of regrets.
var mix = []struct {
	subject
	share float64
}{{good, 0.45}, {bad, 0.45}, {letIn, 0.02}, {turning, 0.08}}

// named is a rule with its name.
type named struct {
	name string
	rule rule
}

var (
	silences  = []float64{0, 0.1, 0.2, 0.3, 0.4, 1}
	strengths = []float64{1, 2, 4}
	people    = []float64{0, 1, 3, 10}
)

// rules returns the default and what differs from it in one setting, or all combinations.
func rules(all bool) (list []named) {
	if all {
		for _, strength := range strengths {
			for _, person := range people {
				for _, silence := range silences {
					r := defaults.withStrength(strength)
					r.person, r.silence = person, silence
					list = append(list, named{fmt.Sprintf("strength %v, person %s, silence %v", strength, limit(person), silence), r})
				}
			}
		}
		return list
	}
	list = append(list, named{"the defaults", defaults})
	other := func(name string, change func(r *rule)) {
		r := defaults
		change(&r)
		if r != defaults {
			list = append(list, named{name, r})
		}
	}
	for _, x := range silences {
		other(fmt.Sprintf("silence %v", x), func(r *rule) { r.silence = x })
	}
	for _, x := range strengths {
		other(fmt.Sprintf("strength %v", x), func(r *rule) { *r = r.withStrength(x) })
	}
	for _, x := range people {
		other("a person at most "+limit(x), func(r *rule) { r.person = x })
	}
	other("silence at most 1 more than the rest", func(r *rule) { r.silences = 1 })
	other("Guarded", func(r *rule) { r.person, r.silences = 1, 1 })
	return list
}

// alternatives are other weights of agreement.
func alternatives() []named {
	with := func(name string, agreement, disagreement, rejected, mass, withhold float64) named {
		r := defaults
		r.agreement, r.disagreement, r.rejected, r.mass, r.withhold = agreement, disagreement, rejected, mass, withhold
		return named{name, r}
	}
	d := defaults
	return []named{
		{"the defaults", d},
		with("a rejected answer: 0.24", d.agreement, d.disagreement, d.agreement, d.mass, 1),
		with("a rejected answer: a click", d.agreement, d.disagreement, click, d.mass, 1),
		with("withheld in 9 of 10 events", d.agreement, d.disagreement, d.rejected, d.mass, 0.9),
		with("at most 4", d.agreement, d.disagreement, d.rejected, 4, 1),
		with("without a limit", d.agreement, d.disagreement, d.rejected, 0, 1),
		with("0.195, 0.047, at most 5.1", 0.195, 0.047, 0.047, 5.1, 1),
		with("0.25, 0.085, at most 7", 0.25, 0.085, 0.085, 7, 1),
		with("0.38, 0.17, at most 10", 0.38, 0.17, 0.17, 10, 1),
		with("0.5, 0.2, at most 10", 0.5, 0.2, 0.2, 10, 1),
	}
}

func limit(x float64) string {
	if x == 0 {
		return "unlimited"
	}
	return fmt.Sprint(x)
}

func (s *study) run(ctx context.Context, all bool, progress func(done, of int)) error {
	rules, crowds, starts, others := rules(all), crowds(), starts(), alternatives()
	s.Starts, s.Weights, s.Settings = make([]start, len(starts)*len(models)), make([]weights, len(others)), make([]setting, len(rules))
	n, m := len(s.Starts), len(s.Weights)
	return kit.Parallel(ctx, n+m+len(rules), progress, func(i int) error {
		switch {
		case i < n:
			s.Starts[i] = s.start(&starts[i/len(models)], models[i%len(models)])
		case i < n+m:
			s.Weights[i-n] = s.weights(&others[i-n], starts)
		default:
			s.Settings[i-n-m] = s.setting(&rules[i-n-m], crowds)
		}
		return ctx.Err()
	})
}

// played returns the lives of a subject.
func (s *study) played(r *rule, c *crowd, sub subject, events int) []life {
	lives := make([]life, s.lives)
	for i := range lives {
		lives[i], _ = play(r.open(c.people), c, &sub, events, s.seed<<20+uint64(i)) // a book has no errors
	}
	return lives
}

// mean returns the mean over lives.
func mean(lives []life, f func(l *life) float64) (m float64) {
	for i := range lives {
		m += f(&lives[i]) / float64(len(lives))
	}
	return m
}

// within reports whether the heuristic answered one of the first events.
func within(events int) func(l *life) float64 {
	return func(l *life) float64 {
		if l.began >= 0 && l.began < events {
			return 1
		}
		return 0
	}
}

// median returns the event of the first answer in the middle one of the lives, and 0 if that one never answers.
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
		Crowd: c.name, Model: model, Soon: mean(goods, within(40)), Later: mean(goods, within(80)), Median: median(goods),
		Stay: mean(goods, half), False: mean(with(bad), within(s.events)), LetIn: mean(with(letIn), half),
	}
}

func (s *study) weights(n *named, crowds []crowd) weights {
	w := weights{Name: n.name}
	for i := range crowds {
		w.Soon = append(w.Soon, mean(s.played(&n.rule, &crowds[i], good, min(s.events, 40)), within(40)))
		w.False = append(w.False, mean(s.played(&n.rule, &crowds[i], bad, s.events), within(s.events)))
	}
	return w
}

func (s *study) setting(n *named, crowds []crowd) setting {
	x := setting{Name: n.name, Teach: n.rule.teach()}
	half := func(l *life) float64 { return l.late(s.events) }
	var all [4][]life
	for i := range crowds {
		regret := 0.
		for k := range mix {
			lives := s.played(&n.rule, &crowds[i], mix[k].subject, s.events)
			regret += mix[k].share * mean(lives, func(l *life) float64 { return l.regret }) * 1000 / float64(s.events)
			all[k] = append(all[k], lives...)
		}
		x.Regret = append(x.Regret, regret)
		x.Mean += regret / float64(len(crowds))
	}
	x.Median, x.Stay, x.LetIn, x.Turned = median(all[0]), mean(all[0], half), mean(all[2], half), mean(all[3], half)
	return x
}

// teach returns how many thumbs-ups of one person make a heuristic trusted.
func (r *rule) teach() int {
	b := r.open(1)
	for n := 1; n <= 100; n++ {
		b.people[0].hears(1, r.silence)
		b.known = 0
		if b.confidence() >= threshold {
			return n
		}
	}
	return 0
}

func (s *study) report(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	percent := func(x float64) string { return fmt.Sprintf("%.1f", 100*x) }
	fmt.Fprintf(table, "%d lives each, in %%\n", s.lives)
	fmt.Fprintln(table, "crowd\tmodel is right\tgood by 40\tby 80\tmedian\tstay\tbad ever\tlet in stay\t")
	for _, x := range s.Starts {
		model := "70 to 95"
		if x.Model > 0 {
			model = fmt.Sprintf("%.0f", 100*x.Model)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t\n", x.Crowd, model, percent(x.Soon), percent(x.Later), x.Median, percent(x.Stay), percent(x.False), percent(x.LetIn))
	}
	fmt.Fprintln(table)
	fmt.Fprint(table, "good by 40, bad ever\t")
	for _, c := range starts() {
		fmt.Fprint(table, c.name, "\t")
	}
	fmt.Fprintln(table)
	for _, x := range s.Weights {
		fmt.Fprint(table, x.Name, "\t")
		for i := range x.Soon {
			fmt.Fprintf(table, "%s, %s\t", percent(x.Soon[i]), percent(x.False[i]))
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintln(table)
	fmt.Fprint(table, "regret of 1,000 events\tthumbs to teach\tmedian\tstay\tlet in stay\tturned stay\t")
	for _, c := range crowds() {
		fmt.Fprint(table, c.name, "\t")
	}
	fmt.Fprintln(table, "mean\t")
	for _, x := range s.Settings {
		teach := "never"
		if x.Teach > 0 {
			teach = fmt.Sprint(x.Teach)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t", x.Name, teach, x.Median, percent(x.Stay), percent(x.LetIn), percent(x.Turned))
		for _, regret := range x.Regret {
			fmt.Fprintf(table, "%.1f\t", regret)
		}
		fmt.Fprintf(table, "%.1f\t\n", x.Mean)
	}
	return table.Flush()
}
