package main

import (
	"slices"
	"strings"

	"github.com/heedhq/heed/evidence"
)

type auditCommand struct {
	Limit   int    `default:"20" help:"How many to show, those recorded last."`
	Action  string `placeholder:"TEXT" help:"Those alone whose action begins so: strategy, feedback.approve."`
	Subject string `placeholder:"TEXT" help:"Those alone about this: an item, a rule, a pattern."`
}

func (auditCommand) Help() string {
	return `Examples:

    heed --db agent.db audit
    heed --db agent.db audit --action strategy.reset --limit 100`
}

// Run lists the audit.
func (cmd *auditCommand) Run(s *session) error {
	if cmd.Limit < 1 {
		return &usageError{"--limit must be 1 or more"}
	}
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	var entries []evidence.AuditEntry
	for e, err := range st.evidence.Audit(s.ctx) {
		if err != nil {
			return st.explain(err)
		}
		if !strings.HasPrefix(e.Action, cmd.Action) || cmd.Subject != "" && e.Subject != cmd.Subject {
			continue
		}
		if entries = append(entries, e); len(entries) == cmd.Limit {
			break
		}
	}
	return s.answer(listed(entries), func(p *printer) { printAudit(p, entries) })
}

func printAudit(p *printer, entries []evidence.AuditEntry) {
	if len(entries) == 0 {
		p.line("Nothing was changed by anybody, as far as the audit goes back.")
		return
	}
	t := listing{columns: []column{
		{title: "when"}, {title: "who", soft: true}, {title: "action", soft: true}, {title: "subject", soft: true},
		{title: "reason", soft: true}, {title: "details", soft: true},
	}}
	for _, e := range entries {
		var details []string
		for name, value := range e.Details {
			details = append(details, name+"="+value)
		}
		t.add(moment(e.At), show(e.Actor), show(e.Action), show(e.Subject), show(e.Reason), words(details))
	}
	t.print(p)
}

// words writes words in order, or that there are none.
func words(all []string) string {
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	return show(strings.Join(all, " "))
}
