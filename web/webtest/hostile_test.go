package webtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/patterns"
)

// hostile are texts that try to become more than text. The pages have no marquee, so that one that
// is there came from data.
func hostile() (all []string) {
	for _, payload := range []string{
		`<script>h4ck()</script>`, `<img src=x onerror=h4ck()>`, `<svg/onload=h4ck()>`, `<iframe src="javascript:parent.h4ck()"></iframe>`, `<a href="javascript:h4ck()">x</a>`,
		`" onmouseover="h4ck()" x="`, `' onfocus='h4ck()' autofocus '`, `javascript:h4ck()`, `JaVaScRiPt:h4ck()`, `java&#115;cript:h4ck()`, `data:text/html,<script>h4ck()</script>`,
		`//evil.example/h4ck`, `https://evil.example/h4ck`, `\\evil.example\h4ck`, `/\evil.example/h4ck`, `</title><marquee>h4ck`, `</textarea><marquee>h4ck`, `</select><marquee>h4ck`, `</option></select><marquee>h4ck`,
		`</svg><marquee>h4ck`, `</style><marquee>h4ck`, `</script><script>h4ck()//`, `<!-- h4ck`, `--><marquee>h4ck`, `<![CDATA[<marquee>h4ck]]>`, `<?xml <marquee>h4ck ?>`, `<base href="//evil.example/h4ck">`,
		`<meta http-equiv="refresh" content="0;url=javascript:h4ck()">`, `<link rel=stylesheet href=//evil.example/h4ck>`, `<style>*{display:none}</style>h4ck`, `<form action=//h4ck><button autofocus>`,
		`<math><mtext></form><form><mglyph><style></math><img src onerror=h4ck()>`, `<template><marquee>h4ck</template>`, `{{.h4ck}}`, `${h4ck()}`, `%3Cscript%3Eh4ck()`, `&lt;script&gt;h4ck()`,
		`&#60;script&#62;h4ck()`, `+ADw-script+AD4-h4ck()`, "h4ck\u202e<marquee>", "h4ck\u2028<marquee>", "h4ck`onclick=h4ck()`x", "h4ck\r\nSet-Cookie: person=eve", "a\"b'c`h4ck", strings.Repeat("h4ck", 100),
		"\u0130h4ck<\u017fcript>", `<details open ontoggle=h4ck()>`, `<video><source onerror=h4ck()>`, `<input onfocus=h4ck() autofocus>`, "h4ck" + strings.Repeat("<marquee>", 50), `<object data=javascript:h4ck()>`,
		`<a id=main name=live>h4ck</a>`,
	} {
		all = append(all, payload, `"`+payload, `'>`+payload, payload+`"><marquee class="h4ck`)
	}
	return all
}

// bad says what of a page came from data, or was done by it.
const bad = `(() => {
  const faults = [...window.ran, ...window.violated];
  const known = new Set(("html head meta title link script body a header p nav ul li b bdi main h1 h2 h3 footer section form label input button article span time blockquote dl dt dd " +
    "details summary textarea select option fieldset legend ins del ol code div table caption thead tbody tr th td figure figcaption svg rect line polyline small q").split(" "));
  for (const e of document.querySelectorAll("*")) {
    if (!known.has(e.tagName.toLowerCase())) faults.push("element " + e.tagName);
    for (const a of e.attributes) {
      if (/^on|^style$/.test(a.name) || a.value.includes("h4ck") && !["value", "href", "points"].includes(a.name)) faults.push(e.tagName + " " + a.name + "=" + a.value.slice(0, 80));
      if (/^(href|src|action|formaction|data)$/.test(a.name) && new URL(a.value, location.href).origin !== location.origin) faults.push("leads to " + a.value);
    }
  }
  if (document.querySelectorAll("script").length !== 1 || !document.getElementById("main")) faults.push("the page is another one");
  return faults;
})()`

