// Command load measures the API of package web under a steady load, on SQLite, with a page open:
//
//	go run ./examples/load [-for 60s] [-rate 200]
//
// Half of the requests choose an arm, 40 % say how a choice turned out, and the rest read. They are sent at their times, however long those
// before take, and each latency counts from the time at which its request should have been sent.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var l load
	flag.DurationVar(&l.long, "for", time.Minute, "how long")
	flag.Float64Var(&l.rate, "rate", 200, "requests a second")
	flag.Parse()
	if err := run(ctx, &l); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, l *load) error {
	dir, err := os.MkdirTemp("", "heed-load-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	got, err := l.measure(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Printf("%v at %g requests a second, %d cores\n%s", l.long, l.rate, runtime.GOMAXPROCS(0), got)
	return nil
}
