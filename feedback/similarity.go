package feedback

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback/internal/oppose"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
)

// wording reports whether a similarity compares words and not meaning.
func wording(s heed.Similarity) bool {
	_, ok := s.(heed.Trigrams)
	return ok
}

// sameText reports whether two texts are the same except for case, spaces, quotation marks and what
// ends a sentence. Commas, question marks, brackets and dashes can change the meaning of a text, so
// they count.
func (s *Service) sameText(a, b string) bool {
	return a == b || s.read(a).plain == s.read(b).plain
}

// plain returns a text in the form in which equal texts are equal: see [Service.sameText].
func plain(text string) string {
	const quotes, ends = "\"'`“”„‘’«»", ".!;:…。！；："
	words := strings.Fields(strings.ToLower(text))
	for i, word := range words {
		words[i] = strings.TrimRight(strings.TrimLeft(word, quotes), quotes+ends)
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// scores asks the similarity, and refuses an answer that is not valid. Where each of two texts has
// a word that the other lacks in all its forms, words cannot distinguish synonyms from opposites.
// By words alone, the texts are then not alike.
func (s *Service) scores(
	ctx context.Context, one string, others []string,
) (scores []float64, err error) {
	if len(others) == 0 {
		return nil, nil
	}
	if wording(s.cfg.Similarity) { // as heed.Trigrams does, with each text read once
		mine := s.read(one)
		for _, other := range others {
			theirs := s.read(other)
			score := text.Jaccard(mine.grams, theirs.grams)
			if score >= s.cfg.Threshold && oppose.Exchanged(s.words(one), s.words(other)) {
				score = 0.9 * s.cfg.Threshold
			}
			scores = append(scores, score)
		}
		return scores, ctx.Err()
	}
	err = host.Call("the similarity", func() error {
		scores, err = s.similarity.Similar(ctx, one, others)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("similarity: %w", err)
	}
	if len(scores) != len(others) {
		return nil, valid.Input("Similar", "has %d elements for %d texts", len(scores), len(others))
	}
	for i, score := range scores {
		if !(score >= 0 && score <= 1) {
			return nil, valid.Input(fmt.Sprintf("Similar[%d]", i), "must be in [0, 1]")
		}
	}
	return scores, nil
}

// reworded reports whether two texts have other words, so that words alone cannot show that they
// mean the same. Nor can a similarity of meanings if the texts share most of their words: it has a
// high score for a text and its opposite, too.
func (s *Service) reworded(a, b string) bool {
	return (wording(s.cfg.Similarity) || s.wordedAlike(a, b)) && !s.sameText(a, b) &&
		!oppose.SameWords(s.words(a), s.words(b))
}

// opposed returns how two texts seem to contradict each other, or "". A text and its opposite share
// most of their words. So if a similarity compares meanings, the words of texts that share few of
// them are not compared.
func (s *Service) opposed(a, b string) oppose.Way {
	if !wording(s.cfg.Similarity) && !s.wordedAlike(a, b) {
		return ""
	}
	return s.words(a).Opposes(s.words(b))
}

// wordedAlike reports whether two texts share a quarter of their trigrams, or of their topic's. The
// share was chosen so that 7 of 10 paraphrases of unseen.tsv and of later.tsv share less. All 147
// opposites there share more, but only 23 of the 40 of fresh.tsv, which have other words.
func (s *Service) wordedAlike(a, b string) bool {
	const share = 0.25
	x, y := s.read(a), s.read(b)
	return text.Jaccard(x.grams, y.grams) >= share || text.Jaccard(x.topic, y.topic) >= share
}

// differ reports whether two texts must not be treated as one, however alike they are.
func (s *Service) differ(a, b string) bool {
	if tooLong(a, b) {
		return !s.sameText(a, b)
	}
	return s.opposed(a, b) != "" || !wording(s.cfg.Similarity) && s.reworded(a, b)
}

// tooLong reports whether one of two texts is too long to be compared.
func tooLong(a, b string) bool {
	return max(len(a), len(b)) > maxCompared
}

// maxCompared is how many bytes a text may have that is compared with others.
const maxCompared = 4000

// A reading is the prepared text for finding out whether another text is near. It is immutable.
type reading struct {
	plain string   // see sameText. the only field of a text that is too long
	grams []uint64 // of the whole text
	topic []uint64 // of what it is about
}

// maxShort is how many bytes a text has of which many readings are remembered: a rule's.
const maxShort = 4 * maxText

// read reads a text, unless it is among the latest that were read.
func (s *Service) read(written string) *reading {
	readings := s.readings
	if len(written) > maxShort {
		readings = s.longReadings
	}
	known, ok := readings.Get(written)
	if !ok {
		known = &reading{plain: plain(written)}
		if len(written) <= maxCompared {
			words := oppose.Read(written)
			known.grams, known.topic = text.Trigrams(written), text.Trigrams(words.Topic())
		}
		readings.Put(written, known)
	}
	return known
}

// words reads a text for what opposes it, unless it is among the latest that were read. Only texts
// that are near another one are read so.
func (s *Service) words(written string) oppose.Reading {
	known, ok := s.worded.Get(written)
	if !ok {
		if len(written) <= maxCompared {
			known = oppose.Read(written)
		}
		s.worded.Put(written, known)
	}
	return known
}

// remembering lets an embedder embed each text once, if it is among the latest. Comparing with what
// is known then embeds one text.
func remembering(s heed.Similarity) heed.Similarity {
	const most, batch = 10_000, 100
	if e, ok := s.(heed.Embedder); ok {
		return heed.Embedder(text.Remembering(e, most, batch))
	}
	return s
}
