package attribution_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
	"github.com/heedhq/heed/strategy/attribution"
	"github.com/heedhq/heed/stream"
)

// The hook is called once for each outcome, after it is counted, and for each end of a session.
func TestHookIsTold(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 2)
	var told []string
	h := attribution.Hook{
		Outcome: func(_ context.Context, o strategy.Outcome) error {
			told = append(told, fmt.Sprint(o.Choice.Session, " ", o.ID, " ", o.Value, " of mass ",
				d.mass(t)))
			return nil
		},
		SessionEnd: func(_ context.Context, session string) error {
			told = append(told, session+" ended")
			return nil
		},
	}
	end := d.report(t, "end", attribution.Report{
		Session: "s1", Ended: true, Items: []attribution.Worth{{Item: "i", Activated: true,
			Value: -0.5}},
	})
	d.tape.events = []stream.Event{d.worth(t, "e", "s0", 1), d.worth(t, "e", "s0", 1), end}
	c := d.consumer(t, attribution.Config{Hook: h})
	require.NoError(t, c.Run(ctx))
	assert.Equal(t, []string{"s0 e/0 1 of mass 0.5", "s1 end/0 -0.5 of mass 1", "s1 ended"}, told)
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 3, Applied: 3},
		Outcomes:     2, Duplicates: 1, HookCalls: 3,
	}, c.Counts())

	record, err := d.learner.Find(ctx, "s1", "i", time.Time{})
	require.NoError(t, err)
	assert.NotEqual(t, record.Choice.ID, choose(t, d.learner,
		strategy.Query{Session: "s1", Item: "i"}).ID, "the session has ended")
}

// forgetful is a store that loses one answer to a commit of evidence.
type forgetful struct {
	store.Store
	lost bool
}

func (s *forgetful) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	receipts, err := s.Store.Commit(ctx, batches...)
	if err == nil && !s.lost && len(batches[0].Observations) > 0 {
		s.lost = true
		return nil, errFlaky
	}
	return receipts, err
}

// The answer to a commit is lost. Its outcome still counts once, and the hook is not called.
func TestHookIsToldAtMostOnce(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 2)
	flaky := &forgetful{Store: d.store.Store}
	d.store.Store = flaky
	var told []string
	h := attribution.Hook{Outcome: func(_ context.Context, o strategy.Outcome) error {
		told = append(told, o.ID)
		return nil
	}}
	d.tape.events = []stream.Event{d.worth(t, "lost", "s0", 1), d.worth(t, "next", "s1", 1)}
	c := d.consumer(t, attribution.Config{Hook: h})
	require.NoError(t, c.Run(ctx))
	assert.True(t, flaky.lost)
	assert.Equal(t, []string{"next/0"}, told)
	assert.Equal(t, 1., d.mass(t), "both are counted, with half a weight each")
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 2, Applied: 2, Retries: 1},
		Outcomes:     1, Duplicates: 1, HookCalls: 1,
	}, c.Counts())
}

// It is called outside of every lock, so that it may ask the learner, and let it learn.
func TestHookMayCallBack(t *testing.T) {
	d := newDesk(t, strategy.Config{})
	d.choose(t, 1)
	h := attribution.Hook{Outcome: func(ctx context.Context, o strategy.Outcome) error {
		if _, err := d.learner.Select(ctx, strategy.Query{Session: "s0", Item: "i"}); err != nil {
			return err
		}
		o.ID = "again"
		if _, err := d.learner.Observe(ctx, o); err != nil {
			return err
		}
		return d.learner.Reset(ctx, strategy.Reset{Item: "i", Reason: "it is novel"})
	}}
	d.tape.events = []stream.Event{d.worth(t, "e", "s0", 1)}
	c := d.consumer(t, attribution.Config{Hook: h})
	require.NoError(t, c.Run(ctx))
	assert.Equal(t, attribution.Counts{
		RunnerCounts: stream.RunnerCounts{Received: 1, Applied: 1},
		Outcomes:     1, HookCalls: 1,
	}, c.Counts())
	assert.Zero(t, d.mass(t))
}

// A hook may panic, hang or end its goroutine. Every outcome is counted, and every failure.
func TestHookIsContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, strategy.Config{})
		d.choose(t, 100)
		for i := range bar {
			d.tape.events = append(d.tape.events, d.worth(t, fmt.Sprint("e", i), fmt.Sprint("s", i%100),
				1))
		}
		began := time.Now()
		h := attribution.Hook{Outcome: func(_ context.Context, o strategy.Outcome) error {
			var i int
			_, err := fmt.Sscanf(o.ID, "e%d/0", &i)
			switch {
			case i%10 == 3:
				panic("novel")
			case i%100 == 4:
				runtime.Goexit()
			case i%100 == 5:
				time.Sleep(3500 * time.Millisecond) // whatever the context says
			}
			return err
		}}
		c := d.consumer(t, attribution.Config{Hook: h})
		require.NoError(t, c.Run(ctx))
		counts := c.Counts()
		assert.Equal(t, uint64(bar), counts.Applied)
		assert.Equal(t, uint64(bar), counts.Outcomes)
		assert.Equal(t, uint64(bar), counts.HookCalls)
		assert.Equal(t, uint64(bar/10+bar/100+bar/100), counts.HookFailed)
		assert.Equal(t, float64(bar)/2, d.mass(t))
		assert.Equal(t, time.Duration(bar)/100*time.Second, time.Since(began),
			"each call that hangs is waited for as long as it may take")
		// the last calls return, and no goroutine is left: the bubble would not end
		time.Sleep(time.Minute)
	})
}

