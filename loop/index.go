package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/store"
)

// How an event finds the heuristics and notes that fit it. Each process holds copies of them by
// domain. With trigrams, an index from each trigram to its texts leaves out all texts that have no
// trigram in common with the event. With an embedder, the vectors of the texts are remembered.

// A library holds the heuristics and notes of one moment, so that an event is compared with them
// without reading them all: one small read shows whether they changed. It is immutable.
//
// Heuristics without an action, which were taken out, are in all but not in an index.
type library struct {
	all        []learning.Heuristic
	heuristics map[string]*index[learning.Heuristic] // by domain
	version    uint64                                // of the notes
	notes      map[string]*index[Note]
}

// An index has things with the texts that they are found by.
type index[T any] struct {
	all []T
	// texts are what the things are compared by, in the order of all.
	texts []string
	// Where the similarity is by trigrams: how many each text has, and in which texts each trigram
	// is.
	sizes []int
	posts map[uint64][]int32
}

// A match is a thing that an event fits.
type match[T any] struct {
	it         *T
	similarity float64
}

// add adds a thing that is found by a text.
func (x *index[T]) add(it T, about string, lexical bool) {
	n := int32(len(x.all)) //nolint:gosec // the store has at most 100,000
	x.all, x.texts = append(x.all, it), append(x.texts, about)
	if !lexical {
		return
	}
	if x.posts == nil {
		x.posts = make(map[uint64][]int32)
	}
	grams := text.Trigrams(about)
	x.sizes = append(x.sizes, len(grams))
	for _, g := range grams {
		x.posts[g] = append(x.posts[g], n)
	}
}

// like returns the things whose texts are like one, the most similar first, and the first of equals
// before the others. most bounds their number.
func (x *index[T]) like(
	ctx context.Context, s heed.Similarity, one string, least float64, most int,
) (found []match[T], err error) {
	if x == nil || len(x.all) == 0 {
		return nil, nil
	}
	similarities, err := x.similar(ctx, s, one)
	for i, similarity := range similarities {
		if similarity >= least {
			found = append(found, match[T]{&x.all[i], min(similarity, 1)})
		}
	}
	return mostSimilar(found, most), err
}

// mostSimilar returns the matches in the order of their similarities, and at most a number of them.
func mostSimilar[T any](found []match[T], most int) []match[T] {
	slices.SortStableFunc(found, func(a, b match[T]) int {
		return cmp.Compare(b.similarity, a.similarity)
	})
	return found[:min(len(found), most)]
}

// similar returns how similar one text is to each text of the index.
func (x *index[T]) similar(
	ctx context.Context, s heed.Similarity, one string,
) (similarities []float64, err error) {
	if x.posts != nil {
		return x.byTrigrams(one), ctx.Err()
	}
	similarities, err = s.Similar(ctx, one, x.texts)
	if err == nil && len(similarities) != len(x.texts) {
		err = fmt.Errorf("the similarity has %d numbers for %d texts", len(similarities), len(x.texts))
	}
	for i := 0; i < len(similarities) && err == nil; i++ {
		// A number below 0, or NaN, is like no other text. A cosine may be above 1 by rounding.
		if x := similarities[i]; x > 1+1e-3 {
			err = fmt.Errorf("the similarity has the number %v, which is above 1", x)
		}
	}
	if err != nil {
		return nil, overdue(ctx, err)
	}
	return similarities, nil
}

// byTrigrams returns what [heed.Trigrams] does, without comparing texts that have no trigram in
// common.
func (x *index[T]) byTrigrams(one string) []float64 {
	mine := text.Trigrams(one)
	similarities := make([]float64, len(x.all))
	for _, g := range mine {
		for _, i := range x.posts[g] {
			similarities[i]++
		}
	}
	for i, shared := range similarities {
		if shared > 0 {
			similarities[i] = shared / (float64(len(mine)+x.sizes[i]) - shared)
		}
	}
	return similarities
}

// remembering lets an embedder embed each text once. A call of the host's function is given up when
// its context ends. Ten thousand vectors are kept, so that heuristics and notes are embedded once
// for each process.
func (a *Agent) remembering(s heed.Similarity) heed.Similarity {
	const most, batch = 10_000, 100
	switch s := s.(type) {
	case heed.Trigrams:
		return s
	case heed.Embedder:
		return heed.Embedder(text.Remembering(text.Embed(a.embeds(s)), most, batch))
	default:
		return bounded{a, s}
	}
}

