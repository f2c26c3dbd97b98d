package decision

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed/answer"
)

// similarityTime bounds the wait for a comparison that calls no model. An answer waits for it.
const similarityTime = time.Second

// compare records which candidates mean the same as the answer. A failure costs only this record.
func (d *Decider) compare(
	ctx context.Context, r *Request, shown, withheld []Candidate, res *Result,
) {
	similarity, candidates, wait := d.cfg.Similarity, r.Candidates, similarityTime
	if s, ok := similarity.(*sameMeaning); ok {
		var used usage
		defer used.addTo(res)
		withheld = s.fitting(withheld)
		similarity, candidates, wait = s.counting(&used), withheld, d.cfg.Timeout
	}
	if d.cfg.tuning.NoSimilarity || len(candidates) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	similarities, err := compare(ctx, d.similar, similarity, res.Text, actions(candidates))
	var exposed map[string]bool
	if err == nil {
		agree := make(map[string]bool, len(candidates))
		for i, x := range similarities {
			agree[candidates[i].HeuristicID] = x >= same
		}
		exposed, err = d.exposed(ctx, r, res, similarity, shown, withheld, agree)
	}
	if err != nil {
		res.Err = errors.Join(res.Err, err)
		res.fail("similarity", err)
		return
	}
	for i, s := range similarities {
		id := candidates[i].HeuristicID
		c := answer.Comparison{HeuristicID: id, Similarity: s, Agrees: s >= same}
		if c.Agrees {
			res.Convergence = append(res.Convergence, c)
		}
		switch held := indexOf(withheld, id) >= 0; {
		case held && exposed[id]:
			res.Told = append(res.Told, id)
		case held:
			res.Compared = append(res.Compared, c)
		}
	}
	slices.SortStableFunc(res.Convergence, func(a, b answer.Comparison) int {
		return cmp.Compare(b.Similarity, a.Similarity)
	})
}

func actions(candidates []Candidate) []string {
	texts := make([]string, len(candidates))
	for i := range candidates {
		texts[i] = candidates[i].Action
	}
	return texts
}
