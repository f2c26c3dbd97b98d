package text

import (
	"cmp"
	"strings"
)

// ChannelWords describes how something is known, by the name of its channel. Names of the host's
// own stay as they are. Pages, the command and the pages of an answer use it. The words begin with
// who spoke, and [StatementWords] relies on that.
func ChannelWords(name string) string { return cmp.Or(channelWords[name], name) }

// channelWords has the channels of package learning, which explains them.
var channelWords = map[string]string{
	"user_explicit":    "a user said it",
	"dev":              "a developer said it",
	"outcome":          "an outcome was reported",
	"implicit_timeout": "no user reacted",
	"silence":          "no user reacted",
	"implicit_undo":    "the user took it back",
	"implicit_ignored": "the user went on without a word",
	"implicit_outcome": "an outcome came",
	"agreement":        "the model said the same",
}

// StatementWords describes how something is known and from whom: a person or an instrument by name,
// a user who is not known, or silence. kind is an answer.SourceKind, or "" if it is not known. The
// words of a channel begin with who spoke, so a known person's name takes the place of that. An
// instrument reports, and does not speak. For example "user_explicit" from "ana" is "ana said it".
func StatementWords(channel, kind, source string) string {
	words := ChannelWords(channel)
	who := cmp.Or(source, "an unknown user")
	for _, subject := range []string{"a user ", "the user ", "a developer "} {
		if did, is := strings.CutPrefix(words, subject); is && kind != "instrument" {
			return who + " " + did
		}
	}
	switch {
	case kind == "instrument" && channel == "outcome":
		return "the instrument " + cmp.Or(source, "without a name") + " reported an outcome"
	case kind == "instrument":
		return "the instrument " + cmp.Or(source, "without a name") + " reported: " + words
	case source == "":
		return words
	case channel == "outcome":
		return source + " reported an outcome"
	case strings.HasPrefix(words, "no user "):
		return source + " said nothing"
	}
	return words + " by " + source
}

// ChannelsWords is [ChannelWords] for names that are joined by commas.
func ChannelsWords(names string) string {
	all := strings.Split(names, ",")
	for i, name := range all {
		all[i] = ChannelWords(strings.TrimSpace(name))
	}
	return strings.Join(all, ", ")
}
