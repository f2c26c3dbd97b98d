package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
)

// An action is a decision that a form sends. The person is never in the form.
type action struct {
	path   string
	fields []string // that the form may have in addition to the id, the hash and the reason
	page   page     // that is shown again where the action is refused
	do     decider
}

// A sent is what a person sent.
type sent struct {
	feedback.Act
	hash string
	form url.Values
}

// errStale reports that a person decided about something that changed since.
var errStale = &feedback.RefusedError{
	Reason: "This is no longer as you saw it. Nothing was done. Look at it again",
	Err:    heed.ErrConflict}

// act registers an action.
func (h *Handler) act(a action) {
	h.mux.HandleFunc("POST "+a.path, func(w http.ResponseWriter, r *http.Request) {
		d, err := decided(r, slices.Concat(a.fields, []string{"id", "hash", "reason"}))
		if err == nil && !h.view().Has(a.page.part) {
			err = heed.ErrNotFound
		}
		if err != nil {
			h.fail(w, r, "form", err)
			return
		}
		at, err := h.decide(r.Context(), &a, d)
		if err == nil {
			query := url.Values{"id": {at.id}, "done": {at.done}}
			to := h.cfg.Prefix + at.page + "?" + query.Encode()
			http.SetCookie(w, &http.Cookie{
				Name: doneCookie, Value: doneMark(d.Actor, to), Path: h.cfg.Prefix + "/", HttpOnly: true,
				SameSite: http.SameSiteLaxMode})
			http.Redirect(w, r, to, http.StatusSeeOther)
			return
		}
		h.again(w, r, a, d, err)
	})
}

// decide carries an action out if what it is about still has the words that the person saw.
func (h *Handler) decide(ctx context.Context, a *action, d sent) (to landing, err error) {
	v := h.view()
	if a.page.path == answerPage.path && v.Agent == nil {
		return to, errNoAgent
	}
	hash, err := seen(ctx, v, a, d.ID)
	if err == nil && hash != "" && hash != d.hash {
		err = errStale
	}
	if err != nil {
		return to, err
	}
	return a.do(ctx, v, d)
}

// doneCookie keeps where the latest action of a browser led to. A link of somebody else can't claim
// that something was done.
const doneCookie = "heed-done"

func doneMark(person, to string) string {
	sum := sha256.Sum256([]byte(person + "\x00" + to))
	return hex.EncodeToString(sum[:16])
}

// done returns the word for what was done, on the page that an action led to.
func (h *Handler) done(r *http.Request) string {
	mark, err := r.Cookie(doneCookie)
	if err != nil || mark.Value != doneMark(personOf(r), h.cfg.Prefix+r.URL.Path+"?"+r.URL.RawQuery) {
		return ""
	}
	return r.URL.Query().Get("done")
}

// decided reads a form. A field that is not known is refused, and so is one that is there twice.
func decided(r *http.Request, known []string) (d sent, err error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" || r.ParseForm() != nil {
		return d, &heed.InputError{Field: "form", Reason: "must be a form as the pages send it"}
	}
	for name, values := range r.PostForm {
		if !slices.Contains(known, name) {
			return d, &heed.InputError{Field: "form",
				Reason: "has an unknown field. A form cannot set who you are"}
		}
		if len(values) > 1 && name != "override" && name != "withhold" {
			return d, &heed.InputError{Field: name, Reason: "is there twice"}
		}
	}
	form := r.PostForm
	of := feedback.Act{
		ID: form.Get("id"), Actor: personOf(r), Reason: strings.TrimSpace(form.Get("reason"))}
	return sent{of, form.Get("hash"), form}, nil
}

// again shows the page once more, with why the action was refused, and what the person had typed.
func (h *Handler) again(w http.ResponseWriter, r *http.Request, a action, d sent, refused error) {
	status, text := statusOf(refused)
	if status >= http.StatusInternalServerError {
		h.fail(w, r, a.path, refused)
		return
	}
	before := r.Clone(r.Context())
	before.URL.RawQuery = url.Values{"id": {d.ID}}.Encode()
	f, err := a.page.frame(before, h.view())
	if err != nil {
		h.fail(w, r, a.path, err)
		return
	}
	f.Problem, f.Typed = text, d.form
	h.render(w, r, status, a.page.name(), f)
}

