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
		learning.ChannelExplicit, learning.ChannelDev, learning.ChannelTimeout,
		learning.ChannelUndo, learning.ChannelIgnored,
		learning.ChannelOutcome,
		learning.ChannelReported, learning.ChannelAgreement, "silence",
	} {
		assert.Contains(t, text.ChannelWords(name), " ", name)
	}
	assert.Equal(t, "thumb", text.ChannelWords("thumb"))
	assert.Equal(t, "the user took it back, thumb", text.ChannelsWords("implicit_undo, thumb"))
}

// An instrument is not called a user, and a source is named if it is known.
func TestStatementWords(t *testing.T) {
	for want, of := range map[string][3]string{
		"a user said it by ann":                     {"user_explicit", "person", "ann"},
		"a user said it":                            {"user_explicit", "person", ""},
		"the instrument ci reported an outcome":     {"outcome", "instrument", "ci"},
		"the instrument pay reported: paid":         {"paid", "instrument", "pay"},
		"the instrument without a name reported: x": {"x", "instrument", ""},
		"an outcome was reported by desk":           {"outcome", "", "desk"},
		"nobody said anything":                      {"implicit_timeout", "", ""},
	} {
		assert.Equal(t, want, text.StatementWords(of[0], of[1], of[2]))
	}
}
