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
		s := serve(t, desk(t))
		b := s.open(t, "kim")
		for _, c := range []struct {
			name, path, scheme string
			width, height      int64
		}{
			{"web-home", "/", "light", 1000, 860},
			{"web-proposal", at("/proposal", "id", s.world.waiting(t,
				"Write for somebody who has little time.")), "light", 1000, 860},
			{"web-segment", at("/segment", "category", "servers", "context", ""), "dark", 1000, 860},
			{"web-phone", "/inbox", "light", 360, 740},
		} {
			b.area(c.width, c.height)
			b.scheme(c.scheme)
			b.visit(c.path)
			b.says("Up to date")
			eval[any](b, `document.documentElement.style.overflow = "hidden"`) // no bar at the side
			require.NoError(t, os.WriteFile(filepath.Join(docs, c.name+".png"), b.picture(false), 0o644))
		}
	}
	found, err := filepath.Glob(filepath.Join(docs, "web-*.png"))
	require.NoError(t, err)
	require.Len(t, found, 4)
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, file := range found {
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Less(t, info.Size(), int64(150_000), file)
		assert.Contains(t, string(text), "](../docs/"+filepath.Base(file)+")")
	}
}
