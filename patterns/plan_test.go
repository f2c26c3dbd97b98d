package patterns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
)

func TestPlan(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for i, description := range []string{
		"Add OAuth to the login page", "Rename a column", "Add a logout button to the login page",
		"Add OAuth to the login page again",
		"Fix the login page", "Login page for admins", "Add a page", "Add OAuth tests",
	} {
		o := good()
		o.ID, o.Task, o.Description, o.Strategy = fmt.Sprint(i), fmt.Sprint("task-", i), description,
			"by-feature"
		if i == 0 {
			o.Success, o.Strategy = false, "by-file"
		}
		w.record(o)
	}
	plan, err := w.Plan(ctx, "Add OAuth to the login page")
	require.NoError(t, err)
	var similar []string
	for _, p := range plan.Similar {
		similar = append(similar, fmt.Sprintf("%s %.2f", p.Task, p.Similarity))
	}
	assert.Equal(t, []string{"task-3 1.00", "task-0 1.00", "task-6 0.44", "task-7 0.36",
		"task-2 0.33"}, similar, "five by default, the latest first of equals")
	assert.Equal(t, `## Similar Past Tasks

How tasks like this one went:

- Add OAuth to the login page again
  - Strategy: by-feature
  - Result: it worked, fast (1m0s), no errors, no retries
- Add OAuth to the login page
  - Strategy: by-file
  - Result: it failed, fast (1m0s), no errors, no retries
- Add a page
  - Strategy: by-feature
  - Result: it worked, fast (1m0s), no errors, no retries
- Add OAuth tests
  - Strategy: by-feature
  - Result: it worked, fast (1m0s), no errors, no retries
- Add a logout button to the login page
  - Strategy: by-feature
  - Result: it worked, fast (1m0s), no errors, no retries

## Proven Patterns

These patterns consistently work well:

- by-feature [PROVEN - 100% helpful from 7 observations]
`, textOf(&plan))

	empty, err := newWorld(t, patterns.Config{}).Plan(ctx, "anything")
	require.NoError(t, err)
	assert.Empty(t, textOf(&empty))
}

func TestPlanIsConfigurable(t *testing.T) {
	asked := 0
	host := func(_ context.Context, task string, limit int) ([]patterns.Precedent, error) {
		asked = limit
		return []patterns.Precedent{{Task: task, Result: "fine"}, {Task: "b"}, {Task: "c"}, {}, {},
			{Task: "f"}}, nil
	}
	spec := patterns.SpecConfig()
	spec.Similar = host
	w := newWorld(t, spec)
	for i := range 3 {
		w.feedPattern(patterns.PatternID(fmt.Sprint("proven-", i)), patterns.Helpful, 5, 0)
		w.feedPattern(patterns.PatternID(fmt.Sprint("inverted-", i)), patterns.Harmful, 3, 0)
	}
	w.feedPattern("deprecated", patterns.Helpful, 2, 0)
	w.feedPattern("deprecated", patterns.Harmful, 1, 0)
	plan, err := w.Plan(ctx, "a\n# b")
	require.NoError(t, err)
	assert.Equal(t, 5, asked)
	assert.Len(t, plan.Similar, 5)
	plan.Size.Items = 2
	assert.Len(t, plan.Deprecated, 1)
	text := textOf(&plan)
	assert.Contains(t, text, "- a # b\n  - Result: fine\n")
	assert.Contains(t, text, "proven-1")
	assert.NotContains(t, text, "proven-2")
	assert.Contains(t, text, "AVOID: inverted-0.")
	assert.NotContains(t, text, "inverted-2")

	cfg := w.Config()
	roomy, err := patterns.New(ctx, cfg)
	require.NoError(t, err)
	plan, err = roomy.Plan(ctx, "a")
	require.NoError(t, err)
	assert.Contains(t, textOf(&plan), "## Deprecated Patterns")
	quiet := newWorld(t, patterns.Config{})
	quiet.feedPattern("deprecated", patterns.Helpful, 2, 0)
	quiet.feedPattern("deprecated", patterns.Harmful, 1, 0)
	require.Equal(t, patterns.Deprecated, quiet.standing("deprecated").State)
	plan, err = quiet.Plan(ctx, "a")
	require.NoError(t, err)
	assert.NotContains(t, textOf(&plan), "deprecated")
}

