package patterns

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/heedhq/heed/internal/text"
)

// wordSet returns the words of a task that show what it is about, sorted, each once. Marks, single
// letters and numbers are left out.
func wordSet(task string) []string {
	return text.Distinct(slices.DeleteFunc(tokens(task), func(t string) bool {
		return len(t) < 2 || functionWords[t] || !strings.ContainsFunc(t, unicode.IsLetter)
	}))
}

// weight is how much a shared word counts: the fewer of the tasks have it, the more (inverse
// document frequency, Spärck Jones 1972).
func (p *pastTasks) weight(word string) float64 {
	return math.Log1p(float64(len(p.all)) / float64(max(len(p.posts[word]), 1)))
}

// weigh adds up the weights of each task's words, once all tasks are there.
func (p *pastTasks) weigh() {
	p.weights = make([]float64, len(p.all))
	for n, words := range p.words {
		for _, word := range words {
			p.weights[n] += p.weight(word)
		}
	}
}

// leastAlike is the least part of the shorter description that two tasks share, by weight.
const leastAlike = 0.15

// like finds tasks by the words that their descriptions share with a text: the weight of those in
// both by the weight of those in either (a weighted Jaccard index). Of equals, the later comes
// first. Tasks that share little of either text are not alike.
func (p *pastTasks) like(task string, limit int) (found []Precedent) {
	var own float64
	shared := make(map[int32]float64)
	for _, w := range wordSet(task) {
		weight := p.weight(w)
		own += weight
		for _, n := range p.posts[w] {
			shared[n] += weight
		}
	}
	some := make([]int32, 0, len(shared))
	for n, weight := range shared {
		if weight >= leastAlike*min(own, p.weights[n]) {
			some = append(some, n)
		}
	}
	similarity := func(n int32) float64 { return min(shared[n]/(own+p.weights[n]-shared[n]), 1) }
	slices.SortFunc(some, func(a, b int32) int {
		return cmp.Or(cmp.Compare(similarity(b), similarity(a)), cmp.Compare(a, b))
	})
	for _, n := range some[:min(len(some), limit)] {
		one := p.all[n]
		one.Similarity = similarity(n)
		found = append(found, one)
	}
	return found
}

// plainly describes how an outcome went, for a prompt: the meaning of its score, without the
// number.
func plainly(s Score) string {
	_, bands, _ := strings.Cut(s.Reason, ": ")
	bands = strings.Replace(bands, ", duration unknown", "", 1)
	if rest, ok := strings.CutPrefix(bands, "success"); ok {
		return "it worked" + rest
	}
	return "it failed" + strings.TrimPrefix(bands, "failure")
}
