package decision

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
)

// Similarity says how alike texts are.
//
// An implementation must be safe for concurrent use by multiple goroutines.
type Similarity interface {
	// Similar returns, for each of the others, how alike it and the text are, in [0, 1]: 1 where they say the same.
	Similar(ctx context.Context, text string, others []string) ([]float64, error)
}

// compare asks a host's similarity, and holds it to its contract.
func compare(ctx context.Context, g *gate, s Similarity, text string, others []string) ([]float64, error) {
	similarities, err := pass(ctx, g, func(ctx context.Context) ([]float64, error) { return s.Similar(ctx, text, others) })
	if err != nil {
		return nil, fmt.Errorf("similarity: %w", err)
	}
	if len(similarities) != len(others) {
		return nil, fmt.Errorf("similarity: %d values for %d texts", len(similarities), len(others))
	}
	for _, x := range similarities {
		if !(x >= 0 && x <= 1) {
			return nil, fmt.Errorf("similarity: %v is not in [0, 1]", x)
		}
	}
	return similarities, nil
}

// An Embedder is a [Similarity] by embeddings: the cosine of two vectors, and 0 where it is negative, or where a vector is
// missing, of another length, zero or not finite.
type Embedder func(ctx context.Context, texts []string) ([][]float32, error)

// Similar embeds all texts in one call and compares them.
func (e Embedder) Similar(ctx context.Context, text string, others []string) ([]float64, error) {
	vectors, err := e(ctx, append([]string{text}, others...))
	if err != nil {
		return nil, err
	}
	if len(vectors) != len(others)+1 {
		return nil, errors.New("the embedder returned another number of vectors than there are texts")
	}
	similarities := make([]float64, len(others))
	for i := range others {
		similarities[i] = max(Cosine(vectors[0], vectors[i+1]), 0)
	}
	return similarities, nil
}

// Cosine returns the cosine of the angle between two vectors, in [-1, 1], and 0 where there is none.
func Cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	cosine := dot / math.Sqrt(aa) / math.Sqrt(bb)
	if math.IsNaN(cosine) || math.IsInf(cosine, 0) {
		return 0
	}
	return min(max(cosine, -1), 1)
}

// Trigrams is a [Similarity] without a model: the share of groups of three characters that two texts have in common
// (Jaccard). It is about words and not about sense: "turn it on" and "turn it off" are much alike.
type Trigrams struct{}

// Similar compares each of the others with the text.
func (Trigrams) Similar(_ context.Context, text string, others []string) ([]float64, error) {
	mine := trigrams(text)
	similarities := make([]float64, len(others))
	for i, other := range others {
		theirs := trigrams(other)
		common := 0
		for trigram := range theirs {
			if mine[trigram] {
				common++
			}
		}
		if all := len(mine) + len(theirs) - common; all > 0 {
			similarities[i] = float64(common) / float64(all)
		}
	}
	return similarities, nil
}

// trigrams returns the groups of three characters of a text's words, in lower case, with a space at the ends of each.
func trigrams(text string) map[[3]rune]bool {
	set := make(map[[3]rune]bool)
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) })
	for _, word := range words {
		runes := append(append([]rune{' '}, []rune(word)...), ' ')
		for i := 2; i < len(runes); i++ {
			set[[3]rune{runes[i-2], runes[i-1], runes[i]}] = true
		}
	}
	return set
}
