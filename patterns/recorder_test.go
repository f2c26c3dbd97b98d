package patterns_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/patterns"
)

func TestRecordCreditsWhatIsNamed(t *testing.T) {
	both(t, func(t *testing.T, cfg patterns.Config) {
		w := newWorld(t, cfg)
		_, err := w.Define(ctx, patterns.Pattern{ID: "shown", Content: "merely in the prompt"})
		require.NoError(t, err)
		o := good("a", "b", "a")
		o.Strategy, o.Task = "s", "the task"
		w.record(o)
		for _, id := range []patterns.PatternID{"a", "b", "s"} {
			s := w.standing(id)
			assert.Equal(t, patterns.Observations{Successes: 1}, s.Counts)
			assert.Equal(t, []string{"the task"}, s.Pattern.Examples)
			assert.Equal(t, string(id), s.Pattern.Content, "what is not known is added")
		}
		assert.Zero(t, w.standing("shown").Counts)

		w.record(bad("a"))
		assert.Equal(t, patterns.Observations{Successes: 1, Failures: 1}, w.standing("a").Counts)
		neutral := good("a")
		neutral.Duration, neutral.Errors = time.Hour, 3
		require.Equal(t, patterns.Neutral, w.record(neutral).Score.Class)
		want := patterns.Observations{Successes: 1, Failures: 1}
		if cfg.Literal() {
			want.Failures++ // the design takes whatever is not helpful for a failure
		}
		assert.Equal(t, want, w.standing("a").Counts)
	})
}

// A failure counts against what was followed, though the document's score calls it neutral.
func TestAPlainFailureLeadsToAWarning(t *testing.T) {
	both(t, func(t *testing.T, cfg patterns.Config) {
		w := newWorld(t, cfg)
		for i := range 7 {
			o := patterns.Outcome{Patterns: []patterns.PatternID{"p"}}
			if i > 3 {
				o = bad("p")
			}
			w.record(o)
		}
		assert.Equal(t, patterns.Observations{Failures: 7}, w.standing("p").Counts)
		plan, err := w.Plan(ctx, "")
		require.NoError(t, err)
		assert.Contains(t, textOf(&plan), "Failed 7/7 times (100% failure rate)")
	})
}

func TestErrorsAreCountedForTheScore(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for range 3 {
		id, err := w.RecordError(ctx, patterns.TaskError{Task: "t", Message: "no"})
		require.NoError(t, err)
		require.NoError(t, w.ResolveError(ctx, id))
	}
	o := patterns.Outcome{ID: "1", Task: "t", Duration: time.Minute, Success: true}
	assert.Equal(t, 84, w.record(o).Score.Value, "resolved errors were errors")
	o.ID, o.Errors = "2", 1
	assert.Equal(t, 92, w.record(o).Score.Value, "a count that is given stands")
	entry, err := w.entry("1")
	require.NoError(t, err)
	assert.Equal(t, 3, entry.Outcome.Errors)
}

func TestAnOutcomeCountsOnce(t *testing.T) {
	both(t, func(t *testing.T, cfg patterns.Config) {
		w := newWorld(t, cfg)
		o := good("p")
		o.ID, o.Task, o.Criteria = "1", "t", []string{"c"}
		first := w.record(o)
		assert.False(t, first.Duplicate)
		again := bad("p")
		again.ID, again.Task = "1", "t"
		second := w.record(again)
		assert.True(t, second.Duplicate)
		assert.Equal(t, first.Score, second.Score, "the first delivery stands")
		assert.Equal(t, patterns.Observations{Successes: 1}, w.standing("p").Counts)
		assert.EqualValues(t, 1, w.criterion("c").HelpfulCount)
		assert.Len(t, w.standing("p").Pattern.Examples, 1)

		f := patterns.Rating{ID: "f", Pattern: "p", Class: patterns.Helpful, Strength: 1}
		for i := range 2 {
			fed, err := w.Rate(ctx, f)
			require.NoError(t, err)
			assert.Equal(t, i == 1, fed.Duplicate)
		}
		assert.EqualValues(t, 2, w.standing("p").Counts.Successes)
	})
}

