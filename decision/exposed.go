package decision

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heedhq/heed"
	words "github.com/heedhq/heed/internal/text"
)

// exposed returns the withheld candidates whose action the model saw all the same: by a shown
// candidate that is much like it, or by any other text of the prompt, word for word. Where the
// answer agrees, it also looks for sentences that are much like the action, because the model may
// have taken the action from there. It returns candidates without an action, too.
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
	readable := plain(all)
	for _, c := range withheld {
		action := plain(c.Action)
		exposed[c.HeuristicID] = action.letters == "" || readable.has(action)
	}
	for _, c := range shown {
		similarities, err := compare(ctx, d.similar, s, c.Action, actions(withheld))
		if err != nil {
			return nil, err
		}
		for i, x := range similarities {
			if x >= d.cfg.SimilarityThreshold {
				exposed[withheld[i].HeuristicID] = true
			}
		}
	}
	least := 0.
	// each call of a model costs, so it must look like a paraphrase
	if _, ok := s.(*sameMeaning); ok {
		least = mayParaphrase
	}
	folding := func(text string) string { return text }
	if _, ok := s.(heed.Trigrams); ok { // others may compare meanings
		folding = words.Fold
	}
	parts := sentences(folding(all), maxSentences)
	for _, c := range withheld {
		if exposed[c.HeuristicID] || !agree[c.HeuristicID] {
			continue
		}
		action := folding(c.Action)
		likely := likeliest(action, parts, least)
		if len(likely) == 0 {
			continue
		}
		similarities, err := compare(ctx, d.similar, s, action, likely)
		if err != nil {
			return nil, err
		}
		exposed[c.HeuristicID] = slices.Max(similarities) >= d.cfg.SimilarityThreshold
	}
	return exposed, nil
}

const (
	maxSentences  = 1000 // of a prompt that are looked at
	mayParaphrase = 0.25 // the likeness in trigrams from which on a model is asked
)

// likeliest returns the parts of a text that share the most with an action, as many as can be
// compared in one call. Each has as many sentences as the action. A part that shares less than
// least, or no word, is left out.
func likeliest(action string, sentences []string, least float64) []string {
	type part struct {
		text string
		like float64
	}
	n := max(len(sentencesOf(action)), 1)
	own := words.Trigrams(action)
	var parts []part
	for i := range max(len(sentences)-n+1, min(len(sentences), 1)) {
		joined := strings.Join(sentences[i:min(i+n, len(sentences))], " ")
		like := words.Jaccard(own, words.Trigrams(joined))
		if like > 0 && like >= least && utf8.RuneCountInString(joined) <= maxComparedText {
			parts = append(parts, part{joined, like})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.like, a.like) })
	var texts []string
	for _, p := range parts[:min(len(parts), maxCompared)] {
		texts = append(texts, p.text)
	}
	return texts
}

// sentences returns the first sentences and lines of a text.
func sentences(text string, most int) []string {
	all := sentencesOf(text)
	return all[:min(len(all), most)]
}

func sentencesOf(text string) (all []string) {
	begin := 0
	add := func(end int) {
		if s := strings.TrimSpace(text[begin:end]); s != "" {
			all = append(all, s)
		}
	}
	for i, r := range text {
		if !strings.ContainsRune(".!?\n。！？", r) {
			continue
		}
		if next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):]); r != '.' ||
			unicode.IsSpace(next) || next == utf8.RuneError {
			add(i + utf8.RuneLen(r))
			begin = i + utf8.RuneLen(r)
		}
	}
	add(len(text))
	return all
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
