// Lab measures heed and proves its promises. No other package imports it.
//
//	go run ./lab              attacks what heed promises, in at most ten minutes
//	go run ./lab list         lists the programs
//	go run ./lab NAME         runs one in its short form, in about a minute
//	go run ./lab NAME -long   runs its long form
//	go run ./lab NAME -help   lists its flags
//
// What has to pass before a release is in .ci/full: see CONTRIBUTING.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/heedhq/heed/lab/agent"
	"github.com/heedhq/heed/lab/board"
	"github.com/heedhq/heed/lab/incidents"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/lab/lives"
	"github.com/heedhq/heed/lab/load"
	"github.com/heedhq/heed/lab/measure"
	"github.com/heedhq/heed/lab/mutants"
	"github.com/heedhq/heed/lab/poison"
	"github.com/heedhq/heed/lab/scorecard"
	"github.com/heedhq/heed/lab/tenants"
	"github.com/heedhq/heed/lab/winners"
)

var programs = []struct {
	name, about string
	run         func(ctx context.Context, call *kit.Call) error
}{
	{"scorecard", "attacks what heed promises; the default", scorecard.Run},
	{"board", "plays heed against other routers, and its settings against each other", board.Run},
	{"winners", "measures races for the best arm", winners.Run},
	{"lives", "measures how soon learned confidences are right", lives.Run},
	{"poison", "measures what false accounts do", poison.Run},
	{"tenants", "measures what a new tenant gains by shared arms", tenants.Run},
	{"incidents", "measures what outages of models and of the database cost", incidents.Run},
	{"agent", "runs an assistant with all packages in a simulated world", agent.Run},
	{"load", "measures how much one PostgreSQL records", load.Run},
	{"mutants", "tests the tests with faults in the code", mutants.Run},
	{"measure", "prints how large the library is", measure.Run},
}

func main() {
	if scorecard.Child() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lab:", err)
	}
	os.Exit(kit.ExitCode(err))
}

// run runs the program that the first argument names, or the scorecard if it names none.
func run(ctx context.Context, args []string, out, help io.Writer) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{"scorecard"}, args...)
	}
	if args[0] == "list" {
		for _, p := range programs {
			fmt.Fprintf(out, "%-10s %s\n", p.name, p.about)
		}
		return nil
	}
	for _, p := range programs {
		if p.name != args[0] {
			continue
		}
		call := kit.NewCall(args[0], out, args[1:]...)
		call.SetOutput(help)
		if p.name != "scorecard" && p.name != "mutants" { // which print what they do
			kit.DrawProgress()
		}
		if err := p.run(ctx, call); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return nil
	}
	return fmt.Errorf("there is no program %q: go run ./lab list prints them%.0w", args[0],
		kit.ErrUsage)
}