func TestBadOutcomesChangeNothing(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for field, change := range map[string]func(*patterns.Outcome){
		"ID":          func(o *patterns.Outcome) { o.ID = "" },
		"Task":        func(o *patterns.Outcome) { o.Task = "" },
		"Duration":    func(o *patterns.Outcome) { o.Duration = -1 },
		"Errors":      func(o *patterns.Outcome) { o.Errors = -1 },
		"Retries":     func(o *patterns.Outcome) { o.Retries = -1 },
		"Strategy":    func(o *patterns.Outcome) { o.Strategy = "\xff" },
		"Patterns[1]": func(o *patterns.Outcome) { o.Patterns = []patterns.PatternID{"p", "\xff"} },
		"Patterns[2]": func(o *patterns.Outcome) { o.Patterns = []patterns.PatternID{"p", "q", ""} },
		"Files":       func(o *patterns.Outcome) { o.Files = make([]string, 1001) },
		"Criteria":    func(o *patterns.Outcome) { o.Criteria = make([]string, 1001) },
		"Patterns":    func(o *patterns.Outcome) { o.Patterns = make([]patterns.PatternID, 1001) },
		"Criteria[0]": func(o *patterns.Outcome) { o.Criteria = []string{"a\x00"} },
		"Criteria[1]": func(o *patterns.Outcome) { o.Criteria = []string{"a", ""} },
		"Files[0]":    func(o *patterns.Outcome) { o.Files = []string{strings.Repeat("x", 4097)} },
		"FailureMode": func(o *patterns.Outcome) { o.FailureMode = "\x00" },
		"Source":      func(o *patterns.Outcome) { o.Source = strings.Repeat("x", 1025) },
		"At":          func(o *patterns.Outcome) { o.At = start.Add(10 * day) },
	} {
		o := good("p")
		o.ID, o.Task = "1", "t"
		change(&o)
		_, err := w.Record(ctx, o)
		assertInputError(t, err, field)
	}
	all, err := w.Standings(ctx, patterns.PatternQuery{})
	require.NoError(t, err)
	assert.Empty(t, all)

	for field, f := range map[string]patterns.Rating{
		"Criterion": {ID: "1", Class: patterns.Helpful, Strength: 1},
		"Class":     {ID: "1", Criterion: "c", Class: "great", Strength: 1},
		"Strength":  {ID: "1", Criterion: "c", Class: patterns.Helpful},
		"ID":        {Criterion: "c", Class: patterns.Helpful, Strength: 1},
		"At": {ID: "1", Criterion: "c", Class: patterns.Helpful, Strength: 1,
			At: start.Add(day)},
	} {
		_, err := w.Rate(ctx, f)
		assertInputError(t, err, field)
	}
	_, err = w.Rate(ctx, patterns.Rating{ID: "1", Criterion: "c", Pattern: "p",
		Class: patterns.Helpful, Strength: 1})
	assertInputError(t, err, "Criterion")
}

func TestLongTextsAreCut(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	long := string(bytes.Repeat([]byte("é"), 5000)) + "\x00\xff"
	w.record(patterns.Outcome{ID: "1", Description: long, FailureDetail: "a\x00b\xff"})
	e, err := w.entry("1")
	require.NoError(t, err)
	assert.Len(t, []rune(e.Outcome.Description), 2000)
	assert.Equal(t, "a\uFFFDb\uFFFD", e.Outcome.FailureDetail)
}

// TestConcurrentRecorders has many goroutines of two recorders record the same outcomes of one
// pattern.
func TestConcurrentRecorders(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	other, err := patterns.New(ctx, w.Config())
	require.NoError(t, err)
	const workers, outcomes = 8, 60
	inversions := make(chan patterns.Pattern, workers*outcomes)
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			r := []*patterns.Recorder{w.Recorder, other}[worker%2]
			for i := range outcomes {
				o := bad("p")
				if i%4 == 0 {
					o = good("p")
				}
				o.ID, o.Task = fmt.Sprint(i), fmt.Sprint("task-", i)
				recorded, err := r.Record(ctx, o)
				if !assert.NoError(t, err) {
					return
				}
				for _, one := range recorded.Inversions {
					inversions <- one
				}
			}
		})
	}
	wait.Wait()
	close(inversions)
	n := 0
	for range inversions {
		n++
	}
	assert.Equal(t, 1, n, "inverted once")
	s := w.standing("p")
	assert.Equal(t, patterns.Observations{Successes: outcomes / 4, Failures: outcomes * 3 / 4},
		s.Counts)
	assert.Equal(t, patterns.Inverted, s.State)
	anti := w.pattern("anti-p")
	assert.Equal(t, "AVOID: p. Failed 45/60 times (75% failure rate)", anti.Content,
		"it has the counts of today")
}

