package patterns_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/patterns"
)

// extracted returns the names of the approaches that a text speaks of.
func (w *world) extracted(text string) (names []string) {
	found, err := w.Extract(ctx, text)
	if err != nil {
		panic(err) // only a host's function fails
	}
	for _, id := range found {
		for _, a := range w.Config().Approaches {
			if patterns.IDOf(a.Name) == id {
				names = append(names, a.Name)
			}
		}
	}
	return names
}

func TestExtraction(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for text, want := range map[string]string{
		"We'll split by file type, one file per subtask": "Split by file type; One file per subtask",
		// in the order of the rules
		"One file per task, after splitting by file type": "Split by file type; One file per subtask",
		"Split by file type and handle shared types first": "Split by file type; Handle shared " +
			"types first",
		"SPLIT BY COMPONENT":                     "Split by component",
		"split by layer (UI, logic, data)":       "Split by layer (UI/logic/data)",
		"Splitting by features":                  "Split by feature",
		"API routes separate":                    "Separate API routes",
		"api separate":                           "Separate API routes",
		"keep the API route separately":          "Separate API routes",
		"tests with code":                        "Tests alongside implementation",
		"Tests alongside implementation code":    "Tests alongside implementation",
		"test in separate task":                  "Tests in separate subtask",
		"tests separate subtasks":                "Tests in separate subtask",
		"tests in a separate subtask":            "Tests in separate subtask",
		"tests alongside the implementation":     "Tests alongside implementation",
		"Parallelize everything":                 "Maximize parallelization",
		"run it parallel all":                    "Maximize parallelization",
		"parallel allocation":                    "",
		"Sequential execution":                   "Sequential execution order",
		"sequential ordering":                    "Sequential execution order",
		"dependency chain":                       "Respect dependency chain",
		"dependency ordering":                    "Respect dependency chain",
		"split\nby   file\u00a0type":             "Split by file type",
		"one-file-per-subtask":                   "One file per subtask",
		"split by file type; split by file type": "Split by file type",
		"split by, file type":                    "",
		"resplit by layered":                     "",
		"":                                       "",

		"Don't split by file type":                                     "",
		"never split by layer or split by component":                   "",
		"instead of splitting by layer we split by feature, as agreed": "Split by feature",
		"split by feature instead of splitting by layer":               "Split by feature",
		"split by feature rather than split by layer":                  "Split by feature",
		"We can’t parallelize everything":                              "",
		"not splitting by layer but splitting by feature":              "Split by feature",
		"not only split by layer": "Split by layer " +
			"(UI/logic/data)",
		"AVOID: Split by file type. Failed 5/7 times (71% failure rate)": "",
		"No tests with code. Dependency order":                           "Respect dependency chain",
		"without one file per subtask":                                   "",

		"Split the work by feature.":          "Split by feature",
		"Each component gets its own subtask": "Split by component",
		"tests go in a separate subtask":      "Tests in separate subtask",
		"Tests get a subtask of their own":    "Tests in separate subtask",
		"Break the job down by layer, one file per agent": "Split by layer " +
			"(UI/logic/data); One file per subtask",
		"divided by feature, not by layer":                             "Split by feature",
		"Split the work not by layer but by feature":                   "Split by feature",
		"one subtask per file type":                                    "Split by file type",
		"Types first, then everything else":                            "Handle shared types first",
		"No merge conflicts: one file per subtask":                     "One file per subtask",
		"Don't forget to split by feature":                             "Split by feature",
		"Run the subtasks one after another":                           "Sequential execution order",
		"Split by layer was a mistake":                                 "",
		"Splitting the work by layer turned out to be a mistake":       "",
		"It was a mistake to split by layer; we split by feature now.": "Split by feature",
		"We tried splitting by layer and it failed":                    "",
		"We split by layer last month, but that didn't work":           "",
		"We split by layer. It was a bad idea.":                        "",
		"It makes little sense to split by layer":                      "",
		"Splitting by layer makes no sense here":                       "",
		"Should we split by layer?":                                    "",
		"Shall we test first? Split by feature.":                       "Split by feature",
		"Split by feature so that nobody waits":                        "Split by feature",
		"Split by feature, and it worked":                              "Split by feature",
		"We split by feature because splitting by layer failed":        "Split by feature",
		"This is too small to split by feature":                        "",
		"If we split by layer we wait for each other":                  "",
		"- don't parallelize everything\n\n- split by feature":         "Split by feature",
		"\"split\" by **feature**":                                     "Split by feature",
	} {
		assert.Equal(t, want, strings.Join(w.extracted(text), "; "), "%q", text)
	}
}

