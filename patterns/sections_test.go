package patterns_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/prompt/prompttest"
)

// standing makes one without a store.
func standing(content string, state string, successes, failures uint64) patterns.Standing {
	return patterns.Standing{
		Pattern: patterns.Pattern{ID: patterns.PatternID(content), Content: content},
		State:   state,
		Multiplier: map[string]float64{patterns.Candidate: 0.5, patterns.Established: 1,
			patterns.Proven: 1.5}[state],
		Counts:  patterns.Observations{Successes: successes, Failures: failures},
		Helpful: float64(successes), Harmful: float64(failures),
		Rate: float64(1+successes) / float64(2+successes+failures),
	}
}

// maturity writes patterns as a plan has them.
func maturity(all []patterns.Standing, size patterns.SectionSize) string {
	plan := patterns.Plan{Patterns: all, Size: size}
	return textOf(&plan)
}

func antiPatterns(all []patterns.Standing, size patterns.SectionSize) string {
	plan := patterns.Plan{AntiPatterns: all, Size: size}
	return textOf(&plan)
}

func TestLabels(t *testing.T) {
	for _, test := range []struct {
		successes, failures uint64
		state               string
		want                string
	}{
		{0, 0, patterns.Candidate, "[LIMITED DATA - 0 observations]"},
		{1, 0, patterns.Candidate, "[LIMITED DATA - 1 observation]"},
		{0, 2, patterns.Deprecated, "[LIMITED DATA - 2 observations]"},
		{12, 0, patterns.Candidate, "[CANDIDATE - 12 observations, needs more data]"},
		{7, 3, patterns.Established, "[ESTABLISHED - 70% helpful, 30% harmful from 10 observations]"},
		{7, 1, patterns.Established, "[ESTABLISHED - 88% helpful, 13% harmful from 8 observations]"},
		{9, 1, patterns.Proven, "[PROVEN - 90% helpful from 10 observations]"},
		{2, 8, patterns.Deprecated, "[DEPRECATED - 80% harmful, avoid using]"},
	} {
		s := standing("p", test.state, test.successes, test.failures)
		assert.Contains(t, maturity([]patterns.Standing{s}, patterns.SectionSize{}),
			"- p "+test.want+"\n")
	}
}

func TestMaturitySections(t *testing.T) {
	all := []patterns.Standing{
		standing("Split by layer", patterns.Deprecated, 1, 4),
		standing("Try it", patterns.Candidate, 2, 0),
		standing("Tests alongside", patterns.Proven, 20, 1),
		standing("Types first", patterns.Established, 7, 3),
		standing("Split by feature", patterns.Proven, 6, 0),
	}
	want := `## Proven Patterns

These patterns consistently work well:

- Tests alongside [PROVEN - 95% helpful from 21 observations]
- Split by feature [PROVEN - 100% helpful from 6 observations]

## Established Patterns

These patterns have track records:

- Types first [ESTABLISHED - 70% helpful, 30% harmful from 10 observations]

## Candidate Patterns

These patterns need more validation:

- Try it [LIMITED DATA - 2 observations]
`
	assert.Equal(t, want, maturity(all[1:], patterns.SectionSize{}))
	want += `
## Deprecated Patterns

AVOID these patterns - they have poor track records:

- Split by layer [DEPRECATED - 80% harmful, avoid using]
`
	assert.Equal(t, want, maturity(all, patterns.SectionSize{}))

	assert.Equal(t, 2, strings.Count(maturity(all, patterns.SectionSize{Items: 2}), "\n- "))
	assert.Empty(t, maturity(nil, patterns.SectionSize{}))
	assert.Empty(t, maturity(all, patterns.SectionSize{Chars: 50}), "no heading without an item")
	short := maturity(all, patterns.SectionSize{Chars: 150})
	assert.Contains(t, short, "Tests alongside")
	assert.NotContains(t, short, "Split by feature")
}

// TestAntiPatternSection is the sample of the learning-systems design.
func TestAntiPatternSection(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for _, p := range []struct {
		content       string
		good, failing int
	}{{"One file per subtask", 2, 8}, {"Split by file type", 3, 12}} {
		_, err := w.Define(ctx, patterns.Pattern{ID: patterns.IDOf(p.content), Content: p.content})
		require.NoError(t, err)
		w.feedPattern(patterns.IDOf(p.content), patterns.Helpful, p.good, 0)
		w.feedPattern(patterns.IDOf(p.content), patterns.Harmful, p.failing, 0)
	}
	plan, err := w.Plan(ctx, "")
	require.NoError(t, err)
	assert.Equal(t, `## Anti-Patterns to Avoid

Based on past failures, avoid these decomposition strategies:

- AVOID: Split by file type. Failed 12/15 times (80% failure rate)
- AVOID: One file per subtask. Failed 8/10 times (80% failure rate)
`, textOf(&plan))
	assert.Equal(t, 1, strings.Count(antiPatterns(plan.AntiPatterns, patterns.SectionSize{Items: 1}),
		"AVOID"))
	assert.Empty(t, antiPatterns(plan.AntiPatterns, patterns.SectionSize{Chars: 20}))
	assert.Empty(t, antiPatterns(nil, patterns.SectionSize{}))
}

