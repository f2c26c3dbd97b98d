package main

import (
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
	entries, err := entries(s, cmd.Limit, func(e store.AuditEntry) bool {
		return strings.HasPrefix(e.Action, cmd.Action) && (cmd.Subject == "" || e.Subject == cmd.Subject)
	})
	return answerList(s, entries, err, "audit entries", []string{"action", cmd.Action, "subject", cmd.Subject}, printAudit)
}

// entries returns the newest entries of the audit that are wanted.
func entries(s *session, limit int, wanted func(store.AuditEntry) bool) (all []store.AuditEntry, err error) {
	err = s.with(func(st *opened) error {
		for e, err := range store.AuditEntries(s.ctx, st.store, store.AuditQuery{}) {
			if err != nil || len(all) == limit {
				return err
			}
			if wanted(e) {
				all = append(all, e)
			}
		}
		return nil
	})
	return all, err
}

func printAudit(p *printer, entries []store.AuditEntry) {
	t := newTable("when", "~who", "~action", "~subject", "~reason", "?~details")
	for _, e := range entries {
		t.add(moment(e.At), show(e.Actor), show(e.Action), show(e.Subject), show(e.Reason), settings(e.Details))
	}
	t.print(p)
}

type rulesAudit struct {
	Limit int `default:"20" help:"The number of entries to show, the newest."`
}

// Run lists the audit of rules.
func (cmd *rulesAudit) Run(s *session) error {
	if cmd.Limit < 1 {
		return errLimit
	}
	entries, err := entries(s, cmd.Limit, func(e store.AuditEntry) bool {
		return strings.HasPrefix(e.Action, "feedback.") || e.Action == "settings" && e.Subject == "feedback"
	})
	return answerList(s, entries, err, "audit entries", nil, printAudit)
}
