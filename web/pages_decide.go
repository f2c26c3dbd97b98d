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

// A decider decides, and returns where to go on.
type decider func(ctx context.Context, d sent) (to string, err error)

// decisions registers what people decide about answers, proposals, corrections and rules.
func (h *Handler) decisions() {
	for _, a := range []action{
		{"/answer/correct", []string{"text", "comment"}, answerPage, h.correct},
		{"/answer/undo", nil, answerPage, h.undo},
		{"/proposal/approve", []string{"override", "withhold"}, proposalPage, h.approve},
		{"/proposal/reject", nil, proposalPage, h.reject},
		{"/proposal/edit", []string{"text", "type", "agents", "all"}, proposalPage, h.edit},
		{"/proposal/take-out", []string{"source"}, proposalPage, h.takeOut},
		{"/correction/resolve", []string{"as"}, correctionPage, h.resolve},
		{"/correction/join", []string{"with"}, correctionPage, h.join},
		{"/correction/split", nil, correctionPage, h.split},
		{"/rule/retire", nil, rulePage, h.move(feedback.StateRetired, "retired")},
		{"/rule/revoke", nil, rulePage, h.move(feedback.StateRevoked, "revoked")},
		{"/rule/restore", nil, rulePage, h.propose(feedback.Restore)},
		{"/rule/pin", nil, rulePage, h.propose(feedback.Pin)},
		{"/rule/unpin", nil, rulePage, h.propose(feedback.Unpin)},
	} {
		h.act(a)
	}
}

// correct records a correction of an answer.
func (h *Handler) correct(ctx context.Context, d sent) (string, error) {
	text := strings.TrimSpace(d.form.Get("text"))
	if text == "" {
		return "", &heed.InputError{Field: "text", Reason: "must not be empty"}
	}
	a := h.view().Agent
	if a == nil {
		return "", errNoAgent
	}
	_, err := a.Correct(ctx, d.id, loop.Correction{
		Reviewer: d.person, Text: text, Comment: strings.TrimSpace(d.form.Get("comment")),
	})
	return h.done("/answer", d.id, "corrected"), err
}

// undo takes an answer back.
func (h *Handler) undo(ctx context.Context, d sent) (string, error) {
	a := h.view().Agent
	if a == nil {
		return "", errNoAgent
	}
	return h.done("/answer", d.id, "undone"), a.Undo(ctx, d.id, d.person)
}

// errNoAgent reports that these pages are over a store, and the agent runs elsewhere.
var errNoAgent = &heed.InputError{Field: "agent", Reason: "does not run here, so its answers can " +
	"be changed only in its own program"}

// seen returns the hash of the words that a person decides about, or "" if it is about no words.
func (h *Handler) seen(ctx context.Context, a *action, id string) (string, error) {
	switch a.page.path {
	case proposalPage.path:
		p, err := h.view().Feedback.Rules().Proposal(ctx, id)
		return p.Draft.Hash(), err
	case rulePage.path:
		r, err := h.view().Feedback.Rules().Rule(ctx, id)
		return r.Draft.Hash(), err
	case correctionPage.path:
		c, err := h.view().Feedback.Feedback(ctx, id)
		return hashOf(c), err
	}
	return "", nil
}

func (h *Handler) approve(ctx context.Context, d sent) (string, error) {
	after, err := h.view().Feedback.Rules().Review(ctx, feedback.Review{
		Proposal: d.id, Decision: feedback.Approved, Actor: d.person, Reason: d.reason, Hash: d.hash,
		Override: d.form["override"], Withhold: d.form["withhold"],
	})
	if err != nil {
		return "", err
	}
	switch {
	case after.Status != feedback.StateApproved:
		return h.done("/proposal", d.id, "approved"), nil
	case after.Change != "" && after.Of != "":
		return h.done("/rule", after.Of, "changed"), nil
	default:
		return h.done("/rule", after.ID, "active"), nil
	}
}

func (h *Handler) reject(ctx context.Context, d sent) (string, error) {
	_, err := h.view().Feedback.Rules().Review(ctx, feedback.Review{
		Proposal: d.id, Decision: feedback.Rejected, Actor: d.person, Reason: d.reason,
	})
	return h.done("/proposal", d.id, "rejected"), err
}

// edit proposes a new version. Fields that the form does not show stay as they are.
func (h *Handler) edit(ctx context.Context, d sent) (string, error) {
	p, err := h.view().Feedback.Rules().Proposal(ctx, d.id)
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
	after, err := h.view().Feedback.Rules().Propose(ctx,
		feedback.Submission{Draft: draft, Replaces: p.ID, Actor: d.person, Reason: d.reason})
	return h.done("/proposal", after.ID, "edited"), err
}

func (h *Handler) takeOut(ctx context.Context, d sent) (string, error) {
	_, err := h.view().Feedback.Rules().TakeOut(ctx, d.order(), d.form.Get("source"))
	return h.done("/proposal", d.id, "out"), err
}

// join records that a correction means the same as another one. The page shows both, and one click
// is enough.
func (h *Handler) join(ctx context.Context, d sent) (string, error) {
	d.reason = "read side by side, they mean the same"
	_, err := h.view().Feedback.Join(ctx, d.order(), d.form.Get("with"))
	return h.done("/correction", d.id, "joined"), err
}

// split puts a correction alone into a cluster.
func (h *Handler) split(ctx context.Context, d sent) (string, error) {
	_, err := h.view().Feedback.Split(ctx, d.order())
	return h.done("/correction", d.id, "split"), err
}

func (h *Handler) resolve(ctx context.Context, d sent) (string, error) {
	after, err := h.view().Feedback.Resolve(ctx, d.order(),
		feedback.Classification(d.form.Get("as")))
	if err == nil && after.Proposal != "" {
		return h.done("/proposal", after.Proposal, "resolved"), nil
	}
	return h.done("/correction", d.id, "resolved"), err
}

// move takes a rule out of use.
func (h *Handler) move(to feedback.State, done string) decider {
	return func(ctx context.Context, d sent) (string, error) {
		_, err := h.view().Feedback.Rules().Move(ctx, d.order(), to)
		return h.done("/rule", d.id, done), err
	}
}

// propose proposes the change of a rule.
func (h *Handler) propose(change feedback.RuleChange) decider {
	return func(ctx context.Context, d sent) (string, error) {
		rule, err := h.view().Feedback.Rules().Rule(ctx, d.id)
		if err != nil {
			return "", err
		}
		draft := rule.Draft
		draft.Change, draft.Of = change, rule.ID
		p, err := h.view().Feedback.Rules().Propose(ctx,
			feedback.Submission{Draft: draft, Actor: d.person, Reason: d.reason})
		return h.done("/proposal", p.ID, "proposed"), err
	}
}

// hashOf returns the hash of what a person sees of a correction.
func hashOf(c feedback.Feedback) string {
	sum := sha256.Sum256([]byte(c.Summary + "\x00" + c.Comment))
	return hex.EncodeToString(sum[:])
}
