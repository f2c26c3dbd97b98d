package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/faults"
)

// DefaultStream is the stream that decisions are read from where no other is named.
const DefaultStream = "asdlc:events:hitl_decisions"

// Source delivers messages at least once. An implementation is used by one goroutine at a time.
type Source interface {
	// Receive waits for the next message of a stream. It returns [io.EOF] when there will be none any more, and the
	// context's error when that is done. What was neither acknowledged nor failed is delivered again, sometime.
	Receive(ctx context.Context, stream string) (Delivery, error)
}

// A Delivery is a message with the way to answer for it.
type Delivery struct {
	Payload []byte
	// Ack says that the message need not come again. It is called when its effect is stored, or when it was put aside.
	Ack func(ctx context.Context) error
}

// ConsumerConfig configures a [Consumer]. Service, Source and DeadLetter must be set.
type ConsumerConfig struct {
	Service *Service
	Source  Source
	// Stream is the stream to read. "" means [DefaultStream].
	Stream string
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
	cfg.Stream = cmp.Or(cfg.Stream, DefaultStream)
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
// the source, the store, or the dead letters. What was being worked on is then not acknowledged, and comes again. A decision
// whose evaluation fails is recorded all the same: see [Service.EvaluateAll].
func (c *Consumer) Run(ctx context.Context) error {
	for {
		d, err := c.receive(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return wrap("consume", err)
		}
		if err := c.consume(ctx, d.Payload); err != nil {
			return wrap("consume", err)
		}
		if err := d.acknowledge(ctx); err != nil {
			return wrap("consume: acknowledge", err)
		}
	}
}

func (c *Consumer) receive(ctx context.Context) (d Delivery, err error) {
	defer contain("ConsumerConfig.Source", &err)
	return c.cfg.Source.Receive(ctx, c.cfg.Stream)
}

func (d *Delivery) acknowledge(ctx context.Context) (err error) {
	if d.Ack == nil {
		return nil
	}
	defer contain("Delivery.Ack", &err)
	return d.Ack(ctx)
}

func (c *Consumer) consume(ctx context.Context, payload []byte) error {
	f, err := DecodeEvent(payload)
	if err == nil {
		err = c.complete(&f)
	}
	if err == nil {
		if _, err = c.cfg.Service.Record(ctx, f); err == nil {
			_, _ = c.cfg.Service.Evaluate(ctx, f.ID) // what fails stays unclassified
			return ctx.Err()
		}
	}
	var bad *heed.InputError
	var panicked *PanicError
	if !errors.As(err, &bad) && !errors.As(err, &panicked) && !errors.Is(err, heed.ErrConflict) {
		return err
	}
	if err := c.putAside(ctx, payload, err); err != nil {
		return fmt.Errorf("dead letter: %w", err)
	}
	return nil
}

func (c *Consumer) putAside(ctx context.Context, payload []byte, reason error) (err error) {
	defer contain("ConsumerConfig.DeadLetter", &err)
	return c.cfg.DeadLetter(ctx, payload, reason)
}

func (c *Consumer) complete(f *Feedback) (err error) {
	if c.cfg.Complete == nil {
		return nil
	}
	defer contain("ConsumerConfig.Complete", &err)
	c.cfg.Complete(f)
	return nil
}
