// Package scorecard attacks heed's promises of reliability where a test of a package does not
// reach: it kills processes, cuts the power, stops servers, fills disks, and lets months pass. It
// reports which promises held:
//
//	go run ./lab scorecard                # the short form, about a minute
//	go run ./lab scorecard S2 S5          # some lines only
//	go run ./lab scorecard -long -seed 0  # the long form, with another seed each time
//	go run ./lab scorecard -report FILE   # writes the report too, as Markdown
//
// Each line prints its name, what was measured, the bar, PASS, FAIL or SKIPPED, the seed, the work
// done and its controls. A control is an unsafe variant that the line must catch, in the same run.
package scorecard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
)

// all are the lines, in the order of the report. What a test of a package can show is not among
// them: see docs/operate.md.
func all() []card.Line {
	return append(powerCutLines(),
		killedLine(modernc, 100, 1000), killedLine(ncruces, 50, 500), killedLine(relaxed, 20, 200),
		killedLine(postgres, 50, 500),
		stoppedLine(),
		faultsLine(), readsLine(),
		appliesLine(modernc), appliesLine(ncruces), appliesLine(postgres),
		approvalsLine(modernc), approvalsLine(postgres),
		injectionLine(),
		soakLine(),
	)
}

// Run runs the lines that the call names, or all.
func Run(ctx context.Context, call *kit.Call) (err error) {
	report := call.String("report", "",
		"write a report between the markers of this `file`, where rows of other lines stay")
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
	page := card.Report{At: time.Now(), Machine: card.ThisMachine(ctx), Long: call.Long, Lines: all()}
	fmt.Fprintln(call.Out, card.Head)
	settings := card.Settings{Long: call.Long, Seed: *seed, Patience: *patience}
	page.Outcomes = card.Run(ctx, lines, settings, *side,
		func(o card.Outcome) { fmt.Fprintln(call.Out, o.Text()) })
	took := time.Since(page.At).Round(time.Second)
	if *report != "" {
		if err := card.Write(*report, page); err != nil {
			return err
		}
	}
	if failed := card.Failed(page.Outcomes); failed > 0 {
		return fmt.Errorf("%d of %d lines failed, in %s", failed, len(lines), took)
	}
	fmt.Fprintf(call.Out, "%d lines passed or were skipped, in %s.\n", len(lines), took)
	return nil
}

// isCalled reports whether a name is a line's, or the first word of it: "S6" selects each line with
// that number.
func isCalled(l card.Line, name string) bool {
	return strings.EqualFold(l.Name, name) || strings.EqualFold(strings.Fields(l.Name)[0], name)
}