func TestNamesAreFoundByTheirRules(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	rules := patterns.Approaches()
	assert.Len(t, rules, 12)
	seen := make(map[patterns.PatternID]bool)
	for _, rule := range rules {
		assert.Equal(t, []string{rule.Name}, w.extracted(rule.Name))
		for _, phrase := range rule.Phrases {
			plain := strings.NewReplacer("*", "", "...", "").Replace(phrase)
			var words []string
			for _, word := range strings.Fields(plain) {
				words = append(words, strings.Split(word, "|")[0])
			}
			assert.Contains(t, w.extracted(strings.Join(words, " ")), rule.Name, phrase)
		}
		seen[patterns.IDOf(rule.Name)] = true
	}
	assert.Len(t, seen, 12)
	assert.Equal(t, patterns.PatternID("pattern-split-by-layer-ui-logic-data"),
		patterns.IDOf("Split by layer (UI/logic/data)"))
}

func TestHostsExtendTheRules(t *testing.T) {
	w := newWorld(t, patterns.Config{Approaches: append(patterns.Approaches(),
		patterns.Approach{Name: "Feature flags", Phrases: []string{"behind flag|toggle*"}})})
	assert.Equal(t, []string{"Split by layer (UI/logic/data)", "Feature flags"},
		w.extracted("Behind toggles; split by layer"))
	found, err := w.Extract(ctx, "behind a flag")
	require.NoError(t, err)
	require.Equal(t, []patterns.PatternID{"pattern-feature-flags"}, found)
	again, err := w.Extract(ctx, "all behind a toggle")
	require.NoError(t, err)
	assert.Equal(t, found, again, "it is the same pattern, whichever text it is found in")
	w.record(good(found...))
	assert.Equal(t, "Feature flags", w.standing(found[0]).Pattern.Content,
		"an outcome that names it gives it the approach's name")
}

// The host's function gets the finds of the phrases, and its answer is the answer.
func TestAModelHasTheLastWord(t *testing.T) {
	var answer []patterns.PatternID
	var gone error
	w := newWorld(t, patterns.Config{Extract: func(_ context.Context, text string,
		found []patterns.PatternID) ([]patterns.PatternID, error) {
		assert.Equal(t, "split by feature", text)
		assert.Equal(t, []patterns.PatternID{"pattern-split-by-feature"}, found)
		return answer, gone
	}})
	answer = []patterns.PatternID{"pattern-tracer-bullet"}
	found, err := w.Extract(ctx, "split by feature")
	require.NoError(t, err)
	assert.Equal(t, answer, found)
	for _, wrong := range []patterns.PatternID{"", "a\x00", "anti-", "anti-anti-x"} {
		answer = []patterns.PatternID{wrong}
		_, err = w.Extract(ctx, "split by feature")
		assertInputError(t, err, "Patterns[0]")
	}
	broken := newWorld(t, patterns.Config{Extract: func(context.Context, string,
		[]patterns.PatternID) ([]patterns.PatternID, error) {
		panic("no")
	}})
	_, err = broken.Extract(ctx, "split by feature")
	require.Error(t, err, "a panic is an error")
	gone = errors.New("the model is gone")
	found, err = w.Extract(ctx, "split by feature")
	require.ErrorIs(t, err, gone)
	assert.Empty(t, found, "an error is not taken for an answer")
}

func FuzzExtractNames(f *testing.F) {
	f.Add("We'll split by file type, one file per subtask")
	f.Add("don't parallelize everything; api routes separate \xff\x00")
	w := newWorld(f, patterns.Config{})
	var names []string
	for _, rule := range patterns.Approaches() {
		names = append(names, rule.Name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := w.extracted(text)
		last := -1
		for _, name := range got {
			place := slices.Index(names, name)
			if place <= last {
				t.Fatalf("%q gives %q: unknown, twice, or out of order", text, got)
			}
			last = place
		}
		if upper := w.extracted(strings.ToUpper(text)); isASCII(text) && !slices.Equal(got, upper) {
			t.Fatalf("%q gives %q, and in capitals %q", text, got, upper)
		}
	})
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > 127 })
}
