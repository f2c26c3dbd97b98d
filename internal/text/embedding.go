package text

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// An Embed turns texts into vectors, in the order of the texts.
type Embed = func(ctx context.Context, texts []string) ([][]float32, error)

// Cosines embeds all texts in one call, and returns the cosine of the text's vector and each of the
// others', with 0 for negative ones. Vectors of different lengths are an error. Negative cosines
// count as 0, because a similarity is in [0, 1].
func Cosines(ctx context.Context, embed Embed, text string, others []string) ([]float64, error) {
	vectors, err := embed(ctx, append([]string{text}, others...))
	if err != nil {
		return nil, err
	}
	if len(vectors) != len(others)+1 {
		return nil, fmt.Errorf(
			"the embedder returned another number of vectors than there are texts: %d for %d",
			len(vectors), len(others)+1)
	}
	cosines := make([]float64, len(others))
	for i := range others {
		if len(vectors[i+1]) != len(vectors[0]) {
			return nil, fmt.Errorf("the embedder returned vectors of different lengths: %d and %d",
				len(vectors[0]), len(vectors[i+1]))
		}
		cosines[i] = max(Cosine(vectors[0], vectors[i+1]), 0)
	}
	return cosines, nil
}

// Cosine returns the cosine of the angle between two vectors, in [-1, 1]. It is 0 for vectors of
// different lengths, and for those that are zero or not finite. Both lengths are divided out one
// after the other, because their product could overflow.
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
	if math.IsNaN(cosine) {
		return 0
	}
	return min(max(cosine, -1), 1)
}

// Remembering returns an embedding that remembers at least the latest vectors, and embeds at most
// batch texts in a call. It is stricter than embed: a vector that is zero, not finite or of another
// length than the first is an error. It is safe for concurrent use if embed is. Callers must not
// change the vectors, because they are shared. Two callers may embed the same text at the same
// time.
func Remembering(embed Embed, latest, batch int) Embed {
	known := NewMemo[[]float32](latest)
	return func(ctx context.Context, texts []string) ([][]float32, error) {
		vectors := make([][]float32, len(texts))
		var missing []string
		for i, text := range texts {
			if vectors[i], _ = known.Get(text); vectors[i] == nil {
				missing = append(missing, text)
			}
		}
		made, err := embedded(ctx, embed, Distinct(missing), batch)
		if err != nil {
			return nil, err
		}
		for i, text := range texts {
			if vectors[i] == nil {
				vectors[i] = made[text]
			}
			if len(vectors[i]) != len(vectors[0]) {
				return nil, errors.New("the embedder returned vectors of different lengths")
			}
		}
		for text, vector := range made { // after an error no vector is kept
			known.Put(text, vector)
		}
		return vectors, nil
	}
}

// embedded returns the vectors of texts, by text. It compares each vector with itself to find one
// that can't be compared: its cosine is 0.
func embedded(
	ctx context.Context, embed Embed, texts []string, batch int,
) (map[string][]float32, error) {
	made := make(map[string][]float32, len(texts))
	for some := range slices.Chunk(texts, batch) {
		got, err := embed(ctx, slices.Clone(some))
		if err != nil {
			return nil, err
		}
		if len(got) != len(some) {
			return nil, fmt.Errorf("the embedder returned %d vectors for %d texts", len(got), len(some))
		}
		for i, vector := range got {
			if Cosine(vector, vector) == 0 {
				return nil, errors.New(
					"the embedder returned a vector of length 0, or one that is not finite")
			}
			made[some[i]] = slices.Clone(vector)
		}
	}
	return made, nil
}
