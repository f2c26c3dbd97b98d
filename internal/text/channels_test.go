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
		"ann said it":                               {"user_explicit", "person", "ann"},
		"an unknown user said it":                   {"user_explicit", "unknown", ""},
		"ann took it back":                          {"implicit_undo", "person", "ann"},
		"dev said it":                               {"dev", "", "dev"},
		"the instrument ci reported an outcome":     {"outcome", "instrument", "ci"},
		"the instrument pay reported: paid":         {"paid", "instrument", "pay"},
		"the instrument without a name reported: x": {"x", "instrument", ""},
		"desk reported an outcome":                  {"outcome", "", "desk"},
		"an outcome was reported":                   {"outcome", "unknown", ""},
		"no user reacted":                           {"implicit_timeout", "", ""},
		"ann said nothing":                          {"implicit_timeout", "person", "ann"},
		"thumb by ann":                              {"thumb", "person", "ann"},
	} {
		assert.Equal(t, want, text.StatementWords(of[0], of[1], of[2]))
	}
}
