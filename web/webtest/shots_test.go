package webtest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "make the pictures of docs/ anew")

// TestScreenshots has the pictures of the docs: each is of a page that is there, small enough, and
// named by a document. With -update it makes them.
func TestScreenshots(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	if *update {
		work, gain := serve(t, desk(t)), serve(t, compared(t))
		for _, c := range []struct {
			*site
			name, path, scheme string
			width, height      int64
		}{
			{gain, "web-gain", "/gain", "light", 1000, 620},
			{work, "web-home", "/", "light", 1000, 860},
			{work, "web-proposal", at("/proposal", "id", work.world.waiting(t,
				"Write for somebody who has little time.")), "light", 1000, 860},
			{work, "web-segment", at("/segment", "category", "servers", "context", ""), "dark",
				1000, 860},
			{work, "web-phone", "/inbox", "light", 360, 740},
		} {
			b := c.open(t, "kim")
			b.area(c.width, c.height)
			b.scheme(c.scheme)
			b.visit(c.path)
			eval[any](b, `document.documentElement.style.overflow = "hidden"`) // no bar at the side
			require.NoError(t, os.WriteFile(filepath.Join(docs, c.name+".png"), b.picture(false), 0o644))
		}
	}
	found, err := filepath.Glob(filepath.Join(docs, "web-*.png"))
	require.NoError(t, err)
	require.Len(t, found, 5)
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	first, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	assert.Contains(t, string(first), "](docs/web-gain.png)")
	for _, file := range found {
		if filepath.Base(file) == "web-gain.png" {
			continue
		}
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Less(t, info.Size(), int64(150_000), file)
		assert.Contains(t, string(text), "](../docs/"+filepath.Base(file)+")")
	}
}
