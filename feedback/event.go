package feedback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

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
