package main

import (
	"fmt"
	"math"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/sqlstore"
)

type tracesCommand struct {
	ID    string        `arg:"" optional:"" help:"A response, to see its trace. Without it: the newest are listed."`
	Path  string        `enum:",heuristic,llm" default:"" placeholder:"PATH" help:"Those alone that a heuristic, or the model, answered: heuristic or llm."`
	Limit int           `default:"20" help:"How many to show, the newest."`
	TTL   time.Duration `name:"ttl" default:"24h" help:"How long the host keeps traces: what is older is not shown."`
}

func (tracesCommand) Help() string {
	return `Examples:

    heed --db agent.db traces
    heed --db agent.db traces 2f6c1d1e --ttl 72h
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
	if cmd.Limit < 1 || cmd.TTL <= 0 {
		return &usageError{"--limit must be 1 or more, and --ttl positive"}
	}
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	all, names, err := cmd.read(s, st)
	switch {
	case err != nil:
		return st.explain(err)
	case cmd.ID != "" && len(all) == 0:
		return cmd.missing(s, st, names)
	case len(all) == 0:
		return cmd.nothing(s, st)
	}
	if cmd.ID == "" {
		return s.answer(all, func(p *printer) { printTraces(p, all) })
	}
	return s.answer(all[0], func(p *printer) {
		printTraces(p, all)
		p.printf("\n")
		p.line("what happened: %s", show(all[0].Text))
		p.line("what was answered: %s", show(all[0].Answer))
	})
}

// read returns the traces that are asked for, and the names of those that were looked at.
func (cmd *tracesCommand) read(s *session, st *opened) (all []traceReport, names []string, err error) {
	traces, err := sqlstore.NewTraces(st.db, sqlstore.TracesConfig{Now: s.now, TTL: cmd.TTL})
	if err != nil {
		return nil, nil, err
	}
	for t, err := range traces.All(s.ctx) {
		if err != nil {
			return nil, nil, err
		}
		names = append(names, t.ResponseID)
		if cmd.ID != "" && t.ResponseID != cmd.ID || cmd.Path != "" && string(t.Path) != cmd.Path {
			continue
		}
		all = append(all, traceReport{
			t.ResponseID, t.EventID, t.At, t.Source, t.Domain, t.Path, t.MatchedID, t.CreditID, t.Success, t.Confidence, t.Variant,
			t.Text, t.Response, t.Hashed,
		})
		if len(all) == cmd.Limit {
			break
		}
	}
	return all, names, nil
}

// nothing says that no traces are kept, and how many there would be if they were kept longer.
func (cmd *tracesCommand) nothing(s *session, st *opened) error {
	var n int
	var newest int64
	query := "SELECT count(*), coalesce(max(moment), 0) FROM heed_documents WHERE sort = 'trace'"
	if err := st.handle.QueryRowContext(s.ctx, query).Scan(&n, &newest); err != nil {
		return st.explain(err)
	}
	return s.answer([]traceReport{}, func(p *printer) {
		p.nothing("traces", "path", cmd.Path, "ttl", span(cmd.TTL))
		if last := time.Unix(0, newest); n > 0 && s.now().Sub(last) > cmd.TTL {
			p.line("The store has %s, the newest of %s: have them shown with --ttl, or as at that time with --now.",
				plural(n, "older one", "older ones"), moment(last))
		}
	})
}

// missing says why there is no trace of the response that was asked for.
func (cmd *tracesCommand) missing(s *session, st *opened, names []string) error {
	const ever = 200 * 365 * day
	traces, err := sqlstore.NewTraces(st.db, sqlstore.TracesConfig{Now: s.now, TTL: ever})
	if err != nil {
		return err
	}
	if old, err := traces.Get(s.ctx, cmd.ID); err == nil {
		return fmt.Errorf("the trace %q is of %s: have it shown with --ttl %.0fh", cmd.ID, moment(old.At), math.Ceil(s.now().Sub(old.At).Hours()))
	}
	return st.missing(s, "trace", cmd.ID, names, "heed traces lists those that are not past their --ttl")
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
