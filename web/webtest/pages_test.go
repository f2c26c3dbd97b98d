package webtest

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//go:embed rules.js
var rules string

var shots = flag.String("shots", "", "the directory that a picture of each page goes to")

// A crawl is the pages to look at. Of what they link to, it takes one of each kind.
type crawl struct {
	paths []string
	kinds map[string]bool
}

var value = regexp.MustCompile(`=[^&]*`)

func newCrawl(paths []string) *crawl {
	c := &crawl{kinds: make(map[string]bool)}
	for _, path := range paths {
		c.kinds[value.ReplaceAllString(path, "=")] = true
	}
	corrections := 0
	c.paths = slices.DeleteFunc(paths, func(path string) bool {
		if strings.HasPrefix(path, "/correction") {
			corrections++
		}
		return corrections > 1 && !long && strings.HasPrefix(path, "/correction")
	})
	return c
}

// visit opens the page of an index, and adds what it links to.
func (c *crawl) visit(b *tab, i int) string {
	b.Helper()
	b.visit(c.paths[i])
	for _, link := range eval[[]string](b, `[...document.querySelectorAll("main a[href]")].map((a) => a.pathname + a.search)`) {
		if kind := value.ReplaceAllString(link, "="); !c.kinds[kind] {
			c.kinds[kind] = true
			c.paths = append(c.paths, link)
		}
	}
	return c.paths[i]
}

// A look is how a page is looked at.
type look struct {
	width  int64
	scheme string
}

// looks are all of them, or in the short form each width and each scheme once.
func looks() []look {
	if long || *shots != "" {
		return []look{{360, "light"}, {360, "dark"}, {1280, "dark"}, {1280, "light"}}
	}
	return []look{{360, "light"}, {1280, "dark"}}
}

// TestPages holds each page to the rules, on a phone and on a desk, by day and by night.
func TestPages(t *testing.T) {
	s := serve(t, desk(t))
	b := s.open(t, "kim")
	b.spare("404 (Not Found)")
	c := newCrawl(s.world.pages(t))
	for i := 0; i < len(c.paths); i++ {
		path := c.visit(b, i)
		eval[any](b, `document.querySelectorAll("details").forEach((d) => { d.open = true; })`)
		for _, l := range looks() {
			b.size(l.width)
			b.scheme(l.scheme)
			assert.Empty(t, eval[[]string](b, rules), "%s at %d, %s", path, l.width, l.scheme)
			if *shots != "" {
				name := fmt.Sprintf("%02d%s-%d-%s.png", i, regexp.MustCompile(`\W+`).ReplaceAllString(strings.SplitN(path, "?", 2)[0], "-"), l.width, l.scheme)
				require.NoError(t, os.WriteFile(filepath.Join(*shots, name), b.picture(true), 0o600))
			}
		}
		assert.Empty(t, eval[[]string](b, "[...window.ran, ...window.violated]"), path)
	}
	assert.Greater(t, len(c.paths), 25)
	for _, kind := range []string{"/segment?category=&context=", "/item?category=&context=&item=",
		"/heuristic?id=", "/way?id=", "/answer?id=", "/correction?id=", "/rule?id="} {
		assert.True(t, c.kinds[kind], "no page of %s was seen", kind)
	}
}

// TestRules puts faults into a page. Each rule finds its own.
func TestRules(t *testing.T) {
	s := serve(t, desk(t))
	b := s.open(t, "kim")
	b.visit("/rules")
	for _, c := range []struct{ rule, script string }{
		{"width", `main.insertAdjacentHTML("beforeend", "<p class=count>" + "x".repeat(400) + "</p>")`},
		{"cut", `table.parentElement.style.overflow = "hidden"; table.parentElement.style.height = "20px"`},
		{"overlap", `main.insertAdjacentHTML("beforeend", "<p>One text</p><p>Another</p>"); main.lastChild.style.marginTop = "-2.05em"`},
		{"contrast", `document.querySelector("h1").style.color = "rgb(170, 170, 170)"; document.querySelector("th").style.color = "rgba(0, 0, 0, .4)"`},
		{"contrast", `document.querySelector("input").style.borderColor = "rgb(230, 230, 230)"`},
		{"language", `document.documentElement.lang = ""`},
		{"title", `document.title = ""`},
		{"headings", `main.insertAdjacentHTML("beforeend", "<h4>x</h4>")`},
		{"headings", `document.querySelector("h1").remove()`},
		{"landmarks", `document.body.insertAdjacentHTML("beforeend", "<p>x</p>")`},
		{"landmarks", `main.insertAdjacentHTML("beforeend", "<nav aria-label=Pages></nav>")`},
		{"skip", `document.querySelector(".skip").remove()`},
		{"name", `main.insertAdjacentHTML("beforeend", "<a href='/'><svg aria-hidden=true></svg></a>"); main.lastChild.style.cssText = "display: block; width: 9px; height: 9px"`},
		{"label", `document.querySelector("label").remove()`},
		{"id", `main.insertAdjacentHTML("beforeend", "<p id=q>x</p>")`},
		{"reference", `main.setAttribute("aria-labelledby", "none")`},
		{"order", `document.querySelector("input").tabIndex = 2`},
		{"hidden", `document.querySelector("form").ariaHidden = "true"`},
		{"table", `document.querySelector("th").removeAttribute("scope")`},
		{"table", `document.querySelector("td").remove()`},
		{"region", `document.querySelector(".wide").removeAttribute("tabindex")`},
		{"picture", `main.insertAdjacentHTML("beforeend", "<svg></svg>")`},
		{"target", `document.querySelector("button").style.cssText = "padding: 0; font-size: 10px; line-height: 1"`},
	} {
		eval[any](b, `(() => {
  window.was ??= { body: document.body.innerHTML, lang: document.documentElement.lang, title: document.title };
  const main = document.querySelector("main"), table = document.querySelector("table");
  `+c.script+`; })()`)
		found := eval[[]string](b, rules)
		assert.True(t, slices.ContainsFunc(found,
			func(fault string) bool { return strings.HasPrefix(fault, c.rule+": ") }), "%s finds %q: %s",
			c.script, found, c.rule)
		eval[any](b, `document.body.innerHTML = window.was.body; document.documentElement.lang = window.was.lang; document.title = window.was.title`)
		assert.Empty(t, eval[[]string](b, rules), "after %s", c.script)
	}
	// The browser reports what the policy forbids to a page.
	eval[any](b, `document.body.append(Object.assign(document.createElement("script"), { textContent: "h4ck()" })); console.log("x"); h4ck()`)
	b.until("window.violated.length === 1 && window.ran.length === 1")
	require.GreaterOrEqual(t, len(b.heard()), 2)
	b.spare("")
}
