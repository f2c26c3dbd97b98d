// Package show is what the examples share: how their commands run.
package show

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// ErrUsage marks errors in how a command was called.
var ErrUsage = errors.New("see -help")

// Main runs the command of a program, until an interrupt at the latest, and exits where it fails.
func Main(name string, command func(ctx context.Context, args []string, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		}
		stop()
		os.Exit(ExitCode(err)) //nolint:gocritic // stop, the one thing deferred, was just called
	}
}

// ExitCode returns the code with which a program ends that failed so.
func ExitCode(err error) int {
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		return 2
	default:
		return 1
	}
}

// Parse parses the arguments of a command that takes flags only.
func Parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w%.0w", err, ErrUsage)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: %w", flags.Arg(0), ErrUsage)
	}
	return nil
}
