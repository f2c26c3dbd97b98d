// Package streamtest is the contract of [stream.Source] in executable form. Run it from a test of
// your source:
//
//	func TestSource(t *testing.T) {
//		streamtest.Run(t, func() (streamtest.Harness, error) {
//			stream, err := mybroker.Open(t.TempDir())
//			return streamtest.Harness{Source: stream, Sink: stream, Close: stream.Close}, err
//		})
//	}
//
// It needs the standard library only. Later versions of the suite may test more of the contract.
package streamtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/stream"
)

// A Harness is a source under test, with what the suite needs to drive it.
type Harness struct {
	Source stream.Source
	// Sink is where the suite publishes what the source is to deliver.
	Sink stream.Sink
	// Reopen, where it is set, opens the source once more, like after a crash: what was in hand is
	// delivered again.
	Reopen func() (stream.Source, error)
	// Close, where it is set, has the source end once all is delivered and acknowledged.
	Close func()
}

// NewHarness returns a fresh, empty source. It holds back what is in hand for at least ten seconds.
type NewHarness func() (Harness, error)

// Run runs the suite, a subtest for each rule, each with a separate source. The rules about
// reopening and about the end are skipped if the harness can't do these.
func Run(t *testing.T, newHarness NewHarness) { conformance.Run(t, rules, newHarness) }

// rules is the suite.
var rules = []conformance.Rule[NewHarness]{
	rule("what is published is delivered as it was", deliversAsItWas),
	rule("what is acknowledged, once or twice, is not delivered again", ackedIsGone),
	rule("what is in hand is held back from others", heldBack),
	rule("what is rejected is delivered again", rejectedComesAgain),
	rule("receivers share the work", receiversShare),
	rule("a receiver waits for what comes", receiverWaits),
	rule("a context that is done ends the wait", contextDone),
	rule("what was in hand is delivered again after a crash", crashed),
	rule("the end comes after all is acknowledged", ended),
}

// rule makes a rule whose check has its own source.
func rule(name string, check func(*fixture)) conformance.Rule[NewHarness] {
	return conformance.Rule[NewHarness]{
		Name: name, Check: func(t testing.TB, newHarness NewHarness) {
			f := &fixture{Checker: conformance.Checker{TB: t}}
			var err error
			f.Harness, err = newHarness()
			f.Must("make the source", err)
			check(f)
		},
	}
}

// A fixture is a source under test.
type fixture struct {
	conformance.Checker
	Harness
}

var background = context.Background()

// patience is how long the suite waits for what must come, and moment for what must not.
const (
	patience = 5 * time.Second
	moment   = 50 * time.Millisecond
)

func event(id string) stream.Event {
	return stream.Event{
		ID: id, Topic: "suite", At: time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC),
		Payload: []byte("{\"é\x00\xff\"}" + id),
	}
}

func (f *fixture) publish(ids ...string) {
	for _, id := range ids {
		f.Must("Publish", f.Sink.Publish(background, event(id)))
	}
}

// receive returns the next delivery, which must come.
func (f *fixture) receive() stream.Delivery {
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	d, err := f.Source.Receive(ctx)
	f.Must("Receive", err)
	return d
}

// expectNothing fails if something is delivered.
func (f *fixture) expectNothing(when string) {
	ctx, cancel := context.WithTimeout(background, moment)
	defer cancel()
	d, err := f.Source.Receive(ctx)
	f.Check(errors.Is(err, context.DeadlineExceeded),
		"%s, Receive returns %v and the error %v, want that its time is over", when, d, err)
}

func (f *fixture) ack(d stream.Delivery) { f.Must("Ack", d.Ack(background)) }

func (f *fixture) reject(d stream.Delivery) { f.Must("Reject", d.Reject(background)) }

func deliversAsItWas(f *fixture) {
	published := event("1")
	f.Must("Publish", f.Sink.Publish(background, published))
	published.Payload[0] = 'X'
	for _, when := range []string{"that its publisher changed", "that another receiver changed"} {
		d := f.receive()
		got := d.Event()
		got.At = got.At.UTC()
		f.Equal("an event "+when, got, event("1"))
		got.Payload[0] = 'Y'
		f.reject(d)
	}
}

func ackedIsGone(f *fixture) {
	f.publish("1", "2")
	seen := make(map[string]bool)
	for range 2 {
		d := f.receive()
		seen[d.Event().ID] = true
		f.ack(d)
		f.ack(d)
	}
	f.Equal("the events that were delivered", seen, map[string]bool{"1": true, "2": true})
	f.expectNothing("after all is acknowledged")
}

func rejectedComesAgain(f *fixture) {
	f.publish("1")
	for range 3 {
		f.reject(f.receive())
	}
	d := f.receive()
	f.Equal("the id after it was rejected", d.Event().ID, "1")
	f.Equal("the payload after it was rejected", d.Event().Payload, event("1").Payload)
	f.ack(d)
	f.expectNothing("after it was acknowledged at last")
}

func heldBack(f *fixture) {
	f.publish("1")
	d := f.receive()
	f.expectNothing("while it is in hand")
	f.ack(d)
}

func receiversShare(f *fixture) {
	const events, receivers = 200, 4
	for i := range events {
		f.publish(fmt.Sprint(i))
	}
	var mu sync.Mutex
	seen := make(map[string]int)
	ctx, stop := context.WithCancel(background)
	defer stop()
	idle := time.AfterFunc(patience, stop)
	defer idle.Stop()
	f.AtOnce(receivers, func(int) {
		for {
			d, err := f.Source.Receive(ctx)
			if err != nil {
				return
			}
			err = d.Ack(background)
			idle.Reset(patience)
			mu.Lock()
			if seen[d.Event().ID]++; len(seen) == events || err != nil {
				stop()
			}
			mu.Unlock()
		}
	})
	f.Equal("the events that came", len(seen), events)
	for id, n := range seen {
		f.Check(n == 1, "event %q came %d times", id, n)
	}
}

func receiverWaits(f *fixture) {
	f.AtOnce(2, func(i int) {
		if i == 0 {
			f.Equal("the id that a waiting receiver got", f.receive().Event().ID, "late")
			return
		}
		time.Sleep(moment)
		f.publish("late")
	})
}

func contextDone(f *fixture) {
	f.expectNothing("of an empty source")
	f.publish("1")
	done, cancel := context.WithCancel(background)
	cancel()
	_, err := f.Source.Receive(done)
	f.Check(errors.Is(err, context.Canceled), "Receive: %v, want %v", err, context.Canceled)
	f.Equal("the id afterwards", f.receive().Event().ID, "1")
}

func crashed(f *fixture) {
	if f.Reopen == nil {
		f.Skip("the harness has no Reopen")
	}
	f.publish("1", "2")
	f.ack(f.receive())
	inHand := f.receive().Event().ID
	source, err := f.Reopen()
	f.Must("Reopen", err)
	f.Source = source
	d := f.receive()
	f.Equal("the id of what was in hand", d.Event().ID, inHand)
	f.ack(d)
	f.expectNothing("after all is acknowledged")
}

func ended(f *fixture) {
	if f.Close == nil {
		f.Skip("the harness has no Close")
	}
	f.publish("1")
	f.Close()
	d := f.receive()
	f.expectNothing("while the last event is in hand")
	f.reject(d)
	f.ack(f.receive())
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	_, err := f.Source.Receive(ctx)
	f.Check(errors.Is(err, stream.ErrClosed), "Receive of a closed source: %v", err)
}