// TestOrderDoesNotMatter records the same outcomes in two orders: what is believed at the end is
// the same.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "n")
		outcomes := make([]patterns.Outcome, n)
		for i := range outcomes {
			outcomes[i] = rapid.SampledFrom([]patterns.Outcome{good("p"), bad("p")}).Draw(rt, "outcome")
			outcomes[i].ID, outcomes[i].Task = fmt.Sprint(i), "t"
			outcomes[i].Criteria = []string{"c"}
			outcomes[i].At = start.Add(-time.Duration(rapid.IntRange(0, 300).Draw(rt, "age")) * day)
		}
		read := func(order []patterns.Outcome) (patterns.Standing, patterns.Criterion) {
			w := newWorld(t, patterns.Config{})
			for _, o := range order {
				w.record(o)
			}
			return w.standing("p"), w.criterion("c")
		}
		one, oneCriterion := read(outcomes)
		two, twoCriterion := read(rapid.Permutation(outcomes).Draw(rt, "order"))
		assert.Equal(rt, patterns.StateByEvidence(one.Conditions),
			patterns.StateByEvidence(two.Conditions), "only an inversion depends on the order")
		assert.Equal(rt, one.Counts, two.Counts)
		assert.InDelta(rt, one.Helpful, two.Helpful, 1e-9)
		assert.InDelta(rt, one.Harmful, two.Harmful, 1e-9)
		assert.InDelta(rt, oneCriterion.Weight, twoCriterion.Weight, 1e-9)
	})
}

func TestDefine(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	p, err := w.Define(ctx, patterns.Pattern{ID: "p", Content: "Split by layer", Tags: []string{"go"},
		State: patterns.Proven})
	require.NoError(t, err)
	assert.Equal(t, patterns.Candidate, p.State, "a state is earned")
	again, err := w.Define(ctx, patterns.Pattern{ID: "p", Content: "else"})
	require.NoError(t, err)
	assert.Equal(t, p, again)
	for field, p := range map[string]patterns.Pattern{
		"ID":      {Content: "c"},
		"Content": {ID: "x"},
		"Tags":    {ID: "x", Content: "c", Tags: make([]string, 101)},
		"Tags[1]": {ID: "x", Content: "c", Tags: []string{"go", "\xff"}},
		"Tags[0]": {ID: "x", Content: "c", Tags: []string{strings.Repeat("x", 513)}},
		"Reason":  {ID: "x", Content: "c", Reason: "\x00"},
	} {
		_, err := w.Define(ctx, p)
		assertInputError(t, err, field)
	}
	_, err = w.Define(ctx, patterns.Pattern{ID: patterns.PatternID(strings.Repeat("x", 507)),
		Content: "c"})
	require.NoError(t, err)
	for _, id := range []patterns.PatternID{"anti-x", patterns.PatternID(strings.Repeat("x", 508))} {
		for _, anti := range []bool{false, true} {
			_, err = w.Define(ctx, patterns.Pattern{ID: id, Content: "c", Anti: anti})
			assertInputError(t, err, "ID")
		}
	}

	anti, err := w.Define(ctx, patterns.Pattern{ID: "no-globals", Anti: true,
		Content: "AVOID: globals", Reason: "house rule"})
	require.NoError(t, err)
	assert.Equal(t, patterns.Inverted, anti.State)
	for range 10 {
		w.record(bad("no-globals"))
	}
	assert.Equal(t, patterns.Inverted, w.standing("no-globals").State,
		"an anti-pattern is not inverted")
}

