package web

import (
	"strings"
	"unicode"
)

// A stretch is a part of a text that was left as it is, taken out, or put in.
type stretch struct {
	Text    string
	Out, In bool
}

const mostCompared = 2000 // words of both texts together, beyond which they are shown one after the other

// differences compares two texts by their words.
func differences(before, after string) []stretch {
	a, b := split(before), split(after)
	if len(a)+len(b) > mostCompared {
		return []stretch{{Text: before, Out: true}, {Text: after, In: true}}
	}
	// common[i][j] is the length of the longest common part of a[i:] and b[j:].
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var found []stretch
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			found = extend(found, stretch{Text: a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			found = extend(found, stretch{Text: a[i], Out: true})
			i++
		default:
			found = extend(found, stretch{Text: b[j], In: true})
			j++
		}
	}
	return found
}

// extend adds a stretch to those before it, and to the last one if that is of its sort.
func extend(all []stretch, p stretch) []stretch {
	if last := len(all) - 1; last >= 0 && all[last].Out == p.Out && all[last].In == p.In {
		all[last].Text += p.Text
		return all
	}
	return append(all, p)
}

// split cuts a text into words and what is between them.
func split(text string) (parts []string) {
	var b strings.Builder
	space := false
	for i, r := range text {
		if is := unicode.IsSpace(r); i > 0 && is != space {
			parts = append(parts, b.String())
			b.Reset()
			space = is
		} else if i == 0 {
			space = is
		}
		b.WriteRune(r)
	}
	if b.Len() > 0 {
		parts = append(parts, b.String())
	}
	return parts
}
