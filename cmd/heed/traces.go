package main

import (
	"errors"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
)

type tracesCommand struct {
	ID    string `arg:"" optional:"" help:"A response, to see its trace. Without it: the newest are listed."`
	Path  string `enum:",heuristic,llm" default:"" placeholder:"PATH" help:"Those alone that a heuristic, or the model, answered: heuristic or llm."`
	Limit int    `default:"20" help:"How many to show, the newest."`
}

func (tracesCommand) Help() string {
	return `Examples:

    heed --db agent.db traces
    heed --db agent.db traces 2f6c1d1e
    heed --db agent.db traces --path llm --limit 100`
}

// A traceReport says how an answer came about.
type traceReport struct {
	Response   string        `json:"response_id"`
	Event      string        `json:"event_id"`
	At         time.Time     `json:"at"`
	Source     string        `json:"source,omitempty"`
	Domain     string        `json:"domain,omitempty"`
	Path       decision.Path `json:"path"`
	Matched    string        `json:"matched_id,omitempty"`
	Credited   string        `json:"credit_id,omitempty"`
	Success    float64       `json:"success"`
	Confidence float64       `json:"confidence"`
	Variant    string        `json:"variant,omitempty"`
	Text       string        `json:"text"`
	Answer     string        `json:"response"`
	Hashed     bool          `json:"hashed"` // the texts are hashes
}

// Run lists traces, or shows one.
func (cmd *tracesCommand) Run(s *session) error {
	if cmd.Limit < 1 {
		return &usageError{"--limit must be 1 or more"}
	}
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	decider, err := decision.New(s.ctx, decision.Config{Store: st.store})
	if err != nil {
		return st.explain(err)
	}
	if cmd.ID != "" {
		return cmd.show(s, st, decider)
	}
	all := []traceReport{}
	for t, err := range decider.Traces(s.ctx) {
		if err != nil {
			return st.explain(err)
		}
		if cmd.Path == "" || string(t.Path) == cmd.Path {
			all = append(all, traceReportOf(t))
		}
		if len(all) == cmd.Limit {
			break
		}
	}
	return s.answer(all, func(p *printer) {
		if len(all) == 0 {
			p.nothing("traces", "path", cmd.Path)
			return
		}
		printTraces(p, all)
	})
}

// show shows one trace.
func (cmd *tracesCommand) show(s *session, st *opened, decider *decision.Decider) error {
	t, err := decider.Trace(s.ctx, cmd.ID)
	if errors.Is(err, heed.ErrNotFound) {
		var names []string
		for t, err := range decider.Traces(s.ctx) {
			if err != nil {
				return st.explain(err)
			}
			names = append(names, t.ResponseID)
		}
		return unknown("trace", cmd.ID, names, "heed traces lists those that are kept")
	}
	if err != nil {
		return st.explain(err)
	}
	r := traceReportOf(t)
	return s.answer(r, func(p *printer) {
		printTraces(p, []traceReport{r})
		p.printf("\n")
		p.line("what happened: %s", show(r.Text))
		p.line("what was answered: %s", show(r.Answer))
	})
}

func traceReportOf(t decision.Trace) traceReport {
	return traceReport{
		t.ResponseID, t.EventID, t.At, t.Source, t.Domain, t.Path, t.MatchedID, t.CreditID, t.Success, t.Confidence, t.Variant,
		t.Text, t.Response, t.Hashed,
	}
}

func printTraces(p *printer, all []traceReport) {
	t := listing{columns: []column{
		{title: "when"}, {title: "response", soft: true}, {title: "path"}, {title: "heuristic", soft: true}, {title: "confidence", right: true},
		{title: "success", right: true}, {title: "event", soft: true, extra: true}, {title: "domain", soft: true, extra: true},
		{title: "variant", soft: true, extra: true},
	}}
	for _, r := range all {
		heuristic := r.Credited
		if heuristic == "" {
			heuristic = r.Matched
		}
		t.add(moment(r.At), show(r.Response), show(string(r.Path)), show(heuristic), share(r.Confidence), share(r.Success), show(r.Event),
			show(r.Domain), show(r.Variant))
	}
	t.print(p)
}
