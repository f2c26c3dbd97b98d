package feedback

import (
	"context"
	"fmt"
	"strings"
	"unicode"
)

// Similarity says how alike texts are. It is one of several things that have to hold before two texts are taken to say the
// same: they must also not contradict each other, see [Oppose], which no similarity can tell.
//
// An implementation must be safe for concurrent use by multiple goroutines, and must return when the context is done.
type Similarity interface {
	// Scores returns how alike the text is to each of the others, in their order: from 0, nothing in common, to 1.
	Scores(ctx context.Context, text string, others []string) ([]float64, error)
	// Traits says how its scores are to be read. They must not change.
	Traits() Traits
}

// Traits say how the scores of a [Similarity] are to be read.
type Traits struct {
	Threshold float64 // from this score on, texts are taken to be alike; in (0, 1]
	Ceiling   float64 // the most that a confidence may be that rests on these scores, in (0, 1]
}

// Trigrams is the similarity that needs no model: the share of letter trigrams that two texts have in common (the Jaccard
// index; each word with two blanks before it and one behind, as in PostgreSQL's pg_trgm). Of scripts that are written
// without blanks between words, single characters and pairs of them take the place of trigrams.
//
// It sees wording and not meaning: texts that say the same in other words are not alike to it. Where each of two texts has a
// word that the other has not, in no form, nothing tells whether they are synonyms or opposites, and the score is below the
// threshold however alike they are otherwise. So its ceiling is 0.7.
type Trigrams struct {
	// Threshold is the score from which on texts are alike, in (0, 1]. 0 means 0.4: see docs/design.md for how it was found.
	Threshold float64
}

var _ Similarity = Trigrams{}

// Traits implements [Similarity].
func (t Trigrams) Traits() Traits {
	if t.Threshold == 0 {
		t.Threshold = 0.4
	}
	return Traits{Threshold: t.Threshold, Ceiling: 0.7}
}

// Scores implements [Similarity]. A text without a letter or a digit is alike to none.
func (t Trigrams) Scores(ctx context.Context, text string, others []string) ([]float64, error) {
	grams, words := gramsOf(text), read(text)
	threshold := t.Traits().Threshold
	scores := make([]float64, len(others))
	for i, other := range others {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		scores[i] = jaccard(grams, gramsOf(other))
		if scores[i] >= threshold && exchanged(words, read(other)) {
			scores[i] = 0.9 * threshold
		}
	}
	return scores, nil
}

// letters are what words are made of.
var letters = []*unicode.RangeTable{unicode.L, unicode.N, unicode.M}

// comparable reports whether a text has something to compare. No similarity is asked about one that has not, of which
// embeddings make what they like.
func comparable(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, letters...) })
}

type grams map[[3]rune]struct{}

func gramsOf(text string) grams {
	set := grams{}
	word := make([]rune, 0, 32)
	flush := func() {
		if len(word) > 0 {
			set.add(word)
		}
		word = word[:0]
	}
	for _, r := range text {
		if !unicode.In(r, letters...) {
			flush()
			continue
		}
		if len(word) > 0 && dense(r) != dense(word[0]) {
			flush()
		}
		word = append(word, unicode.ToLower(r))
	}
	flush()
	return set
}

func (g grams) add(word []rune) {
	if dense(word[0]) {
		for i, r := range word {
			g[[3]rune{r}] = struct{}{}
			if i > 0 {
				g[[3]rune{word[i-1], r}] = struct{}{}
			}
		}
		return
	}
	at := func(i int) rune {
		if i < 0 || i >= len(word) {
			return ' '
		}
		return word[i]
	}
	for i := -2; i < len(word)-1; i++ {
		g[[3]rune{at(i), at(i + 1), at(i + 2)}] = struct{}{}
	}
}

// dense reports whether a character is of a script without blanks between words.
func dense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func jaccard(a, b grams) float64 {
	common := 0
	for gram := range a {
		if _, ok := b[gram]; ok {
			common++
		}
	}
	if common == 0 {
		return 0
	}
	return float64(common) / float64(len(a)+len(b)-common)
}

// scores asks the similarity, and refuses what is no answer.
func (s *Service) scores(ctx context.Context, text string, others []string) (scores []float64, err error) {
	if len(others) == 0 {
		return nil, nil
	}
	defer contain("the similarity", &err)
	scores, err = s.cfg.Similarity.Scores(ctx, text, others)
	if err != nil {
		return nil, fmt.Errorf("similarity: %w", err)
	}
	if len(scores) != len(others) {
		return nil, invalid("Scores", fmt.Sprintf("has %d elements for %d texts", len(scores), len(others)))
	}
	for i, score := range scores {
		if !(score >= 0 && score <= 1) {
			return nil, invalid(fmt.Sprintf("Scores[%d]", i), "must be in [0, 1]")
		}
	}
	return scores, nil
}
