package heed

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Sweeper does periodic work: it counts silence, or drops expired entries. Every store is a
// Sweeper, and so are strategy.Learner, learning.Module, patterns.Recorder and feedback.Service. An
// implementation must be safe for concurrent use by multiple goroutines.
type Sweeper interface {
	// Sweep does what is due at now. It decides by itself what that is, so it may be called at any
	// rate. The zero time means the sweeper's own clock.
	Sweep(ctx context.Context, now time.Time) error
}

// sweep calls each sweeper once, in order. It goes on where one fails, and returns the errors,
// joined.
func sweep(ctx context.Context, now time.Time, sweepers ...Sweeper) error {
	var failures []error
	for _, s := range sweepers {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(failures, err)...)
		}
		if err := s.Sweep(ctx, now); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// Run calls each sweeper's Sweep in order, at once and then after every interval, until the context
// ends. It goes on where one fails. It is for a goroutine of the host's:
//
//	go heed.Run(ctx, time.Minute, st, learner, service)
//
// A sweep that fails is tried again at the next interval. A service reports the failure to its
// [Observer]; a store can't. To see a store's failures, call its Sweep in a loop of your own.
//
// Run returns the errors of the last sweep if that failed for
// another reason than the end of the context, and nil otherwise. Each sweeper uses its own clock.
func Run(ctx context.Context, every time.Duration, sweepers ...Sweeper) error {
	if every <= 0 {
		return fmt.Errorf("heed: run: %w", &InputError{Field: "every", Reason: "must be positive"})
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := sweep(ctx, time.Time{}, sweepers...)
		select {
		case <-ctx.Done():
			return withoutEnd(err, ctx.Err())
		case <-ticker.C:
		}
	}
}

// withoutEnd leaves out of joined errors those that only report that the context ended.
func withoutEnd(err, end error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var others []error
	for _, err := range joined.Unwrap() {
		if !errors.Is(err, end) {
			others = append(others, err)
		}
	}
	return errors.Join(others...)
}
