// Package load measures the API of package web under a steady load, on SQLite, with a page open:
//
//	go run ./lab load [-long] [-for 60] [-rate 200]
//
// Half of the requests choose an arm, 40 % say how a choice turned out, and the rest read. They are sent at their times, however long those
// before take, and each latency counts from the time at which its request should have been sent.
package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/heedhq/heed/lab/internal/kit"
)

// Run sends the load: for 10 seconds, and in the long form for a minute.
func Run(ctx context.Context, call *kit.Call) (err error) {
	var l load
	seconds := call.Count("for", 10, 60, "how many seconds")
	call.Float64Var(&l.rate, "rate", 200, "requests a second")
	if err := call.Parse(); err != nil {
		return err
	}
	l.long = time.Duration(*seconds) * time.Second
	if !(l.rate > 0) {
		return call.Usage("-rate must be above 0")
	}
	dir, err := os.MkdirTemp("", "heed-load-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	got, err := l.measure(ctx, dir)
	if err == nil {
		_, err = fmt.Fprintf(call.Out, "%v at %g requests a second, %d cores\n%s", l.long, l.rate,
			runtime.GOMAXPROCS(0), got)
	}
	return err
}
