// Lab has what measures heed and proves its promises. Nothing imports it.
//
//	go run ./lab              lists the programs
//	go run ./lab NAME         runs one in its short form, in about a minute
//	go run ./lab NAME -long   runs its long form
//	go run ./lab NAME -help   lists its flags
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/heedhq/heed/lab/agent"
	"github.com/heedhq/heed/lab/board"
	"github.com/heedhq/heed/lab/compare"
	"github.com/heedhq/heed/lab/honest"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/lab/lives"
	"github.com/heedhq/heed/lab/load"
	"github.com/heedhq/heed/lab/measure"
	"github.com/heedhq/heed/lab/mutants"
	"github.com/heedhq/heed/lab/poison"
	"github.com/heedhq/heed/lab/regret"
	"github.com/heedhq/heed/lab/routing"
	"github.com/heedhq/heed/lab/scorecard"
)

var programs = []kit.Program{
	{Name: "scorecard", About: "attacks heed's promises of reliability", Run: scorecard.Run},
	{Name: "board", About: "plays heed against other routers under trouble", Run: board.Run},
	{Name: "regret", About: "measures what learning costs in worlds whose truth is known",
		Run: regret.Run},
	{Name: "routing", About: "replays recorded answers of models", Run: routing.Run},
	{Name: "honest", About: "measures whether intervals and estimates hold", Run: honest.Run},
	{Name: "lives", About: "measures how soon learned confidences are right", Run: lives.Run},
	{Name: "poison", About: "measures what false accounts do", Run: poison.Run},
	{Name: "agent", About: "runs an assistant with all packages in a simulated world",
		Run: agent.Run},
	{Name: "load", About: "measures the API of package web under load", Run: load.Run},
	{Name: "mutants", About: "tests the tests with faults in the code", Run: mutants.Run},
	{Name: "measure", About: "prints how large the library is", Run: measure.Run},
	{Name: "compare", About: "compares two outputs of benchmarks", Run: compare.Run},
}

func main() {
	if scorecard.Child() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr, kit.Bar())
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lab:", err)
	}
	os.Exit(kit.ExitCode(err))
}

// run runs the program that the first argument names, or lists all.
func run(ctx context.Context, args []string, out, help io.Writer, progress func(done,
	of int)) error {
	if len(args) == 0 {
		for _, p := range programs {
			fmt.Fprintf(out, "%-10s %s\n", p.Name, p.About)
		}
		return nil
	}
	i := slices.IndexFunc(programs, func(p kit.Program) bool { return p.Name == args[0] })
	if i < 0 {
		return fmt.Errorf("there is no program %q: go run ./lab lists them%.0w", args[0], kit.ErrUsage)
	}
	call := kit.NewCall(args[0], out, args[1:]...)
	call.SetOutput(help)
	call.Progress = progress
	if err := programs[i].Run(ctx, call); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}
