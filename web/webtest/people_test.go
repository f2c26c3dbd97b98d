package webtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
)

// status is the state of a proposal, or of the rule that it became.
func (w *world) status(t *testing.T, id string) feedback.State {
	t.Helper()
	p, err := w.agent.Feedback().Rules().Proposal(t.Context(), id)
	require.NoError(t, err)
	return p.Status
}

// TestTwoPeople has two people approve a rule in two browsers. If a person decides on a page that
// is out of date, the next page shows the other person's decision.
func TestTwoPeople(t *testing.T) {
	s := serve(t, desk(t))
	id := s.world.waiting(t, "Always name the server in the first line.")
	kim, zoe := s.open(t, "kim"), s.open(t, "zoe")
	for _, b := range []*tab{kim, zoe} {
		b.visit(at("/proposal", "id", id))
		b.says("0 of 2; 2 more people must approve")
	}
	kim.fill("#approve-reason", "I looked it up every time")
	kim.click("button.good")
	kim.says("Your approval counts.")
	assert.Equal(t, feedback.StatePending, s.world.status(t, id))

	zoe.fill("#approve-reason", "Me, too")
	zoe.click("button.good")
	zoe.says("It is a rule now")
	assert.Equal(t, feedback.StateApproved, s.world.status(t, id))

	kim.fill("#reject-reason", "No, after all")
	kim.spare("status of 409")
	kim.click("button.stop")
	kim.says("It became a rule")
}

// TestKeyboard reads and decides with the keyboard alone.
func TestKeyboard(t *testing.T) {
	s := serve(t, desk(t))
	id := s.world.waiting(t, "Give each time with its time zone.")
	b := s.open(t, "kim")
	b.visit("/")
	b.keys(kb.Tab)
	assert.Equal(t, "Skip to the content", b.focused())
	assert.True(t, eval[bool](b, `(() => { const r = document.activeElement.getBoundingClientRect(); return r.left >= 0 && r.top >= 0 && r.width > 20; })()`), "the skip link is not shown")
	b.keys(kb.Enter)
	b.until(`document.activeElement.id === "main"`)
	b.keys(kb.Tab)
	assert.True(t, eval[bool](b, `document.getElementById("main").contains(document.activeElement)`))
	b.tabTo("Inbox")
	b.follows(kb.Enter)
	b.tabTo("Give each time with its time zone.")
	b.follows(kb.Enter)
	b.order()
	b.tabTo("approve-reason")
	b.keys("It was asked for")
	b.keys(kb.Tab)
	assert.Equal(t, "Approve", b.focused())
	b.follows(kb.Enter)
	b.says("Your approval counts.")
	p, err := s.world.agent.Feedback().Rules().Proposal(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, p.Approvals, 1)
	assert.Equal(t, "It was asked for", p.Approvals[0].Reason)
}

func (b *tab) keys(text string, options ...chromedp.KeyOption) {
	b.Helper()
	b.do(chromedp.KeyEvent(text, options...))
}

// follows presses a key that leads to another page.
func (b *tab) follows(key string) {
	b.Helper()
	_, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(key))
	require.NoError(b, err)
}

// focused names what has the focus.
func (b *tab) focused() string {
	b.Helper()
	return eval[string](b, `((e) => e.id && !e.textContent.trim() || ["TEXTAREA", "SELECT"].includes(e.tagName) ? e.id : e.textContent.trim())(document.activeElement)`)
}

// tabTo presses the tabulator until something has the focus. From the end of a page it goes on at
// the beginning.
func (b *tab) tabTo(name string) {
	b.Helper()
	for range 80 {
		b.keys(kb.Tab)
		if b.focused() == name {
			return
		}
	}
	require.Fail(b, "no way to "+name)
}

// order walks through a page: everything that can be used is reached once, in the order of the
// page, and is seen to have the focus.
func (b *tab) order() {
	b.Helper()
	want := eval[[]string](b, `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), textarea, select, summary, [tabindex='0']")].filter((e) => e.checkVisibility()).map((e, i) => e.dataset.nth = String(i))`)
	eval[any](b, `document.activeElement.blur()`)
	for _, nth := range want {
		b.keys(kb.Tab)
		fault := eval[string](b, `(() => {
  const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
  if (e.dataset.nth !== "`+nth+`") return "comes instead of `+nth+`: " + e.outerHTML.slice(0, 200);
  if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 2) return "has no outline: " + e.outerHTML.slice(0, 200);
  if (r.bottom <= 0 || r.top >= innerHeight || r.right <= 0 || r.left >= innerWidth) return "is out of sight: " + e.outerHTML.slice(0, 200);
  return "";
})()`)
		require.Empty(b, fault)
	}
}

