package feedback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store/storetest"
	"github.com/heedhq/heed/stream"
)

const document = `{
	"decision_id": "7", "gate_id": "HITL-2", "epic_id": "E1", "task_id": null, "decision": "APPROVED_WITH_CHANGES",
	"reviewer_id": "Ann", "timestamp": "2026-05-04T03:02:01.25", "review_duration_seconds": 95, "agent_output_sha": "a",
	"approved_output_sha": "b", "correction_diff_path": "corrections/7.diff", "reviewer_comment": "too long",
	"tags": ["scope"], "agent": "prd"}`

func TestDecodeEvent(t *testing.T) {
	f, err := feedback.DecodeEvent([]byte(document))
	require.NoError(t, err)
	assert.Equal(t, feedback.Feedback{
		ID: "7", Gate: "HITL-2", Epic: "E1", Agent: "prd", Decision: feedback.ApprovedWithChanges,
		Reviewer: "Ann",
		At:       start.Add(250 * time.Millisecond), Duration: 95 * time.Second, OutputSHA: "a",
		ApprovedSHA: "b",
		DiffPath:    "corrections/7.diff", Comment: "too long", Tags: []string{"scope"},
	}, f)

	more := strings.Replace(document, `"agent"`, `"correction_summary": "long", "severity": "MAJOR", "consider_for_improvement": false,
		"injected_rules": ["r1"], "unknown": {"x": [1]}, "agent"`, 1)
	f, err = feedback.DecodeEvent([]byte(more))
	require.NoError(t, err)
	assert.Equal(t, "long", f.Summary)
	assert.Equal(t, "high", f.Severity)
	assert.True(t, f.Private)
	assert.Equal(t, []string{"r1"}, f.Rules)

	for old, bad := range map[string]string{
		`"2026-05-04T03:02:01.25"`: `"yesterday"`, `95`: `-1`, `"Ann"`: `7`, `["scope"]`: `"scope"`, `"prd"}`: `"prd"} {}`,
		document: `[]`, `95,`: `1e300,`, `"7"`: `null, "decision_id": {}`, `{`: ``,
	} {
		_, err := feedback.DecodeEvent([]byte(strings.Replace(document, old, bad, 1)))
		assert.ErrorAs(t, err, new(*heed.InputError), bad)
	}
	_, err = feedback.DecodeEvent([]byte(strings.Replace(document, "95", "1e9", 1)))
	require.NoError(t, err)
	_, err = feedback.DecodeEvent([]byte(strings.Repeat(" ", feedback.MaxEvent+1)))
	assert.ErrorAs(t, err, new(*heed.InputError))
	for _, zone := range []string{"2026-05-04T05:02:01.25+02:00", "2026-05-04T03:02:01.25Z",
		"2026-05-04 03:02:01.25+00:00", "2026-05-04 03:02:01.25"} {
		f, err := feedback.DecodeEvent([]byte(strings.Replace(document, "2026-05-04T03:02:01.25", zone,
			1)))
		require.NoError(t, err)
		assert.Equal(t, start.Add(250*time.Millisecond), f.At)
	}
}

// queue delivers messages, each again until it is acknowledged.
type queue struct {
	messages [][]byte
	acked    int
	fail     error
}

func (q *queue) Receive(ctx context.Context) (stream.Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if q.fail != nil {
		return nil, q.fail
	}
	if len(q.messages) == 0 {
		return nil, stream.ErrClosed
	}
	return delivery{q.messages[0], func() {
		q.messages = q.messages[1:]
		q.acked++
	}}, nil
}

type delivery struct {
	payload []byte
	ack     func()
}

func (d delivery) Event() stream.Event {
	return stream.Event{ID: "x", Topic: "reviews", Payload: d.payload}
}
func (d delivery) Ack(context.Context) error    { d.ack(); return nil }
func (d delivery) Reject(context.Context) error { return nil }

func message(id, reviewer, comment string) []byte {
	text, err := json.Marshal(map[string]any{
		"decision_id": id, "gate_id": "HITL-1", "decision": "REJECTED", "reviewer_id": reviewer,
		"timestamp":        start.Format(time.RFC3339),
		"reviewer_comment": comment, "agent": "prd",
	})
	if err != nil {
		panic(err)
	}
	return text
}

type dead struct {
	reasons []string
	fail    error
}

func (d *dead) Publish(_ context.Context, e stream.Event) error {
	var letter stream.DeadLetter
	if d.fail == nil {
		d.fail = json.Unmarshal(e.Payload, &letter)
		d.reasons = append(d.reasons, letter.Reason)
	}
	return d.fail
}

func (w *world) consume(q *queue, d *dead, complete func(*feedback.Feedback)) error {
	return w.Consume(ctx, feedback.Intake{Stream: q, DeadLetters: d, Complete: complete})
}

