package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
)

// decisions registers what people decide about proposals, corrections and rules.
func (h *Handler) decisions() {
	onProposal := func(name string, fields []string, do func(context.Context, sent) (string, error)) {
		h.act(action{"/proposal/" + name, fields, proposalPage, do})
	}
	onProposal("approve", []string{"override", "withhold"}, h.approve)
	onProposal("reject", nil, h.reject)
	onProposal("edit", []string{"text", "type", "agents", "all"}, h.edit)
	onProposal("take-out", []string{"source"}, h.takeOut)
	onCorrection := func(name string, fields []string,
		do func(context.Context, sent) (string, error)) {
		h.act(action{"/correction/" + name, fields, correctionPage, h.onSeen(do)})
	}
	onCorrection("resolve", []string{"as"}, h.resolve)
	onCorrection("join", []string{"with"}, h.join)
	onCorrection("split", nil, h.split)
	onRule := func(name string, do func(context.Context, sent) (string, error)) {
		h.act(action{"/rule/" + name, nil, rulePage, do})
	}
	onRule("retire", h.move(feedback.StateRetired, "retired"))
	onRule("revoke", h.move(feedback.StateRevoked, "revoked"))
	onRule("restore", h.propose(feedback.Restore))
	onRule("pin", h.propose(feedback.Pin))
	onRule("unpin", h.propose(feedback.Unpin))
}

// correct records a correction of an answer.
func (h *Handler) correct(ctx context.Context, d sent) (string, error) {
	a := h.view().Agent
	if a == nil {
		return "", errNoAgent
	}
	text := strings.TrimSpace(d.form.Get("text"))
	if text == "" {
		return "", &heed.InputError{Field: "text", Reason: "must not be empty"}
	}
	_, err := a.Correct(ctx, d.id, loop.Correction{
		Reviewer: d.person, Text: text, Comment: strings.TrimSpace(d.form.Get("comment")),
	})
	return h.link("/answer", "id", d.id, "done", "corrected"), err
}

// undo takes an answer back.
func (h *Handler) undo(ctx context.Context, d sent) (string, error) {
	a := h.view().Agent
	if a == nil {
		return "", errNoAgent
	}
	return h.link("/answer", "id", d.id, "done", "undone"), a.Undo(ctx, d.id, d.person)
}

// errNoAgent reports that these pages are over a store, and the agent runs elsewhere.
var errNoAgent = &heed.InputError{Field: "agent", Reason: "does not run here, so its answers can " +
	"be changed only in its own program"}

// seen returns a proposal if it still has the words that the person saw.
func (h *Handler) seen(ctx context.Context, d sent) (feedback.Proposal, error) {
	p, err := h.cfg.Feedback.Rules().Proposal(ctx, d.id)
	if err == nil && p.Draft.Hash() != d.hash {
		err = errStale
	}
	return p, err
}

func (h *Handler) approve(ctx context.Context, d sent) (string, error) {
	after, err := h.cfg.Feedback.Rules().Review(ctx, feedback.Review{
		Proposal: d.id, Decision: feedback.Approved, Actor: d.person, Reason: d.reason, Hash: d.hash,
		Override: d.form["override"], Withhold: d.form["withhold"],
	})
	if err != nil {
		return "", err
	}
	switch {
	case after.Status != feedback.StateApproved:
		return h.link("/proposal", "id", d.id, "done", "approved"), nil
	case after.Change != "" && after.Of != "":
		return h.link("/rule", "id", after.Of, "done", "changed"), nil
	default:
		return h.link("/rule", "id", after.ID, "done", "active"), nil
	}
}

func (h *Handler) reject(ctx context.Context, d sent) (string, error) {
	p, err := h.seen(ctx, d)
	if err != nil {
		return "", err
	}
	_, err = h.cfg.Feedback.Rules().Review(ctx, feedback.Review{
		Proposal: p.ID, Decision: feedback.Rejected, Actor: d.person, Reason: d.reason,
	})
	return h.link("/proposal", "id", d.id, "done", "rejected"), err
}

