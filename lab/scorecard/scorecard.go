// Package scorecard attacks what heed promises, and reports which promises held. Each line of it
// has controls: unsafe variants that the same attack must catch, in the same run.
//
//	go run ./lab                          # the short form of all lines, in some minutes
//	go run ./lab -report FILE             # writes the page, as Markdown
//	go run ./lab scorecard S2 forgetting  # some lines only
//	go run ./lab scorecard -long -seed 0  # the long form, with another seed each time
//
// The lines S1 to S10 reach further than a test of a package: they kill processes, cut the power
// and stop servers. The others are short forms of the lab's studies. What a test can show is among
// the tests of this package: disks that fail, and months that pass.
package scorecard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/lab/agent"
	"github.com/heedhq/heed/lab/board"
	"github.com/heedhq/heed/lab/incidents"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/lab/poison"
)

// all are the lines, in the order of the report. What a test of a package can show is not among
// them: see docs/operate.md.
func all() []card.Line {
	return append(powerCutLines(), killedLine(modernc, 100, 1000), killedLine(ncruces, 50, 500),
		killedLine(relaxed, 20, 200), killedLine(postgres, 50, 500), stoppedLine(),
		appliesLine(modernc), appliesLine(ncruces), appliesLine(postgres), injectionLine(),
		forgettingLine(), poison.Line(), incidents.Line(), agent.Line(), board.Line())
}

// Run runs the lines that the call names, or all.
func Run(ctx context.Context, call *kit.Call) (err error) {
	defer kit.Catch(&err)
	report := call.String("report", "", "write the page to this `file`")
	seed := call.Uint64("seed", 1, "what all randomness comes from; 0: another one each time")
	side := call.Int("parallel", runtime.NumCPU(), "how many lines run side by side")
	patience := call.Int("patience", 1, "multiplies the budgets, for a busy machine")
	list := call.Bool("list", false, "list the lines")
	if err := call.ParseNames(); err != nil {
		return err
	}
	lines := all()
	for _, name := range call.Names {
		if !slices.ContainsFunc(lines, func(l card.Line) bool { return isCalled(l, name) }) {
			return call.Usage("there is no line %q: -list prints them", name)
		}
	}
	lines = slices.DeleteFunc(lines, func(l card.Line) bool {
		named := slices.ContainsFunc(call.Names, func(name string) bool { return isCalled(l, name) })
		return len(call.Names) > 0 && !named
	})
	if *list {
		for _, line := range lines {
			fmt.Fprintf(call.Out, "%-14s  %s\n", line.Name, line.Promise)
		}
		return nil
	}
	if *seed == 0 {
		*seed = rand.Uint64()%1_000_000 + 1
	}
	defer func() { err = errors.Join(err, closeCluster()) }()
	page := card.Report{Command: call.Command(), At: time.Now(), Machine: card.ThisMachine(ctx),
		Lines: all()}
	fmt.Fprintf(call.Out,
		"%d attacks on what heed promises, each with controls that have to fail; at most %s.\n\n",
		len(lines),
		map[bool]string{false: "ten minutes", true: "two hours"}[call.Long])
	settings := card.Settings{Long: call.Long, Seed: *seed, Patience: *patience}
	page.Outcomes = card.Run(ctx, lines, settings, *side,
		func(o card.Outcome) { fmt.Fprintln(call.Out, o.Text()) })
	if *report != "" {
		kit.Check(os.WriteFile(*report, []byte(page.Markdown()), 0o600))
	}
	return sum(call, page)
}

// sum writes how many lines passed and what was not run, and returns an error if lines failed.
func sum(call *kit.Call, page card.Report) error {
	count := make(map[card.State]int)
	for _, o := range page.Outcomes {
		count[o.State]++
	}
	fmt.Fprintf(call.Out, "\n%d passed, %d failed, %d skipped, in %s.\n", count[card.Pass],
		count[card.Fail], count[card.Skipped], time.Since(page.At).Round(time.Second))
	if !call.Long {
		fmt.Fprintln(call.Out, "Not run: the long forms (-long), what is not named, and the other "+
			"programs of the lab (go run ./lab list). Tests of packages: go test work. All of it: "+
			"bash .ci/full.")
	}
	if count[card.Fail] > 0 {
		return fmt.Errorf("%d of %d lines failed", count[card.Fail], len(page.Outcomes))
	}
	return nil
}

// isCalled reports whether a name is a line's, or the first word of it: "S6" selects each line with
// that number.
func isCalled(l card.Line, name string) bool {
	return strings.EqualFold(l.Name, name) || strings.EqualFold(strings.Fields(l.Name)[0], name)
}
