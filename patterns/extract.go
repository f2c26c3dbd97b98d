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
// alternatives, for example "split|splitting". A word with a question mark may be missing, for
// example "in?". A word with a star is the beginning of a word, for example "order*". Between two
// words of a phrase, a text may have up to six articles and one other word. "..." matches up to six
// words or commas; a phrase has at most three.
type Approach struct {
	Name    string
	Phrases []string
}

func (a *Approach) validate() error {
	var found valid.Faults
	found.Check(checkIDs(field{"", a.Name}) == nil && IDOf(a.Name) != idPrefix, "Name", a.Name,
		fmt.Sprintf("must have a word, and at most %d bytes", maxID))
	found.Check(len(a.Phrases) > 0, "Phrases", a.Phrases, "must not be empty")
	for i, phrase := range a.Phrases {
		words, gaps := compilePhrase(phrase), strings.Count(phrase, gapMark)
		needed := slices.ContainsFunc(words, func(w word) bool {
			return !w.optional &&
				len(w.either) > 0
		})
		name := fmt.Sprintf("Phrases[%d]", i)
		found.Check(needed, name, phrase, "must have a word that may not be missing")
		found.Check(gaps <= maxGaps, name, phrase, fmt.Sprintf("must have at most %d gaps", maxGaps))
	}
	return found.Err()
}

const (
	gapMark = "..."
	maxGaps = 3 // of a phrase, so that matching stays cheap
	wideGap = 6 // words and commas
)

// A compiled approach is ready to match.
type compiled struct {
	id      PatternID
	name    string
	phrases [][]word
}

