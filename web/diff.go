package web

import "strings"

// A stretch is a part of a text that was left as it is, taken out, or put in.
type stretch struct {
	Text    string
	Out, In bool
}

// differences compares two texts: what is between the words with which both begin and those with
// which both end was taken out or put in.
func differences(before, after string) (found []stretch) {
	a, b := strings.SplitAfter(before, " "), strings.SplitAfter(after, " ")
	begin, end, most := 0, 0, min(len(a), len(b))
	for begin < most && a[begin] == b[begin] {
		begin++
	}
	for end < most-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	text := func(words []string) string { return strings.Join(words, "") }
	for _, s := range []stretch{
		{Text: text(a[:begin])}, {Text: text(a[begin : len(a)-end]), Out: true},
		{Text: text(b[begin : len(b)-end]), In: true}, {Text: text(a[len(a)-end:])},
	} {
		if s.Text != "" {
			found = append(found, s)
		}
	}
	return found
}
