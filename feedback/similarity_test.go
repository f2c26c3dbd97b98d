package feedback_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
)

// TestPairs: of 329 pairs of texts, none of the 209 that oppose each other or name other numbers is taken for one, whatever
// the similarity says; of 85 that say the same, the default merges 66.
func TestPairs(t *testing.T) {
	text, err := os.ReadFile("testdata/pairs.json")
	require.NoError(t, err)
	var pairs []struct{ Kind, A, B string }
	require.NoError(t, json.Unmarshal(text, &pairs))
	require.GreaterOrEqual(t, len(pairs), 200)
	count, unopposed, merged := map[string]int{}, map[string]int{}, map[string]int{}
	for _, p := range pairs {
		scores, err := feedback.Trigrams{}.Scores(ctx, p.A, []string{p.B})
		require.NoError(t, err)
		opposed := feedback.Oppose(p.A, p.B)
		assert.Equal(t, opposed == "", feedback.Oppose(p.B, p.A) == "", "%q, %q: symmetric", p.A, p.B)
		count[p.Kind]++
		if opposed == "" {
			unopposed[p.Kind]++
			if p.Kind == "opposite" || p.Kind == "number" {
				t.Errorf("%q, %q: not opposed", p.A, p.B)
			}
			if scores[0] >= (feedback.Trigrams{}).Traits().Threshold {
				merged[p.Kind]++
			}
		}
	}
	assert.Equal(t, map[string]int{"same": 85, "opposite": 171, "number": 38, "unrelated": 35}, count)
	assert.Equal(t, 72, unopposed["same"], "the guard's recall: 85 %%")
	assert.Equal(t, 66, merged["same"], "the recall of both: 78 %%")
	assert.Zero(t, merged["unrelated"])
}

func TestOpposeNamesTheReason(t *testing.T) {
	for _, test := range []struct {
		a, b    string
		opposed feedback.Opposition
	}{
		{"caching is allowed", "caching is not allowed", feedback.OpposedPolarity},
		{"the retry limit is 3", "the retry limit is 5", feedback.OpposedNumbers},
		{"wait for 5 seconds", "wait for 5 minutes", feedback.OpposedNumbers},
		{"enable caching", "disable caching", feedback.OpposedMeaning},
		{"lint before testing", "testing before lint", feedback.OpposedOrder},
		{"store it in PostgreSQL", "store it in MySQL", feedback.OpposedNames},
		{"round prices to euros", "round prices to cents", feedback.OpposedWords},
		{"wait for 5 seconds", "wait 5 s", feedback.Opposition("")},
		{"retry at most 3 times", "retry no more than three times", feedback.Opposition("")},
		{"use ٣ workers", "use 3 workers", feedback.Opposition("")},
		{"", "", feedback.Opposition("")},
	} {
		assert.Equal(t, test.opposed, feedback.Oppose(test.a, test.b), "%q, %q", test.a, test.b)
	}
	assert.False(t, feedback.OpposedNumbers.Contradicts())
	assert.True(t, feedback.OpposedPolarity.Contradicts())
}

// texts are made of words that matter to the guard.
func texts() *rapid.Generator[string] {
	words := rapid.SampledFrom(strings.Fields("do not never enable disable caching logs before after tests 3 5 seconds , . and if " +
		"PostgreSQL must may n't don't 不 缓存 允许 не без кэш 3rd v2 '  - only first all some"))
	return rapid.Map(rapid.SliceOfN(words, 0, 12), func(w []string) string { return strings.Join(w, " ") })
}

// TestLongTextsTakeNoLongTime would not end if words were compared with words.
func TestLongTextsTakeNoLongTime(t *testing.T) {
	for _, words := range []string{"not never 5 apples before oranges, ", "before ", "before apples oranges ", "always before enable ", "a b to c ", "没有"} {
		text := strings.Repeat(words, feedback.MaxComment/len(words))
		assert.Empty(t, feedback.Oppose(text, text))
		assert.NotEmpty(t, feedback.Oppose(text, text+" and more"), "what is too long to be compared is not merged")
		_, err := feedback.Trigrams{}.Scores(ctx, text, []string{text + " and more"})
		require.NoError(t, err)
	}
}

func TestNoTextOpposesItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts().Draw(t, "a"), texts().Draw(t, "b")
		if o := feedback.Oppose(a, a); o != "" {
			t.Fatalf("%q opposes itself: %s", a, o)
		}
		if (feedback.Oppose(a, b) == "") != (feedback.Oppose(b, a) == "") {
			t.Fatalf("not symmetric: %q, %q", a, b)
		}
	})
}

// TestPuttingANegationInOpposes: whatever is said, its denial is never taken for the same.
func TestPuttingANegationInOpposes(t *testing.T) {
	subjects := rapid.SampledFrom([]string{"caching", "the service", "every reviewer", "a test", "retries"})
	verbs := rapid.SampledFrom([]string{"be logged", "use the database", "call others", "run twice", "depend on the clock"})
	modals := rapid.SampledFrom([]string{"must", "should", "may", "can"})
	rapid.Check(t, func(t *rapid.T) {
		s, m, v := subjects.Draw(t, "subject"), modals.Draw(t, "modal"), verbs.Draw(t, "verb")
		a, b := s+" "+m+" "+v, s+" "+m+" not "+v
		if feedback.Oppose(a, b) == "" {
			t.Fatalf("%q, %q", a, b)
		}
	})
}

func TestTrigrams(t *testing.T) {
	score := func(a, b string) float64 {
		scores, err := feedback.Trigrams{}.Scores(ctx, a, []string{b})
		require.NoError(t, err)
		return scores[0]
	}
	assert.Equal(t, 1., score("Keep it short!", "keep it SHORT"))
	assert.Equal(t, 1., score("不要记录密码", "不要记录密码。"), "no script vanishes")
	assert.Equal(t, 0., score("short", "brief"))
	assert.Equal(t, 0.5, score("cat", "cats"), "of the trigrams __c, _ca, cat, at_, ats and ts_ they share three")
	for _, empty := range []string{"", "!?", "👍 👍", "\n"} {
		assert.Equal(t, 0., score(empty, empty), "nothing to compare is not the same: %q", empty)
	}
	// Without a model, wording is all there is.
	assert.Less(t, score("Reviewer removed PostgreSQL schema from PRD", "PRD should not dictate technical choices"), 0.3)
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err := feedback.Trigrams{}.Scores(done, "a", []string{"b"})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestSimilarIsInclusive(t *testing.T) {
	for score, similar := range map[float64]int{0.8: 1, 0.79: 0, 1: 1} {
		w := newWorld(t, feedback.Config{Similarity: topics{"x": score}})
		w.says("ann", "x: one thing")
		matches, err := w.Similar(ctx, w.correction("bob", "x: one thing"), 0)
		require.NoError(t, err)
		assert.Len(t, matches, similar, "%v", score)
	}
}

func TestSimilar(t *testing.T) {
	w := newWorld(t, feedback.Config{Window: 3})
	w.says("ann", "this is too far back in time") // beyond the window
	w.says("ann", "the summary is far too long")
	w.says("bob", "the summary is too long")
	w.says("bob", "the summary is not too long")
	other := w.correction("bob", "the summary is too long")
	other.Agent = "coder"
	w.add(other)
	f := w.correction("cleo", "The summary is too long")
	matches, err := w.Similar(ctx, f, 0.5)
	require.NoError(t, err)
	var ids []string
	for _, m := range matches {
		ids = append(ids, m.ID)
		assert.Equal(t, m.ID == "d4", m.Opposed != "", m.ID)
	}
	assert.ElementsMatch(t, []string{"d3", "d2", "d4"}, ids)
	assert.Equal(t, "d3", ids[0])
	for _, bad := range []float64{-0.1, 1.1, math.NaN()} {
		_, err := w.Similar(ctx, f, bad)
		assert.ErrorAs(t, err, new(*heed.InputError))
	}
}

// meaning is an embedding that knows two subjects.
func meaning(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = []float32{0.1, 3}
		if strings.Contains(text, "PRD") {
			vectors[i] = []float32{2, 0.1}
		}
	}
	return vectors, nil
}

