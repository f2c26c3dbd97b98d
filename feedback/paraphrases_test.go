//go:build !race

package feedback_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
)

// A written pair is one that people wrote, and whether its texts say the same.
type written struct {
	kind, a, b string // "same", "opposite", "narrower" or "other"
}

func writtenPairs(t *testing.T, file string) (all []written) {
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(content)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if !strings.HasPrefix(line, "#") {
			require.Len(t, f, 4)
			all = append(all, written{f[1], f[2], f[3]})
		}
	}
	return all
}

// perfect is an evaluator that knows what the pair says. It may name opposites, or only what says
// the same.
func (p *written) perfect(
	names bool,
) func(context.Context, feedback.Case) (feedback.Evaluation, error) {
	return func(_ context.Context, c feedback.Case) (feedback.Evaluation, error) {
		v := feedback.Evaluation{Class: feedback.EdgeCase, Similar: []string{}}
		for _, m := range c.Candidates {
			switch {
			case p.kind == "same":
				v.Similar, v.Class = append(v.Similar, m.ID), feedback.GeneralizableHigh
			case p.kind == "opposite" && names:
				v.Contradicts = append(v.Contradicts, m.ID)
			case names:
				v.Contradicts = []string{}
			}
		}
		return v, nil
	}
}

// embeds is a similarity that ranks paraphrases above all else, and opposites right below them, as
// embedders do. What says more or less than the other is next.
func (p *written) embeds(_, _ string) (float64, error) {
	return map[string]float64{"same": 0.95, "opposite": 0.9, "narrower": 0.85, "other": 0.6}[p.kind],
		nil
}

// A score counts pairs: brought together, kept apart as ambiguous, and kept apart but shown side by
// side.
type score struct{ together, ambiguous, shown int }

// TestParaphrases lets two reviewers say each pair of four corpora, which people wrote who had not
// seen the lists of words. The rule for embedders was fitted to unseen.tsv and later.tsv. fresh.tsv
// had been looked at when the rule was chosen, so its score is no test of the rule. The rule was
// not changed for blind.tsv. There, words joined one pair of opposites, of "dessus" and "dessous",
// until a form of a word had to begin with the other form.
func TestParaphrases(t *testing.T) {
	for file, want := range map[string]map[string]map[string]score{
		unseen: {
			"words":         {"same": {0, 1, 48}, "opposite": {0, 48, 36}},
			"evaluator":     {"same": {84, 0, 0}, "opposite": {0, 48, 36}},
			"names opposed": {"same": {84, 0, 0}, "opposite": {0, 84, 0}},
			"embedder":      {"same": {61, 21, 2}, "opposite": {0, 80, 4}},
		},
		"testdata/later.tsv": {
			"words":         {"same": {1, 0, 34}, "opposite": {0, 38, 25}},
			"evaluator":     {"same": {63, 0, 0}, "opposite": {0, 38, 25}},
			"names opposed": {"same": {63, 0, 0}, "opposite": {0, 63, 0}},
			"embedder":      {"same": {53, 9, 1}, "opposite": {0, 56, 7}},
		},
		"testdata/fresh.tsv": {
			"words": {"same": {0, 0, 34}, "opposite": {0, 4, 35}, "narrower": {0, 0, 37},
				"other": {0, 0, 40}},
			"evaluator": {"same": {80, 0, 0}, "opposite": {0, 4, 35}, "narrower": {0, 0, 37},
				"other": {0, 0, 40}},
			"names opposed": {"same": {80, 0, 0}, "opposite": {0, 40, 0}, "narrower": {0, 0, 37},
				"other": {0, 0, 40}},
			"embedder": {"same": {78, 2, 0}, "opposite": {17, 23, 0}, "narrower": {14, 23, 3},
				"other": {}},
		},
		"testdata/blind.tsv": {
			"words": {"same": {0, 0, 39}, "opposite": {0, 11, 27}, "narrower": {0, 0, 30},
				"other": {0, 0, 20}},
			"evaluator": {"same": {80, 0, 0}, "opposite": {0, 11, 27}, "narrower": {0, 0, 30},
				"other": {0, 0, 20}},
			"names opposed": {"same": {80, 0, 0}, "opposite": {0, 60, 0}, "narrower": {0, 0, 30},
				"other": {0, 0, 20}},
			"embedder": {"same": {80, 0, 0}, "opposite": {36, 20, 4}, "narrower": {30, 10, 0},
				"other": {}},
		},
	} {
		for name, want := range want {
			got := map[string]score{}
			for _, p := range writtenPairs(t, file) {
				cfg := feedback.Config{}
				switch name {
				case "evaluator":
					cfg.Evaluator = p.perfect(false)
				case "names opposed":
					cfg.Evaluator = p.perfect(true)
				case "embedder":
					cfg.Similarity = judge(p.embeds)
				}
				w := newWorld(t, cfg)
				got[p.kind] = p.scored(w, got[p.kind])
				if cfg.Similarity != nil {
					assert.Empty(t, w.proposals(""), "%s: nothing is proposed at once: %q", file, p.a)
				}
			}
			assert.Equal(t, want, got, "%s, %s", file, name)
		}
	}
}

