package patterns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
)

// An Approach is a strategy with the phrases that show it in a text.
//
// A phrase is a row of words, separated by spaces or hyphens. Case does not matter. A word may have
// alternatives, for example "split|splitting". A word with a star is the beginning of a word, for
// example "order*". Between two words of a phrase, a text may have articles and one other word.
// "..." permits up to six other words or commas.
type Approach struct {
	// Name is the strategy's name, from which [IDOf] makes the id of its pattern. It must have a
	// word.
	Name string
	// Phrases show that a text follows the strategy. One is enough. Prefer phrases with a verb, such
	// as "behind flag*", because a bare noun also occurs in texts about something else.
	Phrases []string
}

const (
	// gapMark stands in a phrase for a wide gap.
	gapMark  = "..."
	wideGap  = 6 // words and commas that "..." permits
	closeGap = 1 // other words between two words of a phrase

	mostArticles = 8 // that a text may have in addition, because each place has to be looked at
)

// A compiled approach is ready to match.
type compiled struct {
	// id and name are the approach's, and each phrase is its words in order.
	id      PatternID
	name    string
	phrases [][]word
}

// A word of a phrase matches one of several words of a text.
type word struct {
	either []string // a star at the end matches any rest
	gap    int      // how many other words may be before it
}

// compile prepares approaches for matching, or reports all their faults.
func compile(approaches []Approach) ([]compiled, error) {
	var found valid.Faults
	all := make([]compiled, len(approaches))
	for i, a := range approaches {
		all[i].id, all[i].name = IDOf(a.Name), a.Name
		field := fmt.Sprintf("Approaches[%d].", i)
		found.Check(valid.Names(maxID, "", a.Name) == nil && all[i].id != idPrefix, field+"Name",
			a.Name, fmt.Sprintf("must have a word, and at most %d bytes", maxID))
		found.Check(len(a.Phrases) > 0, field+"Phrases", a.Phrases, "must not be empty")
		for j, phrase := range a.Phrases {
			words := compilePhrase(phrase)
			found.Check(len(words) > 0 && !strings.ContainsAny(phrase, "?!"),
				fmt.Sprintf("%sPhrases[%d]", field, j), phrase, "must have a word, and no ? or !")
			all[i].phrases = append(all[i].phrases, words)
		}
	}
	return all, found.Err()
}

// compilePhrase divides a phrase into its words, each with the gap before it.
func compilePhrase(phrase string) (words []word) {
	gap := closeGap
	for _, text := range strings.FieldsFunc(strings.ToLower(phrase),
		func(r rune) bool { return unicode.IsSpace(r) || r == '-' }) {
		either := slices.DeleteFunc(strings.Split(text, "|"),
			func(s string) bool { return strings.Trim(s, "*.") == "" })
		switch {
		case text == gapMark:
			gap = wideGap
		case len(either) > 0:
			words, gap = append(words, word{either, gap}), closeGap
		}
	}
	return words
}

// matches reports whether a token is one of the alternatives.
func (w word) matches(token string) bool {
	return slices.ContainsFunc(w.either, func(s string) bool {
		beginning, open := strings.CutSuffix(s, "*")
		return token == s || open && strings.HasPrefix(token, beginning)
	})
}

// tokens divides a text into its words, in lower case, and its marks. Spaces, hyphens, quotes and
// emphasis only separate.
func tokens(text string) (all []string) {
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			all = append(all, strings.TrimRight(b.String(), "'"))
			b.Reset()
		}
	}
	for _, r := range strings.ToLower(strings.ReplaceAll(text, "\n\n", " . ")) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			b.WriteRune(r)
		case (r == '\'' || r == '’') && b.Len() > 0:
			b.WriteByte('\'')
		case unicode.IsSpace(r), strings.ContainsRune("-‐‑\"“”`*_'‘’", r):
			end()
		default:
			end()
			all = append(all, string(r))
		}
	}
	end()
	return all
}

// The lists of words.txt, which explains what each is for.
var (
	articles      = setOf("articles")
	clauseEnds    = setOf("clauseEnds")
	speakers      = setOf("speakers")
	refuses       = setOf("refuses")
	planned       = setOf("planned")
	harmless      = setOf("harmless")
	blames        = setOf("blames")
	referents     = setOf("referents")
	functionWords = setOf("functionWords")
)

// places returns where the words of a phrase may be in a text, if the word at a place begins it:
// one list for each place where the phrase may end. For each word, one way to each place is enough,
// so the time is bounded by the lengths of the phrase and its gaps. It keeps all words' places, and
// not only the last, because [finding.within] compares them.
func places(text []string, at int, words []word) (ways [][]int) {
	if !words[0].matches(text[at]) {
		return nil
	}
	ways = [][]int{{at}}
	for _, w := range words[1:] {
		var longer [][]int
		reached := make(map[int]bool)
		for _, way := range ways {
			for _, i := range w.after(text, way[len(way)-1]) {
				if !reached[i] {
					reached[i], longer = true, append(longer, append(slices.Clip(way), i))
				}
			}
		}
		ways = longer
	}
	return ways
}

