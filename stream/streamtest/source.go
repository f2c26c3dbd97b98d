// Package streamtest is the contract of [stream.Source] in executable form. Run it from a test of your source:
//
//	func TestSource(t *testing.T) {
//		streamtest.Run(t, func() (streamtest.Harness, error) {
//			stream, err := mybroker.Open(t.TempDir())
//			return streamtest.Harness{Source: stream, Sink: stream, Close: stream.Close}, err
//		})
//	}
//
// It needs nothing but the standard library. Later versions of the suite may test more of what the contract says.
package streamtest

import (
	"bytes"
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
	// Reopen, where it is set, opens the source once more, as after a crash: what was in hand is delivered again.
	Reopen func() (stream.Source, error)
	// Close, where it is set, has the source end once all is delivered and acknowledged.
	Close func()
}

// NewHarness returns a fresh, empty source. It holds back what is in hand for at least ten seconds.
type NewHarness func() (Harness, error)

// Run runs the suite, a subtest a rule, each with a source of its own. The rule about reopening, and that about the end, are
// skipped where the harness has no way to do so.
func Run(t *testing.T, newHarness NewHarness) {
	h, err := newHarness()
	if err != nil {
		t.Fatalf("the source can't be made: %v", err)
	}
	for i, rule := range rules {
		if lacking := lacks(h, rule.Name); lacking != "" {
			t.Run(rule.Name, func(t *testing.T) { t.Skip("the harness has no " + lacking) })
			continue
		}
		conformance.Run(t, rules[i:i+1], newHarness)
	}
}

// The rules that a harness may be without the means for.
const (
	ruleCrash = "what was in hand is delivered again after a crash"
	ruleEnd   = "the end comes after all is acknowledged"
)

// lacks returns what a harness would need for a rule.
func lacks(h Harness, rule string) string {
	switch {
	case rule == ruleCrash && h.Reopen == nil:
		return "Reopen"
	case rule == ruleEnd && h.Close == nil:
		return "Close"
	}
	return ""
}

// Check runs the suite outside a test and returns all failures, joined: each begins with the name of its rule.
func Check(newHarness NewHarness) error { return conformance.Check(rules, newHarness) }

type tb = conformance.TB

// rules is the suite.
var rules = []conformance.Rule[NewHarness]{
	{Name: "what is published is delivered as it was", Check: deliversAsItWas},
	{Name: "what is acknowledged is not delivered again", Check: ackedIsGone},
	{Name: "to acknowledge again changes nothing", Check: ackTwice},
	{Name: "what is rejected is delivered again", Check: rejectedComesAgain},
	{Name: "what is rejected waits for its delay", Check: rejectedWaits},
	{Name: "what is in hand is held back from others", Check: heldBack},
	{Name: "receivers share the work", Check: receiversShare},
	{Name: "a receiver waits for what comes", Check: receiverWaits},
	{Name: "a context that is done ends the wait", Check: contextDone},
	{Name: "what is delivered is a copy", Check: delivered},
	{Name: ruleCrash, Check: crashed},
	{Name: ruleEnd, Check: ended},
}

// A fixture is a source under test.
type fixture struct {
	tb
	Harness
}

func newFixture(t tb, newHarness NewHarness) *fixture {
	t.Helper()
	h, err := newHarness()
	if err != nil {
		t.Fatalf("the source can't be made: %v", err)
	}
	return &fixture{t, h}
}

var background = context.Background()

// patience is how long the suite waits for what must come, and moment for what must not.
const (
	patience = 5 * time.Second
	moment   = 50 * time.Millisecond
)

func event(id string) stream.Event {
	return stream.Event{
		ID: id, Topic: "suite", At: time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC), Payload: []byte("{\"é\x00\xff\"}" + id),
	}
}

func (f *fixture) publish(ids ...string) {
	f.Helper()
	for _, id := range ids {
		if err := f.Sink.Publish(background, event(id)); err != nil {
			f.Fatalf("Publish: %v", err)
		}
	}
}

// receive returns the next delivery, which must come.
func (f *fixture) receive() stream.Delivery {
	f.Helper()
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	d, err := f.Source.Receive(ctx)
	if err != nil {
		f.Fatalf("Receive: %v", err)
	}
	return d
}

// expectNothing fails if something is delivered.
func (f *fixture) expectNothing(when string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(background, moment)
	defer cancel()
	if d, err := f.Source.Receive(ctx); err == nil {
		f.Errorf("%s, %q is delivered", when, d.Event().ID)
	} else if !errors.Is(err, context.DeadlineExceeded) {
		f.Errorf("%s, Receive gives %v, want that its time is over", when, err)
	}
}

func (f *fixture) ack(d stream.Delivery) {
	f.Helper()
	if err := d.Ack(background); err != nil {
		f.Fatalf("Ack: %v", err)
	}
}

