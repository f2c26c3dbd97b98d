// Command load measures the API of package web under a steady load, on SQLite, with a page open:
//
//	go run ./examples/load [-for 60s] [-rate 200]
//
// Half of the requests choose an arm, 40 % say how a choice turned out, and the rest read. They are sent at their times, however long those
// before take, and each latency counts from the time at which its request should have been sent.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/heedhq/heed/examples/internal/show"
)

func main() {
	show.Main("load", func(ctx context.Context, args []string, out io.Writer, _ func(done, of int)) error {
		return command(ctx, args, out)
	})
}

func command(ctx context.Context, args []string, out io.Writer) (err error) {
	var l load
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.DurationVar(&l.long, "for", time.Minute, "how long")
	flags.Float64Var(&l.rate, "rate", 200, "requests a second")
	if err := show.Parse(flags, args); err != nil {
		return err
	}
	if l.long <= 0 || l.rate <= 0 {
		return fmt.Errorf("-for and -rate must be above 0: %w", show.ErrUsage)
	}
	dir, err := os.MkdirTemp("", "heed-load-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	got, err := l.measure(ctx, dir)
	if err == nil {
		_, err = fmt.Fprintf(out, "%v at %g requests a second, %d cores\n%s", l.long, l.rate, runtime.GOMAXPROCS(0), got)
	}
	return err
}