func TestPlanSurvivesItsHost(t *testing.T) {
	for what, similar := range map[string]func(context.Context, string, int) ([]patterns.Precedent,
		error){
		"the index is gone": func(context.Context, string, int) ([]patterns.Precedent, error) {
			return nil, errors.New("the index is gone")
		},
		"Config.Similar panicked: oh": func(context.Context, string, int) ([]patterns.Precedent,
			error) {
			panic("oh")
		},
	} {
		w := newWorld(t, patterns.Config{Similar: similar})
		w.feedPattern("p", patterns.Helpful, 5, 0)
		plan, err := w.Plan(ctx, "task")
		assert.ErrorContains(t, err, what)
		assert.Len(t, plan.Patterns, 1, "the rest of the plan is there")
	}
}

func TestStandingIsExplained(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.feedPattern("p", patterns.Helpful, 4, 30)
	w.feedPattern("p", patterns.Harmful, 1, 0)
	why := w.standing("p")
	assert.Equal(t, `"p" is established, with a multiplier of 1
4 helpful and 1 harmful observations, with masses of 3.175 and 1.000 now
last validated 2025-12-02 12:00:00 UTC, last feedback 2026-01-01 12:00:00 UTC
established needs observations: at least 3, has 5: met
deprecated needs a harmful share: more than 30%, has 23.95%: missed
proven needs helpful observations: at least 5, has 4: missed
proven needs a harmful share: less than 15%, has 23.95%: missed
proven needs days since it last helped: at most 90.0, has 30.0: met
inverted needs observations: at least 3, has 5: met
inverted needs a failure rate: at least 60%, has 20%: missed
planned needs days since its last evidence: at most 90.0, has 0.0: met
`, why.String())

	w.feedPattern("bad", patterns.Harmful, 3, 0)
	why = w.standing("bad")
	assert.Contains(t, why.String(), "\"bad\" is inverted, with a multiplier of 0\n")
	assert.Contains(t, why.String(), "inverted needs a failure rate: at least 60%, has 100%: met\n")
	assert.Contains(t, why.String(),
		"rehabilitated needs successes since the inversion: at least 3, has 0: missed\n")
	assert.NotContains(t, why.String(), "days since it last helped", "it never did")
	assert.Equal(t, why.Conditions, w.standing("anti-bad").Conditions)
	listed, err := w.Standings(ctx, patterns.PatternQuery{Anti: true})
	require.NoError(t, err)
	require.Len(t, listed, 1)
	assert.Equal(t, w.standing("anti-bad"), listed[0], "in a list it stands as it does alone")
	for id, twin := range map[string]string{"anti-a": "b", "b": "anti-a"} {
		body := fmt.Sprintf(`{"id": %q, "anti": true, "content": "x", "state": "inverted", "twin": %q, "created_at": "2026-01-01T12:00:00Z"}`, id, twin)
		_, err := w.store.Commit(ctx, store.Batch{Records: []store.Record{
			{Ref: store.Ref{Kind: "patterns.pattern", ID: id}, At: start, Body: store.Raw([]byte(body))},
		}})
		require.NoError(t, err)
	}
	assert.Empty(t, w.standing("b").Conditions, "whatever the store says, it comes to an end")
	w.record(bad("anti-a"))
	assert.Zero(t, w.standing("b").Counts)

	_, err = w.Promote(ctx, "p", by)
	require.NoError(t, err)
	why = w.standing("p")
	assert.Contains(t, why.String(), "by hand: ada wanted it proven, \"seen it work\"\n")

	literal := newWorld(t, patterns.SpecConfig())
	literal.feedPattern("p", patterns.Helpful, 3, 1)
	why = literal.standing("p")
	assert.Equal(t, patterns.Candidate, why.State)
	assert.Contains(t, why.String(),
		"established needs a faded mass: at least 2.990, has 2.977: missed\n")
}