// besieged is a world in which each of the texts is in each field that people, models and hosts
// fill.
func besieged(t *testing.T, texts []string) *world {
	t.Helper()
	var lessons loop.Lessons
	for i, text := range texts {
		lessons.Heuristics = append(lessons.Heuristics,
			learning.Heuristic{ID: text, Domain: text, Condition: text, Action: text})
		if i%60 == 0 {
			lessons.Arms = append(lessons.Arms, loop.Arm{ID: text, System: text, InputPrice: 1})
		}
	}
	w, ctx := newWorld(t, lessons), t.Context()
	rules, taken := w.agent.Feedback().Rules(), 0
	for i, text := range texts {
		for j, domain := range []string{text, "common"} {
			w.pass(97 * 60e9)
			answer, err := w.agent.Answer(ctx, loop.Event{ID: fmt.Sprint(text, j), Text: text,
				Domain: domain, Item: text, Context: domain, Person: text, Session: text,
				Task: text[:min(len(text), 500)]})
			require.NoError(t, err)
			good := i%2 == 0
			require.NoError(t, w.agent.React(ctx, answer.ID,
				loop.Reaction{Person: text, Channel: text, Value: 1}))
			require.NoError(t, w.agent.Outcome(ctx, answer.ID,
				loop.Outcome{Success: &good, Failure: text, Source: text,
					Ways: []patterns.PatternID{patterns.PatternID(text)}}))
		}
		_, err := w.agent.Patterns().Define(ctx, patterns.Pattern{ID: patterns.PatternID(text),
			Content: text, Tags: []string{text}})
		require.NoError(t, err)
		c, err := w.agent.Correct(ctx, fmt.Sprint(text, 0),
			loop.Correction{Reviewer: text, Text: text, Comment: text, Tags: []string{text}})
		require.NoError(t, refused(err))
		if err == nil {
			w.corrections = append(w.corrections, at("/correction", "id", c.ID))
		}
		p, err := rules.Propose(ctx, feedback.Submission{Draft: feedback.Draft{Text: text,
			Agents: []string{text}, Place: text}, Actor: text, Reason: text})
		require.NoError(t, refused(err))
		if err != nil { // a rule may not have all characters
			p, err = rules.Propose(ctx, feedback.Submission{
				Draft: feedback.Draft{Text: fmt.Sprint("Rule ", i), Agents: []string{"support"}},
				Actor: fmt.Sprint("eve", i), Reason: text})
			require.NoError(t, err)
		} else {
			taken++
		}
		if i%4 == 3 { // it waits, as far as there is room
			continue
		}
		for _, person := range []string{"lee", "mia"} {
			if p.Status == feedback.StatePending {
				decision := feedback.Approved
				if i%4 == 2 {
					decision = feedback.Rejected
				}
				p, err = rules.Review(ctx, feedback.Review{
					Proposal: p.ID, Decision: decision, Hash: p.Hash(), Actor: person, Reason: text,
				})
				require.NoError(t, refused(err))
			}
		}
	}
	require.Positive(t, taken, "no rule has such a text")
	return w
}

// refused lets an error pass that says that something may not be so.
func refused(err error) error {
	var input *heed.InputError
	var gate *feedback.RefusedError
	if errors.As(err, &input) || errors.As(err, &gate) {
		return nil
	}
	return err
}

// TestHostile has no script of data run, and no element come from it, in any page: with HEED_LONG
// for each of the texts in each kind of page.
func TestHostile(t *testing.T) {
	texts := hostile()
	require.Greater(t, len(texts), 200)
	if !long {
		var some []string
		for i := 0; i < len(texts); i += 27 { // of all four forms
			some = append(some, texts[i])
		}
		texts = some
	}
	s := serve(t, besieged(t, texts))
	b := s.open(t, "kim")
	for _, status := range []string{"404 (", "400 (", "403 (", "409 (", "422 ("} {
		b.spare(status)
	}
	c := newCrawl(s.world.pages(t))
	if !long {
		c.paths = c.paths[:min(len(c.paths), 15)]
	} else {
		for _, text := range texts {
			c.paths = append(c.paths, at("/heuristic", "id", text), at("/way", "id", text),
				at("/answer", "id", text+"0"), at("/segment", "category", text, "context", text),
				at("/item", "category", "common", "context", "common", "item", text))
		}
	}
	shown := 0
	for i := 0; i < len(c.paths); i++ {
		path := c.visit(b, i)
		require.Empty(t, eval[[]string](b, bad), path)
		shown += strings.Count(b.text(), "h4ck")
	}
	assert.Greater(t, shown, 8*len(c.paths), "the texts are not shown")
	for _, kind := range []string{"/segment?category=&context=", "/item?category=&context=&item=",
		"/heuristic?id=", "/way?id=", "/answer?id=", "/correction?id=", "/rule?id=",
		"/heuristics?after="} {
		assert.True(t, c.kinds[kind] || !long && kind == "/heuristics?after=", "no page of %s was seen",
			kind)
	}
	id := s.world.waiting(t, "")
	if !long {
		texts = texts[:3]
	}
	for _, text := range texts {
		for _, path := range []string{at("/heuristics", "q", text),
			at("/answer", "id", text, "done", text), at("/proposal", "id", id)} {
			b.visit(path)
			require.Empty(t, eval[[]string](b, bad), path)
		}
		// The form comes back with the typed text and the fault.
		fill := fmt.Sprintf(`(() => { const f = document.querySelector('form[action="/proposal/edit"]'); for (const e of f.querySelectorAll("textarea")) e.value = %q; f.hash.value = "00"; })()`, text)
		eval[any](b, fill)
		_, err := chromedp.RunResponse(b.ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector('form[action="/proposal/edit"]').requestSubmit()`))
		require.NoError(t, err)
		require.Empty(t, eval[[]string](b, bad), text)
	}
}
