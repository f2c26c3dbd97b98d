package text_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/text"
)

// TestNoTwoListsAreAlike joins the same texts in other ways.
func TestNoTwoListsAreAlike(t *testing.T) {
	seen := map[text.Hash][]string{}
	for _, texts := range [][]string{
		nil, {""}, {"", ""}, {"abc"}, {"ab", "c"}, {"a", "bc"}, {"a", "b", "c"}, {"", "abc"},
		{"abc", ""},
		{"a\x00b"}, {"a", "\x00b"}, {"\x01a"}, {"\x02\x01a"}, {"\x01a", ""}, {"a", "\x01b"}, {"a\x01b"},
	} {
		hash := text.HashOf(texts...)
		assert.NotContains(t, seen, hash, "%q is as %q", texts, seen[hash])
		seen[hash] = texts
	}
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOf(rapid.StringOfN(rapid.SampledFrom([]rune("\x00\x01\x02a")), 0, 3, -1))
		a, b := lists.Draw(t, "a"), lists.Draw(t, "b")
		require.Equal(t, slices.Equal(a, b), text.HashOf(a...) == text.HashOf(b...))
	})
}

// TestHashesStayTheSame pins them, as databases and dumps hold them.
func TestHashesStayTheSame(t *testing.T) {
	assert.Equal(t, "GmDDi73wQxXl0SdHpF9-Ag", text.HashOf("abc").String())
	assert.Equal(t, "BYaT90csHGKvam5IM2VtvQ", text.HashOf("kind", "", "item", "").String())
}

// TestHashesOfIDs are near each other for what one answer counts, and differ by 96 bits and more.
func TestHashesOfIDs(t *testing.T) {
	assert.Equal(t, text.HashOf("abc"), text.HashOfID("abc"))
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.StringOfN(rapid.SampledFrom([]rune("ab:")), 0, 6, -1)
		a, b := ids.Draw(t, "a"), ids.Draw(t, "b")
		one, other := text.HashOfID(a), text.HashOfID(b)
		require.Equal(t, a == b, one == other)
		require.Equal(t, a == b, [12]byte(one[4:]) == [12]byte(other[4:]))
		near := text.HashOfID(a + ":x")
		of := text.HashOf(a)
		require.Equal(t, of[:4], near[:4])
	})
}

func TestHashAsText(t *testing.T) {
	hash := text.HashOf("abc")
	written, err := json.Marshal(hash)
	require.NoError(t, err)
	var read text.Hash
	require.NoError(t, json.Unmarshal(written, &read))
	assert.Equal(t, hash, read)
	for _, wrong := range []string{`""`, `"abc"`, `"!!!!!!!!!!!!!!!!!!!!!!"`} {
		assert.Error(t, json.Unmarshal([]byte(wrong), &read), wrong)
	}
}

func BenchmarkHashOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = text.HashOf("0123456789abcdef0123456789abcdef")
	}
}