// edit proposes a new version. Fields that the form does not show stay as they are.
func (h *Handler) edit(ctx context.Context, d sent) (string, error) {
	p, err := h.seen(ctx, d)
	if err != nil {
		return "", err
	}
	for _, field := range []string{"text", "type", "agents"} {
		if !d.form.Has(field) {
			return "", &heed.InputError{Field: field, Reason: "is missing"}
		}
	}
	draft := p.Draft
	draft.Text, draft.Type = strings.TrimSpace(d.form.Get("text")),
		feedback.RuleType(d.form.Get("type"))
	draft.Agents = nil
	for line := range strings.Lines(d.form.Get("agents")) {
		if name := strings.TrimSpace(line); name != "" {
			draft.Agents = append(draft.Agents, name)
		}
	}
	draft.AllAgents = d.form.Get("all") != ""
	after, err := h.cfg.Feedback.Rules().Propose(ctx,
		feedback.Submission{Draft: draft, Replaces: p.ID, Actor: d.person, Reason: d.reason})
	return h.link("/proposal", "id", after.ID, "done", "edited"), err
}

func (h *Handler) takeOut(ctx context.Context, d sent) (string, error) {
	p, err := h.seen(ctx, d)
	if err != nil {
		return "", err
	}
	_, err = h.cfg.Feedback.Rules().TakeOut(ctx,
		feedback.Order{ID: p.ID, Actor: d.person, Reason: d.reason}, d.form.Get("source"))
	return h.link("/proposal", "id", d.id, "done", "out"), err
}

// onSeen decides about a correction if it still has the words that the person saw.
func (h *Handler) onSeen(
	do func(context.Context, sent) (string, error),
) func(context.Context, sent) (string, error) {
	return func(ctx context.Context, d sent) (string, error) {
		c, err := h.cfg.Feedback.Feedback(ctx, d.id)
		if err != nil {
			return "", err
		}
		if hashOf(c) != d.hash {
			return "", errStale
		}
		return do(ctx, d)
	}
}

// join records that a correction means the same as another one. The page shows both, and one click
// is enough.
func (h *Handler) join(ctx context.Context, d sent) (string, error) {
	_, err := h.cfg.Feedback.Join(ctx, feedback.Order{ID: d.id, Actor: d.person,
		Reason: "read side by side, they mean the same"}, d.form.Get("with"))
	return h.link("/correction", "id", d.id, "done", "joined"), err
}

// split puts a correction alone into a cluster.
func (h *Handler) split(ctx context.Context, d sent) (string, error) {
	_, err := h.cfg.Feedback.Split(ctx,
		feedback.Order{ID: d.id, Actor: d.person, Reason: d.reason})
	return h.link("/correction", "id", d.id, "done", "split"), err
}

func (h *Handler) resolve(ctx context.Context, d sent) (string, error) {
	after, err := h.cfg.Feedback.Resolve(ctx, feedback.Order{ID: d.id, Actor: d.person,
		Reason: d.reason}, feedback.Classification(d.form.Get("as")))
	if err == nil && after.Proposal != "" {
		return h.link("/proposal", "id", after.Proposal, "done", "resolved"), nil
	}
	return h.link("/correction", "id", d.id, "done", "resolved"), err
}

// move takes a rule out of use.
func (h *Handler) move(to feedback.State, done string) func(context.Context, sent) (string, error) {
	return func(ctx context.Context, d sent) (string, error) {
		if _, err := h.seenRule(ctx, d); err != nil {
			return "", err
		}
		_, err := h.cfg.Feedback.Rules().Move(ctx,
			feedback.Order{ID: d.id, Actor: d.person, Reason: d.reason}, to)
		return h.link("/rule", "id", d.id, "done", done), err
	}
}

// propose proposes the change of a rule.
func (h *Handler) propose(change feedback.RuleChange) func(context.Context, sent) (string, error) {
	return func(ctx context.Context, d sent) (string, error) {
		rule, err := h.seenRule(ctx, d)
		if err != nil {
			return "", err
		}
		draft := rule.Draft
		draft.Change, draft.Of = change, rule.ID
		p, err := h.cfg.Feedback.Rules().Propose(ctx,
			feedback.Submission{Draft: draft, Actor: d.person, Reason: d.reason})
		return h.link("/proposal", "id", p.ID, "done", "proposed"), err
	}
}

// seenRule returns a rule if it still has the words that the person saw.
func (h *Handler) seenRule(ctx context.Context, d sent) (feedback.Rule, error) {
	rule, err := h.cfg.Feedback.Rules().Rule(ctx, d.id)
	if err == nil && rule.Draft.Hash() != d.hash {
		err = errStale
	}
	return rule, err
}

// hashOf returns the hash of what a person sees of a correction.
func hashOf(c feedback.Feedback) string {
	sum := sha256.Sum256([]byte(c.Summary + "\x00" + c.Comment))
	return hex.EncodeToString(sum[:])
}
