package feedback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/stream"
)

// deadTopic is the topic of the dead letters of [Service.Consume].
const deadTopic = "heed.feedback.dead"

// Intake is where [Service.Consume] gets decisions from. Stream and DeadLetters must be set.
type Intake struct {
	// Stream delivers decision events of the Adaptive Feedback Learning design, each a JSON object
	// with its fields of at most 256 KiB. In addition, heed reads "agent", "correction_summary",
	// "severity" (also "trivial", "minor" and "major"), "consider_for_improvement" (true if it is
	// missing) and "injected_rules". It ignores other fields. A timestamp without a zone is UTC.
	Stream stream.Source
	// DeadLetters takes the events that can't be used, each as a [stream.DeadLetter] under the topic
	// "heed.feedback.dead", so that one bad event does not stop the others.
	DeadLetters stream.Sink
	// Complete fills in what a decision lacks, such as the agent, before it is recorded. nil leaves
	// it as it is. Set it if events don't name the agent, because a decision without one is refused.
	Complete func(f *Feedback)
}

// Consume records the decisions of a stream and evaluates them, by a strict [stream.Runner]. Each
// counts once, however often it is delivered. It returns nil at the end of the stream, and an error
// when the context ends or when the stream, the store or DeadLetters fails. The current message is
// then not acknowledged, and is delivered again. A decision whose evaluation fails is recorded all
// the same, and a later [Service.Sweep] evaluates it.
func (s *Service) Consume(ctx context.Context, in Intake) error {
	runner := &stream.Runner{
		Stream: in.Stream, DeadLetters: in.DeadLetters, Topic: deadTopic, Strict: true,
		Apply: func(ctx context.Context, e stream.Event) (func(context.Context), error) {
			return nil, s.take(ctx, &in, e.Payload)
		},
		Observer: s.cfg.Observer, Name: component, Now: s.now,
	}
	err := runner.Run(ctx)
	if err == nil {
		err = ctx.Err()
	}
	return wrap("consume", err)
}

// take records and evaluates a decision. A panic of the host and an id with other content are
// refused, so that they become dead letters. An error of the store ends the runner, and the message
// is delivered again.
func (s *Service) take(ctx context.Context, in *Intake, payload []byte) error {
	f, err := decodeEvent(payload)
	if err == nil && in.Complete != nil {
		err = host.Call("Intake.Complete", func() error { in.Complete(&f); return nil })
	}
	if err == nil {
		_, err = s.Record(ctx, f)
	}
	var panicked *heed.PanicError
	switch {
	case err == nil:
		_, err = s.Evaluate(ctx, f.ID) // a failure leaves it unclassified
		s.watch.Failed(ctx, "evaluation", err)
		return ctx.Err()
	case errors.As(err, &panicked):
		return stream.Refuse(err, panicked.Who+" panicked")
	case errors.Is(err, heed.ErrConflict):
		return stream.Refuse(err, "another decision has this id")
	}
	return err
}

// maxEvent is how many bytes an event may have.
const maxEvent = 256 << 10

// decodeEvent reads a decision: see Intake.Stream. Fields that only heed sets are cleared: an event
// must not classify or erase a decision.
func decodeEvent(payload []byte) (Feedback, error) {
	if len(payload) > maxEvent {
		return Feedback{}, valid.Input("event", "is %d bytes long, may be %d", len(payload), maxEvent)
	}
	var event struct {
		Feedback
		Timestamp string  `json:"timestamp"`
		Seconds   float64 `json:"review_duration_seconds"`
		Consider  *bool   `json:"consider_for_improvement"`
		Nanos     any     `json:"review_duration"` // not of the design, nor is what follows
		Private   any     `json:"private"`
	}
	decoder := json.NewDecoder(bytes.NewReader(payload))
	if err := decoder.Decode(&event); err != nil {
		return Feedback{}, valid.Input("event", "is not the JSON of a decision")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Feedback{}, valid.Input("event", "has something behind it")
	}
	at, err := parseTime(event.Timestamp)
	if err != nil {
		return Feedback{}, err
	}
	const longest = 1e9 // seconds, some 31 years
	if !(event.Seconds >= 0 && event.Seconds <= longest) {
		return Feedback{}, valid.Input("review_duration_seconds",
			"must not be negative, nor more than 1e9")
	}
	f := event.Feedback
	f.At, f.Duration, f.Private = at, time.Duration(event.Seconds*float64(time.Second)),
		event.Consider != nil && !*event.Consider
	f.Evaluation, f.Recorded, f.Erased = Evaluation{}, time.Time{}, time.Time{}
	f.Severity = strings.ToLower(f.Severity)
	if own, ok := map[string]string{
		"trivial": "low", "minor": "medium", "major": "high",
	}[f.Severity]; ok {
		f.Severity = own
	}
	return f, nil
}

// parseTime reads the forms of time that producers in other languages write. Without a zone it is
// UTC.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999",
		"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, valid.Input("timestamp", "must be a time in the form of RFC 3339")
}
