package card_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/lab/internal/card"
)

func measures(lost float64, work, faults int64) card.Attempt {
	return func(context.Context, card.Settings) (card.Result, error) {
		return card.Result{Values: map[string]float64{"lost": lost}, Work: work, Faults: faults}, nil
	}
}

// sound is a line that passes.
func sound() card.Line {
	form := card.Form{Work: 100, Faults: 3, Budget: time.Minute}
	return card.Line{
		Name: "S0", Promise: "Nothing is lost.", Attack: "We try to lose it.", Bars: card.None("lost"),
		Short: form, Long: form, Run: measures(0, 100, 3),
		Controls: []card.Control{{Name: "forgets", Run: measures(1, 1, 0)}},
	}
}

func run(ctx context.Context, lines ...card.Line) []card.Outcome {
	return card.Run(ctx, lines, card.Settings{Seed: 7}, 2, func(card.Outcome) {})
}

func TestALineFails(t *testing.T) {
	nan := 0.0
	nan /= nan
	for name, c := range map[string]struct {
		change func(*card.Line)
		reason string // "": it passes
	}{
		"not":            {func(*card.Line) {}, ""},
		"its bar":        {func(l *card.Line) { l.Run = measures(2, 100, 3) }, "2 lost, not ≤ 0"},
		"no number":      {func(l *card.Line) { l.Run = measures(nan, 100, 3) }, "NaN lost, not ≤ 0"},
		"its work floor": {func(l *card.Line) { l.Run = measures(0, 99, 3) }, "work 99, not 100"},
		"too few faults": {func(l *card.Line) { l.Run = measures(0, 100, 2) }, "faults 2, not 3"},
		"not measured": {func(l *card.Line) { l.Bars = append(l.Bars, card.None("found")...) },
			"found was not measured"},
		"no bar": {func(l *card.Line) { l.Bars = nil }, "the line has no bar"},
		"a bar without a control": {func(l *card.Line) {
			l.Bars = append(l.Bars, card.None("late")...)
			l.Run = func(context.Context, card.Settings) (card.Result, error) {
				return card.Result{Values: map[string]float64{"lost": 0, "late": 0}, Work: 100, Faults: 3},
					nil
			}
		}, `no control missed the bar "late": nothing shows that it can be missed`},
		"no control":      {func(l *card.Line) { l.Controls = nil }, "the line has no control"},
		"control passes":  {func(l *card.Line) { l.Controls[0].Run = measures(0, 1, 0) }, `control "forgets" passed: the line would not notice`},
		"control is idle": {func(l *card.Line) { l.Controls[0].Run = measures(1, 0, 0) }, `control "forgets": it did no work`},
		"control misses another bar": {
			func(l *card.Line) { l.Controls[0].Misses = []string{"found"} }, `control "forgets" passed: the line would not notice`,
		},
		"control has an error": {func(l *card.Line) {
			l.Controls[0].Run = func(context.Context, card.Settings) (card.Result,
				error) {
				return card.Result{}, errors.New("no disk")
			}
		}, `control "forgets": no disk`},
		"an error": {func(l *card.Line) {
			l.Run = func(context.Context, card.Settings) (card.Result, error) {
				return card.Result{},
					errors.New("no disk")
			}
		}, "no disk"},
		"it ends its goroutine": {func(l *card.Line) {
			l.Run = func(context.Context, card.Settings) (card.Result,
				error) {
				runtime.Goexit()
				return card.Result{}, nil
			}
		}, "it ended without a result"},
	} {
		t.Run(name, func(t *testing.T) {
			line := sound()
			c.change(&line)
			o := run(t.Context(), line)[0]
			if c.reason == "" {
				assert.Empty(t, o.Reasons)
				assert.Equal(t, card.Pass, o.State)
				assert.Equal(t, []card.Caught{{Name: "forgets", Missed: "1 lost, not ≤ 0"}}, o.Controls)
				return
			}
			assert.Equal(t, card.Fail, o.State)
			assert.Contains(t, o.Reasons, c.reason)
			assert.Contains(t, o.Text(), c.reason)
		})
	}
}

func TestAControlMayBeLuckyForAWhile(t *testing.T) {
	line, seeds := sound(), map[uint64]bool{}
	line.Controls[0].Run = func(ctx context.Context, s card.Settings) (card.Result, error) {
		seeds[s.Seed] = true
		return measures(float64(len(seeds)/card.Tries), 1, 0)(ctx, s)
	}
	assert.Equal(t, card.Pass, run(t.Context(), line)[0].State)
	assert.Len(t, seeds, card.Tries)
}

