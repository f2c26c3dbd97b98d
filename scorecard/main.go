// Command scorecard attacks heed's promises of reliability, one line each, and says which held:
//
//	go run ./scorecard                # the short form, some two minutes
//	go run ./scorecard S5 S6          # some lines only
//	go run ./scorecard -long -seed 0  # the long form, with a seed of its own
//	go run ./scorecard -report FILE   # writes the report too, as Markdown
//
// Each line prints its name, what was measured, the bar, PASS, FAIL or SKIPPED, the seed, the work done and its controls. A control is an
// unsafe variant that the line has to catch, in the same run. The exit code is 1 if a line failed.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/heedhq/heed/scorecard/internal/card"
	"github.com/heedhq/heed/scorecard/internal/databases"
)

// all are the lines, in the order of the report.
func all() []card.Line {
	lines := slices.Concat(
		linearizable(),
		exactlyOnce(),
		databases.Lines(),
		contained(),
		hung(),
		malformed(),
		injection(),
		fuzzing(),
		stateMachines(),
		poisoning(),
		seeding14(),
		hygiene(),
	)
	slices.SortStableFunc(lines, func(a, b card.Line) int { return cmp.Compare(number(a), number(b)) })
	return lines
}

// number is that of S12 in "S12 gate". A line without one comes last.
func number(l card.Line) int {
	n, err := strconv.Atoi(strings.TrimPrefix(strings.Fields(l.Name)[0], "S"))
	if err != nil {
		return math.MaxInt
	}
	return n
}

func main() {
	if databases.Child() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err := databases.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("scorecard", flag.ContinueOnError)
	flags.SetOutput(errs)
	long := flags.Bool("long", false, "run the long form: about an hour on two cores, and more on a busy machine")
	report := flags.String("report", "", "write a report in Markdown to this `file`, between its markers if it has them; with -long, rows of other lines stay")
	seed := flags.Uint64("seed", 1, "what all randomness comes from; 0: another one each time")
	side := flags.Int("parallel", runtime.NumCPU(), "how many lines run side by side")
	patience := flags.Int("patience", 1, "multiplies the budgets, for a machine that is busy with something else")
	list := flags.Bool("list", false, "list the lines")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	lines, err := chosen(all(), flags.Args())
	if err == nil && *list {
		for _, line := range lines {
			fmt.Fprintf(out, "%-14s  %s\n", line.Name, line.Promise)
		}
		return 0
	}
	var root string
	if err == nil {
		root, err = sources()
	}
	if err != nil {
		fmt.Fprintln(errs, err)
		return 2
	}
	if *seed == 0 {
		*seed = rand.Uint64()%1_000_000 + 1
	}
	began, machine := time.Now(), card.ThisMachine(ctx, root) // the tree as it is now, also if the run is interrupted
	fmt.Fprintln(out, card.Head)
	outcomes := card.Run(ctx, lines, card.Settings{Long: *long, Seed: *seed, Root: root, Patience: *patience}, *side, func(o card.Outcome) {
		fmt.Fprintln(out, o.Text())
	})
	if err := heedTests.close(); err != nil {
		fmt.Fprintln(errs, err)
	}
	failed := card.Failed(outcomes)
	fmt.Fprintf(out, "%d of %d lines failed, in %s.\n", failed, len(lines), time.Since(began).Round(time.Second))
	if *report != "" {
		page := card.Report{
			At: began, Command: strings.Join(append([]string{"go run ./scorecard"}, args...), " "), Machine: machine,
			Outcomes: outcomes, Took: time.Since(began), Long: *long,
		}
		for _, line := range all() {
			page.Names = append(page.Names, line.Name)
		}
		if err := card.Write(*report, page); err != nil {
			fmt.Fprintln(errs, err)
			return 2
		}
	}
	if failed > 0 {
		return 1
	}
	return 0
}

// chosen returns the lines of these names. "S6" means each line whose name begins with that word.
func chosen(lines []card.Line, names []string) (some []card.Line, err error) {
	if len(names) == 0 {
		return lines, nil
	}
	for _, name := range names {
		is := func(l card.Line) bool {
			return strings.EqualFold(l.Name, name) || strings.EqualFold(strings.Fields(l.Name)[0], name)
		}
		if !slices.ContainsFunc(lines, is) {
			return nil, fmt.Errorf("there is no line %q: -list prints them", name)
		}
		for _, line := range lines {
			if is(line) && !slices.ContainsFunc(some, func(l card.Line) bool { return l.Name == line.Name }) {
				some = append(some, line)
			}
		}
	}
	return some, nil
}

// sources returns the root of heed's source tree, which lines run tests of.
func sources() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "scorecard", "internal", "card")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("run the scorecard in a clone of heed: some lines run its tests")
		}
		dir = filepath.Dir(dir)
	}
}
