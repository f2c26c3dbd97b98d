package main

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/sqlstore"
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
	var all []store.AuditEntry
	for _, log := range []iter.Seq2[store.AuditEntry, error]{
		st.inEvidence(s.ctx), store.AuditEntries(s.ctx, st.store, store.AuditQuery{}), st.byHand(s.ctx),
	} {
		entries, err := cmd.read(log)
		if err != nil {
			return st.explain(err)
		}
		all = append(all, entries...)
	}
	slices.SortStableFunc(all, func(a, b store.AuditEntry) int { return b.At.Compare(a.At) })
	all = all[:min(len(all), cmd.Limit)]
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

// inEvidence yields the log of the evidence.
func (s *opened) inEvidence(ctx context.Context) iter.Seq2[store.AuditEntry, error] {
	return func(yield func(store.AuditEntry, error) bool) {
		for e, err := range s.evidence.Audit(ctx) {
			if !yield(store.AuditEntry(e), err) {
				return
			}
		}
	}
}

// byHand yields what somebody has made of patterns, the last first, as their store has it.
func (s *opened) byHand(ctx context.Context) iter.Seq2[store.AuditEntry, error] {
	return func(yield func(store.AuditEntry, error) bool) {
		all, err := s.transitions(ctx)
		if err != nil {
			yield(store.AuditEntry{}, err)
			return
		}
		slices.SortStableFunc(all, func(a, b patterns.Transition) int { return b.At.Compare(a.At) })
		for _, t := range all {
			e := store.AuditEntry{
				ID: t.ID, At: t.At, Actor: t.Actor, Action: "patterns.decide", Subject: string(t.Pattern), Reason: t.Cause,
				Details: map[string]string{"from": string(t.From), "to": string(t.To)},
			}
			if t.Actor != "" && !yield(e, nil) {
				return
			}
		}
	}
}

// transitions returns what became of all patterns.
func (s *opened) transitions(ctx context.Context) (all []patterns.Transition, err error) {
	kept, err := sqlstore.NewPatterns(s.db, sqlstore.PatternsConfig{})
	if err != nil {
		return nil, err
	}
	for p, err := range kept.Patterns(ctx, patterns.PatternQuery{Kind: patterns.Positive}) {
		if err != nil {
			return nil, err
		}
		for t, err := range kept.Transitions(ctx, p.ID) {
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
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
	return c.at(s, func(d *desk) error {
		entries, err := d.Audit(s.ctx, cmd.Limit)
		if err != nil {
			return err
		}
		return s.answer(listed(entries), func(p *printer) { printAudit(p, entries) })
	})
}
