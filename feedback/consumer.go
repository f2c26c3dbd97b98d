package feedback

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

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
		d, err := c.cfg.Source.Receive(ctx, c.cfg.Stream)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return wrap("consume", err)
		}
		if err := c.consume(ctx, d.Payload); err != nil {
			return wrap("consume", err)
		}
		if d.Ack != nil {
			if err := d.Ack(ctx); err != nil {
				return wrap("consume: acknowledge", err)
			}
		}
	}
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
	if err := c.cfg.DeadLetter(ctx, payload, err); err != nil {
		return fmt.Errorf("dead letter: %w", err)
	}
	return nil
}

func (c *Consumer) complete(f *Feedback) (err error) {
	if c.cfg.Complete == nil {
		return nil
	}
	defer contain("ConsumerConfig.Complete", &err)
	c.cfg.Complete(f)
	return nil
}

// MaxEvent is how many bytes an event may have.
const MaxEvent = 256 << 10

// event is a decision as the Adaptive Feedback Learning design has it on the stream, with what it lacks there.
type event struct {
	DecisionID   string   `json:"decision_id"`
	Gate         string   `json:"gate_id"`
	Epic         string   `json:"epic_id"`
	Task         *string  `json:"task_id"`
	Decision     string   `json:"decision"`
	Reviewer     string   `json:"reviewer_id"`
	Timestamp    string   `json:"timestamp"`
	Seconds      float64  `json:"review_duration_seconds"`
	OutputSHA    string   `json:"agent_output_sha"`
	ApprovedSHA  *string  `json:"approved_output_sha"`
	DiffPath     *string  `json:"correction_diff_path"`
	Comment      *string  `json:"reviewer_comment"`
	Tags         []string `json:"tags"`
	Agent        string   `json:"agent"`
	Summary      *string  `json:"correction_summary"`
	Severity     *string  `json:"severity"`
	Consider     *bool    `json:"consider_for_improvement"`
	InjectedRule []string `json:"injected_rules"`
}

// DecodeEvent reads a decision event of the Adaptive Feedback Learning design: a JSON object with its fields, and beyond
// them "agent", "correction_summary", "severity" (also "trivial", "minor" and "major"), "consider_for_improvement" (true
// where it is not there) and "injected_rules". Fields that it does not know are of no account. A timestamp without a zone
// is taken for UTC. What it can't read is a [*heed.InputError]. Whether the feedback is valid is for [Service.Record].
func DecodeEvent(payload []byte) (Feedback, error) {
	if len(payload) > MaxEvent {
		return Feedback{}, invalid("event", fmt.Sprintf("is %d bytes long, may be %d", len(payload), MaxEvent))
	}
	var e event
	decoder := json.NewDecoder(bytes.NewReader(payload))
	if err := decoder.Decode(&e); err != nil {
		return Feedback{}, invalid("event", "is not the JSON of a decision")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Feedback{}, invalid("event", "has something behind it")
	}
	at, err := parseTime(e.Timestamp)
	if err != nil {
		return Feedback{}, err
	}
	const longest = 1e9 // seconds, some 31 years
	if !(e.Seconds >= 0 && e.Seconds <= longest) {
		return Feedback{}, invalid("review_duration_seconds", "must not be negative, nor more than 1e9")
	}
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	return Feedback{
		ID: e.DecisionID, Gate: e.Gate, Agent: e.Agent, Epic: e.Epic, Task: text(e.Task), Decision: Decision(e.Decision),
		Reviewer: e.Reviewer, At: at, Duration: time.Duration(e.Seconds * float64(time.Second)),
		OutputSHA: e.OutputSHA, ApprovedSHA: text(e.ApprovedSHA), DiffPath: text(e.DiffPath),
		Summary: text(e.Summary), Comment: text(e.Comment), Severity: severityOf(text(e.Severity)),
		Tags: e.Tags, Private: e.Consider != nil && !*e.Consider, Rules: e.InjectedRule,
	}, nil
}

// severityOf also knows the words of a form that has four others.
func severityOf(word string) Severity {
	switch word = strings.ToLower(word); word {
	case "trivial":
		return Low
	case "minor":
		return Medium
	case "major":
		return High
	default:
		return Severity(word)
	}
}

func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, invalid("timestamp", "must be a time as of RFC 3339")
}
