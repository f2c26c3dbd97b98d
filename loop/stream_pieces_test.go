package loop_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/loop"
)

func TestSpoken(t *testing.T) {
	for want, pieces := range map[string][]string{
		"Look at the logs.":  {"<thi", "nk>Hm", "m.</th", "ink>Look ", "at the logs."},
		"Is 1 < 2?":          {"Is 1 <", " 2?"},
		"Not the end, but <": {"Not the end,", " but <"},
	} {
		var got string
		write, end := loop.Spoken(func(text string) {
			assert.NotEmpty(t, text)
			got += text
		})
		for _, piece := range pieces {
			write(piece)
		}
		end()
		assert.Equal(t, want, got)
	}
}
