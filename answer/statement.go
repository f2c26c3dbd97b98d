package answer

import (
	"time"
)

// A Target is the part of an answer that a statement is about. "" means the whole answer.
type Target string

// The targets.
const (
	TargetRule     Target = "rule"     // that there was this answer in this situation
	TargetResponse Target = "response" // the words of the answer
)

// A SourceKind is the kind of source that makes a statement: "person" for somebody who uses,
// reviews or operates the agent, "instrument" for a machine that the host names, such as CI, a test
// suite or a payment, and "" if the host did not set it.
type SourceKind string

// A How is the way in which a statement came about, for example by silence.
type How string

// A Statement is one fact about the quality of an answer. It must not be used concurrently.
type Statement struct {
	N       uint64     `json:"n"` // names the statement within the answer
	How     How        `json:"how,omitempty"`
	By      string     `json:"by,omitempty"` // who stated it, or did it
	Kind    SourceKind `json:"kind,omitempty"`
	Named   bool       `json:"named,omitempty"`   // By had a name, which may be forgotten since
	Session string     `json:"session,omitempty"` // where it was stated, if not in the answer's
	Channel string     `json:"channel,omitempty"`
	Target  Target     `json:"target,omitempty"`
	// Of is the heuristic that it is about. "" means the model's answer.
	Of string `json:"of,omitempty"`
	// Value is how good the answer was, in [-1, 1], and Weight multiplies what it counts, in [0,
	// 10]; 0 means 1. Value 0 withdraws a judgement.
	Value  float64 `json:"value,omitempty"`
	Weight float64 `json:"weight,omitempty"`
	// Scale and Score are set in place of Value where a judgement is a mark.
	Scale string `json:"scale,omitempty"`
	Score int    `json:"score,omitempty"`
	// Withdrawn reports that the source took its outcome back.
	Withdrawn bool      `json:"withdrawn,omitempty"`
	At        time.Time `json:"at"`
	Message   string    `json:"message,omitempty"` // the id of the message that took the answer back
	// Success reports whether the task of an outcome succeeded; nil if the outcome does not report
	// it.
	Success *bool  `json:"success,omitempty"`
	Spent   *Spent `json:"spent,omitempty"` // of an outcome

	// Worth is what the strategy of package learning makes of it: the magnitude, negative if it
	// speaks against the heuristic.
	Worth float64 `json:"worth,omitempty"`
	// About is the target of the strategy's signal, if it differs from Target.
	About Target `json:"about,omitempty"`
	// Credit is the observation that it made in the heuristic's evidence. nil: no observation.
	Credit *Credit `json:"credit,omitempty"`
	// Kept are the observations of statements that this one replaced while the heuristic was
	// locked, or had another wording. They still count, until the source states something else.
	Kept []Credit `json:"kept,omitempty"`

	// ID is set by package strategy for an outcome. Statements with different IDs do not replace each
	// other. Sure is the confidence of an outcome, times its share if package strategy received it
	// directly, in (0, 1]; 0 means 1.
	ID   string  `json:"id,omitempty"`
	Sure float64 `json:"sure,omitempty"`
}

// Forgotten reports whether the source was forgotten since. Such a statement does not count.
func (s *Statement) Forgotten() bool { return s.Named && s.By == "" }
