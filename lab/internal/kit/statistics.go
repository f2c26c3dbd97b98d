package kit

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"text/tabwriter"
)

// Progress is called by [Parallel] after each call. A program that draws it sets it at its start.
var Progress = func(done, of int) {}

// Parallel calls work with each number below n, on all processors. It ends the study by the first
// error that ends a call, or the context's. It then begins no further call.
func Parallel(ctx context.Context, n int, work func(i int)) {
	var (
		wait       sync.WaitGroup
		mu         sync.Mutex
		next, done int
		failure    error
	)
	begin := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if failure == nil {
			failure = ctx.Err()
		}
		next++
		return next - 1, next <= n && failure == nil
	}
	end := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if done++; err == nil {
			Progress(done, n)
		} else if failure == nil {
			failure = err
		}
	}
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i, ok := begin(); ok; i, ok = begin() {
				end(caught(i, work))
			}
		})
	}
	wait.Wait()
	Check(failure)
}

// caught returns the error that ends a call.
func caught(i int, work func(i int)) (err error) {
	defer Catch(&err)
	work(i)
	return nil
}

// An Estimate is a mean with half the width of its 95 % confidence interval.
type Estimate struct{ Mean, Half float64 }

func (e Estimate) String() string { return Number(e.Mean) + " ±" + Number(e.Half) }

// Percent writes an estimate of a share.
func (e Estimate) Percent() string { return fmt.Sprintf("%.1f ±%.1f %%", 100*e.Mean, 100*e.Half) }

// Mean estimates the mean of what the values come from.
func Mean(values []float64) (e Estimate) {
	n := float64(len(values))
	for _, x := range values {
		e.Mean += x / n
	}
	squares := 0.
	for _, x := range values {
		squares += (x - e.Mean) * (x - e.Mean)
	}
	if n > 1 {
		e.Half = 1.96 * math.Sqrt(squares/(n-1)/n)
	}
	return e
}

// MeanOf estimates the mean of a figure of the runs.
func MeanOf[T any](runs []T, figure func(run *T) float64) Estimate {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = figure(&runs[i])
	}
	return Mean(values)
}

// Best returns which of n has the greatest value, the first of equals, and that value.
func Best(n int, value func(i int) float64) (best int, most float64) {
	most = math.Inf(-1)
	for i := range n {
		if x := value(i); x > most {
			best, most = i, x
		}
	}
	return best, most
}

// Number writes three digits, or all before the point.
func Number(x float64) string {
	switch far := math.Abs(x); {
	case far >= 100:
		return fmt.Sprintf("%.0f", x)
	case far >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

// NewTable returns a table whose cells end with tabs.
func NewTable(to io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
}
