//go:build !race

package web_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/web"
)

// hostile are texts that try to become more than text. Each has the mark, so that a test finds it.
func hostile() (all []string) {
	const mark = "h4ck"
	for _, payload := range []string{
		`<script>alert('h4ck')</script>`, `<img src=x onerror=h4ck()>`, `<svg/onload=h4ck()>`, `<iframe src="javascript:h4ck()"></iframe>`, `<a href="javascript:h4ck()">x</a>`,
		`" onmouseover="h4ck()" x="`, `' onfocus='h4ck()' autofocus '`, `javascript:h4ck()`, `JaVaScRiPt:h4ck()`, `java&#115;cript:h4ck()`, `data:text/html,<b>h4ck</b>`,
		`vbscript:h4ck`, `//evil.example/h4ck`, `https://evil.example/h4ck`, `\\evil.example\h4ck`, `/\evil.example/h4ck`, `</title><b>h4ck`, `</textarea><b>h4ck`, `</select><option>h4ck`,
		`</svg><b>h4ck`, `</style><b>h4ck`, `</script><b>h4ck`, `<!-- h4ck`, `--><b>h4ck`, `<![CDATA[h4ck]]>`, `<?xml h4ck ?>`, `<base href="//evil.example/h4ck">`,
		`<meta http-equiv="refresh" content="0;url=//h4ck">`, `<link rel=stylesheet href=//h4ck>`, `<style>*{h4ck:1}</style>`, `<form action=//h4ck><button>`, `<input name=actor value=h4ck>`,
		`<math><mi xlink:href="h4ck">`, `<template>h4ck</template>`, `{{.h4ck}}`, `${h4ck}`, `%3Cscript%3Eh4ck`, `&lt;script&gt;h4ck`, `&#60;script&#62;h4ck`, `+ADw-script+AD4-h4ck`,
		"h4ck\x00<b>", "h4ck\u202e<b>", "h4ck\u2028<b>", "\xc0\xbch4ck\xff", "h4ck`onclick=`x", "h4ck\r\nSet-Cookie: a=b", "a\"b'c`h4ck", strings.Repeat("h4ck", 400), "\u0130h4ck<\u017fcript>",
		`<heedx heedy="h4ck">`, "h4ck" + strings.Repeat("<b>", 50),
	} {
		for _, wrapped := range []string{payload, `"` + payload, `'>` + payload, payload + `"><b class="h4ck`} {
			if strings.Contains(wrapped, mark) {
				all = append(all, wrapped)
			}
		}
	}
	return all
}

var (
	tag       = regexp.MustCompile(`^<(/?)([a-z][a-z0-9]*)((?: [a-zA-Z][a-zA-Z0-9-]*(?:="[^"<>]*")?)*)(/?)>`)
	attribute = regexp.MustCompile(` ([a-zA-Z][a-zA-Z0-9-]*)(?:="([^"<>]*)")?`)
	elements  = words(`html head meta title link script body a header p nav ul li b bdi main h1 h2 h3 footer section form label input button article span time blockquote dl dt dd ` +
		`details summary textarea select option fieldset legend ins del ol code div table caption thead tbody tr th td figure figcaption svg rect line polyline small q`)
	attributes = words(`lang charset name content rel href src defer class id aria-label aria-labelledby aria-describedby aria-current aria-hidden tabindex role method action ` +
		`for type value maxlength required rows selected datetime dir scope colspan viewBox preserveAspectRatio focusable x y width height x1 y1 x2 y2 points`)
	void = words(`meta link input rect line polyline`)
	// carriers are the attributes that data may be in.
	carriers = words(`value href points data-seen`)
	links    = words(`href src action`)
)

func words(text string) map[string]bool {
	all := make(map[string]bool)
	for _, word := range strings.Fields(text) {
		all[word] = true
	}
	return all
}

// A node is an element of a page.
type node struct {
	name string
	with map[string]string
}

