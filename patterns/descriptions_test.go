package patterns_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/patterns"
)

// ways maps the names of testdata/descriptions.json to those of the package. The last five are not
// the package's: added has them.
var ways = map[string]string{
	"split-by-feature": "Split by feature", "split-by-layer": "Split by layer (UI/logic/data)",
	"parallel-subtasks":   "Maximize parallelization",
	"sequential-subtasks": "Sequential execution order",
	"tests-inline":        "Tests alongside implementation",
	"tests-separate":      "Tests in separate subtask", "types-first": "Handle shared types first",
	"big-bang": "Big bang", "prototype-first": "Prototype first", "reuse-existing": "Reuse existing",
	"small-steps": "Small steps",
	"tests-first": "Tests first",
}

// added are ways as a host adds them.
var added = []patterns.Approach{
	{Name: "Big bang", Phrases: []string{
		"big bang", "big|large|long|huge|giant|gigantic|massive|enormous " +
			"commit|rewrite|push|diff|merge", "all|everything|whole|entire|complete*|lot ... " +
			"in|into|as|with one|single go|commit|step|change|subtask|sweep|shot|swoop|pass|pull|" +
			"push|delivery|batch|merge|patch",
		"one|single big|large|huge|giant|massive|enormous " +
			"commit|change|step|diff|pull|rewrite|patch|sweep|push|release|delivery",
		"in one go|shot|sweep|swoop|stroke",
		"whole|entire|everything|lot ... in|into|as one|single ... commit|diff|change|merge|pull",
		"one|single commit|change|merge|pull|diff ... lot|everything|whole|entire",
		"everything|lot ... at once",
		"whole|entire|everything ... one|single commit|step|go|pull|change|rewrite", "monolithic",
		"all in one", "as|in|into single pull|commit|go|change",
		"chang*|rewrote|rewrit*|replac*|migrat*|convert* ... all|everything|whole ... at once",
	}},
	{Name: "Prototype first", Phrases: []string{
		"prototyp*|spike|poc", "proof of concept",
		"first|start*|begin*|began|quick|crude|rough ... mock|mockup|mockups", "throwaway|disposable",
		"skeleton|dummy|sketch*|hack*|fake ... first|before|see|whether",
		"hack*|knock*|sketch*|threw ... together|quick|rough|ugly|crude",
	}},
	{Name: "Reuse existing", Phrases: []string{
		"reus*", "re use|used|using", "already was|were|existed", "there already", "nothing new",
		"no new code", "built|build|building on|upon ... from|existing",
		"pull*|lift*|copied|copy*|import*|borrow*|took|taken|carried ... from|out ... " +
			"package|service|module|project|repo|gateway|helper|app|codebase", "has|had|have ... so " +
			"... imported|used|called|took it|that|those|them",
		"took|taken|taking over ... from",
		"existing code|component*|module*|function*|helper*|library|libraries",
		"built|build*|base*|extend*|adapt*|took|taking|leverag*|borrow*|wrap* ... " +
			"existing|exist*|already", "adapted|repurpos*|recycl*|borrow*", "already " +
			"ship|use|have|had|has|in|there|existed|had|available|present", "off the shelf",
		"us*|took|take|kept|call*|with|on|from existing",
		"rather than write|build|writing|building|make|making ... " +
			"pulled|took|used|called|copied|imported",
		"instead of writing|building|making|inventing|reinventing new|own|another|wheel",
	}},
	{Name: "Small steps", Phrases: []string{
		"small*|tiny|little|short|baby|bite ones|rounds",
		"bits|portions|chunks|lots|batches of ... lines",
		"commits|requests|prs|diffs|changes|patches ... none|no|never over|above|more|bigger " +
			"... lines", "most|under ... lines at time", "small*|tiny|little|short|baby|bite " +
			"step|steps|sized|commit|commits|change|changes|increment*|piece|pieces|chunk*|slices|" +
			"patch*|batch*|bits|diffs|iteration*|portions|pull",
		"incremental*|gradual*|piecemeal", "bit by bit",
		"dozens|many|several commits|steps|increments|changes",
		"one table|function|file|endpoint|module|test|screen|page|class ... per|at|a " +
			"commit|time|day|deploy*|release", "requests|diffs|patches ... " +
			"small*|tiny|short", "piece by piece", "little by " +
			"little", "step|steps|commit|commits|change|changes|increment* ... small*|tiny|short|little",
	}},
	{Name: "Tests first", Phrases: []string{
		"test|tests|spec|specs first", "tdd",
		"spec|specs|assertions|examples ... before ... " +
			"code|logic|line|production|implement*|function*|feature*|anything", "test code " +
			"test code", "test , code , test", "failing|red spec|specs|example|examples", "failing|red " +
			"case|cases ... then|before|first|each", "test|tests|spec|specs ... only then " +
			"code|implementation|logic", "test driven", "test|tests ... before|ahead|prior ... " +
			"code|logic|line|production|implement*|function*|feature*|anything",
		"first|start*|begin*|began|initially ... write|writing|wrote|failing|test|tests",
		"red ... green", "test|tests written|came|existed before|first|ahead",
		"test|tests for|of ... written|came|existed before|first|ahead", "failing|red test|tests",
		"test|tests ... watched|saw ... fail*",
		"test|tests ... code|implementation|logic last|afterwards|after|second|third|later|followed",
		"wrote|write|writing test|tests ... then ... code|implement*|made|pass*",
	}},
}

// TestDescriptions scores extraction on four sets of descriptions. descriptions.json and
// unseen.json were in view when the phrases were written. another.json, whose texts are hard on
// purpose, and later.json were not: they were scored, and no phrase was changed for them.
func TestDescriptions(t *testing.T) {
	w := newWorld(t, patterns.Config{Approaches: append(patterns.Approaches(), added...)})
	for _, c := range []struct {
		file                string
		total, right, wrong int
	}{
		{"testdata/descriptions.json", 72, 61, 1},
		{"testdata/unseen.json", 60, 47, 1},
		{"testdata/another.json", 95, 56, 7},
		{"testdata/later.json", 60, 44, 3},
	} {
		all := readJSON[[]description](t, c.file)
		require.Len(t, all, c.total, c.file)
		right, wrong, missed := 0, 0, ""
		for i, d := range all {
			got := d.found(w.extracted(d.Text))
			if slices.Sort(d.Ways); slices.Equal(got, d.Ways) {
				right++
			} else {
				missed += fmt.Sprintf(" %d", i+1)
			}
			if slices.ContainsFunc(got, func(way string) bool { return !slices.Contains(d.Ways, way) }) {
				wrong++
			}
		}
		assert.GreaterOrEqual(t, right, c.right, "%s: right", c.file)
		assert.LessOrEqual(t, wrong, c.wrong, "%s: credited with a way that they do not follow", c.file)
		t.Logf("%s: %d of %d right, %d wrongly credited. Wrong are%s", c.file, right, len(all), wrong,
			missed)
	}
}

// A description says how a task was done, with the names of the ways that it says were followed.
type description struct {
	Text string
	Ways []string
}

// found returns the names of the ways that were extracted, in order.
func (d description) found(extracted []string) (got []string) {
	for way, name := range ways {
		if slices.Contains(extracted, name) {
			got = append(got, way)
		}
	}
	slices.Sort(got)
	return got
}
