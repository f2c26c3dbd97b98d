package loop_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/loop"
)

func TestSpoken(t *testing.T) {
	for want, pieces := range map[string][]string{
		"Look at the logs.":  {"<thi", "nk>Hm", "m.</th", "ink>Look ", "at the logs."},
		"Is 1 < 2?":          {"Is 1 <", " 2?"},
		"Not the end, but <": {"Not the end,", " but <"},
		"Größe: 3 €":         {"Gr\xc3", "\xb6\xc3\x9fe: 3 \xe2", "\x82", "\xac"},
	} {
		var got string
		write, end := loop.Spoken(func(text string) {
			assert.NotEmpty(t, text)
			assert.True(t, utf8.ValidString(text), "%q has a part of a character", text)
			got += text
		})
		for _, piece := range pieces {
			write(piece)
		}
		end()
		assert.Equal(t, want, got)
	}
}
