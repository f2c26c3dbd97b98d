package webtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const axeVersion = "4.14.1"

// audit runs axe-core on a page, and returns what it finds.
const audit = `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + " " + n.html.slice(0, 120))))`

// TestAxe holds the pages to all rules of axe-core, which npm fetches: in the long form, where
// there is npm. [TestPages] has rules of its own in every run.
func TestAxe(t *testing.T) {
	if !long {
		t.Skip("HEED_LONG=1 runs axe-core")
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--no-save",
		"--ignore-scripts", "--no-audit", "--no-fund", "axe-core@"+axeVersion).CombinedOutput()
	if err != nil {
		t.Skipf("npm can't fetch axe-core: %v\n%s", err, out)
	}
	axe, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	s := serve(t, desk(t))
	b := s.open(t, "kim")
	b.spare("404 (Not Found)")
	c := newCrawl(s.world.pages(t))
	check := func() []string {
		found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](audit, chromedp.EvalAwaitPromise))
		require.NoError(t, err)
		return found
	}
	for i := 0; i < len(c.paths); i++ {
		path := c.visit(b, i)
		eval[any](b, `document.querySelectorAll("details").forEach((d) => { d.open = true; })`)
		eval[any](b, string(axe)+"; null")
		for _, l := range looks() {
			b.size(l.width)
			b.scheme(l.scheme)
			assert.Empty(t, check(), "%s at %d, %s", path, l.width, l.scheme)
		}
	}
	eval[any](b, `document.querySelector("main").insertAdjacentHTML("beforeend", "<input><img src=''>")`)
	assert.Len(t, check(), 2, "axe-core finds what is there")
}
