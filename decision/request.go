package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/valid"
)

// A Request is an event to answer, and what is known about it.
type Request struct {
	EventID string // identifies the answer in package learning; empty without learning
	Text    string // what happened
	// Code reports that Text is code or a log. The prompt then shows it in a fence, with its lines
	// and signs, and not as one line.
	Code   bool
	Source string // who caused the event
	Domain string // what it is about; goals may be given by domain
	// Salience is how much the event differs from ordinary ones, by dimension. The dimension
	// "urgency" is the urgency of a request without one.
	Salience map[string]float64
	// Candidates are the heuristics that fit the event, the best first: see [Rank].
	// One that is there twice counts once.
	Candidates []Candidate
	// CanWait reports that the event needs no answer now: the model is not asked.
	CanWait bool
	// Urgency is how urgent the event is, in [0, 1]. 0 means Salience["urgency"].
	Urgency float64
	// Goals are what the user wants. Empty means the configured goals.
	Goals []string
	// System replaces Config.System for this event. "" means that.
	System string
	// Briefing is what else the model must know, such as rules and warnings. It follows the system
	// prompt and precedes the goals, unchanged except for blanks around it. Pass text from outside
	// through package prompt first; feedback.Rules and patterns.Plan already do so.
	Briefing string
	// Told lists the other texts that the model is given, such as the conversation before. heed's
	// prompt does not contain them. A candidate whose advice is in one of them is not compared with
	// the answer.
	Told []string
	// Biases shift what a strategy decides by, by name. Strategies ignore unknown names. See
	// "confidence_threshold", which is added to the threshold.
	Biases map[string]float64
	// AskModel keeps heuristics from answering, for example because the user asked for another
	// answer. The prompt shows all candidates for which there is room, and does not compare them with
	// the answer.
	AskModel bool
	// ShowNone keeps all candidates out of the prompt. Those below the threshold are compared with
	// the answer all the same: see [Config].Withhold. Set it together with AskModel to have the
	// model answer as if there were no heuristics.
	ShowNone bool
	// Variant is the variant of an experiment. [Experiment] sets it.
	Variant string

	nth uint64 // the number of a request without an EventID
}

// biasThreshold is the bias that is added to the threshold. With -0.05 a slightly less trusted
// heuristic may answer.
const biasThreshold = "confidence_threshold"

// A Candidate is a heuristic that may fit an event. A prompt shows its Condition and its Action
// only.
type Candidate struct {
	HeuristicID string
	Condition   string  // the situation that it is for
	Action      string  // what it answers
	Code        bool    // Action is code: the prompt shows it in a fence, and not in quotes
	Confidence  float64 // how much it is trusted, in [0, 1]
	// of its condition and the event, in [-1, 1]; may be 0 where candidates come in their order
	Similarity float64
	ShowOnly   bool // it never answers. The model may be shown it
}

// distinct returns the candidates without those that come again.
func distinct(candidates []Candidate) []Candidate {
	if len(candidates) < 2 {
		return candidates
	}
	seen := make(map[string]bool, len(candidates))
	for i := range candidates {
		seen[candidates[i].HeuristicID] = true
	}
	if len(seen) == len(candidates) {
		return candidates
	}
	kept := make([]Candidate, 0, len(seen))
	for _, c := range candidates {
		if seen[c.HeuristicID] {
			seen[c.HeuristicID] = false
			kept = append(kept, c)
		}
	}
	return kept
}

// Rank returns candidates by similarity, the greatest first. Candidates whose similarities are
// close come by confidence. A similarity is close if it is at most closeness below the greatest of
// its group. Equals keep their order.
func Rank(candidates []Candidate, closeness float64) []Candidate {
	ranked := slices.Clone(candidates)
	slices.SortStableFunc(ranked, func(a, b Candidate) int {
		return cmp.Compare(b.Similarity, a.Similarity)
	})
	for begin := 0; begin < len(ranked); {
		end := begin + 1
		for end < len(ranked) && ranked[begin].Similarity-ranked[end].Similarity <= closeness {
			end++
		}
		slices.SortStableFunc(ranked[begin:end], func(a, b Candidate) int {
			return cmp.Compare(b.Confidence, a.Confidence)
		})
		begin = end
	}
	return ranked
}

// prepare checks a request, and drops candidates that come again.
func (r *Request) prepare() error {
	if err := r.Validate(); err != nil {
		return err
	}
	r.Candidates = distinct(r.Candidates)
	return nil
}

// Validate reports the first fault of the request as a [*heed.InputError].
func (r Request) Validate() error {
	err := valid.Texts(evidence.MaxText, "EventID", r.EventID, "Source", r.Source,
		"Domain", r.Domain, "Variant", r.Variant)
	if err == nil && !(r.Urgency >= 0 && r.Urgency <= 1) {
		err = valid.Input("Urgency", "is %v, must be in [0, 1]", r.Urgency)
	}
	for i := range r.Candidates {
		err = cmp.Or(err, r.Candidates[i].validate(i))
	}
	return cmp.Or(err, finite("Salience", r.Salience), finite("Biases", r.Biases))
}

// validate reports the first fault of the candidate at an index.
func (c *Candidate) validate(i int) error {
	field := func(name string) string { return fmt.Sprintf("Candidates[%d].%s", i, name) }
	switch {
	case c.HeuristicID == "" || evidence.CheckText("", c.HeuristicID) != nil:
		return valid.Names(evidence.MaxText, field("HeuristicID"), c.HeuristicID)
	case !(c.Confidence >= 0 && c.Confidence <= 1):
		return valid.Input(field("Confidence"), "is %v, must be in [0, 1]", c.Confidence)
	case !(c.Similarity >= -1 && c.Similarity <= 1):
		return valid.Input(field("Similarity"), "is %v, must be in [-1, 1]", c.Similarity)
	}
	return nil
}

// finite reports the first value, by name, that is not a finite number.
func finite(field string, values map[string]float64) error {
	first, found := "", false
	for name, x := range values {
		if (math.IsNaN(x) || math.IsInf(x, 0)) && (!found || name < first) {
			first, found = name, true
		}
	}
	if found {
		return valid.Input(fmt.Sprintf("%s[%q]", field, first), "must be a finite number")
	}
	return nil
}
