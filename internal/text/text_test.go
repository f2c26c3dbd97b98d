package text_test

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/text"
)

func TestTrigrams(t *testing.T) {
	score := func(a, b string) float64 { return text.Jaccard(text.Trigrams(a), text.Trigrams(b)) }
	assert.Equal(t, 1., score("Keep it short!", "keep it SHORT"))
	assert.Equal(t, 1., score("不要记录密码", "不要记录密码。"), "no script vanishes")
	assert.Equal(t, 0., score("short", "brief"))
	assert.Equal(t, 0.5, score("cat", "cats"),
		"of the trigrams __c, _ca, cat, at_, ats and ts_ they share three")
	for _, empty := range []string{"", "!?", "👍 👍", "\n"} {
		assert.False(t, text.Comparable(empty), "%q", empty)
		assert.Equal(t, 0., score(empty, empty), "nothing to compare is not the same: %q", empty)
	}
	// Without a model, wording is all there is.
	assert.Less(t, score("Reviewer removed PostgreSQL schema from PRD",
		"PRD should not dictate technical choices"), 0.3)
	assert.Equal(t, text.Trigrams("用缓存a"), text.Trigrams("用缓存 a"),
		"another script begins another word")
	assert.Less(t, score("缓存用", "用缓存"), 1., "pairs have an order")
	packed := func(a, b, c rune) uint64 { return uint64(a)<<42 | uint64(b)<<21 | uint64(c) }
	assert.Equal(t, []uint64{packed(' ', ' ', 'a'), packed(' ', 'a', 'b'), packed('a', 'b', ' ')},
		text.Trigrams("Ab"))
}

// A script without blanks is one of these, whatever its characters' numbers are.
func TestDense(t *testing.T) {
	for r := range rune(0x33000) {
		if want := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
			unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar); text.Dense(r) != want {
			t.Errorf("%U", r)
		}
	}
}

// Each word has its own trigrams. A word ends where its letters end, and where a script with blanks
// and a script without blanks meet.
func TestTrigramsOfWords(t *testing.T) {
	letters := []rune("aBé1ण\u093f用缓สก!. \n")
	rapid.Check(t, func(t *rapid.T) {
		written := rapid.StringOfN(rapid.SampledFrom(letters), 0, 12, -1).Draw(t, "text")
		want := map[[3]rune]bool{}
		var word []rune
		end := func() {
			if len(word) > 0 && text.Dense(word[0]) {
				for i, r := range word {
					if want[[3]rune{0, 0, r}] = true; i > 0 {
						want[[3]rune{0, word[i-1], r}] = true
					}
				}
			} else if len(word) > 0 {
				word = append([]rune("  "), append(word, ' ')...)
				for i := range word[2:] {
					want[[3]rune(word[i:i+3])] = true
				}
			}
			word = nil
		}
		for _, r := range strings.ToLower(written) {
			if !text.Comparable(string(r)) {
				end()
				continue
			}
			if len(word) > 0 && text.Dense(word[0]) != text.Dense(r) {
				end()
			}
			word = append(word, r)
		}
		end()
		got := text.Trigrams(written)
		assert.True(t, slices.IsSorted(got))
		assert.Len(t, got, len(want), written)
		for three := range want {
			packed := uint64(three[0])<<42 | uint64(three[1])<<21 | uint64(three[2])
			assert.Contains(t, got, packed, "%q of %q", string(three[:]), written)
		}
	})
}

func TestJaccardAndDistinct(t *testing.T) {
	assert.Equal(t, []string{"a", "b"}, text.Distinct([]string{"b", "a", "b"}))
	assert.Nil(t, text.Distinct([]string{}))
	assert.Equal(t, 0.5, text.Jaccard([]string{"a", "b", "c"}, []string{"b", "c", "d"}))
	assert.Zero(t, text.Jaccard([]string{}, []string{}))
}

