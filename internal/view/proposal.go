package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// A Report is a proposal with the rule that it became, and all that a person needs to decide about
// it. A rule that was imported has no proposal.
type Report struct {
	Proposal *feedback.Proposal  `json:"proposal,omitempty"`
	Rule     *feedback.Rule      `json:"rule,omitempty"`
	Hash     string              `json:"hash"`              // of the words that are approved
	Quorum   *feedback.Quorum    `json:"quorum,omitempty"`  // of a pending proposal
	Sources  []feedback.Feedback `json:"sources,omitempty"` // the evidence that is left
	Now      []Against           `json:"conflicts_now"`     // while it is pending or active
	// Reaches are the heuristics that a pending proposal governs, or may govern.
	Reaches []Reached           `json:"heuristics,omitempty"`
	Before  []feedback.Proposal `json:"before,omitempty"`  // that it follows, the latest first
	History []store.AuditEntry  `json:"history,omitempty"` // who did what to it, the first first
}

// An Against is a conflict with the words of the other side.
type Against struct {
	feedback.Conflict
	Text string `json:"text,omitempty"` // "" if they are not kept
}

// against reads what a conflict is with.
func (s *Source) against(ctx context.Context, c feedback.Conflict) (a Against, err error) {
	a.Conflict = c
	rules := s.Feedback.Rules()
	switch {
	case c.Correction:
		k, failed := s.Feedback.Feedback(ctx, c.ID)
		a.Text, err = Said(&k), failed
	case c.Pending:
		p, failed := rules.Proposal(ctx, c.ID)
		a.Text, err = p.Text, failed
	default:
		r, failed := rules.Rule(ctx, c.ID)
		a.Text, err = r.Text, failed
	}
	if errors.Is(err, heed.ErrNotFound) {
		err = nil
	}
	return a, err
}

// Said returns the text of a correction.
func Said(c *feedback.Feedback) string { return strings.TrimSpace(c.Summary + " " + c.Comment) }

// Report reads all about a proposal or a rule, or returns [heed.ErrNotFound].
func (s *Source) Report(ctx context.Context, id string) (r Report, err error) {
	rules := s.Feedback.Rules()
	p, err := rules.Proposal(ctx, id)
	if err == nil {
		return s.reportOf(ctx, &p)
	}
	if !errors.Is(err, heed.ErrNotFound) {
		return r, err
	}
	imported, err := rules.Rule(ctx, id)
	if err != nil {
		return r, err
	}
	r = Report{Rule: &imported, Hash: imported.Draft.Hash(), Now: []Against{}}
	r.History, err = s.history(ctx, id)
	return r, err
}

func (s *Source) reportOf(ctx context.Context, p *feedback.Proposal) (r Report, err error) {
	rules := s.Feedback.Rules()
	r = Report{Proposal: p, Hash: p.Draft.Hash(), Quorum: p.Quorum, Now: []Against{}}
	pending := p.Status == feedback.StatePending
	if r.Sources, err = rules.Sources(ctx, p.ID); err != nil {
		return r, err
	}
	made, err := rules.Rule(ctx, p.ID)
	if err == nil {
		r.Rule = &made
	} else if !errors.Is(err, heed.ErrNotFound) {
		return r, fmt.Errorf("rule %s: %w", p.ID, err)
	}
	if pending || r.Rule != nil && r.Rule.Status == feedback.StateActive {
		conflicts, err := rules.Conflicts(ctx, p.Draft)
		if err != nil {
			return r, err
		}
		for _, c := range conflicts {
			if c.ID == p.ID {
				continue
			}
			one, err := s.against(ctx, c)
			if err != nil {
				return r, err
			}
			r.Now = append(r.Now, one)
		}
	}
	if pending {
		if r.Reaches, err = s.reaches(ctx, &p.Draft); err != nil {
			return r, err
		}
	}
	if r.Before, err = s.before(ctx, p); err != nil {
		return r, err
	}
	r.History, err = s.history(ctx, p.ID)
	return r, err
}

