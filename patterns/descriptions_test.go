package patterns_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/patterns"
)

// ways maps the names of testdata/descriptions.json to those of the package. The last five are not the package's: added has them.
var ways = map[string]string{
	"split-by-feature": "Split by feature", "split-by-layer": "Split by layer (UI/logic/data)", "parallel-subtasks": "Maximize parallelization",
	"sequential-subtasks": "Sequential execution order", "tests-inline": "Tests alongside implementation",
	"tests-separate": "Tests in separate subtask", "types-first": "Handle shared types first",
	"big-bang": "Big bang", "prototype-first": "Prototype first", "reuse-existing": "Reuse existing", "small-steps": "Small steps",
	"tests-first": "Tests first",
}

// added are ways as a host adds them. Their phrases were made from their names alone.
var added = []patterns.Approach{
	{Name: "Big bang", Phrases: []string{"big bang", "all|everything in|as one go|commit|step|change|subtask", "whole|entire ... in one go|commit|step|change"}},
	{Name: "Prototype first", Phrases: []string{"prototype|spike ... first|before|then", "first|start*|begin* ... prototype|spike"}},
	{Name: "Reuse existing", Phrases: []string{"reus*", "existing code|component*|module*|function*|helper*|library|libraries", "build* on ... existing|exists|have"}},
	{Name: "Small steps", Phrases: []string{"small*|tiny|little step|steps|commit|commits|change|changes|increment*", "incremental*"}},
	{Name: "Tests first", Phrases: []string{
		"test|tests first", "tdd", "test driven", "test|tests ... before ... code|implementation|implementing", "first|start*|begin* ... write|with test|tests",
	}},
}

// TestDescriptions scores extraction on descriptions that were written without having read the phrases. Whoever wrote the phrases had
// seen the names of the ways in ways, and none of the descriptions. The first score was 48 of 72, below the aim of 60; six of the
// 24 others are credited with a way that the text does not follow. Neither phrases nor rules were changed after it.
func TestDescriptions(t *testing.T) {
	w := newWorld(t, patterns.Config{Approaches: append(patterns.Approaches(), added...)})
	all := readJSON[[]struct {
		Text        string
		Ways, Avoid []string
	}](t, "testdata/descriptions.json")
	require.Len(t, all, 72)
	right, wrong := 0, 0
	for _, d := range all {
		var got []string
		names := w.extracted(d.Text)
		for way, name := range ways {
			if slices.Contains(names, name) {
				got = append(got, way)
			}
		}
		slices.Sort(got)
		slices.Sort(d.Ways)
		if slices.Equal(got, d.Ways) {
			right++
		} else {
			t.Logf("%q: want %q, got %q", d.Text, d.Ways, got)
		}
		if slices.ContainsFunc(got, func(way string) bool { return !slices.Contains(d.Ways, way) }) {
			wrong++
		}
	}
	assert.GreaterOrEqual(t, right, 48, "right")
	assert.LessOrEqual(t, wrong, 6, "credited with a way that they do not follow")
	t.Logf("%d of %d right, %d wrongly credited", right, len(all), wrong)
}