// Calls that never return are few, and while they last the hook is not called.
func TestHookHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, strategy.Config{})
		d.choose(t, 30)
		worth := func(from, to int) {
			for i := from; i < to; i++ {
				d.tape.events = append(d.tape.events, d.worth(t, fmt.Sprint("e", i), fmt.Sprint("s", i), 1))
			}
		}
		release := make(chan struct{})
		var calls atomic.Int64
		h := attribution.Hook{Outcome: func(context.Context, strategy.Outcome) error {
			calls.Add(1)
			<-release
			return nil
		}}
		c := d.consumer(t, attribution.Config{Hook: h, HookTimeout: time.Minute})
		worth(0, 20)
		began := time.Now()
		require.NoError(t, c.Run(ctx))
		assert.EqualValues(t, 8, calls.Load())
		assert.Equal(t, 8*time.Minute, time.Since(began))
		assert.Equal(t, attribution.Counts{
			RunnerCounts: stream.RunnerCounts{Received: 20, Applied: 20},
			Outcomes:     20, HookCalls: 20, HookFailed: 20,
		}, c.Counts())
		close(release)
		synctest.Wait()
		worth(20, 30)
		require.NoError(t, c.Run(ctx))
		assert.EqualValues(t, 18, calls.Load(), "when they have returned it is called again")
		assert.Equal(t, uint64(20), c.Counts().HookFailed)
	})
}

// Calls that take their time, but not too much, are not mistaken for calls that hang.
func TestHookOfManyWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, strategy.Config{})
		d.choose(t, 100)
		for i := range 100 {
			d.tape.events = append(d.tape.events, d.worth(t, fmt.Sprint("e", i), fmt.Sprint("s", i), 1))
		}
		var calls atomic.Int64
		c := d.consumer(t, attribution.Config{Workers: 32,
			Hook: attribution.Hook{Outcome: func(context.Context, strategy.Outcome) error {
				time.Sleep(500 * time.Millisecond)
				calls.Add(1)
				return nil
			}}})
		require.NoError(t, c.Run(ctx))
		assert.EqualValues(t, 100, calls.Load())
		assert.Zero(t, c.Counts().HookFailed)
	})
}

// An event with many outcomes does not fail because the hook takes its time for each.
func TestHookIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, strategy.Config{})
		d.choose(t, 1)
		a := attribution.Report{Session: "s0", Ended: true}
		for range 200 {
			a.Items = append(a.Items, attribution.Worth{Item: "i", Activated: true, Value: 1})
		}
		d.tape.events = []stream.Event{d.report(t, "e", a)}
		c := d.consumer(t, attribution.Config{Hook: attribution.Hook{Outcome: func(context.Context,
			strategy.Outcome) error {
			time.Sleep(900 * time.Millisecond)
			return nil
		}}})
		require.NoError(t, c.Run(ctx))
		assert.Equal(t, attribution.Counts{
			RunnerCounts: stream.RunnerCounts{Received: 1, Applied: 1},
			Outcomes:     200, HookCalls: 200,
		}, c.Counts())
	})
}

// The log tells what a hook did, and where it panicked.
func TestHookFailsForAReason(t *testing.T) {
	for reason, do := range map[string]func(context.Context) error{
		"flaky":                       func(context.Context) error { return errFlaky },
		"panicked: novel":             func(context.Context) error { panic("novel") },
		"panicked: panic called with": func(context.Context) error { panic(nil) }, //nolint:govet // what a host may do
		"ended its goroutine": func(context.Context) error {
			runtime.Goexit()
			return nil
		},
		"deadline exceeded": func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, strategy.Config{})
			d.choose(t, 1)
			var w witness
			d.tape.events = []stream.Event{d.worth(t, "e", "s0", 1)}
			c := d.consumer(t, attribution.Config{Observer: w.observe,
				Hook: attribution.Hook{Outcome: func(ctx context.Context, _ strategy.Outcome) error {
					return do(ctx)
				}}})
			require.NoError(t, c.Run(ctx))
			assert.Equal(t, uint64(1), c.Counts().HookFailed)
			texts, stacks := w.failures()
			require.Len(t, texts, 1)
			assert.Contains(t, texts[0], reason)
			assert.Equal(t, strings.Contains(reason, "goroutine") ||
				strings.HasPrefix(reason, "panicked"), strings.Contains(stacks, "hook_test.go"))
			time.Sleep(time.Minute)
		})
	}
}

// A call whose time is over is told so.
func TestHookHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, strategy.Config{})
		d.choose(t, 1)
		began := time.Now()
		var told time.Duration
		d.tape.events = []stream.Event{d.worth(t, "e", "s0", 1)}
		c := d.consumer(t, attribution.Config{HookTimeout: time.Minute,
			Hook: attribution.Hook{Outcome: func(ctx context.Context, _ strategy.Outcome) error {
				<-ctx.Done()
				told = time.Since(began)
				return nil
			}}})
		require.NoError(t, c.Run(ctx))
		synctest.Wait()
		assert.Equal(t, time.Minute, told)
		assert.Equal(t, time.Minute, time.Since(began))
	})
}