// A Reached is a heuristic that a proposal may govern, with its words.
type Reached struct {
	ID        string  `json:"id"`
	Reason    string  `json:"reason,omitempty"` // how it breaks the draft; "" if people decide
	Score     float64 `json:"score"`
	Condition string  `json:"condition"`
	Action    string  `json:"action"`
}

// reaches returns the heuristics that a draft governs, or may govern.
func (s *Source) reaches(ctx context.Context, d *feedback.Draft) (all []Reached, _ error) {
	if s.Learning == nil {
		return nil, nil
	}
	known, actions := map[string]learning.Heuristic{}, map[string]string{}
	for h, err := range s.Learning.Heuristics(ctx) {
		if err != nil {
			return nil, err
		}
		if h.Action != "" {
			known[h.ID], actions[h.ID] = h, h.Action
		}
	}
	found, err := s.Feedback.Rules().Reach(ctx, *d, actions)
	for _, f := range found {
		h := known[f.ID]
		all = append(all, Reached{f.ID, f.Explanation, f.Score, h.Condition, h.Action})
	}
	return all, err
}

const mostBefore = 20

// before returns the proposals that a proposal follows, the latest first.
func (s *Source) before(ctx context.Context, p *feedback.Proposal) ([]feedback.Proposal, error) {
	var all []feedback.Proposal
	for previous := p.Previous; previous != "" && len(all) < mostBefore; {
		one, err := s.Feedback.Rules().Proposal(ctx, previous)
		if errors.Is(err, heed.ErrNotFound) {
			break // the store dropped it
		}
		if err != nil {
			return nil, fmt.Errorf("proposal %s: %w", previous, err)
		}
		all, previous = append(all, one), one.Previous
	}
	return all, nil
}

// history returns who did what to a subject, the first first.
func (s *Source) history(ctx context.Context, id string) (all []store.AuditEntry, _ error) {
	about := store.Query{Keys: []string{store.PersonKey(id)}, Oldest: true}
	for entry, err := range store.AuditEntries(ctx, s.Store, about) {
		if err != nil {
			return nil, err
		}
		if entry.Subject == id {
			all = append(all, entry)
		}
	}
	return all, nil
}

// A Part is a field of a draft, in words. It is empty if it has its default.
type Part struct{ Name, Value string }

// Parts are all fields of a draft that people approve, except what it changes: the text and the
// agents first. show makes a text fit to be shown.
func Parts(d *feedback.Draft, show func(string) string) []Part {
	action, kind, place := "", "", ""
	if d.Action != "CREATE_RULE" {
		action = strings.ToLower(d.Action)
	}
	if d.Type != "GUIDELINE" {
		kind = strings.ToLower(d.Type)
	}
	if d.Place != "" {
		place = show(d.Place)
	}
	return []Part{
		{"text", show(d.Text)}, {"agents", Join(d.Agents, "all", show)}, {"action", action},
		{"type", kind}, {"place", place}, {"supersedes", Join(d.Supersedes, "", show)},
		{"check", CheckWords(d.Check, show)}}
}

// An Edit is a field of a draft, in words, before and after somebody edited it.
type Edit struct{ Name, Was, Is string }

// Edits compares two drafts, field by field.
func Edits(before, after *feedback.Draft, show func(string) string) (all []Edit) {
	was, is := Parts(before, show), Parts(after, show)
	for i := range was {
		if was[i].Value != is[i].Value {
			all = append(all,
				Edit{was[i].Name, cmp.Or(was[i].Value, "none"), cmp.Or(is[i].Value, "none")})
		}
	}
	return all
}

// Join joins texts with commas. Without texts it returns its second argument.
func Join(all []string, none string, show func(string) string) string {
	if len(all) == 0 {
		return none
	}
	return show(strings.Join(all, ", "))
}

// CheckWords describes what a check looks for.
func CheckWords(c feedback.Check, show func(string) string) string {
	where := "answers"
	switch c.Tool {
	case "":
	case "*":
		where = "calls of all tools"
	default:
		where = "calls of " + show(c.Tool)
	}
	switch {
	case c.Forbid != "":
		return where + " must not match " + show(c.Forbid)
	case c.Require != "":
		return where + " must match " + show(c.Require)
	}
	return ""
}
