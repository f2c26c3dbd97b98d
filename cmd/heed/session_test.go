package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/loop"
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

// JSON shows a text as it is, and a value that is none in JSON is an error.
func TestJSONAsItIs(t *testing.T) {
	var out bytes.Buffer
	s := &session{commands: &commands{JSON: true}, out: &printer{w: &out}}
	require.NoError(t, s.answer("a <b> & c", ""))
	require.Equal(t, "\"a <b> & c\"\n", out.String())
	require.Error(t, s.answer(math.Inf(1), ""))
}

// As many elements as were asked for are read, in however many parts they come.
func TestPaged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := make([]int, rapid.IntRange(0, 20).Draw(t, "all"))
		for i := range all {
			all[i] = i
		}
		most := rapid.IntRange(1, 25).Draw(t, "most")
		failing := rapid.IntRange(1, 30).Draw(t, "failing")
		calls := 0
		got, err := paged(&session{ctx: t.Context()}, atMost(most), view.AnswerQuery{},
			func(_ context.Context, q view.AnswerQuery) (part view.List[int], err error) {
				if calls++; calls == failing {
					return part, io.ErrUnexpectedEOF
				}
				from, _ := strconv.Atoi(q.After)
				to := min(from+min(rapid.IntRange(1, 9).Draw(t, "part"), q.Limit), len(all))
				if part.Items = all[from:to]; to < len(all) {
					part.Next = strconv.Itoa(to)
				}
				return part, nil
			})
		if calls == failing {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			return
		}
		require.NoError(t, err)
		require.True(t, slices.Equal(all[:min(most, len(all))], got), got)
	})
}

// A confidence is shown with three digits, and never as more than it is.
func TestAtLeast(t *testing.T) {
	t.Parallel()
	for i := range 1001 {
		require.Equal(t, plain(fmt.Sprintf("%.3f", float64(i)/1000)), atLeast(float64(i)/1000))
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(0, 1).Draw(t, "x")
		shown, err := strconv.ParseFloat(string(atLeast(x)), 64)
		require.NoError(t, err)
		require.True(t, shown <= x+1e-9 && shown > x-0.001, shown)
	})
}

// Praise suggests what several people praised and none rejected, if it is short enough to be one
// heuristic. Blanks and case of the question make no difference.
func TestPraises(t *testing.T) {
	t.Parallel()
	said := func(question, answer string, who string, value float64) loop.Past {
		return loop.Past{Event: loop.Event{Text: question, Domain: "d"}, Text: answer,
			Reactions: []loop.Reaction{{Person: who, Value: value}}}
	}
	long := strings.Repeat("x", 4097)
	for _, test := range []struct {
		question, answer, again string
		second                  string
		value                   float64
		suggested               bool
	}{
		{"Why?", "So", "why? ", "bob", 1, true}, {"Why?", "So", "Why?", "ann", 1, false},
		{"Why?", "So", "How?", "bob", 1, false}, {"Why?", "So", "Why?", "bob", -1, false},
		{"Why?", "So", "Why?", "bob", 0, false}, {"", "So", "", "bob", 1, false},
		{"Why?", "", "Why?", "bob", 1, false}, {long[:512], "So", long[:512], "bob", 1, true},
		{long[:513], "So", long[:513], "bob", 1, false},
		{"Why?", long[:4096], "Why?", "bob", 1, true}, {"Why?", long, "Why?", "bob", 1, false},
	} {
		all, seed := make(praises), maphash.MakeSeed()
		for _, p := range []loop.Past{said(test.question, test.answer, "ann", 1),
			said(test.again, test.answer, test.second, test.value)} {
			all.add(seed, &p)
		}
		found := all.heuristics()
		require.Equal(t, test.suggested, len(found) == 1, "%.20q %.20q", test.question, test.answer)
		if test.suggested {
			require.Equal(t, lesson{ID: "past-1", Domain: "d", Condition: test.question,
				Action: test.answer}, found[0])
		}
	}
}