// read reads a page as strictly as it can: only elements and attributes that templates have,
// quoted, closed in order, and no address that leads out.
func read(page string) (all []node, err error) {
	rest, ok := strings.CutPrefix(page, "<!DOCTYPE html>\n")
	if !ok {
		return nil, errors.New("no doctype")
	}
	var open []string
	for rest != "" {
		i := strings.IndexByte(rest, '<')
		if i < 0 {
			i = len(rest)
		}
		if strings.ContainsAny(rest[:i], ">\x00") {
			return nil, fmt.Errorf("text has a bracket or NUL: %.80q", rest[:i])
		}
		if rest = rest[i:]; rest == "" {
			break
		}
		m := tag.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("no tag: %.120q", rest)
		}
		rest = rest[len(m[0]):]
		name := m[2]
		switch {
		case !elements[name]:
			return nil, fmt.Errorf("element %s", name)
		case m[1] != "" && (len(open) == 0 || open[len(open)-1] != name):
			return nil, fmt.Errorf("%s closes %v", name, open)
		case m[1] != "":
			open = open[:len(open)-1]
			continue
		case !void[name]:
			open = append(open, name)
		}
		n := node{name, make(map[string]string)}
		for _, a := range attribute.FindAllStringSubmatch(m[3], -1) {
			if err := n.take(a[1], a[2]); err != nil {
				return nil, err
			}
		}
		all = append(all, n)
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("open: %v", open)
	}
	return all, nil
}

func (n *node) take(name, value string) error {
	if _, twice := n.with[name]; twice || !attributes[name] {
		return fmt.Errorf("attribute %s of %s", name, n.name)
	}
	if strings.Contains(value, "h4ck") && !carriers[name] {
		return fmt.Errorf("data in %s of %s: %s", name, n.name, value)
	}
	if links[name] && !regexp.MustCompile(`^(/[a-z]|/$|/\?|\?|#)`).MatchString(value) {
		return fmt.Errorf("%s of %s leads to %s", name, n.name, value)
	}
	if n.name == "script" && name == "src" && value != "/app.js" {
		return fmt.Errorf("script %s", value)
	}
	n.with[name] = value
	return nil
}

// accessible says what a person with a screen reader or a keyboard would miss.
func accessible(all []node) (faults []string) {
	ids, labels, level, count := map[string]bool{}, map[string]bool{}, 0, map[string]int{}
	for _, n := range all {
		count[n.name]++
		if id := n.with["id"]; id != "" {
			if ids[id] {
				faults = append(faults, "id "+id+" is there twice")
			}
			ids[id] = true
		}
		if n.name == "label" {
			labels[n.with["for"]] = true
		}
		if len(n.name) == 2 && n.name[0] == 'h' && n.name[1] <= '6' {
			if next := int(n.name[1] - '0'); next > level+1 {
				faults = append(faults, fmt.Sprintf("%s after h%d", n.name, level))
			} else {
				level = next
			}
		}
	}
	for _, n := range all {
		control := n.name == "input" && n.with["type"] != "hidden" || n.name == "textarea" ||
			n.name == "select"
		if control && !labels[n.with["id"]] {
			faults = append(faults, n.name+" "+n.with["name"]+" has no label")
		}
		if for_ := n.with["for"]; for_ != "" && !ids[for_] {
			faults = append(faults, "label for nothing: "+for_)
		}
		for _, name := range []string{"aria-labelledby", "aria-describedby"} {
			if to := n.with[name]; to != "" && !ids[to] {
				faults = append(faults, name+" names nothing: "+to)
			}
		}
		if n.name == "svg" && n.with["aria-hidden"] != "true" && n.with["aria-label"] == "" {
			faults = append(faults, "a picture without a name")
		}
	}
	for name, want := range map[string]int{"h1": 1, "main": 1, "html": 1, "title": 1} {
		if count[name] != want {
			faults = append(faults, fmt.Sprintf("%d of %s", count[name], name))
		}
	}
	return faults
}

// furnish adds corrections, proposals and rules to a world, and returns the paths of pages that
// show it all.
func (w *world) furnish(say func(string) string) (paths []string) {
	w.Helper()
	rules, ctx := w.agent.Feedback().Rules(), w.Context()
	for i, text := range []string{"Always show the price in the summary",
		"Never show the price in the summary", "Give every time with its time zone",
		"Give every time with its time zone"} {
		c, err := w.agent.Correct(ctx, fmt.Sprint(say("event"), i%3),
			loop.Correction{Reviewer: []string{"ann", "bob"}[i%2], Text: text + say(""),
				Comment: say("comment")})
		require.NoError(w, err)
		paths = append(paths, address("/correction", "id", c.ID))
	}
	_, _, err := w.agent.Feedback().Flush(ctx)
	require.NoError(w, err)
	all, _, err := rules.Proposals(ctx, feedback.ProposalQuery{}, 0)
	require.NoError(w, err)
	for _, text := range []string{"Name the ticket in each commit",
		"Never name the ticket in each commit", "Ask before a restart"} {
		p, err := rules.Propose(ctx, feedback.Submission{Draft: feedback.Draft{Text: text,
			Agents: []string{"desk"}, Place: "style"}, Actor: "eve", Reason: say("why")})
		require.NoError(w, err)
		all = append(all, p)
		for _, person := range []string{"lee", "zoe"} {
			if text[0] != 'N' || text[1] != 'e' {
				_, err = rules.Review(ctx, feedback.Review{
					Proposal: p.ID, Decision: feedback.Approved, Hash: p.Hash(), Actor: person,
					Reason: say("seen it"),
				})
				require.NoError(w, err)
			}
		}
	}
	edited, err := rules.Propose(ctx, feedback.Submission{
		Draft:    feedback.Draft{Text: "Never name tickets", Agents: []string{"desk"}},
		Replaces: all[len(all)-2].ID, Actor: "eve", Reason: say("short")})
	require.NoError(w, err)
	for _, p := range append(all, edited) {
		paths = append(paths, address("/proposal", "id", p.ID))
		if rule, err := rules.Rule(ctx, p.ID); err == nil {
			paths = append(paths, address("/rule", "id", rule.ID))
		}
	}
	segment := []string{"category", say("servers"), "context", say("night")}
	return append(paths, "/", "/inbox", "/rules", "/changes", "/arms",
		address("/segment", segment...),
		address("/item", append(segment, "item", say("ticket"))...),
		"/heuristics", address("/heuristic", "id", say("rotate")), "/ways", "/ways?warned=1",
		address("/way", "id", say("tests-first")), "/answers",
		address("/answer", "id", say("event")+"1"))
}