func (f *fixture) reject(d stream.Delivery, delay time.Duration) {
	f.Helper()
	if err := d.Reject(background, delay); err != nil {
		f.Fatalf("Reject: %v", err)
	}
}

func deliversAsItWas(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	f.publish("1")
	want, got := event("1"), f.receive().Event()
	if got.ID != want.ID || got.Topic != want.Topic || !got.At.Equal(want.At) || !bytes.Equal(got.Payload, want.Payload) {
		t.Errorf("delivered %+v, want %+v", got, want)
	}
}

func ackedIsGone(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	f.publish("1", "2")
	seen := make(map[string]bool)
	for range 2 {
		d := f.receive()
		seen[d.Event().ID] = true
		f.ack(d)
	}
	if len(seen) != 2 {
		t.Errorf("of two events, two deliveries were of one: %v", seen)
	}
	f.expectNothing("after all is acknowledged")
}

func ackTwice(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	f.publish("1")
	d := f.receive()
	f.ack(d)
	f.ack(d)
	f.expectNothing("after it was acknowledged twice")
}

func rejectedComesAgain(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	f.publish("1")
	for range 3 {
		f.reject(f.receive(), 0)
	}
	d := f.receive()
	if got, want := d.Event(), event("1"); got.ID != want.ID || !bytes.Equal(got.Payload, want.Payload) {
		t.Errorf("after it was rejected, %+v is delivered", got)
	}
	f.ack(d)
	f.expectNothing("after it was acknowledged at last")
}

func rejectedWaits(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	f.publish("1")
	f.reject(f.receive(), 6*moment)
	f.expectNothing("before the delay is over")
	if id := f.receive().Event().ID; id != "1" {
		t.Errorf("after the delay %q is delivered", id)
	}
}

func heldBack(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	f.publish("1")
	d := f.receive()
	f.expectNothing("while it is in hand")
	f.ack(d)
}

func receiversShare(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	const events, receivers = 200, 4
	for i := range events {
		f.publish(fmt.Sprint(i))
	}
	var (
		mu   sync.Mutex
		seen = make(map[string]int)
		wait sync.WaitGroup
		ctx  context.Context
		stop context.CancelFunc
	)
	ctx, stop = context.WithCancel(background)
	defer stop()
	idle := time.AfterFunc(patience, stop)
	defer idle.Stop()
	for range receivers {
		wait.Go(func() {
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
	}
	wait.Wait()
	twice := 0
	for _, n := range seen {
		if n > 1 {
			twice++
		}
	}
	if len(seen) != events || twice > 0 {
		t.Errorf("of %d events %d receivers got %d, and %d more than once", events, receivers, len(seen), twice)
	}
}

func receiverWaits(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	got := make(chan string, 1)
	go func() {
		d, err := f.Source.Receive(ctx)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- d.Event().ID
	}()
	time.Sleep(moment)
	f.publish("late")
	if id := <-got; id != "late" {
		t.Errorf("who waited got %q", id)
	}
}

func contextDone(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	f.expectNothing("of an empty source")
	f.publish("1")
	done, cancel := context.WithCancel(background)
	cancel()
	if _, err := f.Source.Receive(done); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done, Receive gives %v", err)
	}
	if id := f.receive().Event().ID; id != "1" {
		t.Errorf("afterwards %q is delivered", id)
	}
}

func delivered(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	published := event("1")
	if err := f.Sink.Publish(background, published); err != nil {
		t.Fatalf("Publish: %v", err)
	}
	published.Payload[0] = 'X'
	d := f.receive()
	if payload := d.Event().Payload; !bytes.Equal(payload, event("1").Payload) {
		t.Errorf("what was changed after it was published is delivered so: %q", payload)
	}
	d.Event().Payload[0] = 'Y'
	f.reject(d, 0)
	if payload := f.receive().Event().Payload; !bytes.Equal(payload, event("1").Payload) {
		t.Errorf("what one receiver changed, the next sees: %q", payload)
	}
}

func crashed(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	if f.Reopen == nil {
		return
	}
	f.publish("1", "2")
	f.ack(f.receive())
	inHand := f.receive().Event().ID
	source, err := f.Reopen()
	if err != nil {
		t.Fatalf("Reopen: %v", err)
	}
	f.Source = source
	d := f.receive()
	if id := d.Event().ID; id != inHand {
		t.Errorf("%q was in hand, and %q is delivered", inHand, id)
	}
	f.ack(d)
	f.expectNothing("after all is acknowledged")
}

func ended(t tb, newHarness NewHarness) {
	f := newFixture(t, newHarness)
	if f.Close == nil {
		return
	}
	f.publish("1")
	f.Close()
	d := f.receive()
	f.expectNothing("while the last event is in hand")
	f.reject(d, 0)
	f.ack(f.receive())
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	if _, err := f.Source.Receive(ctx); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("when all is acknowledged, a closed source gives %v", err)
	}
}