// refusal returns the status and the words of a refusal.
func refusal(why *feedback.RefusedError) (status int, text string) {
	text = strings.ReplaceAll(why.Error(), why.State, words(why.State))
	text = strings.ToUpper(text[:1]) + text[1:] + "."
	if next := view.NextOf[feedback.State(strings.ToUpper(why.State))]; next != "" {
		text += " " + sentence(next) + "."
	}
	if len(why.Conflicts) > 0 {
		text += " Tick each rule that it may contradict, or take that rule out of use first."
	}
	if errors.Is(why, heed.ErrConflict) {
		return http.StatusConflict, text
	}
	return http.StatusForbidden, text
}

// A decider decides, and returns where to go on.
type decider func(ctx context.Context, v *view.Source, d sent) (to landing, err error)

// A landing is the page that a decision leads to, with the word for what was done.
type landing struct{ page, id, done string }

// decisions registers what people decide about answers, proposals, corrections and rules.
func (h *Handler) decisions() {
	for _, a := range []action{
		{"/answer/correct", []string{"text", "comment"}, answerPage, correct},
		{"/answer/undo", nil, answerPage, undo},
		{"/proposal/approve", []string{"override", "withhold"}, proposalPage, approve},
		{"/proposal/reject", nil, proposalPage, reject},
		{"/proposal/edit", []string{"text", "type", "agents", "all"}, proposalPage, edit},
		{"/proposal/take-out", []string{"source"}, proposalPage, takeOut},
		{"/correction/resolve", []string{"as"}, correctionPage, resolve},
		{"/correction/join", []string{"with"}, correctionPage, joined},
		{"/correction/split", nil, correctionPage, split},
		{"/rule/retire", nil, rulePage, move(feedback.StateRetired, "retired")},
		{"/rule/revoke", nil, rulePage, move(feedback.StateRevoked, "revoked")},
		{"/rule/restore", nil, rulePage, propose("RESTORE")},
		{"/rule/pin", nil, rulePage, propose("PIN")},
		{"/rule/unpin", nil, rulePage, propose("UNPIN")},
	} {
		h.act(a)
	}
}

// correct records a correction of an answer.
func correct(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
	text := strings.TrimSpace(d.form.Get("text"))
	if text == "" {
		return to, &heed.InputError{Field: "text", Reason: "must not be empty"}
	}
	_, err = v.Agent.Correct(ctx, d.ID, loop.Correction{
		Reviewer: d.Actor, Text: text, Comment: strings.TrimSpace(d.form.Get("comment"))})
	return landing{"/answer", d.ID, "corrected"}, err
}

// undo takes an answer back.
func undo(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
	return landing{"/answer", d.ID, "undone"}, v.Agent.Undo(ctx, d.ID, d.Actor)
}

// errNoAgent reports that these pages are over a store, and the agent runs elsewhere.
var errNoAgent = &heed.InputError{Field: "agent", Reason: "does not run here, so its answers can " +
	"be changed only in its own program"}

// seen returns the hash of the words that a person decides about, or "" if it is about no words.
func seen(ctx context.Context, v *view.Source, a *action, id string) (string, error) {
	switch a.page.path {
	case proposalPage.path:
		p, err := v.Feedback.Rules().Proposal(ctx, id)
		return p.Draft.Hash(), err
	case rulePage.path:
		r, err := v.Feedback.Rules().Rule(ctx, id)
		return r.Draft.Hash(), err
	case correctionPage.path:
		c, err := v.Feedback.Feedback(ctx, id)
		return hashOf(c), err
	}
	return "", nil
}

