package channels_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedhq/heed/internal/channels"
	"github.com/heedhq/heed/learning"
)

// Every channel of package learning has words, and none of them is its name.
func TestWords(t *testing.T) {
	for _, name := range []string{
		learning.ChannelExplicit, learning.ChannelDev, learning.ChannelTimeout, learning.ChannelUndo, learning.ChannelIgnored,
		learning.ChannelOutcome, learning.ChannelAgreement, "silence",
	} {
		assert.Contains(t, channels.Words(name), " ", name)
	}
	assert.Equal(t, "thumb", channels.Words("thumb"))
	assert.Equal(t, "the user took it back, thumb", channels.List("implicit_undo, thumb"))
}
