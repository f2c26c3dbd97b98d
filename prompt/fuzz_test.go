package prompt_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/prompt/prompttest"
)

func unquote(t *testing.T, literal string) (text string) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(literal), &text), literal)
	return text
}

// oneLine fails unless a text is at most max characters in one line, with nothing in it that nobody
// sees.
func oneLine(t *testing.T, text string, max int) {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	require.LessOrEqual(t, utf8.RuneCountInString(text), max)
	for _, r := range text {
		require.True(t, unicode.IsGraphic(r) || r == '\u200c' || r == '\u200d', "%U", r)
	}
	require.NotContains(t, text, "\n")
}

func seed(f *testing.F) {
	n := 0
	for text := range prompttest.Hostile() {
		if n++; n%40 == 0 {
			f.Add(text, 30)
		}
	}
	f.Add("क्\u200dष 👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3", 5)
}

func FuzzLine(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string, max int) {
		max = max&0xff + 1
		line := prompt.Line(text, max)
		oneLine(t, line, max)
		assert.Equal(t, line, prompt.Line(line, max), "a line stays as it is")
		assert.NoError(t, prompt.Check(line))
		if prompt.Check(text) == nil {
			assert.Equal(t, text, prompt.Line(text, utf8.RuneCountInString(text)+1))
		}
	})
}

func FuzzQuote(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string, max int) {
		max = max&0xff + 1
		literal := prompt.Quote(text, max)
		require.NotContains(t, literal[1:len(literal)-1], "<")
		value := unquote(t, literal)
		oneLine(t, value, max)
		assert.Equal(t, literal, prompt.Quote(value, max), "a quoted text stays as it is")
	})
}

func FuzzCode(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string, max int) {
		max = max&0xff + 1
		code := prompt.Code(text, max)
		fence, rest, _ := strings.Cut(code, "\n")
		body, ok := strings.CutSuffix(rest, "\n"+fence)
		require.True(t, ok)
		require.Empty(t, strings.Trim(fence, "`"))
		require.NotContains(t, body, fence)
		require.LessOrEqual(t, utf8.RuneCountInString(body), max)
		assert.Equal(t, code, prompt.Code(body, max), "code stays as it is")
	})
}
