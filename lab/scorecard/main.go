// Package scorecard attacks heed's promises of reliability, one line each, and says which held:
//
//	go run ./lab scorecard                # the short form, some two minutes
//	go run ./lab scorecard S5 S6          # some lines only
//	go run ./lab scorecard -long -seed 0  # the long form, with another seed each time
//	go run ./lab scorecard -report FILE   # writes the report too, as Markdown
//
// Each line prints its name, what was measured, the bar, PASS, FAIL or SKIPPED, the seed, the work done and its controls. A control is an
// unsafe variant that the line has to catch, in the same run. The exit code is 1 if a line failed.
package scorecard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/databases"
	"github.com/heedhq/heed/lab/internal/kit"
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

// Child does the work of this process, if a line has started it for one, and reports whether it
// has. A program that runs the scorecard calls it first.
func Child() bool { return databases.Child() }

// Run runs the lines that the call names, or all.
func Run(ctx context.Context, call *kit.Call) (err error) {
	report := call.String("report", "",
		"write a report to this `file`; with -long, rows of other lines stay")
	seed := call.Uint64("seed", 1, "what all randomness comes from; 0: another one each time")
	side := call.Int("parallel", runtime.NumCPU(), "how many lines run side by side")
	patience := call.Int("patience", 1,
		"multiplies the budgets, for a machine that is busy with something else")
	list := call.Bool("list", false, "list the lines")
	if err := call.ParseNames(); err != nil {
		return err
	}
	lines, err := chosen(all(), call.Names)
	if err != nil {
		return call.Usage("%w", err)
	}
	if *list {
		for _, line := range lines {
			fmt.Fprintf(call.Out, "%-14s  %s\n", line.Name, line.Promise)
		}
		return nil
	}
	root, err := sources()
	if err != nil {
		return err
	}
	if *seed == 0 {
		*seed = rand.Uint64()%1_000_000 + 1
	}
	defer func() { err = errors.Join(err, heedTests.close(), databases.Close()) }()
	began, machine := time.Now(), card.ThisMachine(ctx, root) // the tree as it is now, also if the run is interrupted
	fmt.Fprintln(call.Out, card.Head)
	outcomes := card.Run(ctx, lines, card.Settings{Long: call.Long, Seed: *seed, Root: root,
		Patience: *patience}, *side, func(o card.Outcome) {
		fmt.Fprintln(call.Out, o.Text())
	})
	took := time.Since(began)
	if *report != "" {
		page := card.Report{At: began, Command: call.Command(), Machine: machine, Outcomes: outcomes,
			Took: took, Long: call.Long}
		for _, line := range all() {
			page.Names = append(page.Names, line.Name)
		}
		if err := card.Write(*report, page); err != nil {
			return err
		}
	}
	failed := card.Failed(outcomes)
	ended := fmt.Sprintf("%d of %d lines failed, in %s", failed, len(lines), took.Round(time.Second))
	if failed > 0 {
		return errors.New(ended)
	}
	fmt.Fprintln(call.Out, ended+".")
	return nil
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
		if _, err := os.Stat(filepath.Join(dir, "lab", "scorecard")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("run the scorecard in a clone of heed: some lines run its tests")
		}
		dir = filepath.Dir(dir)
	}
}
