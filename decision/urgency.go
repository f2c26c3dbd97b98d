package decision

import (
	"cmp"
	"math"

	"github.com/heedhq/heed/internal/faults"
)

// The safe range: whatever bias and urgency do, a heuristic needs at least MinThreshold to answer, and MaxThreshold is
// always enough. A configured threshold outside of it acts as the nearer end.
const (
	MinThreshold = 0.30
	MaxThreshold = 0.95
)

// Urgency says what the urgency of an event changes. The zero value changes nothing.
type Urgency struct {
	// Reduction is by how much the greatest urgency lowers the threshold, in [0, 1]: a heuristic needs
	// clamp(threshold + bias - urgency·Reduction, MinThreshold, MaxThreshold).
	Reduction float64
	// Salience names the dimensions of salience of which the greatest value, brought into [0, 1], is the urgency of a request
	// that does not tell it. nil means "urgency".
	Salience []string
	// Tiers are the edges of three tiers of urgency.
	Tiers Tiers
}

// Tiers are the edges between tiers of urgency. The zero value means no tiers: only the first candidate is looked at, and
// answers if it reaches the threshold.
type Tiers struct {
	// Immediate and Soon are the least urgencies of their tiers, with 0 < Soon < Immediate <= 1. What is less urgent is
	// not urgent.
	Immediate, Soon float64
	// Similarity and Confidence are what the only candidate that answers a not urgent event has to have. 0 means 0.9.
	Similarity, Confidence float64
}

// A Tier says how urgent an event is.
type Tier string

// The tiers. A candidate has to reach the threshold in each of them.
const (
	// Untiered is the tier where none are configured.
	Untiered Tier = ""
	// Immediately is for speed: the first of all candidates that reaches the threshold answers. Fetch candidates from what
	// is at hand.
	Immediately Tier = "immediate"
	// Soon is for choice: one of all candidates that reach the threshold answers, drawn with its similarity as its weight
	// (or its confidence, where no candidate has a similarity).
	Soon Tier = "soon"
	// NotUrgent is for the model: a candidate answers only if it is the one that has both the similarity and the confidence
	// of [Tiers].
	NotUrgent Tier = "not_urgent"
)

func (t Tiers) on() bool { return t != Tiers{} }

func (u Urgency) withDefaults() Urgency {
	if u.Salience == nil {
		u.Salience = []string{"urgency"}
	}
	if u.Tiers.on() {
		u.Tiers.Similarity = cmp.Or(u.Tiers.Similarity, 0.9)
		u.Tiers.Confidence = cmp.Or(u.Tiers.Confidence, 0.9)
	}
	return u
}

func (u Urgency) validate() error {
	var found faults.List
	found.Check(u.Reduction >= 0 && u.Reduction <= 1, "Reduction", u.Reduction, "must be in [0, 1]")
	if t := u.Tiers; t.on() {
		found.Check(t.Immediate > 0 && t.Immediate <= 1, "Tiers.Immediate", t.Immediate, "must be in (0, 1]")
		found.Check(t.Soon > 0 && t.Soon < t.Immediate, "Tiers.Soon", t.Soon, "must be above 0 and below Immediate")
		found.Check(t.Similarity > 0 && t.Similarity <= 1, "Tiers.Similarity", t.Similarity, "must be in (0, 1]")
		found.Check(t.Confidence > 0 && t.Confidence <= 1, "Tiers.Confidence", t.Confidence, "must be in (0, 1]")
	}
	return found.Err()
}

// of returns the urgency of a request.
func (u *Urgency) of(r *Request) float64 {
	urgency := r.Urgency
	if urgency > 0 {
		return urgency
	}
	for _, dimension := range u.Salience {
		urgency = max(urgency, r.Salience[dimension])
	}
	return min(urgency, 1)
}

// tier returns the tier of an urgency.
func (t Tiers) tier(urgency float64) Tier {
	switch {
	case !t.on():
		return Untiered
	case urgency >= t.Immediate:
		return Immediately
	case urgency >= t.Soon:
		return Soon
	default:
		return NotUrgent
	}
}

// threshold returns the confidence that a heuristic needs. It is rounded to 12 places, so that 0.8 with a bias of -0.1 is
// reached by 0.7.
func (u *Urgency) threshold(base, bias, urgency float64) float64 {
	t := math.Round((base+bias-urgency*u.Reduction)*1e12) / 1e12
	return min(max(t, MinThreshold), MaxThreshold)
}