func TestStandingsQuery(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for range 20 {
		w.record(good("p"))
	}
	w.clock.Advance(time.Second)
	w.record(good("q"))
	w.clock.Advance(91 * day)
	named := func(q patterns.PatternQuery) (ids []patterns.PatternID) {
		all, err := w.Standings(ctx, q)
		require.NoError(t, err)
		for _, s := range all {
			ids = append(ids, s.Pattern.ID)
		}
		return ids
	}
	assert.Empty(t, named(patterns.PatternQuery{State: patterns.Proven}),
		"it is as it is now, and not as it was stored")
	assert.Equal(t, []patterns.PatternID{"p"}, named(
		patterns.PatternQuery{State: patterns.Established}))
	assert.Equal(t, []patterns.PatternID{"p", "q"}, named(patterns.PatternQuery{Positive: true}))
	w.record(good("p"))
	assert.Equal(t, []patterns.PatternID{"p", "q"}, named(patterns.PatternQuery{}),
		"in the order in which they were defined, and not in that of their changes")
	for id, want := range map[string]error{"none": heed.ErrNotFound,
		strings.Repeat("x", 512): heed.ErrNotFound} {
		_, err := w.Standing(ctx, patterns.PatternID(id))
		assert.ErrorIs(t, err, want)
	}
	for _, id := range []string{"", strings.Repeat("x", 513)} {
		_, err := w.Standing(ctx, patterns.PatternID(id))
		assertInputError(t, err, "ID")
	}
}

func TestRank(t *testing.T) {
	w := newWorld(t, patterns.Config{})
	for range 5 {
		w.record(good("proven"))
	}
	w.feedPattern("established", patterns.Helpful, 3, 0)
	w.feedPattern("deprecated", patterns.Helpful, 2, 0)
	w.feedPattern("deprecated", patterns.Harmful, 1, 0)
	w.feedPattern("inverted", patterns.Harmful, 3, 0)
	ranked, warnings, err := w.Rank(ctx, map[patterns.PatternID]float64{
		"new": 0.9, "inverted": 1, "established": 0.5, "deprecated": 1, "proven": 0.4, "unused": 0.9,
		"anti-inverted": 1,
	})
	require.NoError(t, err)
	var order []string
	for _, r := range append(ranked, warnings...) {
		order = append(order, fmt.Sprintf("%s %.2f", r.Pattern.ID, r.Score))
	}
	assert.Equal(t, []string{
		"proven 0.60", "established 0.50", "new 0.45", "unused 0.45", "deprecated 0.00",
		"anti-inverted 0.00", "inverted 0.00",
	}, order)
	for _, base := range []float64{-1, 0 / zero, 1 / zero} {
		_, _, err = w.Rank(ctx, map[patterns.PatternID]float64{"p": base})
		assertInputError(t, err, "Base")
	}
	_, _, err = w.Rank(ctx, map[patterns.PatternID]float64{"p": 1, "": 1})
	assertInputError(t, err, "ID")
}

var zero float64

func TestConfigFaults(t *testing.T) {
	_, err := patterns.New(ctx, patterns.Config{})
	assert.Equal(t, []string{"Store"}, fields(err))
	for size, refused := range map[int]bool{256: false, 257: true} {
		_, err = patterns.New(ctx, patterns.Config{Store: &memstore.Store{},
			Name: strings.Repeat("x", size)})
		assert.Equal(t, refused, err != nil, size)
	}
	_, err = patterns.New(ctx, patterns.Config{
		Store: &memstore.Store{}, Name: "a\x00", HalfLife: -1,
		Approaches: []patterns.Approach{
			{Name: "", Phrases: nil}, {Name: "x", Phrases: []string{"a?"}},
			{Name: "!?", Phrases: []string{"a"}},
		},
	})
	assert.Equal(t, []string{"Name", "HalfLife", "Approaches[0].Name",
		"Approaches[0].Phrases", "Approaches[1].Phrases[0]", "Approaches[2].Name",
	}, fields(err))
}

func TestConfigIsReadBack(t *testing.T) {
	w := newWorld(t, patterns.SpecConfig())
	c := w.Config()
	assert.True(t, c.Literal())
	assert.Equal(t, 90*day, c.HalfLife)
	assert.Len(t, c.Approaches, 12)
}
