package feedback

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/heedhq/heed/internal/faults"
)

// EmbeddingConfig configures an [Embedding]. Embed must be set.
type EmbeddingConfig struct {
	// Embed turns texts into vectors, all of one length, in the order of the texts. It is called by many goroutines at the
	// same time, and must return when the context is done.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
	// Threshold is the score from which on texts are alike, in (0, 1]. 0 means 0.8.
	Threshold float64
	// Remember is how many vectors are kept in memory, of the texts that were embedded last. 0 means 10,000.
	Remember int
	// Batch is how many texts are embedded at once. 0 means 100.
	Batch int
}

// Embedding is the similarity of texts by an embedding of the host's: the cosine of their vectors, and 0 where it is
// negative. Make one with [NewEmbedding]. It remembers vectors, so that comparing with what is known embeds one text. It is
// safe for concurrent use.
type Embedding struct {
	cfg EmbeddingConfig

	mu      sync.Mutex
	vectors map[string][]float32 // of length 1
	order   []string             // the texts in vectors, the first embedded first
}

var _ Similarity = (*Embedding)(nil)

// NewEmbedding returns a similarity, or all faults of its configuration, joined.
func NewEmbedding(cfg EmbeddingConfig) (*Embedding, error) {
	cfg.Threshold = cmp.Or(cfg.Threshold, 0.8)
	cfg.Remember = cmp.Or(cfg.Remember, 10_000)
	cfg.Batch = cmp.Or(cfg.Batch, 100)
	var found faults.List
	found.Check(cfg.Embed != nil, "Embed", nil, "must be set")
	found.Check(cfg.Threshold > 0 && cfg.Threshold <= 1, "Threshold", cfg.Threshold, "must be in (0, 1], or 0 for the default")
	found.Check(cfg.Remember > 0, "Remember", cfg.Remember, "must not be negative")
	found.Check(cfg.Batch > 0, "Batch", cfg.Batch, "must not be negative")
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("feedback: embedding: %w", err)
	}
	return &Embedding{cfg: cfg, vectors: make(map[string][]float32)}, nil
}

// Config returns the configuration in force.
func (e *Embedding) Config() EmbeddingConfig { return e.cfg }

// Traits implements [Similarity]. Embeddings see meaning, so confidence has no ceiling.
func (e *Embedding) Traits() Traits { return Traits{Threshold: e.cfg.Threshold, Ceiling: 1} }

// Scores implements [Similarity].
func (e *Embedding) Scores(ctx context.Context, text string, others []string) ([]float64, error) {
	vectors, err := e.embed(ctx, append([]string{text}, others...))
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(others))
	for i, vector := range vectors[1:] {
		if len(vector) != len(vectors[0]) {
			return nil, invalid("Embed", "gave vectors of different lengths")
		}
		var dot float64
		for j, x := range vector {
			dot += float64(x) * float64(vectors[0][j])
		}
		scores[i] = min(max(dot, 0), 1)
	}
	return scores, nil
}

// embed returns the vectors of the texts, from memory where it has them.
func (e *Embedding) embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	var missing []string
	e.mu.Lock()
	for i, text := range texts {
		if vectors[i] = e.vectors[text]; vectors[i] == nil {
			missing = append(missing, text)
		}
	}
	e.mu.Unlock()
	made := make(map[string][]float32, len(missing))
	for batch := range slices.Chunk(distinct(missing), e.cfg.Batch) {
		got, err := e.cfg.Embed(ctx, slices.Clone(batch))
		if err != nil {
			return nil, err
		}
		if len(got) != len(batch) {
			return nil, invalid("Embed", fmt.Sprintf("gave %d vectors for %d texts", len(got), len(batch)))
		}
		for i, vector := range got {
			if made[batch[i]], err = unit(vector); err != nil {
				return nil, err
			}
		}
	}
	for i, text := range texts {
		if vectors[i] == nil {
			vectors[i] = made[text]
		}
	}
	e.remember(made)
	return vectors, nil
}

func (e *Embedding) remember(made map[string][]float32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for text, vector := range made {
		if _, ok := e.vectors[text]; !ok {
			e.vectors[text] = vector
			e.order = append(e.order, text)
		}
	}
	for len(e.order) > e.cfg.Remember {
		delete(e.vectors, e.order[0])
		e.order = e.order[1:]
	}
}

// unit returns the vector scaled to length 1.
func unit(vector []float32) ([]float32, error) {
	var squares float64
	for _, x := range vector {
		squares += float64(x) * float64(x)
	}
	if length := math.Sqrt(squares); length > 0 && length <= math.MaxFloat64 {
		scaled := make([]float32, len(vector))
		for i, x := range vector {
			scaled[i] = float32(float64(x) / length)
		}
		return scaled, nil
	}
	return nil, invalid("Embed", "gave a vector of length 0, or one that is not finite")
}
