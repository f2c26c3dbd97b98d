package scorecard

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
)

const (
	left     = "goroutines left"
	foreign  = "modules that reach users beyond the known ones"
	findings = "packages that vet or the race detector find fault with"
)

func hygiene() []card.Line {
	one := func(bar string, short, long int64, budget time.Duration) (a, b card.Form) {
		bars := []card.Bar{card.AtMost(bar, 0)}
		return card.Form{Bars: bars, Work: short, Budget: budget}, card.Form{Bars: bars, Work: long, Budget: 4 * time.Hour}
	}
	goroutines := card.Line{
		Name: "S16 goroutines", Promise: "heed leaves no goroutine behind.",
		Attack:   "A consumer and heed.Run are started 500 times, work, have hooks that hang, and are stopped.",
		Alone:    true, // the others have goroutines, too
		Run:      cycles(true),
		Controls: []card.Control{{Name: "a worker that nobody waits for", Run: cycles(false)}},
	}
	goroutines.Short, goroutines.Long = one(left, 500, 5_000, 5*time.Minute)
	modules := card.Line{
		Name: "S16 modules", Promise: "A program that imports heed gets three small libraries with it, and no driver.",
		Attack:   "go list names the modules behind each package that hosts import.",
		Run:      modules(".", "./..."),
		Controls: []card.Control{{Name: "the command, which has drivers", Run: modules("cmd/heed", "./...")}},
	}
	modules.Short, modules.Long = one(foreign, 20, 20, 5*time.Minute)
	checks := card.Line{
		Name: "S16 checks", Promise: "Neither vet nor the race detector finds fault with heed.",
		Attack: "go vet of all packages, and the concurrent tests under -race, in random order, 20 times.", LongOnly: true, Alone: true,
		Run:      vetted(""),
		Controls: []card.Control{{Name: "sums without a lock", Run: vetted("no lock")}},
	}
	checks.Short, checks.Long = one(findings, 1, 5, time.Minute)
	return []card.Line{goroutines, modules, checks}
}

// cycles starts and stops what has goroutines.
func cycles(waits bool) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		d, err := newDesk(ctx, nil)
		if err != nil {
			return r, err
		}
		hook := attribution.Hook{Outcome: func(ctx context.Context, _ strategy.Outcome) error { <-ctx.Done(); return ctx.Err() }}
		base := runtime.NumGoroutine()
		n := card.Pick(s, 500, 5000)
		if !waits {
			n = 20
		}
		for i := range n {
			if d.belt.events, err = d.reports(3); err != nil {
				return r, err
			}
			for k := range d.belt.events {
				d.belt.events[k].ID = fmt.Sprint(i, " ", k)
			}
			running, cancel := context.WithCancel(ctx)
			ended := make(chan error)
			go func() { ended <- heed.Run(running, time.Microsecond, d.kept, d.learner) }()
			_, err := d.consume(ctx, attribution.Config{Workers: 3, Hook: hook, HookTimeout: time.Millisecond}, 1+i%3)
			cancel()
			if waits {
				err = errors.Join(err, <-ended)
			}
			if err != nil {
				return r, err
			}
			r.Work++
		}
		r.Values = map[string]float64{left: float64(settled(base))}
		return r, nil
	}
}

// settled waits a little for goroutines that are about to end, and returns how many more there are than before.
func settled(base int) int {
	for range 100 {
		if runtime.NumGoroutine() <= base {
			return 0
		}
		time.Sleep(10 * time.Millisecond)
	}
	return runtime.NumGoroutine() - base
}

// known are the libraries that may reach users: UUIDs and numerics.
var known = []string{"github.com/heedhq/heed", "github.com/google/uuid", "gonum.org/v1/gonum"}

func modules(dir string, packages ...string) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		v, err := execute(ctx, filepath.Join(s.Root, dir), "go", nil, append([]string{"list"}, packages...)...)
		if err != nil || v.failed {
			return r, errors.Join(err, fmt.Errorf("go list: %s", tail(v.output)))
		}
		args := []string{"list", "-deps", "-f", "{{if and (not .Standard) .Module}}{{.Module.Path}}{{end}}"}
		for path := range strings.FieldsSeq(string(v.output)) {
			if !strings.Contains(path, "/internal/") { // hosts can't import those
				args = append(args, path)
			}
		}
		v, err = execute(ctx, filepath.Join(s.Root, dir), "go", nil, args...)
		if err != nil || v.failed {
			return r, errors.Join(err, fmt.Errorf("go list: %s", tail(v.output)))
		}
		var others []string
		for module := range strings.FieldsSeq(string(v.output)) {
			if r.Work++; !slices.Contains(known, module) && !slices.Contains(others, module) {
				others = append(others, module)
			}
		}
		r.Values = map[string]float64{foreign: float64(len(others))}
		r.Note("%v", others)
		return r, nil
	}
}

// concurrent are the tests that let goroutines do everything at once.
var concurrent = []suite{
	{"memstore", "TestStoreUnderFire|TestStoreKeepsTheContract/.*concurrent"},
	{"strategy", "TestRacingDeliveries"},
	{"feedback", "TestRacesLeaveALegalHistory"},
	{"internal/memo", "TestCache"},
}

func vetted(bug string) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		r.Values = map[string]float64{findings: 0}
		judge := func(what string, failed bool, output []byte) {
			if r.Work++; failed {
				r.Values[findings]++
				r.Note("%s: %s", what, tail(output))
			}
		}
		suites, times := concurrent[:1], "-test.count=1"
		if bug == "" {
			v, err := execute(ctx, s.Root, "go", nil, "vet", "./...")
			if err != nil {
				return r, err
			}
			judge("go vet", v.failed, v.output)
			suites, times = concurrent, "-test.count=20"
		}
		for _, t := range suites {
			binary, err := heedTests.binary(ctx, s.Root, t.dir, "-race")
			if err != nil {
				return r, err
			}
			v, err := execute(ctx, filepath.Join(s.Root, t.dir), binary, []string{seedVariable + "=" + bug},
				"-test.run="+t.run, "-test.shuffle=on", "-test.v", times)
			if err != nil {
				return r, err
			}
			for name := range strings.SplitSeq(t.run, "|") {
				if !v.failed && !strings.Contains(string(v.output), "=== RUN   "+strings.Split(name, "/")[0]) { // a panic ends all
					return r, fmt.Errorf("no test of %s ran for %s\n%s", t.dir, name, tail(v.output))
				}
			}
			judge(t.dir, v.failed, v.output)
		}
		return r, nil
	}
}
