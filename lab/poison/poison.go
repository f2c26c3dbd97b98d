// Package poison measures what false accounts do to a learner among honest people: how often it
// chooses the worst arm, and the best, against the same people without them.
//
//	go run ./lab poison [-long] [-runs N] [-seed S]
//
// Honest people try what the learner chooses and report how it went. In between, false accounts
// report what they like, of any arm, so that only heed's limits stop them.
package poison

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/heedhq/heed/lab/internal/kit"
)

// rates are how often each arm goes well.
var rates = []float64{0.75, 0.6, 0.5, 0.4}

const bestArm, worstArm = 0, 3

// A liar is a way to lie. It returns how many outcomes each account reported by an honest event.
type liar struct {
	name, about string
	events      int // of honest people
	said        func(event int) int
	lie         func(w *world, account, number int)
}

var liars = []liar{
	{"know", "each praises the worst arm 100 times, on the items in turn, in 200 honest events", 200,
		func(event int) int { return event / 2 }, (*world).praise},
	{"know both", "each praises the worst arm 50 times and blames the best as often", 200,
		func(event int) int { return event / 2 },
		func(w *world, account, number int) {
			if number%2 == 0 {
				w.praise(account, number/2)
			} else {
				w.say(w.item(number/2+account), bestArm, name(account), -1)
			}
		}},
	{"wait", "each tells the truth of 50 choices, and then praises the worst arm 100 times", 200,
		func(event int) int { return min(event, 50) + max(event-100, 0) },
		func(w *world, account, number int) {
			if number < 50 {
				w.truth(name(account))
			} else {
				w.praise(account, number)
			}
		}},
	{"slow", "each praises the worst arm once in 20 honest outcomes, 10 times in all", 200,
		func(event int) int { return event / 20 }, (*world).praise},
	{"loud", "each reacts to 500 honest choices: it praises the worst arm and blames all others", 500,
		func(event int) int { return event },
		func(w *world, account, _ int) {
			value := -1.
			if w.arm == worstArm {
				value = 1
			}
			w.react(value, name(account))
		}},
}

func name(account int) string { return fmt.Sprint("false", account) }

// A trial is a number of honest people, who each report as much, and of false accounts.
type trial struct {
	*liar
	accounts, items int
	instrument      bool   // CI makes as many choices, too, and judges them
	alone           string // who speaks in place of the people, if it is one
}

// people is how many honest people there are.
const people = 40

// A played run is what came of it.
type played struct {
	worst, best float64 // their share of the choices after the events
}

// Run runs the study: 20 runs of each trial, and in the long form 200.
func Run(ctx context.Context, call *kit.Call) (err error) {
	defer kit.Catch(&err)
	runs := call.Count("runs", 20, 200, "how often each is done")
	seed := call.Uint64("seed", 2026, "the seed of the worlds and choices")
	kit.Check(call.Parse())
	fmt.Fprintf(call.Out, "`%s`: %d honest people and false accounts. Arms succeed in %v. %d runs, ± half of a 95 %% interval.\n",
		call.Command(), people, rates, *runs)
	for i := range liars {
		liars[i].report(ctx, call.Out, *runs, *seed)
	}
	return nil
}

// trials of a liar: by the number of accounts and of items, and one where CI speaks, too.
func (l *liar) trials() (all []trial) {
	for _, items := range []int{1, 5, 20, 100} {
		for _, accounts := range []int{0, 1, 3, 10} {
			all = append(all, trial{liar: l, accounts: accounts, items: items})
		}
	}
	return append(all, trial{liar: l, items: 20, instrument: true},
		trial{liar: l, items: 20, instrument: true, accounts: 3})
}

// report plays all trials of a liar, and writes a table.
func (l *liar) report(ctx context.Context, w io.Writer, runs int, seed uint64) {
	trials := l.trials()
	all := make([]played, len(settings)*len(trials)*runs)
	kit.Parallel(ctx, len(all), func(job int) {
		at := job / runs
		setting, trial := settings[at%len(settings)], trials[at/len(settings)]
		all[job] = play(ctx, setting, trial, seed+uint64(job%runs)) //nolint:gosec // not negative
	})
	of := func(trial, setting int) []played {
		at := (trial*len(settings) + setting) * runs
		return all[at : at+runs]
	}
	fmt.Fprintf(w, "\n%s: %s. Points more of the worst arm's choices, fewer of the best arm's.\n\n",
		l.name, l.about)
	table := kit.NewTable(w)
	fmt.Fprint(table, "| items | false accounts |")
	for _, setting := range settings {
		fmt.Fprintf(table, " %s |", setting.name)
	}
	fmt.Fprintln(table, "\n|---|---|"+strings.Repeat("---|", len(settings)))
	honest := 0
	for i, trial := range trials {
		if trial.accounts == 0 {
			honest = i
			continue
		}
		items := fmt.Sprint(trial.items)
		if trial.instrument {
			items += ", and CI"
		}
		fmt.Fprintf(table, "| %s | %d |", items, trial.accounts)
		for j := range settings {
			fmt.Fprintf(table, " %s |", more(of(i, j), of(honest, j)))
		}
		fmt.Fprintln(table)
	}
	kit.Check(table.Flush())
}

// more returns how many points more the worst arm has, and how many fewer the best.
func more(with, without []played) string {
	points := func(share func(*played) float64) kit.Estimate {
		differences := make([]float64, len(with))
		for i := range with {
			differences[i] = 100 * (share(&with[i]) - share(&without[i]))
		}
		return kit.Mean(differences)
	}
	worst := points(func(p *played) float64 { return p.worst })
	best := points(func(p *played) float64 { return -p.best })
	return fmt.Sprintf("%.1f ± %.1f, %.1f ± %.1f", worst.Mean, worst.Half, best.Mean, best.Half)
}

// play lets honest people and false accounts speak in turn.
func play(ctx context.Context, setting setting, t trial, seed uint64) (p played) {
	w := newWorld(ctx, setting, t, seed)
	told := 0
	for event := range t.events {
		w.choose()
		w.react(w.value, cmp.Or(t.alone, fmt.Sprint("person", event%people)))
		if t.instrument {
			w.truth(ci)
		}
		for ; told < t.said(event+1); told++ {
			for account := range t.accounts {
				t.lie(w, account, told)
			}
		}
	}
	p.worst, p.best = w.shares()
	return p
}