func approve(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
	after, err := v.Feedback.Rules().Review(ctx, feedback.Review{
		Proposal: d.ID, Decision: feedback.Approved, Actor: d.Actor, Reason: d.Reason, Hash: d.hash,
		Override: d.form["override"], Withhold: d.form["withhold"]})
	if err != nil {
		return to, err
	}
	switch {
	case after.Status != feedback.StateApproved:
		return landing{"/proposal", d.ID, "approved"}, nil
	case after.Change != "" && after.Of != "":
		return landing{"/rule", after.Of, "changed"}, nil
	default:
		return landing{"/rule", after.ID, "active"}, nil
	}
}

func reject(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
	_, err = v.Feedback.Rules().Review(ctx, feedback.Review{
		Proposal: d.ID, Decision: feedback.Rejected, Actor: d.Actor, Reason: d.Reason})
	return landing{"/proposal", d.ID, "rejected"}, err
}

// edit proposes a new version. Fields that the form does not show stay as they are.
func edit(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
	p, err := v.Feedback.Rules().Proposal(ctx, d.ID)
	if err != nil {
		return to, err
	}
	for _, field := range []string{"text", "type", "agents"} {
		if !d.form.Has(field) {
			return to, &heed.InputError{Field: field, Reason: "is missing"}
		}
	}
	draft := p.Draft
	draft.Text, draft.Type = strings.TrimSpace(d.form.Get("text")), d.form.Get("type")
	draft.Agents = nil
	for line := range strings.Lines(d.form.Get("agents")) {
		if name := strings.TrimSpace(line); name != "" {
			draft.Agents = append(draft.Agents, name)
		}
	}
	draft.AllAgents = d.form.Get("all") != ""
	after, err := v.Feedback.Rules().Propose(ctx,
		feedback.Submission{Draft: draft, Replaces: p.ID, Actor: d.Actor, Reason: d.Reason})
	return landing{"/proposal", after.ID, "edited"}, err
}

func takeOut(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
	source := d.form.Get("source")
	behind, err := v.Feedback.Rules().Sources(ctx, d.ID)
	is := func(c feedback.Feedback) bool { return c.ID == source }
	if err == nil && !slices.ContainsFunc(behind, is) {
		err = heed.ErrNotFound // or it was taken out already
	}
	if err != nil {
		return to, err
	}
	_, err = v.Feedback.Split(ctx, feedback.Act{ID: source, Actor: d.Actor, Reason: d.Reason})
	return landing{"/proposal", d.ID, "out"}, err
}

// joined records that a correction means the same as another one. The page shows both, and one
// click is enough.
func joined(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
	d.Reason = "read side by side, they mean the same"
	_, err = v.Feedback.Join(ctx, d.Act, d.form.Get("with"))
	return landing{"/correction", d.ID, "joined"}, err
}

// split puts a correction alone into a cluster.
func split(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
	_, err = v.Feedback.Split(ctx, d.Act)
	return landing{"/correction", d.ID, "split"}, err
}

func resolve(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
	after, err := v.Feedback.Resolve(ctx, d.Act, feedback.Classification(d.form.Get("as")))
	if err == nil && after.Proposal != "" {
		return landing{"/proposal", after.Proposal, "resolved"}, nil
	}
	return landing{"/correction", d.ID, "resolved"}, err
}

// move takes a rule out of use.
func move(state feedback.State, done string) decider {
	return func(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
		_, err = v.Feedback.Rules().Move(ctx, d.Act, state)
		return landing{"/rule", d.ID, done}, err
	}
}

// propose proposes the change of a rule.
func propose(change string) decider {
	return func(ctx context.Context, v *view.Source, d sent) (to landing, err error) {
		rule, err := v.Feedback.Rules().Rule(ctx, d.ID)
		if err != nil {
			return to, err
		}
		draft := rule.Draft
		draft.Change, draft.Of = change, rule.ID
		p, err := v.Feedback.Rules().Propose(ctx,
			feedback.Submission{Draft: draft, Actor: d.Actor, Reason: d.Reason})
		return landing{"/proposal", p.ID, "proposed"}, err
	}
}

// hashOf returns the hash of what a person sees of a correction.
func hashOf(c feedback.Feedback) string {
	sum := sha256.Sum256([]byte(c.Summary + "\x00" + c.Comment))
	return hex.EncodeToString(sum[:])
}
