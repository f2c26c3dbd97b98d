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
	person, id, hash, reason string
	form                     url.Values
}

func (d *sent) order() feedback.Act {
	return feedback.Act{ID: d.id, Actor: d.person, Reason: d.reason}
}

var common = []string{"id", "hash", "reason"}

// errStale reports that a person decided about something that changed since.
var errStale = &feedback.RefusedError{
	Reason: "This is no longer as you saw it. Nothing was done. Look at it again",
	Err:    heed.ErrConflict}

// act registers an action.
func (h *Handler) act(a action) {
	h.mux.HandleFunc("POST "+a.path, func(w http.ResponseWriter, r *http.Request) {
		d, err := decided(r, slices.Concat(common, a.fields))
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
				Name: doneCookie, Value: doneMark(d.person, to), Path: h.cfg.Prefix + "/", HttpOnly: true,
				SameSite: http.SameSiteLaxMode,
			})
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
	if a.path != "/proposal/approve" { // which a review does by itself
		hash, err := seen(ctx, v, a, d.id)
		if err == nil && hash != "" && hash != d.hash {
			err = errStale
		}
		if err != nil {
			return to, err
		}
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
	if form.Get("id") == "" {
		return d, heed.ErrNotFound
	}
	return sent{personOf(r), form.Get("id"), form.Get("hash"), strings.TrimSpace(form.Get("reason")),
		form}, nil
}

// again shows the page once more, with why the action was refused, and what the person had typed.
func (h *Handler) again(w http.ResponseWriter, r *http.Request, a action, d sent, refused error) {
	status, text := statusOf(refused)
	if status >= http.StatusInternalServerError || status == http.StatusNotFound {
		h.fail(w, r, a.path, refused)
		return
	}
	before := r.Clone(r.Context())
	before.URL.RawQuery = url.Values{"id": {d.id}}.Encode()
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
	text = why.Error()
	if why.State != "" {
		text = strings.ReplaceAll(text, why.State, words(why.State))
	}
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
