package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
)

type tracesCommand struct {
	ID    string `arg:"" optional:"" help:"A response or an event, or the start of its id, to see its newest trace. Without it, the newest are listed."`
	Path  string `enum:",heuristic,llm" default:"" placeholder:"PATH" help:"Only answers of a heuristic, or of the model: heuristic or llm."`
	Limit int    `default:"20" help:"The number of traces to show, the newest."`
}

// A traceReport is a trace with the names that it has in JSON.
type traceReport struct {
	ResponseID string        `json:"response_id"`
	EventID    string        `json:"event_id"`
	Source     string        `json:"source,omitempty"`
	Domain     string        `json:"domain,omitempty"`
	Path       decision.Path `json:"path"`
	Text       string        `json:"text"`
	Response   string        `json:"response"`
	MatchedID  string        `json:"matched_id,omitempty"`
	CreditID   string        `json:"credit_id,omitempty"`
	Success    *float64      `json:"success,omitempty"`
	Confidence *float64      `json:"confidence,omitempty"`
	ShownIDs   []string      `json:"shown_ids,omitempty"`
	Compared   []comparison  `json:"compared,omitempty"`
	System     string        `json:"system,omitempty"`
	Prompt     string        `json:"prompt,omitempty"`
	Turns      int           `json:"turns,omitempty"` // of the conversation before the prompt, which are not kept
	Cut        bool          `json:"cut,omitempty"`   // the answer ends too early
	Variant    string        `json:"variant,omitempty"`
	At         time.Time     `json:"at"`
}

// A comparison is a withheld candidate beside the model's answer.
type comparison struct {
	HeuristicID string  `json:"heuristic_id"`
	Similarity  float64 `json:"similarity"`
	Agrees      bool    `json:"agrees"`
}

func traceOf(t *decision.Trace) traceReport {
	r := traceReport{
		ResponseID: t.ResponseID, EventID: t.EventID, Source: t.Source, Domain: t.Domain, Path: t.Path, Text: t.Text,
		Response: t.Response, MatchedID: t.MatchedID, CreditID: t.CreditID, ShownIDs: t.ShownIDs,
		System: t.System, Prompt: t.Prompt, Turns: t.Turns, Cut: t.Cut, Variant: t.Variant, At: t.At,
	}
	if p := t.Prediction; p != nil {
		r.Success, r.Confidence = &p.Success, &p.Confidence
	}
	for _, c := range t.Compared {
		r.Compared = append(r.Compared, comparison(c))
	}
	return r
}

// Run lists traces, or shows one.
func (cmd *tracesCommand) Run(s *session) error {
	if cmd.Limit < 1 {
		return errLimit
	}
	if cmd.ID != "" {
		return cmd.show(s)
	}
	var all []traceReport
	err := cmd.with(s, func(d *decision.Decider) error {
		for t, err := range d.Traces(s.ctx) {
			if err != nil || len(all) == cmd.Limit {
				return err
			}
			if cmd.Path == "" || string(t.Path) == cmd.Path {
				all = append(all, traceOf(&t))
			}
		}
		return nil
	})
	return answerList(s, all, err, "traces", []string{"path", cmd.Path}, printTraces)
}

func (cmd *tracesCommand) with(s *session, do func(*decision.Decider) error) error {
	return s.with(func(st *opened) error {
		d, err := decision.New(s.ctx, decision.Config{Store: st.store})
		if err != nil {
			return err
		}
		return do(d)
	})
}

// trace finds a trace by the id of its response or of its event, or by the start of one if no other begins so. Of an event's traces it is the newest.
func trace(s *session, d *decision.Decider, id string) (decision.Trace, error) {
	t, err := d.Trace(s.ctx, id)
	if !errors.Is(err, heed.ErrNotFound) {
		return t, damaged("trace", id, err)
	}
	all, err := collect(d.Traces(s.ctx))
	if err != nil {
		return t, err
	}
	has := func(id string) func(decision.Trace) bool {
		return func(t decision.Trace) bool { return t.ResponseID == id || t.EventID == id }
	}
	if of := slices.IndexFunc(all, has(id)); of >= 0 {
		return all[of], nil
	}
	var ids []string
	for _, t := range all {
		ids = append(ids, t.ResponseID, t.EventID)
	}
	slices.Sort(ids)
	whole, err := pick("trace", id, slices.Compact(ids), func(id string) string { return id }, "heed traces lists those that are kept")
	if err != nil {
		return t, err
	}
	return all[slices.IndexFunc(all, has(whole))], nil
}

// show shows one trace.
func (cmd *tracesCommand) show(s *session) error {
	return cmd.with(s, func(d *decision.Decider) error {
		t, err := trace(s, d, cmd.ID)
		if err != nil {
			return err
		}
		return s.answer(traceOf(&t), func(p *printer) {
			printTraces(p, []traceReport{traceOf(&t)})
			p.printf("\n")
			p.line("event: %s", show(t.Text))
			p.line("answer: %s", show(t.Response))
			for _, c := range t.Compared {
				said := "the answer says something else"
				if c.Agrees {
					said = "the answer says the same"
				}
				p.line("not shown: %s: %s (similarity %s)", show(c.HeuristicID), said, share(c.Similarity))
			}
			if t.Prompt != "" {
				p.printf("\nsystem prompt\n\n")
				printText(p, t.System)
				p.printf("\nprompt\n\n")
				if t.Turns > 0 {
					p.line("(Before it, the model was told the conversation so far, which heed does not keep. Messages: %d.)", t.Turns)
				}
				printText(p, t.Prompt)
			}
		})
	})
}

// expected shows a part of a prediction, where there is one.
func expected(x *float64) string {
	if x == nil {
		return "-"
	}
	return share(*x)
}

// printText prints a text of several lines, with a mark for each character that a terminal may obey.
func printText(p *printer, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		p.line("%s", strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return unicode.ReplacementChar
		}, line))
	}
}

func printTraces(p *printer, all []traceReport) {
	t := newTable("response", "when", "~path", "?>confidence", "?>success", "?event", "?domain", "?variant")
	for _, r := range all {
		path := string(r.Path)
		if of := cmp.Or(r.CreditID, r.MatchedID); of != "" {
			path += " " + of
		}
		t.add(show(r.ResponseID), moment(r.At), show(path), expected(r.Confidence), expected(r.Success),
			show(r.EventID), show(r.Domain), show(r.Variant))
	}
	t.print(p)
}
