package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// JSON does nothing to a terminal, whatever is in the store, and says the same as before.
func TestJSONIsPrintable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"\x1b[31m", "\u009b31m", "\x7f", "\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0041",
			"\U000f0000", "\u2028", "漢", "👍🏽", "a\tb\n", "<&>", "\u00ad",
		}))).Draw(t, "texts")
		var out bytes.Buffer
		s := &session{commands: &commands{JSON: true}, out: &printer{w: &out}}
		require.NoError(t, s.answer(map[string][]string{"texts": want}, ""))
		require.False(t, strings.ContainsFunc(out.String(),
			func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }), "%q", out.String())
		var got map[string][]string
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		require.Equal(t, want, got["texts"])
	})
}