func TestCriterionIsExplained(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	c := w.criterion("type_safe")
	assert.Equal(t, 0.5, c.Effective)
	assert.Equal(t, "the prior's: there are fewer than 3 observations", c.Reason)
	for range 12 {
		w.feed(patterns.Rating{Criterion: "type_safe", Class: patterns.Helpful}, 0)
	}
	for range 3 {
		w.feed(patterns.Rating{Criterion: "type_safe", Class: patterns.Harmful}, 0)
	}
	c = w.criterion("type_safe")
	assert.InDelta(t, 0.765, c.Effective, 0.001)
	assert.Equal(t, "(1+helpful)/(2+helpful+harmful), and never below the floor of 0.1", c.Reason)
	assert.Equal(t, `[deprecated needs observations: at least 3, has 15: met deprecated needs a harmful share: more than 30%, has 20%: missed]`,
		fmt.Sprint(c.Conditions))
	literal := newWorld(t, patterns.SpecConfig())
	literal.feed(patterns.Rating{Criterion: "c", Class: patterns.Helpful}, 0)
	assert.Equal(t, 1., literal.criterion("c").Effective)
	assert.Equal(t, "helpful/(helpful+harmful), and never below the floor of 0.1",
		literal.criterion("c").Reason)
}

// TestTheLoopCloses is the test that counts: outcomes go in, and the next task is planned in
// another way; and still so after the store was dumped and loaded into a new one.
func TestTheLoopCloses(t *testing.T) {
	both(t, func(t *testing.T, cfg patterns.Config) {
		const task = "Add OAuth to the settings page"
		const byType, byFeature = patterns.PatternID("pattern-split-by-file-type"),
			patterns.PatternID("pattern-split-by-feature")
		contenders := map[patterns.PatternID]float64{byType: 0.8, byFeature: 0.6}
		w := newWorld(t, cfg)
		recommended := func(w *world) patterns.PatternID {
			ranked, _, err := w.Rank(ctx, contenders)
			require.NoError(t, err)
			return ranked[0].Pattern.ID
		}
		prompt := func(w *world) string {
			plan, err := w.Plan(ctx, task)
			require.NoError(t, err)
			return textOf(&plan)
		}
		attempt := func(i int, how string, works bool) {
			followed, err := w.Extract(ctx, how)
			require.NoError(t, err)
			require.Len(t, followed, 1)
			o := patterns.Outcome{
				ID: fmt.Sprint("outcome-", i), Task: fmt.Sprint("task-", i),
				Description: fmt.Sprint("Add OAuth to page ", i),
				Strategy:    followed[0], Criteria: []string{"no_bugs"}, Duration: 3 * time.Minute,
				Success: works,
			}
			if !works {
				for range 4 {
					_, err := w.RecordError(ctx, patterns.TaskError{Task: o.Task,
						Err: context.DeadlineExceeded})
					require.NoError(t, err)
				}
				o.Duration, o.Retries, o.FailureMode = time.Hour, 2, "conflicts"
			}
			w.clock.Advance(time.Hour)
			w.record(o)
		}
		assert.Equal(t, byType, recommended(w))
		assert.Empty(t, prompt(w))
		for i := range 3 {
			attempt(i, "We split by file type", false)
		}
		for i := range 6 {
			attempt(10+i, "Splitting by feature", true)
		}
		check := func(w *world) {
			assert.Equal(t, byFeature, recommended(w), "another strategy is recommended")
			text := prompt(w)
			assert.Contains(t, text,
				"- AVOID: Split by file type. Failed 3/3 times (100% failure rate)\n")
			assert.Contains(t, text,
				"- Add OAuth to page 15\n  - Strategy: pattern-split-by-feature\n  - Result: it worked, "+
					"fast (3m0s), no errors, no retries")
			_, warnings, err := w.Rank(ctx, contenders)
			require.NoError(t, err)
			require.Len(t, warnings, 1)
			assert.Equal(t, patterns.Inverted, warnings[0].State)
			c := w.criterion("no_bugs")
			assert.EqualValues(t, 6, c.HelpfulCount)
			assert.EqualValues(t, 3, c.HarmfulCount)
		}
		check(w)

		var dumped bytes.Buffer
		require.NoError(t, w.store.(*memstore.Store).Dump(ctx, &dumped))
		text := dumped.String()
		cut := newStore(t, w.clock.Now)
		require.Error(t, cut.Load(ctx, strings.NewReader(
			text[:strings.LastIndex(text[:len(text)-1], "\n")+1])))
		untouched := newWorld(t, patterns.Config{Store: cut, Now: w.clock.Now})
		assert.Empty(t, prompt(untouched), "a dump that was cut off is refused before anything changes")
		fresh := cfg
		fresh.Now, fresh.Store = w.clock.Now, newStore(t, w.clock.Now)
		require.NoError(t, fresh.Store.(*memstore.Store).Load(ctx, &dumped))
		loaded := newWorld(t, fresh)
		check(loaded)
		assert.Equal(t, prompt(w), prompt(loaded))
		stats, err := loaded.Errors(ctx, patterns.HistoryQuery{About: "task-0"})
		require.NoError(t, err)
		assert.Len(t, stats.Errors, 4)
		for _, id := range []patterns.PatternID{byType, byFeature} {
			assert.Equal(t, w.transitions(id), loaded.transitions(id))
			assert.Equal(t, w.standing(id), loaded.standing(id))
		}
		entry, err := loaded.entry("outcome-0")
		require.NoError(t, err)
		assert.True(t, loaded.record(entry.Outcome).Duplicate,
			"what was recorded before counts no more")
	})
}