// If any call of the store fails, no page shows what was not read.
func TestAFailingStoreIsNoEmptyPage(t *testing.T) {
	w := newWorld(t, 3, same)
	for _, path := range w.furnish(same) {
		w.store.Fail(0, false)
		w.get(path)
		for at := range w.store.Calls() {
			w.store.Fail(at+1, false)
			answer := ask{method: "GET", path: path, person: "kim"}.of(w.h)
			assert.GreaterOrEqual(t, answer.Code, 500, "%s, call %d", path, at+1)
		}
	}
}

// TestHostileFields puts hostile texts into every text of the data of every page: with HEED_LONG
// each of them into each.
func TestHostileFields(t *testing.T) {
	texts := hostile()
	require.GreaterOrEqual(t, len(texts), 200)
	w := newWorld(t, 8, same)
	paths := w.furnish(same)
	pages := web.Templates(w.h, paths)
	require.Len(t, pages, len(slices.Compact(slices.Sorted(slices.Values(paths)))))
	shown := 0
	rounds := 8
	if os.Getenv("HEED_LONG") != "" {
		rounds = len(texts)
	}
	for path, render := range pages {
		for i := range rounds {
			page := render(texts, i*len(texts)/rounds)
			_, err := read(page)
			require.NoError(t, err, path)
			shown += strings.Count(page, "h4ck")
		}
	}
	assert.Greater(t, shown, 10*rounds*len(pages), "the texts are not shown")
}

// TestHostileWorld has hostile texts come in by the doors, and asks for every page.
func TestHostileWorld(t *testing.T) {
	for _, text := range []string{`<img src=x onerror=h4ck()>`, `"/../..%2f?a=b&c#h4ck'`, "h4ck{{.}}</script>"} {
		say := func(what string) string { return what + text }
		w := newWorld(t, 3, say)
		for _, path := range w.furnish(func(what string) string { return what + text }) {
			page := w.get(path)
			_, err := read(page)
			assert.NoError(t, err, path)
		}
		page := w.get("/heuristics", "q", text)
		_, err := read(page)
		assert.NoError(t, err)
		for _, path := range []string{"/proposal", "/rule", "/correction", "/heuristic", "/way",
			"/answer", "/" + "x"} {
			w := ask{method: "GET", path: address(path, "id", "none"+text, "done", text),
				person: "kim"}.of(w.h)
			assert.Equal(t, http.StatusNotFound, w.Code)
			assert.NotContains(t, w.Body.String(), "h4ck")
		}
	}
}

