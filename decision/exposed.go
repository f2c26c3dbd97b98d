package decision

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heedhq/heed"
	words "github.com/heedhq/heed/internal/text"
)

// exposed returns the withheld candidates whose action the model saw all the same: by a shown
// candidate that is much like it, or by any other text of the prompt, word for word. If the answer
// agrees, a text that reads nearly like the action is enough. It returns candidates without an
// action, too.
func (d *Decider) exposed(
	ctx context.Context, r *Request, res *Result, s heed.Similarity, shown, withheld []Candidate,
	agree map[string]bool,
) (map[string]bool, error) {
	exposed := make(map[string]bool, len(withheld))
	if len(withheld) == 0 {
		return exposed, nil
	}
	texts := append([]string{res.System, res.Prompt}, r.Told...)
	for _, c := range shown {
		texts = append(texts, c.Condition, c.Action) // the prompt has them in quotes
	}
	all := strings.Join(texts, "\n")
	readable, parts := plain(all), sentences(words.Fold(all))
	for _, c := range withheld {
		action := plain(c.Action)
		exposed[c.HeuristicID] = action.letters == "" || readable.has(action) ||
			agree[c.HeuristicID] && nearly(sentences(words.Fold(c.Action)), parts)
	}
	for _, c := range shown {
		similarities, err := compare(ctx, d.similar, s, c.Action, actions(withheld))
		if err != nil {
			return nil, err
		}
		for i, x := range similarities {
			if x >= same {
				exposed[withheld[i].HeuristicID] = true
			}
		}
	}
	return exposed, nil
}

const (
	maxSentences  = 1000 // of a prompt that are looked at
	sameSentences = 0.75 // the likeness in trigrams from which on two texts differ in spelling alone
)

// sentences returns the first sentences and lines of a text.
func sentences(text string) []string {
	all := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(".!?\n。！？", r) })
	return all[:min(len(all), maxSentences)]
}

// nearly reports whether as many sentences in a row as there are of a text read nearly alike.
func nearly(own, others []string) bool {
	letters := words.Trigrams(strings.Join(own, " "))
	for i := range max(len(others)-len(own)+1, min(len(others), 1)) {
		row := others[i:min(i+len(own), len(others))]
		if words.Jaccard(letters, words.Trigrams(strings.Join(row, " "))) >= sameSentences {
			return true
		}
	}
	return false
}

// A saying is a text as it is compared.
type saying struct {
	words   string // with one blank before and behind each
	letters string // without blanks
	edges   []bool // where in letters a word may begin or end: in a script without blanks, anywhere
}

// plain returns the words of a text, whatever their spelling: see [words.Fold].
func plain(text string) saying {
	all := strings.FieldsFunc(words.Fold(text),
		func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) })
	s := saying{words: " " + strings.Join(all, " ") + " ", letters: strings.Join(all, "")}
	s.edges = make([]bool, len(s.letters)+1)
	at := 0
	for _, word := range all {
		s.edges[at] = true
		for i, r := range word {
			if words.Dense(r) {
				s.edges[at+i], s.edges[at+i+utf8.RuneLen(r)] = true, true
			}
		}
		at += len(word)
	}
	s.edges[at] = true
	return s
}

// has reports whether a text has another one in it, with the same blanks or with others.
func (s saying) has(other saying) bool {
	if strings.Contains(s.words, other.words) {
		return true
	}
	const most = 1000 // places at which it may begin
	begin := 0
	for range most {
		i := strings.Index(s.letters[begin:], other.letters)
		if i < 0 || other.letters == "" {
			return false
		}
		if begin += i; s.edges[begin] && s.edges[begin+len(other.letters)] {
			return true
		}
		_, n := utf8.DecodeRuneInString(s.letters[begin:])
		begin += n
	}
	return false
}
