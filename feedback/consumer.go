package feedback

import (
	"context"
	"errors"
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/stream"
)

// Intake says where [Service.Consume] gets decisions from. Stream and DeadLetter must be set.
type Intake struct {
	Stream stream.Source
	// DeadLetter keeps a message that can't be used, with the reason. The message is acknowledged after that.
	DeadLetter func(ctx context.Context, payload []byte, reason error) error
	// Complete fills in what a decision lacks, such as the agent, before it is recorded. nil leaves it as it is.
	Complete func(f *Feedback)
}

// Consume records the decisions of a stream, as [DecodeEvent] reads them, and evaluates them. Each counts once, however often
// it is delivered. It returns nil at the end of the stream, and an error when the context ends or when the stream, the store
// or DeadLetter fails. The current message is then not acknowledged, and is delivered again. A decision whose evaluation
// fails is recorded all the same, and a later [Service.Sweep] evaluates it.
func (s *Service) Consume(ctx context.Context, in Intake) error {
	var found faults.List
	found.Check(in.Stream != nil, "Stream", nil, "must be set")
	found.Check(in.DeadLetter != nil, "DeadLetter", nil, "must be set")
	if err := found.Err(); err != nil {
		return wrap("consume", err)
	}
	for {
		var d stream.Delivery
		var id string
		var payload []byte
		err := host.Call("Intake.Stream", func() (err error) {
			if d, err = in.Stream.Receive(ctx); err == nil {
				event := d.Event()
				id, payload = event.ID, event.Payload
			}
			return err
		})
		switch {
		case errors.Is(err, stream.ErrClosed):
			return nil
		case err != nil:
			return wrap("consume", err)
		}
		if err := s.take(ctx, in, id, payload); err != nil {
			return wrap("consume", err)
		}
		if err := host.Call("Delivery.Ack", func() error { return d.Ack(ctx) }); err != nil {
			return wrap("consume: acknowledge", err)
		}
	}
}

// take records and evaluates a decision, or gives it to the dead letters.
func (s *Service) take(ctx context.Context, in Intake, id string, payload []byte) error {
	f, err := DecodeEvent(payload)
	if err == nil && in.Complete != nil {
		err = host.Call("Intake.Complete", func() error { in.Complete(&f); return nil })
	}
	if err == nil {
		_, err = s.Record(ctx, f)
	}
	if err == nil {
		_, failed := s.Evaluate(ctx, f.ID) // a failure leaves it unclassified
		s.watch.Failed(ctx, "evaluation", failed)
		return ctx.Err()
	}
	reason := err.Error()
	switch panicked := (*heed.PanicError)(nil); {
	case errors.As(err, &panicked):
		reason = panicked.Who + " panicked" // with a value that may be private
	case !errors.As(err, new(*heed.InputError)) && !errors.Is(err, heed.ErrConflict):
		return err
	}
	if failed := host.Call("Intake.DeadLetter", func() error { return in.DeadLetter(ctx, payload, err) }); failed != nil {
		return fmt.Errorf("dead letter: %w", failed)
	}
	if s.watch != nil {
		s.watch.Tell(ctx, heed.DeadLettered{Component: component, At: s.now(), ID: id, Reason: reason})
	}
	return nil
}
