package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heedhq/heed"
)

// Do runs one step: it calls step, commits what the step added, and returns. A step reads through
// its [Tx], decides by what it read, and adds records and evidence. All of it becomes one
// [Store.Commit], or no commit if the step added no changes. Several packages can take part in one
// step, and so can the host: see the package's example.
//
// If the commit returns [heed.ErrConflict], another writer was quicker. If it returns
// [heed.ErrOutcomeUnknown], the store's reply was lost. Do then reads what the step wrote: if
// the store shows that the commit took effect, the step ends as if the reply had come. Otherwise Do
// waits for a short random time and calls step again with a new Tx, which reads everything again.
// Steps of one process that run again on one store do so one after the other. Do calls step at most
// tries times. A step that itself returns one of these errors runs again as well, for example
// because records that it read one after the other do not fit together. If the conflict is the
// result of the step, the step must return it by [Final].
//
// So a step must be safe to repeat, also after its commit took effect: the evidence that it adds
// must have ids that count once, and its records must follow from the records that it reads. A step
// that counts in a record, for example, must give its batch an ID ([Tx.Add]), or find in the record
// that it counted already.
//
// Any other error ends Do at once unless a package can do without what failed ([Tx.Again]), a
// [*heed.SettingsError] and a [*heed.SizeError] among them. The step was not committed then, unless
// the error also wraps [heed.ErrOutcomeUnknown]: an earlier run of the step may have taken effect
// in that case.
func Do(ctx context.Context, st Store, step func(tx *Tx) error) error {
	var unknown error // of an earlier run, which may have taken effect
	var drawn []string
	leave := func() {}
	defer func() { leave() }()
	for try := 1; ; try++ {
		tx := &Tx{ctx: ctx, store: st, drawn: &drawn}
		err := tx.run(step)
		again := repeats(err) || err != nil && tx.recovers(err)
		err = withEarlier(err, unknown)
		tx.finish(err)
		if !again || try == tries {
			return err
		}
		if unknown == nil && errors.Is(err, heed.ErrOutcomeUnknown) {
			unknown = err
		}
		ended := pause(ctx, try)
		if ended == nil && try == 1 {
			leave, ended = takeTurn(ctx, st)
		}
		if ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// tries is how often [Do] calls a step at most.
const tries = 100

// withEarlier adds the error of an earlier run whose outcome is unknown to the error of a later
// run.
func withEarlier(err, unknown error) error {
	if err == nil || unknown == nil || errors.Is(err, heed.ErrOutcomeUnknown) {
		return err
	}
	return fmt.Errorf("%w (an earlier try: %w)", err, unknown)
}

// Final returns an error that ends [Do] at once, also if it is a [heed.ErrConflict]. A step returns
// it if the conflict is the step's result, for example because another record has the id. errors.Is
// and errors.As find the error in it.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &final{err}
}

type final struct{ error }

func (f *final) Unwrap() error { return f.error }

// run runs a step once. If the step panics, or the store does, packages learn that the run is over
// before the panic goes on.
func (tx *Tx) run(step func(tx *Tx) error) error {
	if err := tx.ctx.Err(); err != nil {
		return err
	}
	panics := true
	defer func() {
		if panics {
			tx.finish(errPanic)
		}
	}()
	err := tx.try(step)
	panics = false
	return err
}

var errPanic = fmt.Errorf("%w: the step has panicked", heed.ErrOutcomeUnknown)

func (tx *Tx) try(step func(tx *Tx) error) error {
	if err := step(tx); err != nil {
		return err
	}
	for i := 0; i < len(tx.before); i++ { // one may add another
		if err := tx.before[i](); err != nil {
			return err
		}
	}
	return tx.commit()
}

// repeats reports whether a step that ended with this error should run again.
func repeats(err error) bool {
	if !errors.Is(err, heed.ErrConflict) && !errors.Is(err, heed.ErrOutcomeUnknown) {
		return false
	}
	return !errors.As(err, new(*final)) && !errors.As(err, new(*heed.SettingsError))
}

// longestPause bounds the pause before a step runs again.
const longestPause = 30 * time.Millisecond

// pause waits for a random time that grows with the number of tries, so that writers of one record
// get out of step.
func pause(ctx context.Context, try int) error {
	most := min(200*time.Microsecond<<min(try, 10), longestPause)
	//nolint:forbidigo // the jitter changes when a step runs, never what it does
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
