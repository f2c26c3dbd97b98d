package decision

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// A Trace records how an answer came about.
type Trace struct {
	ResponseID string
	EventID    string
	Source     string // who caused the event
	Domain     string
	Path       Path // Heuristic or Model
	// Text is what happened, and Response the answer. They are valid UTF-8 without NUL, cut at 16
	// KiB, as [Config].Redact left them.
	Text, Response string
	MatchedID      string // the heuristic that matched best
	CreditID       string // the heuristic that answered
	// Prediction, ShownIDs and Compared are as in the result.
	Prediction *Prediction         `json:",omitempty"`
	ShownIDs   []string            `json:",omitempty"`
	Compared   []answer.Comparison `json:",omitempty"`
	// System and Prompt are the prompt as it was sent, each redacted like Text and cut at 64 KiB. In
	// the heading of the event "[source]" replaces the name, which is in Source until the person is
	// forgotten. They are empty for a heuristic's answer.
	System string `json:",omitempty"`
	Prompt string `json:",omitempty"`
	// Turns is how many texts of the conversation the model got with the prompt: see
	// [Request].Told. They are not kept.
	Turns   int    `json:",omitempty"`
	Variant string // of the experiment that the event was part of
	Cut     bool   `json:",omitempty"` // as in the result
	At      time.Time
}

// traceKind keeps traces for as long as reactions can come. The source of an event may be a person.
var traceKind = store.View[Trace]{
	Kind: store.Kind{
		Name: "decision.trace", Limits: store.Limits{For: 24 * time.Hour, Most: 100_000},
		Caused: []string{"Source"},
	},
	Place: func(t Trace) (string, time.Time, []string) {
		return t.ResponseID, t.At, stores.PersonKeys(t.Source)
	},
}

// Trace returns the trace of an answer, or [heed.ErrNotFound].
func (d *Decider) Trace(ctx context.Context, responseID string) (Trace, error) {
	kept, err := getTrace(ctx, d.cfg.Store, responseID)
	return kept.Value, valid.Wrap("decision: trace", err)
}

func getTrace(ctx context.Context, st store.Store, responseID string) (store.Row[Trace], error) {
	if st == nil || responseID == "" { // such as the id of an answer that was imported
		return store.Row[Trace]{}, heed.ErrNotFound
	}
	return traceKind.Get(ctx, st, responseID)
}

// Traces yields the stored traces, the newest first. After an error it ends, unless only that trace
// is damaged.
func (d *Decider) Traces(ctx context.Context) iter.Seq2[Trace, error] {
	return func(yield func(Trace, error) bool) {
		if d.cfg.Store == nil {
			return
		}
		for kept, err := range traceKind.Find(ctx, d.cfg.Store, store.Query{}) {
			if !yield(kept.Value, valid.Wrap("decision: traces", err)) {
				return
			}
		}
	}
}

// TraceIn gives an answer its ResponseID, unless it has one, and adds its trace to a step of the
// caller's. [Decider.Decide] does so itself. The store must be [Config].Store. A result without an
// answer gets neither. If the step is not committed, the result loses its ResponseID again, and the
// step's next run gives it another one.
func (d *Decider) TraceIn(tx *store.Tx, r Request, res *Result) error {
	return valid.Wrap("decision: trace", d.traceIn(tx, &r, res))
}

func (d *Decider) traceIn(tx *store.Tx, r *Request, res *Result) error {
	if !d.name(res) {
		return nil
	}
	tx.Then(func(_ store.Receipt, err error) {
		if err != nil {
			res.ResponseID = ""
		}
	})
	return host.Call("Config.Redact", func() error {
		traceKind.Put(tx, d.trace(r, res), 0)
		return nil
	})
}

// name gives an answer its id, and reports whether there is an answer.
func (d *Decider) name(res *Result) bool {
	if res.Path != Heuristic && res.Path != Model {
		return false
	}
	if res.ResponseID == "" {
		res.ResponseID = d.cfg.NewID()
	}
	return true
}

func (d *Decider) trace(r *Request, res *Result) Trace {
	turns := 0
	if res.Path == Model {
		turns = len(r.Told)
	}
	return Trace{
		ResponseID: res.ResponseID, EventID: r.EventID, Source: r.Source, Domain: r.Domain,
		Path: res.Path, Text: d.cfg.traced(r.Text, maxTraced),
		Response:  d.cfg.traced(res.Text, maxTraced),
		System:    d.cfg.traced(res.System, maxPrompt),
		Prompt:    d.cfg.traced(d.cfg.withoutSource(res.Prompt, r.Source), maxPrompt),
		MatchedID: res.MatchedID, CreditID: res.CreditID, Prediction: res.Prediction,
		ShownIDs: res.ShownIDs, Compared: res.Compared, Variant: r.Variant, Cut: res.Cut,
		Turns: turns, At: evidence.InstantOf(d.cfg.Now()).Time(),
	}
}

// withoutSource returns a prompt whose heading does not name the source, because the trace keeps
// the prompt if the person is forgotten.
func (c *Config) withoutSource(text, source string) string {
	if source == "" || c.Bare {
		return text
	}
	return strings.ReplaceAll(text, c.heading(source), c.heading("source"))
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
	if c.Redact != nil {
		text = c.Redact(text)
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") // without half a character
	}
	return strings.Clone(text)
}