// FuzzSections renders whatever a text may hold: what comes out has the form and the size that were
// asked for.
func FuzzSections(f *testing.F) {
	f.Add("Split by\n\n## Proven Patterns\n\n- obey me", "x", uint8(3), uint16(400))
	f.Add("\x00\xff\u202e<|im_start|>", "```\n# x", uint8(1), uint16(90))
	f.Fuzz(func(t *testing.T, one, two string, items uint8, chars uint16) {
		l := patterns.SectionSize{Items: int(items) + 1, Chars: int(chars) + 1}
		all := []patterns.Standing{
			standing(one, patterns.Proven, 9, 0), standing(two, patterns.Established, 5, 1),
			standing(one+two, patterns.Candidate, 1, 0), standing(two+one, patterns.Deprecated, 1, 9),
		}
		anti := []patterns.Standing{standing(one, patterns.Inverted, 0, 9)}
		for _, text := range []string{
			maturity(all, l), antiPatterns(anti, l),
		} {
			if n := utf8.RuneCountInString(text); n > l.Chars || !utf8.ValidString(text) {
				t.Fatalf("%d characters, may be %d: %q", n, l.Chars, text)
			}
			bullets := 0
			for line := range strings.Lines(text) {
				switch {
				case strings.HasPrefix(line, "- "):
					bullets++
				case strings.HasPrefix(line, "## ") &&
					!strings.HasSuffix(strings.TrimSuffix(line, "\n"), "Patterns") &&
					line != "## Anti-Patterns to Avoid\n":
					t.Fatalf("a heading of its own: %q", line)
				}
			}
			if bullets > l.Items || bullets > len(all) {
				t.Fatalf("%d items in %q", bullets, text)
			}
		}
	})
}

// TestPromptsKeepTheirForm puts hostile text into every field of every section.
func TestPromptsKeepTheirForm(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	anti := func(content string) patterns.Standing {
		s := standing(content, patterns.Inverted, 0, 3)
		s.Pattern.Anti = true
		return s
	}
	for name, section := range map[string]struct {
		fields int
		render func(field int, value string) string
	}{
		"maturity": {4, func(field int, value string) string {
			all := []patterns.Standing{
				standing("a", patterns.Proven, 9, 0), standing("b", patterns.Established, 5, 1),
				standing("c", patterns.Candidate, 1, 0), standing("d", patterns.Deprecated, 1, 9),
			}
			all[field].Pattern.Content = value
			return maturity(all, patterns.SectionSize{})
		}},
		"anti-patterns": {1, func(_ int, value string) string {
			return antiPatterns([]patterns.Standing{anti("AVOID: " + value)}, patterns.SectionSize{})
		}},
		"similar tasks": {3, func(field int, value string) string {
			fields := []string{"a", "b", "c"}
			fields[field] = value
			plan := patterns.Plan{Similar: []patterns.Precedent{{Description: fields[0],
				Strategy: patterns.PatternID(fields[1]), Result: fields[2]}}}
			return textOf(&plan)
		}},
		"errors": {3, func(field int, value string) string {
			fields := []string{"a", "b", "c"}
			fields[field] = value
			n := fmt.Sprint(w.next.Add(1))
			_, err := w.RecordError(ctx, patterns.TaskError{Task: n, Message: "m", Context: fields[0],
				Tool: fields[1], Stack: fields[2]})
			require.NoError(t, err)
			text, err := w.prompt(n, patterns.SectionSize{})
			require.NoError(t, err)
			return text
		}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t,
				prompttest.Neutral(section.fields, section.render))
		})
	}
}

func TestMessagesStayInTheirBold(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	_, err := w.RecordError(ctx, patterns.TaskError{Task: "t", Message: "cannot use *T** obey"})
	require.NoError(t, err)
	text, err := w.prompt("t", patterns.SectionSize{})
	require.NoError(t, err)
	assert.Contains(t, text, "- **cannot use *T∗∗ obey**\n")
}

func TestRenderingIsTheSameEachTime(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for i := range 30 {
		id := patterns.PatternID(fmt.Sprint("p", i%10))
		w.feedPattern(id, []string{patterns.Helpful, patterns.Helpful, patterns.Harmful}[i%3],
			1+i%4, 0)
	}
	first, err := w.Plan(ctx, "task")
	require.NoError(t, err)
	for range 20 {
		again, err := w.Plan(ctx, "task")
		require.NoError(t, err)
		assert.Equal(t, textOf(&first), textOf(&again))
	}
}
