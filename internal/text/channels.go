package text

import (
	"cmp"
	"strings"
)

// ChannelWords describes how something is known, by the name of its channel. Names of the host's
// own stay as they are. Pages, the command and the pages of an answer use it. The words begin with
// who spoke, and [StatementWords] relies on that.
func ChannelWords(name string) string {
	switch name { // the channels of package learning, which explains them
	case "user_explicit":
		return "a user said it"
	case "dev":
		return "a developer said it"
	case "outcome":
		return "an outcome was reported"
	case "implicit_timeout", "silence":
		return "nobody said anything"
	case "implicit_undo":
		return "the user took it back"
	case "implicit_ignored":
		return "the user went on without a word"
	case "implicit_outcome":
		return "an outcome came"
	case "agreement":
		return "the model said the same"
	}
	return name
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
	case strings.HasPrefix(words, "nobody "):
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
