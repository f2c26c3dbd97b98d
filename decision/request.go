package decision

import (
	"context"
	"fmt"
	"math"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A Request is an event to answer, and what is known about it.
type Request struct {
	EventID string // what package learning knows the answer by; may be empty where nothing is learned from it
	Text    string // what happened
	Source  string // where the event comes from
	Domain  string // what it is about; goals may be given by domain
	// Salience says how much the event stands out, by dimension. Urgency may be taken from it: see [Urgency].
	Salience map[string]float64
	// Candidates are the heuristics that fit the event, the best first: see [Rank]. Their confidences are taken as they
	// are; nothing is remembered from one request to the next.
	Candidates []Candidate
	// Immediate says that the event wants an answer now. Without it the model is not asked.
	Immediate bool
	// Urgency is how urgent the event is, in [0, 1]. 0 means that its salience says so.
	Urgency float64
	// Goals are what the user wants. Empty means those of the configuration.
	Goals []string
	// Briefing is what else the model is to know for this event: rules, warnings, what was learned. It comes behind the
	// system prompt and before the goals, as it stands; so what comes from outside has to go through package prompt first,
	// as it has in the sections that feedback.Rules and patterns.Plan write. Blank ends are cut off.
	Briefing string
	// Biases shift what a strategy decides by, by name. Strategies pass over names that they do not know. See
	// [BiasThreshold].
	Biases map[string]float64
	// Commit commits what is kept of the answer, where the host has something to commit with it: what package learning waits
	// for, say, so that there is no answer that nobody waits for. The batch must be committed by the store of the strategy, in
	// one Commit with the rest. nil commits it alone. It is not called where there is no answer, and called anew where it
	// returns [heed.ErrConflict]. Its context outlasts that of the decision for a moment.
	Commit func(ctx context.Context, answer Result, trace store.Batch) error `json:"-"`
	// Variant is the variant of an experiment that the request was given to. [Experiment] sets it.
	Variant string
}

// BiasThreshold is the bias that is added to the threshold of [HeuristicFirst]: with -0.05, a heuristic may answer that is
// a little less trusted.
const BiasThreshold = "confidence_threshold"

// A Candidate is a heuristic that may fit an event. Of these fields a prompt shows Condition and Action, and no other.
type Candidate struct {
	HeuristicID string
	Condition   string  // the situation that it is for
	Action      string  // what it answers
	Confidence  float64 // how much it is trusted, in [0, 1]
	Similarity  float64 // of its condition and the event, in [-1, 1]. Not needed where candidates come in their order
}

// Validate reports the first fault of the request as a [*heed.InputError].
func (r Request) Validate() error {
	for _, text := range [...]struct{ field, value string }{
		{"EventID", r.EventID}, {"Source", r.Source}, {"Domain", r.Domain}, {"Variant", r.Variant},
	} {
		if err := evidence.CheckText(text.field, text.value); err != nil {
			return err
		}
	}
	if !(r.Urgency >= 0 && r.Urgency <= 1) {
		return &heed.InputError{Field: "Urgency", Reason: fmt.Sprintf("is %v, must be in [0, 1]", r.Urgency)}
	}
	for i := range r.Candidates {
		if err := r.Candidates[i].validate(); err != nil {
			return &heed.InputError{Field: fmt.Sprintf("Candidates[%d].%s", i, err.Field), Reason: err.Reason}
		}
	}
	if err := finite("Salience", r.Salience); err != nil {
		return err
	}
	return finite("Biases", r.Biases)
}

func (c *Candidate) validate() *heed.InputError {
	switch {
	case c.HeuristicID == "" || evidence.CheckText("", c.HeuristicID) != nil:
		return &heed.InputError{Field: "HeuristicID", Reason: fmt.Sprintf("must be text of 1 to %d bytes", evidence.MaxText)}
	case !(c.Confidence >= 0 && c.Confidence <= 1):
		return &heed.InputError{Field: "Confidence", Reason: fmt.Sprintf("is %v, must be in [0, 1]", c.Confidence)}
	case !(c.Similarity >= -1 && c.Similarity <= 1):
		return &heed.InputError{Field: "Similarity", Reason: fmt.Sprintf("is %v, must be in [-1, 1]", c.Similarity)}
	}
	return nil
}

// finite reports the first value, by name, that is not a finite number.
func finite(field string, values map[string]float64) error {
	first, bad := "", false
	for name, x := range values {
		if (math.IsNaN(x) || math.IsInf(x, 0)) && (!bad || name < first) {
			first, bad = name, true
		}
	}
	if !bad {
		return nil
	}
	return &heed.InputError{Field: fmt.Sprintf("%s[%q]", field, first), Reason: "must be a finite number"}
}
