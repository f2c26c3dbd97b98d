package kit

import (
	"context"
	"math"
	"runtime"
	"sync"
)

// Parallel calls work with each number below n, on all processors, and reports its progress after each call. It returns the
// first error. After an error, and when the context ends, it begins no further call.
func Parallel(ctx context.Context, n int, progress func(done, of int), work func(i int) error) error {
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
			progress(done, n)
		} else if failure == nil {
			failure = err
		}
	}
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i, ok := begin(); ok; i, ok = begin() {
				end(work(i))
			}
		})
	}
	wait.Wait()
	return failure
}

// Mean returns the mean, and half the width of its 95 % confidence interval.
func Mean(values []float64) (mean, ci95 float64) {
	n := float64(len(values))
	for _, x := range values {
		mean += x / n
	}
	var squares float64
	for _, x := range values {
		squares += (x - mean) * (x - mean)
	}
	if n > 1 {
		ci95 = 1.96 * math.Sqrt(squares/(n-1)/n)
	}
	return mean, ci95
}
