package decision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/store"
)

// A Trace says how an answer came about.
type Trace struct {
	ResponseID string
	EventID    string
	Source     string // who caused the event
	Domain     string
	Path       Path // Heuristic or Model
	// Text is what happened, and Response the answer. They are valid UTF-8 without NUL, cut at 16 KiB, as [Config].Redact left
	// them. If Hashed is set, all texts are hashes.
	Text, Response string
	Hashed         bool
	MatchedID      string // the heuristic that matched best
	CreditID       string // the heuristic that answered
	// Prediction, ShownIDs and Compared are as in the result.
	Prediction *Prediction       `json:",omitempty"`
	ShownIDs   []string          `json:",omitempty"`
	Compared   []heed.Comparison `json:",omitempty"`
	// System and Prompt are the prompt as it was sent, as Text is kept, each cut at 64 KiB. They are empty for a heuristic's answer.
	System string `json:",omitempty"`
	// Turns is how many texts the model was told beside the prompt, as [Request].Told: the conversation so far. They are not kept.
	Turns   int    `json:",omitempty"`
	Prompt  string `json:",omitempty"`
	Variant string // of the experiment that the event was part of
	Cut     bool   `json:",omitempty"` // as in the result
	At      time.Time
}

// A traceRow is a trace as it is stored.
type traceRow struct {
	Trace
	Verdicts int `json:",omitempty"` // how many there are on the answer
}

// traceKind keeps traces for as long as reactions can come. The source of an event may be a person.
var traceKind = store.View[traceRow]{
	Kind: store.Kind{
		Name: "decision.trace", Limits: store.Limits{For: 24 * time.Hour, Most: 100_000}, Caused: []string{"Source"},
	},
	Place: func(t traceRow) (string, time.Time, []string) { return t.ResponseID, t.At, personKeys(t.Source) },
}

// A verdict is the value of a reaction.
type verdict struct {
	Value  float64
	Weight float64 `json:",omitempty"` // as in the reaction; 0 means 1
	At     time.Time
}

// A verdictRow is the verdict that holds of one person, channel and target on an answer, as it is stored.
type verdictRow struct {
	ResponseID      string
	Person, Channel string
	Session         string `json:",omitempty"`
	Target          heed.Target

	Now    verdict  // the latest
	Before *verdict `json:",omitempty"` // the one that it replaced

	Weight   float64   // of Now
	Counted  bool      `json:",omitempty"` // Now is in the person's counts
	Answered time.Time // when the answer was given: a verdict is kept as long as its trace
}

// maxVerdicts is how many verdicts of different persons, channels and targets an answer can have.
const maxVerdicts = 1000

// verdictKind keeps verdicts. Those of a person go with the person.
var verdictKind = store.View[verdictRow]{
	Kind: store.Kind{
		Name: "decision.verdict", Limits: store.Limits{For: 24 * time.Hour, Most: 1_000_000}, Caused: []string{"Person"}, Whole: true,
	},
	Place: func(v verdictRow) (string, time.Time, []string) {
		keys := append(personKeys(v.Person), store.Key("response", v.ResponseID))
		return v.id(), v.Answered, keys
	},
}

// id returns the same id for all verdicts that replace each other.
func (v *verdictRow) id() string {
	return store.IDOf("verdict", v.ResponseID, v.Person, v.Channel, string(v.Target))
}

// A personRow is how many reactions of each kind a person has had, as it is stored.
type personRow struct {
	Person             string
	Positive, Negative int
	At                 time.Time // of the last one
}

// personKind keeps the counts for [ReactionsConfig].Calibration.
var personKind = store.View[personRow]{
	Kind: store.Kind{
		Name: "decision.person", Limits: store.Limits{For: 365 * 24 * time.Hour, Most: 100_000}, Caused: []string{"Person"}, Whole: true,
	},
	Place: func(p personRow) (string, time.Time, []string) {
		return store.IDOf("person", p.Person), p.At, personKeys(p.Person)
	},
}

func personKeys(name string) []string {
	if name == "" {
		return nil
	}
	return []string{store.PersonKey(name)}
}

// declare declares the kinds of records that this package writes.
func declare(ctx context.Context, st store.Store) error {
	return st.Declare(ctx, traceKind.Kind, verdictKind.Kind, personKind.Kind)
}

// patiently is [records.Retry] for records that many may write at the same time.
func patiently(ctx context.Context, do func() error) (err error) {
	for range records.Tries {
		if err = records.Retry(ctx, do); !errors.Is(err, heed.ErrConflict) || ctx.Err() != nil {
			break
		}
	}
	return err
}

// Trace returns the trace of an answer, or [heed.ErrNotFound].
func (d *Decider) Trace(ctx context.Context, responseID string) (Trace, error) {
	kept, err := getTrace(ctx, d.cfg.Store, responseID)
	if err != nil {
		return Trace{}, fmt.Errorf("decision: trace: %w", err)
	}
	return kept.Value.Trace, nil
}

func getTrace(ctx context.Context, st store.Store, responseID string) (store.Row[traceRow], error) {
	if st == nil {
		return store.Row[traceRow]{}, heed.ErrNotFound
	}
	return traceKind.Get(ctx, st, responseID)
}

// Traces yields the stored traces, the newest first. It ends after an error.
func (d *Decider) Traces(ctx context.Context) iter.Seq2[Trace, error] {
	return func(yield func(Trace, error) bool) {
		if d.cfg.Store == nil {
			return
		}
		for kept, err := range traceKind.Find(ctx, d.cfg.Store, store.Query{}) {
			if err != nil {
				err = fmt.Errorf("decision: traces: %w", err)
			}
			if !yield(kept.Value.Trace, err) {
				return
			}
		}
	}
}

// DeleteTrace deletes the trace of an answer and all reactions to it. It returns [heed.ErrNotFound] if there is no trace.
func (d *Decider) DeleteTrace(ctx context.Context, responseID string) error {
	if err := patiently(ctx, func() error { return d.deleteTrace(ctx, responseID) }); err != nil {
		return fmt.Errorf("decision: delete trace: %w", err)
	}
	return nil
}

func (d *Decider) deleteTrace(ctx context.Context, responseID string) error {
	kept, err := getTrace(ctx, d.cfg.Store, responseID)
	if err != nil {
		return err
	}
	gone := store.Batch{Records: []store.Record{traceKind.Removal(responseID, kept.Revision)}}
	said := store.Query{Keys: []string{store.Key("response", responseID)}}
	for v, err := range verdictKind.Find(ctx, d.cfg.Store, said) {
		if err != nil {
			return err
		}
		gone.Records = append(gone.Records, verdictKind.Removal(v.ID, v.Revision))
	}
	_, err = d.cfg.Store.Commit(ctx, gone)
	return err
}

// How many bytes of a text, and of a prompt, a trace has.
const (
	maxTraced = 16 << 10
	maxPrompt = 64 << 10
)

// traced returns a text as a trace has it: what every database can keep.
func (c *Config) traced(text string, most int) string {
	if text == "" {
		return ""
	}
	if c.HashTexts {
		sum := sha256.Sum256([]byte(text))
		return fmt.Sprintf("sha256:%s (%d bytes)", hex.EncodeToString(sum[:]), len(text))
	}
	if c.Redact != nil {
		text = c.Redact(text)
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") // without half a character
	}
	return strings.Clone(text)
}
