package decision

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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
		if common := inBoth(mine, theirs); common > 0 {
			similarities[i] = float64(common) / float64(len(mine)+len(theirs)-common)
		}
	}
	return similarities, nil
}

// trigrams returns the groups of three characters of a text's words, in lower case, with a space at the ends of each:
// sorted, each once, and packed into a number, as a character has 21 bits.
func trigrams(text string) []uint64 {
	all := make([]uint64, 0, len(text)+8)
	var last [2]uint64 // 0: the word has not so many characters yet
	follow := func(r rune) {
		if last[0] != 0 {
			all = append(all, last[0]<<42|last[1]<<21|uint64(r))
		}
		last = [2]uint64{last[1], uint64(r)}
	}
	for _, r := range strings.ToLower(text) + " " {
		switch {
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r):
			if last[1] == 0 {
				follow(' ')
			}
			follow(r)
		case last[1] != 0:
			follow(' ')
			last = [2]uint64{}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// inBoth counts what two sorted lists have in common.
func inBoth(a, b []uint64) (n int) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}