func TestAPanicFailsItsLineAlone(t *testing.T) {
	wild := sound()
	wild.Run = func(context.Context, card.Settings) (card.Result, error) { panic("ouch") }
	outcomes := run(t.Context(), wild, sound())
	assert.Equal(t, card.Fail, outcomes[0].State)
	assert.Contains(t, outcomes[0].Reasons[0], "panic: ouch")
	assert.Equal(t, card.Pass, outcomes[1].State)
}

func TestALineIsSkipped(t *testing.T) {
	line := sound()
	line.Run = func(context.Context, card.Settings) (card.Result, error) {
		return card.Result{}, card.Skip("no PostgreSQL here")
	}
	outcomes := run(t.Context(), line)
	assert.Equal(t, card.Skipped, outcomes[0].State)
	assert.Equal(t, []string{"no PostgreSQL here"}, outcomes[0].Reasons)
	assert.Contains(t, outcomes[0].Text(), "SKIPPED")
	report := card.Report{Outcomes: outcomes, Lines: []card.Line{line}}
	assert.Contains(t, report.Markdown(), "**SKIPPED**: no PostgreSQL here")
}

func TestTheBudgetAndTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := sound()
		waits.Run = func(ctx context.Context, _ card.Settings) (card.Result, error) {
			<-ctx.Done()
			return card.Result{}, ctx.Err()
		}
		hung, free := sound(), make(chan struct{})
		hung.Run = func(context.Context, card.Settings) (card.Result, error) {
			<-free
			return card.Result{}, nil
		}
		began := time.Now()
		for _, o := range run(t.Context(), waits, hung) {
			assert.Equal(t, card.Fail, o.State)
			assert.Contains(t, o.Reasons[0], "deadline exceeded")
		}
		assert.Equal(t, time.Minute+card.Grace, time.Since(began))

		began = time.Now()
		card.Run(t.Context(), []card.Line{waits}, card.Settings{Patience: 3}, 1, func(card.Outcome) {})
		assert.Equal(t, 3*time.Minute, time.Since(began))

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began = time.Now()
		for _, o := range run(ctx, waits, waits) {
			assert.Equal(t, card.Fail, o.State)
			assert.Contains(t, o.Reasons[0], "canceled")
		}
		assert.Equal(t, time.Second, time.Since(began))
		close(free)
	})
}

func TestRandomnessComesFromTheSeed(t *testing.T) {
	draw := func(name string, seed uint64, worker int) (n uint64) {
		line := sound()
		line.Name = name
		line.Run = func(_ context.Context, s card.Settings) (card.Result, error) {
			n = s.Rand(worker).Uint64()
			return card.Result{}, nil
		}
		card.Run(t.Context(), []card.Line{line}, card.Settings{Seed: seed}, 1, func(card.Outcome) {})
		return n
	}
	first := draw("a", 1, 0)
	assert.Equal(t, first, draw("a", 1, 0))
	assert.NotEqual(t, draw("a", 1, 0), draw("a", 2, 0))
	assert.NotEqual(t, draw("a", 1, 0), draw("b", 1, 0))
	assert.NotEqual(t, draw("a", 1, 0), draw("a", 1, 1))
}

func TestTheReport(t *testing.T) {
	lines := []card.Line{sound(), sound()}
	lines[1].Name = "S1"
	r := card.Report{
		Command: "go run ./lab", At: time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC),
		Outcomes: run(t.Context(), lines[0]), Lines: lines,
		Machine: card.Machine{Commit: "abc", CPU: "A CPU", Cores: 2, Go: "go1.26",
			Engines: []string{"SQLite 3"}},
	}
	r.Outcomes[0].Took = time.Second
	page := r.Markdown()
	for _, part := range []string{
		"`go run ./lab` wrote this page, on commit abc, 22 November 2026, 18:00 UTC: A CPU, 2 cores, " +
			"go1.26, SQLite 3.\n",
		"| S0 | 0 lost | ≤ 0 | PASS | 1 lost, not ≤ 0 | 100 (3 faults) | 7 | 1s |\n",
		"| S1 | Nothing is lost. | We try to lose it. | forgets |\n\nNot run: S1.\n",
	} {
		assert.Contains(t, page, part)
	}
}

func TestTheMachine(t *testing.T) {
	m := card.ThisMachine(t.Context())
	assert.NotEmpty(t, m.CPU)
	assert.Positive(t, m.Cores)
	assert.NotEmpty(t, m.Engines)
}
