package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/heedhq/heed/lab/agent/assistant"
	"github.com/heedhq/heed/lab/agent/world"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/memstore"
)

const (
	controlled = 0.05        // of the events are answered as without learning
	inspector  = "inspector" // reports of each answer whether it was good
	lookEvery  = 10          // events
	signAfter  = 1000        // events
)

// A comparison is a life with a control group, and what its gain is in truth: the mean, over the
// answers with learning, of how much better they are than the same events' answers without.
type comparison struct {
	looks, misses int // at the interval, and how many left out the truth
	signed        bool
	shown         loop.Gain
	truth         float64
	first         int // event at which the interval lay above 0; 0: never
}

// compare lets an assistant with a control group live through a stream of events.
func compare(ctx context.Context, seed uint64, events int, of interval) (c comparison,
	err error) {
	w := world.New(seed, events)
	l := &life{way: learns}
	kept, err := memstore.New(memstore.Config{Now: w.Now})
	if err != nil {
		return c, err
	}
	l.agent, err = assistant.New(ctx, assistant.Config{
		Model: w.Model(), Store: kept, Lessons: lessons(), Now: w.Now, Seed: seed,
		Control: controlled, Instruments: []string{inspector},
	})
	if err != nil {
		return c, err
	}
	other, err := controlSession(ctx, seed)
	if err != nil {
		return c, err
	}
	var gained, learned float64
	for happening := w.Next(); happening != nil && err == nil; happening = w.Next() {
		switch h := happening.(type) {
		case loop.Event:
			var good, without, control bool
			if good, without, control, err = l.both(ctx, w, h, other); err == nil && !control {
				gained, learned = gained+worth(good)-worth(without), learned+1
			}
			if n := len(l.answers); err == nil && n%lookEvery == 0 {
				err = c.look(ctx, l, n, gained/math.Max(learned, 1), of)
			}
		case assistant.Morning:
			err = l.morning(ctx, w, h)
		default:
			err = l.take(ctx, h)
		}
	}
	return c, err
}

func worth(good bool) float64 {
	if good {
		return 1
	}
	return 0
}

// controlSession returns a session of the control group that agents of a seed draw.
func controlSession(ctx context.Context, seed uint64) (string, error) {
	a, err := loop.New(ctx, loop.Config{
		Name: assistant.Name, Control: controlled,
		Testing: loop.Testing{Seed: rand.NewPCG(seed, 0)},
		Model:   world.New(seed, 20).Model(),
	})
	if err != nil {
		return "", err
	}
	for n := range 10_000 {
		session := fmt.Sprint("other-", n)
		given, err := a.Answer(ctx, loop.Event{Session: session, Text: "?"})
		if err != nil {
			return "", err
		}
		if account, err := a.Explain(ctx, given.ID); err != nil || account.Control != nil {
			return session, err
		}
	}
	return "", errors.New("no session is in the control group")
}

// both answers an event, reports how good the answer was, and returns that with how good the answer
// without learning would have been.
func (l *life) both(
	ctx context.Context, w *world.World, e loop.Event, other string,
) (good, without, control bool, err error) {
	twin := e
	twin.ID, twin.Session, twin.Stream = "other of "+e.ID, other, ""
	p, err := l.agent.Prepare(ctx, twin)
	if err != nil {
		return false, false, false, err
	}
	reply, err := l.agent.Ask(ctx, p)
	if err != nil {
		return false, false, false, err
	}
	without = w.Judge(e, reply).Good
	if err := l.answer(ctx, w, e); err != nil {
		return false, false, false, err
	}
	good = l.answers[len(l.answers)-1].Good
	account, err := l.agent.Explain(ctx, e.ID)
	if err == nil {
		err = l.agent.Outcome(ctx, e.ID, loop.Outcome{Success: &good, Source: inspector})
	}
	return good, without, account.Control != nil, err
}

// look compares what is shown with the truth after some events.
func (c *comparison) look(ctx context.Context, l *life, events int, truth float64,
	of interval) (err error) {
	if c.shown, err = l.agent.Gain(ctx); err != nil {
		return err
	}
	c.looks, c.truth = c.looks+1, truth
	if low, high := of(&c.shown); truth < low || truth > high {
		c.misses++
	}
	difference := c.shown.Learned.Success - c.shown.Control.Success
	if events == signAfter {
		c.signed = difference*truth > 0
	}
	if c.first == 0 && c.shown.Verdict() == loop.Helps {
		c.first = events
	}
	return nil
}

// gains compares what is shown with the truth in many lives.
func gains(ctx context.Context, call *kit.Call, from uint64, lives, events int) error {
	held, signed, helps, sooner := 0, 0, 0, 0
	table := kit.NewTable(call.Out)
	fmt.Fprintln(table, "seed\tgain in truth\tshown\tinterval\tevents until learning helps\t")
	for i := range lives {
		seed := from + uint64(i) //nolint:gosec // lives are few
		c, err := compare(ctx, seed, events, atEveryLook)
		if err != nil {
			return err
		}
		call.Progress(i+1, lives)
		if c.misses == 0 {
			held++
		}
		if c.signed {
			signed++
		}
		if c.first > 0 {
			helps++
		}
		if c.first > 0 && c.first <= signAfter {
			sooner++
		}
		if i < 5 {
			g := &c.shown
			fmt.Fprintf(table, "%d\t%.1f\t%.1f\t%.1f to %.1f\t%d\t\n", seed, 100*c.truth,
				100*(g.Learned.Success-g.Control.Success), 100*g.Low, 100*g.High, c.first)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(call.Out, "\nOf %d lives of %d events, %.0f %% of them in the control "+
		"group: in %d the interval held the truth at every look, one after each %d events. In %d the "+
		"sign was right after %d events. In %d learning was shown to help, in %d of them by then.\n",
		lives, events, 100*controlled, held, lookEvery, signed, signAfter, helps, sooner)
	return err
}