func TestCosine(t *testing.T) {
	for name, tt := range map[string]struct {
		a, b []float32
		want float64
	}{
		"the same":        {[]float32{1, 2, 3}, []float32{1, 2, 3}, 1},
		"of other length": {[]float32{1, 2, 3}, []float32{2, 4, 6}, 1},
		"at right angles": {[]float32{1, 0}, []float32{0, 5}, 0},
		"opposite":        {[]float32{1, 1}, []float32{-1, -1}, -1},
		"in between":      {[]float32{1, 0}, []float32{3, 4}, 0.6},
		"a zero vector":   {[]float32{0, 0}, []float32{1, 1}, 0},
		"empty":           {nil, nil, 0},
		"another length":  {[]float32{1, 2}, []float32{1, 2, 3}, 0},
		"not a number":    {[]float32{float32(math.NaN()), 1}, []float32{1, 1}, 0},
		"infinite":        {[]float32{float32(math.Inf(1)), 1}, []float32{1, 1}, 0},
		"huge":            {[]float32{3e38, 3e38}, []float32{3e38, 3e38}, 1},
	} {
		assert.InDelta(t, tt.want, text.Cosine(tt.a, tt.b), 1e-12, name)
	}
}

func TestCosines(t *testing.T) {
	embed := func(vectors ...[]float32) text.Embed {
		return func(context.Context, []string) ([][]float32, error) { return vectors, nil }
	}
	got, err := text.Cosines(t.Context(), embed([]float32{1, 0}, []float32{3, 4}, []float32{-1, 0}),
		"a", []string{"b", "c"})
	require.NoError(t, err)
	assert.InDeltaSlice(t, []float64{0.6, 0}, got, 1e-7)
	for _, vectors := range [][][]float32{{{1, 0}, {3, 4}}, {{1, 0}, {3, 4}, {1}}} {
		_, err = text.Cosines(t.Context(), embed(vectors...), "a", []string{"b", "c"})
		require.Error(t, err)
	}
	away := func(context.Context, []string) ([][]float32, error) { return nil, io.ErrUnexpectedEOF }
	_, err = text.Cosines(t.Context(), away, "a", nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, "ann", text.PseudonymKey{}.Of("ann"), "without a key, names stay")
}

func TestRemembering(t *testing.T) {
	calls := 0
	embed := text.Remembering(func(_ context.Context, texts []string) (vectors [][]float32, _ error) {
		calls += len(texts)
		assert.LessOrEqual(t, len(texts), 2, "of a batch")
		for _, text := range texts {
			vectors = append(vectors, []float32{float32(len(text)), 1})
		}
		return vectors, nil
	}, 4, 2)
	for _, step := range []struct {
		texts []string
		calls int
		why   string
	}{
		{[]string{"one", "two", "three", "four", "one"}, 4, "each is embedded once"},
		{[]string{"four", "one"}, 4, "what was embedded is remembered"},
		{[]string{"five", "two"}, 5, "what is new is embedded"},
		{[]string{"four", "one", "two", "three"}, 5, "what was used last is remembered"},
		{strings.Fields("a bc d ef g hi j kl"), 13, "what is new is embedded"},
		{[]string{"one"}, 14, "the first ones made room"},
	} {
		vectors, err := embed(t.Context(), step.texts)
		require.NoError(t, err)
		for i, vector := range vectors {
			assert.Equal(t, float32(len(step.texts[i])), vector[0], "in the order of the texts")
		}
		assert.Equal(t, step.calls, calls, step.why)
	}
}

func TestRememberingRefusesNonsense(t *testing.T) {
	down := errors.New("down")
	for name, vectors := range map[string][][]float32{
		"an error": nil, "too few": {{1}}, "of length 0": {{1}, {0}},
		"not finite": {{1}, {float32(math.NaN())}}, "uneven": {{1}, {1, 2}},
	} {
		_, err := text.Remembering(func(context.Context, []string) ([][]float32, error) {
			if vectors == nil {
				return nil, down
			}
			return vectors, nil
		}, 10, 10)(t.Context(), []string{"a", "b"})
		assert.Error(t, err, name)
	}
}