func TestEmbedding(t *testing.T) {
	calls := 0
	e, err := feedback.NewEmbedding(feedback.EmbeddingConfig{
		Embed: func(ctx context.Context, texts []string) ([][]float32, error) {
			calls += len(texts)
			assert.LessOrEqual(t, len(texts), 2)
			return meaning(ctx, texts)
		},
		Batch: 2, Remember: 4,
	})
	require.NoError(t, err)
	assert.Equal(t, feedback.Traits{Threshold: 0.8, Ceiling: 1}, e.Traits())
	assert.Equal(t, 4, e.Config().Remember)
	others := []string{"PRD should not dictate technical choices", "a test is missing", "PRD"}
	scores, err := e.Scores(ctx, "Reviewer removed PostgreSQL schema from PRD", others)
	require.NoError(t, err)
	assert.InDelta(t, 1, scores[0], 1e-6)
	assert.Less(t, scores[1], 0.2)
	assert.Equal(t, 4, calls)
	_, err = e.Scores(ctx, "PRD", others)
	require.NoError(t, err)
	assert.Equal(t, 4, calls, "what was embedded is remembered")
	_, err = e.Scores(ctx, "new", others)
	require.NoError(t, err)
	assert.Equal(t, 5, calls)
	_, err = e.Scores(ctx, "Reviewer removed PostgreSQL schema from PRD", nil)
	require.NoError(t, err)
	_, err = e.Scores(ctx, "PRD", others)
	require.NoError(t, err)
	assert.Greater(t, calls, 5, "and not for ever")

	// What the default can't see, an embedding clusters.
	w := newWorld(t, feedback.Config{Similarity: e})
	w.says("ann", "Reviewer removed the schema from the PRD")
	r := w.says("bob", "PRD should stay away from technical choices")
	assert.Equal(t, feedback.GeneralizableHigh, r.Class)
}

func TestWhatHasNoWordsHoldsUpNoEmbedding(t *testing.T) {
	e, err := feedback.NewEmbedding(feedback.EmbeddingConfig{Embed: func(_ context.Context, texts []string) ([][]float32, error) {
		vectors := make([][]float32, len(texts))
		for i, text := range texts {
			vectors[i] = []float32{float32(strings.Count(text, "e"))}
		}
		return vectors, nil
	}})
	require.NoError(t, err)
	w := newWorld(t, feedback.Config{Similarity: e})
	assert.Equal(t, feedback.Ambiguous, w.says("ann", "?!").Class)
	assert.Equal(t, feedback.EdgeCase, w.says("ann", long).Class, "the other has no vector, and is none to compare with")
	f := w.approval("ann", "👍")
	assert.Equal(t, feedback.Positive, w.add(f).Class)
	assert.Equal(t, feedback.GeneralizableHigh, w.says("bob", long).Class)
	matches, err := w.Similar(ctx, w.correction("eve", "!"), 0)
	require.NoError(t, err)
	assert.Empty(t, matches)
}

func TestEmbeddingContainsNonsense(t *testing.T) {
	failure := errors.New("down")
	for name, embed := range map[string]func(context.Context, []string) ([][]float32, error){
		"error":   func(context.Context, []string) ([][]float32, error) { return nil, failure },
		"too few": func(context.Context, []string) ([][]float32, error) { return [][]float32{{1}}, nil },
		"nought":  func(_ context.Context, t []string) ([][]float32, error) { return make([][]float32, len(t)), nil },
		"not a one": func(context.Context, []string) ([][]float32, error) {
			return [][]float32{{1}, {float32(math.NaN())}}, nil
		},
		"uneven":  func(context.Context, []string) ([][]float32, error) { return [][]float32{{1}, {1, 2}}, nil },
		"a panic": func(context.Context, []string) ([][]float32, error) { panic("down") },
	} {
		e, err := feedback.NewEmbedding(feedback.EmbeddingConfig{Embed: embed})
		require.NoError(t, err)
		w := newWorld(t, feedback.Config{Similarity: e})
		w.says("ann", "first")
		f := w.correction("bob", "second")
		_, err = w.Record(ctx, f)
		require.NoError(t, err)
		_, err = w.Evaluate(ctx, f.ID)
		assert.Error(t, err, name)
		assert.Empty(t, w.get(f.ID).Class, "%s: it is kept, and unclassified", name)
	}
	_, err := feedback.NewEmbedding(feedback.EmbeddingConfig{Threshold: 2, Remember: -1, Batch: -1})
	faults := 0
	for range heed.ConfigErrors(err) {
		faults++
	}
	assert.Equal(t, 4, faults)
}
