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

// ConsumerConfig configures a [Consumer]. Service, Source and DeadLetter must be set.
type ConsumerConfig struct {
	Service *Service
	Source  stream.Source
	// DeadLetter puts a message aside that can't be used, with why; only then is it acknowledged.
	DeadLetter func(ctx context.Context, payload []byte, reason error) error
	// Complete fills in what a decision lacks, such as the agent, before it is recorded. nil leaves it.
	Complete func(f *Feedback)
}

// A Consumer records the decisions of a stream and evaluates them: each once in effect, however often it is delivered. Make
// one with [NewConsumer]. A Consumer must not be used concurrently; several may share a service.
type Consumer struct{ cfg ConsumerConfig }

// NewConsumer returns a consumer, or all faults of its configuration, joined.
func NewConsumer(cfg ConsumerConfig) (*Consumer, error) {
	var found faults.List
	found.Check(cfg.Service != nil, "Service", nil, "must be set")
	found.Check(cfg.Source != nil, "Source", nil, "must be set")
	found.Check(cfg.DeadLetter != nil, "DeadLetter", nil, "must be set")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("feedback: consumer: %w", err)
	}
	return &Consumer{cfg}, nil
}

// Config returns the configuration in force.
func (c *Consumer) Config() ConsumerConfig { return c.cfg }

// Run consumes until the source is at its end, which is no error, or until the context is done or something fails for good:
// the source, the store, or the dead letters. What was being worked on is then not acknowledged, and comes again when its
// lease ends. A decision whose evaluation fails is recorded all the same, and evaluated by a later [Service.Sweep].
func (c *Consumer) Run(ctx context.Context) error {
	for {
		d, payload, err := c.receive(ctx)
		switch {
		case errors.Is(err, stream.ErrClosed):
			return nil
		case err != nil:
			return wrap("consume", err)
		}
		if err := c.take(ctx, payload); err != nil {
			return wrap("consume", err)
		}
		if err := host.Call("Delivery.Ack", func() error { return d.Ack(ctx) }); err != nil {
			return wrap("consume: acknowledge", err)
		}
	}
}

func (c *Consumer) receive(ctx context.Context) (d stream.Delivery, payload []byte, err error) {
	err = host.Call("ConsumerConfig.Source", func() error {
		if d, err = c.cfg.Source.Receive(ctx); err == nil {
			payload = d.Event().Payload
		}
		return err
	})
	return d, payload, err
}

// take records and evaluates a decision, or puts it aside.
func (c *Consumer) take(ctx context.Context, payload []byte) error {
	f, err := DecodeEvent(payload)
	if err == nil && c.cfg.Complete != nil {
		err = host.Call("ConsumerConfig.Complete", func() error { c.cfg.Complete(&f); return nil })
	}
	if err == nil {
		if _, err = c.cfg.Service.Record(ctx, f); err == nil {
			_, _ = c.cfg.Service.Evaluate(ctx, f.ID) // what fails stays unclassified
			return ctx.Err()
		}
	}
	var bad *heed.InputError
	var panicked *heed.PanicError
	if !errors.As(err, &bad) && !errors.As(err, &panicked) && !errors.Is(err, heed.ErrConflict) {
		return err
	}
	aside := host.Call("ConsumerConfig.DeadLetter", func() error { return c.cfg.DeadLetter(ctx, payload, err) })
	if aside != nil {
		return fmt.Errorf("dead letter: %w", aside)
	}
	return nil
}
