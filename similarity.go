package heed

import (
	"context"

	"github.com/heedhq/heed/internal/text"
)

// Similarity measures how alike texts are. Packages decision and feedback take one.
//
// An implementation must be safe for concurrent use by multiple goroutines, and must return when
// the context is done.
type Similarity interface {
	// Similar returns how alike the text is to each of the others, in their order: from 0, entirely
	// different, to 1.
	Similar(ctx context.Context, text string, others []string) ([]float64, error)
}

// An Embedder turns texts into vectors, all of one length, in the order of the texts. It makes a
// [Similarity] of any model for embeddings.
type Embedder func(ctx context.Context, texts []string) ([][]float32, error)

// Similar embeds all texts in one call, and returns the cosines of their vectors. The result is 0
// where the cosine is negative, and where a vector is zero or not finite. Vectors of different
// lengths are an error, and so is a missing one.
func (e Embedder) Similar(ctx context.Context, one string, others []string) ([]float64, error) {
	return text.Cosines(ctx, e, one, others)
}

// Trigrams is a [Similarity] without a model: the share of letter trigrams that two texts have in
// common (the Jaccard index, with the trigrams of PostgreSQL's pg_trgm). It compares words and not
// meaning: "turn it on" and "turn it off" are much alike. A text without a letter or a digit is
// like no other.
type Trigrams struct{}

// Similar implements [Similarity].
func (Trigrams) Similar(ctx context.Context, one string, others []string) ([]float64, error) {
	mine := text.Trigrams(one)
	similarities := make([]float64, len(others))
	for i, other := range others {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		similarities[i] = text.Jaccard(mine, text.Trigrams(other))
	}
	return similarities, nil
}
