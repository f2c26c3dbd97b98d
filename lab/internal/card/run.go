package card

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed/lab/internal/kit"
)

// A State is how a line ended.
type State string

// The states of a line.
const (
	Pass    State = "PASS"
	Fail    State = "FAIL"
	Skipped State = "SKIPPED"
)

// An Outcome is what came of a line.
type Outcome struct {
	Line     Line
	Form     Form
	Seed     uint64
	State    State
	Reasons  []string // why it failed or was skipped
	Result   Result
	Controls []Caught
	Took     time.Duration
}

// Caught is what came of a control.
type Caught struct {
	Name   string
	Missed string // the bars that it missed, with their values; "": it passed
}

// Grace is how long after its budget a line may still run before its outcome is given without it.
const Grace = 5 * time.Second

// Run runs the lines, at most parallel of them side by side. It calls done as each one ends, one
// call at a time, and returns the outcomes in the order of the lines. A line that panics, or runs
// past its budget, fails alone.
func Run(ctx context.Context, lines []Line, s Settings, parallel int,
	done func(Outcome)) []Outcome {
	outcomes := make([]Outcome, len(lines))
	var mu sync.Mutex
	places := make(chan struct{}, max(1, parallel))
	var wait sync.WaitGroup
	for i := range lines {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			o := lines[i].run(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			outcomes[i] = o
			done(o)
		})
	}
	wait.Wait()
	return outcomes
}

func (l Line) run(ctx context.Context, s Settings) Outcome {
	s.name = l.Name
	o := Outcome{Line: l, Form: Pick(s, l.Short, l.Long), Seed: s.Seed, State: Pass}
	o.Form.Budget *= time.Duration(max(s.Patience, 1))
	began := time.Now()
	late := &budgetError{o.Form.Budget, max(s.Patience, 1)}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Form.Budget, late)
	defer cancel()
	o.Result, o.Reasons = o.attack(ctx, s)
	if o.State != Skipped {
		o.Reasons = append(o.Reasons, o.control(ctx, s)...)
		if len(o.Reasons) > 0 {
			o.State = Fail
		}
	}
	o.Took = time.Since(began)
	if o.State == Pass && o.Took > o.Form.Budget {
		o.State = Fail
		o.Reasons = []string{fmt.Sprintf("it took %s: %v", o.Took.Round(time.Second), late)}
	}
	return o
}

func (o *Outcome) attack(ctx context.Context, s Settings) (r Result, reasons []string) {
	r, err := guarded(ctx, o.Line.Run, s)
	switch {
	case errors.Is(err, errSkipped):
		o.State = Skipped
		return r, []string{strings.TrimPrefix(err.Error(), errSkipped.Error()+": ")}
	case err != nil:
		return r, []string{reasonOf(ctx, err)}
	}
	if len(o.Line.Bars) == 0 {
		reasons = append(reasons, "the line has no bar")
	}
	for _, bar := range o.Line.Bars {
		if missed := r.misses(bar); missed != "" {
			reasons = append(reasons, missed)
		}
	}
	if r.Work < o.Form.Work || r.Work < 1 {
		reasons = append(reasons, fmt.Sprintf("work %d, not %d", r.Work, max(1, o.Form.Work)))
	}
	if r.Faults < o.Form.Faults {
		reasons = append(reasons, fmt.Sprintf("faults %d, not %d", r.Faults, o.Form.Faults))
	}
	return r, reasons
}

// A budgetError reports that a line ran past its budget.
type budgetError struct {
	budget   time.Duration
	patience int
}

func (e *budgetError) Error() string {
	return fmt.Sprintf("it did not end within its budget of %s: if the machine is busy with "+
		"something else, -patience %d gives it more", e.budget, 3*e.patience)
}

// reasonOf returns why an attempt failed. Its own error explains little once its context ended.
func reasonOf(ctx context.Context, err error) string {
	if late := (*budgetError)(nil); errors.As(context.Cause(ctx), &late) {
		return late.Error() + " (" + err.Error() + ")"
	}
	return err.Error()
}

// misses returns "" where a value reaches its bar.
func (r Result) misses(b Bar) string {
	value, measured := r.Values[b.Name]
	switch {
	case !measured:
		return b.Name + " was not measured"
	case !(value <= b.Most): // NaN too
		return fmt.Sprintf("%s %s, not %s", number(value), b.Name, b)
	}
	return ""
}

// Tries is how often a control is run, with another seed each time, before it counts as passed: one
// that depends on a race may be lucky.
const Tries = 5

// control runs the controls. Each must measure a value that misses a bar: an error is no such
// value. Each bar must be missed by one.
func (o *Outcome) control(ctx context.Context, s Settings) (reasons []string) {
	if len(o.Line.Controls) == 0 {
		return []string{"the line has no control"}
	}
	seen := make(map[string]bool) // the bars that were missed
	for _, c := range o.Line.Controls {
		caught, err := Caught{Name: c.Name}, error(nil)
		for range Tries {
			if caught.Missed, err = o.try(ctx, c, s, seen); err != nil || caught.Missed != "" {
				break
			}
			s.Seed++
		}
		switch {
		case err != nil:
			reasons = append(reasons, fmt.Sprintf("control %q: %s", c.Name, reasonOf(ctx, err)))
			continue
		case caught.Missed == "":
			reasons = append(reasons, fmt.Sprintf("control %q passed: the line would not notice", c.Name))
		}
		o.Controls = append(o.Controls, caught)
	}
	for _, bar := range o.Line.Bars {
		if !seen[bar.Name] && len(reasons) == 0 {
			reasons = append(reasons,
				fmt.Sprintf("no control missed the bar %q: nothing shows that it can be missed", bar.Name))
		}
	}
	return reasons
}

// try runs a control once, and returns the bars that it missed. "" means that it passed, or missed
// others than it has to.
func (o *Outcome) try(ctx context.Context, c Control, s Settings,
	seen map[string]bool) (missed string, err error) {
	r, err := guarded(ctx, c.Run, s)
	if err != nil {
		return "", err
	}
	var all, names []string
	for _, bar := range o.Line.Bars {
		if _, measured := r.Values[bar.Name]; !measured {
			continue
		}
		if one := r.misses(bar); one != "" {
			all, names = append(all, one), append(names, bar.Name)
		}
	}
	for _, name := range c.Misses {
		if !slices.Contains(names, name) {
			return "", nil
		}
	}
	if len(all) > 0 && r.Work < 1 {
		return "", errors.New("it did no work")
	}
	for _, name := range names {
		seen[name] = true
	}
	return strings.Join(all, ", "), nil
}

// guarded makes an attempt, turns a panic of it into an error, and leaves it behind if it outlives
// its context by [Grace].
func guarded(ctx context.Context, attempt Attempt, s Settings) (Result, error) {
	type ended struct {
		r   Result
		err error
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	end := make(chan ended, 1)
	go func() {
		e := ended{err: errors.New("it ended without a result")} // runtime.Goexit
		defer func() {
			if p := recover(); p != nil {
				e.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			end <- e
		}()
		defer kit.Catch(&e.err)
		e.r, e.err = attempt(ctx, s)
	}()
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(Grace, func() { close(late) }) })
	defer stop()
	select {
	case e := <-end:
		if err := ctx.Err(); err != nil && e.err == nil {
			e.err = err
		}
		return e.r, e.err
	case <-late:
		return Result{}, fmt.Errorf("it did not end with its context: %w", ctx.Err())
	}
}
