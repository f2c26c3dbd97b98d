package patterns

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/heedhq/heed/internal/faults"
)

// An Approach is a strategy with the phrases that show it in a text.
//
// A phrase is a row of words, separated by spaces or hyphens. Case does not matter. A word may be several, "split|splitting". A
// word with a question mark may be missing, "in?". A word with a star is the beginning of a word, "order*".
type Approach struct {
	Name    string
	Phrases []string
}

// Approaches returns the twelve strategies of decomposition that the learning-systems design detects. Append your own.
func Approaches() []Approach {
	return []Approach{
		{"Split by file type", []string{"split|splitting by file type*"}},
		{"Split by component", []string{"split|splitting by component*"}},
		{"Split by layer (UI/logic/data)", []string{"split|splitting by layer*"}},
		{"Split by feature", []string{"split|splitting by feature*"}},
		{"One file per subtask", []string{"one file per task*|subtask*"}},
		{"Handle shared types first", []string{"shared type|types first"}},
		{"Separate API routes", []string{"api route|routes? separate*", "separate* api route|routes"}},
		{"Tests alongside implementation", []string{"test|tests with|alongside code|implementation*"}},
		{"Tests in separate subtask", []string{"test|tests in? separate task*|subtask*"}},
		{"Maximize parallelization", []string{
			"parallel|parallelize|parallelise all|everything", "maximize|maximise parallelization|parallelisation|parallelism",
		}},
		{"Sequential execution order", []string{"sequential order*|execution*"}},
		{"Respect dependency chain", []string{"dependency chain*|order*"}},
	}
}

func (a *Approach) validate() error {
	var found faults.List
	found.Check(checkIDs(field{"", a.Name}) == nil && IDOf(a.Name) != idPrefix, "Name", a.Name, fmt.Sprintf("must have a word, and at most %d bytes", maxID))
	found.Check(len(a.Phrases) > 0, "Phrases", a.Phrases, "must not be empty")
	for i, phrase := range a.Phrases {
		needed := slices.ContainsFunc(compilePhrase(phrase), func(w word) bool { return !w.optional && len(w.either) > 0 })
		found.Check(needed, fmt.Sprintf("Phrases[%d]", i), phrase, "must have a word that may not be missing")
	}
	return found.Err()
}

// A compiled approach is ready to match.
type compiled struct {
	id      PatternID
	name    string
	phrases [][]word
}

type word struct {
	either   []string // a star at the end stands for any rest
	optional bool
}

func compile(approaches []Approach) []compiled {
	all := make([]compiled, len(approaches))
	for i, a := range approaches {
		all[i].id, all[i].name = IDOf(a.Name), a.Name
		for _, phrase := range a.Phrases {
			all[i].phrases = append(all[i].phrases, compilePhrase(phrase))
		}
	}
	return all
}

func compilePhrase(phrase string) (words []word) {
	for _, text := range strings.Fields(strings.ToLower(phrase)) {
		text, optional := strings.CutSuffix(text, "?")
		either := slices.DeleteFunc(strings.Split(text, "|"), func(s string) bool { return strings.Trim(s, "*") == "" })
		words = append(words, word{either, optional})
	}
	return words
}

func (w word) matches(token string) bool {
	return slices.ContainsFunc(w.either, func(s string) bool {
		beginning, open := strings.CutSuffix(s, "*")
		return token == s || open && strings.HasPrefix(token, beginning)
	})
}

// tokens divides a text into its words, in lower case, and its marks. Spaces and hyphens only separate.
func tokens(text string) (all []string) {
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			all = append(all, b.String())
			b.Reset()
		}
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			b.WriteRune(r)
		case (r == '\'' || r == '’') && b.Len() > 0:
			b.WriteByte('\'')
		case unicode.IsSpace(r), r == '-', r == '‐', r == '‑':
			end()
		default:
			end()
			all = append(all, string(r))
		}
	}
	end()
	return all
}

// matchesAt reports whether the words stand in the text from there on.
func matchesAt(words []word, text []string) bool {
	for i, w := range words {
		switch {
		case len(text) > 0 && w.matches(text[0]):
			if w.optional && matchesAt(words[i+1:], text) {
				return true
			}
			text = text[1:]
		case !w.optional:
			return false
		}
	}
	return true
}

// negationReach is how many words before a phrase may hold what negates it.
const negationReach = 8

// negated reports whether these words reject the text after them: their last clause has a negation, and no "but" after it.
func negated(before []string) bool {
	for i, reach := len(before)-1, 0; i >= 0 && reach < negationReach; i, reach = i-1, reach+1 {
		next := ""
		if i+1 < len(before) {
			next = before[i+1]
		}
		switch t := before[i]; {
		case slices.Contains([]string{".", ",", ";", "!", "?", "but"}, t):
			return false
		case t == "not" && (next == "only" || next == "just"):
		case t == "instead" && next == "of", t == "rather" && next == "than", strings.HasSuffix(t, "n't"):
			return true
		case slices.Contains([]string{
			"not", "never", "no", "avoid", "avoiding", "avoided", "without", "cannot", "dont", "stop", "against", "refuse", "forbid", "forbidden",
		}, t):
			return true
		}
	}
	return false
}

func (c *compiled) in(text []string) bool {
	for at := range text {
		for _, words := range c.phrases {
			if matchesAt(words, text[at:]) && !negated(text[:at]) {
				return true
			}
		}
	}
	return false
}

// Extract returns the patterns of the approaches that a text speaks of, each once, in the order of Config.Approaches. Approaches
// that the text rejects ("don't split by layer", "instead of splitting by layer") are not among them. Put the result into
// [Outcome].Patterns if the text is what the agent did.
func (r *Recorder) Extract(text string) (ids []PatternID) {
	all := tokens(text)
	for i := range r.approaches {
		if c := &r.approaches[i]; !slices.Contains(ids, c.id) && c.in(all) {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// contentOf returns what a pattern says that nobody has defined: the name of its approach, or else its id.
func (r *Recorder) contentOf(id PatternID) string {
	for i := range r.approaches {
		if r.approaches[i].id == id {
			return r.approaches[i].name
		}
	}
	return string(id)
}

const idPrefix = "pattern-"

// IDOf returns the id of the strategy of this name, as "pattern-split-by-file-type".
func IDOf(name string) PatternID {
	words := slices.DeleteFunc(tokens(name), func(t string) bool {
		return !strings.ContainsFunc(t, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	})
	return PatternID(idPrefix + strings.Join(words, "-"))
}
