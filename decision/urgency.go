package decision

import "github.com/heedhq/heed/internal/valid"

// Urgency configures how the urgency of an event changes a decision. The zero value changes
// nothing.
type Urgency struct {
	// Reduction lowers the threshold of the most urgent event by this much, in [0, 1]. A heuristic
	// needs a confidence of clamp(threshold + bias - urgency·Reduction, 0.30, 0.95).
	Reduction float64
	// Salience names dimensions of salience. The greatest of their values, clamped to [0, 1], is
	// the urgency of a request without one. nil means "urgency".
	Salience []string
	// Immediate and Soon are the least urgencies of these tiers, with 0 < Soon < Immediate <= 1.
	// Less urgent events are [NotUrgent]. Both 0 mean no tiers: only the first candidate is looked
	// at.
	Immediate, Soon float64
}

// singularFit is the least similarity and the least confidence of the one candidate that may answer
// an event that is not urgent. The design calls both high and gives no value.
const singularFit = 0.9

// A Tier says how urgent an event is. It is empty where no tiers are configured.
type Tier string

// The tiers. In each of them a candidate has to reach the threshold.
const (
	// Immediately is for speed. The first candidate that reaches the threshold answers. Fetch
	// candidates from a cache.
	Immediately Tier = "immediate"
	// Soon is for variety. One of the candidates that reach the threshold is drawn, weighted by
	// similarity, or by confidence where no candidate has a similarity.
	Soon Tier = "soon"
	// NotUrgent is for the model. A candidate answers only if its similarity and its confidence are
	// at least 0.9, and no other candidate has both.
	NotUrgent Tier = "not_urgent"
)

func (u *Urgency) tiered() bool {
	return u.Immediate != 0 || u.Soon != 0
}

func (u Urgency) withDefaults() Urgency {
	if u.Salience == nil {
		u.Salience = []string{"urgency"}
	}
	return u
}

func (u Urgency) validate() error {
	var found valid.Faults
	found.Check(u.Reduction >= 0 && u.Reduction <= 1, "Reduction", u.Reduction, "must be in [0, 1]")
	if u.tiered() {
		found.Check(u.Immediate > 0 && u.Immediate <= 1, "Immediate", u.Immediate, "must be in (0, 1]")
		found.Check(u.Soon > 0 && u.Soon < u.Immediate, "Soon", u.Soon,
			"must be above 0 and below Immediate")
	}
	return found.Err()
}

// of returns the urgency of a request.
func (u *Urgency) of(r *Request) float64 {
	if r.Urgency > 0 {
		return r.Urgency
	}
	urgency := 0.
	for _, dimension := range u.Salience {
		urgency = max(urgency, r.Salience[dimension])
	}
	return min(urgency, 1)
}

func (u *Urgency) tier(urgency float64) Tier {
	switch {
	case !u.tiered():
		return ""
	case urgency >= u.Immediate:
		return Immediately
	case urgency >= u.Soon:
		return Soon
	default:
		return NotUrgent
	}
}