func TestConsumerCountsEachDecisionOnce(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	var messages [][]byte
	for i := range 50 {
		says := fmt.Sprint("the ", strings.Repeat("very ", i%5), "summary is long")
		m := message(fmt.Sprint("e", i), []string{"ann", "bob"}[i%2], says)
		messages = append(messages, m, m, m)
	}
	q, d := &queue{messages: messages}, &dead{}
	require.NoError(t, w.consume(q, d, nil))
	require.NoError(t, w.consume(&queue{messages: messages}, d, nil))
	assert.Equal(t, 150, q.acked)
	assert.Empty(t, d.reasons)
	_, total, err := w.List(ctx, feedback.Listing{})
	require.NoError(t, err)
	assert.Equal(t, 50, total)
	w.flush()
	assert.Equal(t, 50, w.pending().Occurrences)
}

func TestConsumerPutsAsideWhatItCantUse(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	changed := message("good", "ann", "other words")
	q := &queue{messages: [][]byte{[]byte("{"), message("", "ann", "x"), message("good", "ann", "x"),
		changed, message("2", " ", "x")}}
	d := &dead{}
	require.NoError(t, w.consume(q, d, nil))
	assert.Equal(t, 5, q.acked)
	require.Len(t, d.reasons, 4)
	assert.Contains(t, d.reasons[2], heed.ErrConflict.Error())

	q, d = &queue{messages: [][]byte{[]byte("{"), message("3", "ann", "x")}}, &dead{fail: errFlaky}
	assert.ErrorIs(t, w.consume(q, d, nil), errFlaky)
	assert.Zero(t, q.acked, "what can't be put aside is not acknowledged")
}

func TestConsumerGoesOnWhenEvaluationFails(t *testing.T) {
	similarity := &flaky{failing: true}
	w := newWorld(t, feedback.Config{Similarity: similarity})
	q := &queue{messages: [][]byte{message("1", "ann", "too long"), message("2", "bob", "too long")}}
	require.NoError(t, w.consume(q, &dead{}, nil))
	assert.Equal(t, 2, q.acked)
	assert.Empty(t, w.get("2").Class)
	similarity.failing = false
	_, err := w.EvaluateAll(ctx)
	require.NoError(t, err)
	assert.Equal(t, feedback.GeneralizableHigh, w.get("2").Class)
}

func TestConsumerDoesNotAcknowledgeWhatIsNotKept(t *testing.T) {
	st := &storetest.Failing{Store: newStore(t, nil)}
	w := newWorld(t, feedback.Config{Store: st})
	st.Fail(1, false)
	q := &queue{messages: [][]byte{message("1", "ann", "x")}}
	assert.ErrorIs(t, w.consume(q, &dead{}, nil), storetest.ErrFailed)
	assert.Zero(t, q.acked)
	q.fail = errors.New("broker")
	assert.ErrorIs(t, w.consume(q, &dead{}, nil), q.fail)
	done, cancel := context.WithCancel(ctx)
	cancel()
	in := feedback.Intake{Stream: q, DeadLetters: &dead{}}
	assert.ErrorIs(t, w.Consume(done, in), context.Canceled)
}

// broken is a source that panics in one of its parts.
type broken struct{ receive, ack bool }

func (b broken) Receive(context.Context) (stream.Delivery, error) {
	if b.receive {
		panic("receive")
	}
	return delivery{[]byte("nonsense"), func() {
		if b.ack {
			panic("ack")
		}
	}}, nil
}

type sink func()

func (s sink) Publish(context.Context, stream.Event) error { s(); return nil }

func TestConsumerSurvivesItsHost(t *testing.T) {
	for who, source := range map[string]broken{
		"the source": {receive: true}, "the delivery": {ack: true}, "the dead letters": {},
	} {
		var panicked *heed.PanicError
		require.ErrorAs(t, newWorld(t, feedback.Config{}).Consume(ctx, feedback.Intake{
			Stream: source, DeadLetters: sink(func() {
				if source == (broken{}) {
					panic("dead letter")
				}
			}),
		}), &panicked)
		assert.Equal(t, who, panicked.Who)
	}
}

func TestConsumerCompletesEvents(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	without := []byte(strings.Replace(string(message("1", "ann", "x")), `"agent":"prd",`, "", 1))
	d := &dead{}
	require.NoError(t, w.consume(&queue{messages: [][]byte{without}}, d, nil))
	assert.Len(t, d.reasons, 1, "without an agent it is of no use")
	byGate := func(f *feedback.Feedback) { f.Agent = "agent of " + f.Gate }
	require.NoError(t, w.consume(&queue{messages: [][]byte{without}}, d, byGate))
	assert.Equal(t, "agent of HITL-1", w.get("1").Agent)
	bad := func(*feedback.Feedback) { panic("no") }
	require.NoError(t, w.consume(&queue{messages: [][]byte{without}}, d, bad))
	assert.Len(t, d.reasons, 2)

	err := w.Consume(ctx, feedback.Intake{})
	faults := 0
	for range heed.ConfigErrors(err) {
		faults++
	}
	assert.Equal(t, 2, faults)
}
