package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/heedhq/heed/store"
)

type auditCommand struct {
	Limit   int    `default:"20" help:"The number of entries to show, the newest."`
	Action  string `placeholder:"TEXT" help:"Only actions that begin with this text: strategy, feedback.approve, patterns, forget."`
	Subject string `placeholder:"TEXT" help:"Only entries about this item, rule or pattern."`
}

// Run lists the audit.
func (cmd *auditCommand) Run(s *session) error {
	if cmd.Limit < 1 {
		return errLimit
	}
	var entries []store.AuditEntry
	err := s.with(func(st *opened) error {
		for e, err := range store.AuditEntries(s.ctx, st.store, store.AuditQuery{}) {
			if err != nil || len(entries) == cmd.Limit {
				return err
			}
			if strings.HasPrefix(e.Action, cmd.Action) && (cmd.Subject == "" || e.Subject == cmd.Subject) {
				entries = append(entries, e)
			}
		}
		return nil
	})
	return answerList(s, entries, err, "audit entries", []string{"action", cmd.Action, "subject", cmd.Subject}, printAudit)
}

func printAudit(p *printer, entries []store.AuditEntry) {
	columns := []string{"when", "action", "subject", "~who", "~reason", "?~details"}
	reasons := slices.ContainsFunc(entries, func(e store.AuditEntry) bool { return e.Reason != "" })
	if !reasons { // heed gives none for what it does by itself
		columns = slices.Delete(columns, 4, 5)
	}
	t := newTable(columns...)
	for _, e := range entries {
		cells := []string{moment(e.At), show(e.Action), show(e.Subject), show(cmp.Or(e.Actor, "heed"))}
		if reasons {
			cells = append(cells, show(cmp.Or(e.Reason, "-")))
		}
		t.add(append(cells, settings(e.Details))...)
	}
	t.print(p)
}