// A pattern without evidence for its half-life is in no plan, and its standing has the reason.
func TestWhyAPatternIsInNoPlan(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	w.feedPattern("old", patterns.Helpful, 3, 0)
	planned := func() int {
		plan, err := w.Plan(ctx, "anything")
		require.NoError(t, err)
		return len(plan.Patterns)
	}
	reason := func() string {
		all := w.standing("old").Conditions
		return all[len(all)-1].String()
	}
	assert.Equal(t, 1, planned())
	assert.Equal(t, "planned needs days since its last evidence: at most 90.0, has 0.0: met",
		reason())
	w.clock.Advance(91 * day)
	assert.Zero(t, planned())
	assert.Equal(t, patterns.Established, w.standing("old").State)
	assert.Equal(t, "planned needs days since its last evidence: at most 90.0, has 91.0: missed",
		reason())
}

// A task is like another one once, as it went last.
func TestATaskIsSimilarOnce(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for i, success := range []bool{false, true} {
		w.clock.Advance(time.Minute)
		_, err := w.Record(ctx, patterns.Outcome{ID: fmt.Sprint("o", i), Task: "t", Success: success,
			Description: "move the invoices to the archive"})
		require.NoError(t, err)
	}
	plan, err := w.Plan(ctx, "move invoices")
	require.NoError(t, err)
	require.Len(t, plan.Similar, 1)
	assert.Equal(t, patterns.Helpful, plan.Similar[0].Class)
}

// A section of errors is never longer than its size, headings included.
func TestTheSizeOfErrors(t *testing.T) {
	var report patterns.ErrorReport
	types := []string{"validation", "timeout", "conflict", "tool_failure", "unknown"}
	for i := range 40 {
		report.Errors = append(report.Errors, patterns.TaskError{ID: fmt.Sprint(i), At: start,
			Type: types[i%len(types)], Message: "m"})
	}
	for chars := 400; chars < 2400; chars += 7 {
		text, ids := report.Prompt(patterns.SectionSize{Items: 40, Chars: chars}, false)
		assert.LessOrEqual(t, utf8.RuneCountInString(text), chars)
		if chars > 1000 {
			assert.NotEmpty(t, ids)
		}
	}
}
