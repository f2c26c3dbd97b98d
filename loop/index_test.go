package loop

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/learning"
)

// The index finds what comparing with every text finds.
func TestTheIndexIsTheSimilarity(t *testing.T) {
	words := rapid.StringMatching(`[a-c é漢]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		one, others := words.Draw(t, "one"), rapid.SliceOfN(words, 1, 8).Draw(t, "others")
		var x index[int]
		for i, other := range others {
			x.add(i, other, true)
		}
		want, err := heed.Trigrams{}.Similar(context.Background(), one, others)
		require.NoError(t, err)
		assert.InDeltaSlice(t, want, x.byTrigrams(one), 1e-12)
	})
}

// Comparing ends with the context, also where no function of the host's compares.
func TestComparingEndsWithItsContext(t *testing.T) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	var x index[int]
	x.add(1, "The mail is late", true)
	_, err := x.like(done, heed.Trigrams{}, "The mail is late", 0.2, 3)
	require.ErrorIs(t, err, context.Canceled)
}

// stated is a similarity of numbers that a test has drawn.
type stated []float64

func (s stated) Similar(context.Context, string, []string) ([]float64, error) { return s, nil }

// The best are those that come first when all are sorted, the earlier of equals before.
func TestTheBestAreTheFirstOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.SampledFrom([]float64{0, 0.2, 0.4, 0.5, 0.6, 1, math.NaN()})
		numbers := rapid.SliceOfN(number, 1, 12).Draw(t, "similarities")
		most := rapid.IntRange(1, 5).Draw(t, "most")
		var x index[int]
		var want []int
		for i, n := range numbers {
			x.add(i, "", false)
			if n >= 0.4 {
				want = append(want, i)
			}
		}
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(numbers[b], numbers[a]) })
		want = want[:min(len(want), most)]
		found, err := x.like(context.Background(), stated(numbers), "", 0.4, most)
		require.NoError(t, err)
		require.Len(t, found, len(want))
		for i, m := range found {
			require.Equal(t, want[i], *m.it)
		}
	})
}

// If heuristics differ only in their domains, an answer strengthens the one of its domain, because
// the others are not looked at for its events.
func TestTheNearestIsOfTheDomain(t *testing.T) {
	ctx := context.Background()
	var lessons Lessons
	for _, domain := range []string{"c", "b", "a"} {
		lessons.Heuristics = append(lessons.Heuristics, learning.Heuristic{
			ID: "in " + domain, Domain: domain, Condition: "The mail is late", Action: "Wait.",
		})
	}
	a, err := New(ctx, Config{Lessons: lessons})
	require.NoError(t, err)
	for domain, want := range map[string]string{"a": "in a", "b": "in b", "c": "in c", "d": ""} {
		id, _, err := a.nearest(ctx, domain, "The mail is late", "Wait.")
		require.NoError(t, err)
		require.Equal(t, want, id)
	}
}

// The heuristic with the most similar advice is found however little it has in common, and each
// failure of the similarity is returned.
func TestTheNearestAdvice(t *testing.T) {
	h := learning.Heuristic{ID: "rotate", Condition: "the disk is full", Action: "Rotate the logs."}
	a, err := New(t.Context(), Config{Lessons: Lessons{Heuristics: []learning.Heuristic{h}}})
	require.NoError(t, err)
	id, similarity, err := a.nearest(t.Context(), "", "the disk is full", "Rotate all logs now.")
	require.NoError(t, err)
	assert.Equal(t, "rotate", id)
	assert.Greater(t, similarity, 0.2)
	assert.Less(t, similarity, 1.)
	for n := range 2 {
		calls := 0
		a.cfg.Tuning.Similarity = similar(func() error {
			if calls++; calls > n {
				return fmt.Errorf("call %d", n)
			}
			return nil
		})
		a.similar = a.cfg.Tuning.Similarity
		a.library.Store(nil)
		id, _, err = a.nearest(t.Context(), "", "the disk is full", "Rotate all logs now.")
		require.EqualError(t, err, fmt.Sprintf("call %d", n))
		assert.Empty(t, id)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	var x index[string]
	x.add("a", "the disk is full", true)
	_, err = x.similar(done, heed.Trigrams{}, "the disk")
	require.ErrorIs(t, err, context.Canceled)
}

// An embedder is called for at most a hundred texts at once, and once for each text.
func TestAnEmbedderIsCalledForAHundredTexts(t *testing.T) {
	a, err := New(t.Context(), Config{})
	require.NoError(t, err)
	var sizes []int
	s := a.remembering(heed.Embedder(func(_ context.Context, texts []string) ([][]float32, error) {
		sizes = append(sizes, len(texts))
		return slices.Repeat([][]float32{{1, 0}}, len(texts)), nil
	}))
	texts := make([]string, 250)
	for i := range texts {
		texts[i] = fmt.Sprint(i)
	}
	for range 2 {
		_, err := s.Similar(t.Context(), texts[0], texts)
		require.NoError(t, err)
	}
	assert.Equal(t, []int{100, 100, 50}, sizes)
}

// A similar similarity finds all texts equal, or fails.
type similar func() error

func (f similar) Similar(_ context.Context, _ string, others []string) ([]float64, error) {
	numbers := make([]float64, len(others))
	for i := range numbers {
		numbers[i] = 1
	}
	return numbers, f()
}
