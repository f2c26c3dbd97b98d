package feedback

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/oppose"
	"github.com/heedhq/heed/internal/text"
)

// wording reports whether a similarity compares words and not meaning.
func wording(s heed.Similarity) bool {
	_, ok := s.(heed.Trigrams)
	return ok
}

// sameText reports whether two texts are the same but for case, spaces, quotation marks and what ends a sentence. Commas, question
// marks, brackets and dashes can change what a text says, and count.
func sameText(a, b string) bool {
	const quotes, ends = "\"'`“”„‘’«»", ".!;:…。！；："
	plain := func(text string) string {
		words := strings.Fields(strings.ToLower(text))
		for i, word := range words {
			words[i] = strings.TrimRight(strings.TrimLeft(word, quotes), quotes+ends)
		}
		return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
	}
	return plain(a) == plain(b)
}

// scores asks the similarity, and refuses an answer that is not valid. Where each of two texts has a word that the other
// lacks in all its forms, words do not tell synonyms from opposites. By words alone, the texts are then not alike.
func (s *Service) scores(ctx context.Context, one string, others []string) (scores []float64, err error) {
	if len(others) == 0 {
		return nil, nil
	}
	err = host.Call("the similarity", func() error {
		scores, err = s.similarity.Similar(ctx, one, others)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("similarity: %w", err)
	}
	if len(scores) != len(others) {
		return nil, invalid("Similar", fmt.Sprintf("has %d elements for %d texts", len(scores), len(others)))
	}
	for i, score := range scores {
		if !(score >= 0 && score <= 1) {
			return nil, invalid(fmt.Sprintf("Similar[%d]", i), "must be in [0, 1]")
		}
	}
	if wording(s.cfg.Similarity) {
		s.doubtExchanged(scores, one, others)
	}
	return scores, nil
}

func (s *Service) doubtExchanged(scores []float64, one string, others []string) {
	words := oppose.Read(one)
	for i, other := range others {
		if scores[i] >= s.cfg.Threshold && oppose.Exchanged(words, oppose.Read(other)) {
			scores[i] = 0.9 * s.cfg.Threshold
		}
	}
}

// remembering lets an embedder embed each text once, as long as it is among the latest. Comparing with what is known then
// embeds one text.
func remembering(s heed.Similarity) heed.Similarity {
	const most, batch = 10_000, 100
	if e, ok := s.(heed.Embedder); ok {
		return heed.Embedder(text.Remembering(e, most, batch))
	}
	return s
}
