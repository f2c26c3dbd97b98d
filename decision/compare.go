package decision

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/heedhq/heed"
)

// shown returns the candidates that the prompt shows, in random order, and those that the model's answer may be compared with,
// as the prompt does not show them.
func (d *Decider) shown(r *Request) (shown, withheld []Candidate) {
	shown = slices.Clone(r.Candidates)
	if *d.cfg.Withhold > 0 {
		bar := d.cfg.Urgency.threshold(d.cfg.Threshold, r.Biases[BiasThreshold], d.cfg.Urgency.of(r))
		rng := d.rng(r, forWithholding)
		hide, most := rng.Float64() < *d.cfg.Withhold, d.mostShown()
		shown = shown[:0]
		for _, c := range r.Candidates {
			switch trusted := c.Confidence >= bar; {
			case !trusted && (hide || len(shown) == most):
				withheld = append(withheld, c)
			case len(shown) < most:
				shown = append(shown, c)
			}
		}
	}
	shown = shown[:min(len(shown), d.mostShown())]
	rng := d.rng(r, forOrder)
	rand.New(&rng).Shuffle(len(shown), func(i, j int) { shown[i], shown[j] = shown[j], shown[i] })
	return shown, withheld
}

func (d *Decider) mostShown() int {
	if d.cfg.NoCandidates {
		return 0
	}
	return d.cfg.MaxCandidates
}

// compare records which candidates say what the model said. A failure costs only this record.
func (d *Decider) compare(ctx context.Context, r *Request, shown, withheld []Candidate, res *Result) {
	similarity, candidates := d.cfg.Similarity, r.Candidates
	if s, ok := similarity.(*sameMeaning); ok {
		var used usage
		defer used.addTo(res)
		withheld = s.fitting(withheld)
		similarity, candidates = s.counting(&used), withheld
	}
	if d.cfg.NoSimilarity || len(candidates) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.SimilarityTimeout)
	defer cancel()
	similarities, err := compare(ctx, d.similar, similarity, res.Text, actions(candidates))
	var told map[string]bool
	if err == nil {
		agree := make(map[string]bool, len(candidates))
		for i, x := range similarities {
			agree[candidates[i].HeuristicID] = x >= d.cfg.SimilarityThreshold
		}
		told, err = d.told(ctx, r, res, similarity, shown, withheld, agree)
	}
	if err != nil {
		res.Err = errors.Join(res.Err, err)
		d.watch.Failed(ctx, "similarity", err)
		return
	}
	for i, s := range similarities {
		id, agrees := candidates[i].HeuristicID, s >= d.cfg.SimilarityThreshold
		if agrees {
			res.Convergence = append(res.Convergence, Convergence{id, s, slices.Contains(res.ShownIDs, id)})
		}
		switch held := slices.ContainsFunc(withheld, func(c Candidate) bool { return c.HeuristicID == id }); {
		case held && told[id]:
			res.Told = append(res.Told, id)
		case held:
			res.Compared = append(res.Compared, heed.Comparison{HeuristicID: id, Similarity: s, Agrees: agrees})
		}
	}
	slices.SortStableFunc(res.Convergence, func(a, b Convergence) int { return cmp.Compare(b.Similarity, a.Similarity) })
}

func actions(candidates []Candidate) []string {
	texts := make([]string, len(candidates))
	for i := range candidates {
		texts[i] = candidates[i].Action
	}
	return texts
}
