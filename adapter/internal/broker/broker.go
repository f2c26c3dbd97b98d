// Package broker has what the adapters of brokers share.
package broker

import (
	"context"
	"time"

	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/stream"
)

// Faults collects the faults of a configuration.
type Faults = valid.Faults

// Wrap adds to an error where it is from.
func Wrap(where string, err error) error { return valid.Wrap(where, err) }

// TimeText returns the time of an event by RFC 3339. It refuses an event without a topic.
func TimeText(e *stream.Event) (string, error) {
	if e.Topic == "" {
		return "", valid.Input("Topic", "must be set")
	}
	at, err := e.At.MarshalText()
	if err != nil {
		return "", valid.Input("At", "must have a year up to 9999")
	}
	return string(at), nil
}

// ParseTime returns the time of a text by RFC 3339, or another time if the text is not a time.
func ParseTime(text string, other time.Time) time.Time {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at
	}
	return other
}

// Poll asks for the next delivery until there is one. After an error it waits, unless the broker is
// gone: gone then returns why.
func Poll(ctx context.Context, pause time.Duration,
	next func(context.Context) (stream.Delivery, error),
	gone func(context.Context, error) error) (stream.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := next(ctx)
		switch {
		case d != nil:
			return d, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			continue
		}
		if err := gone(ctx, err); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
