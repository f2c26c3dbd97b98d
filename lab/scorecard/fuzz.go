package scorecard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
)

// targets are what reads text that others wrote, and what writes it into prompts.
var targets = []suite{
	{"decision", "FuzzParsePrediction"}, {"decision", "FuzzExtraction"}, {"decision", "FuzzParseMeanings"},
	{"feedback", "FuzzDecodeEvent"}, {"feedback", "FuzzImport"},
	{"memstore", "FuzzLoad"},
	{"prompt", "FuzzLine"}, {"prompt", "FuzzQuote"}, {"prompt", "FuzzCode"},
	{"strategy/attribution", "FuzzReport"}, {"strategy/partition", "FuzzImport"},
	{"web", "FuzzRequest"},
}

const crashes = "targets with a finding"

func fuzzing() []card.Line {
	form := func(each int64, budget time.Duration) card.Form {
		return card.Form{Bars: []card.Bar{card.AtMost(crashes, 0)}, Work: each * int64(len(targets)), Budget: budget}
	}
	const short, long = 20_000, 1_000_000
	return []card.Line{{
		Name:    "S11",
		Promise: "No text of others makes heed panic, hang or break a promise about texts.",
		Attack: "Go's fuzzing of replies, prompts, events, reports, archives, partitions, dumps and requests. The long form is guided by coverage, the short one mutates the seeds " +
			"blindly.",
		Short: form(short, 15*time.Minute), Long: form(long, 6*time.Hour),
		Run: fuzzed(targets, "", short, long),
		Controls: []card.Control{{
			Name: "a panic for some texts with a digit", Run: fuzzed([]suite{{"prompt", "FuzzLine"}}, "panic", short, short),
		}},
	}}
}

var executions = regexp.MustCompile(`execs: (\d+) `)

func fuzzed(targets []suite, bug string, short, long int64) card.Attempt {
	return func(ctx context.Context, s card.Settings) (r card.Result, err error) {
		r.Values = map[string]float64{crashes: 0}
		var flags []string
		if s.Long {
			flags = []string{"-fuzz=Fuzz"} // instruments the code
		}
		cache, err := os.MkdirTemp("", "scorecard")
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
		for _, t := range targets {
			binary, err := heedTests.binary(ctx, s.Root, t.dir, flags...)
			if err != nil {
				return r, err
			}
			dir := filepath.Join(s.Root, t.dir)
			if bug != "" {
				dir = cache // where its finding is written
			}
			each := card.Pick(s, short, long)
			// Without a limit, Go spends a minute on making each new input shorter, and tries no other meanwhile.
			v, err := execute(ctx, dir, binary, []string{seedVariable + "=" + bug}, "-test.run=^$", "-test.fuzz=^"+t.run+"$",
				fmt.Sprintf("-test.fuzztime=%dx", each), "-test.fuzzminimizetime=1000x", "-test.parallel=1", "-test.fuzzcachedir="+cache)
			if err != nil {
				return r, err
			}
			if all := executions.FindAllSubmatch(v.output, -1); len(all) > 0 {
				n, _ := strconv.ParseInt(string(all[len(all)-1][1]), 10, 64)
				r.Work += n
			}
			if !v.failed {
				continue
			}
			if !bytes.Contains(v.output, []byte("Failing input written")) && !bytes.Contains(v.output, []byte("panic: ")) {
				return r, fmt.Errorf("%s in %s: %s", t.run, t.dir, tail(v.output))
			}
			r.Work = max(r.Work, 1)
			r.Values[crashes]++
			r.Note("%s in %s: %s", t.run, t.dir, tail(v.output))
		}
		r.Faults = r.Work
		return r, nil
	}
}