// scored adds to a score what becomes of the pair.
func (p *written) scored(w *world, s score) score {
	first, second := w.says("ann", p.a), w.says("bob", p.b)
	switch {
	case second.Class == feedback.Ambiguous:
		s.ambiguous++
	case first.Cluster == second.Cluster:
		s.together++
	case slices.Contains(second.Near, first.ID):
		s.shown++
	}
	return s
}

// TestWordsShowWhatMayBeJoined: of 84 paraphrases among 84 other corrections, words join none. They
// show 45 next to the correction that they paraphrase.
func TestWordsShowWhatMayBeJoined(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	shown, all := 0, slices.DeleteFunc(writtenPairs(t, unseen), func(p written) bool {
		return p.kind != "same"
	})
	first := map[string]string{}
	for _, p := range all {
		first[p.a] = w.says("ann", p.a).ID
	}
	near := 0
	for _, p := range all {
		w.clock.advance(time.Second)
		f := w.says("bob", p.b)
		assert.LessOrEqual(t, len(f.Near), 5)
		near += len(f.Near)
		if slices.Contains(f.Near, first[p.a]) {
			shown++
		}
	}
	assert.Equal(t, []int{84, 45}, []int{len(all), shown})
	assert.Less(t, near, 4*len(all))
}

// TestTheEvaluatorOverrulesWords in both directions, and is told what they seem to say.
func TestTheEvaluatorOverrulesWords(t *testing.T) {
	var asked feedback.Case
	var answer feedback.Evaluation
	w := newWorld(t, feedback.Config{Evaluator: func(
		_ context.Context, c feedback.Case,
	) (feedback.Evaluation, error) {
		asked = c
		return answer, nil
	}})
	answer = feedback.Evaluation{Class: feedback.EdgeCase, Confidence: 0.5}
	w.add(w.approval("ann", "the answer is friendly"))
	w.says("ann", "Do not be terse")
	answer = feedback.Evaluation{
		Class: feedback.GeneralizableHigh, Confidence: 0.9, Similar: []string{"d2"},
	}
	r := w.says("bob", "Be more than terse")
	require.Len(t, asked.Opposing, 1)
	assert.Equal(t, "d2", asked.Opposing[0].ID)
	assert.Equal(t, feedback.OpposedPolarity, asked.Opposing[0].Opposed)
	assert.Equal(t, feedback.GeneralizableHigh, r.Class)
	assert.Equal(t, "d2", r.Cluster)
	assert.Empty(t, r.Contradicts)

	answer = feedback.Evaluation{Class: feedback.EdgeCase, Contradicts: []string{"d2", "d3"}}
	r = w.says("cleo", "Write like a telegram")
	assert.Equal(t, feedback.Ambiguous, r.Class)
	assert.ElementsMatch(t, []string{"d2", "d3"}, r.Contradicts)
	assert.Contains(t, r.Rationale, "(found by the host's evaluator)")

	answer = feedback.Evaluation{Class: feedback.EdgeCase}
	w.says("cleo", "Log the queries of tenants")
	assert.True(t, slices.ContainsFunc(asked.Candidates, func(m feedback.Match) bool {
		return m.ID == "d2" && m.Opposed == feedback.OpposedPolarity
	}), "it is shown of another topic, too")

	// It says that nothing contradicts, and nothing does.
	answer = feedback.Evaluation{Class: feedback.EdgeCase, Contradicts: []string{}}
	r = w.says("dan", "Be terse")
	assert.NotEmpty(t, asked.Opposing)
	assert.Equal(t, feedback.EdgeCase, r.Class)

	// It says nothing of the kind, and the words count.
	answer = feedback.Evaluation{Class: feedback.EdgeCase}
	assert.Equal(t, feedback.Ambiguous, w.says("eve", "Always be terse").Class)
}