// libraryIn returns the heuristics and notes as the store keeps them. It reads only what changed
// since this process read it. Heuristics are compared by their revisions, and notes by the version
// of their kind, which is one small record. What did not change keeps its index.
func (a *Agent) libraryIn(tx *store.Tx) (*library, error) {
	version, err := tx.Get(a.notes.Ref(""))
	if err != nil {
		return nil, err
	}
	held := a.library.Load()
	b := &library{version: version.Revision}
	if b.all, err = a.learning.Steps().HeuristicsIn(tx); err != nil {
		return nil, err
	}
	same := held != nil && slices.EqualFunc(held.all, b.all, func(a, b learning.Heuristic) bool {
		return a.ID == b.ID && a.Revision == b.Revision
	})
	if same && held.version == b.version {
		return held, nil
	}
	lexical := a.cfg.lexical()
	if same {
		b.all, b.heuristics = held.all, held.heuristics
	} else {
		b.heuristics = make(map[string]*index[learning.Heuristic])
		for _, h := range b.all {
			if h.Action != "" {
				of(b.heuristics, h.Domain).add(h, h.Condition, lexical)
			}
		}
	}
	if held != nil && held.version == b.version {
		b.notes = held.notes
	} else if err := a.readNotes(tx.Context(), b, lexical); err != nil {
		return nil, err
	}
	a.library.Store(b)
	return b, nil
}

// readNotes reads all notes. It happens only after a note was changed, because the version of their
// kind is read with each plan.
func (a *Agent) readNotes(ctx context.Context, b *library, lexical bool) error {
	b.notes = make(map[string]*index[Note])
	for n, err := range a.notes.Find(ctx, a.cfg.Store, store.Query{Oldest: true}) {
		if err != nil {
			return err
		}
		of(b.notes, n.Value.Domain).add(n.Value.Note, cmp.Or(n.Value.Topic, n.Value.Text), lexical)
	}
	return nil
}

// of returns the index of a domain, and makes it for the first text of the domain.
func of[T any](by map[string]*index[T], domain string) *index[T] {
	x := by[domain]
	if x == nil {
		x = new(index[T])
		by[domain] = x
	}
	return x
}

const (
	considered = 20 // candidates whose standing is read
	// How much less similar a candidate may be that is preferred for its confidence. Trigrams differ
	// more between texts of one meaning than embeddings do.
	closeByLetters, closeByMeaning = 0.5, 0.1
)

// candidatesIn returns the heuristics that fit an event, the best first, each with its present
// trust. A heuristic that lost half of its first trust is not a candidate, because the model might
// believe it. Before that, it may still earn trust by agreement. They are ranked by similarity and
// confidence together: see decision.Rank. If the store is away and the trust of one is not
// remembered, the plan lists them as unread.
func (a *Agent) candidatesIn(
	tx *store.Tx, p *Plan, found []match[learning.Heuristic],
) ([]decision.Candidate, error) {
	if len(found) == 0 {
		return nil, nil
	}
	ids := make([]string, len(found))
	for i, m := range found {
		ids[i] = m.it.ID
	}
	confidences, err := a.learning.Steps().ConfidencesIn(tx, ids...)
	if err != nil {
		return nil, err
	}
	var trusted []decision.Candidate
	for _, m := range found {
		h := m.it
		switch confidence, is := confidences[h.ID]; {
		case !is && p.Degraded != nil: // else it was deleted a moment ago
			p.unread("candidates")
		case is && confidence >= cmp.Or(h.Initial, a.learning.Config().Initial)/2:
			trusted = append(trusted, decision.Candidate{
				HeuristicID: h.ID, Condition: h.Condition, Action: h.Action, Confidence: confidence,
				Similarity: m.similarity, ShowOnly: m.similarity < a.cfg.Tuning.AnswerFit,
			})
		}
	}
	if a.cfg.lexical() {
		return decision.Rank(trusted, closeByLetters), nil
	}
	return decision.Rank(trusted, closeByMeaning), nil
}

// nearest returns the heuristic with the most similar action among the heuristics of a domain, and
// without one, whose condition is like one. Decider.Extract asks it, so that the same advice
// strengthens a heuristic and does not make a second one.
func (a *Agent) nearest(
	ctx context.Context, domain, condition, message string,
) (id string, similarity float64, err error) {
	b, err := a.libraryIn(store.Reading(ctx, a.cfg.Store))
	if err != nil {
		return "", 0, err
	}
	found, err := inDomain(ctx, a, b.heuristics, domain, condition, a.cfg.Tuning.Fit, considered)
	if err != nil {
		return "", 0, err
	}
	var actions index[string]
	for _, m := range found {
		actions.add(m.it.ID, m.it.Action, a.cfg.lexical())
	}
	best, err := actions.like(ctx, a.similar, message, 0, 1)
	if err != nil || len(best) == 0 {
		return "", 0, err
	}
	return *best[0].it, best[0].similarity, nil
}