// TestNoRouteOfATenantShowsAnothers asks the pages and the API of a tenant for all that another one
// has, by its ids.
func TestNoRouteOfATenantShowsAnothers(t *testing.T) {
	ids := map[string]string{"id": "event1", "session": "session1", "category": "servers",
		"context": "night", "item": "ticket", "event": "event1", "q": "disk"}
	const secret = " 5ecret"
	w := newWorld(t, 3, func(what string) string {
		if slices.Contains([]string{"ann", "thumb", "failed", "task"}, what) {
			return what + secret // in no lesson, which all tenants get, and in no id
		}
		return what
	})
	paths := w.furnish(func(what string) string {
		if slices.Contains([]string{"comment", "why", "seen it", "short", ""}, what) {
			return what + secret
		}
		return what
	})
	for _, call := range view.Operations() {
		for name, id := range ids {
			paths = append(paths, address(call.Path, name, id))
		}
	}
	other, err := w.agent.Tenant(t.Context(), "umbrella")
	require.NoError(t, err)
	cfg := w.cfg
	cfg.Agent, cfg.Store = other, other.Store()
	h, err := web.New(cfg)
	require.NoError(t, err)
	body, err := json.Marshal(ids)
	require.NoError(t, err)
	shown := 0
	for _, path := range paths {
		for _, method := range []string{"GET", "POST"} {
			asked := func(h http.Handler) string {
				r := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(body))
				r.Header = http.Header{"X-Person": {"kim"}, "Content-Type": {"application/json"}}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Body.String()
			}
			assert.NotContains(t, asked(h), secret, "%s %s", method, path)
			shown += strings.Count(asked(w.h), secret)
		}
	}
	assert.Greater(t, shown, 20, "the test sees what it looks for")
}

// TestAccessible holds the pages to rules that tools check: labels, headings in order, unique ids,
// one main part, names of pictures.
func TestAccessible(t *testing.T) {
	w := newWorld(t, 8, same)
	for _, path := range w.furnish(same) {
		page, err := read(w.get(path))
		require.NoError(t, err)
		assert.Empty(t, accessible(page), path)
	}
	for _, fault := range []string{
		`<input id="x" name="x">`, `<h3>x</h3>`, `<p id="main">x</p>`, `<label for="none">x</label>`, `<svg></svg>`, `<section aria-labelledby="none"></section>`, `<h1>x</h1>`,
	} {
		page, err := read(strings.Replace(w.get("/changes"), "</h1>", "</h1>"+fault, 1))
		require.NoError(t, err)
		assert.NotEmpty(t, accessible(page), fault)
	}
	for _, fault := range []string{`<script>x</script`, `<img>`, `<a onclick="x">y</a>`, `<a href="javascript:x">y</a>`, `<a href="//evil">y</a>`, `<p>`, `<a href=x>y</a>`, ` > `, `<p class="h4ck"></p>`} {
		_, err := read(strings.Replace(w.get("/changes"), "</h1>", "</h1>"+fault, 1))
		assert.Error(t, err, fault)
	}
}

// TestContrast computes the contrast of the colors of the style sheet, in light and in dark, as
// WCAG 2 does.
func TestContrast(t *testing.T) {
	css := ask{method: "GET", path: "/style.css", person: ""}.of(handler(t)).Body.String()
	light, dark := colorsOf(css, ":root {\n  color-scheme"), colorsOf(css, "  :root {\n    --paper")
	require.Len(t, dark, len(light))
	assert.Equal(t, slices.Sorted(maps.Keys(light)), slices.Sorted(maps.Keys(dark)))
	for _, colors := range []map[string]float64{light, dark} {
		for _, pair := range [][2]string{
			{"ink", "paper"}, {"ink", "card"}, {"soft", "paper"}, {"soft", "card"}, {"soft", "tint"},
			{"link", "paper"}, {"link", "card"}, {"link", "tint"}, {"ink", "tint"},
			{"good", "in"}, {"good", "card"}, {"paper", "good"}, {"stop", "card"}, {"stop", "bad-paper"},
			{"mild", "mild-paper"}, {"ink", "in"}, {"ink", "out"},
		} {
			assert.GreaterOrEqual(t, contrast(colors[pair[0]], colors[pair[1]]), 4.5, pair)
		}
		for _, pair := range [][2]string{{"focus", "paper"}, {"focus", "card"},
			{"line-strong", "paper"}, {"line-strong", "card"}, {"bar", "card"}} {
			assert.GreaterOrEqual(t, contrast(colors[pair[0]], colors[pair[1]]), 3.0, pair)
		}
	}
}

// colorsOf returns the luminance of each color that a block of the style sheet names.
func colorsOf(css, begin string) map[string]float64 {
	_, block, _ := strings.Cut(css, begin)
	block, _, _ = strings.Cut(block, "}")
	block = begin[strings.LastIndexByte(begin, '\n')+1:] + block
	all := make(map[string]float64)
	for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2});`).FindAllStringSubmatch(block, -1) {
		var l float64
		for i, share := range []float64{0.2126, 0.7152, 0.0722} {
			n, _ := strconv.ParseUint(m[2+i], 16, 8)
			x := float64(n) / 255
			if x <= 0.04045 {
				x /= 12.92
			} else {
				x = math.Pow((x+0.055)/1.055, 2.4)
			}
			l += share * x
		}
		all[m[1]] = l
	}
	return all
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }
