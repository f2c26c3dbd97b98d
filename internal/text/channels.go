package text

import "strings"

// ChannelWords says how something is known, by the name of its channel. Names of the host's own stay as they are.
func ChannelWords(name string) string {
	switch name { // those of package learning, which explains them
	case "user_explicit":
		return "a user said it"
	case "dev":
		return "a developer said it"
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

// ChannelsWords is [ChannelWords] for names that are joined by commas.
func ChannelsWords(names string) string {
	all := strings.Split(names, ",")
	for i, name := range all {
		all[i] = ChannelWords(strings.TrimSpace(name))
	}
	return strings.Join(all, ", ")
}