// TestWithoutScripts decides in a browser that runs no scripts.
func TestWithoutScripts(t *testing.T) {
	s := serve(t, desk(t))
	first, second := s.world.waiting(t, "Always name the server in the first line."),
		s.world.waiting(t, "Give each time with its time zone.")
	b := s.open(t, "kim")
	_, err := chromedp.Run(b.ctx, func(ctx context.Context, t *chromedp.Target) (any, error) {
		return cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
	})
	require.NoError(t, err)
	b.visit("/inbox")
	b.click(`a[href="/proposal?id=` + first + `"]`)
	b.fill("#edit-text", "Always: ")
	b.fill("#edit-reason", "It is easy to forget")
	b.click(`form[action="/proposal/edit"] button`)
	assert.Contains(t, b.text(), "Always: Always name the server in the first line.")
	assert.Contains(t, b.text(), "You proposed or edited this, so others approve it.")
	assert.Equal(t, feedback.State("SUPERSEDED"), s.world.status(t, first))

	b.visit(at("/proposal", "id", second))
	b.fill("#reject-reason", "Everybody is in one zone")
	b.click("button.stop")
	assert.Contains(t, b.text(), "Everybody is in one zone")
	assert.Equal(t, feedback.StateRejected, s.world.status(t, second))
}

// TestFromCorrectionsToARule has two reviewers say the same in their own words, and a third the
// opposite. People join the two with a click, decide about the third, see which heuristics the rule
// reaches, approve it, find it in a prompt, and take it out again.
func TestFromCorrectionsToARule(t *testing.T) {
	s := serve(t, desk(t))
	const first = "Name the incident in the first line, nobody reads further down."
	corrects := func(id, who, text string) {
		_, err := s.world.agent.Answer(t.Context(), loop.Event{ID: id, Text: "What is with " + id})
		require.NoError(t, err)
		_, err = s.world.agent.Correct(t.Context(), id, loop.Correction{Reviewer: who, Text: text})
		require.NoError(t, err)
		s.world.pass(time.Second)
	}
	prompted := func() bool {
		plan, err := s.world.agent.Prepare(t.Context(), loop.Event{Text: "What now?", AskModel: true})
		require.NoError(t, err)
		return strings.Contains(plan.System, first)
	}
	corrects("mail-1", "ann", first)
	corrects("mail-2", "bob", "Begin with the incident, people read the first line and no further.")
	corrects("mail-3", "cleo",
		"Never name the incident in the first line, nobody reads further down.")

	zoe, kim, lou := s.open(t, "zoe"), s.open(t, "kim"), s.open(t, "lou")
	zoe.visit(at("/inbox"))
	zoe.says("Does it contradict")
	zoe.says("Corrections that may mean the same")
	id, with := s.world.correction(t, "mail-2"), s.world.correction(t, "mail-1")
	require.Contains(t, id.Near, with.ID)
	const form = `form:has(input[name="id"][value=%q]):has(input[name="with"][value=%q]) button`
	zoe.click(fmt.Sprintf(form, id.ID, with.ID))
	zoe.says("Joined. The two count as one correction by their reviewers.")
	zoe.says("Joined by")

	zoe.visit(at("/correction", "id", s.world.correction(t, "mail-3").ID))
	zoe.do(chromedp.Click(chromedp.CSS("#as-ignore")))
	zoe.fill("#resolve-reason", "We name it since May")
	zoe.click(".decide button.good")
	zoe.says("Resolved.")

	_, _, err := s.world.agent.Feedback().Flush(t.Context())
	require.NoError(t, err)
	proposal := s.world.waiting(t, first)
	for i, b := range []*tab{kim, lou} {
		b.visit(at("/proposal", "id", proposal))
		b.says("What it was made of")
		b.says("Begin with the incident")
		b.fill("#approve-reason", fmt.Sprint("seen it ", i, " times"))
		assert.False(t, prompted(), "one person puts nothing into a prompt")
		b.click("button.good")
	}
	lou.says("It is a rule now")
	assert.True(t, prompted())

	lou.visit(at("/rule", "id", proposal))
	lou.fill("#retire-reason", "The form has a title now")
	lou.click(`form[action$="/rule/retire"] button`)
	lou.says("Retired. It is in no prompt that is built from now on.")
	assert.False(t, prompted())
}

// correction returns the correction of an answer.
func (w *world) correction(t *testing.T, answer string) feedback.Feedback {
	t.Helper()
	all, _, err := w.agent.Feedback().List(t.Context(), feedback.Listing{Limit: 1000})
	require.NoError(t, err)
	i := slices.IndexFunc(all, func(f feedback.Feedback) bool { return f.Task == answer })
	require.GreaterOrEqual(t, i, 0, answer)
	return all[i]
}
