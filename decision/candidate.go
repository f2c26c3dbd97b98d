package decision

import (
	"cmp"
	"encoding/json"
	"slices"
)

// MaxCandidates is how many candidates a prompt may show.
const MaxCandidates = 5

// Merge puts a suggestion before other candidates. Candidates without an id, and those whose id was there before, are left
// out.
func Merge(suggestion Candidate, others ...Candidate) []Candidate {
	merged := make([]Candidate, 0, 1+len(others))
	seen := make(map[string]bool, 1+len(others))
	for _, c := range slices.Concat([]Candidate{suggestion}, others) {
		if c.HeuristicID != "" && !seen[c.HeuristicID] {
			seen[c.HeuristicID] = true
			merged = append(merged, c)
		}
	}
	return merged
}

// Rank returns candidates in the order in which a strategy wants them: by similarity, and those whose similarities are close
// by confidence. Close are those that lie at most closeness below the most similar of them. Of equals the one that came
// first stays first.
func Rank(candidates []Candidate, closeness float64) []Candidate {
	ranked := slices.Clone(candidates)
	bySimilarity := func(a, b Candidate) int { return cmp.Compare(b.Similarity, a.Similarity) }
	slices.SortStableFunc(ranked, bySimilarity)
	for begin := 0; begin < len(ranked); {
		end := begin + 1
		for end < len(ranked) && ranked[begin].Similarity-ranked[end].Similarity <= closeness {
			end++
		}
		slices.SortStableFunc(ranked[begin:end], func(a, b Candidate) int { return cmp.Compare(b.Confidence, a.Confidence) })
		begin = end
	}
	return ranked
}

// Alternatives returns, of a pool, what may be shown to a model beside a best match that is not trusted enough: at most
// [MaxCandidates] others, the most similar first, without those that reach the threshold, as a heuristic that is trusted is
// there to answer and not to be one opinion among others.
func Alternatives(bestID string, pool []Candidate, threshold float64) []Candidate {
	others := slices.DeleteFunc(slices.Clone(pool), func(c Candidate) bool {
		return c.HeuristicID == bestID || c.Confidence >= threshold
	})
	others = Rank(others, 0)
	return others[:min(len(others), MaxCandidates)]
}

// ActionText returns what an action says that is kept as a JSON object: its "message", else its "text", else its
// "response", and "" where none of them is a text.
func ActionText(action []byte) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(action, &fields) != nil {
		return ""
	}
	for _, name := range [...]string{"message", "text", "response"} {
		var text string
		if json.Unmarshal(fields[name], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}