// after returns the places behind another one where the word may be. It ends at a mark, because a
// phrase does not go on in the next clause. Within a wide gap, commas, slashes and brackets are
// words that may be skipped.
func (w word) after(text []string, at int) (all []int) {
	end := min(len(text), at+w.gap+mostArticles)
	for i, others := at+1, 0; i < end && others <= w.gap; i++ {
		t := text[i]
		if w.matches(t) {
			all = append(all, i)
		}
		wide := w.gap == wideGap && (t == "," || t == "/" || t == "(" || t == ")")
		if isMark(t) && !wide {
			break
		}
		if !articles[t] {
			others++
		}
	}
	return all
}

// isMark reports whether a token is no word.
func isMark(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	})
}

// follows reports whether a text follows a phrase whose last word is at a place. It does not if the
// phrase's clause refuses it before, or finds fault with it afterwards, or if the sentence is a
// question. It reads backwards to the beginning of the clause, and forwards to the end of the
// sentence, or of the next one if that is about this one.
func follows(text []string, last int) bool {
	for i := last - 1; i >= 0; i-- {
		before := at(text, i-1)
		switch t := text[i]; {
		case denies(text, i):
			return false
		case t == ":" && (denies(text, i-1) || denies(text, i-2)): // "next time: …"
			return false
		case clauseEnds[t], speakers[t] && !refuses[before] && before != "what":
			i = 0
		}
	}
	judging := true
	for i := last + 1; i < len(text); i++ {
		switch t := text[i]; {
		case t == "?":
			return false
		case judging && (blames[t] || strings.HasSuffix(t, "n't")):
			return false
		case t == "." || t == ";" || t == "!":
			if judging = judging && referents[at(text, i+1)]; !judging {
				return true
			}
		case clauseEnds[t], t == "," && at(text, i+1) == "not":
			judging = judging && referents[at(text, i+1)]
		}
	}
	return true
}

// denies reports whether the word at a place refuses what comes after it. An ending of "n't" covers
// all contracted verbs.
func denies(text []string, i int) bool {
	t, next := at(text, i), at(text, i+1)
	switch {
	case harmless[next]:
		return false
	case planned[t]:
		return next == "was" || next == "were" || next == "had"
	}
	return refuses[t] || strings.HasSuffix(t, "n't")
}

// at returns the word at a place, or "" outside of the text.
func at(text []string, i int) string {
	if i < 0 || i >= len(text) {
		return ""
	}
	return text[i]
}

// A finding is a phrase of an approach in a text.
type finding struct {
	// approach is the index of the approach, and places are the words of the text that its phrase
	// has.
	approach int
	places   []int
}

// within reports whether a phrase of another approach has all words of this one, and more: it means
// the same more exactly.
func (f *finding) within(other *finding) bool {
	return f.approach != other.approach && len(other.places) > len(f.places) &&
		!slices.ContainsFunc(f.places, func(p int) bool { return !slices.Contains(other.places, p) })
}

// findings returns the phrases that a text has.
func (r *Recorder) findings(ctx context.Context, text []string) (all []finding, err error) {
	for start := range text {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range r.approaches {
			for _, phrase := range r.approaches[i].phrases {
				for _, found := range places(text, start, phrase) {
					all = append(all, finding{i, found})
				}
			}
		}
	}
	return all, nil
}

// Extract returns the patterns of the approaches that a text follows by its words, each once, in
// the order of Config.Approaches. It leaves out what the text negates, only intends, finds fault
// with or asks about. Words can't show more than that, and it misses about half of what people
// write in other words, so [Outcome].Patterns of a host that knows what was done is better.
// [Config].Extract has the last word. Put the result into [Outcome].Patterns if the text is what
// the agent did.
func (r *Recorder) Extract(ctx context.Context, text string) (ids []PatternID, err error) {
	words := tokens(text)
	all, err := r.findings(ctx, words)
	if err != nil {
		return nil, failed("extract", err)
	}
	for i := range r.approaches {
		id := r.approaches[i].id
		shown := slices.ContainsFunc(all, func(f finding) bool {
			return f.approach == i && follows(words, f.places[len(f.places)-1]) &&
				!slices.ContainsFunc(all, func(other finding) bool { return f.within(&other) })
		})
		if shown && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if r.cfg.Extract == nil {
		return ids, nil
	}
	err = host.Call("Config.Extract", func() (err error) {
		ids, err = r.cfg.Extract(ctx, text, ids)
		return err
	})
	if err == nil {
		err = checkIDs(ids)
	}
	if err != nil {
		return nil, failed("extract", err)
	}
	return ids, nil
}

// contentOf returns the content of a pattern without a definition: the name of its approach, or
// else its id.
func (r *Recorder) contentOf(id PatternID) string {
	for i := range r.approaches {
		if r.approaches[i].id == id {
			return r.approaches[i].name
		}
	}
	return string(id)
}

// idPrefix begins the id of a strategy.
const idPrefix = "pattern-"

// IDOf returns the id of the strategy of this name, for example "pattern-split-by-file-type".
func IDOf(name string) PatternID {
	return PatternID(idPrefix + strings.Join(slices.DeleteFunc(tokens(name), isMark), "-"))
}
