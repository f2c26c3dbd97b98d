package main

import (
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/heedhq/heed/store"
)

type auditCommand struct {
	Limit   int    `default:"20" help:"How many to show, those recorded last."`
	Action  string `placeholder:"TEXT" help:"Those alone whose action begins so: strategy, feedback.approve, patterns, forget."`
	Subject string `placeholder:"TEXT" help:"Those alone about this: an item, a rule, a pattern."`
}

func (auditCommand) Help() string {
	return `Examples:

    heed --db agent.db audit
    heed --db agent.db audit --action strategy.reset --limit 100

It has what was reset, pinned and forgotten, what was decided about rules, and what was decided about patterns by hand.`
}

// Run lists the audit.
func (cmd *auditCommand) Run(s *session) error {
	if cmd.Limit < 1 {
		return errLimit
	}
	st, err := s.open()
	if err != nil {
		return err
	}
	defer st.close()
	all, err := cmd.read(store.AuditEntries(s.ctx, st.store, store.AuditQuery{}))
	if err != nil {
		return st.explain(err)
	}
	return s.answer(listed(all), func(p *printer) { printAudit(p, all, "action", cmd.Action, "subject", cmd.Subject) })
}

// read returns the last entries of a log that are asked for.
func (cmd *auditCommand) read(log iter.Seq2[store.AuditEntry, error]) (entries []store.AuditEntry, err error) {
	for e, err := range log {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(e.Action, cmd.Action) || cmd.Subject != "" && e.Subject != cmd.Subject {
			continue
		}
		if entries = append(entries, e); len(entries) == cmd.Limit {
			break
		}
	}
	return entries, nil
}

func printAudit(p *printer, entries []store.AuditEntry, flags ...string) {
	if len(entries) == 0 {
		p.nothing("audit entries", flags...)
		return
	}
	t := listing{columns: []column{
		{title: "when"}, {title: "who", soft: true}, {title: "action", soft: true}, {title: "subject", soft: true},
		{title: "reason", soft: true}, {title: "details", soft: true, extra: true},
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

type rulesAudit struct {
	Limit int `default:"20" help:"How many to show, those recorded last."`
}

func (rulesAudit) Help() string {
	return `Examples:

    heed --db agent.db rules audit
    heed --db agent.db --json rules audit --limit 1000`
}

// Run lists the audit of rules.
func (cmd *rulesAudit) Run(s *session, c *rulesCommands) error {
	if cmd.Limit < 1 {
		return errLimit
	}
	err := c.at(s, func(d *desk) error {
		var entries []store.AuditEntry
		for entry, err := range store.AuditEntries(s.ctx, d.store, store.AuditQuery{}) {
			if err != nil {
				return err
			}
			if strings.HasPrefix(entry.Action, "feedback.") || entry.Action == "settings" && entry.Subject == "feedback" {
				entries = append(entries, entry)
			}
			if len(entries) == cmd.Limit {
				break
			}
		}
		return s.answer(listed(entries), func(p *printer) { printAudit(p, entries) })
	})
	if errors.Is(err, errNoRules) {
		return s.answer([]store.AuditEntry{}, func(p *printer) { printAudit(p, nil) })
	}
	return err
}
