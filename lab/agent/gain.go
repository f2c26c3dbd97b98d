package agent

import (
	"context"
	"fmt"
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
	misses int // looks at the interval that left out the truth
	signed bool
	shown  loop.Gain
	truth  float64
	last   float64 // the truth of the last quarter of the events
	first  int     // event at which the interval lay above 0; 0: never
}

// compare lets an assistant with a control group live through a stream of events.
func compare(ctx context.Context, how way, seed uint64, events int, of interval) (c comparison) {
	w := world.New(seed, events)
	l := &life{way: how}
	l.agent = kit.Must(assistant.New(ctx, assistant.Config{
		Model: w.Model(), Store: kit.Must(memstore.New(memstore.Config{Now: w.Now})),
		Lessons: lessons(), Now: w.Now, Seed: seed, Off: how == off, Control: controlled,
		Instruments: []string{inspector},
	}))
	sides := sidesOf(ctx, seed)
	other := "other-0" // a session of the control group
	for n := 1; !sides(other); n++ {
		other = fmt.Sprint("other-", n)
	}
	var all, late []float64
	l.through(ctx, w, func(e loop.Event) {
		control := sides(e.Session)
		if gained := l.both(ctx, w, e, other, control); !control {
			all = append(all, gained)
			if len(l.answers) > events-events/4 {
				late = append(late, gained)
			}
		}
		if n := len(l.answers); n%lookEvery == 0 {
			c.look(kit.Must(l.agent.Gain(ctx)), n, kit.Mean(all).Mean, of)
		}
	})
	c.last = kit.Mean(late).Mean
	return c
}

// sidesOf returns whether agents of a seed draw a session into the control group.
func sidesOf(ctx context.Context, seed uint64) func(session string) bool {
	a := kit.Must(loop.New(ctx, loop.Config{
		Name: assistant.Name, Control: controlled,
		Testing: loop.Testing{Seed: rand.NewPCG(seed, 0)},
		Model:   world.New(seed, 20).Model(),
	}))
	return func(session string) bool {
		given := kit.Must(a.Answer(ctx, loop.Event{Session: session, Text: "?"}))
		return kit.Must(a.Explain(ctx, given.ID)).Control != nil
	}
}

// both answers an event and reports how good the answer was. It returns how much better that is
// than the answer without learning; 0 for an event of the control group.
func (l *life) both(ctx context.Context, w *world.World, e loop.Event, other string,
	control bool) (gained float64) {
	var without bool
	if !control {
		twin := e
		twin.ID, twin.Session, twin.Stream = "other of "+e.ID, other, ""
		p := kit.Must(l.agent.Prepare(ctx, twin))
		without = w.Judge(e, kit.Must(l.agent.Ask(ctx, p))).Good
	}
	l.answer(ctx, w, e)
	good := l.answers[len(l.answers)-1].Good
	kit.Check(l.agent.Outcome(ctx, e.ID, loop.Outcome{Success: &good, Source: inspector}))
	switch {
	case control || good == without:
		return 0
	case good:
		return 1
	}
	return -1
}

// look compares what is shown with the truth after some events.
func (c *comparison) look(shown loop.Gain, events int, truth float64, of interval) {
	c.shown, c.truth = shown, truth
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
}

// gains compares what is shown with the truth in many lives.
func gains(ctx context.Context, call *kit.Call, from uint64, lives, events int) {
	all := make([]comparison, lives)
	kit.Parallel(ctx, lives, func(i int) {
		life := from + uint64(i) //nolint:gosec // lives are few
		all[i] = compare(ctx, learns, life, events, atEveryLook)
	})
	held, signed, helps, sooner := 0, 0, 0, 0
	table := kit.NewTable(call.Out)
	fmt.Fprintln(table, "seed\tgain in truth\tshown\tinterval\tevents until learning helps\t")
	for i, c := range all {
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
			fmt.Fprintf(table, "%d\t%.1f\t%.1f\t%.1f to %.1f\t%d\t\n", from+uint64(i), 100*c.truth,
				100*(g.Learned.Success-g.Control.Success), 100*g.Low, 100*g.High, c.first)
		}
	}
	kit.Check(table.Flush())
	fmt.Fprintf(call.Out, "\nOf %d lives of %d events, %.0f %% of them in the control "+
		"group: in %d the interval held the truth at every look, one after each %d events. In %d the "+
		"sign was right after %d events. In %d learning was shown to help, in %d of them by then.\n",
		lives, events, 100*controlled, held, lookEvery, signed, signAfter, helps, sooner)
}
