package text_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/learning"
)

// Every channel of package learning has words, and none of them is its name.
func TestChannelWords(t *testing.T) {
	for _, name := range []string{
		learning.ChannelExplicit, learning.ChannelDev, learning.ChannelTimeout, learning.ChannelUndo, learning.ChannelIgnored,
		learning.ChannelOutcome, learning.ChannelAgreement, "silence",
	} {
		assert.Contains(t, text.ChannelWords(name), " ", name)
	}
	assert.Equal(t, "thumb", text.ChannelWords("thumb"))
	assert.Equal(t, "the user took it back, thumb", text.ChannelsWords("implicit_undo, thumb"))
}