// TestAnAnswerThatCannotBeUsed is stored with its reason, asked for again after a growing pause,
// and fails no sweep.
func TestAnAnswerThatCannotBeUsed(t *testing.T) {
	var asked []time.Duration
	broken := true
	clock := &clock{}
	var notices []heed.Failed
	w := newWorld(t, feedback.Config{
		Now: clock.Now,
		Evaluator: func(context.Context, feedback.Case) (feedback.Evaluation, error) {
			asked = append(asked, clock.Now().Sub(start).Round(time.Hour))
			if broken {
				return feedback.Evaluation{Class: feedback.EdgeCase, Similar: []string{"d99"}}, nil
			}
			return feedback.Evaluation{Class: feedback.EdgeCase, Confidence: 0.3}, nil
		},
		Observer: func(_ context.Context, n heed.Notice) {
			if failed, ok := n.(heed.Failed); ok {
				notices = append(notices, failed)
			}
		},
	})
	w.clock = clock
	_, err := w.Record(ctx, w.correction("ann", "Be brief"))
	require.NoError(t, err)
	_, err = w.Record(ctx, w.correction("bob", "?!"))
	require.NoError(t, err)
	for range 100 {
		require.NoError(t, w.Sweep(ctx, time.Time{}))
		clock.advance(time.Hour)
	}
	assert.Equal(t, []time.Duration{0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 25, 43, 67, 91}, inHours(asked))
	assert.Len(t, notices, len(asked))
	f := w.get("d1")
	assert.Empty(t, f.Class)
	assert.Equal(t, len(asked), f.Unanswered.Times)
	assert.Contains(t, f.Unanswered.Reason, "Evaluation.Similar[0]: must be the id of a candidate")
	assert.Equal(t, feedback.Ambiguous, w.get("d2").Class, "what needs no evaluator goes on")

	_, err = w.Evaluate(ctx, "d1")
	assert.ErrorAs(t, err, new(*heed.InputError), "whoever asks for it gets the error")
	broken = false
	f, err = w.Evaluate(ctx, "d1")
	require.NoError(t, err)
	assert.Equal(t, feedback.EdgeCase, f.Class)
	assert.Zero(t, w.get("d1").Unanswered)

	// A caller that goes away is no answer, and is not counted.
	ended, cancel := context.WithCancel(ctx)
	w = newWorld(t, feedback.Config{Evaluator: func(
		context.Context, feedback.Case,
	) (feedback.Evaluation, error) {
		cancel()
		return feedback.Evaluation{}, errors.New("cancelled")
	}})
	_, err = w.Record(ctx, w.correction("ann", "Be brief"))
	require.NoError(t, err)
	_, err = w.Evaluate(ended, "d1")
	require.Error(t, err)
	assert.Zero(t, w.get("d1").Unanswered)
}

// A time to ask again that a wrong clock put more than two days ahead does not hold.
func TestAnEvaluatorIsAskedAgainAfterAWrongClock(t *testing.T) {
	clock, broken := &clock{now: start.Add(10 * 365 * day)}, true
	w := newWorld(t, feedback.Config{Now: clock.Now, Evaluator: func(
		context.Context, feedback.Case,
	) (feedback.Evaluation, error) {
		if broken {
			return feedback.Evaluation{Class: "nonsense"}, nil
		}
		return feedback.Evaluation{Class: feedback.EdgeCase, Confidence: 0.5, Rationale: "x"}, nil
	}})
	w.clock = clock
	_, err := w.Record(ctx, w.correction("ann", "Be brief"))
	require.NoError(t, err)
	_, err = w.EvaluateAll(ctx)
	require.NoError(t, err)
	require.NotZero(t, w.get("d1").Unanswered)
	broken = false
	clock.advance(-30 * time.Hour)
	_, err = w.EvaluateAll(ctx)
	require.NoError(t, err)
	assert.Empty(t, w.get("d1").Class)
	clock.advance(-25 * time.Hour)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Equal(t, feedback.EdgeCase, w.get("d1").Class)
}

func inHours(all []time.Duration) []time.Duration {
	for i := range all {
		all[i] /= time.Hour
	}
	return all
}

// All that seems to contradict a correction reaches the evaluator, and a record names a hundred.
func TestAllContradictionsReachTheEvaluator(t *testing.T) {
	var opposing int
	w := newWorld(t, feedback.Config{
		Evaluator: func(_ context.Context, c feedback.Case) (feedback.Evaluation, error) {
			opposing = len(c.Opposing)
			return feedback.Evaluation{Class: feedback.EdgeCase}, nil
		},
	})
	for range 130 {
		w.says("ann", "Never put the full report into the first answer")
	}
	f := w.says("bob", "Always put the full report into the first answer")
	assert.Equal(t, 130, opposing)
	assert.Equal(t, feedback.Ambiguous, f.Class)
	assert.Len(t, f.Contradicts, 100)
}