type word struct {
	either   []string // a star at the end matches any rest
	optional bool
	wide     bool // a "..." is before it
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
	wide := false
	for _, text := range strings.FieldsFunc(strings.ToLower(phrase),
		func(r rune) bool { return unicode.IsSpace(r) || r == '-' }) {
		if text == gapMark {
			wide = len(words) > 0
			continue
		}
		text, optional := strings.CutSuffix(text, "?")
		either := slices.DeleteFunc(strings.Split(text, "|"),
			func(s string) bool { return strings.Trim(s, "*") == "" })
		words, wide = append(words, word{either, optional, wide}), false
	}
	return words
}

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
	runes := []rune(strings.ToLower(text))
	at := func(i int) rune {
		if i < 0 || i >= len(runes) {
			return ' '
		}
		return runes[i]
	}
	for i, r := range runes {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			b.WriteRune(r)
		case (r == '\'' || r == '’') && b.Len() > 0:
			b.WriteByte('\'')
		case r == ',' && unicode.IsDigit(at(i-1)) && unicode.IsDigit(at(i+1)): // of "2,300"
		case r == '.' && !unicode.IsSpace(at(i-1)) &&
			(unicode.IsLetter(at(i+1)) || unicode.IsDigit(at(i+1))):
			end() // of "types.go"
		case r == '-' && unicode.IsSpace(at(i-1)) && unicode.IsSpace(at(i+1)):
			end()
			all = append(all, "—")
		case r == '\n' && at(i+1) == '\n':
			end()
			all = append(all, ".")
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

// plainer leaves out the "in order" of "in order to", which does not describe an order, and names
// the tests where "they" are meant.
func plainer(text []string) []string {
	kept, meant := text[:0], ""
	for i := 0; i < len(text); i++ {
		switch t := text[i]; {
		case t == "in" && at(text, i+1) == "order" && at(text, i+2) == "to":
			i++
			continue
		case plurals[t]:
			meant = t
		case (t == "they" || t == "them") && meant == "tests":
			text[i] = meant
		}
		kept = append(kept, text[i])
	}
	return kept
}

// plurals are words to which "they" may refer, persons or things.
var plurals = setOf(`tests agents workers subtasks tasks steps commits changes types interfaces layers features files routes endpoints
	modules components we reviewers engineers developers users colleagues people team`)

var articles = setOf(
	"a an the all any each every its their our my your his her this that these those only just " +
		"also always own very")

// A set is a set of words.
type set map[string]bool

func (s set) has(word string) bool { return s[word] }

func setOf(words string) set {
	set := make(set)
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

func isMark(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool {
		return unicode.IsLetter(r) ||
			unicode.IsDigit(r)
	})
}

// mostArticles is how many articles a text may have between two words of a phrase.
const mostArticles = 6

// A matcher finds one phrase in a text. It remembers where the rest of the phrase does not match,
// so that each place is tried once for each word, however many words may be missing.
type matcher struct {
	words  []word
	text   []string
	failed map[[2]int]bool // the first word of the rest, and the place
}

// match returns the places of the words of the phrase from one on, in the text from a place on.
// first reports that no word was matched yet.
func (m *matcher) match(from, at int, first bool) (places []int, ok bool) {
	if from == len(m.words) {
		return nil, true
	}
	if !first && m.failed[[2]int{from, at}] {
		return nil, false
	}
	if m.words[from].optional {
		if places, ok = m.match(from+1, at, first); ok {
			return places, true
		}
	}
	if places, ok = m.next(from, at, first); ok || first {
		return places, ok
	}
	if from > 1 { // the second word is tried once
		if m.failed == nil {
			m.failed = make(map[[2]int]bool)
		}
		m.failed[[2]int{from, at}] = true
	}
	return nil, false
}

// next matches the phrase from a word that is there.
func (m *matcher) next(from, at int, first bool) (places []int, ok bool) {
	w, others, skipped := &m.words[from], 0, 0
	for i := at; i < len(m.text); i++ {
		if w.matches(m.text[i]) {
			if rest, ok := m.match(from+1, i+1, false); ok {
				return append([]int{i}, rest...), true
			}
		}
		switch t := m.text[i]; {
		case first:
			return nil, false
		case w.wide:
			others++
			if others > wideGap || isMark(t) && t != "," && t != "/" && t != "(" && t != ")" {
				return nil, false
			}
		case isMark(t):
			return nil, false
		case articles[t]:
			if skipped++; skipped > mostArticles {
				return nil, false
			}
		default:
			if others++; others > 1 {
				return nil, false
			}
		}
	}
	return nil, false
}

// A finding is a phrase of an approach in a text.
type finding struct {
	approach int
	places   []int
	followed bool
}

// within reports whether a phrase of another approach means the same more exactly: it is longer and
// has all words of this one, or it has two of them, the last too, and goes on after it ("subtask
// per file", "subtask per file type").
func (f *finding) within(other *finding) bool {
	shared := 0
	for _, p := range f.places {
		if slices.Contains(other.places, p) {
			shared++
		}
	}
	last := f.places[len(f.places)-1]
	longer := shared == len(f.places) && len(other.places) > shared
	goesOn := shared > 1 && slices.Contains(other.places, last) &&
		other.places[len(other.places)-1] > last
	return f.approach != other.approach && (longer || goesOn)
}

// findings returns all phrases that a text has.
func (r *Recorder) findings(ctx context.Context, text []string) (all []finding, err error) {
	type phrase struct {
		approach int
		words    []word
	}
	starts := make(map[string][]phrase) // phrases that may begin with this token
	undone := unreal(text)
	for at, token := range text {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		mine, known := starts[token]
		if !known {
			for i := range r.approaches {
				for _, words := range r.approaches[i].phrases {
					if mayBegin(words, token) {
						mine = append(mine, phrase{i, words})
					}
				}
			}
			starts[token] = mine
		}
		for _, p := range mine {
			m := matcher{words: p.words, text: text}
			if places, ok := m.match(0, at, true); ok && len(places) > 0 {
				all = append(all, finding{p.approach, places, !undone[places[len(places)-1]] &&
					!rejected(text, places)})
			}
		}
	}
	return all, nil
}

func mayBegin(words []word, token string) bool {
	for _, w := range words {
		if w.matches(token) || !w.optional {
			return w.matches(token)
		}
	}
	return false
}

// Extract returns the patterns of the approaches that a text mentions, each once, in the order of
// Config.Approaches. Approaches that the text rejects ("don't split by layer", "splitting by layer
// was a mistake") or asks about are not among them. Config.Extract has the last word. Put the
// result into [Outcome].Patterns if the text is what the agent did.
func (r *Recorder) Extract(ctx context.Context, text string) (ids []PatternID, err error) {
	all, err := r.findings(ctx, plainer(tokens(text)))
	if err != nil {
		return nil, failed("extract", err)
	}
	for i := range r.approaches {
		if err := ctx.Err(); err != nil {
			return nil, failed("extract", err)
		}
		id := r.approaches[i].id
		shown := slices.ContainsFunc(all, func(f finding) bool {
			return f.approach == i && f.followed &&
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
		err = checkList("Patterns", ids, maxNames, maxID)
	}
	if err == nil && slices.Contains(ids, "") {
		err = inputError("Patterns", "must not have an empty name")
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

const idPrefix = "pattern-"

// IDOf returns the id of the strategy of this name, for example "pattern-split-by-file-type".
func IDOf(name string) PatternID {
	words := slices.DeleteFunc(tokens(name), func(t string) bool {
		return !strings.ContainsFunc(t, func(r rune) bool {
			return unicode.IsLetter(r) ||
				unicode.IsDigit(r)
		})
	})
	return PatternID(idPrefix + strings.Join(words, "-"))
}
